#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A hostile member with a valid key, and a hostile client of the control socket, for as long as it is told.

Fleets follow one another. In each n0 and n1 are daemons, and n2 is played here: it takes part as docs/PROTOCOL.md says, and lies in one
way. At the same time clients do their worst at the control sockets. Then the attack ends. Where nodes average, a daemon takes n2's place. All
daemons must finish and agree. The script shares no line with lib/wire, lib/tls, lib/attach or the package sgp."""
import argparse
import collections
import http.client
import multiprocessing
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import fleet
import peer
import raw_program
import tls
from fleet import Fleet
from peer import Closed, Peer
from tls import TlsFleet
from tls_peer import CipheredPeer, Refused

MEMBERS, SLACK = 3, 2  # docs/SECURITY.md: members and 2 are the most that weights add up to
CIRCLE = [[(a, (a + step) % 3) for a in range(3)] for step in (1, 2)]  # a file whose cycle has two rounds
CYCLES_MOST = 2 * 1000  # docs/rules/agree.md: of mixing after the end, whatever a neighbour names
AGREED = 1e-3  # of the largest value: what models may differ by
COMPLETE = [[(a, b) for a in range(3) for b in range(3) if a != b]]
LARGE = 1 << 33  # parameters of a model that no machine here holds several times
POLLERS, SILENT = 4, 340
STATUS_SECONDS = 10  # root's status is answered by then
FAR = 60  # times the rounds of the fleet: from 64 on nobody greets
INCARNATION = 77
TOPOLOGY = 5  # of a fingerprint: the digest of the file
ATTACHED = {"model.kind": "attached", "model.layers": None, "data.train": None, "data.label": None, "data.classes": None,
            "data.holdout": None, "train.epochs": None, "train.batch": None, "optimizer.learning_rate": None}


class Gossip(Fleet):
    """Three that average; `epochs` lets the attack begin before they are done, or `start` makes them wait for n2. Coded models are of 7 blocks
    and one value more."""

    def __init__(self, epochs, phases, start, coded):
        options = {"network.compression": "int8", "model.layers": "dense 199 relu, dense 2"} if coded else {}
        super().__init__(3, phases=phases, options={"train.epochs": str(epochs), "train.start": start, **options})


class Ciphered(TlsFleet):
    """A token among three. The links are plain until n2 has overheard what the others say of the model; then tls=require."""

    def __init__(self):
        super().__init__(3, tls="off", phases=COMPLETE, options={"train.epochs": "1200", "train.algorithm": "cyclic"})

    def says(self):
        return super().says() + "  token=dynamic;\n"

    def says_of(self, index):
        return super().says_of(index) + (", owns=all" if index == 0 else "")


def connect(f, target):
    """A connection to that node's port, as n2."""
    return CipheredPeer(f.ports[target], key=f.key_path(2)) if isinstance(f, Ciphered) else Peer(f.ports[target])


class Attack:
    """Threads that attack until they are told to end; what they did is counted by name."""

    def __init__(self, f, counts, flaws):
        self.f, self.counts, self.flaws = f, counts, flaws
        self.over = threading.Event()
        self.threads = []

    def run(self, name, act, *arguments):
        """`act` again and again: most of what it does ends its connection."""
        def repeat():
            while not self.over.is_set():
                try:
                    act(*arguments)
                    self.counts[name] += 1
                except (Closed, Refused, OSError, http.client.HTTPException, ValueError):
                    self.over.wait(0.05)
                except AssertionError as error:
                    self.flaws.append("%s: %s" % (name, error))
        self.threads.append(threading.Thread(target=repeat, daemon=True))
        self.threads[-1].start()

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(fleet.PATIENCE)


# ---- blocks (docs/PROTOCOL.md, Forms) ----

BLOCK, BLOCKS = 256, 2  # values of a block; the form


def word(kind, scale=0.0):
    """The scale loses its low byte."""
    return struct.pack("<I", struct.unpack("<I", struct.pack("<f", scale))[0] & 0xFFFFFF00 | kind)


