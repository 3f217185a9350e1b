// SPDX-License-Identifier: Apache-2.0
// The graph: nodes on a circle, the edges of a phase or of all phases, and who waits for whom. Each node is a button. The
// arrows of the keyboard go from node to node.

import { byId, html, setAttributes, setFacts, setList, setText, svg } from "./document.js";
import { NONE, bytes, count, isKnown, milliseconds, number, percent, plural, rate, seconds } from "./numbers.js";

const SIZE = 640, CENTRE = SIZE / 2, RADIUS = 240;
const EDGES_MAX = 1500; // drawn; of more edges, every second one is left out, again and again
const LABELS_MAX = 128; // names; from ROUND_MIN nodes on they are written along the radius
const ROUND_MIN = 25;
const PHASES_MAX = 64; // in the list
const NAME_MAX = 8; // letters of a name in the picture
const WAIT_SECONDS = 1; // each round has shorter waits

/** The groups of states: how a node is drawn. */
export const GROUPS = {
  training: ["T", "training"], changing: ["J", "joining, settling or draining"], waiting: ["W", "waiting for another node"],
  paused: ["P", "paused"], finished: ["F", "finished"], absent: ["A", "absent, or not heard"], unknown: ["?", "not known"],
};
const OF_STATE = { training: "training", joining: "changing", settling: "changing", draining: "changing", paused: "paused",
  finished: "finished", awaiting_model: "changing", awaiting_scaling: "changing" };

export const waitsLong = ({ stale, waiting }) => !stale && Boolean(waiting?.peer) && !(waiting.seconds < WAIT_SECONDS);

export function groupOf(member) {
  if (member.stale && member.state) return "absent";
  if (waitsLong(member)) return "waiting";
  return Object.hasOwn(OF_STATE, member.state) ? OF_STATE[member.state] : "unknown";
}

export class Graph {
  #selected = null; // name
  #model = null;
  #names = ""; // of the nodes in the picture
  #arrows = ""; // what its arrows were made of
  #places = new Map(); // of each name
  #vertices = new Map(); // of each name, its element

  constructor() {
    byId("phase").addEventListener("change", () => this.draw(this.#model));
    byId("legend").append(...Object.entries(GROUPS).map(([group, [letter, words]]) =>
      html("li", {}, html("span", { class: `letter ${group}` }, letter), ` ${words}`)));
  }

  /** `model` as main.js makes it. */
  draw(model) {
    this.#model = model;
    if (!model?.topology) return;
    this.#selected ??= model.self;
    this.#offerPhases(model);
    this.#drawPicture(model);
    this.#tellWaits(model);
    this.#tellNode(model);
  }

  // ---- which edges ----

  #offerPhases({ topology, phase }) {
    const list = byId("phase"), phases = topology.phases.slice(0, PHASES_MAX);
    const texts = [["now", `the current phase (${phaseName(topology, phase)})`],
      ["cycle", `the whole cycle (${plural(topology.phases.length, "phase")})`],
      ...phases.map((_, i) => [String(i), phaseName(topology, i)])];
    if (list.options.length !== texts.length) {
      const chosen = list.value;
      list.replaceChildren(...texts.map(([value]) => html("option", { value })));
      list.value = texts.some(([value]) => value === chosen) ? chosen : "now";
    }
    texts.forEach(([, text], i) => setText(list.options[i], text));
  }

  #phases({ topology, phase }) {
    const choice = byId("phase").value;
    if (choice === "cycle") return topology.phases;
    return [topology.phases[choice === "now" ? phase : Number(choice)]].filter(Boolean);
  }

