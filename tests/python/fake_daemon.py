# SPDX-License-Identifier: Apache-2.0
"""A daemon that is none: it speaks docs/ATTACH-PROTOCOL.md in a thread, folds what a program did, and does on demand what a
daemon may do at the worst moment. Its codec is its own, so that a mistake of the package is not made twice."""
import contextlib
import errno
import json
import math
import mmap
import os
import socket
import struct
import tempfile
import threading

import numpy

LAYOUT = struct.Struct("<IHHIiQqqQQddddIIIIQddd376s")
NAMES = ("magic version type flags code turn round rounds parameters rows loss epoch learning_rate weight index size "
         "local_steps columns seed test_loss test_accuracy distance text").split()
HELLO, WELCOME, REFUSED, TURN, DONE, STOP, FINISH, FINISHED, REPORT, ENOUGH, DETACH, \
    EVALUATE, EVALUATED, PREDICT, PREDICTED, TELL, TOLD, KEEP, AWAITS, AWAITED, IDENTIFY, IDENTITY, PRIVACY, CLAIMED = range(1, 25)
RESUMED, EXCHANGED, JUMPED, SKIPPED, ASSIGNED, DISAGREES, EVALUATES, PREDICTS = (1 << bit for bit in range(8))
RENEWS = 1 << 13
SEALS = 1 | 2 | 4  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW
DIVERGED = -1017


def pack(type, **fields):
    values = dict.fromkeys(NAMES, 0)
    values.update({"magic": 0x41504753, "version": 1, "type": type, "text": "", **fields})
    values["text"] = values["text"].encode()
    return LAYOUT.pack(*(values[name] for name in NAMES))


class Program:
    """What attached: its memory, mapped, and what its header says."""

    def __init__(self, descriptor):
        import fcntl
        assert fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & 7 == SEALS, "the memory is not sealed"
        size = os.fstat(descriptor).st_size
        self.map = mmap.mmap(descriptor, size)
        os.close(descriptor)
        header = int.from_bytes(self.map[:8], "little")
        assert (8 + header) % 4096 == 0, "the values do not begin with a page"
        self.layout = json.loads(self.map[8:8 + header])
        self.tags = self.layout.pop("__metadata__")
        assert next(iter(self.tags)) == "xxh3" and self.tags["xxh3"] == "0" * 16
        self.z = numpy.frombuffer(self.map, "<f4", offset=8 + header)
        end = 0
        for name, tensor in self.layout.items():
            assert tensor["dtype"] == "F32" and tensor["data_offsets"][0] == end, name
            end = tensor["data_offsets"][1]
            assert end - tensor["data_offsets"][0] == 4 * math.prod(tensor["shape"])
        assert end == 4 * len(self.z), "the tensors do not tile the values"
        self.values_from = int(self.tags["values_from"])

    def tensor_at(self, place):
        return next(name for name, t in self.layout.items() if t["data_offsets"][1] > 4 * place)


