# SPDX-License-Identifier: Apache-2.0
"""How often a share's bytes pass between memory and the processor, both sides together, in whole daemons.

Counted by cachegrind with a last cache of 2 MiB, the second level of a core of today: each line that the daemons
fetch from beyond it, in so many rounds more than in others. What the kernel copies is not among them; that is the same
for any daemon, and `copies of a byte` counts it.
"""
import os
import re
import shutil
import time

import figures
from contenders import IdleFleet, program

CACHE = "2097152,16,64"  # bytes, ways, bytes of a line
LINE = 64
ROUNDS = (4, 12)
PATIENCE = 600


class CountedFleet(IdleFleet):
    def __init__(self, options, nodes, size, rounds):
        super().__init__(program(options, "sgpd_idle"), nodes, size, 1 << 30, 0, {
            "train.rounds": str(rounds), "train.final_cycles": "0", "train.when_done": "exit"})

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


def passes(options, nodes, size):
    """Fetched for each byte of a share."""
    if shutil.which("valgrind") is None:
        raise figures.Skip("valgrind is not installed: apt-get install valgrind")
    fetched = []
    for rounds in ROUNDS:
        fleet = CountedFleet(options, nodes, size, rounds)
        try:
            fetched.append(fleet.fetched())
        finally:
            fleet.close()
    return (fetched[1] - fetched[0]) / ((ROUNDS[1] - ROUNDS[0]) * nodes * size)
