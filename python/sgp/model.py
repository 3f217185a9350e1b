# SPDX-License-Identifier: Apache-2.0
"""What a node trains: the seam between its parameters, wherever a framework keeps them, and the shared memory."""
from __future__ import annotations

import typing
from typing import Any, Dict, Mapping, Protocol, Sequence, Tuple

from .errors import Error, ViewsLost
from .memory import Layout, Memory

if typing.TYPE_CHECKING:
    import numpy


class Model(Protocol):
    """Parameters behind a layout."""

    layout: Layout
    tags: Dict[str, str]  #: more metadata of the shared file

    def share(self, memory: Memory) -> None:
        """Write the parameters as they are into the memory, and let them live there."""

    def gather(self, assigned: bool = False) -> None:
        """Before a turn is handed back: the memory holds the parameters, which with `assigned` are values and no update. Raises
        ViewsLost."""

    def scatter(self) -> None:
        """After a turn has come: what the program computes from now on sees the parameters that the memory holds. Copies to a
        device may still be under way: synchronize() waits for them."""

    def advance(self, landed: bool) -> None:
        """As gather(), of a program that has not waited for its turn: if a turn has `landed` since the last call, what the program
        has done to its parameters since then is added to those that the memory holds. Raises ViewsLost."""

    def synchronize(self) -> None:
        """Before the memory changes hands without gather(): nothing reads it any more."""

    def local(self) -> Dict[str, Any]:
        """Copies of what belongs to the model and does not travel, by name; of frozen parameters none."""

    def set_local(self, tensors: Mapping[str, Any]) -> None:
        """Put them back. Names that are no longer there are left out. Raises Error, and changes none, if one has another shape."""

    def fork(self) -> None:
        """In a forked child: nothing that it does reaches the memory."""

    def release(self) -> None:
        """The parameters, as they are, live in memory of their own again."""


def is_named(name: str, local: Sequence[str]) -> bool:
    """Whether one of these names is a parameter's, or that of a module around it."""
    return any(name == one or name.startswith(f"{one}.") for one in local)


def check_local(local: Sequence[str], names: Sequence[str]) -> None:
    """Raises Error for a name in `local` that the model does not have."""
    for one in local:
        if not any(is_named(name, [one]) for name in names):
            raise Error(f"local names '{one}', and the model has no such parameter or module; it has "
                        f"{', '.join(names[:8])}{', ...' if len(names) > 8 else ''}")


def check_shares(local: Sequence[str], trained: Sequence[str]) -> None:
    """Raises Error if `local` leaves nothing of what is `trained` to share."""
    if local and not trained:
        raise Error("local names all parameters that are trained, so there is nothing to share; leave one out of it")


def check_shapes(now: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
    """Raises Error if a tensor that was kept has another shape than it has now: copying would repeat its values."""
    for name, tensor in now.items():
        if name in kept and tuple(kept[name].shape) != tuple(tensor.shape):
            raise Error(f"'{name}' is local, and was {list(kept[name].shape)} when it was saved; it is {list(tensor.shape)} "
                        "now: this is another model")


def check_array(name: str, array: Any) -> None:
    """Raises Error for what is no array to write to."""
    if not hasattr(array, "__array_interface__"):
        raise Error(f"'{name}' is of type {type(array).__name__}; what local names is arrays")
    if not array.flags.writeable:
        raise Error(f"'{name}' is read-only; what local names is restored in place: array.copy()")


class ArrayModel:
    """Arrays of numpy by name. They stay where they are, and are copied to the memory and back: change them in place,
    or replace them in the mapping. Those that `local` names are not copied."""

    def __init__(self, arrays: Mapping[str, numpy.ndarray[Any, Any]], local: Sequence[str] = ()) -> None:
        shapes: Dict[str, Tuple[int, ...]] = {}
        self._local = tuple(local)
        check_local(self._local, list(arrays))
        for name, array in arrays.items():
            if is_named(name, self._local):
                check_array(name, array)
                continue
            if not hasattr(array, "__array_interface__") or str(array.dtype) != "float32":
                what = getattr(array, "dtype", type(array).__name__)
                raise Error(f"'{name}' is of type {what}; parameters are arrays of float32: "
                            f"array.astype(numpy.float32)")
            if not array.flags.writeable:
                raise Error(f"'{name}' is read-only; the fleet's parameters are written to it: array.copy()")
            shapes[name] = array.shape
        check_shares(self._local, list(shapes))
        self.layout = Layout(shapes, {})
        self.tags = {"framework": "numpy"}
        self._arrays = arrays
        self._views: Dict[str, numpy.ndarray[Any, Any]] = {}

    def share(self, memory: Memory) -> None:
        import numpy
        self._views = {t.name: numpy.frombuffer(memory.map, numpy.float32, t.count, memory.offset(t)).reshape(t.shape)
                       for t in self.layout.tensors}
        self.gather()

    def gather(self, assigned: bool = False) -> None:
        for name, view in self._views.items():
            array = self._arrays.get(name)
            if array is None:
                raise ViewsLost(name, "is no longer in the mapping")
            if not hasattr(array, "flags") or not array.flags.writeable:  # as what arithmetic makes of a scalar
                raise ViewsLost(name, f"is a {type(array).__name__} that cannot be written to; change the array in "
                                "place, or put a new array into the mapping")
            if array.shape != view.shape or array.dtype != view.dtype:
                raise ViewsLost(name, f"was {list(view.shape)} of {view.dtype}, and is now {list(array.shape)} of "
                                f"{array.dtype}")
            view[...] = array

    def scatter(self) -> None:
        for name, view in self._views.items():
            self._arrays[name][...] = view

    def advance(self, landed: bool) -> None:
        raise Error("arrays cannot be trained with overlap=True")

    def synchronize(self) -> None:
        """Copies of arrays are done when they return."""

    def local(self) -> Dict[str, Any]:
        return {name: array.copy() for name, array in self._arrays.items() if is_named(name, self._local)}

    def set_local(self, tensors: Mapping[str, Any]) -> None:
        ours = {name: array for name, array in self._arrays.items() if is_named(name, self._local)}
        check_shapes(ours, tensors)
        for name, array in ours.items():
            if name in tensors:
                array[...] = tensors[name]

    def fork(self) -> None:
        """The arrays are copies already."""
        self._views = {}

    def release(self) -> None:
        self._views = {}
