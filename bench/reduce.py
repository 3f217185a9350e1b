#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""All-reduce as a topology file: every node gets the mean of all, by each schedule, with whole daemons.
The baseline is gloo's all-reduce, which is PyTorch's, in turn.

The nodes do not train.
The time is that of a cycle: all nodes enter, and hold the mean at the end.
The cases are loopback, and hosts whose links have a rate or a delay (as root; see bench/links.py)."""
import os
import subprocess

import figures
import links as network
from contenders import RATES, SIZES, IdleFleet, gloo, program, rounds_of, torch_python

DELAY = 0.01  # seconds
DELAYED = (4096, 1 << 20)
DELAYED_ROUNDS = 40
SCHEDULES = ("direct", "direct --pieces 2", "halving", "ring", "ring --pieces 2", "doubling", "tree")


class ScheduledFleet(IdleFleet):
    """Idle daemons on a generated file."""

    def __init__(self, options, family, nodes, size, rate):
        self.family, self.sgpctl = family, os.path.join(options.build, "ctl", "sgpctl")
        super().__init__(program(options, "sgpd_idle"), nodes, size, *rounds_of(size, nodes, options.quick, rate), {})

    def write_topology(self, index):
        family, *more = self.family.split()
        text = subprocess.run([self.sgpctl, "topology", "generate", family, str(self.n), *more],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        for i in range(self.n):
            text = text.replace(f"  n{i};\n", f'  n{i} [address="{self.host(i)}:{self.ports[i]}"];\n', 1)
        with open(os.path.join(self.directory, f"n{index}.dot"), "w", encoding="utf-8") as file:
            file.write(text)


class ScheduledHosts(network.switch.Hosts, ScheduledFleet):
    """The same, each on a host."""


def reduce(options, schedule, nodes, size, rate):
    kind = ScheduledFleet if rate is None else ScheduledHosts
    fleet = kind(options, "all-reduce-" + schedule, nodes, size, rate)
    try:
        fleet.start()
        results = fleet.figures()
    finally:
        fleet.close()
    return {"seconds": max(result["seconds"] for result in results)}


def compare(options, nodes, size, rate=None, where=""):
    contenders = {schedule: lambda schedule=schedule: reduce(options, schedule, nodes, size, rate)
                  for schedule in SCHEDULES}
    contenders["gloo"] = lambda: gloo(options, nodes, size, "allreduce", rate)
    taken = figures.alternate(options.runs, contenders)
    theirs = [result["seconds"] * 1e3 for result in taken["gloo"]]
    for schedule in SCHEDULES:
        figures.tell("reduce", f"{nodes} nodes, {SIZES[size]}{where}, all-reduce-{schedule}", "ms",
                     [result["seconds"] * 1e3 for result in taken[schedule]], "gloo all-reduce", theirs)


def between_hosts(options):
    for rate, (link, sizes) in RATES.items():
        with network.rate(rate):
            for size in sizes:
                compare(options, 4, size, rate, f", links of {link}")


def over_delay(options):
    with network.delay(options, DELAY):
        for size in DELAYED:
            compare(options, 4, size, 8 * size * DELAYED_ROUNDS // 3, f", {DELAY * 1e3:g} ms of delay each way")


def measure(options):
    torch_python()
    for nodes in (4,) if options.quick else (2, 4):
        for size in list(SIZES)[:3]:
            compare(options, nodes, size)
    figures.attempt("reduce", between_hosts, options)
    figures.attempt("reduce", over_delay, options)


figures.main("reduce", measure, __doc__)
