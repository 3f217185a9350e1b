# SPDX-License-Identifier: Apache-2.0
"""Which rows a node trains on, and in which order."""
from __future__ import annotations

import random
from typing import Any, Callable, Dict, Iterator, List, Sequence, Sized, Tuple, Union

from .errors import Error


class Sampler:
    """The indices of this node's rows: those that are `index` modulo `size`, equally many on every node, so that up to
    size - 1 rows at the end are nobody's. A DataLoader takes it as ``sampler=``. Each pass over it is an epoch, in
    an order of its own if `shuffle`; it ends early when training is over."""

    def __init__(self, rows: int, index: int, size: int, shuffle: bool, seed: int, over: Callable[[], bool]) -> None:
        if rows < size:
            raise Error(f"{rows} rows cannot be dealt to {size} nodes; each needs one at least")
        self._rows = range(index, rows // size * size, size)
        self._shuffle, self._seed, self._over = shuffle, f"{seed}/{index}", over
        self._epoch = self._position = 0

    def __len__(self) -> int:
        """Rows of this node."""
        return len(self._rows)

    def __iter__(self) -> Iterator[int]:
        rows = list(self._rows)
        if self._shuffle:
            random.Random(f"{self._seed}/{self._epoch}").shuffle(rows)
        while self._position < len(rows) and not self._over():
            self._position += 1
            yield rows[self._position - 1]
        if self._position == len(rows):
            self.set_epoch(self._epoch + 1)

    def set_epoch(self, epoch: int) -> None:
        """Begin with the first row of this epoch, counted from 0."""
        self._epoch, self._position = epoch, 0

    def state_dict(self) -> Dict[str, int]:
        """Where it is: the epoch, and the rows of it that were handed out. Workers that read ahead count."""
        return {"epoch": self._epoch, "position": self._position}

    def load_state_dict(self, state: Dict[str, int]) -> None:
        """Go on from there."""
        self._epoch, self._position = state["epoch"], state["position"]


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
