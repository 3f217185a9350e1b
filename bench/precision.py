#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Test accuracy after 10 epochs of Fashion-MNIST in each precision, by seed, and speed in training, all on one thread.

One process trains an MLP 784-128-10 (bench/precision.c). `reference` multiplies bf16's operands as float32: its accuracy
is that of bf16 on every processor, its speed is of no use. bf16 itself is measured where it runs. --runs is the number
of seeds, and of the runs in turn that compare rows a second. The last line says by how many points the mean accuracy
differs from float32's, and fails above 0.3.
"""
import os
import statistics
import sys

import figures
from contenders import IMAGES, MODELS, program

EPOCHS, POINTS = 10, 0.3
SPEEDS = [("MLP 784-128-10", 64), ("MLP 784-512-512-10", 128), ("MLP 784-2048-2048-10", 256), ("LeNet 16-32-128", 32)]
LARGE = {"MLP 784-2048-2048-10": ("dense 2048 relu, dense 2048 relu, dense 10", "784,2048,2048,10")}


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


def learners(options, name, batch):
    """What trains a model in each precision, ours and PyTorch's, by name."""
    seconds = 1 if options.quick else 2
    dense = {**MODELS, **LARGE}.get(name)
    layers, theirs = dense or (IMAGES[name], IMAGES[name])
    script = os.path.join(figures.ROOT, "bench", "torch_learn.py" if dense else "torch_layers.py")
    found = {f"ours, {word}": lambda word=word: figures.run(
        program(options, "learn"), layers, batch, 1, seconds, figures.DATA, word) for word in ("float32", "bf16")}
    if os.path.exists(figures.TORCH):
        found.update({f"PyTorch, {word}": lambda word=word: figures.run(
            "/usr/bin/python3", script, theirs, batch, 1, seconds, word, OMP_NUM_THREADS="1")
            for word in ("float32", "bf16")})
    return found


def compare(options):
    """Print rows a second in each precision, and the medians of the ratios of neighbouring runs."""
    print("\n| model, batch | ours, float32 | ours, bf16 | PyTorch, float32 | PyTorch, bf16 | bf16 / float32 | "
          "ours / PyTorch, bf16 |\n| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name, batch in SPEEDS:
        results = figures.alternate(options.runs, learners(options, name, batch))
        rows = {key: [result["rows"] for result in values] for key, values in results.items() if "rows" in values[0]}
        cells = [f"{statistics.median(rows[key]):,.0f}" if key in rows else "" for key in
                 ("ours, float32", "ours, bf16", "PyTorch, float32", "PyTorch, bf16")]
        for baseline in ("ours, float32", "PyTorch, bf16"):
            known = "ours, bf16" in rows and baseline in rows
            cells.append(f"{statistics.median(figures.ratios('rows/s', rows['ours, bf16'], rows[baseline])):.2f}"
                         if known else "")
        print(f"| {name}, {batch} | {' | '.join(cells)} |", flush=True)


def train_and_compare(options):
    means = measure(options)
    compare(options)
    return means


def main():
    means = figures.measured(train_and_compare, __doc__)
    differences = {word: 100 * (mean - means["float32"]) for word, mean in means.items() if word != "float32"}
    print(", ".join(f"{word}: {points:+.2f} points" for word, points in differences.items()))
    sys.exit(any(abs(points) > POINTS for points in differences.values()))


if __name__ == "__main__":
    main()
