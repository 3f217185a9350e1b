# SPDX-License-Identifier: Apache-2.0
"""What daemons and simulations cost, counted by cachegrind instead of measured, so that a noisy machine changes nothing.

Each count is the difference of two runs with different numbers of rounds. Nothing of the kernel is in it.
Passes are how often a share's bytes pass between memory and the processor, both sides together: each line that the
daemons fetch from beyond a last cache of 2 MiB, the second level of a core of today. What the kernel copies is the same
for any daemon, and `copies of a byte` counts it.
"""
import os
import re
import shutil
import subprocess
import time

import figures
import fleet as fleets
from contenders import IdleFleet, program

CACHE = "2097152,16,64"  # bytes, ways, bytes of a line
LINE = 64
ROUNDS = (4, 12)
PATIENCE = 600
ATTACHED = {"model.kind": "attached", "model.layers": None, "data.train": None, "data.label": None, "data.classes": None,
            "data.holdout": None, "train.epochs": None, "train.batch": None, "optimizer.learning_rate": None,
            "train.checkpoint_seconds": "0", "log.level": "warning"}


def keys_of(rounds):
    return {"train.rounds": str(rounds), "train.final_cycles": "0", "train.when_done": "exit"}


def required():
    if shutil.which("valgrind") is None:
        raise figures.Skip("valgrind is not installed: apt-get install valgrind")


def cachegrind(path, *options):
    """The beginning of a command whose counts go to this file."""
    return ["valgrind", "-q", "--tool=cachegrind", "--cachegrind-out-file=" + path, *options]


def read(path, wanted):
    """The sum of these events in a file of counts."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    events = re.search(r"^events: (.*)$", text, re.M).group(1).split()
    values = re.search(r"^summary: (.*)$", text, re.M).group(1).split()
    return sum(int(value) for event, value in zip(events, values) if event in wanted)


class Counted:
    """A fleet whose daemons run under cachegrind, until they end."""

    def counts_of(self, node):
        return os.path.join(self.directory, node.name + ".cachegrind")

    def command(self, node):
        return [*cachegrind(self.counts_of(node), "--cache-sim=yes", "--LL=" + CACHE), self.program, "-c", node.configuration,
                *self.counts]

    def count(self, wanted):
        """The sum of these events of all nodes, once they have ended."""
        self.start()
        end = time.monotonic() + PATIENCE
        while any(node.process.poll() is None for node in self.nodes):
            if time.monotonic() > end:
                raise RuntimeError(self.logs())
            time.sleep(0.1)
        return sum(read(self.counts_of(node), wanted) for node in self.nodes)


class CountedFleet(Counted, IdleFleet):
    def __init__(self, options, nodes, size, rounds):
        super().__init__(program(options, "sgpd_idle"), nodes, size, 1 << 30, 0, keys_of(rounds))


class TrainingFleet(CountedFleet):
    """... and that take a step on one row in each round."""

    def __init__(self, options, nodes, size, rounds):
        super().__init__(options, nodes, size, rounds)
        self.program, self.counts = os.path.join(options.build, "daemon/sgpd"), ()


class AttachedFleet(Counted, fleets.Fleet):
    """... and to each of which a program is attached, that takes turns and no steps."""
    counts = ()

    def __init__(self, options, nodes, size, rounds):
        self.program, self.size, self.rounds = os.path.join(options.build, "daemon/sgpd"), size, rounds
        own = {i: {"control.attach": f"n{i}.attach"} for i in range(nodes)}
        super().__init__(nodes, options={**ATTACHED, **keys_of(rounds)}, own=own)

    def start(self):
        super().start()
        paths = [os.path.join(self.directory, f"n{i}.attach") for i in range(self.n)]
        self.wait("the sockets", lambda: all(map(os.path.exists, paths)))
        self.programs = [turns(path, self.size // 4, self.rounds) for path in paths]

    def count(self, wanted):
        total = super().count(wanted)
        for process in self.programs:
            process.communicate(timeout=PATIENCE)
        return total


def turns(path, floats, count):
    """A program that takes so many turns."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=os.path.join(figures.ROOT, "python"))
    command = ["/usr/bin/python3", os.path.join(figures.ROOT, "bench/attach_turns.py"), path, str(floats), str(count)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True,
                            preexec_fn=fleets.die_with_parent)


def of_a_round(options, nodes, size, rounds, wanted, kind=CountedFleet):
    """How many of these events a node has in a round."""
    required()
    counts = []
    for number in rounds:
        fleet = kind(options, nodes, size, number)
        try:
            counts.append(fleet.count(wanted))
        finally:
            fleet.close()
    return (counts[1] - counts[0]) / (rounds[1] - rounds[0]) / nodes


def passes(options, nodes, size, kind=CountedFleet):
    """Fetched for each byte of a share."""
    return LINE * of_a_round(options, nodes, size, ROUNDS, ("DLmr", "DLmw"), kind) / size


def instructions(options, nodes, size):
    """Of a node in a round without training."""
    return of_a_round(options, nodes, size, [50 * number for number in ROUNDS], ("Ir",))
