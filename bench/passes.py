# SPDX-License-Identifier: Apache-2.0
"""How often a share's bytes pass between memory and the processor, both sides together, in whole daemons.

Counted by cachegrind with a last cache of 2 MiB, the second level of a core of today: each line that the daemons
fetch from beyond it, in so many rounds more than in others. What the kernel copies is not among them; that is the same
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


class Counted:
    """A fleet whose daemons run under cachegrind, until they end."""

    def counts_of(self, node):
        return os.path.join(self.directory, node.name + ".cachegrind")

    def command(self, node):
        return ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes", "--LL=" + CACHE,
                "--cachegrind-out-file=" + self.counts_of(node), self.program, "-c", node.configuration, *self.counts]

    def fetched(self):
        """Bytes from beyond the cache, of all nodes, once they have ended."""
        self.start()
        end = time.monotonic() + PATIENCE
        while any(node.process.poll() is None for node in self.nodes):
            if time.monotonic() > end:
                raise RuntimeError(self.logs())
            time.sleep(0.1)
        total = 0
        for node in self.nodes:
            with open(self.counts_of(node), encoding="utf-8") as file:
                text = file.read()
            events = re.search(r"^events: (.*)$", text, re.M).group(1).split()
            values = re.search(r"^summary: (.*)$", text, re.M).group(1).split()
            total += sum(int(value) for event, value in zip(events, values) if event in ("DLmr", "DLmw"))
        return LINE * total


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

    def fetched(self):
        total = super().fetched()
        for process in self.programs:
            process.communicate(timeout=PATIENCE)
        return total


def turns(path, floats, count):
    """A program that takes so many turns."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=os.path.join(figures.ROOT, "python"))
    command = ["/usr/bin/python3", os.path.join(figures.ROOT, "bench/attach_turns.py"), path, str(floats), str(count)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True,
                            preexec_fn=fleets.die_with_parent)


def passes(options, nodes, size, kind=CountedFleet):
    """Fetched for each byte of a share."""
    if shutil.which("valgrind") is None:
        raise figures.Skip("valgrind is not installed: apt-get install valgrind")
    fetched = []
    for rounds in ROUNDS:
        fleet = kind(options, nodes, size, rounds)
        try:
            fetched.append(fleet.fetched())
        finally:
            fleet.close()
    return (fetched[1] - fetched[0]) / ((ROUNDS[1] - ROUNDS[0]) * nodes * size)
