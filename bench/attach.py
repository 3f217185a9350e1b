#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One PyTorch script through the daemon, in turn with the same script by DistributedDataParallel over gloo.

The measure is seconds until the fleet's last 100 batches had this loss in the mean.
The cases are loopback, links of 100 Mbit/s, and one node at a quarter of the others' processor time.
Between two exchanges each takes one step with the same batch.
One round of sgpd (one-peer exponential) mixes pairs, an all-reduce mixes all nodes.
With a slow node sgpd uses `algorithm = agp`, as the page of methods recommends.
Another case has 1.86 million parameters and 12 steps, and measures the seconds of all: first parameters, steps and end.

The other figures are the cost of a program for its daemon.
The first is the time of a turn in which the program does nothing.
Of 4 KiB, a turn is two jobs of microseconds, one frame each way.
The second is the most memory, in vectors of the parameters.
These are x, the estimate that was handed out, the shared memory, and one while the model is saved at the end.
The third is how often a share's bytes pass between memory and the processor.
"""
import collections
import contextlib
import json
import os
import re
import subprocess
import tempfile

import figures
import fleet
import links as network
import quota
from contenders import torch_python
from counted import ATTACHED, AttachedFleet, CountedFleet, TrainingFleet, passes, turns

NODES, BATCH = 4, 32
HIDDEN, WIDE = 512, 1024  # units of a layer
LOSS, LAST = 0.6, 100  # to come to, in the mean of so many batches of the fleet
SLOW = (0.1, 0.4, 0.4, 0.4)  # of a core


def start(kind, settings):
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=os.path.join(figures.ROOT, "python"),
                       GLOO_SOCKET_IFNAME="eth0" if settings["place"].get("network") else "lo")
    command = ["/usr/bin/python3", os.path.join(figures.ROOT, "bench/attach_steps.py"), kind, json.dumps(settings)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True,
                            preexec_fn=fleet.die_with_parent)


def outcomes(processes):
    return [json.loads(process.communicate(timeout=600)[0].splitlines()[-1]) for process in processes]


def seconds_in_all(processes):
    """From when the last of them was ready to meet the others."""
    found = outcomes(processes)
    return max(result["end"] for result in found) - max(result["ready"] for result in found)


def seconds_to_loss(processes):
    """From when the last of them began."""
    found = outcomes(processes)
    begin = max(result["begin"] for result in found)
    last = collections.deque(maxlen=LAST)
    for when, loss in sorted(pair for result in found for pair in result["losses"]):
        last.append(loss)
        if len(last) == LAST and sum(last) <= LOSS * LAST:
            return when - begin
    raise RuntimeError(f"the loss did not come to {LOSS}: {sum(last) / len(last)}")


def settings_of(rank, steps, hidden, meet, place):
    return {"rank": rank, "nodes": NODES, "batch": BATCH, "steps": steps, "hidden": hidden, "meet": meet, "place": place}


def by_gloo(steps, places_of, hidden, judge):
    with tempfile.TemporaryDirectory() as folder:
        return judge([start("gloo", settings_of(i, steps, hidden, folder, places_of[i])) for i in range(NODES)])


def by_sgp(steps, places_of, hidden, judge, kind=fleet.Fleet, **options):
    """The daemons of a node are where its program is, but for the network of a program, which speaks to no other."""
    own = {i: {"control.attach": f"n{i}.attach"} for i in range(NODES)}
    f = kind(NODES, options={**ATTACHED, **options}, own=own)
    try:
        f.start()
        for node, place in zip(f.nodes, places_of):
            if "group" in place:
                with open(os.path.join(place["group"], "cgroup.procs"), "w", encoding="utf-8") as file:
                    file.write(str(node.process.pid))
        f.wait("the sockets", lambda: all(os.path.exists(os.path.join(f.directory, f"n{i}.attach")) for i in range(NODES)))
        where = [{key: value for key, value in place.items() if key == "group"} for place in places_of]
        paths = [os.path.join(f.directory, f"n{i}.attach") for i in range(NODES)]
        return judge([start("sgp", settings_of(i, steps, hidden, paths[i], where[i])) for i in range(NODES)])
    finally:
        f.close()


def compare(options, case, steps, places_of, kind=fleet.Fleet, hidden=HIDDEN, judge=seconds_to_loss, **keys):
    results = figures.alternate(options.runs, {
        "sgp": lambda: by_sgp(steps, places_of, hidden, judge, kind, **keys),
        "gloo": lambda: by_gloo(steps, places_of, hidden, judge)})
    figures.tell("attach", case, "s", results["sgp"], "DistributedDataParallel over gloo", results["gloo"])


def between_hosts(options):
    with network.rate(10**8):
        compare(options, "4 nodes, links of 100 Mbit/s", 300, network.PLACES, network.switch.Hosts)
        compare(options, "4 nodes, links of 100 Mbit/s, 4 local steps", 300, network.PLACES, network.switch.Hosts,
                **{"train.local_steps": "4"})
        compare(options, "4 nodes, links of 100 Mbit/s, 12 steps of 1.86 million parameters in all", 12, network.PLACES,
                network.switch.Hosts, WIDE, seconds_in_all)


def with_a_slow_node(options):
    with contextlib.ExitStack() as stack:
        groups = stack.enter_context(quota.groups(SLOW))
        compare(options, "4 nodes, one at a quarter of the others' processor time", 400,
                [{"group": group.path} for group in groups], **{"train.algorithm": "agp"})


def alone(floats, count):
    """So many turns without a step, of a node without neighbours: the microseconds of one, and the most bytes of memory that
    the daemon had."""
    f = fleet.Fleet(1, phases=[[]], options=ATTACHED, own={0: {"control.attach": "n0.attach"}})
    try:
        f.start()
        path = os.path.join(f.directory, "n0.attach")
        f.wait("the socket", lambda: os.path.exists(path))
        us = json.loads(turns(path, floats, count).communicate(timeout=300)[0])["us"]
        with open(f"/proc/{f.nodes[0].process.pid}/status", encoding="utf-8") as file:
            return us, int(re.search(r"VmHWM:\s*(\d+) kB", file.read()).group(1)) << 10
    finally:
        f.close()


def turn(options):
    figures.tell("attach", "1 node, 4 KiB: a turn without a step", "us",
                 [alone(1024, 20000)[0] for _ in range(options.runs)])


def vectors(options):
    """Of the parameters: x, the estimate that the program was given, the memory that both see, and one while the model is
    saved."""
    floats = 25_000_000
    figures.tell("attach", "1 node, 25 million parameters: the most memory that it has", "vectors",
                 [alone(floats, 12)[1] / (4 * floats)])


def memory(options):
    """What the daemons fetch for each byte of a share, without the program, beside daemons whose own model takes a step
    of SGD on one row, and beside those whose own takes none."""
    nodes, size = 2, 16 << 20
    ours = passes(options, nodes, size, AttachedFleet)
    for words, kind in (("with its step", TrainingFleet), ("without a step", CountedFleet)):
        figures.tell("attach", "2 nodes, 16 MiB: passes of a byte", "passes", [ours],
                     f"a model of the daemon's own, {words}", [passes(options, nodes, size, kind)])


def measure(options):
    torch_python()
    fleet.SGPD = os.path.join(options.build, "daemon/sgpd")
    figures.attempt("attach", turn, options)
    figures.attempt("attach", vectors, options)
    figures.attempt("attach", memory, options)
    compare(options, "4 nodes, loopback", 400, [{}] * NODES)
    if not options.quick:
        figures.attempt("attach", with_a_slow_node, options)
        figures.attempt("attach", between_hosts, options)


figures.main("attach", measure, __doc__)
