# SPDX-License-Identifier: Apache-2.0
"""A program that attaches, written from docs/ATTACH-PROTOCOL.md alone: it uses neither package sgp nor libsgp, and may lie."""
import array
import fcntl
import json
import mmap
import os
import socket
import struct
import time

FRAME = struct.Struct("<IHHIiQqqQQddddIIIIQddd376s")
FIELDS = ("magic version type flags code turn round rounds parameters rows loss epoch learning_rate weight index size "
          "local_steps columns seed test_loss test_accuracy distance text").split()
HELLO, WELCOME, REFUSED, TURN, DONE, STOP, FINISH, FINISHED, REPORT, ENOUGH, DETACH, EVALUATE, EVALUATED, PREDICT, \
    PREDICTED = range(1, 16)
RESUMED, EXCHANGED, JUMPED, SKIPPED, ASSIGNED, DISAGREES, EVALUATES, PREDICTS = (1 << bit for bit in range(8))
RENEWS = 1 << 13
F_SEAL_SHRINK, F_SEAL_GROW = fcntl.F_SEAL_SHRINK, fcntl.F_SEAL_GROW
SEALS = F_SEAL_SHRINK | F_SEAL_GROW
PATIENCE = 60.0
NAN = float("nan")


def frame(kind, **fields):
    values = dict.fromkeys(FIELDS, 0)
    values.update(magic=0x41504753, version=1, type=kind, text=b"", loss=NAN, epoch=NAN, learning_rate=NAN,
                  test_loss=NAN, test_accuracy=NAN)
    values.update(fields)
    return FRAME.pack(*(values[name] for name in FIELDS))


def header(tensors, values_from=None, tags=None, padding=4096):
    """The head of a safetensors file of these (name, shape), and how many values follow."""
    count, entries = 0, {}
    for name, shape in tensors:
        size = 1
        for length in shape:
            size *= length
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [4 * count, 4 * (count + size)]}
        count += size
    metadata = {"xxh3": "0" * 16, "values_from": str(count if values_from is None else values_from)}
    metadata.update(tags or {})
    text = json.dumps({"__metadata__": metadata, **entries}).encode()
    text += b" " * (-(len(text) + 8) % padding)
    return struct.pack("<Q", len(text)) + text, count


def memory(head, values, seals=SEALS):
    descriptor = os.memfd_create("model", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(descriptor, head + array.array("f", values).tobytes())
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


class Program:
    """Attached to the socket at `path` with these values, unless it is refused: then `.refused` says why. The memory has
    so many values `more` than its header says."""

    def __init__(self, path, values, tensors=None, values_from=None, rounds=-1, tags=None, seals=SEALS, patience=PATIENCE,
                 flags=0, more=0, padding=4096, parameters=None):
        head, count = header(tensors or [("w", [len(values)])], values_from, tags, padding)
        assert count == len(values)
        self.offset, self.count = len(head), count
        self.descriptor = memory(head, array.array("f", values) + array.array("f", [0] * more), seals)
        self.map = mmap.mmap(self.descriptor, 0)
        self.socket = self.connect(path, patience)
        self.send(HELLO, descriptors=[self.descriptor], flags=flags, parameters=count if parameters is None else parameters, rounds=rounds, text=b"raw")
        self.welcome = self.receive()
        self.refused = self.welcome["text"] if self.welcome and self.welcome["type"] == REFUSED else None
        self.turn = None

    @staticmethod
    def connect(path, patience=PATIENCE):
        end = time.monotonic() + patience
        while True:
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.settimeout(PATIENCE)
            try:
                s.connect(path)
                return s
            except OSError:
                s.close()
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    @property
    def z(self):
        return list(struct.unpack_from("<%df" % self.count, self.map, self.offset))

    @z.setter
    def z(self, values):
        struct.pack_into("<%df" % self.count, self.map, self.offset, *values)

    def send(self, kind, descriptors=(), **fields):
        socket.send_fds(self.socket, [frame(kind, **fields)], list(descriptors))

    def receive(self, timeout=PATIENCE):
        """The next frame as a dictionary; None: the daemon hung up."""
        self.socket.settimeout(timeout)
        try:
            data, descriptors, _, _ = socket.recv_fds(self.socket, 1024, 1)
        except ConnectionResetError:
            return None
        if not data:
            return None
        got = dict(zip(FIELDS, FRAME.unpack(data)))
        got["text"] = got["text"].split(b"\0")[0].decode()
        for descriptor in descriptors:  # of PREDICT
            count = got["rows"] * got["columns"]
            assert os.fstat(descriptor).st_size == 4 * count
            got["values"] = list(struct.unpack("<%df" % count, os.pread(descriptor, 4 * count, 0)))
            os.close(descriptor)
        return got

    def predicted(self, question, rows, columns, values, **fields):
        """Answer a PREDICT so."""
        descriptor = memory(b"", values, 0)
        self.send(PREDICTED, descriptors=[descriptor], turn=question["turn"], rows=rows, columns=columns, **fields)
        os.close(descriptor)

    def take(self, timeout=PATIENCE):
        """The next turn, or what comes in its place."""
        self.turn = self.receive(timeout)
        return self.turn

    def done(self, **fields):
        self.send(DONE, turn=self.turn["turn"], **dict({"rows": 1, "loss": 1.0}, **fields))

    def step(self, change, **fields):
        """Change z, end the turn, and take the next."""
        self.z = change(self.z)
        self.done(**fields)
        return self.take()

    def finish(self):
        self.send(FINISH)
        while True:
            got = self.receive()
            if got is None or got["type"] == FINISHED:
                return got

    def close(self):
        self.socket.close()
        self.map.close()
        os.close(self.descriptor)
