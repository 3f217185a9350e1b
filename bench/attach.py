#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One PyTorch script through the daemon, in turn with the same script by DistributedDataParallel over gloo: rows a
second of the whole fleet, over loopback, over links of 100 Mbit/s, and with one node at a quarter of the others'
processor time. Between two exchanges each takes one step with the same batch; one round of ours (one-peer exponential)
mixes pairs, an all-reduce everything. With a slow node ours is `algorithm = agp`, as the page of methods recommends.
"""
import contextlib
import json
import os
import subprocess
import tempfile

import figures
import fleet
import links as network
import quota
from contenders import torch_python

NODES, BATCH = 4, 32
SLOW = (0.1, 0.4, 0.4, 0.4)  # of a core
ATTACHED = {"model.kind": "attached", "model.layers": None, "data.train": None, "data.label": None, "data.classes": None,
            "data.holdout": None, "train.epochs": None, "train.batch": None, "optimizer.learning_rate": None,
            "train.checkpoint_seconds": "0", "log.level": "warning"}


class Hosts(network.switch.Hosts):
    pass


def start(kind, settings):
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=os.path.join(figures.ROOT, "python"),
                       GLOO_SOCKET_IFNAME="eth0" if settings["place"].get("network") else "lo")
    command = ["/usr/bin/python3", os.path.join(figures.ROOT, "bench/attach_steps.py"), kind, json.dumps(settings)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True,
                            preexec_fn=fleet.die_with_parent)


def rows_per_second(processes):
    """Of the whole fleet: each counts for its own time."""
    found = [json.loads(process.communicate(timeout=600)[0].splitlines()[-1]) for process in processes]
    return sum(result["rows"] / result["seconds"] for result in found)


def settings_of(rank, steps, meet, place):
    return {"rank": rank, "nodes": NODES, "batch": BATCH, "steps": steps, "warmup": max(steps // 5, 10), "meet": meet,
            "place": place}


def by_gloo(steps, places_of):
    with tempfile.TemporaryDirectory() as folder:
        return rows_per_second([start("gloo", settings_of(i, steps, folder, places_of[i])) for i in range(NODES)])


def by_sgp(steps, places_of, kind=fleet.Fleet, **options):
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
        return rows_per_second([start("sgp", settings_of(i, steps, os.path.join(f.directory, f"n{i}.attach"), where[i]))
                                for i in range(NODES)])
    finally:
        f.close()


def compare(options, case, steps, places_of, kind=fleet.Fleet, **keys):
    results = figures.alternate(options.runs, {
        "sgp": lambda: by_sgp(steps, places_of, kind, **keys), "gloo": lambda: by_gloo(steps, places_of)})
    figures.tell("attach", case, "rows/s", results["sgp"], "DistributedDataParallel over gloo", results["gloo"])


def between_hosts(options):
    with network.rate(10**8):
        compare(options, "4 nodes, links of 100 Mbit/s", 20 if options.quick else 60, network.PLACES, Hosts)


def with_a_slow_node(options):
    with contextlib.ExitStack() as stack:
        groups = stack.enter_context(quota.groups(SLOW))
        compare(options, "4 nodes, one at a quarter of the others' processor time", 50 if options.quick else 150,
                [{"group": group.path} for group in groups], **{"train.algorithm": "agp"})


def measure(options):
    torch_python()
    fleet.SGPD = os.path.join(options.build, "daemon/sgpd")
    compare(options, "4 nodes, loopback", 100 if options.quick else 400, [{}] * NODES)
    figures.attempt("attach", with_a_slow_node, options)
    figures.attempt("attach", between_hosts, options)


figures.main("attach", measure, __doc__)
