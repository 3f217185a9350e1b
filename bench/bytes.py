#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fewer bytes: seconds until all nodes classify 88% of Fashion-MNIST's test rows (80% with delay).
Each form of compression of shares runs beside PyTorch's DistributedDataParallel with its compression of gradients.

Four nodes run on four hosts, with the model and the settings of `accuracy`.
The links have 100 Mbit/s, or 1 Gbit/s, where fewer bytes help less.
Others have 20 ms each way, where nodes do not wait for bytes.
"""
import os

import accuracy
import figures
import links
from contenders import torch_python
from owned import Owned

OURS = {"plain": {}, "fp16": {"network.compression": "fp16"}, "int8": {"network.compression": "int8"},
        "int4:64": {"network.compression": "int4:64"},
        "int8, a share every 16 steps": {"network.compression": "int8", **accuracy.THIN}}
OWNERS = "4 owners, int4 both ways every 8 steps"
OWNED = {"network.compression": "int4", "network.copies": "int4", "train.local_steps": "8", "outer.kind": "slowmo",
         "outer.learning_rate": "1", "outer.momentum": "0.5"}
TWO = ("plain", "int8")  # where bytes matter less
DDP = {"DistributedDataParallel": "none", "its fp16 hook": "fp16", "PowerSGD of rank 1": "powersgd 1",
       "PowerSGD of rank 4": "powersgd 4"}


class Owners(Owned, links.switch.Hosts):
    """On each host a node that trains, and owns a part of the model."""

    def __init__(self, n, own=None, options=None):
        del own
        super().__init__(n, owners=range(n), members=True, says=["outer=true"], **options)


def owners(options, seed, goals):
    place = accuracy.Place(hosts=True)
    place.fleet = Owners
    return accuracy.ours(options, place, 4, seed, OWNED, goals=goals)


def case(options, words, place, chosen, hooks, goals=(0.88,)):
    def ours(name):
        if name == OWNERS:
            return lambda seed: owners(options, seed, goals)
        return lambda seed: accuracy.ours(options, place, 4, seed, OURS[name], goals=goals)

    def theirs(name):
        return lambda seed: accuracy.torch(place, 4, seed, hook=DDP[name], goals=goals)

    contenders = {**{name: ours(name) for name in chosen}, **{name: theirs(name) for name in hooks}}
    pairs = [(f", {name}", name, hook) for name in chosen for hook in hooks]
    accuracy.compare(options, words, contenders, pairs, goals, target="bytes")


def over_thin_links(options):
    with links.rate(10**8):
        case(options, "links of 100 Mbit/s", accuracy.Place(hosts=True), [*OURS, OWNERS], list(DDP))


def over_links(options):
    with links.rate(10**9):
        case(options, "links of 1 Gbit/s", accuracy.Place(hosts=True), TWO, list(DDP)[:2])


def over_delay(options):
    with links.delay(options, accuracy.DELAY):
        case(options, "20 ms each way", accuracy.Place(hosts=True), TWO, list(DDP)[:2], accuracy.DELAY_GOALS)


def measure(options):
    torch_python()
    if not os.path.exists(figures.DATA):
        raise figures.Skip("Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist")
    for each in (over_thin_links, over_links, over_delay):
        figures.attempt("bytes", each, options)


if __name__ == "__main__":
    figures.main("bytes", measure, __doc__)
