#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What rows of the fleet cost: daemons that publish and pass on rows, in turn with daemons that do neither.

Both are whole daemons in which a timer replaces training, in many short runs.
The goal is a time of a round within 2%.
Rows are sent once a second, however long a round is.
So the processor time that they take in a second bounds what they add to the time of a round.
The last case measures it in fleets whose rounds leave the processor idle, where it can be seen apart from the rounds.
"""
import os
import statistics
import unittest.mock

import figures
from contenders import SIZES, IdleFleet, program, results_of, rounds_of

CASES = ((2, 4096), (4, 4096), (8, 4096), (4, 1 << 20))
LONGER = {4096: 6, 1 << 20: 1}  # as many rounds as other benchmarks count: rows are sent several times in each run
PAIRS = 4  # of runs, for each that other benchmarks make
SLOW = 8, 4096, 100  # nodes, bytes, and the milliseconds of a step that sleeps


def run(options, nodes, size, rounds, warmup, rows, **environment):
    without = {} if rows else {"BENCH_WITHOUT_ROWS": "1"}
    with unittest.mock.patch.dict(os.environ, {**without, **environment}):
        return results_of(IdleFleet(program(options, "sgpd_idle"), nodes, size, rounds, warmup, {}))


def fast(options, nodes, size, rows):
    rounds, warmup = rounds_of(size, nodes, options.quick)
    return run(options, nodes, size, LONGER[size] * rounds, warmup, rows)


def tell(case, unit, found, key, scale):
    with_rows, without = ([scale * result[key] for result in found[name]] for name in ("with", "without"))
    quarters = statistics.quantiles(figures.ratios(unit, with_rows, without), n=4)
    figures.tell("rows", case, unit, with_rows, "without rows", without, ratio_quarters=quarters)


def measure_slow(options):
    """Processor time of a node, in percent of a core; and the part of it that rows take."""
    nodes, size, step = SLOW
    rounds = (4 if options.quick else 15) * 1000 // step

    def part(rows):
        found = run(options, nodes, size, rounds, 1000 // step, rows, BENCH_STEP_MS=str(step))
        return 100 * found["cpu_seconds"] / found["seconds"]

    found = figures.alternate(2 * options.runs, {"with": lambda: part(True), "without": lambda: part(False)})
    case = f"{nodes} nodes, {SIZES[size]}, {1000 // step} rounds a second"
    figures.tell("rows", f"{case}, with rows", "% of a core", found["with"], "without rows", found["without"])
    figures.tell("rows", f"{case}: what rows take", "% of a core", [a - b for a, b in zip(found["with"], found["without"])])


def measure(options):
    for nodes, size in CASES[:2] if options.quick else CASES:
        found = figures.alternate(PAIRS * options.runs, {
            "with": lambda nodes=nodes, size=size: fast(options, nodes, size, True),
            "without": lambda nodes=nodes, size=size: fast(options, nodes, size, False)})
        case = f"{nodes} nodes, {SIZES[size]}, with rows"
        tell(case, "ms", found, "seconds", 1e3)
        tell(f"{case}: processor time of a node and round", "us", found, "cpu_seconds", 1e6)
    measure_slow(options)


if __name__ == "__main__":
    figures.main("rows", measure, __doc__)
