# SPDX-License-Identifier: Apache-2.0
"""`sgpctl compare FILE`: every variant of a plan one after another, then a table and a picture.

Each result is kept as soon as it is there, in FILE.results, by the variant's name and what it says. So an interrupted comparison goes on where
it was, and a variant that says something else now is run again.
"""
import argparse
import json
import math
import os
import re
import signal
import sys
import time

from daemons import COLUMNS, Fleet
from picture import draw
from plan import Failure, Invalid, Plan
from simulated import Simulation
from table import MEGA, line_of, print_table

LEAST = -8.0  # of a logarithm that is drawn
DONE, FAILED, INVALID, INTERRUPTED = 0, 1, 6, 130


class Tools:
    """The programs beside which this runs."""

    def __init__(self, sgpctl):
        folder = os.path.dirname(sgpctl)
        places = [os.path.join(folder, "sgpd"), os.path.join(folder, "..", "daemon", "sgpd"),
                  os.path.join(folder, "..", "sbin", "sgpd")]
        self.sgpctl = sgpctl
        self.sgpd = next((path for path in places if os.access(path, os.X_OK) and os.path.isfile(path)), "sgpd")


class Progress:
    """A line on standard error: which variant, how far, and how long all will take yet."""

    def __init__(self, total):
        self.total, self.done, self.spent = total, 0, 0.0
        self.terminal = sys.stderr.isatty()
        self.begin = self.next = 0.0

    def start(self, name):
        self.name, self.begin, self.next = name, time.monotonic(), 0.0

    def tell(self, part):
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + (0.5 if self.terminal else 10)
        took = now - self.begin
        left = ""
        if part > 0.02:
            each = (self.spent + took / part) / (self.done + 1)
            rest = took / part - took + each * (self.total - self.done - 1)
            left = f", about {rest:.0f} s left for all"
        self.line(f"{self.done + 1} of {self.total}: {self.name} {part:.0%}, {took:.0f} s{left}")

    def line(self, text, stays=False):
        if self.terminal:
            print("\r\033[K" + text, end="\n" if stays else "", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def finish(self, text):
        self.spent += time.monotonic() - self.begin
        self.done += 1
        self.line(f"{self.name}: {text}", stays=True)


# ---- results ----

def path_of(folder, variant, run):
    """One for each way to say the variant: two that are called alike do not meet."""
    name = re.sub(r"[^a-zA-Z0-9.-]", "_", variant.name)[:60]
    return os.path.join(folder, f"{name}-{variant.digest(run)}.json")


def kept(folder, variant, run):
    """The result of a former call, if it is of the same variant."""
    try:
        with open(path_of(folder, variant, run), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def keep(folder, variant, run, result):
    path = path_of(folder, variant, run)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.replace(path + ".new", path)


# ---- what is shown ----

def ends_of(histories, cost, measure, greater):
    """The worst and the best node by epoch: {end: [(x, y)]}. A mean over nodes of the cost."""
    x, y = COLUMNS.index(cost), COLUMNS.index(measure)
    ends = {"worst": [], "best": []}
    for rows in zip(*histories):
        values = [row[y] for row in rows if row[y] is not None]
        costs = [row[x] for row in rows if row[x] is not None]
        if not values or not costs:
            continue
        at = sum(costs) / len(costs) / (MEGA if cost == "bytes_sent" else 1)
        ends["worst"].append((at, min(values) if greater else max(values)))
        ends["best"].append((at, max(values) if greater else min(values)))
    return ends


def panels_of(results, run):
    """Rows of (title, {(variant, end): points}), and of daemons a last one of where these end."""
    if run == "simulated":
        costs = ((0, 1, "round"), (1, 1, "virtual seconds"), (2, MEGA, "megabytes, all nodes"))
        return [[(f"log10 of {name} by {title}", {
            (variant.name, "worst"): [(row[at] / unit, magnitude(row[column])) for row in result["rounds"]
                                      if row[column] is not None]
            for variant, result in results}) for at, unit, title in costs]
            for column, name in ((3, "error"), (4, "disagreement"))]
    costs = (("epoch", "epoch"), ("seconds", "seconds"), ("bytes_sent", "megabytes sent by a node"))
    measures = (("test_accuracy", "test accuracy", True), ("test_loss", "test loss", False))
    rows = []
    for measure, name, greater in measures:
        row = [(f"{name} by {title}", {
            (variant.name, end): points for variant, result in results
            for end, points in ends_of([node["history"] for node in result["nodes"]], cost, measure, greater).items()})
            for cost, title in costs]
        rows.append([*row, (f"{name} at the end by megabytes sent by a node", row[-1][1], greater)])
    return rows


def magnitude(value):
    return max(LEAST, math.log10(value)) if value > 0 else LEAST


# ---- all of it ----

def compare(plan, folder, tools, again):
    """Run what has no result yet. Returns [(variant, result)] and what failed, {variant: why}."""
    os.makedirs(folder, exist_ok=True)
    runner = Simulation if plan.run == "simulated" else Fleet
    results, failures = {}, {}
    for variant in plan.variants:
        found = None if again else kept(folder, variant, plan.run)
        if found:
            results[variant.name] = found
            print(f"{variant.name}: done before", file=sys.stderr)
    todo = [variant for variant in plan.variants if variant.name not in results]
    for variant in todo:  # all that can be refused is, before hours are spent
        with runner(variant, tools) as run:
            try:
                run.prepare()
                run.check()
            except Failure as failure:
                raise Invalid(f"{plan.path}: [{variant.name}]: {failure}") from failure
    progress = Progress(len(todo))
    for variant in todo:
        progress.start(variant.name)
        with runner(variant, tools) as run:
            try:
                run.prepare()
                result = run.train(progress.tell)
            except Failure as failure:
                failures[variant.name] = str(failure)
                progress.finish(f"failed: {failure}")
                continue
        keep(folder, variant, plan.run, result)
        results[variant.name] = result
        progress.finish(f"done in {time.monotonic() - progress.begin:.0f} s")
    return [(variant, results[variant.name]) for variant in plan.variants if variant.name in results], failures


def show(plan, results, failures, picture, as_json):
    lines = [line_of(variant, result, plan) for variant, result in results]
    if results:
        with open(picture, "w", encoding="utf-8") as file:
            file.write(draw(os.path.basename(plan.path), [variant.name for variant, _ in results],
                            panels_of(results, plan.run),
                            "dotted: the best node; else the worst" if plan.run == "daemons" else ""))
    if as_json:
        print(json.dumps({"run": plan.run, "variants": lines, "failed": failures,
                          "picture": picture if results else None}))
        return
    if lines:
        print_table(lines)
        print(f"\nThe picture: {picture}")
    for name, why in failures.items():
        print(f"failed: {name}: {why}")


def fail(arguments, status, text):
    """As every command of sgpctl tells it."""
    if arguments.json:
        code = "invalid" if status == INVALID else "failed"
        print(json.dumps({"error": {"exit_status": status, "code": code, "message": text}}))
    else:
        print(f"sgpctl: {text}", file=sys.stderr)
    return status


def main():
    parser = argparse.ArgumentParser(prog="sgpctl compare", add_help=False)
    parser.add_argument("file")
    parser.add_argument("--results")
    parser.add_argument("--picture")
    parser.add_argument("--nodes")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sgpctl", required=True)
    arguments = parser.parse_args()
    folder = arguments.results or re.sub(r"\.(ini|conf)$", "", arguments.file) + ".results"
    picture = arguments.picture or os.path.join(folder, "comparison.svg")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        plan = Plan(arguments.file, arguments.nodes)
        results, failures = compare(plan, folder, Tools(arguments.sgpctl), arguments.again)
        show(plan, results, failures, picture, arguments.json)
    except Failure as failure:
        return fail(arguments, INVALID if isinstance(failure, Invalid) else FAILED, str(failure))
    except OSError as error:
        return fail(arguments, FAILED, f"{error.filename or folder}: {error.strerror}")
    except KeyboardInterrupt:
        print("\nsgpctl: interrupted; the same command goes on with what is left", file=sys.stderr)
        return INTERRUPTED
    return FAILED if failures else DONE


sys.exit(main())
