#!/usr/bin/python3
"""Runs the benchmarks and writes docs/BENCHMARKS.md; behind scripts/bench, which installs and builds first.

Without --only all are run; with it the page keeps what it said of the others. --json prints each measurement
as it comes, and writes the page all the same unless --quick, whose figures are not for quoting, was given.
"""
import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys

import figures

BENCHES = ["limit", "round", "peer", "train", "scale", "idle", "accuracy"]
PAGE = os.path.join(figures.ROOT, "docs/BENCHMARKS.md")
HEAD = """# Benchmarks

Measured by `scripts/bench` on one machine, everything over loopback; `scripts/bench --help` says how to run it
again, and [PERFORMANCE.md](PERFORMANCE.md) what the figures mean. Values are medians of alternating runs with
their extremes; a ratio says how many times as fast as the baseline ours was (above 1: faster), and is
the median of the ratios of neighbouring runs.
"""


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure, and write docs/BENCHMARKS.md.")
    parser.add_argument("--json", action="store_true", help="print one object a measurement, nothing else")
    parser.add_argument("--only", nargs="+", action="extend", choices=BENCHES, metavar="NAME",
                        help="these alone: " + ", ".join(BENCHES))
    parser.add_argument("--quick", action="store_true", help="few cases, three runs, and no page written")
    parser.add_argument("--full", action="store_true", help="also the cases that take many minutes")
    parser.add_argument("--build", default=os.path.join(figures.ROOT, "build"), help="the build folder (build)")
    return parser.parse_args()


def measure(name, options):
    """Run a benchmark; its measurements, each printed as it comes."""
    command = [sys.executable, os.path.join(figures.ROOT, "bench", name + ".py"), options.build]
    command += [flag for flag in ("--quick", "--full") if getattr(options, flag[2:])]
    found = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            found.append(json.loads(line))
            print(line if options.json else describe(found[-1]), end="" if options.json else "\n", flush=True)
    if process.returncode != 0:
        sys.exit(f"scripts/bench: {name} failed")
    return found


def number(value):
    """Three figures, or all of a whole part that has more."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def describe(line):
    """One line for a person."""
    if "skipped" in line:
        return f"{line['bench']}: skipped: {line['skipped']}"
    text = f"{line['bench']}: {line['case']}: {number(line['value'])} {line['unit']}"
    if line["baseline"]:
        text += f"; {line['baseline']} {number(line['baseline_value'])}; ratio {line['ratio']:.2f}"
    return text


def spread(middle, low, high):
    return f"{number(middle)} ({number(low)} to {number(high)})"


def table(measurements):
    """The measurements of one benchmark, as Markdown."""
    rows = ["| case | unit | value | baseline | its value | ratio |", "| --- | --- | --- | --- | --- | --- |"]
    for line in measurements:
        if "skipped" in line:
            return f"Skipped: {line['skipped']}.\n"
        value = spread(line["value"], line["low"], line["high"]) if line["runs"] > 1 else number(line["value"])
        cells = [line["case"], line["unit"], value, "", "", ""]
        if line["baseline"]:
            cells[3:] = [line["baseline"], number(line["baseline_value"]),
                         spread(line["ratio"], line["ratio_low"], line["ratio_high"])]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def machine():
    """The processor, its cores and memory, and the kernel."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return (f"{len(os.sched_getaffinity(0))} cores of {model.group(1) if model else platform.machine()}, "
            f"{memory:.0f} GiB, Linux {platform.release().split('-')[0]}")


def introduction(name):
    """What a benchmark measures, in its own words, and its command and day."""
    with open(os.path.join(figures.ROOT, "bench", name + ".py"), encoding="utf-8") as file:
        text = file.read().split('"""')[1].strip()
    return f"{text}\n\n`scripts/bench --only {name}`, {datetime.date.today()}, {machine()}.\n"


def sections_of(page):
    """{name: text} of the benchmarks on the page as it is."""
    parts = re.split(r"^## (\w+)\n", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def write(results):
    """Replace the sections that were measured, and keep the others."""
    sections = {}
    if os.path.exists(PAGE):
        with open(PAGE, encoding="utf-8") as file:
            sections = sections_of(file.read())
    for name, measurements in results.items():
        sections[name] = f"\n{introduction(name)}\n{table(measurements)}\n"
    body = "".join(f"## {name}\n{sections[name]}" for name in BENCHES if name in sections)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(f"{HEAD}\n{body.rstrip()}\n")


def main():
    options = parse()
    results = {}
    for name in options.only or BENCHES:
        results[name] = measure(name, options)
        if not options.quick:
            write({name: results[name]})
    return 0


sys.exit(main())
