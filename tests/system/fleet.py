# SPDX-License-Identifier: Apache-2.0
"""Fleets of real daemons on loopback, for the system tests.

A fleet lives in a temporary directory: a generated CSV file, a topology, one configuration a node.
Every wait is a poll with a bound; a test that waits in vain fails with the daemons' last lines.
"""
import contextlib
import ctypes
import functools
import http.client
import itertools
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import tap

SGPD = os.environ.get("SGPD", "sgpd")
LONG = os.environ.get("SGP_LONG") == "1"
PATIENCE = 60.0  # seconds that any wait may take at most
PR_SET_PDEATHSIG = 1
BLOCK = 100  # ports, of which a program draws

_libc = ctypes.CDLL(None)


def die_with_parent():
    """In a child before it execs: no daemon outlives the test that started it."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def memory_kb(process):
    """Of a child: the memory that it holds now."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # A connect that blocks waits its turn where the queue is full; after settimeout() it would fail.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 10, 0))
        self.sock.connect(self.path)
        self.sock.settimeout(10)


@functools.cache
def own_ports():
    """A block of ports that no other program of these tests draws from, in turn: whoever holds its first has it.
    It is below those that the kernel gives to whoever asks for any."""
    for first in range(12000, 32000, BLOCK):
        claim = socket.socket()
        try:
            claim.bind(("127.0.0.1", first))
        except OSError:
            claim.close()
            continue
        return claim, itertools.cycle(range(first + 1, first + BLOCK))
    raise AssertionError("no block of ports is free")


def free_ports(count):
    """Ports that nobody listens on."""
    ports = []
    for port in itertools.islice(own_ports()[1], BLOCK - 1):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as daemons do: connections of late do not matter
            try:
                s.bind(("127.0.0.1", port))
                ports.append(port)
            except OSError:  # somebody else's
                pass
        if len(ports) == count:
            return ports
    raise AssertionError("no %d ports are free" % count)


def write_rows(path, rows=400, features=6, seed=1):
    """Two classes that a plane separates."""
    draw = random.Random(seed)
    with open(path, "w") as file:
        file.write(",".join("f%d" % i for i in range(features)) + ",label\n")
        for _ in range(rows):
            x = [draw.gauss(0, 1) for _ in range(features)]
            side = "pos" if sum(x[::2]) > sum(x[1::2]) else "neg"
            file.write(",".join("%.5f" % v for v in x) + "," + side + "\n")


def exponential(n):
    """The phases of the one-peer exponential graph, as lists of edges."""
    hops, hop = [], 1
    while hop < n:
        hops.append([(i, (i + hop) % n) for i in range(n)])
        hop *= 2
    return hops


def poll(what, condition, timeout, logs, interval=0.02):
    """Until condition() is true; its value. A condition may ask a daemon that does not listen yet. Fails with logs()
    when time is up."""
    end = time.monotonic() + timeout
    while True:
        try:
            value = condition()
        except (ConnectionRefusedError, FileNotFoundError):
            value = None
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited %.0f s for %s\n%s" % (timeout, what, logs()))
        time.sleep(interval)


