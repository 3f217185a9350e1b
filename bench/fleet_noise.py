#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Step rules on n nodes beside one process with the batches of all: test accuracy and losses after 6 epochs of Fashion-MNIST.

One process trains an MLP 196-64-10 on images of 14 x 14 (bench/train_rule.c) with batches of 128 rows, and as many learners as a fleet
has nodes with 128 / n rows each, averaged along the one-peer exponential graph after each step. All have the same rate, an epoch of
warm-up and then a cosine. `[optimizer] noise` of the fleets is node or fleet. Printed are means over the seeds. --runs is their number.
"""
import functools
import os
import statistics

import figures
from contenders import program

BATCH, EPOCHS = 128, 6
RATES = (("adamw", 0.001), ("adamw", 0.003), ("lamb", 0.005), ("lamb", 0.01), ("rmsprop", 0.0003), ("lars", 5))
FLEETS = ((1, "node"), (4, "node"), (4, "fleet"), (8, "node"), (8, "fleet"))


def runs(options, word, rate, nodes, noise):
    """What bench/train_rule.c prints, for each seed."""
    return [figures.run(program(options, "train_rule"), word, rate, BATCH, EPOCHS, seed, figures.DATA, nodes, noise)
            for seed in range(1, options.runs + 1)]


def measure(options):
    if not os.path.exists(figures.DATA):
        raise figures.Skip("Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist")
    write = functools.partial(print, flush=True)
    write("| rule | rate | nodes | noise | accuracy | loss of epoch 1 | 2 | 6 |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for word, rate in RATES:
        for nodes, noise in FLEETS:
            found = runs(options, word, rate, nodes, noise)
            accuracy = statistics.mean(run["accuracy"] for run in found)
            losses = [statistics.mean(run["losses"][epoch] for run in found) for epoch in (0, 1, EPOCHS - 1)]
            numbers = " | ".join(f"{number:.4f}" for number in [accuracy, *losses])
            write(f"| {word} | {rate} | {nodes} | {noise if nodes > 1 else ''} | {numbers} |")


def main():
    figures.measured(measure, __doc__)


if __name__ == "__main__":
    main()
