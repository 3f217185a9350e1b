# SPDX-License-Identifier: Apache-2.0
"""docs/BENCHMARKS.md: a section for each benchmark, with its words, its command and day, a picture and a table."""
import datetime
import os
import platform
import re

import figures
import pictures

BENCHES = ["limit", "round", "peer", "train", "scale", "idle", "accuracy"]
PAGE = os.path.join(figures.ROOT, "docs/BENCHMARKS.md")
HEAD = """# Benchmarks

Measured by `scripts/bench` on one machine, over loopback where a case names no link; `scripts/bench --help` says how to run it
again, and [PERFORMANCE.md](PERFORMANCE.md) what the figures mean. Values are medians with
their extremes. What has a baseline took turns with it; a ratio says how many times as fast as the baseline ours was
(above 1: faster), and is the median of the ratios of neighbouring runs.
"""


def number(value):
    """Three figures, or all of a whole part that has more."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(middle, low, high):
    if low == high:
        return number(middle)
    return f"{number(middle)} ({number(low)} to {number(high)})"


def table(measurements):
    """The measurements of one benchmark, as Markdown, and the parts that could not run."""
    skipped = [f"Skipped: {line['skipped']}.\n" for line in measurements if "skipped" in line]
    measured = [line for line in measurements if "skipped" not in line]
    rows = ["| case | unit | value | baseline | its value | ratio |", "| --- | --- | --- | --- | --- | --- |"]
    for line in measured:
        cells = [line["case"], line["unit"], spread(line["value"], line["low"], line["high"]), "", "", ""]
        if line["baseline"]:
            cells[3:] = [line["baseline"],
                         spread(line["baseline_value"], line["baseline_low"], line["baseline_high"]),
                         spread(line["ratio"], line["ratio_low"], line["ratio_high"])]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join((["\n".join(rows) + "\n"] if measured else []) + skipped)


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


def picture(name, measurements, folder):
    """The picture, drawn anew, as Markdown; nothing where there is none, and the reason if it cannot be drawn."""
    try:
        path = pictures.draw(name, measurements, folder)
    except figures.Skip as reason:
        return f"No picture: {reason}.\n\n"
    return f"![{name}]({os.path.basename(folder)}/{os.path.basename(path)})\n\n" if path else ""


def sections_of(text):
    """{name: text} of the benchmarks on the page as it is."""
    parts = re.split(r"^## (\w+)\n", text, flags=re.MULTILINE)
    return {name: body.rstrip() + "\n\n" for name, body in zip(parts[1::2], parts[2::2])}


def write(results, path=PAGE):
    """Replace the sections that were measured, {name: measurements}, and keep the others, also of what could
    not be measured this time."""
    sections = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            sections = sections_of(file.read())
    folder = os.path.join(os.path.dirname(path), "pictures")
    for name, measurements in results.items():
        if name in sections and all("skipped" in line for line in measurements):
            continue
        sections[name] = f"\n{introduction(name)}\n{picture(name, measurements, folder)}{table(measurements)}\n"
    body = "".join(f"## {name}\n{sections[name]}" for name in BENCHES if name in sections)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{HEAD}\n{body.rstrip()}\n")
