// SPDX-License-Identifier: Apache-2.0
// How the page reaches a daemon inside Cockpit, in place of ../transport.js: Cockpit's bridge asks the control socket as the
// user who has logged in, so the socket's mode decides who may read. Every question is a GET. The end of the page's address
// names the node, such as #/n1; only sockets that are in FOLDER can be named.

import "../base1/cockpit.js"; // it sets window.cockpit
import { byId, html } from "./document.js";

const { cockpit } = window;
const FOLDER = "/run/sgpd", SOCKET = "control.sock", OWNER = ".owner";
const POLL_MS = 1000;
const REST_MS = 2000; // before a silent daemon is asked again, or another is looked for
const LIST_MS = 10000; // between two readings of the folder for the reader's choice
const ANSWER_MS = 15000;
const LINES_MAX = 200, LINE_MAX = 1024; // of the log

const rest = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

// ---- the sockets of this machine ----

/** The names in a folder. */
const list = (path) => new Promise((resolve, reject) => {
  const channel = cockpit.channel({ payload: "fslist1", path, watch: false }), names = [];
  channel.addEventListener("message", (_, text) => names.push(JSON.parse(text).path));
  channel.addEventListener("close", (_, { problem }) => (problem ? reject(problem) : resolve(names.sort())));
});

/** The socket of each name that `sgpctl -n` takes. A folder that this user may not read has one, as far as anyone can see. */
async function sockets() {
  const found = new Map(), owners = [];
  for (const name of await list(FOLDER).catch(() => [])) {
    const there = await list(`${FOLDER}/${name}`).catch((problem) => (problem === "access-denied" ? [SOCKET] : []));
    if (there.includes(SOCKET)) found.set(name, `${FOLDER}/${name}/${SOCKET}`);
    if (there.includes(SOCKET + OWNER)) owners.push(name);
  }
  for (const name of owners) if (!found.has(name + OWNER)) found.set(name + OWNER, `${FOLDER}/${name}/${SOCKET}${OWNER}`);
  return found;
}

/** Let the reader choose among several; the chosen one stays, also while it does not run. */
function offer(running, chosen) {
  const names = [...new Set([...running, ...(chosen ? [chosen] : [])])].sort();
  const menu = byId("place").querySelector("select");
  if (menu && [...menu.options].map((option) => option.value).join() === names.join()) return;
  const choice = html("select", { id: "socket" }, ...names.map((name) => html("option", { selected: name === chosen }, name)));
  choice.addEventListener("change", () => cockpit.location.go([choice.value]));
  byId("place").replaceChildren(...(names.length > 1 ? [html("label", { for: "socket" }, "Node of this machine"), choice] : []));
}

const offerAgain = async (chosen) => offer((await sockets()).keys(), chosen);

/** {name, path} of the node that the address names, or of the first one, once there is one. */
async function choose(onSilence) {
  for (;;) {
    const found = await sockets(), name = cockpit.location.path[0] ?? [...found.keys()].sort()[0];
    offer(found.keys(), name);
    if (found.has(name)) return { name, path: found.get(name) };
    onSilence(name ? `No node ${name} runs here: it has no socket in ${FOLDER}.` :
      `No node runs here: there is no socket in ${FOLDER}. systemctl start sgpd@NAME starts one.`);
    await rest(REST_MS);
  }
}

// ---- answers ----

let take;
const node = new Promise((resolve) => { take = resolve; });

async function ask(path) {
  const request = cockpit.http({ unix: (await node).path }).get(`/${path}`);
  const late = setTimeout(() => request.close("timeout"), ANSWER_MS);
  try {
    return JSON.parse(await request);
  } finally {
    clearTimeout(late);
  }
}

/** The JSON of a path such as "v1/history?since=0", or null: there is no such thing, or no answer. */
export const get = async (path) => (path === "log" ? log : ask(path).catch(() => null));

function reasonOf({ name, path }, { problem, status }) {
  if (problem === "access-denied" || status === 403) return `You may not read ${path}; it is for root and the group sgpd.`;
  if (problem === "not-found") return `The daemon does not run: systemctl start sgpd@${name.replace(/\.owner$/, "")} starts it.`;
  return "The daemon does not answer.";
}

/** Call onState({status, peers, log}) about once a second: the answers of /v1/status and /v1/peers, and the number of lines of
 *  the log so far. While there is no answer, call onSilence(reason) instead; the reason is a sentence. */
export async function follow(onState, onSilence) {
  const chosen = await choose(onSilence);
  cockpit.addEventListener("locationchanged", () => window.location.reload());
  take(chosen);
  followLog(chosen.name);
  setInterval(offerAgain, LIST_MS, chosen.name);
  for (;;) {
    try {
      const status = await ask("v1/status");
      onState({ status, peers: await get("v1/peers") ?? [], log: log.total });
      await rest(POLL_MS);
    } catch (error) {
      onSilence(reasonOf(chosen, error));
      await rest(REST_MS);
    }
  }
}

// ---- the log ----

const log = { source: null, total: 0, lines: [] };

/** The last lines of the journal, as far as this user may read it; what journalctl complains of is a line, too. */
function followLog(name) {
  const unit = `sgpd@${name.replace(/\.owner$/, "")}.service`;
  let begun = "";
  log.source = `the journal of ${unit}`;
  cockpit.spawn(["journalctl", "-f", "-n", String(LINES_MAX), "-o", "short-iso", "-u", unit], { err: "out" }).stream((text) => {
    const lines = (begun + text).split("\n");
    begun = lines.pop().slice(0, LINE_MAX);
    log.lines = [...log.lines, ...lines.map((line) => line.slice(0, LINE_MAX))].slice(-LINES_MAX);
    log.total += lines.length;
  }).catch(() => 0);
}
