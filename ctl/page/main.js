// SPDX-License-Identifier: Apache-2.0
// The page: takes each state of the node, asks for what belongs to it, and lets the other modules draw.
//
// The model that they draw is {self, status, links, members, topology, phase, whole, current}:
//   links    the answer of /v1/peers, each with its `rate` in bytes a second
//   members  a row a node: {name, state, round, loss, accuracy, weight, waiting, age, stale, ...}; of the whole fleet if the daemon
//            tells of it (`whole`), else of this node, its neighbours, and the names in the topology

import { byId, setAttributes, setFacts, setText } from "./document.js";
import { NONE, count, isKnown, number, percent, plural, seconds } from "./numbers.js";
import { follow, get } from "./transport.js";
import { Curves } from "./curves.js";
import { Graph } from "./graph.js";
import { History } from "./history.js";
import { drawFleet, drawLinks, drawLog, drawTopology } from "./tables.js";
import { drawVersions, newsOfVersions } from "./versions.js";

const REST_MS = 2000; // between two readings of the history and of the fleet
const RESTS = 15; // of them, before a daemon without /v1/fleet is asked for it again, and for the topology, of which not all is
// in its digest

const history = new History(), curves = new Curves(history), graph = new Graph();
let model = null, topology = null, fleet = null;
let wanted = null; // the digest of the topology that was asked for last
let before = new Map(); // of each link, its bytes at the former state
let readings = 0;
let logTotal = -1;

// ---- the model ----

/** Bytes a second, since the former state. */
function withRates(peers) {
  const now = performance.now(), next = new Map();
  const links = peers.map((peer) => {
    const key = `${peer.direction} ${peer.name}`, bytes = peer.bytes_sent + peer.bytes_received, old = before.get(key);
    next.set(key, { bytes, now });
    return { ...peer, rate: old && now > old.now && bytes >= old.bytes ? (1000 * (bytes - old.bytes)) / (now - old.now) : null };
  });
  before = next;
  return links;
}

const ownRow = (status) => ({ name: status.name, state: status.state, round: status.round, loss: status.loss,
  accuracy: status.test_accuracy, weight: status.weight, waiting: status.waiting, topology: status.topology, age: 0, stale: false });

/** What the links tell of a neighbour: of two links, the one that was heard last. */
function rowOfLink(link) {
  const gone = link.absent || (link.state !== "up" && link.node_state !== "finished");
  return { name: link.name, state: link.node_state, round: link.round, loss: null, accuracy: null, weight: null,
    waiting: null, age: link.last_heard_seconds, stale: Boolean(gone) };
}

const rowOfFleet = (node) => ({ ...node, accuracy: node.accuracy ?? node.test_accuracy ?? null, stale: Boolean(node.stale) });

function membersOf(status, links) {
  const rows = new Map((topology?.nodes ?? []).map(({ name }) => [name, { name, state: null, round: null, loss: null,
    accuracy: null, weight: null, waiting: null, age: null, stale: false }]));
  const heard = [...links].sort((a, b) => (b.last_heard_seconds ?? Infinity) - (a.last_heard_seconds ?? Infinity));
  for (const link of heard) if (!link.retired) rows.set(link.name, rowOfLink(link));
  for (const node of fleet?.nodes ?? []) rows.set(node.name, rowOfFleet(node));
  rows.set(status.name, { ...rows.get(status.name), ...ownRow(status) });
  return [...rows.values()];
}

function onState({ status, peers, log }) {
  const links = withRates(peers);
  model = { self: status.name, status, links, members: membersOf(status, links), topology, phase: status.topology?.phase ?? 0,
    whole: fleet !== null, current: () => model };
  setAttributes(byId("shown"), { hidden: null });
  drawHead(status);
  graph.draw(model);
  drawFleet(model);
  drawLinks(model);
  if (log !== logTotal) readLog(log);
  if (status.topology && status.topology.digest !== wanted) readTopology(status.topology.digest);
}

// ---- the head of the page ----

function onSilence(reason) {
  setText(byId("news"), model ? `${reason} What is shown is old.` : reason);
  setAttributes(byId("news"), { class: "bad" });
}

/** Announced by a screen reader, so it has nothing that changes each second. */
function newsOf({ name, state, waiting, last_error, diverging, hears_nobody, unheard, rollout }) {
  const bad = [diverging ? `the loss diverges (${diverging})` : "", hears_nobody ? "it hears nobody" : "",
    !hears_nobody && unheard?.length > 0 ? `not heard: ${unheard.join(", ")}` : "",
    waiting?.peer && waiting.seconds > 2 ? `it waits for ${waiting.peer}` : "", newsOfVersions(rollout),
    last_error ? `error: ${last_error}` : ""].filter(Boolean);
  return [`${name} is ${state}${bad.length > 0 ? `; ${bad.join("; ")}` : ""}.`, bad.length > 0];
}

/** The row of the fleet has the pace of the latest seconds; without one, it is that of the latest rows of the history. */
function paceOf({ self, members }) {
  const own = members.find(({ name }) => name === self), latest = history.rows.slice(-10);
  return own.rounds_per_second ?? History.pace(latest[0], latest.at(-1) ?? {});
}

function drawHead(status) {
  const [news, bad] = newsOf(status), pace = paceOf(model);
  document.title = `${status.name}: ${status.state} – sgpd`;
  setText(byId("title"), `sgpd: ${status.name}`);
  setText(byId("news"), news);
  setAttributes(byId("news"), { class: bad ? "bad" : null });
  const of = (value, most) => (isKnown(most) ? `${value} of ${number(most)}` : value);
  setFacts(byId("summary"), [["State", status.state], ["Round", of(count(status.round), status.rounds)],
    ["Epoch", of(number(status.epoch), status.epochs)], ["Loss", number(status.loss)],
    ["Test accuracy", isKnown(status.test_accuracy) ? percent(status.test_accuracy) : null],
    ["Consensus distance", number(status.disagreement)], ["Weight", number(status.weight)],
    ["Rounds a second", isKnown(pace) ? number(pace) : NONE], ["Method", status.algorithm],
    ["Running for", seconds(status.uptime_seconds)], ["Parameters", count(status.parameters)], ["sgpd", status.version]]);
}

// ---- what is asked for ----

async function readLog(total) {
  logTotal = total;
  const log = await get("log");
  if (log) drawLog(log);
}

async function readTopology(digest) {
  wanted = digest;
  const answer = await get("v1/topology");
  wanted = answer?.digest ?? null;
  if (!answer) return;
  topology = answer;
  drawTopology(answer);
}

/** A daemon without administrators says so in its status, and is not asked. */
async function readVersions() {
  const signed = Boolean(model?.status.rollout);
  drawVersions(signed ? await get("v1/rollout") : null, signed ? await get("v1/rollout/log") : null);
}

async function readAgain() {
  const rare = readings++ % RESTS === 0;
  if (rare && topology) await readTopology(topology.digest);
  if (rare || fleet !== null) fleet = await get("v1/fleet");
  await readVersions();
  if (await history.update(get)) curves.draw();
  setTimeout(readAgain, REST_MS);
}

follow(onState, onSilence);
readAgain();
