# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over the rows of a node; needs torch."""
from __future__ import annotations

import dataclasses
from typing import Any, Dict, Iterator, Tuple

from torch.utils.data import DataLoader, Dataset, IterableDataset

from .errors import Error
from .rows import Batches, Place, Sampler, is_columns, length_of, taken


class Columns(Dataset):  # type: ignore[misc]
    """Arrays side by side: one row, or those of a whole batch."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __getitem__(self, rows: Any) -> Any:
        return taken(self._data, rows)

    def __len__(self) -> int:
        return length_of(self._data)


@dataclasses.dataclass
class Still:
    """A node as it was, for a worker that is another process."""

    index: int
    size: int
    stopped: bool = False

    def _trained(self) -> Tuple[int, int]:
        return 0, 0


class Dealt(IterableDataset):  # type: ignore[misc]
    """One node's part of what a data set yields: of each `size` items in turn that with the node's index. The rest, of fewer
    items, is nobody's, so all nodes get equally many."""

    def __init__(self, data: Any, place: Place) -> None:
        self._data, self._place = data, place

    def __iter__(self) -> Iterator[Any]:
        index, size, own, count = self._place.index, self._place.size, None, 0
        for item in self._data:
            if self._place.stopped:
                return
            if count == index:
                own = item
            count += 1
            if count == size:  # a reload counts from here on
                yield own
                index, size, own, count = self._place.index, self._place.size, None, 0

    def __len__(self) -> int:
        return len(self._data) // self._place.size

    def set_epoch(self, epoch: int) -> None:
        """Tell the data set, if it wants to know."""
        if hasattr(self._data, "set_epoch"):
            self._data.set_epoch(epoch)

    def __getstate__(self) -> Dict[str, Any]:
        return {**vars(self), "_place": Still(self._place.index, self._place.size)}


class Loader(DataLoader):  # type: ignore[misc]
    """A DataLoader that ends when training is over, whatever its workers have read ahead."""

    def __init__(self, place: Place, data: Any, **options: Any) -> None:
        super().__init__(data, **options)
        self._place = place

    def __iter__(self) -> Iterator[Any]:
        for batch in super().__iter__():
            if self._place.stopped:
                return
            yield batch

    def set_epoch(self, epoch: int) -> None:
        """The next iter() begins this epoch, counted from 0."""
        teller = self.dataset if isinstance(self.dataset, Dealt) else self.sampler
        teller.set_epoch(epoch)


def check(options: Dict[str, Any]) -> None:
    """Raises Error for an option that says which rows come: the node does."""
    for name in ("sampler", "batch_sampler"):
        if options.get(name) is not None:
            raise Error(f"the node decides which rows come, so {name} must be left out; a DataLoader of your own takes "
                        "sampler=node.sampler(data)")


def rows_loader(data: Any, sampler: Sampler, batch_size: int, options: Dict[str, Any]) -> Loader:
    """Over a data set with a length, or arrays. Whole batches are taken out of arrays, unless `collate_fn` wants rows."""
    check(options)
    if not is_columns(data):
        return Loader(sampler.node, data, batch_size=batch_size, sampler=sampler, **options)
    if options.get("collate_fn") is not None:
        return Loader(sampler.node, Columns(data), batch_size=batch_size, sampler=sampler, **options)
    whole = Batches(sampler, batch_size, options.get("drop_last", False))
    others = {name: value for name, value in options.items() if name != "drop_last"}
    return Loader(sampler.node, Columns(data), batch_size=None, sampler=whole, **others)


def stream_loader(data: Any, place: Place, batch_size: int, options: Dict[str, Any]) -> Loader:
    """Over an iterable data set."""
    check(options)
    return Loader(place, Dealt(data, place), batch_size=batch_size, **options)
