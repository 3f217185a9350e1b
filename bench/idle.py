#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of an idle daemon: in fleets that are paused, in fleets that have finished, and paused beside nodes that train.

Processor time is that of all threads (/proc/PID/task/*/schedstat).
Wake-ups are the times that a thread gave up the processor by itself.
Values are medians over the nodes, with the extremes.
The goal is below 0.1% of a core.
"""
import os
import time

import figures
import fleet as fleets

SIZES = (2, 4, 8)
ENDLESS = {"train.epochs": None, "train.rounds": "1G", "log.level": "warning"}
SETTLE_SECONDS = 3  # what the last round began ends, and the compute threads go to sleep


def watch(nodes, seconds):
    """Of each node, the share of a core in percent, and wake-ups a second."""
    begin, before = time.monotonic(), [figures.spent(node.process.pid) for node in nodes]
    time.sleep(seconds)
    after, taken = [figures.spent(node.process.pid) for node in nodes], time.monotonic() - begin
    return ([100 * (b[0] - a[0]) / taken for a, b in zip(before, after)],
            [(b[1] - a[1]) / taken for a, b in zip(before, after)])


def tell(case, found):
    figures.tell("idle", f"{case}: processor time of a node", "% of a core", found[0])
    figures.tell("idle", f"{case}: wake-ups of a node", "1/s", found[1])


def begin(nodes, options):
    fleet = fleets.Fleet(nodes, options=options)
    fleet.start()
    return fleet


def pause(nodes):
    for node in nodes:
        node.json("/v1/pause", "POST")


def measure_still(seconds):
    """Whole fleets that stand still, all watched together."""
    paused = {n: begin(n, ENDLESS) for n in SIZES}
    finished = {n: begin(n, {"train.epochs": "1", "log.level": "warning"}) for n in SIZES}
    try:
        for fleet in paused.values():
            fleet.wait_round(0, 10)
            pause(fleet.nodes)
            fleet.wait_state("paused")
        for fleet in finished.values():
            fleet.wait_state("finished")
        time.sleep(SETTLE_SECONDS)
        kinds = {"paused": paused, "finished": finished}
        order = [(kind, n, node) for kind in kinds for n in SIZES for node in kinds[kind][n].nodes]
        found = watch([node for _, _, node in order], seconds)
        for kind in kinds:
            for n in SIZES:
                own = [i for i, (k, m, _) in enumerate(order) if (k, m) == (kind, n)]
                tell(f"{n} daemons, all {kind}", [[values[i] for i in own] for values in found])
    finally:
        for fleet in [*paused.values(), *finished.values()]:
            fleet.close()


def measure_among_others(nodes, seconds):
    """One that is paused while its neighbours go on: they beat to it, and it to them."""
    fleet = begin(nodes, ENDLESS)
    try:
        fleet.wait_round(0, 10)
        pause(fleet.nodes[:1])
        fleet.wait_state("paused", [0])
        time.sleep(SETTLE_SECONDS)
        tell(f"{nodes} daemons, one paused and the others training", watch(fleet.nodes[:1], seconds))
    finally:
        fleet.close()


def measure(options):
    fleets.SGPD = os.path.join(options.build, "daemon/sgpd")
    seconds = 5 if options.quick else 30
    measure_still(seconds)
    for n in SIZES[1:]:
        measure_among_others(n, seconds / 3)


figures.main("idle", measure, __doc__)
