// SPDX-License-Identifier: Apache-2.0
// How the page reaches the daemon: the only module that knows. Another place that shows the page replaces it, with these
// two functions: an HTTP client on the control socket is enough, since the state is made of /v1/status and /v1/peers.

const POLL_MS = 2000;
const ANSWER_MS = 15000;

/** The JSON of a path such as "v1/history?since=0", or null: there is no such thing, or no answer. */
export async function get(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(ANSWER_MS), cache: "no-store" }).catch(() => null);
  return answer?.ok ? answer.json().catch(() => null) : null;
}

/** Call onState({status, peers, log}) about once a second. `status` and `peers` are null while the daemon is silent, and
 *  the whole is null while sgpctl is. */
export function follow(onState) {
  const stream = new EventSource("events");
  stream.onmessage = (event) => onState(JSON.parse(event.data));
  stream.onerror = () => {
    onState(null);
    if (stream.readyState !== EventSource.CLOSED) return; // the browser connects again
    poll(onState); // too many pages are open: there is no stream for this one
  };
}

async function poll(onState) {
  onState(await get("state"));
  setTimeout(poll, POLL_MS, onState);
}