class FakeDaemon:
    """Listens at `path`. `weight` is w, `rounds` what it trains, `begin` the first node's parameters (else the
    program's own), `drift` is added to x in every round: what the neighbours gave. `acts` maps a count of DONEs, over
    the daemon's life from 1, to a function of (daemon, connection, frame) that is called in the place of an answer.
    `frames` is everything that came.
    `claimed` gives the fields of the answer to a claim of privacy.
    `decide` gives the lines of all words, of the program's; None: the fleet has decided before.
    With `open_end` it leaves the rounds to the program. `questions` are arrays of rows to predict, or None to evaluate:
    they are asked, one after the other, in the place of the next turn or FINISHED; `answers` are the frames and outputs
    that came."""

    def __init__(self, path=None, weight=1.0, rounds=-1, begin=None, drift=0.0, local_steps=1, refuse=None, acts=None,
                 index=0, size=1, final=None, open_end=False, questions=(), decide=None, claimed=None):
        self.folder = tempfile.TemporaryDirectory(prefix="sgp-")
        self.path = path or os.path.join(self.folder.name, "attach.sock")
        self.weight, self.rounds, self.begin, self.drift = weight, rounds, begin, drift
        self.local_steps, self.refuse, self.acts = local_steps, refuse, acts or {}
        self.index, self.size, self.final, self.open_end = index, size, final, open_end
        self.questions, self.answers, self.asked, self.then = list(questions), [], 0, None
        self.decide = decide or (lambda word: [f"n{index} {word}"])
        self.claimed = claimed or (lambda text: {})
        self.x = None
        self.round = self.turn = self.dones = 0
        self.frames, self.program, self.failure = [], None, None
        self.enough = False
        self.ready = threading.Event()  # cleared, it holds every turn back
        self.ready.set()
        self.finishing = threading.Event()  # cleared, it holds FINISHED back
        self.finishing.set()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.listener.bind(self.path)
        self.listener.listen(4)
        self.connection = None
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self):
        """As a daemon that ends: nobody listens, and the program's connection breaks."""
        self.listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        if self.connection is not None:
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        for event in (self.ready, self.finishing):
            event.set()
        self.thread.join(10)
        if self.failure is not None:
            raise self.failure

    __enter__ = lambda self: self
    __exit__ = lambda self, *_: self.close()

    def of(self, type):
        """The frames of a type that came."""
        return [frame for frame in self.frames if frame["type"] == type]

    # ---- the thread

    def serve(self):
        while True:
            try:
                self.listener.settimeout(0.1)
                self.connection = self.listener.accept()[0]
            except socket.timeout:
                continue
            except OSError:
                return
            self.connection.settimeout(None)
            try:
                with self.connection:
                    self.talk()
            except (ConnectionError, BrokenPipeError, OSError):
                pass  # the program has gone
            except Exception as failure:  # told by close()
                self.failure = failure
                return

    def talk(self):
        while True:
            data, descriptors, _, _ = socket.recv_fds(self.connection, 4096, 1)
            if not data:
                return
            assert len(data) == 512, f"a frame of {len(data)} bytes"
            frame = dict(zip(NAMES, LAYOUT.unpack(data)))
            frame["text"] = frame["text"].split(b"\0")[0].decode()
            assert frame["magic"] == 0x41504753 and frame["version"] == 1
            self.frames.append(frame)
            if frame["type"] == HELLO:
                if not self.greet(frame, descriptors):
                    return
            elif frame["type"] == DONE:
                if not self.fold(frame):
                    return
            elif frame["type"] == FINISH:
                self.finish()
            elif frame["type"] in (EVALUATED, PREDICTED):
                self.hear(frame, descriptors)
            elif frame["type"] == ENOUGH:
                self.enough = True
            elif frame["type"] == DETACH:
                return
            elif frame["type"] == IDENTIFY:
                self.say(IDENTITY, index=self.index, size=self.size, rounds=self.rounds, local_steps=self.local_steps, seed=7,
                         text=f"n{self.index}")
                return
            elif frame["type"] == TELL:
                lines = self.decide(frame["text"])
                told = {"code": -errno.EALREADY} if lines is None else {"size": len(lines), "text": "\n".join(lines) + "\n"}
                self.say(TOLD, **told)
            elif frame["type"] == AWAITS:
                self.say(AWAITED, text="n1")
            elif frame["type"] == PRIVACY:
                self.say(CLAIMED, turn=frame["turn"], **self.claimed(frame["text"]))
            else:
                assert frame["type"] in (REPORT, KEEP), frame

    def say(self, type, **fields):
        self.connection.send(pack(type, **fields))

    def ask_first(self, then):
        """Ask the next question and do `then` when it is answered; False: there is none."""
        if not self.questions:
            return False
        rows, self.then = self.questions[0], then
        self.program.z[:] = self.x / numpy.float32(self.weight)
        self.asked += 1
        if rows is None:
            self.say(EVALUATE, turn=self.asked, round=self.round)
            return True
        with tempfile.TemporaryFile() as file:
            file.write(numpy.asarray(rows, "<f4").tobytes())
            file.flush()
            socket.send_fds(self.connection, [pack(PREDICT, turn=self.asked, rows=len(rows), columns=len(rows[0]))],
                            [file.fileno()])
        return True

    def hear(self, frame, descriptors):
        """An answer, of which one that comes twice is ignored."""
        outputs = None
        for descriptor in descriptors:
            outputs = numpy.frombuffer(os.pread(descriptor, 1 << 20, 0), "<f4").reshape(frame["rows"], frame["columns"])
            os.close(descriptor)
        if frame["turn"] == self.asked and self.then is not None:
            self.answers.append((frame, outputs))
            self.questions.pop(0)
            then, self.then = self.then, None
            then()

    def greet(self, frame, descriptors):
        assert len(descriptors) == 1, "HELLO comes with one descriptor"
        if self.refuse is not None:
            self.say(REFUSED, code=self.refuse[0], text=self.refuse[1])
            return False
        self.program = Program(descriptors[0])
        assert frame["parameters"] == len(self.program.z)
        if frame["rounds"] >= 0 and not self.open_end:
            self.rounds = frame["rounds"]
        resumed = self.x is not None
        if not resumed:
            first = self.program.z if self.begin is None else numpy.full_like(self.program.z, self.begin)
            self.x = (self.weight * first).astype(numpy.float32)
        self.say(WELCOME, flags=RESUMED if resumed else 0, index=self.index, size=self.size, round=self.round,
                 rounds=self.rounds, local_steps=self.local_steps, seed=7, text=f"n{self.index}")
        self.turn = 0
        self.hand_over()
        return True

    def hand_over(self, **fields):
        """z, and the turn to go with it; or the end."""
        self.ready.wait()
        if self.ask_first(lambda: self.hand_over(**fields)):
            return
        self.program.z[:] = self.x / numpy.float32(self.weight)
        self.z_old = self.program.z.copy()
        if self.enough or 0 <= self.rounds <= self.round:
            self.say(STOP, **fields)
            return
        self.turn += 1
        self.say(TURN, turn=self.turn, round=self.round, rounds=self.rounds, weight=self.weight, index=self.index,
                 size=self.size, **fields)

    def fold(self, frame):
        """x += z_new - z_old of updates, w times that of values; the round; the next turn. False: hang up."""
        self.dones += 1
        if self.dones in self.acts:
            return self.acts[self.dones](self, frame)
        assert frame["turn"] == self.turn, f"turn {frame['turn']} is not out, {self.turn} is"
        z = self.program.z
        if not numpy.isfinite(z).all():
            name = self.program.tensor_at(int(numpy.argmin(numpy.isfinite(z))))
            z[:] = self.z_old
            self.say(TURN, code=DIVERGED, text=name, round=self.round, rounds=self.rounds, weight=self.weight)
            self.hand_over()  # as if resumed at once
            return True
        split = 0 if frame["flags"] & ASSIGNED else self.program.values_from
        change = z - self.z_old
        change[split:] *= self.weight
        self.x += change
        exchanged = self.dones % self.local_steps == 0
        if exchanged:
            self.round += 1
            self.x += numpy.float32(self.drift)
        self.hand_over(flags=EXCHANGED if exchanged else 0)
        return True

    def finish(self):
        self.finishing.wait()
        if self.ask_first(self.finish):
            return
        self.program.z[:] = self.x / numpy.float32(self.weight) if self.final is None else self.final
        self.say(FINISHED, round=self.round, distance=0.25, flags=DISAGREES if self.final is not None else 0)


# ---- acts

def hang_up(daemon, frame):
    """In mid-turn, as a daemon that is killed."""
    return False


def garbage(daemon, frame):
    daemon.connection.send(b"\xa5" * 512)
    return True


def short(daemon, frame):
    daemon.connection.send(pack(TURN, turn=99)[:100])
    return True


def long(daemon, frame):
    daemon.connection.send(pack(TURN, turn=99) + b"x" * 100)
    return True


def nonsense(daemon, frame):
    """A frame of the protocol that does not belong here."""
    daemon.say(WELCOME, text="n0")
    return True


def take_back(daemon, frame):
    """The turn had been cancelled: its step does not count."""
    daemon.hand_over(flags=SKIPPED)
    return True


def one_more(daemon, frame):
    """The topology was reloaded, and names one node more."""
    daemon.size += 1
    daemon.hand_over()
    return True


def same_updates(daemon, frame):
    daemon.hand_over(flags=256, text="n1, n2")
    return True


def jump(daemon, frame):
    """The parameters become another's."""
    daemon.x[:] = 5 * daemon.weight
    daemon.round += 1
    daemon.hand_over(flags=JUMPED | EXCHANGED)
    return True
