#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Test accuracy after 10 epochs of Fashion-MNIST in each precision, by seed, on one thread.

One process trains an MLP 784-128-10 (bench/precision.c). `reference` multiplies bf16's operands as float32: its accuracy
is that of bf16 on every processor, its speed is of no use. bf16 itself is measured where it runs. --runs is the number
of seeds. The last line says by how many points the mean accuracy differs from float32's, and fails above 0.3.
"""
import os
import statistics
import sys

import figures
from contenders import program

EPOCHS, POINTS = 10, 0.3


def train(options, word, seed):
    return figures.run(program(options, "precision"), word, 2 if options.quick else EPOCHS, seed, figures.DATA,
                       timeout=1800)


def measure(options):
    """The mean accuracy by word."""
    if not os.path.exists(figures.DATA):
        raise figures.Skip("Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist")
    print("| seed | precision | accuracy | rows/s |\n| --- | --- | --- | --- |", flush=True)
    found = {"float32": [], "reference": [], "bf16": []}
    for seed in range(1, options.runs + 1):
        for word, accuracies in found.items():
            result = train(options, word, seed)
            if "refused" in result:
                if seed == 1:
                    print(f"| | {word} | | {result['refused']} |", flush=True)
                continue
            accuracies.append(result["accuracy"])
            print(f"| {seed} | {word} | {result['accuracy']:.4f} | {result['rows']:,.0f} |", flush=True)
    return {word: statistics.mean(values) for word, values in found.items() if values}


def main():
    means = figures.measured(measure, __doc__)
    differences = {word: 100 * (mean - means["float32"]) for word, mean in means.items() if word != "float32"}
    print(", ".join(f"{word}: {points:+.2f} points" for word, points in differences.items()))
    sys.exit(any(abs(points) > POINTS for points in differences.values()))


if __name__ == "__main__":
    main()
