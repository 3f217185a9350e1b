// SPDX-License-Identifier: Apache-2.0
// How the page reaches the daemon: by `sgpctl dashboard`, which serves it. Another place that shows the page has a module
// with the same two functions instead: cockpit/transport.js.

const POLL_MS = 2000;
const ANSWER_MS = 15000;

/** The JSON of a path such as "v1/history?since=0", or null: there is no such thing, or no answer. */
export async function get(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(ANSWER_MS), cache: "no-store" }).catch(() => null);
  return answer?.ok ? answer.json().catch(() => null) : null;
}

/** Call onState({status, peers, log}) about once a second: the answers of /v1/status and /v1/peers, and the number of lines of
 *  the log so far. While there is no answer, call onSilence(reason) instead; the reason is a sentence. */
export function follow(onState, onSilence) {
  const take = (state) => {
    if (state?.status) onState({ ...state, peers: state.peers ?? [] });
    else onSilence(state ? "The daemon does not answer." : "sgpctl dashboard does not answer.");
  };
  const stream = new EventSource("events");
  stream.onmessage = (event) => take(JSON.parse(event.data));
  stream.onerror = () => {
    take(null);
    if (stream.readyState !== EventSource.CLOSED) return; // the browser connects again
    poll(take); // too many pages are open: there is no stream for this one
  };
}

async function poll(take) {
  take(await get("state"));
  setTimeout(poll, POLL_MS, take);
}
