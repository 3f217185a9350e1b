#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `[train] guard` costs in speed: the same fleet with it and without, in turn.

Eight daemons mix along the one-peer exponential graph over loopback.
In the first cases they do not train, so the whole cost of a guard shows: the distance of each share is measured while it arrives,
and a clipped share takes one more pass over memory.
In the last case they train an MLP on Fashion-MNIST, and the guard clips about half of the shares.
"""
import os
import time

import figures
from contenders import MODELS, SIZES, daemons
from links import fleets

NODES = 8
GUARD = {"train.guard": "1"}
WARMUP = 100  # rounds
MODEL = "MLP 784-128-10"


def tell(case, taken, unit):
    figures.tell("guard", case, unit, taken["guard"], "without a guard", taken["off"])


def alternate(options, measure):
    """What `measure` finds of a fleet with these keys, of each in turn."""
    return figures.alternate(options.runs, {"guard": lambda: measure(**GUARD), "off": measure})


def mixing(options):
    for size in (4096, 1 << 20) if options.quick else (4096, 1 << 20, 16 << 20):
        taken = alternate(options, lambda size=size, **keys: 1 / daemons(options, NODES, size, **keys)["seconds"])
        tell(f"{NODES} nodes, {SIZES[size]}, without training", taken, "rounds/s")


def train(options, seconds, **keys):
    """Rounds a second of the first node, once all have begun."""
    fleets.SGPD = os.path.join(options.build, "daemon/sgpd")
    fleet = fleets.Fleet(NODES, options={
        "train.epochs": None, "train.rounds": "1G", "train.batch": "32", "train.checkpoint_seconds": "0",
        "model.layers": MODELS[MODEL][0], "optimizer.kind": "sgd", "log.level": "warning",
        "data.train": figures.DATA + "/train-images-idx3-ubyte.gz", "data.labels": figures.DATA + "/train-labels-idx1-ubyte.gz",
        "data.label": None, "data.classes": None, "data.holdout": None, **keys})
    try:
        fleet.start()
        first = fleet.wait_round(0, WARMUP) and fleet.nodes[0].status()["round"]
        begun = time.monotonic()
        time.sleep(seconds)
        return (fleet.nodes[0].status()["round"] - first) / (time.monotonic() - begun)
    finally:
        fleet.close()


def training(options):
    if not os.path.isdir(figures.DATA):
        raise figures.Skip("Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist")
    taken = alternate(options, lambda **keys: train(options, 3 if options.quick else 10, **keys))
    tell(f"{NODES} nodes, {MODEL}, batch 32", taken, "rounds/s")


def measure(options):
    mixing(options)
    figures.attempt("guard", training, options)


figures.main("guard", measure, __doc__)
