# SPDX-License-Identifier: Apache-2.0
"""Which rows a node trains on, and in which order."""
from __future__ import annotations

import dataclasses
import random
from typing import Any, Dict, Iterator, List, Optional, Protocol, Sequence, Set, Sized, Tuple, Union

from .errors import Error


class Place(Protocol):
    """What a sampler asks of its node."""

    @property
    def index(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def stopped(self) -> bool: ...

    def _trained(self) -> Tuple[int, int]:
        """The rows that mix() was told of: of all steps, and of the last one."""


@dataclasses.dataclass
class Pass:
    """One epoch of a sampler, under way or over."""

    epoch: int
    first: int  #: rows that a saved pass had trained on, and which are left out
    trained: int  #: rows that the node had trained on when the pass began
    order: List[int]  #: the rows that are to come, or have come
    handed: int = 0  #: of `order`
    dealt: Tuple[int, int] = (0, 1)  #: index and size by which `order` was dealt
    dealt_anew: bool = False


class Sampler:
    """The indices of this node's rows, for a DataLoader's ``sampler=``.

    Node i of n has the rows i, i + n, i + 2n, ...: equally many as every other, so up to n - 1 rows at the end belong
    to nobody. Every iter() begins an epoch of its own over all of them, whatever became of the one before: after a
    ``break``, or with workers that read ahead, no row is lost. Epochs are numbered from 0, and each has an order of its
    own if `shuffle`; set_epoch() says which is next. An epoch ends early when training is over.

    When a reload of the topology file adds or removes a node, the rows are dealt anew: an epoch under way goes on with
    the new rows that it has not handed out. From the moment at which all daemons have reloaded no two nodes have a row
    in common."""

    def __init__(self, rows: int, node: Place, shuffle: bool, seed: int) -> None:
        if rows < node.size:
            raise Error(f"{rows} rows cannot be dealt to {node.size} nodes; each needs one at least")
        self._rows, self._node, self._shuffle, self._seed = rows, node, shuffle, seed
        self._next, self._first = 0, 0  # epoch and row with which the next iter() begins
        self._pass: Optional[Pass] = None  # the latest

    def _own(self) -> range:
        return range(self._node.index, self._rows // self._node.size * self._node.size, self._node.size)

    def _order(self, epoch: int) -> List[int]:
        rows = list(self._own())
        if self._shuffle:
            random.Random(f"{self._seed}/{self._node.index}/{epoch}").shuffle(rows)
        return rows

    def __len__(self) -> int:
        """Rows of this node."""
        return len(self._own())

    def __iter__(self) -> Iterator[int]:
        order = self._order(self._next)
        self._pass = Pass(self._next, self._first, self._node._trained()[0], order, self._first,
                          (self._node.index, self._node.size))
        self._next, self._first = self._next + 1, 0
        return self._hand_out(self._pass)

    def _hand_out(self, run: Pass) -> Iterator[int]:
        given: Set[int] = set()
        while not self._node.stopped:
            if run.dealt != (self._node.index, self._node.size):
                given.update(run.order[:run.handed])
                run.order = [row for row in self._order(run.epoch) if row not in given]
                run.handed, run.dealt, run.dealt_anew = 0, (self._node.index, self._node.size), True
            if run.handed == len(run.order):
                break
            run.handed += 1
            yield run.order[run.handed - 1]

    def set_epoch(self, epoch: int) -> None:
        """The next iter() begins this epoch, counted from 0."""
        self._next, self._first = epoch, 0

    def state_dict(self) -> Dict[str, int]:
        """Where training is: the epoch, and how many of its rows mix() was told of since it began. So rows that workers
        have read ahead come again. Without ``rows=`` in mix(), or after the rows were dealt anew, the epoch does."""
        run = self._pass
        if run is None:
            return {"epoch": self._next, "position": self._first}
        total, last = self._node._trained()
        left = len(run.order) - run.first - (total - run.trained)
        if not run.dealt_anew and run.handed == len(run.order) and left < max(last, 1):  # as ``drop_last`` leaves
            return {"epoch": run.epoch + 1, "position": 0}
        position = 0 if run.dealt_anew else min(run.handed, run.first + total - run.trained)
        return {"epoch": run.epoch, "position": position}

    def load_state_dict(self, state: Dict[str, int]) -> None:
        """The next iter() goes on from there."""
        self._next, self._first, self._pass = state["epoch"], state["position"], None


def chunks(sampler: Sampler, batch_size: int) -> Iterator[List[int]]:
    """The indices of each batch of an epoch; the last may be smaller."""
    batch: List[int] = []
    for row in sampler:
        batch.append(row)
        if len(batch) == batch_size:
            yield batch
            batch = []
    if batch:
        yield batch


def length_of(data: Union[Sized, Tuple[Sized, ...]]) -> int:
    """Rows of a data set, or of arrays side by side. Raises Error where these are not equally long."""
    if not isinstance(data, tuple):
        return len(data)
    lengths = {len(array) for array in data}
    if len(lengths) != 1:
        raise Error(f"the arrays side by side have {', '.join(map(str, sorted(lengths)))} rows; they must be as many")
    return lengths.pop()


def is_array(data: Any) -> bool:
    """Whether a list of indices takes rows out of it, as numpy's arrays and PyTorch's tensors allow."""
    return hasattr(data, "shape") and hasattr(data, "dtype")


def batches(data: Any, sampler: Sampler, batch_size: int) -> Iterator[Any]:
    """The batches of an epoch: rows of an array; of a tuple of arrays, a tuple; of any other data set what PyTorch's
    DataLoader makes of its items."""
    if is_array(data):
        return (data[rows] for rows in chunks(sampler, batch_size))
    if isinstance(data, tuple) and all(map(is_array, data)):
        return (tuple(array[rows] for array in data) for rows in chunks(sampler, batch_size))
    return loaded(data, sampler, batch_size)


def loaded(data: Sequence[Any], sampler: Sampler, batch_size: int) -> Iterator[Any]:
    try:
        from torch.utils.data import DataLoader
    except ImportError:
        raise Error("a data set that is no array is read by PyTorch's DataLoader, and torch is not installed; give an "
                    "array of numpy, or a tuple of them") from None
    return iter(DataLoader(data, batch_size=batch_size, sampler=sampler))
