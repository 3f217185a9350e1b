# SPDX-License-Identifier: Apache-2.0
"""Event files of TensorBoard, written without TensorBoard. include/sgp/tensorboard.h has the format and its sources."""
from __future__ import annotations

import os
import socket
import struct
import time
from types import TracebackType
from typing import Any, List, Optional, SupportsFloat, Type

_VERSION = b"brain.Event:2"


def _table() -> List[int]:
    """CRC32C of each byte (RFC 3720; the polynomial 0x1edc6f41, its bits reversed)."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ 0x82F63B78 * (value & 1)
        table.append(value)
    return table


_TABLE = _table()


def _masked(data: bytes) -> bytes:
    """The masked CRC32C of a text, as a record has it."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 255] ^ value >> 8
    value ^= 0xFFFFFFFF
    return struct.pack("<I", (value >> 15 | value << 17) + 0xA282EAD8 & 0xFFFFFFFF)


# ---- messages: the fields of event.proto and summary.proto ----

def _varint(value: int) -> bytes:
    low = []
    while value > 127:
        low.append(value & 127 | 128)
        value >>= 7
    return bytes([*low, value])


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    try:
        return _varint(field << 3 | 5) + struct.pack("<f", value)
    except OverflowError:
        return _varint(field << 3 | 5) + struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def _doubles(field: int, values: List[float]) -> bytes:
    return _bytes(field, struct.pack(f"<{len(values)}d", *values))


def _record(message: bytes) -> bytes:
    length = struct.pack("<Q", len(message))
    return length + _masked(length) + message + _masked(message)


def _histogram(values: Any, bins: int) -> bytes:
    import numpy
    if hasattr(values, "detach"):
        values = values.detach().float().cpu().numpy()
    array = numpy.asarray(values, dtype=numpy.float64).ravel()
    if array.size == 0 or not numpy.isfinite(array).all():
        raise ValueError("a histogram needs at least one value, and all of them finite")
    counts, edges = numpy.histogram(array, bins=bins)
    return (_double(1, float(array.min())) + _double(2, float(array.max())) + _double(3, float(array.size))
            + _double(4, float(array.sum())) + _double(5, float(array @ array))
            + _doubles(6, edges[1:].tolist()) + _doubles(7, counts.astype(float).tolist()))


class Writer:
    """Writes figures of a program for TensorBoard, with the method names of PyTorch's SummaryWriter. Neither it nor TensorBoard is needed.

        with sgp.attach(model, optimizer) as node, sgp.Writer("runs/" + node.name) as writer:
            ...
            writer.add_scalar("loss", loss, node.round)

        $ tensorboard --logdir runs

    Every writer begins a new file in `directory`, which is created if it is missing, with those above it. TensorBoard shows the files of
    a directory as one run, so each node needs a directory of its own. A record is written at once, by one write: a killed program loses
    at most the record being written. Raises OSError if a file cannot be created or written. Use it from one thread."""

    def __init__(self, directory: str) -> None:
        os.makedirs(directory, exist_ok=True)
        start = time.time()
        self.path, self._file = self._create(directory, start)  #: `path`: of the file
        self._append(_double(1, start) + _bytes(3, _VERSION))

    @staticmethod
    def _create(directory: str, start: float) -> Any:
        name = os.path.join(directory, f"events.out.tfevents.{int(start):010d}.{socket.gethostname()}.{os.getpid()}.")
        for number in range(1000):
            try:
                return name + str(number), os.open(name + str(number), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
            except FileExistsError:
                pass
        raise FileExistsError(f"{name}*: 1000 files of one second")

    def _append(self, message: bytes) -> None:
        if self._file < 0:
            raise ValueError(f"{self.path}: the writer is closed")
        record, end = _record(message), os.fstat(self._file).st_size
        written = 0
        try:
            while written < len(record):
                written += os.write(self._file, record[written:])
        except OSError:
            os.ftruncate(self._file, end)
            raise

    def _add(self, tag: str, value: bytes, step: Optional[int], walltime: Optional[float]) -> None:
        step = 0 if step is None else int(step)
        if not 0 <= step < 1 << 63:
            raise ValueError(f"global_step is {step}; from 0 to below 2 ** 63")
        self._append(_double(1, time.time() if walltime is None else walltime) + b"\x10" + _varint(step)
                     + _bytes(5, _bytes(1, _bytes(1, tag.encode()) + value)))

    def add_scalar(self, tag: str, scalar_value: SupportsFloat, global_step: Optional[int] = None, walltime: Optional[float] = None) -> None:
        """Add a number, or a tensor of one number; it is stored as float32. `walltime`: seconds since 1970, now if not given. Raises
        ValueError for a step that is negative or of more than 63 bits, and OSError if the record is not written."""
        self._add(tag, _float(2, float(scalar_value)), global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: Optional[int] = None, bins: int = 64, walltime: Optional[float] = None) -> None:
        """Add the distribution of values: a tensor, an array of numpy or a list, of any shape, in `bins` (at least 1) parts of equal width
        from the least value to the greatest. Needs numpy. Raises ValueError for values that are not finite, or for none, and as
        add_scalar does."""
        self._add(tag, _bytes(5, _histogram(values, bins)), global_step, walltime)

    def flush(self) -> None:
        """Let the disk have what was added; it survives a killed program without."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file. A second time does nothing."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()
