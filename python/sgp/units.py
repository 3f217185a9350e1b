# SPDX-License-Identifier: Apache-2.0
"""Resume points of a node on its disk: a file for each, which is whole or is passed over.

A file is a line with a mark and two sizes, a pickle of what a script keeps, the parameters as they travel (float32), and a digest
of all before it. Its name has its round."""
from __future__ import annotations

import hashlib
import logging
import os
import pickle
import re
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Tuple

from .errors import Error

UNITS_MAX = 7  #: of a node, so that one word of a decision names their rounds
_MARK = b"sgp-unit-1"
_DIGEST_BYTES = 32
_CHUNK = 1 << 20
_log = logging.getLogger("sgp")


class Units:
    """The units of one node, in a directory of their own."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def _path(self, number: int) -> str:
        return os.path.join(self._directory, f"round-{number}.unit")

    def _numbers(self) -> List[int]:
        """The rounds of all files, sound or not; the latest first."""
        names = os.listdir(self._directory) if os.path.isdir(self._directory) else []
        found = (re.fullmatch(r"round-(\d{1,15})\.unit", name) for name in names)
        return sorted((int(match[1]) for match in found if match), reverse=True)

    def write(self, number: int, kept: Dict[str, Any], parameters: memoryview, keep: int) -> None:
        """The unit of a round. It appears whole or not at all; of older ones, `keep` - 1 stay. Raises OSError."""
        os.makedirs(self._directory, exist_ok=True)
        path = self._path(number)
        with open(f"{path}.new", "wb") as file:
            _put(file, pickle.dumps(kept), parameters)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.new", path)
        self._sync()
        for old in self._numbers()[keep:]:
            os.unlink(self._path(old))

    def _sync(self) -> None:
        """The directory's entries survive a power cut, too."""
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sound(self) -> List[int]:
        """The rounds of the units that are whole, the latest first. A line tells of each that is not."""
        numbers: List[int] = []
        for number in self._numbers():
            if len(numbers) == UNITS_MAX:
                break
            try:
                with open(self._path(number), "rb") as file:
                    _check(file)
                numbers.append(number)
            except (OSError, ValueError) as error:
                _log.warning("%s is passed over: %s", self._path(number), error)
        return numbers

    def read(self, number: int) -> Tuple[Dict[str, Any], bytes]:
        """What a unit that is whole keeps, and its parameters. Raises Error if its pickle cannot be read here."""
        try:
            with open(self._path(number), "rb") as file:
                pickled, parameters = _sizes(file)
                return pickle.loads(file.read(pickled)), file.read(parameters)
        except Exception as error:  # an unpickler raises whatever a class of the script does
            raise Error(f"{self._path(number)} cannot be read: {type(error).__name__}: {error}") from error

    def take(self, number: int, now: int) -> None:
        """The unit of a round was resumed in round `now`, so later units are removed. If the daemons have lost their rounds, `now`
        may be less than the unit's round. The unit then gets the round `now`, and is the only one."""
        for other in self._numbers():
            if other > number or (other < number and now < number):
                os.unlink(self._path(other))
        if now < number:
            os.replace(self._path(number), self._path(now))
        if self._numbers():
            self._sync()

    def set_aside(self) -> None:
        """Another run begins: those of each former run lie in a directory of their own, `former`, `former-2` and so on."""
        numbers, former, runs = self._numbers(), os.path.join(self._directory, "former"), 1
        while numbers and os.path.isdir(former):
            runs += 1
            former = os.path.join(self._directory, f"former-{runs}")
        if numbers:
            os.makedirs(former)
        for number in numbers:
            os.replace(self._path(number), os.path.join(former, os.path.basename(self._path(number))))


def _put(file: BinaryIO, pickled: bytes, parameters: memoryview) -> None:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in (b"%s %d %d\n" % (_MARK, len(pickled), parameters.nbytes), pickled, parameters):
        digest.update(part)
        file.write(part)
    file.write(digest.digest())


def _sizes(file: BinaryIO) -> Tuple[int, int]:
    """Of the pickle and of the parameters, which follow. Raises ValueError."""
    match = re.fullmatch(rb"%s (\d{1,18}) (\d{1,18})\n" % re.escape(_MARK), file.readline(64))
    if match is None:
        raise ValueError("it is no unit of this version")
    return int(match[1]), int(match[2])


def _check(file: BinaryIO) -> None:
    """Raises ValueError for a file that is not what was written."""
    pickled, parameters = _sizes(file)
    size, now = file.tell() + pickled + parameters, os.fstat(file.fileno()).st_size
    if now != size + _DIGEST_BYTES:
        raise ValueError(f"it has {now} bytes, and {size + _DIGEST_BYTES} were written")
    file.seek(0)
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in _chunks(file, size):
        digest.update(part)
    if file.read(_DIGEST_BYTES) != digest.digest():
        raise ValueError("its bytes are not those that were written")


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size > 0:
        part = file.read(min(size, _CHUNK))
        if not part:
            raise ValueError("it ends early")
        size -= len(part)
        yield part


def agreed(rounds: Dict[str, List[int]]) -> Optional[int]:
    """The latest round of which every node has a unit; None: no node has any. `rounds` are those of each node by name. Raises
    Error, on all nodes, where some have units and no round is everybody's."""
    common = set.intersection(*(set(own) for own in rounds.values()))
    if common:
        return max(common)
    if not any(rounds.values()):
        return None
    told = "; ".join(f"{name}: {', '.join(map(str, own)) or 'none'}" for name, own in rounds.items())
    raise Error(f"no round has a unit on every node ({told}); copy a node's file to the nodes that lack it, or move all files "
                "away to begin anew")
