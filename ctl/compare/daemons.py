# SPDX-License-Identifier: Apache-2.0
"""One variant with real daemons on loopback: files, processes, and the histories that they leave."""
import csv
import ctypes
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from plan import Failure

STALL_SECONDS = 600  # without a round or a row of any node
LOOK_SECONDS = 0.5
END_SECONDS = 30
PR_SET_PDEATHSIG = 1
COLUMNS = ("epoch", "seconds", "bytes_sent", "loss", "test_loss", "test_accuracy")


def free_ports(count):
    """The first of `count` successive free TCP ports on loopback; by lot, for whoever else looks for some."""
    for first in random.sample(range(18311, 32000 - count), 100):
        holders = []
        try:
            for port in range(first, first + count):
                holders.append(socket.socket())
                holders[-1].bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for holder in holders:
                holder.close()
    raise Failure("no free ports on 127.0.0.1")


def last_word(done):
    """Why a program ended, in one line."""
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return said[-1] if said else f"it ended with status {done.returncode}"


def call(*words):
    """What a program prints, or its message as a failure."""
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise Failure(last_word(done).removeprefix("sgpctl: "))
    return done.stdout


def topology_of(variant, sgpctl):
    """The text of the variant's file, with addresses on loopback. Its links are plain: nobody has a key here."""
    name, *options = variant.topology
    address = ("--address", f"127.0.0.1:{free_ports(variant.nodes)}+")
    if not os.path.isfile(name):
        return call(sgpctl, "topology", "generate", name, str(variant.nodes), *options, *address)
    if options:
        raise Failure(f"{name} is a file, and takes no options such as {options[0]}")
    nodes = sum(not node["beside"] for node in json.loads(call(sgpctl, "topology", "show", "--json", name))["nodes"])
    if nodes != variant.nodes:
        raise Failure(f"{name}: it has {nodes} nodes; say nodes = {nodes}")
    return re.sub(r"(?m)^\s*tls=\w+;\n", "", call(sgpctl, "topology", "show", name, *address))


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Node:
    """A daemon of the fleet: its configuration, its process, its latest status."""

    def __init__(self, folder, name, address, relay):
        self.name, self.address, self.relay = name, address, relay
        self.folder = os.path.join(folder, name)
        self.configuration = os.path.join(folder, name + ".conf")
        self.log = os.path.join(folder, name + ".log")
        self.socket = os.path.join(self.folder, "control.sock")
        self.process, self.status = None, {}
        self.owner = None  # what stands beside it, in the same service: a node that is looked at alone
        self.sent = None  # from this machine, once that was summed up

    def write(self, keys, topology):
        """Its configuration. A relay has no data, and takes no steps by them."""
        own = {("node", "name"): self.name, ("node", "state_directory"): self.folder,
               ("topology", "file"): topology, ("network", "listen"): self.address,
               ("control", "socket"): self.socket, ("train", "when_done"): "serve"}
        said = {key: value for key, value in {**keys, **own}.items()
                if not (self.relay and key[0] in ("data", "optimizer"))}
        with open(self.configuration, "w", encoding="utf-8") as file:
            for section in sorted({section for section, _ in said}):
                file.write(f"[{section}]\n")
                file.writelines(f"{key} = {value}\n" for (of, key), value in said.items() if of == section)
        os.mkdir(self.folder)

    def start(self, sgpd, enter=lambda: None):
        """The kernel ends it if this process is killed. `enter` is called in the new process."""
        libc = ctypes.CDLL(None)

        def begin():
            enter()
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sgpd, "-c", self.configuration], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=begin)

    def beside(self, name):
        """Its owner, of that name."""
        self.owner = Node(self.folder, name, self.address, True)
        self.owner.socket = self.socket + ".owner"

    def look(self):
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                last = (log.read().strip().splitlines() or ["nothing"])[-1]
            raise Failure(f"{self.name} ended with status {self.process.returncode}; it said: {last}")
        self.ask()
        if self.owner:
            self.owner.ask()

    def get(self, path):
        """None: it is not there yet, or too busy; a stall is noticed."""
        connection = UnixConnection(self.socket)
        try:
            connection.request("GET", path)
            return json.load(connection.getresponse())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()

    def ask(self):
        self.status = self.get("/v1/status") or self.status
        if self.status.get("state") == "paused":
            raise Failure(f"{self.name} paused: {self.status.get('last_error') or 'training diverged'}")

    @property
    def ended(self):
        return self.status.get("state") == "finished" and self.status.get("weight_in_flight") == 0

    @property
    def progress(self):
        if self.status.get("state") == "finished":
            return 1.0
        rounds = self.status.get("rounds")
        return min(1.0, (self.status.get("round") or 0) / rounds) if rounds else 0.0

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def history(self):
        """[[epoch, seconds, bytes_sent, loss, test_loss, test_accuracy]], a row an epoch; None where there is none."""
        with open(os.path.join(self.folder, "history.csv"), encoding="utf-8") as file:
            return [[float(row[key]) if row.get(key) else None for key in COLUMNS] for row in csv.DictReader(file)]

    def result(self):
        """What it has come to, by the last row of its history: that is of the model with which it finished, which its status
        may not have been when it said so."""
        rows = self.history()
        last = dict(zip(COLUMNS, rows[-1] if rows else (None,) * len(COLUMNS)))
        return {"name": self.name, "history": rows, "test_accuracy": last["test_accuracy"],
                "test_loss": last["test_loss"],
                "bytes_sent": (last["bytes_sent"] or 0) if self.sent is None else self.sent}

    def sum_up(self):
        """What it and its owner have sent to others."""
        names = (self.name, self.owner.name)
        self.sent = sum(peer["bytes_sent"] for one in (self, self.owner) for peer in one.get("/v1/peers") or ()
                        if peer["name"] not in names)


