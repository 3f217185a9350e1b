# SPDX-License-Identifier: Apache-2.0
"""A neighbour made by hand: it speaks the protocol of docs/PROTOCOL.md, and lies where a test wants.

Its encoder shares no line with lib/wire, so that the page and the code are held to each other.
"""
import ctypes
import ctypes.util
import select
import socket
import struct

MAGIC = b"\x9dSGP"
HELLO, WELCOME, BEAT, CREDIT, SHARE, ACK, GOODBYE, ESTIMATE, CHUNK = 1, 2, 3, 4, 5, 6, 7, 9, 255
BEQUEATH, INQUIRE, ANSWER, CALL, STATEMENT, FACT, LAYOUT, BULLETIN, PULL, SUMMARY, ROW = 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20
JOIN, JOINED = 21, 22
PRINT = "iiiiiiriii" # of a fingerprint: t text, i integer, b boolean, r float64
FIELDS = {HELLO: "ttii" + PRINT + "ii", WELCOME: "tii" + PRINT + "iiiiib", BEAT: "ibb" + 16 * "r", CREDIT: "i", SHARE: "iirriiibririii", ACK: "ii",
          ESTIMATE: "iriii", BEQUEATH: "ititiir", ANSWER: "bii", FACT: "iiiitt", LAYOUT: "iit",
          BULLETIN: "itiiiit", PULL: "ttiiii", SUMMARY: "b" + 48 * "i", ROW: "tittti", JOIN: "tttiti", JOINED: "iiiit"} # of a type's own
ZEROS = {"t": "", "i": 0, "b": False, "r": 0.0}
PULSE = 6 # fields of it, in front
TRAINING, PAUSED = 2, 5

_xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
_xxhash.XXH3_64bits_withSeed.restype = ctypes.c_uint64
_xxhash.XXH3_64bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]


def checksum(data, seed=0):
    return _xxhash.XXH3_64bits_withSeed(data, len(data), seed)


def pack(values):
    """A msgpack array of scalars."""
    out = bytes([0x90 | len(values)]) if len(values) < 16 else b"\xdc" + struct.pack(">H", len(values))
    for v in values:
        if v is None:
            out += b"\xc0"
        elif isinstance(v, bool):
            out += b"\xc3" if v else b"\xc2"
        elif isinstance(v, int):
            out += b"\xcf" + struct.pack(">Q", v)
        elif isinstance(v, float):
            out += b"\xcb" + struct.pack(">d", v)
        else:
            text = v.encode()
            out += (b"\xd9" + bytes([len(text)]) if len(text) < 256 else b"\xda" + struct.pack(">H", len(text))) + text
    return out


def unpack(data):
    """The scalars of a msgpack array."""
    values, at = [], 0

    def take(form):
        nonlocal at
        [value] = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
        return value

    first = take(">B")
    count = first & 0x0F if first & 0xF0 == 0x90 else take(">H")
    for _ in range(count):
        tag = take(">B")
        if tag < 0x80:
            values.append(tag)
        elif tag == 0xC0:
            values.append(None)
        elif tag in (0xC2, 0xC3):
            values.append(tag == 0xC3)
        elif tag == 0xCB:
            values.append(take(">d"))
        elif 0xCC <= tag <= 0xCF:
            values.append(take((">B", ">H", ">I", ">Q")[tag - 0xCC]))
        else:
            size = take(">B") if tag == 0xD9 else take(">H") if tag == 0xDA else tag & 0x1F
            values.append(data[at:at + size].decode())
            at += size
    return values


def meant(kind, body):
    """The fields behind the pulse; an array may end where only zeros would follow."""
    fields = unpack(body)[PULSE:]
    return fields + [ZEROS[form] for form in FIELDS.get(kind, "")[len(fields):]]


def frame(kind, body=b"", payload=b"", version=3, announced=None):
    """`announced`: what the checksum is of, in the place of the body or payload that follows."""
    follows = body + payload if announced is None else announced
    header = MAGIC + struct.pack("<HHIIQI", version, kind, len(body), len(payload), 0,
                                 checksum(follows) & 0xFFFFFFFF)
    return header + struct.pack("<I", checksum(header) & 0xFFFFFFFF) + body + payload


class Closed(Exception):
    pass


class Peer:
    """One connection to a daemon's gossip port, or one accepted from it."""

    def __init__(self, port=None, sock=None):
        self.socket = sock or socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.settimeout(30)
        name = self.socket.getsockname()
        self.port = name[1] if name else None  # of a pair
        self.state = TRAINING # this and what follows are its pulse
        self.computing = False
        self.round = 0
        self.next_round = None
        self.ends = 10 ** 6
        self.stop = None
        self.heard = None # the pulse of the other side

    def close(self):
        self.socket.close()

    def send_bytes(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Closed() from error

    def send(self, kind, *fields):
        pulse = [self.state, self.computing, self.round, self.next_round, self.ends, self.stop]
        self.send_bytes(frame(kind, pack(pulse + list(fields))))

    def chunk(self, payload, announced=None):
        self.send_bytes(frame(CHUNK, payload=payload, announced=announced))

    def take(self, count):
        data = b""
        while len(data) < count:
            try:
                part = self.socket.recv(count - len(data))
            except ConnectionError as error:
                raise Closed() from error
            if not part:
                raise Closed()
            data += part
        return data

    def receive(self, *kinds):
        """The next frame of one of these kinds; others are skipped. Returns the kind and the fields
        behind the pulse, or the payload of a chunk; the pulse is kept."""
        while True:
            kind, data, payload = self.take_frame()
            if kind != CHUNK:
                self.heard = unpack(data)[:PULSE]
            if kind in kinds:
                return kind, payload if kind == CHUNK else meant(kind, data)

    def take_frame(self):
        header = self.take(32)
        kind, body_bytes, payload_bytes = struct.unpack_from("<HII", header, 6)
        body, payload = self.take(body_bytes), self.take(payload_bytes)
        [announced] = struct.unpack_from("<I", header, 24)
        assert announced == checksum(body + payload) & 0xFFFFFFFF
        return kind, body, payload

    def skip(self):
        """Read all frames that have come."""
        while select.select([self.socket], [], [], 0)[0]:
            self.take_frame()

    def until_closed(self):
        """Read everything; what kinds of frames came, and the fields of the last one."""
        kinds, last = [], []
        try:
            while True:
                kind, data, _ = self.take_frame()
                kinds.append(kind)
                last = meant(kind, data) if kind != CHUNK else []
        except Closed:
            return kinds, last

    def hello(self, source, target, parameters, fingerprint, incarnation=77):
        self.send(HELLO, source, target, incarnation, parameters, *fingerprint)


def dialled(listener):
    """The daemon's own dial: (peer, parameters, fingerprint) as its HELLO says."""
    sock, _ = listener.accept()
    peer = Peer(sock=sock)
    _, fields = peer.receive(HELLO)
    return peer, fields[3], fields[4:12]


def overhear(listener):
    """What the daemon says of itself when it dials: (parameters, fingerprint)."""
    peer, parameters, fingerprint = dialled(listener)
    peer.close()
    return parameters, fingerprint
