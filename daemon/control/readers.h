/* SPDX-License-Identifier: Apache-2.0 */
/* What onlookers read: links, topology, history and metrics. Thread: the loop thread. */
#ifndef SGPD_READERS_H
#define SGPD_READERS_H

#include "http.h"

/* For the table of endpoints. Each answers, or begins a job: when its turn comes the node is copied as far as the answer
 * tells of it, and the copy is rendered off the loop thread. A copy has at most PAGE_ROWS_MAX rows of history,
 * RENDER_EDGES_MAX edges, all nodes and all links. */
void readers_peers(struct request *request);
void readers_topology(struct request *request);
void readers_history(
    struct request *request); /* ?since=NUMBER&limit=ROWS, as in page.h; 400 for anything else */
void readers_metrics(struct request *request);

#endif
