// SPDX-License-Identifier: Apache-2.0
// Signed versions of the topology file: what is proposed, with the votes on it, and what this node has used.

import { byId, setAttributes, setTable, setText } from "./document.js";
import { NONE, bytes, count, plural } from "./numbers.js";

const HASH_CHARACTERS = 16; // of a hash that a person compares
const VOTES_MAX = 512; // rows of the table

const hash = (text) => (text ? text.slice(0, HASH_CHARACTERS) : NONE);
const names = (list) => (list?.length > 0 ? list.join(", ") : NONE);

const VERSIONS = [
  { name: "Version", text: (it) => count(it.version) },
  { name: "Used since", text: (it) => it.used_at || NONE },
  { name: "Manifest", text: (it) => hash(it.identity) },
  { name: "Predecessor", text: (it) => hash(it.predecessor) },
  { name: "File", number: true, text: (it) => bytes(it.bytes) },
  { name: "Passed over", text: (it) => names(it.despite) },
  { name: "Signed by", text: (it) => names(it.signers) + (it.recovered ? " (recovery)" : "") },
];

const VOTES = [
  { name: "Node", text: (node) => node.name },
  { name: "Uses", number: true, text: (node) => (node.active > 0 ? count(node.active) : NONE) },
  { name: "Vote", text: (node) => node.vote },
  { name: "Reason", text: (node) => node.why || NONE },
];

/** The nodes with their votes on what is proposed; a vote on another version is none on this. */
function votesOn({ proposed, nodes }) {
  const mark = hash(proposed.identity);
  return nodes.map((node) => (node.mark === mark ? node : { ...node, vote: "none", why: "" }));
}

/** "Version 7 is proposed: 11 of 12 nodes accept it. It waits for n3." */
function proposedText({ proposed, fork, accepted, refused, waits_for: waitsFor, nodes }) {
  if (fork) return `Two files have version ${count(proposed.version)}: neither is used, until a higher version is pushed.`;
  const waits = waitsFor ? ` It waits for ${waitsFor}${refused > 0 ? ", and was refused" : ""}.` : "";
  return `Version ${count(proposed.version)} is proposed: ${count(accepted)} of ${plural(nodes.length, "node")} accept it.${waits}`;
}

/** What the status says of a version that cannot be used yet; "": nothing. */
export function newsOfVersions(rollout) {
  if (!rollout?.proposed) return "";
  const version = `version ${count(rollout.proposed)} of the topology`;
  if (rollout.vote === "forked") return `two files have ${version}`;
  return rollout.waits_for ? `${version} waits for ${rollout.waits_for}` : "";
}

/** The answers of /v1/rollout and /v1/rollout/log; null: this daemon has no administrators. */
export function drawVersions(rollout, log) {
  setAttributes(byId("versions-part"), { hidden: rollout ? null : "" });
  if (!rollout) return;
  const { proposed, active, refused_last: refusal } = rollout;
  setAttributes(byId("proposed"), { hidden: proposed ? null : "" });
  if (proposed) {
    setText(byId("proposed-note"), proposedText(rollout));
    setTable(byId("votes"), VOTES, votesOn(rollout).slice(0, VOTES_MAX),
      (node) => (node.vote === "refused" || node.vote === "forked" ? "bad" : null));
  }
  const versions = log?.versions ?? [];
  setTable(byId("versions"), VERSIONS, versions, () => null);
  setText(byId("versions-note"), `The fleet ${rollout.fleet} uses version ${count(active.version)} here. ` +
    `This node keeps ${plural(versions.length, "version")} that it has used, the latest first.` +
    (refusal ? ` A document was refused: ${refusal}` : ""));
}
