#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What rows of the fleet cost: daemons that publish and pass on rows, in turn with daemons that do neither.

Both are whole daemons in which a timer replaces training, in many short runs.
The goal is a time of a round within 2%.
"""
import os
import statistics
import unittest.mock

import figures
from contenders import SIZES, IdleFleet, program, results_of, rounds_of

CASES = ((2, 4096), (4, 4096), (8, 4096), (4, 1 << 20))
LONGER = {4096: 6, 1 << 20: 1}  # as many rounds as other benchmarks count: rows are sent several times in each run
PAIRS = 4  # of runs, for each that other benchmarks make


def run(options, nodes, size, rows):
    rounds, warmup = rounds_of(size, nodes, options.quick)
    without = {} if rows else {"BENCH_WITHOUT_ROWS": "1"}
    with unittest.mock.patch.dict(os.environ, without):
        return results_of(IdleFleet(program(options, "sgpd_idle"), nodes, size, LONGER[size] * rounds, warmup, {}))


def tell(case, unit, found, key, scale):
    with_rows, without = ([scale * result[key] for result in found[name]] for name in ("with", "without"))
    quarters = statistics.quantiles(figures.ratios(unit, with_rows, without), n=4)
    figures.tell("rows", case, unit, with_rows, "without rows", without, ratio_quarters=quarters)


def measure(options):
    for nodes, size in CASES[:2] if options.quick else CASES:
        found = figures.alternate(PAIRS * options.runs, {
            "with": lambda nodes=nodes, size=size: run(options, nodes, size, True),
            "without": lambda nodes=nodes, size=size: run(options, nodes, size, False)})
        case = f"{nodes} nodes, {SIZES[size]}, with rows"
        tell(case, "ms", found, "seconds", 1e3)
        tell(f"{case}: processor time of a node and round", "us", found, "cpu_seconds", 1e6)


if __name__ == "__main__":
    figures.main("rows", measure, __doc__)
