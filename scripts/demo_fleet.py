# SPDX-License-Identifier: Apache-2.0
"""The fleet behind scripts/demo: N daemons on loopback that train one model on Fashion-MNIST.

It writes a topology and N configurations into a temporary directory, starts build/daemon/sgpd N times,
shows a live table from their control sockets, waits until all have finished, and recomputes how far
apart their models are from the models that they export.
"""
import argparse
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "ctl", "compare"))
from daemons import UnixConnection  # noqa: E402

SGPD = os.path.join(ROOT, "build/daemon/sgpd")
SGPCTL = os.path.join(ROOT, "build/ctl/sgpctl")
DATA = "/usr/share/datasets/fashion-mnist"
TRAIN_ROWS = 60000
STALL_SECONDS = 120  # the demo gives up when no node made progress for so long
TABLE_SECONDS = 1.0  # how often the table is drawn on a terminal; elsewhere five times slower
PR_SET_PDEATHSIG = 1

CONFIGURATION = """\
[node]
name = {name}
state_directory = {directory}/{name}
[topology]
file = {directory}/fleet.dot
[train]
algorithm = sgp
start = all
epochs = {epochs}
batch = {batch}
threads = 1
seed = 1
when_done = serve
[model]
layers = dense 128 relu, dense 10
loss = cross-entropy
[data]
train = {data}/train-images-idx3-ubyte.gz
labels = {data}/train-labels-idx1-ubyte.gz
test = {data}/t10k-images-idx3-ubyte.gz
test_labels = {data}/t10k-labels-idx1-ubyte.gz
shards = {shards}
[optimizer]
kind = nesterov
learning_rate = 0.05
momentum = 0.9
weight_decay = 1e-4
schedule = cosine
warmup_epochs = 1
[network]
listen = {address}
[control]
socket = {directory}/{name}/control.sock
"""


class Failure(Exception):
    """What went wrong, in one line for a person."""


