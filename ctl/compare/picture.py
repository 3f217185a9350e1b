# SPDX-License-Identifier: Apache-2.0
"""A picture of a comparison: SVG by hand, one panel for each measure against each cost.

Of every variant a line for its worst node and a dotted one for its best. A panel of ends has one dot for each variant, at
its last value, over a logarithmic axis, and a line through those that no other variant beats in both.
"""
import math
from xml.sax.saxutils import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f")
DASHES = ("", "7 3", "2 2")  # of the second and third eight variants
WIDTH, HEIGHT, LEFT, TOP, GAP = 330, 210, 62, 34, 30  # of a panel, in pixels, and around it
TICKS = 5


def ticks(low, high):
    """Round numbers from low to high, about TICKS of them."""
    least = max(high - low, 1e-12) / TICKS
    step = 10.0 ** math.floor(math.log10(least))
    step *= next(factor for factor in (1, 2, 5, 10) if step * factor >= least * 0.999)
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def number(value):
    return f"{value:.10g}" if abs(value) < 1e6 else f"{value:.3g}"


class Panel:
    """Axes at a place of the picture, and the lines within them. `lines`: {(variant, end): [(x, y)]}."""

    def __init__(self, x, y, title, lines):
        self.x, self.y, self.title = x, y, title
        points = [point for line in lines.values() for point in line]
        self.lines = lines
        self.right = max((x for x, _ in points), default=1) or 1
        values = sorted(y for _, y in points) or [0, 1]
        # a line that begins far off must not press all others flat
        self.low, self.high = values[0], values[min(len(values) - 1, int(len(values) * 0.98))]
        if not self.high > self.low:
            self.low, self.high = self.low - 0.5, self.high + 0.5

    def place(self, x, y):
        part = min(1.0, max(0.0, (y - self.low) / (self.high - self.low)))
        return self.x + x / self.right * WIDTH, self.y + HEIGHT * (1 - part)

    def draw(self, colours):
        yield f'<text x="{self.x + WIDTH / 2:g}" y="{self.y - 10:g}" class="title">{escape(self.title)}</text>'
        yield f'<rect x="{self.x:g}" y="{self.y:g}" width="{WIDTH}" height="{HEIGHT}" class="frame"/>'
        for value in ticks(0, self.right):
            x, _ = self.place(value, self.low)
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{self.y}" y2="{self.y + HEIGHT}" class="grid"/>'
            yield f'<text x="{x:.1f}" y="{self.y + HEIGHT + 14}" class="below">{number(value)}</text>'
        for value in ticks(self.low, self.high):
            _, y = self.place(0, value)
            yield f'<line x1="{self.x}" x2="{self.x + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
            yield f'<text x="{self.x - 5}" y="{y + 4:.1f}" class="beside">{number(value)}</text>'
        for (variant, end), points in self.lines.items():
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.place(*point) for point in points))
            colour, dash = colours[variant]
            dash = "1 3" if end == "best" else dash
            yield (f'<polyline points="{path}" stroke="{colour}" stroke-dasharray="{dash}" '
                   f'stroke-width="{1 if end == "best" else 1.6}"/>')


