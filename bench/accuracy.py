#!/usr/bin/python3
"""Seconds to a test accuracy on Fashion-MNIST over plain loopback, in turn with PyTorch's
DistributedDataParallel over gloo: the same MLP 784-128-10, rows, batch, rule, rate and schedule.

Both count from the first step and judge the 10,000 test rows at the end of every epoch: rank 0 of
PyTorch once, the daemons each on its own; a daemon fleet is there when its slowest node is.
"""
import csv
import os
import sys

import figures
from contenders import torch_python

sys.path.insert(0, os.path.join(figures.ROOT, "tests/system"))
import fleet as fleets  # noqa: E402

GOALS = (0.85, 0.88)
BATCH, EPOCHS, RATE = 32, 10, 0.05


def reach(history, goal):
    """The seconds at which a history of (seconds, accuracy) first reaches the goal."""
    return next((seconds for seconds, accuracy in history if accuracy >= goal), None)


def ours(options, nodes):
    """A fleet of daemons through all epochs: seconds by goal, of the slowest node."""
    fleets.SGPD = os.path.join(options.build, "daemon/sgpd")
    fleet = fleets.Fleet(nodes, options={
        "train.epochs": str(EPOCHS), "train.batch": str(BATCH), "model.layers": "dense 128 relu, dense 10",
        "data.train": f"{figures.DATA}/train-images-idx3-ubyte.gz",
        "data.labels": f"{figures.DATA}/train-labels-idx1-ubyte.gz",
        "data.test": f"{figures.DATA}/t10k-images-idx3-ubyte.gz",
        "data.test_labels": f"{figures.DATA}/t10k-labels-idx1-ubyte.gz",
        "data.label": None, "data.classes": None, "data.holdout": None, "optimizer.learning_rate": str(RATE),
        "optimizer.momentum": "0.9", "optimizer.weight_decay": "1e-4", "optimizer.schedule": "cosine",
        "optimizer.warmup_epochs": "1"})
    try:
        fleet.start()
        began = begin(fleet)
        fleet.wait_state("finished", timeout=600)
        histories = [history(node, began[node.name]) for node in fleet.nodes]
        return {goal: max(reach(rows, goal) for rows in histories) for goal in GOALS}
    finally:
        fleet.close()


def begin(fleet):
    """The uptime at which each node was first seen to train, by name."""
    began = {}

    def all_began():
        for node in fleet.nodes:
            status = node.status()
            if status and status["state"] != "joining":
                began.setdefault(node.name, status["uptime_seconds"])
        return len(began) == fleet.n

    fleet.wait("all nodes to train", all_began, 240)
    return began


def history(node, began):
    """(seconds since the first round, test accuracy) of a node's epochs."""
    with open(os.path.join(node.directory, "history.csv"), encoding="utf-8") as file:
        return [(float(row["seconds"]) - began, float(row["test_accuracy"])) for row in csv.DictReader(file)]


def torch(_, nodes):
    torch_python()
    program = os.path.join(figures.ROOT, "bench/ddp.py")
    result = figures.run("/usr/bin/python3", program, nodes, BATCH, EPOCHS, GOALS[-1], RATE, figures.DATA,
                         OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", timeout=600)
    return {goal: reach(result["history"], goal) for goal in GOALS}


def measure(options):
    if not os.path.exists(figures.DATA):
        raise figures.Skip("Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist")
    for nodes in (4,) if options.quick else (4, 8):
        results = figures.alternate(options.runs, {
            "ours": lambda: ours(options, nodes), "DistributedDataParallel": lambda: torch(options, nodes)})
        for goal in GOALS:
            figures.tell("accuracy", f"{nodes} nodes, batch {BATCH} each: to {goal:.0%}", "s",
                         [result[goal] for result in results["ours"]], "DistributedDataParallel",
                         [result[goal] for result in results["DistributedDataParallel"]])


figures.main("accuracy", measure, __doc__)