class Node:
    """One daemon: its files, its process, its latest status."""

    def __init__(self, directory, name, address):
        self.name = name
        self.address = address
        self.directory = os.path.join(directory, name)
        self.configuration = os.path.join(directory, name + ".conf")
        self.socket = os.path.join(self.directory, "control.sock")
        self.log = os.path.join(directory, name + ".log")
        self.process = None
        self.status = {}
        os.mkdir(self.directory)

    def start(self):
        """Start the daemon; the kernel ends it if this script is killed."""
        libc = ctypes.CDLL(None)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [SGPD, "-c", self.configuration], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM))

    def refresh(self):
        """Ask for the status; a daemon that does not listen yet keeps an empty one."""
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                last = "".join(log.readlines()[-5:]).strip()
            raise Failure(f"{self.name} ended with status {self.process.returncode}; it said:\n{last}")
        connection = UnixConnection(self.socket)
        try:
            connection.request("GET", "/v1/status")
            self.status = json.load(connection.getresponse())
        except (FileNotFoundError, ConnectionRefusedError):
            pass
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Failure(f"{self.name} did not answer on {self.socket}: {error}") from error
        finally:
            connection.close()

    def stop(self):
        """End the daemon, with force if it does not go."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description="Train one model on several sgpd on this machine.")
    parser.add_argument("--nodes", type=int, default=4, metavar="N", help="how many daemons (4)")
    parser.add_argument("--topology", default="one-peer-exponential", metavar="FAMILY|FILE",
                        help="a family of `sgpctl topology generate`, or a DOT file, whose "
                        "addresses are replaced by some on loopback and whose nodes count, not "
                        "--nodes (one-peer-exponential)")
    parser.add_argument("--epochs", type=int, default=10, metavar="E",
                        help="passes of each node over its own rows (10)")
    parser.add_argument("--batch", type=int, default=32, metavar="B", help="rows per step and node (32)")
    parser.add_argument("--shards", default="round-robin", metavar="KIND",
                        help="round-robin, contiguous, sorted or dirichlet:A; sorted gives each node "
                        "rows of a few labels only (round-robin)")
    parser.add_argument("--isolated", action="store_true",
                        help="no edges: each node trains alone on its shard, for comparison")
    parser.add_argument("--keep", action="store_true", help="keep the temporary directory")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    arguments = parser.parse_args()
    if min(arguments.nodes, arguments.epochs, arguments.batch) < 1:
        parser.error("--nodes, --epochs and --batch begin at 1")
    return arguments


def free_ports(count):
    """The first of `count` successive free TCP ports on loopback."""
    for first in range(17311, 60000, count + 1):
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


def sgpctl(*arguments):
    """Output of an sgpctl command, or its message as a failure."""
    result = subprocess.run([SGPCTL, *arguments], text=True, capture_output=True, check=False)
    if result.returncode != 0:
        raise Failure(f"sgpctl {' '.join(arguments)}: {result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


def write_topology(directory, arguments):
    """Write fleet.dot with loopback addresses; returns [(name, address)] in the order of the fleet."""
    path = os.path.join(directory, "fleet.dot")
    if arguments.isolated:
        first = free_ports(arguments.nodes)
        fleet = [(f"n{i}", f"127.0.0.1:{first + i}") for i in range(arguments.nodes)]
        lines = [f'  {name} [address="{address}"];' for name, address in fleet]
        text = "digraph isolated {\n" + "\n".join(lines) + "\n}\n"
    elif os.path.exists(arguments.topology):
        with open(arguments.topology, encoding="utf-8") as file:
            text = file.read()
        first = free_ports(len(re.findall(r"address", text)) or arguments.nodes)
        count = iter(range(first, 65536))
        text = re.sub(r'address\s*=\s*"[^"]*"', lambda _: f'address="127.0.0.1:{next(count)}"', text)
    else:
        first = free_ports(arguments.nodes)
        text = sgpctl("topology", "generate", arguments.topology, str(arguments.nodes), "--address",
                      f"127.0.0.1:{first}+")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    fleet = re.findall(r'"?([\w.-]+)"?\s*\[[^\]]*address\s*=\s*"(127[^"]*)"', text)
    if not fleet:
        raise Failure(f"{arguments.topology}: no node has an address")
    return fleet


def format_row(status, target_samples):
    """One node's cells of the table."""
    def number(key, form):
        value = status.get(key)
        return "-" if value is None else format(value, form)

    progress = min(1.0, status.get("samples", 0) / target_samples)
    return (f"{status.get('state', 'starting'):<10}{number('round', 'd'):>7}{number('loss', '.4f'):>9}"
            f"{number('test_accuracy', '.4f'):>10}{number('weight', '.4f'):>9}"
            f"{number('disagreement', '.1e'):>10}{number('samples_per_second', '.0f'):>10}"
            f"{progress:>9.0%}")


class Table:
    """The live table: redrawn in place on a terminal, a block now and then elsewhere."""

    HEADER = (f"{'node':<8}{'state':<10}{'round':>7}{'loss':>9}{'test acc':>10}{'weight':>9}"
              f"{'disagree':>10}{'rows/s':>10}{'done':>9}")

    def __init__(self, target_samples):
        self.target_samples = target_samples
        self.terminal = sys.stdout.isatty()
        self.drawn = 0
        self.next_time = 0.0
        self.start = time.monotonic()

    def draw(self, nodes, force=False):
        now = time.monotonic()
        if now < self.next_time and not force:
            return
        self.next_time = now + TABLE_SECONDS * (1 if self.terminal else 5)
        lines = [self.HEADER]
        lines += [f"{node.name:<8}{format_row(node.status, self.target_samples)}" for node in nodes]
        lines.append(self.time_left(nodes, now - self.start))
        if self.terminal and self.drawn:
            print(f"\033[{self.drawn}A", end="")
        print("\n".join(line + ("\033[K" if self.terminal else "") for line in lines), flush=True)
        self.drawn = len(lines)

    def time_left(self, nodes, elapsed):
        slowest = min(node.status.get("samples", 0) for node in nodes) / self.target_samples
        if slowest <= 0:
            return f"{elapsed:.0f} s"
        return f"{elapsed:.0f} s, about {max(0.0, elapsed / slowest - elapsed):.0f} s left"