class Ends(Panel):
    """The same of where each line ends. `greater`: more is better."""

    def __init__(self, x, y, title, lines, greater):
        self.dots = {variant: points[-1] for (variant, end), points in lines.items()
                     if end == "worst" and points and points[-1][0] > 0}
        super().__init__(x, y, title, {("", "worst"): [(math.log10(x), y) for x, y in self.dots.values()]})
        self.greater = greater
        values = [value for _, value in self.dots.values()] or [0, 1]
        margin = (max(values) - min(values)) * 0.08 or 0.5
        self.low, self.high = min(values) - margin, max(values) + margin
        exponents = [math.log10(cost) for cost, _ in self.dots.values()] or [0]
        self.left, self.right = min(exponents) - 0.1, max(exponents) + 0.1

    def place(self, x, y):
        part = (y - self.low) / (self.high - self.low)
        across = (math.log10(x) - self.left) / (self.right - self.left)
        return self.x + across * WIDTH, self.y + HEIGHT * (1 - part)

    def costs(self):
        """1, 2 and 5 of each power of ten that the axis has."""
        powers = range(math.floor(self.left), math.ceil(self.right))
        costs = [factor * 10.0 ** power for power in powers for factor in (1, 2, 5)]
        return [cost for cost in costs if self.left <= math.log10(cost) <= self.right]

    def frontier(self):
        """From the cheapest on, each that is better than all cheaper ones."""
        best = None
        for cost, value in sorted(self.dots.values(), key=lambda dot: (dot[0], -dot[1] if self.greater else dot[1])):
            if best is None or (value > best if self.greater else value < best):
                best = value
                yield cost, value

    def draw(self, colours):
        yield f'<text x="{self.x + WIDTH / 2:g}" y="{self.y - 10:g}" class="title">{escape(self.title)}</text>'
        yield f'<rect x="{self.x:g}" y="{self.y:g}" width="{WIDTH}" height="{HEIGHT}" class="frame"/>'
        for value in self.costs():
            x, _ = self.place(value, self.low)
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{self.y}" y2="{self.y + HEIGHT}" class="grid"/>'
            yield f'<text x="{x:.1f}" y="{self.y + HEIGHT + 14}" class="below">{number(value)}</text>'
        for value in ticks(self.low, self.high):
            _, y = self.place(10 ** self.left, value)
            yield f'<line x1="{self.x}" x2="{self.x + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
            yield f'<text x="{self.x - 5}" y="{y + 4:.1f}" class="beside">{number(value)}</text>'
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.place(*dot) for dot in self.frontier()))
        yield f'<polyline points="{path}" stroke="#bbb" stroke-width="1.6"/>'
        for variant, dot in self.dots.items():
            x, y = self.place(*dot)
            right = x > self.x + WIDTH * 0.75
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colours[variant][0]}"/>'
            yield (f'<text x="{x - 7 if right else x + 7:.1f}" y="{y + 4:.1f}" class="{"beside" if right else "after"}">'
                   f'{escape(variant)}</text>')


def style_of(variants):
    return {name: (COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)])
            for i, name in enumerate(variants)}


def draw(title, variants, panels, note):
    """The SVG. `variants`: names in order; `note`: a line below them; `panels`: rows of (title, lines), each as wide as
    the others, or of (title, lines, greater) for where they end."""
    colours = style_of(variants)
    columns = max(len(row) for row in panels)
    width = columns * (LEFT + WIDTH + GAP) + 190
    height = max(len(panels) * (TOP + HEIGHT + GAP) + 30, 60 + 18 * len(variants))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}">',
           "<style>text{font:11px sans-serif}.title{text-anchor:middle;font-size:12px}.below{text-anchor:middle}"
           ".beside{text-anchor:end}.frame{fill:none;stroke:#999}.grid{stroke:#e4e4e4}polyline{fill:none}</style>",
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{LEFT}" y="16" style="font-size:13px">{escape(title)}</text>']
    for r, row in enumerate(panels):
        for c, what in enumerate(row):
            kind = Panel if len(what) == 2 else Ends
            panel = kind(LEFT + c * (LEFT + WIDTH + GAP), 24 + TOP + r * (TOP + HEIGHT + GAP), *what)
            out.extend(panel.draw(colours))
    x = columns * (LEFT + WIDTH + GAP)
    for i, name in enumerate(variants):
        colour, dash = colours[name]
        y = 60 + 18 * i
        out.append(f'<polyline points="{x},{y} {x + 26},{y}" stroke="{colour}" stroke-width="2" '
                   f'stroke-dasharray="{dash}"/><text x="{x + 32}" y="{y + 4}">{escape(name)}</text>')
    out.append(f'<text x="{x}" y="{60 + 18 * len(variants)}">{escape(note)}</text>')
    return "\n".join([*out, "</svg>", ""])