def stream(integers, bits):
    whole = sum((k & (1 << bits) - 1) << i * bits for i, k in enumerate(integers))
    return whole.to_bytes((len(integers) * bits + 7) // 8, "little")


def integers_of(values, bits):
    """A scale and integers, none of which is 0 unless all are."""
    most, levels = max(map(abs, values)), 2 ** (bits - 1) - 1
    [scale] = struct.unpack("<f", word(0, most / levels * 1.001 + 1e-30))
    return scale, [max(-levels, min(levels, round(value / scale))) or 1 for value in values]


def dense(values, bits):
    scale, integers = integers_of(values, bits)
    return word(bits, scale) + stream(integers, bits), [scale * k for k in integers]


def sparse(values, bits, bitmap):
    """Every third value; no shorter form is needed."""
    places = range(0, len(values), 3)
    scale, integers = integers_of([values[i] for i in places], bits)
    decoded = [0.0] * len(values)
    for place, k in zip(places, integers):
        decoded[place] = scale * k
    head = stream([int(i in places) for i in range(BLOCK)], 1) if bitmap else bytes([len(places), *places])
    return word((192 if bitmap else 128) + bits, scale) + head + stream(integers, bits), decoded


def sixteen(values, kind):
    if kind == 16:
        halves = struct.pack("<%de" % len(values), *(max(-65504.0, min(65504.0, value)) for value in values))
        return word(kind) + halves, list(struct.unpack("<%de" % len(values), halves))
    decoded = [struct.unpack("<f", b"\0\0" + struct.pack("<f", value)[2:])[0] for value in values]
    return word(kind) + b"".join(struct.pack("<f", value)[2:] for value in decoded), decoded


def quarters(values, bits):
    made = [integers_of(part, bits) if part else (0.0, []) for part in (values[at:at + 64] for at in range(0, BLOCK, 64))]
    words = word(64 + bits, made[0][0]) + b"".join(word(0, scale) for scale, _ in made[1:])
    return words + stream([k for _, part in made for k in part], bits), [scale * k for scale, part in made for k in part]


MAKERS = (lambda v: (word(0), [0.0] * len(v)), lambda v: dense(v, 8), lambda v: dense(v, 3), lambda v: sixteen(v, 16), lambda v: sixteen(v, 17),
          lambda v: quarters(v, 4), lambda v: sparse(v, 4, False), lambda v: sparse(v, 8, True))


def coded(values, turn):
    """The payload, and the values that it decodes to. The turn chooses the kinds of the blocks. A block that would be
    longer than one of fp16 is one of fp16."""
    payload, decoded = b"", []
    for at in range(0, len(values), BLOCK):
        part = values[at:at + BLOCK]
        block, back = MAKERS[(turn + at // BLOCK) % len(MAKERS)](part)
        if len(block) > 4 + 2 * len(part):
            block, back = sixteen(part, 16)
        payload += block + bytes(-len(block) % 4)
        decoded += back
    return payload, decoded


def decode(payload, count):
    """Of the kinds that a daemon with int8 sends."""
    values = []
    for at in range(0, count, BLOCK):
        size, kind = min(BLOCK, count - at), payload[0]
        [scale] = struct.unpack("<f", b"\0" + payload[1:4])
        bytes_ = {0: 0, 8: size, 16: 2 * size, 17: 2 * size}[kind]
        rest = payload[4:4 + bytes_]
        payload = payload[4 + (bytes_ + 3) // 4 * 4:]
        if kind == 17:
            values += [struct.unpack("<f", b"\0\0" + rest[2 * i:2 * i + 2])[0] for i in range(size)]
        else:
            values += {0: lambda: [0.0] * size, 8: lambda: [scale * k for k in struct.unpack("<%db" % size, rest)],
                       16: lambda: struct.unpack("<%de" % size, rest)}[kind]()
    return values


def malformed(count, turn):
    """A payload that breaks a rule of the form."""
    size = min(BLOCK, count)
    bits = stream([1] * size, 8)
    bits += bytes(-len(bits) % 4)
    rest = word(0) * ((count - 1) // BLOCK)
    noise = os.urandom(2 * size // 4 * 4)
    bad = [word(8, 1.0) + bits + rest + bytes(4), word(8, 1.0) + bits[:-4] + rest, word(8, 0.0) + bits + rest,
           word(8, float("inf")) + bits + rest, word(8, float("nan")) + bits + rest, word(8, -1.0) + bits + rest,
           word(8, 1e-38) + bits + rest, word(0, 1.0) + rest, word(16, 1.0) + noise[:2 * size] + rest,
           word(130, 1.0) + bytes([2, 5, 5, 0]) + rest, word(130, 1.0) + bytes(4) + rest, word(130, 1.0) + bytes([255] * 4) + rest,
           word(200, 1.0) + bytes(32) + rest, word(193, 1.0) + bytes([255] * 32) + bytes(4) + rest,
           word(66, 0.0) + b"\1\0\0\0" + bytes(8) + bits[:(size * 2 + 31) // 32 * 4] + rest,
           word(66, 0.0) + bytes(12) + b"\1" * ((size * 2 + 31) // 32 * 4) + rest]
    bad += [word(kind) + noise + rest for kind in (9, 15, 18, 63, 65, 73, 127, 137, 191, 201, 255)]
    return bad[turn % len(bad)]


def misstated(count, turn):
    """An announcement that breaks a rule: values, bytes, form, members that leave with it."""
    most = 4 * ((count + BLOCK - 1) // BLOCK) + 2 * (count + count % 2)
    bad = [(count, most + 4, BLOCKS, 0.0), (count, 4 * count, BLOCKS, 0.0), (count, 0, BLOCKS, 0.0), (count, most - 2, BLOCKS, 0.0), (count, most, 3, 0.0),
           (count, most, BLOCKS, 1.0), (1, 4, BLOCKS, 0.0), (1, 8, BLOCKS, 0.0), (2, 8, BLOCKS, 0.0), (3, 12, BLOCKS, 0.0), (count + 1, most, BLOCKS, 0.0),
           (count, most - 4, 1, 0.0), (count, 1 << 40, BLOCKS, 0.0)]
    return bad[turn % len(bad)]


# ---- the member ----

class Member:
    """n2, whose own account of its weight is right. It names `lie` times the weight of its shares, and an epoch so many ahead. With `beyond` it
    has another file, names an end of mixing so many rounds after that of training, and grants no credit for a round of mixing. With `blocks` its
    shares are coded, in every kind of block, and every second one is malformed. What it learns of the model at its first greeting it says itself."""

    def __init__(self, attack, lie=1.0, epochs_ahead=0, beyond=0, blocks=False):
        self.f, self.attack, self.lie, self.epochs, self.beyond = attack.f, attack, lie, epochs_ahead, beyond
        self.blocks, self.turn = blocks, 0
        self.lock = threading.Lock()
        self.weight, self.x, self.round = 1.0, None, 0
        self.accepted = collections.Counter()
        self.known = threading.Event()
        self.listener = socket.create_server((self.f.host(2), self.f.ports[2]))
        self.listener.settimeout(0.5)
        attack.run("sources accepted", self.accept)
        for target in (0, 1):
            attack.run("shares given", self.give, target)

    def learn(self, parameters, fingerprint, ends):
        with self.lock:
            self.parameters, self.fingerprint, self.ends = parameters, list(fingerprint), ends
            if self.beyond:
                self.fingerprint[TOPOLOGY] ^= 1
            self.x = self.x or [0.0] * parameters
        self.known.set()

    def accept(self):
        sock, _ = self.listener.accept()
        threading.Thread(target=self.take, args=(Peer(sock=sock),), daemon=True).start()

    def take(self, source):
        """As a target: a credit for each promise, and whatever comes is accepted."""
        try:
            _, fields = source.receive(peer.HELLO)
            name, credited = fields[0], None
            self.learn(fields[3], fields[4:12], source.heard[4])
            source.round, source.ends = self.round, self.ends
            source.send(peer.WELCOME, "n2", INCARNATION, self.accepted[name], *self.fingerprint, *([0, 0, 6] if self.blocks else []))
            while not self.attack.over.is_set():
                kind, share = source.receive(peer.BEAT, peer.SHARE)
                source.round = self.round
                if kind == peer.SHARE:
                    self.absorb(source, name, share)
                if source.heard[3] not in (None, credited) and not (self.beyond and source.heard[3] > self.ends):
                    credited = source.heard[3]
                    source.send(peer.CREDIT, credited)
        except (Closed, OSError):
            pass
        source.close()

    def absorb(self, source, name, share):
        payload = b""
        while len(payload) < share[6]:
            payload += source.receive(peer.CHUNK)[1]
        values = decode(payload, share[5]) if share[13] == BLOCKS else struct.unpack("<%df" % (len(payload) // 4), payload)
        self.attack.counts["coded shares taken"] += share[13] == BLOCKS
        with self.lock:
            self.weight += share[3]
            self.accepted[name] = share[0]
            for i, value in enumerate(values):
                self.x[share[4] + i] += share[2] * value
        source.send(peer.ACK, share[0], 1)

    def beat(self, target):
        if not self.epochs and not self.beyond:
            target.send(peer.BEAT)
            return
        sketch, mixes = [0.0] * 16, self.ends + self.beyond if self.beyond else 0
        target.send(peer.BEAT, mixes, False, False, *sketch, self.epochs, self.round if self.epochs else 0, self.fingerprint[TOPOLOGY])

    def give(self, index):
        """As a source: a third of what it has in each round."""
        if not self.known.wait(0.5):
            return
        target = connect(self.f, index)
        try:
            target.ends = self.ends
            target.hello("n2", "n%d" % index, self.parameters, self.fingerprint, INCARNATION)
            _, fields = target.receive(peer.WELCOME)
            number = fields[2]
            while not self.attack.over.is_set():
                target.round = target.next_round = max(target.round + 1, target.heard[2])
                self.round = max(self.round, target.round)
                self.beat(target)
                while target.receive(peer.CREDIT)[1] != [target.round]:
                    pass
                target.next_round = None
                number += 1
                self.share(target, number)
                self.attack.counts["shares given"] += 1
        finally:
            target.close()

    def share(self, target, number):
        count = self.parameters
        if self.blocks:
            self.turn += 1
            assert self.parameters % BLOCK == 1, self.parameters
            if self.turn % 2:
                self.break_form(target, number, self.turn // 2)
        with self.lock:
            given, decoded = self.weight / 3, list(self.x)
            payload = struct.pack("<%df" % count, *self.x)
            if self.blocks:
                payload, decoded = coded(self.x, self.turn // 2)
            self.weight -= given
            self.x = [value - back / 3 for value, back in zip(self.x, decoded)]
        form = [False, 0.0, 0, 0.0, 0, 0, BLOCKS] if self.blocks else []
        target.send(peer.SHARE, number, target.round, 1 / 3, given * self.lie, 0, count, len(payload), *form)
        target.chunk(payload)
        _, [_, reason] = target.receive(peer.ACK)
        if reason != 1:  # it returns
            with self.lock:
                self.weight += given
                self.x = [value + back / 3 for value, back in zip(self.x, decoded)]

    def break_form(self, target, number, turn):
        """This ends the connection: it raises Closed."""
        count, payload, form, bequest = self.parameters, malformed(self.parameters, turn), BLOCKS, 0.0
        size = len(payload)
        if turn % 3 == 2:
            count, size, form, bequest = misstated(count, turn // 3)
        target.send(peer.SHARE, number, target.round, 1 / 3, self.weight / 3, 0, count, size, False, bequest, 0, 0.0, 0, 0, form)
        self.attack.counts["announcements of a form misstated" if turn % 3 == 2 else "malformed payloads"] += 1
        target.chunk(payload)
        _, [_, reason] = target.receive(peer.ACK)
        raise AssertionError("turn %d, %d values, %d bytes of form %d: answered by %d: %s" % (turn, count, size, form, reason, payload.hex()))

    def close(self):
        self.listener.close()


def greet_as_another(f, member):
    """As n1 at n0, far ahead, and as n0 at n1; n1 and n0 are there themselves."""
    if not member.known.wait(0.5):
        return
    for target, name in ((0, "n1"), (1, "n0")):
        stranger = Peer(f.ports[target])
        try:
            stranger.round = stranger.ends = member.ends
            stranger.socket.settimeout(1)
            stranger.hello(name, "n%d" % target, member.parameters, member.fingerprint, 99)
            stranger.until_closed()
        except TimeoutError:
            pass  # it may wait to be told which of the two is n1
        finally:
            stranger.close()


class Forger:
    """n2 in a fleet with a token: it takes part with a key of its own, and hands out tokens that are none."""

    def __init__(self, attack):
        self.f, self.attack, self.forged = attack.f, attack, 0
        for target in (0, 1):
            attack.run("tokens refused", self.forge, target)

    def forge(self, index):
        target = connect(self.f, index)
        try:
            target.ends = self.f.far
            target.hello("n2", "n%d" % index, self.f.parameters, self.f.fingerprint, INCARNATION)
            _, fields = target.receive(peer.WELCOME)
            target.round = target.next_round = max(1, target.heard[2])
            target.send(peer.BEAT)
            target.receive(peer.CREDIT)
            target.round, count = self.f.far, self.f.parameters
            part = self.forged % 3 == 2
            target.send(peer.SHARE, fields[2] + 1, self.f.far, 1.0, 1.0, 0, 1 if part else count, 4 if part else 4 * count)
            target.chunk(struct.pack("<f", 0.1) * (1 if part else count))
            self.attack.counts["tokens of a part" if part else "tokens of a forged label"] += 1
            self.forged += 1
            target.receive(peer.ACK)
        finally:
            target.close()


# ---- the client ----

def ask(node, path, method="GET", body=None):
    code, _ = node.get(path, method, body)
    if code >= 500 and code != 503:
        raise AssertionError("%s answers %s with %d" % (node.name, path, code))


HOLD = """
import select, socket, sys
held, ends = {}, select.poll()
def open_one():
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    held[client.fileno()] = client
    ends.register(client, select.POLLIN)
for _ in range(int(sys.argv[2])):
    open_one()
while True:
    for descriptor, _ in ends.poll():
        ends.unregister(descriptor)
        held.pop(descriptor).close()
        open_one()
"""


def hold_silent(attack, node):
    """Another user's connections that say nothing, renewed when they end. Only root can be another user."""
    os.chmod(node.fleet.directory, 0o755)
    os.chmod(node.socket, 0o666)
    with subprocess.Popen([sys.executable, "-c", HOLD, node.socket, str(SILENT)], user=65534, group=65534, extra_groups=[],
                          stderr=subprocess.DEVNULL, cwd="/") as child:
        attack.over.wait(4)
        child.kill()


def drop(node):
    for _ in range(50):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1)
            client.connect(node.socket)
            client.send(b"GET /v1/his")


def attach_large(path):
    """A program whose model is sparse, and larger than memory: what it is told."""
    head, _ = raw_program.header([("w", [LARGE])])
    descriptor = os.memfd_create("large", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.write(descriptor, head)
        os.ftruncate(descriptor, len(head) + 4 * LARGE)
        raw_program.fcntl.fcntl(descriptor, raw_program.fcntl.F_ADD_SEALS, raw_program.SEALS)
        with raw_program.Program.connect(path) as sock:
            hello = raw_program.frame(raw_program.HELLO, parameters=LARGE, rounds=-1, text=b"large")
            socket.send_fds(sock, [hello], [descriptor])
            answer = sock.recv(1024)
    finally:
        os.close(descriptor)
    values = dict(zip(raw_program.FIELDS, raw_program.FRAME.unpack(answer)))
    if values["type"] != raw_program.REFUSED or b"memory" not in values["text"]:
        raise AssertionError("a model of %d parameters: type %d, %r" % (LARGE, values["type"], values["text"][:100]))


def crowd_until_told(f, nodes, pipe):
    """Clients, in a process of their own: their threads would take the member's time."""
    fleet.die_with_parent()
    attack = Attack(f, collections.Counter(), [])
    for node in nodes:
        for _ in range(POLLERS):
            attack.run("histories asked", ask, node, "/v1/history?since=0")
        attack.run("clients dropped", drop, node)
        attack.run("models asked", ask, node, "/v1/model")
    if os.geteuid() == 0:
        attack.run("hundreds of silent clients", hold_silent, attack, nodes[-1])
    pipe.recv()
    attack.end()
    pipe.send((attack.counts, attack.flaws))


class Crowd:
    """The clients of some nodes, until end()."""

    def __init__(self, f, nodes, counts, flaws):
        self.counts, self.flaws = counts, flaws
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(target=crowd_until_told, args=(f, nodes, theirs), daemon=True)
        self.process.start()

    def end(self):
        self.pipe.send(None)
        counts, flaws = self.pipe.recv()
        self.process.join()
        self.counts.update(counts)
        self.flaws += flaws


# ---- what must hold ----

class Trial:
    """What held and what did not, in lines."""

    def __init__(self, sgpd, sgpctl):
        fleet.SGPD, tls.SGPCTL = sgpd, sgpctl
        self.counts, self.flaws = collections.Counter(), []
        self.heaviest, self.slowest, self.asked = 0.0, 0.0, 0

    def expect(self, holds, text):
        if not holds:
            self.flaws.append(text)

    def watch(self, f, nodes, until):
        """While the attack goes on root asks for the status, and adds the weights up."""
        while time.monotonic() < until:
            for node in nodes:
                begun = time.monotonic()
                status = node.status()
                took = time.monotonic() - begun
                self.asked += 1
                self.slowest = max(self.slowest, took)
                self.expect(status is not None, "%s did not answer root's status" % node.name)
                if status is not None and node.index < 2 and isinstance(f, Gossip):
                    self.heaviest = max(self.heaviest, status["weight"])
                self.expect(node.process.poll() is None, "%s ended: %s" % (node.name, node.log()[-2000:]))
            time.sleep(0.2)

    def judge(self, f, name):
        """The attack is over: those who are honest finish, whole, with one model."""
        nodes = f.nodes[:2]
        honest = [node for node in f.nodes if node.process is not None and node.process.poll() is None]
        try:
            self.finish(f, honest)
            f.wait("one model", lambda: self.apart(nodes) <= AGREED)
            f.wait("no word of disagreement", lambda: not any(node.status()["disagrees"] for node in honest))
        except AssertionError as error:
            self.flaws.append("%s: %s" % (name, error))
            return
        total = sum(status["weight"] for status in f.quiet(honest) if isinstance(f, Gossip))
        self.heaviest = max(self.heaviest, total)
        self.expect(total <= MEMBERS + SLACK + 1e-9, "%s: weights of %.3f, more than %d members and %d" % (name, total, MEMBERS, SLACK))
        for node in nodes:
            self.expect(node.process.poll() is None, "%s: %s ended" % (name, node.name))
            renewed = node.status()["cycles_renewed"]
            self.expect(renewed == 0, "%s: %s began %d rounds again" % (name, node.name, renewed))
        for node in honest:
            self.expect(node.end(signal.SIGTERM) == 0, "%s: %s did not end cleanly: %s" % (name, node.name, node.log()[-2000:]))
            self.expect("Sanitizer" not in node.log(), "%s: %s: %s" % (name, node.name, node.log()[-3000:]))

    @staticmethod
    def finish(f, honest):
        """Wait for all to be finished. The next round has the usual bound, as a sanitizer makes many epochs slow."""
        latest, since = -1, time.monotonic()

        def finished():
            nonlocal latest, since
            statuses = [node.status() for node in honest]
            if not all(statuses):
                return False
            now, least = time.monotonic(), min(status["round"] for status in statuses)
            if least > latest:
                latest, since = least, now
            states = {status["state"] for status in statuses}
            if now - since > fleet.PATIENCE:
                raise AssertionError("%s in round %d for %d s" % (states, latest, fleet.PATIENCE))
            return states == {"finished"}

        f.wait("all to be finished", finished, 10 * fleet.PATIENCE)

    @staticmethod
    def apart(nodes):
        """How far the models are from each other, of the largest value."""
        a, b = (fleet.read_model(node.get("/v1/model")[1]) for node in nodes)
        return max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, a + b))

    def gossip(self, name, seconds, epochs=300, phases=COMPLETE, start="now", **lies):
        f = Gossip(epochs, phases, start, "blocks" in lies)
        try:
            f.start([0, 1])
            f.wait("a status", lambda: all(node.status() for node in f.nodes[:2]))
            crowd = Crowd(f, f.nodes[:2], self.counts, self.flaws)
            attack = Attack(f, self.counts, self.flaws)
            member = Member(attack, **lies)
            if name == "names":
                attack.run("greetings in others' names", greet_as_another, f, member)
            self.watch(f, f.nodes[:2], time.monotonic() + seconds)
            crowd.end()
            self.counts["nodes at the end of training when the attack ended"] += sum(
                node.status()["state"] in ("settling", "finished") for node in f.nodes[:2])
            if member.lie != 1.0:
                self.lie_until_it_shows(f, name, member)
            attack.end()
            member.close()
            f.start([2])
            if member.lie != 1.0:
                self.judge_lie(f, name, member)
            self.judge(f, name)
        finally:
            f.close()

    # ---- of weight ----

    @staticmethod
    def total(f, member):
        """Roughly, for they are of different moments."""
        return member.weight + sum(node.status()["weight"] for node in f.nodes[:2])

    def lie_until_it_shows(self, f, name, member):
        """Twice the bound, for weights of different moments come to too much; or half of what there was."""
        try:
            if member.lie > 1:
                f.wait("a total beyond the bound", lambda: self.told(f.nodes[:2]) > 0 or self.total(f, member) > 2 * (MEMBERS + SLACK))
            else:
                f.wait("half of the total", lambda: self.told(f.nodes[:2]) > 0 or self.total(f, member) < MEMBERS / 2)
        except AssertionError as error:
            self.flaws.append("%s: %s" % (name, error))

    @staticmethod
    def told(nodes):
        return max(node.status()["weight_unknown"] for node in nodes)

    def total_at_rest(self, f):
        for node in f.nodes:
            node.get("/v1/pause", "POST")
        f.wait_state("paused")
        total = sum(status["weight"] for status in f.quiet())
        for node in f.nodes:
            node.get("/v1/resume", "POST")
        return total

    def judge_lie(self, f, name, member):
        """An honest daemon is in n2's place: the total comes to its bounds, and whoever changed it tells."""
        try:
            f.wait("n2 to train", lambda: (f.nodes[2].status() or {"state": ""})["state"] == "training")
            f.wait("weights within the bound", lambda: self.total_at_rest(f) <= MEMBERS + SLACK + 1e-3, interval=0.5)
            total = self.total_at_rest(f)
        except AssertionError as error:
            self.flaws.append("%s: %s" % (name, error))
            return
        self.counts["thousandths of weight after a lie about it"] = round(1000 * total)
        self.expect(0.5 <= total <= MEMBERS + SLACK + 1e-3, "%s: weights of %.3f, beyond %d members and %d" % (name, total, MEMBERS, SLACK))
        self.expect(member.lie < 1 or self.told(f.nodes) > 0, "%s: nobody tells of weight that was made up" % name)

    # ---- of what else there is ----

    def token(self, name, seconds):
        f = Ciphered()
        try:
            f.start()
            f.wait_round(0, 5)
            self.expect(f.nodes[2].end() == 0, "n2 did not stop")
            with socket.create_server((f.host(2), f.ports[2])) as listener:
                listener.settimeout(fleet.PATIENCE)
                f.parameters, f.fingerprint = peer.overhear(listener)
            f.roll("require", order=[0, 1])
            f.far = FAR * f.nodes[0].status()["rounds"]
            label = f.nodes[0].status()["round"]
            crowd = Crowd(f, f.nodes[:2], self.counts, self.flaws)
            attack = Attack(f, self.counts, self.flaws)
            Forger(attack)
            self.watch(f, f.nodes[:2], time.monotonic() + seconds)
            crowd.end()
            attack.end()
            reached = [node.status()["round"] for node in f.nodes[:2]]
            self.expect(max(reached) < f.far, "%s: a forged label counted: %s after %d" % (name, reached, label))
            self.judge(f, name)
        finally:
            f.close()

    def program(self, name, seconds):
        f = Fleet(1, phases=[[]], options={**ATTACHED, "control.attach": "n0.attach"})
        try:
            f.start()
            f.wait_state("awaiting_model")
            end = time.monotonic() + min(seconds, 2)
            while time.monotonic() < end:
                attach_large(os.path.join(f.directory, "n0.attach"))
                self.counts["large models refused"] += 1
            self.expect(f.nodes[0].status()["state"] == "awaiting_model", "%s: the daemon awaits no model" % name)
            self.expect(f.nodes[0].end() == 0, "%s: %s" % (name, f.nodes[0].log()[-2000:]))
        finally:
            f.close()


# What each kind of fleet is attacked with, in turn.
ATTACKS = (
    ("token", lambda trial, seconds: trial.token("token", seconds)),
    ("names", lambda trial, seconds: trial.gossip("names", seconds)),
    ("program", lambda trial, seconds: trial.program("program", seconds)),
    ("weight 1.05", lambda trial, seconds: trial.gossip("weight 1.05", seconds, epochs=3000, lie=1.05)),
    ("weight 0.9", lambda trial, seconds: trial.gossip("weight 0.9", seconds, epochs=3000, lie=0.9)),
    ("blocks", lambda trial, seconds: trial.gossip("blocks", seconds, blocks=True)),
    ("epochs", lambda trial, seconds: trial.gossip("epochs", seconds, epochs_ahead=1)),
    ("ends", lambda trial, seconds: trial.gossip("ends", seconds, epochs=2, start="all", beyond=10 * CYCLES_MOST)),
    ("files", lambda trial, seconds: trial.gossip("files", seconds, epochs=2, phases=CIRCLE, start="all", beyond=1)),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sgpd")
    parser.add_argument("sgpctl")
    parser.add_argument("--seconds", type=float, default=600, help="how long attacks follow one another (600)")
    parser.add_argument("--each", type=float, default=8, help="how long one lasts (8)")
    parser.add_argument("--only", nargs="*", help="attacks by name: " + ", ".join(name for name, _ in ATTACKS))
    options = parser.parse_args()
    attacks = [attack for attack in ATTACKS if not options.only or attack[0] in options.only]
    trial, end, done = Trial(os.path.abspath(options.sgpd), os.path.abspath(options.sgpctl)), time.monotonic() + options.seconds, 0
    while done < len(attacks) or time.monotonic() < end:
        name, act = attacks[done % len(attacks)]
        act(trial, options.each)
        done += 1
        print("# %s: %d flaws so far" % (name, len(trial.flaws)), flush=True)
    for what, count in sorted(trial.counts.items()):
        print("# %s: %d" % (what, count))
    print("# %d attacks; root's status answered %d times, in %.2f s at most; the most weight: %.3f" % (
        done, trial.asked, trial.slowest, trial.heaviest))
    for flaw in trial.flaws:
        print("# " + flaw.replace("\n", "\n# "))
    print("1..1\n%sok 1 - daemons live, honest nodes finish, weights keep the promise, root is answered" % ("not " if trial.flaws else ""))
    return 1 if trial.flaws else 0


if __name__ == "__main__":
    sys.exit(main())
