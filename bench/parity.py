#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a fleet learn what one machine would? Four nodes with batch 32 each beside one process with
batch 128: the same rows, epochs and learning rate, on Fashion-MNIST, in one run.

Prints one JSON object: the mean test accuracy of both, their difference in points and the ratio of
their times. Ends with 1 if the accuracies are further apart than half a point.
"""
import argparse
import json
import os
import subprocess
import sys

DEMO = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scripts/demo")
POINTS_MAX = 0.5


def demo(*options):
    """The demo's last line, as an object; its table goes to standard error."""
    result = subprocess.run([DEMO, "--json", *options], stdout=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(result.stdout)
    if result.returncode != 0:
        sys.exit(f"bench/parity: scripts/demo {' '.join(options)} ended with {result.returncode}")
    return json.loads(result.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--epochs", default="10", help="passes over the rows (10)")
    parser.add_argument("--layers", help="of the model, as [model] layers has them (the demo's)")
    arguments = parser.parse_args()
    epochs = arguments.epochs
    model = ["--layers", arguments.layers] if arguments.layers else []
    fleet = demo("--nodes", "4", "--batch", "32", "--epochs", epochs, *model)
    alone = demo("--nodes", "1", "--batch", "128", "--epochs", epochs, *model)
    accuracy = sum(fleet["test_accuracy"]) / len(fleet["test_accuracy"])
    baseline = alone["test_accuracy"][0]
    points = 100 * (accuracy - baseline)
    print(json.dumps({
        "bench": "parity", "case": f"4 x 32 against 1 x 128, {epochs} epochs" + (f", {arguments.layers}" if model else ""), "value": accuracy,
        "unit": "test accuracy", "least": min(fleet["test_accuracy"]), "baseline": "one process", "baseline_value": baseline,
        "points": points, "seconds_ratio": fleet["seconds"] / alone["seconds"]}))
    return 0 if abs(points) <= POINTS_MAX else 1


sys.exit(main())