def read_model(data):
    """All values of a safetensors file."""
    header, = struct.unpack_from("<Q", data)
    return struct.unpack("<%df" % ((len(data) - 8 - header) // 4), data[8 + header:])


class Node:
    def __init__(self, fleet, index):
        self.fleet = fleet
        self.index = index
        self.name = "n%d" % index
        self.listen = fleet.ports[index]
        self.directory = os.path.join(fleet.directory, self.name)
        self.configuration = os.path.join(fleet.directory, self.name + ".conf")
        self.socket = os.path.join(fleet.directory, self.name + ".sock")
        self.log_path = os.path.join(fleet.directory, self.name + ".log")
        self.process = None

    def start(self, **options):
        """`options` are Popen's."""
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(self.fleet.command(self), stderr=log,
                                            stdout=log, stdin=subprocess.DEVNULL,
                                            preexec_fn=die_with_parent, **options)

    def get(self, path, method="GET", body=None):
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def json(self, path, method="GET"):
        return json.loads(self.get(path, method)[1])

    def status(self):
        """The status, or None while the socket does not answer, or is too busy to."""
        try:
            code, body = self.get("/v1/status")
            return json.loads(body) if code == 200 else None
        except (OSError, http.client.HTTPException, ValueError):
            return None

    def peer(self, name, direction):
        for peer in self.json("/v1/peers"):
            if peer["name"] == name and peer["direction"] == direction:
                return peer
        raise AssertionError("%s has no %s peer %s" % (self.name, direction, name))

    def log(self):
        with open(self.log_path) as file:
            return file.read()

    def kill(self, number):
        os.kill(self.process.pid, number)

    def end(self, number=signal.SIGTERM):
        """Signal and wait; returns the exit status."""
        self.kill(number)
        return self.process.wait(PATIENCE)

    def lose_checkpoints(self):
        """As if its disk had lost them. The daemon does not run."""
        for name in ("checkpoint", "checkpoint.1"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(self.directory, name))


class Fleet:
    """n daemons. `dial` maps (source, target) to a port that the source dials instead of the target's
    own; `options` are the keys of every configuration, "section.key": value; `own` the same by node."""

    def __init__(self, n=4, phases=None, dial=None, options=None, own=None, rows=400, features=6):
        self.temporary = tempfile.TemporaryDirectory(prefix="sgpd-")
        self.directory = self.temporary.name
        self.n = n
        self.present = list(range(n))  # the nodes that the topology names
        self.ports = free_ports(n)
        self.phases = exponential(n) if phases is None else phases
        self.dial = dial or {}
        self.rows = os.path.join(self.directory, "rows.csv")
        write_rows(self.rows, rows, features)
        self.nodes = [Node(self, i) for i in range(n)]
        for i in range(n):
            self.write_topology(i)
            self.write_configuration(i, dict(options or {}), (own or {}).get(i, {}))

    def host(self, index):
        """Where node `index` listens, as in front of a port."""
        return "127.0.0.1"

    def command(self, node):
        return [SGPD, "-c", node.configuration]

    def address(self, index, other):
        """That of another node in the file of this one."""
        return "%s:%d" % (self.host(other), self.dial.get((index, other), self.ports[other]))

    def says(self):
        """What the file says of each digraph, beside its edges."""
        return ""

    def says_of(self, index):
        """What it says of a node, beside its address."""
        return ""

    def write_topology(self, index):
        """A file for each node: alike but for addresses, which the digest leaves out. It is there at once, for a
        node may be about to read it."""
        path = os.path.join(self.directory, "n%d.dot" % index)
        with open(path + ".new", "w") as file:
            for p, edges in enumerate(self.phases):
                file.write("digraph phase%d {\n%s" % (p, self.says()))
                for i in self.present:
                    file.write('  n%d [address="%s"%s];\n' % (i, self.address(index, i), self.says_of(i)) if p == 0 else "")
                for source, target, *fraction in edges:
                    file.write("  n%d -> n%d%s;\n" % (source, target, " [fraction=%g]" % fraction[0] if fraction else ""))
                file.write("}\n")
        os.replace(path + ".new", path)

    def write_configuration(self, index, options, own):
        node = self.nodes[index]
        values = {
            "node.name": node.name,
            "node.state_directory": node.directory,
            "topology.file": "n%d.dot" % index,
            "train.epochs": "4",
            "train.batch": "10",
            "model.layers": "dense 2",
            "data.train": self.rows,
            "data.label": "label",
            "data.classes": "neg pos",
            "data.holdout": "0.2",
            "optimizer.learning_rate": "0.1",
            "network.listen": "%s:%d" % (self.host(index), node.listen),
            "control.socket": node.socket,
        }
        values.update(options)
        values.update(own)
        sections = {}
        for key, value in values.items():
            if value is not None:
                section, name = key.split(".")
                sections.setdefault(section, []).append("%s = %s\n" % (name, value))
        with open(node.configuration, "w") as file:
            for section, lines in sections.items():
                file.write("[%s]\n%s" % (section, "".join(lines)))

    def rewire(self, present, phases):
        """Other nodes and phases for everybody who reads its file from now on."""
        self.present = present
        self.phases = phases
        for i in range(self.n):
            self.write_topology(i)

    def check(self, index=0):
        """`sgpd --check` of a node's configuration: its exit status and what it said."""
        result = subprocess.run([*self.command(self.nodes[index]), "--check"], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
        return result.returncode, result.stdout

    def start(self, indices=None):
        for i in range(self.n) if indices is None else indices:
            self.nodes[i].start()

    def wait(self, what, condition, timeout=PATIENCE, interval=0.02):
        return poll(what, condition, timeout, self.logs, interval)

    def wait_state(self, state, indices=None, timeout=PATIENCE):
        nodes = [self.nodes[i] for i in (range(self.n) if indices is None else indices)]

        def all_there():
            statuses = [node.status() for node in nodes]
            return statuses if all(s and s["state"] == state for s in statuses) else None

        return self.wait("%s to be %s" % ([n.name for n in nodes], state), all_there, timeout)

    def wait_round(self, index, number, timeout=PATIENCE):
        node = self.nodes[index]
        return self.wait("round %d of %s" % (number, node.name),
                         lambda: (node.status() or {"round": -1})["round"] >= number, timeout)

    def quiet(self, nodes=None, timeout=PATIENCE):
        """The statuses of nodes that give no more, once nothing of theirs is in flight. They are read
        anew then: what one node still owed while its target's weight was read, the target has now."""
        nodes = self.nodes if nodes is None else nodes

        def settled():
            statuses = [node.status() for node in nodes]
            return all(s and s["weight_in_flight"] == 0 for s in statuses)

        self.wait("nothing in flight", settled, timeout)
        return [self.wait("a status", node.status) for node in nodes]

    def connect_until(self, index, text):
        """Connect to the control socket of a node again and again, until its log has the text. The error number of each
        attempt; 0: it connected."""
        node, codes = self.nodes[index], []

        def is_there():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                codes.append(client.connect_ex(node.socket))
            return text in node.log()
        self.wait("%r in the log of %s" % (text, node.name), is_there, interval=0.001)
        return codes

    def wait_log(self, index, text, timeout=PATIENCE):
        node = self.nodes[index]
        return self.wait("%r in the log of %s" % (text, node.name), lambda: text in node.log(),
                         timeout)

    def logs(self):
        lines = []
        for node in self.nodes:
            if os.path.exists(node.log_path):
                lines += ["--- " + node.name] + node.log().splitlines()[-15:]
        return "\n".join(lines)

    def close(self):
        for node in self.nodes:
            if node.process is not None and node.process.poll() is None:
                node.process.send_signal(signal.SIGCONT)
                node.process.kill()
            if node.process is not None:
                node.process.wait()
        self.temporary.cleanup()


WITH_OWNER = ("backup", "downpour", "cyclic")  # algorithms that want a node which owns the vector: test_owner.py, test_token.py


def algorithms():
    """Of gossip: the names that sgpd offers to one who gives it a name that does not exist."""
    f = Fleet(1, options={"train.algorithm": "none-such"})
    try:
        names = re.search(r"choose one of (\S+)", f.check()[1]).group(1).split("|")
        return [name for name in names if name not in WITH_OWNER]
    finally:
        f.close()


class FleetTest(unittest.TestCase):
    def fleet(self, *arguments, **options):
        fleet = Fleet(*arguments, **options)
        self.fleets = getattr(self, "fleets", []) + [fleet]
        self.addCleanup(fleet.close)
        return fleet

    def logs(self):
        """What the daemons said last, for whoever reads of a failure."""
        return "\n".join(fleet.logs() for fleet in getattr(self, "fleets", []))

    def assert_alive(self, fleet, indices=None):
        for i in range(fleet.n) if indices is None else indices:
            self.assertIsNone(fleet.nodes[i].process.poll(), fleet.nodes[i].log())


def take_sgpd():
    """The program under test is the first argument."""
    global SGPD
    if len(sys.argv) > 1 and os.path.exists(sys.argv[1]):
        SGPD = os.path.abspath(sys.argv.pop(1))


def main():
    take_sgpd()
    tap.run_cases(sys.argv[1:])
