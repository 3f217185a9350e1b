# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/BENCHMARKS.md: one SVG a benchmark, drawn from its measurements alone.

They need matplotlib (Debian's python3-matplotlib); without it the page has its tables only. Equal
measurements give equal bytes. A case whose name does not fit a picture is in the table and not in it.
"""
import os
import re

import figures

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]
MARKERS = "osD^vP*"
STYLE = {
    "svg.hashsalt": "sgpd", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9,
    "axes.grid": True, "grid.color": "#dddddd", "axes.axisbelow": True, "axes.spines.top": False,
    "axes.spines.right": False, "axes.titlesize": 10, "legend.frameon": False, "lines.markersize": 5,
    "figure.facecolor": "white",
}
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
IDLE_WANTED = 0.1  # % of a core


def library():
    """matplotlib's pyplot; raises figures.Skip with the reason if it cannot be had."""
    try:
        import matplotlib
    except ImportError as error:
        raise figures.Skip("Debian's python3-matplotlib is not installed") from error
    matplotlib.use("svg")
    import matplotlib.pyplot
    matplotlib.rcParams.update(STYLE)
    return matplotlib.pyplot


def extremes(points):
    """How far the lowest and the highest run are from the value, as matplotlib wants error bars."""
    return [[value - low for _, value, low, _ in points], [high - value for _, value, _, high in points]]


def lines(axes, series):
    """{label: [(x, value, low, high)]} as lines with error bars, both axes logarithmic."""
    for index, (label, points) in enumerate(series.items()):
        points = sorted(points)
        axes.errorbar([point[0] for point in points], [point[1] for point in points], extremes(points),
                      label=label, color=COLOURS[index % len(COLOURS)], marker=MARKERS[index % len(MARKERS)],
                      linewidth=1.2, capsize=2)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.minorticks_off()


def plain(value, _):
    """A tick's number without an exponent."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def label_ticks(axes, places, names):
    axes.set_xticks(places, names, rotation=45)
    axes.yaxis.set_major_formatter(plain)


def panels(pyplot, count):
    """So many axes beside each other, three in a row at most."""
    columns = min(count, 3)
    rows = -(-count // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(3.4 * columns, 3.1 * rows), squeeze=False,
                                   layout="constrained")
    for spare in axes.flat[count:]:
        spare.set_visible(False)
    return figure, list(axes.flat[:count])


def point_of(x, line):
    return x, line["value"], line["low"], line["high"]


# ---- the time of a round by the size of a share ----

def size_of(text):
    """Bytes of "16 MiB", or None."""
    found = re.fullmatch(r"([\d.]+) ([KMG]iB)", text)
    return float(found.group(1)) * UNITS[found.group(2)] if found else None


def take_apart(case):
    """"4 nodes, 16 MiB, CONDITION, CONTENDER" as (panel, bytes, contender), or None."""
    parts = case.split(", ")
    nodes = [part for part in parts if re.fullmatch(r"\d+ nodes", part)]
    sizes = [part for part in parts if size_of(part)]
    rest = [part for part in parts if part not in nodes + sizes]
    if len(nodes) != 1 or len(sizes) != 1 or not rest or ":" in case:
        return None
    return ", ".join(nodes + rest[:-1]), size_of(sizes[0]), rest[-1]


def draw_rounds(pyplot, measurements):
    found = {}
    for line in measurements:
        taken = take_apart(line["case"])
        if taken is None or line["unit"] != "ms":
            continue
        panel, size, contender = taken
        series = found.setdefault(panel, {})
        series.setdefault(contender, {})[size] = point_of(size, line)
        if line["baseline"]:
            value = line["baseline_value"]
            series.setdefault(line["baseline"], {})[size] = (size, value, value, value)
    if not found:
        return None
    figure, axes = panels(pyplot, len(found))
    for one, (panel, series) in zip(axes, found.items()):
        lines(one, {label: list(points.values()) for label, points in series.items()})
        sizes = sorted({size for points in series.values() for size in points})
        label_ticks(one, sizes, [name_of(size) for size in sizes])
        one.set(title=panel, xlabel="size of a share", ylabel="time of a round (ms)")
    axes[0].legend(loc="upper left", fontsize=8)
    return figure


def name_of(size):
    unit = max((unit for unit in UNITS if UNITS[unit] <= size), key=UNITS.get, default="KiB")
    return f"{size / UNITS[unit]:g} {unit}"


# ---- the cost of a node by the number of nodes ----

QUANTITIES = {  # words in the case: (axis, what a unit is multiplied by)
    "processor time": ("processor time of a node and round (µs)", {"us": 1, "ms": 1e3}),
    "bytes": ("sent by a node in a round (KiB)", {"bytes": 1 / 1024}),
    "memory": ("memory of a node (MiB)", {"MiB": 1}),
}


def draw_growth(pyplot, measurements):
    found = {axis: {} for axis, _ in QUANTITIES.values()}
    for line in measurements:
        parts = re.fullmatch(r"(\d+) (simulated|daemons), (.*): (.*)", line["case"])
        words = [word for word in QUANTITIES if parts and word in parts.group(4)]
        if not words or line["unit"] not in QUANTITIES[words[0]][1]:
            continue
        axis, units = QUANTITIES[words[0]]
        label = f"{parts.group(2)}, {parts.group(3)}"
        if words[0] == "memory":
            label += ", peak" if "peak" in parts.group(4) else ""
        x, *values = point_of(int(parts.group(1)), line)
        found[axis].setdefault(label, []).append((x, *(value * units[line["unit"]] for value in values)))
    found = {axis: series for axis, series in found.items() if series}
    if not found:
        return None
    figure, axes = panels(pyplot, len(found))
    for one, (axis, series) in zip(axes, found.items()):
        lines(one, series)
        counts = sorted({point[0] for points in series.values() for point in points})
        label_ticks(one, counts, [f"{count:,}" for count in counts])
        one.set_ylim(bottom=min(point[2] for points in series.values() for point in points) / 2,
                     top=max(point[3] for points in series.values() for point in points) * 2)
        one.set(xlabel="nodes", ylabel=axis)
        one.legend(fontsize=7)
    return figure


# ---- a row for each case ----

def draw_cases(pyplot, measurements, unit, axis, own="sgpd", wanted=None):
    """Ours and the baselines of each case as dots on one line; logarithmic where they lie far apart."""
    series, cases = {own: []}, []
    for line in (line for line in measurements if line["unit"] == unit):
        if line["case"] not in cases:
            cases.append(line["case"])
            series[own].append((cases.index(line["case"]), line["value"], line["low"], line["high"]))
        if line["baseline"]:
            value = line["baseline_value"]
            series.setdefault(line["baseline"], []).append((cases.index(line["case"]), value, value, value))
    if not cases:
        return None
    figure, axes = pyplot.subplots(figsize=(8.5, 1.2 + 0.27 * len(cases)), layout="constrained")
    for index, (label, points) in enumerate(series.items()):
        axes.errorbar([point[1] for point in points], [point[0] for point in points], xerr=extremes(points),
                      label=label, color=COLOURS[index % len(COLOURS)], marker=MARKERS[index % len(MARKERS)],
                      linestyle="none", capsize=2)
    if wanted is not None:
        axes.axvline(wanted, color="black", linestyle="--", linewidth=1, label=f"wanted: below {wanted:g}")
    values = [point[1] for points in series.values() for point in points if point[1] > 0]
    if values and max(values) > 10 * min(values):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(plain)
    else:
        axes.set_xlim(left=0)
    same = len({case.partition(": ")[2] for case in cases}) == 1  # the axis says it
    axes.set_yticks(range(len(cases)), [case.partition(": ")[0] for case in cases] if same else cases)
    axes.set_ylim(len(cases) - 0.5, -0.5)
    axes.set_xlabel(axis)
    # Above the plot, and to the left from its end: the names of the cases leave room there.
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, fontsize=8)
    return figure


DRAWN = {
    "limit": (draw_rounds, {}),
    "round": (draw_rounds, {}),
    "cipher": (draw_rounds, {}),
    "peer": (draw_rounds, {}),
    "reduce": (draw_rounds, {}),
    "train": (draw_cases, {"unit": "rows/s", "axis": "rows a second"}),
    "scale": (draw_growth, {}),
    "idle": (draw_cases, {"unit": "% of a core", "axis": "processor time of a node (% of a core)",
                          "wanted": IDLE_WANTED}),
    "rows": (draw_rounds, {}),
    "guard": (draw_cases, {"unit": "rounds/s", "axis": "rounds a second"}),
    "accuracy": (draw_cases, {"unit": "s", "axis": "seconds to the accuracy"}),
    "bytes": (draw_cases, {"unit": "s", "axis": "seconds to the accuracy"}),
    "attach": (draw_cases, {"unit": "s", "axis": "seconds"}),
}


def draw(name, measurements, folder):
    """Write FOLDER/NAME.svg; its path, or None if there is nothing to draw. Takes away one that was there.

    Raises figures.Skip, with the reason, without matplotlib."""
    path = os.path.join(folder, f"{name}.svg")
    if os.path.exists(path):
        os.unlink(path)
    measured = [line for line in measurements if "skipped" not in line]
    if not measured or name not in DRAWN:
        return None
    pyplot = library()
    function, options = DRAWN[name]
    figure = function(pyplot, measured, **options)
    if figure is None:
        return None
    os.makedirs(folder, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return path