def watch(nodes, table):
    """Refresh and draw until every node has finished and nothing is in flight."""
    progress, moved = None, time.monotonic()
    while True:
        for node in nodes:
            node.refresh()
        table.draw(nodes)
        if all(node.status.get("state") == "finished" and node.status["weight_in_flight"] == 0
               for node in nodes):
            for node in nodes:  # of one moment: nothing moves any more
                node.refresh()
            table.draw(nodes, force=True)
            return
        now = [(node.status.get("state"), node.status.get("round")) for node in nodes]
        if now != progress:
            progress, moved = now, time.monotonic()
        elif time.monotonic() - moved > STALL_SECONDS:
            raise Failure(f"no node made progress for {STALL_SECONDS} s")
        time.sleep(0.25)


def read_safetensors(path):
    """All float32 values of a safetensors file, tensors in order of name, as one float64 vector."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = file.read()
    header.pop("__metadata__", None)
    tensors = [numpy.frombuffer(body[slice(*header[name]["data_offsets"])], dtype="<f4")
               for name in sorted(header)]
    return numpy.concatenate(tensors).astype(numpy.float64)


def disagreement_of(nodes, directory):
    """max over nodes of |z_i - mean| / |mean|, Euclidean, of the models that the nodes export."""
    models = []
    for node in nodes:
        path = os.path.join(directory, node.name + ".safetensors")
        sgpctl("-s", node.socket, "export", path)
        models.append(read_safetensors(path))
    mean = numpy.mean(models, axis=0)
    return max(float(numpy.linalg.norm(model - mean)) for model in models) / float(numpy.linalg.norm(mean))


def run(arguments, directory, nodes):
    """The demo itself; returns the summary. `nodes` is filled here, so that the caller can stop them."""
    for name, address in write_topology(directory, arguments):
        nodes.append(Node(directory, name, address))
    for node in nodes:
        with open(node.configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(name=node.name, directory=directory, data=DATA,
                                            epochs=arguments.epochs, batch=arguments.batch,
                                            shards=arguments.shards,
                                            address=node.address))
    alone = "each alone" if arguments.isolated else f"on {arguments.topology}"
    print(f"{len(nodes)} nodes {alone}, {TRAIN_ROWS} rows of Fashion-MNIST dealt {arguments.shards}, "
          f"{arguments.epochs} epochs; files in {directory}", flush=True)
    start = time.monotonic()
    for node in nodes:
        node.start()
    watch(nodes, Table(arguments.epochs * (TRAIN_ROWS // len(nodes))))
    seconds = time.monotonic() - start
    return {
        "nodes": len(nodes),
        "seconds": round(seconds, 3),
        "rounds": max(node.status["round"] for node in nodes),
        "test_accuracy": [node.status["test_accuracy"] for node in nodes],
        "disagreement": disagreement_of(nodes, directory),
        "total_weight": sum(node.status["weight"] for node in nodes),
    }


def show(summary):
    accuracy = summary["test_accuracy"]
    print(f"\nAll {summary['nodes']} nodes finished after {summary['rounds']} rounds, "
          f"{summary['seconds']:.1f} s.")
    print(f"Test accuracy on 10,000 images: {min(accuracy):.4f} to {max(accuracy):.4f}")
    print(f"Disagreement of the exported models: {summary['disagreement']:.2e}")
    print(f"Total weight: {summary['total_weight']:.12f}")


def main():
    arguments = parse_arguments()
    directory = tempfile.mkdtemp(prefix="sgpd-demo-")
    nodes = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        summary = run(arguments, directory, nodes)
        show(summary)
    except Failure as failure:
        print(f"scripts/demo: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nscripts/demo: interrupted", file=sys.stderr)
        return 130
    finally:
        for node in nodes:
            node.stop()
        if arguments.keep:
            print(f"Kept: {directory}")
        else:
            shutil.rmtree(directory)
    if arguments.json:
        print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
