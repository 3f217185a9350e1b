#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one slow machine costs: four nodes on Fashion-MNIST, one with 10% of a core, the others with 40%
each, by each algorithm in one run.

Prints for each: the rows that the whole fleet trains in a second, beside what the machines could do
without each other, and the accuracy of the nodes' models after the same time of training. Ends with 77
where control groups for the processor cannot be made.
"""
import argparse
import json
import os
import sys
import time
import unittest

import figures
import fashion
import fleet
from quota import groups

ALGORITHMS = ("sgp", "osgp", "agp", "adpsgd")
SHARES = (0.1, 0.4, 0.4, 0.4)  # of a core
PAIRS = [[(i, i ^ hop) for i in range(4)] for hop in (1, 2)]  # which every algorithm takes


def cpu_seconds(node):
    return figures.spent(node.process.pid)[0]


def samples(f):
    return [node.status()["samples"] for node in f.nodes]


def measure(f, seconds):
    """Train for so long from the moment when all do; then stop and judge the models at leisure."""
    f.wait_state("training", timeout=2 * fleet.PATIENCE)
    began, before, cpu = time.monotonic(), samples(f), list(map(cpu_seconds, f.nodes))
    while time.monotonic() - began < seconds:
        time.sleep(min(1.0, max(0.0, began + seconds - time.monotonic())))
    after, used = samples(f), [cpu_seconds(n) - c for n, c in zip(f.nodes, cpu)]
    took = time.monotonic() - began
    for node in f.nodes:
        node.get("/v1/pause", "POST")
    return {
        "rows_per_second": [(b - a) / took for a, b in zip(before, after)],
        "cpu": [u / took for u in used],
    }


def run(algorithm, seconds, quotas, shares, phases):
    f = fleet.Fleet(4, phases=phases, options=fashion.options(**{
        "train.algorithm": algorithm, "train.overlap": "2", "train.epochs": None, "train.rounds": "1G",
        "model.layers": "dense 128 relu, dense 10", "optimizer.schedule": "constant",
        "optimizer.learning_rate": "0.02"}))
    try:
        f.start()
        for node, quota, share in zip(f.nodes, quotas, shares):
            quota.write("cgroup.procs", str(node.process.pid))
            quota.limit(share)
        result = measure(f, seconds)
        for quota in quotas:
            quota.limit(0)
        f.wait_state("paused")
        f.wait("everything to be acknowledged",
               lambda: all(n.status()["weight_in_flight"] == 0 for n in f.nodes))
        result["total_weight"] = sum(n.status()["weight"] for n in f.nodes)
        result["accuracy"] = [n.json("/v1/evaluate", "POST")["accuracy"] for n in f.nodes]
        return result
    finally:
        f.close()


def summary(algorithm, seconds, result, alone):
    rates, accuracy = result["rows_per_second"], result["accuracy"]
    return {
        "bench": "uneven", "case": f"{algorithm}, {seconds:g} s, cores {' '.join(map(str, SHARES))}",
        "algorithm": algorithm, "value": sum(rates), "unit": "rows/s of the fleet",
        "baseline": "each alone", "baseline_value": alone, "ratio": sum(rates) / alone,
        "rows_per_second": rates, "accuracy_mean": sum(accuracy) / len(accuracy), "accuracy": accuracy,
        "cpu": result["cpu"], "total_weight": result["total_weight"]}


def show(line):
    print("%-8s %9.0f %7.2f   %-31s %8.4f %8.4f   %s" % (
        line["algorithm"], line["value"], line["ratio"],
        " ".join("%7.0f" % r for r in line["rows_per_second"]), line["accuracy_mean"],
        min(line["accuracy"]), " ".join("%.2f" % c for c in line["cpu"])), flush=True)


def compare(arguments, quotas):
    if not arguments.json:
        print("%-8s %9s %7s   %-31s %8s %8s   %s" % (
            "", "rows/s", "/ alone", "of each", "accuracy", "least", "cores used"), flush=True)
    alone = run("sgp", arguments.seconds / 3, quotas, SHARES, [[]])
    rate = sum(alone["rows_per_second"])
    for algorithm in [a for a in ALGORITHMS if a in fleet.algorithms()]:
        line = summary(algorithm, arguments.seconds,
                       run(algorithm, arguments.seconds, quotas, SHARES, PAIRS), rate)
        if arguments.json:
            print(json.dumps(line), flush=True)
        else:
            show(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", nargs="?", default=os.path.join(figures.ROOT, "build"), help="the build folder")
    parser.add_argument("--seconds", type=float, default=60, help="of training by each algorithm (60)")
    parser.add_argument("--json", action="store_true", help="one object a line instead of a table")
    arguments = parser.parse_args()
    fleet.SGPD = os.path.join(arguments.build, "daemon/sgpd")
    try:
        with groups(SHARES) as quotas:
            compare(arguments, quotas)
    except (figures.Skip, unittest.SkipTest) as reason:
        print(f"bench/uneven: skipped: {reason}", file=sys.stderr)
        return 77
    return 0


sys.exit(main())
