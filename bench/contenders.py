# SPDX-License-Identifier: Apache-2.0
"""What several benchmarks measure: the models of `limit` and `train`, and one round of each contender that `limit`,
`round`, `cipher` and `peer` let take turns, all along the one-peer exponential graph: plain sockets, the daemon's links, whole
daemons, and gloo.

Each of these functions runs a fleet once, over loopback or, with `rate`, between hosts whose links have so many bits per
second (links.rate is to be in force), and returns the means over its counted rounds: at least `seconds` (of the
slowest node) and `cpu_seconds` (of the average node).
"""
import json
import os
import struct
import time

import figures
import links as network
from links import fleets

PATIENCE = 240.0
ROWS = 4
SIZES = {4096: "4 KiB", 1 << 20: "1 MiB", 16 << 20: "16 MiB", 100 << 20: "100 MiB"}
# Links to measure over, by bits a second: what they are called, and sizes.
RATES = {10**9: ("1 Gbit/s", (1 << 20, 16 << 20)), 10**8: ("100 Mbit/s", (1 << 20,))}
# Rows of the weights, bias included, by the outputs of a single layer: exactly so many bytes.
SHAPES = {4096: (32, 32), 1 << 20: (512, 512), 16 << 20: (2048, 2048), 100 << 20: (5120, 5120)}
MODELS = {  # name: (layers as in a configuration, widths)
    "softmax 784-10": ("dense 10", "784,10"),
    "MLP 784-128-10": ("dense 128 relu, dense 10", "784,128,10"),
    "MLP 784-512-512-10": ("dense 512 relu, dense 512 relu, dense 10", "784,512,512,10"),
}
IMAGES = {  # name: layers for rows of 1x28x28
    "LeNet 16-32-128": "conv 16 3x3 relu, pool 2, conv 32 3x3 relu, pool 2, dense 128 relu, dense 10",
    "residual 16-32": "conv 16 3x3, norm batch relu, conv 16 3x3, norm batch relu, conv 16 3x3, norm batch, residual 4 relu, "
                      "pool 2, conv 32 3x3, norm batch relu, conv 32 3x3, norm batch, residual 2 relu, pool avg all, dense 10",
}


def rounds_of(size, nodes, quick=False, rate=None):
    """How many rounds to count, so that a run takes about a second (three over a link, whose sockets need
    some rounds to find its rate), and to leave uncounted before."""
    if rate is not None:
        count = max(int(3 * rate / 8 / size), 5)
        return count, max(count // 5, 2 * len(fleets.exponential(nodes)))
    count = {4096: 4000, 1 << 20: 2000, 16 << 20: 120, 100 << 20: 16}[size] * 2 // nodes
    return max(count // (2 if quick else 1), 8), max(count // 10, 6)  # 6: every vector was used once


def program(options, name):
    path = os.path.join(options.build, "bench", name)
    if not os.path.exists(path):
        raise SystemExit(f"{path} is not built; this builds it: ninja -C {options.build} benchmarks")
    return path


def ring(options, name, nodes, size, rate, **environment):
    """A program that is given the pattern of a round, as bench/ring.h tells."""
    where = [] if rate is None else [network.NAMESPACES, network.ADDRESSES]
    return figures.run(program(options, name), nodes, size, *rounds_of(size, nodes, options.quick, rate), *where,
                       **environment)


def sockets(options, nodes, size, rate=None):
    """Plain sockets."""
    return ring(options, "exchange", nodes, size, rate)


def links(options, nodes, size, rate=None):
    """The daemon's links without rounds, training and absorbing."""
    return ring(options, "transport", nodes, size, rate)


def ciphered(options, nodes, size, rate=None):
    """The daemon's links, ciphered."""
    return ring(options, "transport", nodes, size, rate, BENCH_CIPHERED="1")


def cipher(options, nodes, size):
    """The cipher alone, both ways; nothing is sent."""
    return ring(options, "cipher", nodes, size, None)


def gloo(options, nodes, size, kind, rate=None):
    """PyTorch's gloo: `kind` is ring (isend and irecv along the same edges) or allreduce."""
    torch_python()
    where = [{}] * nodes if rate is None else network.PLACES
    return figures.run("/usr/bin/python3", os.path.join(figures.ROOT, "bench/gloo_rounds.py"), kind, nodes,
                       size, *rounds_of(size, nodes, options.quick, rate), json.dumps(where),
                       OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo" if rate is None else "eth0")


def torch_python():
    """Debian's PyTorch, or a reason to skip."""
    if not os.path.exists(figures.TORCH):
        raise figures.Skip("Debian's python3-torch is not installed: apt-get install python3-torch")


def write_images(directory, features):
    """A few random rows of so many bytes, and their labels, as IDX."""
    rows, labels = (os.path.join(directory, name) for name in ("rows.idx", "labels.idx"))
    with open(rows, "wb") as file:
        file.write(struct.pack(">IIII", 0x803, ROWS, 1, features) + os.urandom(ROWS * features))
    with open(labels, "wb") as file:
        file.write(struct.pack(">II", 0x801, ROWS) + bytes(i % 2 for i in range(ROWS)))
    return rows, labels


class IdleFleet(fleets.Fleet):
    """Daemons with a stopwatch in the place of training; each prints its figures."""

    def __init__(self, program_path, nodes, size, rounds, warmup, keys):
        inputs, outputs = SHAPES[size]
        self.program, self.counts = program_path, [str(rounds), str(warmup)]
        super().__init__(nodes)
        rows, labels = write_images(self.directory, inputs - 1)
        for i in range(nodes):
            self.write_configuration(i, {
                "train.epochs": None, "train.rounds": "1G", "train.batch": "1",
                "model.layers": f"dense {outputs}",
                "data.train": rows, "data.labels": labels, "data.label": None, "data.classes": None,
                "data.holdout": None, "data.shards": "none", "optimizer.kind": "sgd",
                "train.checkpoint_seconds": "0", "log.level": "warning", **keys}, {})

    def command(self, node):
        return ["taskset", "--cpu-list", str(figures.core_of(node.index)), self.program, "-c",
                node.configuration, *self.counts]

    def figures(self):
        """What every node prints, in the order of the fleet."""
        end = time.monotonic() + PATIENCE
        results = [None] * self.n
        while None in results:
            for i, node in enumerate(self.nodes):
                lines = [line for line in node.log().splitlines() if line.startswith('{"seconds"')]
                results[i] = json.loads(lines[0]) if lines else None
                if node.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(self.logs())
            time.sleep(0.1)
        return results


class IdleHosts(network.switch.Hosts, IdleFleet):
    """The same, each on a host."""


def daemons(options, nodes, size, rate=None, **keys):
    """Whole daemons: publish, send, receive, absorb, and all that goes with it; no training."""
    kind = IdleFleet if rate is None else IdleHosts
    return results_of(kind(program(options, "sgpd_idle"), nodes, size, *rounds_of(size, nodes, options.quick, rate), keys))


def results_of(fleet):
    """Run a fleet of daemons with a stopwatch."""
    try:
        fleet.start()
        results = fleet.figures()
    finally:
        fleet.close()
    mean = {key: sum(result[key] for result in results) / fleet.n for key in results[0]}
    return {**mean, "seconds": max(result["seconds"] for result in results)}
