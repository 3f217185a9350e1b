# SPDX-License-Identifier: Apache-2.0
"""Frames between a program and its daemon, and the socket that carries them; docs/ATTACH-PROTOCOL.md has the table."""
from __future__ import annotations

import array
import collections
import dataclasses
import enum
import glob
import math
import os
import socket
import struct
from typing import Iterator, Optional, Sequence, SupportsFloat

from .errors import Error, NoDaemon

MAGIC, VERSION = 0x41504753, 1
LAYOUT = struct.Struct("<IHHIiQqqQQddddIIIIQddd376s")
TEXT_BYTES = 375  # of which a zero follows
_DESCRIPTOR = 4  # bytes of one
RUN = "/run/sgpd"  # where daemons have their sockets

DIVERGED, CONFIG, MODEL, STATE = -1017, -1002, -1010, -1015  # codes of sgp/status.h


class Type(enum.IntEnum):
    HELLO = 1
    WELCOME = 2
    REFUSED = 3
    TURN = 4
    DONE = 5
    STOP = 6
    FINISH = 7
    FINISHED = 8
    REPORT = 9
    ENOUGH = 10
    DETACH = 11
    EVALUATE = 12
    EVALUATED = 13
    PREDICT = 14
    PREDICTED = 15
    TELL = 16
    TOLD = 17
    KEEP = 18
    AWAITS = 19
    AWAITED = 20
    IDENTIFY = 21
    IDENTITY = 22
    PRIVACY = 23
    CLAIMED = 24


class Flag(enum.IntFlag):
    NONE = 0
    RESUMED = 1
    EXCHANGED = 2
    JUMPED = 4
    SKIPPED = 8
    ASSIGNED = 16
    DISAGREES = 32
    EVALUATES = 64
    PREDICTS = 128
    SAME_UPDATES = 256
    FRESH = 512
    OVER = 1024
    OVERFLOWED = 2048
    FIRST = 4096
    RENEWS = 8192


_TYPES = {kind.value: kind for kind in Type}
_FLAGS = sum(Flag)  # that this version knows


class Closed(Exception):
    """The other side is gone."""


@dataclasses.dataclass
class Frame:
    """One frame, in the order of its bytes. What a type does not name is zero."""

    type: Type
    flags: Flag = Flag.NONE
    code: int = 0
    turn: int = 0
    round: int = 0
    rounds: int = 0
    parameters: int = 0
    rows: int = 0
    loss: float = 0.0
    epoch: float = 0.0
    learning_rate: float = 0.0
    weight: float = 0.0
    index: int = 0
    size: int = 0
    local_steps: int = 0
    columns: int = 0
    seed: int = 0
    test_loss: float = 0.0
    test_accuracy: float = 0.0
    distance: float = 0.0
    text: str = ""

    def pack(self) -> bytes:
        """The frame as 512 bytes; a text that is too long is cut between two characters."""
        text = self.text.encode("utf-8", "replace")[:TEXT_BYTES].decode("utf-8", "ignore").encode()
        return LAYOUT.pack(MAGIC, VERSION, self.type, self.flags, self.code, self.turn, self.round, self.rounds,
                           self.parameters, self.rows, self.loss, self.epoch, self.learning_rate, self.weight,
                           self.index, self.size, self.local_steps, self.columns, self.seed, self.test_loss,
                           self.test_accuracy, self.distance, text)

    @classmethod
    def unpack(cls, data: bytes) -> Frame:
        """The frame in 512 bytes; raises Error if they are none of this version."""
        magic, version, kind, flags, *numbers, text = LAYOUT.unpack(data)
        text, zero, _ = text.partition(b"\0")
        if magic != MAGIC or version != VERSION or kind not in _TYPES or not zero:
            raise Error(f"the daemon sent what version {VERSION} of the protocol does not know; "
                        "are sgpd and the package sgp of one release?")
        return cls(*[_TYPES[kind], Flag(flags & _FLAGS), *numbers, text.decode("utf-8", "replace")])


