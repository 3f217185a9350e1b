# SPDX-License-Identifier: Apache-2.0
"""The memory that a program shares with its daemon: a sealed memfd that is a safetensors file."""
from __future__ import annotations

import dataclasses
import fcntl
import json
import mmap
import os
import re
from typing import Dict, List, Mapping, Sequence, Tuple

from .errors import Error

PAGE = 4096
TENSORS_MAX, DIMENSIONS_MAX, NAME_BYTES_MAX = 4096, 8, 127
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A named slice of the parameters: float32 values [first, first + count), in C order of `shape`."""

    name: str
    shape: Tuple[int, ...]
    first: int
    count: int


class Layout:
    """Which tensors there are, in the order in which they tile the parameters. Those of `updates` come first, those of
    `values` follow. Raises Error for names and shapes that cannot travel."""

    def __init__(self, updates: Mapping[str, Sequence[int]], values: Mapping[str, Sequence[int]]) -> None:
        self.tensors: List[Tensor] = []
        self.parameters = 0
        for name, shape in updates.items():
            self._add(name, tuple(shape))
        self.values_from = self.parameters
        for name, shape in values.items():
            self._add(name, tuple(shape))
        if not self.tensors:
            raise Error("the model has no parameter that is trained: there is nothing to share")
        if len(self.tensors) > TENSORS_MAX:
            raise Error(f"the model has {len(self.tensors)} tensors; at most {TENSORS_MAX} can travel")

    def _add(self, name: str, shape: Tuple[int, ...]) -> None:
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,%d}" % NAME_BYTES_MAX, name):
            raise Error(f"the name '{name}' cannot travel: it takes 1 to {NAME_BYTES_MAX} letters, digits, '.', '_' "
                        "and '-'")
        if len(shape) > DIMENSIONS_MAX:
            raise Error(f"'{name}' has {len(shape)} dimensions; at most {DIMENSIONS_MAX} can travel")
        count = 1
        for length in shape:
            count *= length
        if count < 1:
            raise Error(f"'{name}' has no values, of shape {list(shape)}; leave it out")
        self.tensors.append(Tensor(name, shape, self.parameters, count))
        self.parameters += count

    def header(self, tags: Mapping[str, str]) -> bytes:
        """The file up to its values, which begin with a page."""
        entries: Dict[str, object] = {"__metadata__": {
            "xxh3": "0" * 16, "values_from": str(self.values_from), **tags}}
        for tensor in self.tensors:
            entries[tensor.name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [
                4 * tensor.first, 4 * (tensor.first + tensor.count)]}
        text = json.dumps(entries, separators=(",", ":")).encode()
        size = -(8 + len(text)) // PAGE * -PAGE
        return (size - 8).to_bytes(8, "little") + text.ljust(size - 8)


class Memory:
    """The shared memory of a layout, as long as it is open. `map` is all of it, `base` the byte where z begins."""

    def __init__(self, layout: Layout, tags: Mapping[str, str]) -> None:
        header = layout.header(tags)
        self.layout = layout
        self.base = len(header)
        self.size = len(header) + 4 * layout.parameters
        self.descriptor = os.memfd_create("sgp", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, self.size)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)
        self.map = mmap.mmap(self.descriptor, self.size)
        self.map[:len(header)] = header

    def offset(self, tensor: Tensor) -> int:
        """The byte of the map at which a tensor begins."""
        return self.base + 4 * tensor.first

    def values(self) -> memoryview:
        """The bytes of the parameters. Release it: the memory cannot be closed before."""
        return memoryview(self.map)[self.base:]

    def shield(self) -> None:
        """Keep the mapping out of forked children: a view of it that make_private() does not know of is not there,
        where it could change what the daemon sees."""
        self.map.madvise(mmap.MADV_DONTFORK)

    def make_private(self) -> None:
        """In a forked child: what is written from now on is its own. The old mapping is never given back, for the
        child does not have it, and its addresses may be somebody else's by now."""
        _given_up.append(self.map)
        self.map = mmap.mmap(self.descriptor, self.size, access=mmap.ACCESS_COPY)

    def close(self) -> None:
        """Let go; whoever still has a view of it keeps the memory alive, and nothing else."""
        os.close(self.descriptor)
        try:
            self.map.close()
        except BufferError:
            pass


_given_up: List[mmap.mmap] = []