  #edges(model) {
    const unique = new Map();
    for (const phase of this.#phases(model))
      for (const edge of phase.edges ?? []) unique.set(`${edge.source} ${edge.target}`, edge);
    const all = [...unique.values()];
    const own = all.filter((edge) => edge.source === model.self || edge.target === model.self);
    let others = all.filter((edge) => edge.source !== model.self && edge.target !== model.self);
    let every = 1;
    while (others.length > EDGES_MAX) [others, every] = [others.filter((_, i) => i % 2 === 0), every * 2];
    return { edges: [...others, ...own], total: all.length, every, known: this.#phases(model).every((phase) => phase.edges) };
  }

  // ---- the picture ----

  /** Nodes stay while their names stay, so that the focus and a screen reader keep their place. */
  #drawPicture(model) {
    const names = model.members.map((member) => member.name), shown = this.#edges(model);
    if (this.#names !== JSON.stringify(names)) this.#makePicture(model, names);
    const waits = model.members.filter(waitsLong).map((member) => [member.name, member.waiting.peer]);
    const classes = shown.edges.map((edge) => edgeClass(model, edge, this.#selected));
    const arrows = JSON.stringify([this.#names, shown.edges, waits, classes]);
    if (arrows !== this.#arrows) {
      this.#arrows = arrows;
      byId("edges").replaceChildren(...shown.edges.flatMap(({ source, target }, i) => this.#arrow(source, target, classes[i])));
      byId("waiting").replaceChildren(...waits.flatMap(([source, target]) => this.#arrow(source, target, "wait")));
    }
    for (const member of model.members) this.#drawVertex(model, member);
    setText(byId("graph-note"), noteOf(shown, names.length));
  }

  #makePicture(model, names) {
    const n = names.length, radius = n <= 12 ? 24 : n <= 40 ? 15 : n <= 128 ? 9 : 4;
    this.#names = JSON.stringify(names);
    this.#places = new Map(names.map((name, i) => {
      const angle = (2 * Math.PI * i) / n - Math.PI / 2;
      return [name, { x: CENTRE + RADIUS * Math.cos(angle), y: CENTRE + RADIUS * Math.sin(angle), angle, radius }];
    }));
    const every = Math.ceil(n / LABELS_MAX);
    this.#vertices = new Map(names.map((name, i) => [name, this.#makeVertex(name, i % every === 0)]));
    byId("graph-picture").replaceChildren(svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group",
      "aria-label": `Graph of ${plural(n, "node")}; arrow keys go from node to node` },
    svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 12, markerHeight: 12,
      markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { class: "tip", d: "M0 0L8 4L0 8Z" }))),
    svg("g", { id: "edges", "aria-hidden": "true" }), svg("g", { id: "waiting", "aria-hidden": "true" }),
    ...this.#vertices.values()));
  }

  #arrow(source, target, kind) {
    const from = this.#places.get(source), to = this.#places.get(target);
    return from && to ? [svg("path", { class: kind, d: bow(from, to), "marker-end": "url(#tip)" })] : [];
  }

  #makeVertex(name, named) {
    const { x, y, angle, radius } = this.#places.get(name), side = Math.cos(angle);
    const far = radius + 10 + 8 * Math.abs(Math.sin(angle));
    const label = { x: x + far * side, y: y + far * Math.sin(angle), "dominant-baseline": "central", "aria-hidden": "true",
      "text-anchor": side > 0.3 ? "start" : side < -0.3 ? "end" : "middle" };
    if (this.#places.size >= ROUND_MIN) Object.assign(label, alongRadius(x, y, angle, radius + 7));
    const vertex = svg("g", { class: "vertex", role: "button", "data-name": name }, svg("title"),
      svg("circle", { class: "ring", cx: x, cy: y, r: radius + 4 }), svg("circle", { cx: x, cy: y, r: radius }),
      ...(radius >= 9 ? [svg("text", { class: radius < 15 ? "glyph tiny" : "glyph", x, y, "aria-hidden": "true" })] : []),
      ...(named ? [svg("text", label, name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name)] : []));
    vertex.addEventListener("click", () => this.#select(name));
    vertex.addEventListener("keydown", (event) => this.#onKey(event, name));
    return vertex;
  }

  #drawVertex(model, member) {
    const vertex = this.#vertices.get(member.name), chosen = member.name === this.#selected, group = groupOf(member);
    const words = sentence(model, member), glyph = vertex.querySelector(".glyph");
    setAttributes(vertex, { tabindex: chosen ? 0 : -1, "aria-pressed": chosen, "aria-label": words });
    setText(vertex.querySelector("title"), words);
    setAttributes(vertex.querySelector("circle:not(.ring)"), { class: group });
    if (glyph) setText(glyph, GROUPS[group][0]);
  }

  // ---- the selected node ----

  #select(name) {
    this.#selected = name;
    this.draw(this.#model);
  }

  #onKey(event, name) {
    const names = this.#model.members.map((member) => member.name), n = names.length;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const next = event.key === "Home" ? names[0] : event.key === "End" ? names.at(-1)
      : step ? names[(names.indexOf(name) + step + n) % n] : ["Enter", " "].includes(event.key) ? name : null;
    if (next === null || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.#select(next);
    this.#vertices.get(next)?.focus();
  }

  #tellWaits({ members }) {
    const lines = members.filter(waitsLong).map(({ name, waiting }) => `${name} waits for ${waiting.peer}` +
      ` (${waiting.for}${isKnown(waiting.seconds) ? `, ${seconds(waiting.seconds)}` : ""})`);
    setList(byId("waits"), lines.length > 0 ? lines.slice(0, 50) : [`No node is known to wait for longer than ${seconds(WAIT_SECONDS)}.`]);
  }

  #tellNode(model) {
    const member = model.members.find((one) => one.name === this.#selected);
    setText(byId("node-title"), member ? `Node ${member.name}${member.name === model.self ? " (this one)" : ""}` : "Selected node");
    if (!member) return setFacts(byId("node-facts"), []);
    const edges = this.#edges(model).edges, list = (texts) => (texts.length === 0 ? "none" : texts.slice(0, 12).join(", ") +
      (texts.length > 12 ? ` and ${count(texts.length - 12)} more` : ""));
    const fraction = (edge, other) => `${other} (${number(edge.fraction)})`;
    const links = model.links.filter((link) => link.name === member.name);
    setFacts(byId("node-facts"), [["State", stateOf(member)], ["Round", count(member.round)],
      ["Gives to", list(edges.filter((edge) => edge.source === member.name).map((edge) => fraction(edge, edge.target)))],
      ["Receives from", list(edges.filter((edge) => edge.target === member.name).map((edge) => fraction(edge, edge.source)))],
      ["Loss", isKnown(member.loss) ? number(member.loss) : null],
      ["Accuracy", isKnown(member.accuracy) ? percent(member.accuracy) : null],
      ["Topology", member.topology && member.topology.digest !== model.status.topology?.digest ? "another than this node's" : null],
      ...links.map((link) => [`Link ${link.direction}`, linkText(link)])]);
  }
}