class Connection:
    """A socket to a daemon. A signal that interrupts a wait (Ctrl-C) loses nothing: what had come lies in the buffer,
    and the next wait finds it there."""

    def __init__(self, path: str, timeout: Optional[float]) -> None:
        """Connect; raises OSError as connect(2) does."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._buffer = bytearray(LAYOUT.size + 1)  # one more, so that a longer frame is seen to be one
        self._descriptors = array.array("i")  # that came with the frame
        try:
            self._socket.settimeout(timeout)
            self._socket.connect(path)
        except BaseException:
            self._socket.close()
            raise

    def _set_timeout(self, timeout: Optional[float]) -> None:
        if self._socket.gettimeout() != timeout:  # settimeout() is a system call, and gettimeout() is none
            self._socket.settimeout(timeout)

    def send(self, frame: Frame, descriptors: Sequence[int] = ()) -> None:
        """Send one frame, with descriptors. Raises Closed."""
        try:
            self._set_timeout(None)
            if descriptors:
                socket.send_fds(self._socket, [frame.pack()], list(descriptors))
            else:
                self._socket.send(frame.pack())
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed from error

    def post(self, outbox: Iterator[bytes]) -> None:
        """Send what an iterator over a list still has. It draws and sends in one call, during which no handler of a
        signal runs: whatever is interrupted, each frame is sent once. Raises Closed."""
        try:
            self._set_timeout(None)
            collections.deque(map(self._socket.send, outbox), maxlen=0)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed from error

    def receive(self, timeout: Optional[float]) -> Frame:
        """Wait for a frame, at most `timeout` seconds (None: for ever). The same is received again until done_with().
        Raises Closed, TimeoutError, or Error for bytes that are no frame."""
        if self._buffer[0] == 0:  # no frame begins so
            try:
                self._set_timeout(timeout)
                count, control, _, _ = self._socket.recvmsg_into([self._buffer], socket.CMSG_LEN(_DESCRIPTOR))
            except socket.timeout:
                raise TimeoutError("the daemon did not answer in time") from None
            except ConnectionResetError as error:
                raise Closed from error
            if count == 0:
                raise Closed
            for level, kind, data in control:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    self._descriptors.frombytes(data[:len(data) // _DESCRIPTOR * _DESCRIPTOR])
            if count != LAYOUT.size:
                self._buffer[0] = 255
        return Frame.unpack(bytes(self._buffer[:LAYOUT.size]))

    @property
    def descriptor(self) -> Optional[int]:
        """What came with the frame last received; it is closed with done_with()."""
        return self._descriptors[0] if self._descriptors else None

    def done_with(self) -> None:
        """The frame last received has been taken to heart."""
        while self._descriptors:
            os.close(self._descriptors.pop())
        self._buffer[:] = bytes(len(self._buffer))

    def close(self) -> None:
        self.done_with()
        self._socket.close()


def only_socket(file: str) -> str:
    """The socket of the only node of this machine. Raises NoDaemon, Error."""
    paths = sorted(glob.glob(f"{RUN}/*/{file}"))
    if len(paths) == 1:
        return paths[0]
    if not paths:
        raise NoDaemon(f"no node is named, and there is no {RUN}/NAME/{file}; start the script with sgpctl launch, or "
                       "start sgpd, or give a name or a socket's path, or set $SGP_SOCKET")
    names = ", ".join(os.path.basename(os.path.dirname(path)) for path in paths)
    raise Error(f"several nodes are here ({names}); name one of them, or set $SGP_SOCKET")


def socket_of(name: Optional[str], file: str = "attach.sock") -> str:
    """The path of a daemon's socket: of its name, a path as it is, or by $SGP_SOCKET (which names attach.sock, or is "none", for
    no daemon at all). If nothing names it, that of the only node of this machine. Raises NoDaemon if there is none, and Error if there are several, or if
    the path is longer than a Unix socket's may be."""
    if name is None and os.environ.get("SGP_SOCKET") == "none":
        raise NoDaemon("$SGP_SOCKET is none; start the script without it, or attach with required=False to train alone")
    name = name if name is not None else os.environ.get("SGP_SOCKET", "")
    if not name:
        name = only_socket(file)
    path = name if "/" in name else f"{RUN}/{name}/{file}"
    if name.endswith(".owner") and "/" not in name and not os.path.exists(path):
        path = f"{RUN}/{name.removesuffix('.owner')}/{file}.owner"  # beside a node that trains
    if len(os.fsencode(path)) > 107:
        raise Error(f"the path of a socket has at most 107 bytes: {path}")
    return path


def real(value: SupportsFloat) -> float:
    """The value of a number, or of a tensor that has one; it may require a gradient."""
    detach = getattr(value, "detach", None)
    return float(value if detach is None else detach())


def number(value: Optional[SupportsFloat]) -> float:
    """A figure as it travels: NaN is "not known"."""
    return math.nan if value is None else real(value)
