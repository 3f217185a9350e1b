# SPDX-License-Identifier: Apache-2.0
"""What onlookers ask of the program by way of its daemon: to measure the model, or to apply it to rows."""
from __future__ import annotations

import fcntl
import logging
import os
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Tuple, cast

from .errors import Error
from .model import Model
from .protocol import STATE, Flag, Frame, Type, number

if TYPE_CHECKING:
    import numpy

Evaluate = Callable[[], Mapping[str, float]]
Predict = Callable[["numpy.ndarray[Any, Any]"], Any]

_log = logging.getLogger("sgp")
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class Questions:
    """Answers by the functions that the program gave. Whatever fails is the answer, and training goes on."""

    def __init__(self, model: Model, evaluate: Optional[Evaluate], predict: Optional[Predict]) -> None:
        self._model, self._evaluate, self._predict = model, evaluate, predict
        self.flags = (Flag.EVALUATES if evaluate else Flag.NONE) | (Flag.PREDICTS if predict else Flag.NONE)

    def answer(self, question: Frame, descriptor: Optional[int]) -> Tuple[Frame, List[int]]:
        """What to say, and descriptors to go with it, which are the caller's to close."""
        kind = Type.EVALUATED if question.type == Type.EVALUATE else Type.PREDICTED
        try:
            self._model.scatter()
            self._model.synchronize()  # the daemon has the memory again when it has the answer
            if kind == Type.EVALUATED:
                return self._measured(question), []
            return self._applied(question, descriptor)
        except Exception as error:  # the program's own
            _log.warning("what an onlooker asked for failed", exc_info=True)
            lines = str(error).splitlines() or [""]
            return Frame(kind, turn=question.turn, code=STATE, text=f"{type(error).__name__}: {lines[0]}"), []

    def _measured(self, question: Frame) -> Frame:
        figures = cast(Evaluate, self._evaluate)()
        return Frame(Type.EVALUATED, turn=question.turn, rows=int(figures.get("rows", 0)),
                     test_loss=number(figures.get("test_loss")), test_accuracy=number(figures.get("test_accuracy")))

    def _applied(self, question: Frame, descriptor: Optional[int]) -> Tuple[Frame, List[int]]:
        import numpy
        if descriptor is None:
            raise Error("the rows were lost when a signal came; ask again")
        count = question.rows * question.columns
        features = numpy.frombuffer(os.pread(descriptor, 4 * count, 0), numpy.float32, count)
        result = cast(Predict, self._predict)(features.reshape(question.rows, question.columns).copy())
        if hasattr(result, "detach"):  # of PyTorch, perhaps on a device
            result = result.detach().cpu()
        outputs = numpy.ascontiguousarray(result, numpy.float32)
        if outputs.ndim == 1:
            outputs = outputs[:, None]
        if outputs.ndim != 2 or len(outputs) != question.rows or not outputs.size:
            raise Error(f"on_predict returned {list(outputs.shape)} for {question.rows} rows; a row of numbers for each "
                        "is right")
        return (Frame(Type.PREDICTED, turn=question.turn, rows=question.rows, columns=outputs.shape[1]),
                [file_of(outputs.tobytes())])


def file_of(data: bytes) -> int:
    """The descriptor of a memfd with these bytes."""
    descriptor = os.memfd_create("outputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    return descriptor