class Fleet:
    """The daemons of one variant, within a folder that goes with them."""

    def __init__(self, variant, tools):
        self.variant, self.tools = variant, tools
        self.folder = tempfile.mkdtemp(prefix="sgpctl-compare-")
        self.nodes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:  # at once, so that none waits for another
            if node.process is not None and node.process.poll() is None:
                node.process.terminate()
        for node in self.nodes:
            node.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def topology(self):
        """The text of the file."""
        return topology_of(self.variant, self.tools.sgpctl)

    def start(self, node, _index):
        """Start the daemon of this node."""
        node.start(self.tools.sgpd)

    def prepare(self):
        """Write all files."""
        text = self.topology()
        path = os.path.join(self.folder, "fleet.dot")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        for node in json.loads(call(self.tools.sgpctl, "topology", "show", "--json", path))["nodes"]:
            of = next((known for known in self.nodes if known.name == node["beside"]), None)
            if of:
                of.address = node["address"]
                of.beside(node["name"])
            else:
                self.nodes.append(Node(self.folder, node["name"], node["address"], not node["train"]))
        for node in self.nodes:
            node.write(self.variant.keys, path)

    def check(self):
        """Have all files read by the daemon, so that nothing begins that cannot go on."""
        for node in self.nodes:
            done = subprocess.run([self.tools.sgpd, "--check", "-c", node.configuration], text=True,
                                  capture_output=True, check=False)
            if done.returncode != 0:
                raise Failure(last_word(done).removeprefix("sgpd: "))

    def train(self, tell):
        """Run it to its end; `tell(part)` now and then. Returns the result."""
        begin = time.monotonic()
        for index, node in enumerate(self.nodes):
            self.start(node, index)
        former, moved = None, begin
        while True:
            for node in self.nodes:
                node.look()
            tell(min(node.progress for node in self.nodes))
            if all(node.ended for node in self.nodes):
                break
            now = [(node.status.get("state"), node.status.get("round"), node.status.get("samples")) for node in self.nodes]
            if now != former:
                former, moved = now, time.monotonic()
            elif time.monotonic() - moved > STALL_SECONDS:
                waits = {node.name: node.status.get("waiting") for node in self.nodes}
                raise Failure(f"no node got on for {STALL_SECONDS} s; they wait: {waits}")
            time.sleep(LOOK_SECONDS)
        seconds = time.monotonic() - begin
        members = [node for node in self.nodes if not node.relay]
        for node in self.nodes:
            if node.owner:
                node.sum_up()
        for node in self.nodes:  # who ends has written its history
            node.process.terminate()
        for node in self.nodes:
            node.stop()
        return {"seconds": seconds,
                "weight": sum(one.status["weight"] for node in self.nodes for one in (node, node.owner) if one),
                "nodes": [node.result() for node in members]}