const phaseName = ({ phases }, index) => phases[index]?.name || `phase ${index}`;

export const stateOf = (member) => (!member.state ? "not known" : member.stale ? `absent, last ${member.state}` : member.state);

function linkOf(model, edge) {
  if (edge.source === model.self) return model.links.find((link) => link.name === edge.target && link.direction === "out");
  if (edge.target === model.self) return model.links.find((link) => link.name === edge.source && link.direction === "in");
  return null;
}

export function linkText(link) {
  return [link.state, rate(link.rate), link.cipher ?? "plain", milliseconds(link.rtt_ms),
    `${bytes(link.bytes_sent + link.bytes_received)} in all`].filter((text) => text !== NONE).join(", ");
}

function sentence(model, member) {
  const waits = waitsLong(member) ? `, waits for ${member.waiting.peer}` : "";
  return `${member.name}${member.name === model.self ? ", this node" : ""}: ${stateOf(member)}${waits}`;
}

function noteOf({ total, every, known }, nodes) {
  const left = Math.ceil(nodes / LABELS_MAX);
  return `${[plural(nodes, "node"), plural(total, "edge"), known ? "" : "the daemon leaves out the edges of so large a topology",
    every > 1 ? `thinned: one edge of ${count(every)} between other nodes is drawn` : "",
    left > 1 ? `one name of ${count(left)} is written` : ""].filter(Boolean).join("; ")}.`;
}

function edgeClass(model, edge, selected) {
  const state = linkOf(model, edge)?.state;
  const near = edge.source === selected || edge.target === selected;
  return ["edge", edge.source === model.self || edge.target === model.self ? "own" : "",
    state && state !== "up" ? "down" : "", near || model.members.length <= 16 ? "" : "far"].filter(Boolean).join(" ");
}

/** A name that is written outwards on the right, and inwards on the left, so that it is not upside down. */
function alongRadius(x, y, angle, far) {
  const [at, down] = [x + far * Math.cos(angle), y + far * Math.sin(angle)], left = Math.cos(angle) < -1e-9;
  const degrees = (angle * 180) / Math.PI + (left ? 180 : 0);
  return { class: "small", x: at, y: down, "text-anchor": left ? "end" : "start", transform: `rotate(${degrees} ${at} ${down})` };
}

/** A path that bends to its right, so that two edges in opposite directions are apart. */
function bow(from, to) {
  const dx = to.x - from.x, dy = to.y - from.y, length = Math.hypot(dx, dy) || 1, [ux, uy] = [dx / length, dy / length];
  const bend = Math.min(40, length * 0.12), gap = from.radius + 5;
  const middle = `${((from.x + to.x) / 2 - uy * bend).toFixed(1)} ${((from.y + to.y) / 2 + ux * bend).toFixed(1)}`;
  return `M${(from.x + ux * gap).toFixed(1)} ${(from.y + uy * gap).toFixed(1)}Q${middle} ` +
    `${(to.x - ux * gap).toFixed(1)} ${(to.y - uy * gap).toFixed(1)}`;
}
