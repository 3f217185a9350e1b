#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Step rules with sixteen times the batch: test accuracy after 12 epochs of Fashion-MNIST, in 348 steps of 2,048 rows.

One process trains an MLP 196-64-10 on images of 14 x 14 (bench/train_rule.c), with an epoch of warm-up and then a cosine. Each
rule has a grid of rates, which one seed decides; the best rate is then printed as the mean over all seeds. Beside them stand batches
of 128 rows with Nesterov's rule, 5,568 steps, and the rate that linear scaling makes of that one's. --runs is the number of seeds.
"""
import functools
import os
import statistics

import figures
from contenders import program

SMALL, LARGE, EPOCHS = 128, 2048, 12
SMALL_RATE = 0.1
GRIDS = {
    "nesterov": (0.2, 0.4, 0.8, SMALL_RATE * LARGE / SMALL),
    "adamw": (0.012, 0.024, 0.048, 0.096, 0.192),
    "lars": (10, 20, 40, 80),
    "lamb": (0.01, 0.02, 0.04, 0.08),
}


def accuracy(options, word, rate, batch, seed):
    """Of the test rows; that of a guess if the model diverges."""
    result = figures.run(program(options, "train_rule"), word, rate, batch, EPOCHS, seed, figures.DATA)
    return 0.1 if result["diverged"] else result["accuracy"]


def mean(options, word, rate, batch):
    return statistics.mean(accuracy(options, word, rate, batch, seed) for seed in range(1, options.runs + 1))


def measure(options):
    if not os.path.exists(figures.DATA):
        raise figures.Skip("Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist")
    write = functools.partial(print, flush=True)
    write("| batch | rule | by rate, one seed | best rate | mean of all seeds |\n| --- | --- | --- | --- | --- |")
    write(f"| {SMALL} | nesterov | | {SMALL_RATE} | {mean(options, 'nesterov', SMALL_RATE, SMALL):.4f} |")
    for word, rates in GRIDS.items():
        found = {rate: accuracy(options, word, rate, LARGE, 1) for rate in rates}
        by_rate = ", ".join(f"{rate:g}: {value:.4f}" for rate, value in found.items())
        best = max(found, key=found.get)
        write(f"| {LARGE} | {word} | {by_rate} | {best:g} | {mean(options, word, best, LARGE):.4f} |")


def main():
    figures.measured(measure, __doc__)


if __name__ == "__main__":
    main()
