# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: taking turns, medians with their spread, and one JSON line a measurement.

A measurement is {"bench", "case", "value", "unit", "low", "high", "runs"} and, against a baseline,
{"baseline", "baseline_value", "baseline_low", "baseline_high", "ratio", "ratio_low", "ratio_high"}. Values
are medians; low and high are the extremes. The ratio says how many times as fast as the baseline, and is the
median of the ratios of neighbouring runs, so that it holds although a shared machine is faster now and
slower then.
"""
import argparse
import contextlib
import glob
import json
import os
import signal
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Fleets and hosts are those of the tests.
sys.path[1:1] = [os.path.join(ROOT, "tests/system", folder) for folder in ("", "hosts")]
import fleet  # noqa: E402

DATA = "/usr/share/datasets/fashion-mnist"
TORCH = "/usr/lib/python3/dist-packages/torch"  # of Debian's python3-torch
DOWN_IS_GOOD = ("s", "ms", "us")  # units of which less is faster


class Skip(Exception):
    """A benchmark cannot run here; its text says why."""


def arguments(description, **choices):
    """The command line of every benchmark: BUILD [--quick] [--runs N]; and an option for each of `choices`, the words that it may
    be, of which the first is its default."""
    parser = argparse.ArgumentParser(description=description.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", nargs="?", default=os.path.join(ROOT, "build"), help="the build folder")
    parser.add_argument("--quick", action="store_true", help="few cases, three runs: not for quoting")
    parser.add_argument("--runs", type=int, help="runs of each contender (5; 3 with --quick)")
    for name, words in choices.items():
        parser.add_argument(f"--{name}", choices=words, default=words[0])
    options = parser.parse_args()
    options.runs = options.runs or (3 if options.quick else 5)
    options.build = os.path.abspath(options.build)
    return options


def measured(measure, description):
    """The result of MEASURE for the options of the command line. A benchmark that cannot run says why and exits with 77."""
    try:
        return measure(arguments(description))
    except Skip as reason:
        print(reason)
        sys.exit(77)


def run(*command, timeout=300, **variables):
    """The last line that a program prints, which is one JSON object. No process of its group is left behind."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **variables}, start_new_session=True,
                          preexec_fn=fleet.die_with_parent) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {process.returncode}")
    return json.loads(output.splitlines()[-1])


def core_of(node):
    """The core of a node's processes. Each has one, in turn, as each machine would have its own: left to
    itself, the kernel puts two nodes that wake each other on one core and leaves another idle."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[node % len(cores)]


def alternate(runs, contenders):
    """Run {name: function} in turn, A B C C B A A B C ...; returns {name: [result of each run]}."""
    results = {name: [] for name in contenders}
    for number in range(runs):
        order = list(contenders.items())
        for name, function in order if number % 2 == 0 else order[::-1]:
            results[name].append(function())
    return results


def spent(pid):
    """Seconds of processor time of all threads of a process, and how often one gave up the processor."""
    nanoseconds = wakes = 0
    for task in glob.glob(f"/proc/{pid}/task/*"):
        with open(f"{task}/schedstat", encoding="utf-8") as file:
            nanoseconds += int(file.read().split()[0])
        with open(f"{task}/status", encoding="utf-8") as file:
            wakes += sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt"))
    return nanoseconds / 1e9, wakes


def ratios(unit, values, baseline_values):
    """How many times as fast as the baseline, run by run."""
    if unit in DOWN_IS_GOOD:
        return [other / own for own, other in zip(values, baseline_values)]
    return [own / other for own, other in zip(values, baseline_values)]


def tell(bench, case, unit, values, baseline=None, baseline_values=None, **more):
    """Print one measurement; `values` and `baseline_values` are those of alternating runs."""
    line = {"bench": bench, "case": case, "value": statistics.median(values), "unit": unit,
            "low": min(values), "high": max(values), "runs": len(values),
            "baseline": None, "baseline_value": None, "ratio": None}
    if baseline is not None:
        by_run = ratios(unit, values, baseline_values)
        line.update(baseline=baseline, baseline_value=statistics.median(baseline_values),
                    baseline_low=min(baseline_values), baseline_high=max(baseline_values),
                    ratio=statistics.median(by_run), ratio_low=min(by_run), ratio_high=max(by_run))
    print(json.dumps({**line, **more}), flush=True)


def skipped(bench, reason):
    """Print what was left out, and why."""
    print(json.dumps({"bench": bench, "skipped": reason}), flush=True)


def attempt(bench, function, options):
    """Run a benchmark or a part of it; one that cannot run here says so in a line of its own, and is no
    failure."""
    try:
        function(options)
    except Skip as reason:
        skipped(bench, str(reason))


def main(bench, function, description, **choices):
    """Run a benchmark, whose command line has these further options."""
    attempt(bench, function, arguments(description, **choices))
    sys.exit(0)
