// SPDX-License-Identifier: Apache-2.0
// What is shown as text: the fleet, the links, the log and the topology.

import { byId, setFacts, setList, setTable, setText } from "./document.js";
import { NONE, bytes, count, isKnown, milliseconds, number, percent, plural, rate, seconds } from "./numbers.js";
import { GROUPS, groupOf, stateOf, waitsLong } from "./graph.js";

const ROWS_MAX = 512; // of a table
const LINES_MAX = 4000; // of the topology
const EVENTS_MAX = 100; // of the log

// ---- the fleet ----

const order = { column: 0, down: false };

const waitText = (member) => (waitsLong(member) ? `${member.waiting.peer} (${member.waiting.for})` : NONE);
const ageText = (member) => isKnown(member.age) ? seconds(member.age) + (member.stale ? " (stale)" : "") : "never heard";

const FLEET = [
  { name: "Node", text: (m) => m.name, key: (m) => m.name },
  { name: "State", text: (m) => `${GROUPS[groupOf(m)][0]} ${stateOf(m)}`, key: stateOf },
  { name: "Age", number: true, text: ageText, key: (m) => m.age },
  { name: "Round", number: true, text: (m) => count(m.round), key: (m) => m.round },
  { name: "Rounds/s", number: true, text: (m) => number(m.rounds_per_second), key: (m) => m.rounds_per_second },
  { name: "Loss", number: true, text: (m) => number(m.loss), key: (m) => m.loss },
  { name: "Accuracy", number: true, text: (m) => percent(m.accuracy), key: (m) => m.accuracy },
  { name: "Weight", number: true, text: (m) => number(m.weight), key: (m) => m.weight },
  { name: "Waits for", text: waitText, key: waitText },
];

/** Texts by their letters and numbers; what is not known comes last. */
function compare(a, b) {
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b, "en", { numeric: true });
  return (isKnown(a) ? a : Infinity) - (isKnown(b) ? b : Infinity) || 0;
}

export function drawFleet(model) {
  const { column, down } = order, key = FLEET[column].key;
  const rows = [...model.members].sort((a, b) => (down ? compare(key(b), key(a)) : compare(key(a), key(b))));
  setTable(byId("fleet"), FLEET, rows.slice(0, ROWS_MAX), (member) => (member.stale ? "stale" : null), order, (chosen) => {
    order.down = order.column === chosen && !order.down;
    order.column = chosen;
    drawFleet(model.current());
  });
  const silent = model.members.filter((member) => member.stale).length;
  setText(byId("fleet-note"), `${plural(rows.length, "node")}, ${silent === 0 ? "none" : count(silent)} of them absent or not heard. ` +
    (model.whole ? "The age says how old a node's row is." :
      "This daemon does not tell of the whole fleet: the rows are those of the node and of its neighbours.") +
    (rows.length > ROWS_MAX ? ` The table has the first ${count(ROWS_MAX)}.` : ""));
}

// ---- the links ----

const LINKS = [
  { name: "Neighbour", text: (link) => link.name },
  { name: "Direction", text: (link) => link.direction },
  { name: "State", text: (link) => link.state },
  { name: "Rate", number: true, text: (link) => rate(link.rate) },
  { name: "Cipher", text: (link) => link.cipher ?? (link.state === "up" ? "plain" : NONE) },
  { name: "Round trip", number: true, text: (link) => milliseconds(link.rtt_ms) },
  { name: "Rounds behind", number: true, text: (link) => count(link.lag_rounds) },
  { name: "Heard", number: true, text: (link) => (isKnown(link.last_heard_seconds) ? `${seconds(link.last_heard_seconds)} ago` : NONE) },
  { name: "Bytes", number: true, text: (link) => bytes(link.bytes_sent + link.bytes_received) },
  { name: "Error", text: (link) => link.last_error ?? NONE },
];

export function drawLinks(model) {
  const links = model.links;
  setTable(byId("links"), LINKS, links.slice(0, ROWS_MAX), (link) => (link.state !== "up" ? "stale" : null));
  setText(byId("links-note"), `${plural(links.length, "link")}, ${count(links.filter((link) => link.state === "up").length)} up.` +
    (links.length > ROWS_MAX ? ` The table has the first ${count(ROWS_MAX)}.` : ""));
}

// ---- the log ----

export function drawLog(log) {
  const lines = log.lines.slice(-EVENTS_MAX).reverse();
  setList(byId("log"), lines);
  byId("log").start = lines.length;
  setText(byId("log-note"), log.source === null ? "No log is followed: start sgpctl dashboard with --log FILE." :
    `The last ${plural(lines.length, "line")} of ${log.source}, the latest first.`);
}

// ---- the topology ----

const quoted = (text) => `"${String(text).replaceAll('"', '\\"')}"`;
const bare = (name) => (/^[A-Za-z_][A-Za-z_0-9]*$/.test(name) ? name : quoted(name));

function* linesOf(topology) {
  for (const [i, phase] of topology.phases.entries()) {
    yield `digraph ${bare(phase.name || `phase${i}`)} {`;
    if (phase.rounds !== 1) yield `  rounds=${phase.rounds};`;
    if (phase.once) yield "  once=true;";
    if (i === 0 && topology.tls !== "off") yield `  tls=${topology.tls};`;
    if (i === 0 && topology.version > 0) yield `  version=${topology.version};`;
    if (i === 0) for (const node of topology.nodes)
      yield `  ${bare(node.name)} [address=${quoted(node.address)}${node.key ? `, key=${quoted(node.key)}` : ""}];`;
    for (const edge of phase.edges ?? []) yield `  ${bare(edge.source)} -> ${bare(edge.target)} [fraction=${number(edge.fraction)}];`;
    if (!phase.edges) yield `  // ${plural(phase.edge_count, "edge")}, left out by the daemon`;
    yield "}";
  }
}

export function drawTopology(topology) {
  setFacts(byId("topology-facts"), [["File", topology.file], ["Nodes", count(topology.nodes.length)],
    ["Phases", count(topology.phases.length)], ["Encrypted links", topology.tls], ["Version", count(topology.version)],
    ["Digest", topology.digest]]);
  const lines = [];
  let left = 0;
  for (const line of linesOf(topology)) if (lines.length < LINES_MAX) lines.push(line); else left++;
  setText(byId("topology-text"), lines.join("\n"));
  setText(byId("topology-note"), "Nodes, edges and fractions as the node uses them. " +
    (left > 0 ? `${plural(left, "line")} more are left out.` : ""));
}
