# SPDX-License-Identifier: Apache-2.0
"""docs/BENCHMARKS.md: a section for each benchmark with its words and, for each machine that it ran on, its day, a
picture and a table. A machine goes by the model of its processor; what one measured replaces nothing of another's."""
import datetime
import os
import platform
import re

import figures
import pictures

BENCHES = ["limit", "round", "cipher", "peer", "reduce", "train", "scale", "idle", "rows", "guard", "accuracy", "bytes", "attach"]
PAGE = os.path.join(figures.ROOT, "docs/BENCHMARKS.md")
HEAD = """# Benchmarks

With this page you can compare sgpd with the limits of a machine and with PyTorch.
`scripts/bench` measures the figures, on each machine separately, over loopback unless a case names a link.
`scripts/bench --help` says how to repeat them, and [PERFORMANCE.md](PERFORMANCE.md) explains the figures.
Values are medians with their extremes.
A case with a baseline ran in turn with it.
A ratio says how many times as fast as the baseline sgpd was (above 1: faster).
It is the median of the ratios of neighbouring runs.

The ten figures that matter most follow; each is a row of a table below, found by its benchmark's name.
"""

# The rows of the first table: benchmark, case, baseline, and what a reader takes from it.
TEN = [
    ("accuracy", "4 nodes over loopback: to 88%", "DistributedDataParallel", "one fast machine, a small model"),
    ("accuracy", "4 nodes, links of 100 Mbit/s, same settings: to 88%", "DistributedDataParallel",
     "a slow network, nothing else changed"),
    ("accuracy", "4 nodes, links of 100 Mbit/s, settings for slow links: to 88%", "DistributedDataParallel, fp16",
     "the same, each side with its settings for it"),
    ("bytes", "links of 100 Mbit/s, int8: to 88%", "PowerSGD of rank 4", "compression on both sides"),
    ("accuracy", "cores 0.4 0.4 0.4 0.1, settings for uneven machines: to 88%", "DistributedDataParallel",
     "one slow machine"),
    ("accuracy", "4 nodes, 20 ms each way, settings for slow links: to 80%", "DistributedDataParallel",
     "machines in distant places"),
    ("peer", "4 nodes, 16 MiB, links of 1 Gbit/s, whole daemons", "gloo all-reduce", "one exchange of a model"),
    ("round", "4 nodes, 16 MiB, whole daemons", "plain sockets", "the same beside the limit of this machine"),
    ("train", "MLP 784-512-512-10, batch 128, 1 thread", "PyTorch", "the built-in learner"),
    ("idle", "8 daemons, all finished: processor time of a node", "", "what a daemon costs that has nothing to do"),
]


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


def processor():
    """The model of the processor, by which a machine is known."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    return model.group(1).strip() if model else platform.machine()


def surroundings():
    """Its cores and memory, the kernel, and the day."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return (f"{len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}, "
            f"{datetime.date.today()}.\n")


def introduction(name):
    """What a benchmark measures, in its own words, and its command."""
    with open(os.path.join(figures.ROOT, "bench", name + ".py"), encoding="utf-8") as file:
        text = file.read().split('"""')[1].strip()
    return f"{text}\n\n`scripts/bench --only {name}`\n"


def folder_of(model):
    """The name of its folder of pictures."""
    return re.sub(r"[^a-z0-9]+", "-", model.lower().replace("(r)", "").replace("(tm)", "")).strip("-")


def picture(name, measurements, folder):
    """The picture, drawn anew, as Markdown; nothing where there is none, and the reason if it cannot be drawn."""
    try:
        path = pictures.draw(name, measurements, folder)
    except figures.Skip as reason:
        return f"No picture: {reason}.\n\n"
    where = os.path.join(os.path.basename(os.path.dirname(folder)), os.path.basename(folder))
    return f"![{name}]({where}/{os.path.basename(path)})\n\n" if path else ""


def sections_of(text):
    """{name: {machine: text}} of the page as it is."""
    def split(pattern, text):
        parts = re.split(pattern, text, flags=re.MULTILINE)
        return zip(parts[1::2], parts[2::2])
    return {name: {machine: part.strip() + "\n" for machine, part in split(r"^### (.+)\n", body)}
            for name, body in split(r"^## (\w+)\n", text)}


def ten_of(sections):
    """The first table: the rows of TEN that some machine has measured, as the tables below have them."""
    rows = ["| what | benchmark, case | unit | value | baseline | its value | ratio |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, case, baseline, words in TEN:
        for text in sections.get(name, {}).values():
            found = [row for row in map(cells_of, text.splitlines()) if row[:1] == [case] and row[3:4] == [baseline]]
            if found:
                rows.append("| " + " | ".join([words, f"[{name}](#{name}): {case}", *found[0][1:]]) + " |")
                break
    return "\n".join(rows) + "\n"


def cells_of(line):
    """The cells of a row of a table; none of another line."""
    return [cell.strip() for cell in line.split("|")[1:-1]]


def write(results, path=PAGE):
    """Replace what this machine measured, {name: measurements}, and keep all else, also what it could not measure
    this time."""
    sections = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            sections = sections_of(file.read())
    model = processor()
    folder = os.path.join(os.path.dirname(path), "pictures", folder_of(model))
    for name, measurements in results.items():
        machines = sections.setdefault(name, {})
        if model in machines and all("skipped" in line for line in measurements):
            continue
        machines[model] = f"{surroundings()}\n{picture(name, measurements, folder)}{table(measurements)}"
    body = ""
    for name in (name for name in BENCHES if name in sections):
        body += f"## {name}\n\n{introduction(name)}\n"
        body += "".join(f"### {machine}\n\n{text.rstrip()}\n\n" for machine, text in sections[name].items())
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{HEAD}\n{ten_of(sections)}\n{body.rstrip()}\n")
