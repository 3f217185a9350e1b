# SPDX-License-Identifier: Apache-2.0
"""The way in: a model, the memory that it is shared through, and the dialogue with the daemon."""
from __future__ import annotations

import os
import sys
from typing import Any, Iterable, Mapping, Optional, Sequence, Tuple

from .attachment import Attachment
from .errors import Error
from .memory import Memory
from .model import ArrayModel, Model
from .questions import Evaluate, Predict, Questions


def entered(path: str, shared: Model, *, rounds: Optional[int], reconnect: bool, fresh: bool, timeout: Optional[float],
            on_evaluate: Optional[Evaluate], on_predict: Optional[Predict]) -> Tuple[Attachment, Memory]:
    """Attach a model to the daemon behind a socket, and wait for the first turn. Raises as sgp.attach(); the model is then as it
    was."""
    memory = Memory(shared.layout, shared.tags)
    shared.share(memory)
    try:
        program = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
        return Attachment(path, memory, Questions(shared, on_evaluate, on_predict), program=program, rounds=rounds,
                          timeout=timeout, reconnect=reconnect, fresh=fresh), memory
    except BaseException:
        shared.release()
        memory.close()
        raise


def housed(shared: Model) -> Memory:
    """Memory for the model of a program that trains alone: its parameters lie as those of an attached model do."""
    memory = Memory(shared.layout, shared.tags)
    shared.share(memory)
    return memory


def model_of(model: Any, buffers: str, params: str, overlap: bool = False, local: Sequence[str] = ()) -> Model:
    """The model behind its seam, without what `local` names; with `overlap` one that can advance(). Raises Error for what is none,
    and if nothing is shared; ValueError for a word that is none."""
    if isinstance(local, str) or not isinstance(local, Iterable) or not all(isinstance(name, str) and name for name in local):
        raise ValueError(f"local is {local!r}; a list of names, as ['head']")
    if buffers not in ("average", "local"):
        raise ValueError(f"buffers is {buffers!r}; 'average' or 'local'")
    if params not in ("trainable", "all"):
        raise ValueError(f"params is {params!r}; 'trainable' or 'all'")
    if isinstance(model, Mapping):
        if overlap:
            raise Error("overlap=True is for modules of PyTorch")
        return ArrayModel(model, local)
    if hasattr(model, "named_parameters"):
        from .torch_model import TorchModel
        return TorchModel(model, buffers, params, overlap, local)  # type: ignore[arg-type]
    raise Error(f"a {type(model).__name__} cannot be trained; give a module of PyTorch, or float32 arrays by name")
