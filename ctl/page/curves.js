// SPDX-License-Identifier: Apache-2.0
// Curves over the history: one figure a quantity, all with the same part of the horizontal axis. A figure is a slider for
// the keyboard and for a screen reader: its value is the row at the mark.

import { byId, html, svg, setAttributes, setText } from "./document.js";
import { count, isKnown, number, percent, plural, seconds } from "./numbers.js";
import { History } from "./history.js";

const WIDTH = 480, HEIGHT = 220, LEFT = 70, RIGHT = 8, TOP = 10, BOTTOM = 26;
const INNER = WIDTH - LEFT - RIGHT;
const NOISE = 1e-6; // relative; values that differ by less are drawn as equal

const QUANTITIES = [
  { name: "Loss", unit: "", format: number, lines: [["training", "loss"], ["test", "test_loss"]] },
  { name: "Accuracy", unit: "%", format: percent, lines: [["test", "test_accuracy"]] },
  { name: "Consensus distance", unit: "relative", format: number, lines: [["largest", "disagreement"]], log: true },
  { name: "Weight", unit: "push-sum", format: number, lines: [["own", "weight"]] },
  { name: "Rounds a second", unit: "1/s", format: number, lines: [["pace", "pace"]] },
];
const UNITS = {
  round: { name: "round", format: count },
  seconds: { name: "time", format: seconds },
  epoch: { name: "epoch", format: number },
};

export class Curves {
  #history;
  #figures;
  #unit = "round";
  #range = null; // [from, to] in the unit; null: all
  #mark = null; // number of the row at the mark; null: the latest
  #held = false; // the mark stays only while the figure has the focus, so that its value does not change under a reader

  constructor(history) {
    this.#history = history;
    this.#figures = QUANTITIES.map((quantity) => this.#makeFigure(quantity));
    byId("curves").append(...this.#figures.map((figure) => figure.element));
    byId("unit").addEventListener("change", (event) => this.#choose(event.target.value));
    const act = { "zoom-in": () => this.#zoom(0.5), "zoom-out": () => this.#zoom(2), earlier: () => this.#shift(-0.5),
      later: () => this.#shift(0.5), "zoom-all": () => this.#setRange(null) };
    for (const [id, action] of Object.entries(act)) byId(id).addEventListener("click", action);
  }

  // ---- the horizontal axis ----

  #choose(unit) {
    this.#unit = unit;
    this.#setRange(null);
  }

  #all() {
    const rows = this.#history.rows.filter((row) => isKnown(row[this.#unit]));
    return rows.length > 0 ? [rows[0][this.#unit], Math.max(rows.at(-1)[this.#unit], rows[0][this.#unit] + 1e-9)] : [0, 1];
  }

  #setRange(range) {
    const [first, last] = this.#all();
    this.#range = range && (range[0] > first || range[1] < last) ? range : null;
    this.draw();
  }

  #zoom(factor) {
    const [first, last] = this.#all(), [from, to] = this.#range ?? [first, last];
    const row = this.#rowAtMark(), at = row && row[this.#unit] >= from && row[this.#unit] <= to ? row[this.#unit] : (from + to) / 2;
    const half = ((to - from) * factor) / 2;
    if (half > (last - first) / 1e6) this.#setRange([Math.max(first, at - half), Math.min(last, at + half)]);
  }

  #shift(part) {
    const [first, last] = this.#all(), [from, to] = this.#range ?? [first, last];
    const step = Math.max(first - from, Math.min(last - to, part * (to - from)));
    this.#setRange([from + step, to + step]);
  }

