# SPDX-License-Identifier: Apache-2.0
"""Which rows a node trains on, and in which order."""
from __future__ import annotations

import dataclasses
import random
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional, Protocol, Set, Tuple

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

    Without `shuffle` they are those of PyTorch's DistributedSampler with ``drop_last=True``. With it, a node keeps its rows in
    all epochs, and only their order changes, where DistributedSampler deals all rows anew.

    Node i of n has the rows i, i + n, i + 2n, ..., equally many on every node; up to n - 1 rows at the end are of no node.
    Every iter() begins an epoch over all rows of the node, even if the former epoch was not used up: after a ``break``, or with
    workers that read ahead, no row is lost. Epochs are numbered from 0, and each has its own order if `shuffle`;
    set_epoch() sets the next one. An epoch ends early when training is over.

    When a reload of the topology file adds or removes a node, the rows are divided anew: a running epoch continues with
    the new rows that it has not handed out. Once all daemons have reloaded, no two nodes have a row in common.

    Node.sampler() makes it."""

    def __init__(self, rows: int, node: Place, shuffle: bool, seed: int) -> None:
        if rows < node.size:
            raise Error(f"{rows} rows cannot be dealt to {node.size} nodes; each needs one at least")
        self._rows, self.node, self._shuffle, self._seed = rows, node, shuffle, seed
        self._next, self._first = 0, 0  # epoch and row with which the next iter() begins
        self._pass: Optional[Pass] = None  # the latest

    def _own(self) -> range:
        return range(self.node.index, self._rows // self.node.size * self.node.size, self.node.size)

    def _order(self, epoch: int) -> List[int]:
        rows = list(self._own())
        if self._shuffle:
            random.Random(f"{self._seed}/{self.node.index}/{epoch}").shuffle(rows)
        return rows

    def __len__(self) -> int:
        """Rows of this node."""
        return len(self._own())

    def __iter__(self) -> Iterator[int]:
        order = self._order(self._next)
        self._pass = Pass(self._next, self._first, self.node._trained()[0], order, self._first,
                          (self.node.index, self.node.size))
        self._next, self._first = self._next + 1, 0
        return self._hand_out(self._pass)

    def _hand_out(self, run: Pass) -> Iterator[int]:
        given: Set[int] = set()
        while not self.node.stopped:
            if run.dealt != (self.node.index, self.node.size):
                given.update(run.order[:run.handed])
                run.order = [row for row in self._order(run.epoch) if row not in given]
                run.handed, run.dealt, run.dealt_anew = 0, (self.node.index, self.node.size), True
            if run.handed == len(run.order):
                break
            run.handed += 1
            yield run.order[run.handed - 1]

    def set_epoch(self, epoch: int) -> None:
        """The next iter() begins this epoch, counted from 0."""
        self._next, self._first = epoch, 0

    def state_dict(self) -> Dict[str, int]:
        """The place of training: the epoch, and how many of its rows were given to mix() since it began. So rows that workers
        have read ahead come again. Without ``rows=`` in mix(), or after the rows were divided anew, the whole epoch does."""
        run = self._pass
        if run is None:
            return {"epoch": self._next, "position": self._first}
        total, last = self.node._trained()
        left = len(run.order) - run.first - (total - run.trained)
        if not run.dealt_anew and run.handed == len(run.order) and left < max(last, 1):  # as ``drop_last`` leaves
            return {"epoch": run.epoch + 1, "position": 0}
        position = 0 if run.dealt_anew else min(run.handed, run.first + total - run.trained)
        return {"epoch": run.epoch, "position": position}

    def place(self) -> Dict[str, int]:
        """As state_dict(), but an epoch that is over is not yet the next one: a script that resumes here gets no more of its rows,
        and ends the epoch itself. Node.checkpoint() keeps this."""
        run = self._pass
        if run is None:
            return {"epoch": self._next, "position": self._first}
        done = run.first + self.node._trained()[0] - run.trained
        return {"epoch": run.epoch, "position": 0 if run.dealt_anew else min(run.handed, done)}

    def load_state_dict(self, state: Dict[str, int]) -> None:
        """The next iter() continues from there."""
        self._next, self._first, self._pass = state["epoch"], state["position"], None


class Batches:
    """The indices of each batch of an epoch, as lists; the last may be smaller, unless `drop_last`."""

    def __init__(self, sampler: Sampler, size: int, drop_last: bool = False) -> None:
        if size < 1:
            raise Error(f"batch_size is {size}; at least 1")
        self.sampler, self._size, self._drop_last = sampler, size, drop_last

    def __iter__(self) -> Iterator[List[int]]:
        batch: List[int] = []
        for row in self.sampler:
            batch.append(row)
            if len(batch) == self._size:
                yield batch
                batch = []
        if batch and not self._drop_last:
            yield batch

    def __len__(self) -> int:
        rows = len(self.sampler)
        return rows // self._size if self._drop_last else -(-rows // self._size)

    def set_epoch(self, epoch: int) -> None:
        """As Sampler.set_epoch()."""
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> Dict[str, int]:
        """As Sampler.state_dict()."""
        return self.sampler.state_dict()

    def load_state_dict(self, state: Dict[str, int]) -> None:
        """As Sampler.load_state_dict()."""
        self.sampler.load_state_dict(state)


def length_of(data: Any) -> int:
    """Rows of a data set, or of arrays side by side or by name. Raises Error where these are not equally long."""
    if not is_columns(data) or is_array(data):
        return len(data)
    lengths = {len(array) for array in (data.values() if isinstance(data, Mapping) else data)}
    if len(lengths) != 1:
        raise Error(f"the arrays side by side have {', '.join(map(str, sorted(lengths)))} rows; they must be as many")
    return lengths.pop()


def is_array(data: Any) -> bool:
    """Whether a list of indices takes rows out of it, as numpy's arrays and PyTorch's tensors allow."""
    return hasattr(data, "shape") and hasattr(data, "dtype")


def check_data(data: Any) -> None:
    """Raises Error for a DataLoader: its items are batches, and to divide batches among nodes is not to divide rows."""
    torch_data = sys.modules.get("torch.utils.data")
    if torch_data is not None and isinstance(data, torch_data.DataLoader):
        raise Error("this is a DataLoader, whose items are batches; give its data set (loader.dataset), or make your own DataLoader "
                    "with sampler=node.sampler(dataset)")


def is_columns(data: Any) -> bool:
    """Whether rows can be taken out by a list of indices: an array, a tuple of such, or a dictionary of such."""
    if isinstance(data, Mapping):
        return bool(data) and all(map(is_array, data.values()))
    return is_array(data) or (isinstance(data, tuple) and bool(data) and all(map(is_array, data)))


def is_stream(data: Any) -> bool:
    """Whether it has items one after the other, and no rows by index: an iterable data set."""
    torch_data = sys.modules.get("torch.utils.data")  # whose data sets all have a __getitem__
    if torch_data is not None and isinstance(data, torch_data.IterableDataset):
        return True
    return not is_columns(data) and hasattr(data, "__iter__") and not hasattr(data, "__getitem__")


def taken(data: Any, rows: Any) -> Any:
    """Rows of what is_columns(), in the same form."""
    if isinstance(data, Mapping):
        return {name: array[rows] for name, array in data.items()}
    return tuple(array[rows] for array in data) if isinstance(data, tuple) else data[rows]


def batches(data: Any, sampler: Sampler, batch_size: int) -> Iterator[Any]:
    """The batches of an epoch: of what is_columns(), rows in the same form; of any other data set what PyTorch's
    DataLoader makes of its items."""
    if is_columns(data):
        return (taken(data, rows) for rows in Batches(sampler, batch_size))
    try:
        from .loader import rows_loader
    except ImportError:
        raise Error("a data set that is no array is read by PyTorch's DataLoader, and torch is not installed; give an "
                    "array of numpy, a tuple of them, or a dictionary") from None
    return iter(rows_loader(data, sampler, batch_size, {}))
