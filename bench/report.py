#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks and writes docs/BENCHMARKS.md; behind scripts/bench, which installs and builds first.

Without --only all are run; with it the page keeps what it said of the others. --json prints each measurement
as it comes, and writes the page all the same unless --quick, whose figures are not for quoting, was given.
"""
import argparse
import json
import os
import subprocess
import sys

import figures
import page
from page import BENCHES, number


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure, and write docs/BENCHMARKS.md.")
    parser.add_argument("--json", action="store_true", help="print one object a measurement, nothing else")
    parser.add_argument("--only", nargs="+", action="extend", choices=BENCHES, metavar="NAME",
                        help="these alone: " + ", ".join(BENCHES))
    parser.add_argument("--quick", action="store_true", help="few cases, three runs, and no page written")
    parser.add_argument("--build", default=os.path.join(figures.ROOT, "build"), help="the build folder (build)")
    return parser.parse_args()


def measure(name, options):
    """Run a benchmark; its measurements, each printed as it comes, or None if it failed."""
    command = [sys.executable, os.path.join(figures.ROOT, "bench", name + ".py"), options.build]
    command += ["--quick"] if options.quick else []
    found = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                          preexec_fn=figures.fleet.die_with_parent) as process:
        for line in process.stdout:
            found.append(json.loads(line))
            print(line if options.json else describe(found[-1]), end="" if options.json else "\n", flush=True)
    if process.returncode != 0:
        print(f"scripts/bench: {name} failed", file=sys.stderr)
        return None
    return found


def describe(line):
    """One line for a person."""
    if "skipped" in line:
        return f"{line['bench']}: skipped: {line['skipped']}"
    text = f"{line['bench']}: {line['case']}: {number(line['value'])} {line['unit']}"
    if line["baseline"]:
        text += f"; {line['baseline']} {number(line['baseline_value'])}; ratio {line['ratio']:.2f}"
    return text


def main():
    options = parse()
    status = 0
    for name in options.only or BENCHES:
        found = measure(name, options)
        if found is None:
            status = 1
        elif not options.quick:
            page.write({name: found})
    return status


sys.exit(main())
