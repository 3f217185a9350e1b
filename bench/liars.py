#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy beside a liar: eight nodes in the simulator, one lies in every share, with a guard and without.

The rows are the digits of scikit-learn (8 x 8, 1,437 to train and 360 held out). The model is an MLP 64-32-10, and takes 240 steps
of 16 rows at rate 0.1 on the one-peer exponential graph (bench/liars.c). The honest nodes have all rows. Prints a table of the mean
accuracy of the seven honest models. --runs is the number of seeds.
"""
import gzip
import os
import statistics
import struct
import tempfile

import figures
from contenders import program

TRAIN = 1437
SHARDS = {"iid": "IID", "dirichlet:1": "Dirichlet(1)", "sorted": "sorted"}
# The numbers of the lies in sgp/sim.h; 0: nobody lies.
LIES = {"nobody lies": 0, "the negative": 1, "ten times": 2, "noise": 3, "`alie`": 6, "`ipm`": 7, "`drift`": 8, "`dissensus`": 9}


def write(folder, part, pixels, labels):
    """As Fashion-MNIST has them; 16 is white."""
    rows = bytes(round(value * 255 / 16) for row in pixels for value in row)
    with gzip.open(f"{folder}/{part}-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">IIII", 0x803, len(labels), 8, 8) + rows)
    with gzip.open(f"{folder}/{part}-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">II", 0x801, len(labels)) + bytes(labels))


def write_digits(folder):
    try:
        import numpy
        from sklearn import datasets
    except ImportError as reason:
        raise figures.Skip("scikit-learn is not installed: apt-get install python3-sklearn") from reason
    table = datasets.load_digits()
    order = numpy.random.default_rng(0).permutation(len(table.target))
    pixels, labels = table.data[order].tolist(), table.target[order].tolist()
    write(folder, "train", pixels[:TRAIN], labels[:TRAIN])
    write(folder, "t10k", pixels[TRAIN:], labels[TRAIN:])


def accuracy(options, folder, shards, guard, lie):
    """The mean over the seeds."""
    found = [figures.run(program(options, "liars"), folder, shards, guard, lie, seed) for seed in range(1, options.runs + 1)]
    return statistics.mean(result["accuracy"] for result in found)


def measure(options):
    print("| rows | guard | " + " | ".join(LIES) + " |\n| --- | --- |" + " ---: |" * len(LIES), flush=True)
    with tempfile.TemporaryDirectory(prefix="liars-") as folder:
        write_digits(folder)
        for shards, name in SHARDS.items():
            for guard in (0, 1):
                cells = [f"{accuracy(options, folder, shards, guard, lie):.3f}" for lie in LIES.values()]
                print("| " + " | ".join([name, str(guard or "off"), *cells]) + " |", flush=True)


if __name__ == "__main__":
    figures.measured(measure, __doc__)