  #visible() {
    const [from, to] = this.#range ?? this.#all();
    return this.#history.rows.filter((row) => row[this.#unit] >= from && row[this.#unit] <= to);
  }

  // ---- the mark ----

  #rowAtMark() {
    const rows = this.#history.rows;
    return this.#mark === null ? rows.at(-1) : rows.findLast((row) => row.number <= this.#mark) ?? rows[0];
  }

  #moveMark(steps) {
    const rows = this.#visible(), at = rows.indexOf(this.#rowAtMark());
    const row = rows[Math.max(0, Math.min(rows.length - 1, (at < 0 ? rows.length - 1 : at) + steps))];
    this.#setMark(row);
  }

  #setMark(row) {
    this.#mark = row?.number ?? null;
    this.#held = row === this.#history.rows.at(-1);
    this.draw();
  }

  #hold(focused) {
    if (focused && this.#mark === null) this.#setMark(this.#history.rows.at(-1));
    else if (!focused && this.#held) this.#mark = null;
  }

  #markAt(x) {
    const [from, to] = this.#range ?? this.#all(), wanted = from + ((to - from) * (x - LEFT)) / INNER;
    const rows = this.#visible();
    const row = rows.reduce((best, one) =>
      !best || Math.abs(one[this.#unit] - wanted) < Math.abs(best[this.#unit] - wanted) ? one : best, null);
    this.#setMark(row);
  }

  // ---- a figure ----

  #makeFigure(quantity) {
    const id = `curve-${quantity.lines[0][1]}`;
    const log = html("input", { type: "checkbox", checked: quantity.log ? "" : null });
    const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" });
    const plot = html("div", { class: "plot", role: "slider", tabindex: "0", "aria-labelledby": id }, picture);
    const caption = html("figcaption");
    const heading = html("h3", { id }, quantity.unit ? `${quantity.name} (${quantity.unit})` : quantity.name);
    const element = html("figure", {}, html("div", { class: "head" }, heading,
      html("label", {}, log, ` log scale`)), plot, caption);
    const figure = { quantity, element, picture, plot, caption, log };
    log.setAttribute("aria-label", `Log scale of ${quantity.name.toLowerCase()}`);
    log.addEventListener("change", () => this.draw());
    plot.addEventListener("focus", () => this.#hold(true));
    plot.addEventListener("blur", () => this.#hold(false));
    plot.addEventListener("keydown", (event) => this.#onKey(event));
    this.#letDrag(figure);
    return figure;
  }

  #onKey(event) {
    const steps = Math.max(1, Math.floor(this.#visible().length / 20));
    const act = { ArrowLeft: () => this.#moveMark(-1), ArrowRight: () => this.#moveMark(1), ArrowDown: () => this.#moveMark(-1),
      ArrowUp: () => this.#moveMark(1), PageUp: () => this.#moveMark(steps), PageDown: () => this.#moveMark(-steps),
      Home: () => this.#moveMark(-Infinity), End: () => this.#moveMark(Infinity), "+": () => this.#zoom(0.5),
      "=": () => this.#zoom(0.5), "-": () => this.#zoom(2), 0: () => this.#setRange(null) }[event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    act();
  }

  #letDrag(figure) {
    let from = null;
    const place = (event) => {
      const box = figure.picture.getBoundingClientRect();
      return Math.max(LEFT, Math.min(WIDTH - RIGHT, ((event.clientX - box.left) * WIDTH) / box.width));
    };
    figure.plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      from = place(event);
      figure.plot.setPointerCapture(event.pointerId);
    });
    figure.plot.addEventListener("pointermove", (event) => {
      if (from === null) return;
      figure.choice = [Math.min(from, place(event)), Math.max(from, place(event))];
      this.#drawFigure(figure, this.#visible());
    });
    const end = (event) => {
      const [left, right] = figure.choice ?? [0, 0], [first, last] = this.#range ?? this.#all();
      const value = (x) => first + ((last - first) * (x - LEFT)) / INNER;
      const started = from !== null;
      from = figure.choice = null;
      if (right - left > 8) this.#setRange([value(left), value(right)]);
      else if (started && event.type === "pointerup") this.#markAt(place(event));
    };
    figure.plot.addEventListener("pointerup", end);
    figure.plot.addEventListener("pointercancel", end);
  }

  // ---- drawing ----

  draw() {
    const rows = this.#visible();
    for (const figure of this.#figures) this.#drawFigure(figure, rows);
    const { every, total, oldest } = this.#history, part = this.#range ? "the chosen part of " : "";
    setText(byId("curves-note"), total === 0 ? "The daemon has no history yet: a row is added after each evaluation." :
      `${plural(rows.length, "row")} of ${part}${count(total)} since the daemon started.` +
      (every > 1 ? ` Thinned: of every ${count(every)} rows the page shows one.` : "") +
      (oldest > 0 ? ` The daemon keeps the rows from ${count(oldest)} on; history.csv has all.` : ""));
  }

  #valueOf(key, row) {
    if (key !== "pace") return row[key];
    const rows = this.#history.rows, at = rows.indexOf(row);
    return History.pace(rows[at - 1], row);
  }

  #drawFigure(figure, rows) {
    const { quantity, picture } = figure, log = figure.log.checked, [from, to] = this.#range ?? this.#all();
    const paces = quantity.lines[0][1] === "pace" ? pacesOf(this.#history.rows) : null;
    const lines = quantity.lines.map(([name, key]) => ({ name, points: rows
      .map((row) => [row[this.#unit], paces ? paces.get(row) : row[key]])
      .filter(([x, y]) => isKnown(x) && isKnown(y) && (!log || y > 0)) }));
    const [low, high] = bounds(lines.flatMap((line) => line.points), log);
    const x = (value) => LEFT + ((value - from) / (to - from || 1)) * INNER;
    const scale = log ? Math.log10 : (value) => value;
    const y = (value) => TOP + (1 - (scale(value) - scale(low)) / (scale(high) - scale(low) || 1)) * (HEIGHT - TOP - BOTTOM);
    const marked = this.#rowAtMark();
    picture.replaceChildren(...axes(low, high, log, y, quantity.format), ...this.#ends(from, to),
      ...lines.map((line, i) => svg("path", { class: i > 0 ? "line second" : "line", d: path(line.points, x, y) })),
      ...(marked && rows.includes(marked) ? [svg("line", { class: "mark", x1: x(marked[this.#unit]), x2: x(marked[this.#unit]),
        y1: TOP, y2: HEIGHT - BOTTOM })] : []),
      ...(figure.choice ? [svg("rect", { class: "choice", x: figure.choice[0], y: TOP,
        width: figure.choice[1] - figure.choice[0], height: HEIGHT - TOP - BOTTOM })] : []));
    this.#tell(figure, lines, rows, marked);
  }

  #ends(from, to) {
    const { name, format } = UNITS[this.#unit], y = HEIGHT - 8;
    return [svg("text", { x: LEFT, y }, format(from)), svg("text", { x: (LEFT + WIDTH) / 2, y, "text-anchor": "middle" }, name),
      svg("text", { x: WIDTH - RIGHT, y, "text-anchor": "end" }, format(to))];
  }

  /** What the figure shows, in words. */
  #tell(figure, lines, rows, marked) {
    const { quantity, plot, caption } = figure, { name, format } = UNITS[this.#unit];
    const values = quantity.lines.map(([line, key]) => [line, marked ? this.#valueOf(key, marked) : null])
      .filter(([, value]) => isKnown(value)).map(([line, value]) => `${line} ${quantity.format(value)}`);
    const where = marked ? `${name} ${format(marked[this.#unit])}: ${values.join(", ") || "not measured"}` : "no rows yet";
    const known = lines.flatMap((line) => line.points.map((point) => point[1]));
    const span = known.length > 0 ? `; between ${quantity.format(extreme(known, Math.min))} and ${quantity.format(extreme(known, Math.max))}` : "";
    const dashed = lines.length > 1 && lines[1].points.length > 0 ? ` (${lines[1].name}: dashed)` : "";
    setText(caption, `${where}${span}${dashed}`);
    setAttributes(plot, { "aria-valuemin": 0, "aria-valuemax": Math.max(0, rows.length - 1),
      "aria-valuenow": Math.max(0, rows.indexOf(marked)), "aria-valuetext": where + span });
  }
}

function pacesOf(rows) {
  return new Map(rows.map((row, i) => [row, History.pace(rows[i - 1], row)]));
}

const extreme = (values, choose) => values.reduce((a, b) => choose(a, b));

/** From the least to the greatest value, with some room if they are equal. */
function bounds(points, log) {
  if (points.length === 0) return log ? [0.1, 1] : [0, 1];
  const values = points.map((point) => point[1]);
  const low = extreme(values, Math.min), high = extreme(values, Math.max);
  if (log) return high / low > 1 + NOISE ? [low, high] : [low / 2, high * 2];
  const equal = high - low < NOISE * Math.abs(high);
  const room = equal ? Math.abs(low) * 0.1 || 1 : 0.05 * (high - low);
  return [low - room, high + room];
}

function axes(low, high, log, y, format) {
  const values = log ? decades(low, high) : ticks(low, high), digits = digitsThatTell(values);
  return values.flatMap((value) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, format(Number(value.toPrecision(digits)), digits))]);
}

/** The multiples of 1, 2 or 5 times a power of ten in a range: two to six of them. */
function ticks(low, high) {
  const least = (high - low) / 5, power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= least * (1 - NOISE));
  const first = Math.ceil(low / step - NOISE), last = Math.floor(high / step + NOISE);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step + 0); // + 0: never -0
}

/** How many digits tell neighbouring values apart. */
function digitsThatTell(values) {
  const size = (value) => Math.floor(Math.log10(Math.abs(value) || 1));
  const apart = extreme(values.slice(1).map((value, i) => value - values[i]), Math.min);
  return Math.max(3, Math.min(8, size(extreme(values.map(Math.abs), Math.max)) - size(apart * (1 + NOISE)) + 1));
}

/** The powers of ten in a range, four at most; or its ends, if there are fewer than two. */
function decades(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  if (last - first < 1) return [low, high];
  const step = Math.ceil((last - first + 1) / 4);
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => 10 ** (first + i * step));
}

/** A path with the least and the greatest value of each pixel column, so that its length is bounded and no peak is lost. */
function path(points, x, y) {
  const columns = new Map();
  for (const [at, value] of points) {
    const column = Math.round(x(at));
    const known = columns.get(column);
    if (!known) columns.set(column, { first: value, low: value, high: value, last: value });
    else Object.assign(known, { low: Math.min(known.low, value), high: Math.max(known.high, value), last: value });
  }
  const corners = [...columns].flatMap(([column, { first, low, high, last }]) =>
    [...new Set([first, low, high, last])].map((value) => `${column} ${y(value).toFixed(1)}`));
  return corners.length === 0 ? "" : `M${corners.length > 1 ? corners.join("L") : `${corners[0]}h3`}`;
}
