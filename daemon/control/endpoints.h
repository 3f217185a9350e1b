/* SPDX-License-Identifier: Apache-2.0 */
/* What each path of the control server does. Thread: the loop thread. */
#ifndef SGPD_ENDPOINTS_H
#define SGPD_ENDPOINTS_H

#include "http.h"

extern const struct endpoint endpoints[];
extern const size_t endpoint_count;

/* The handlers that have files of their own. Each answers, or begins a job. */

/* predict.c: POST /v1/predict. */
void predict_serve(struct request *request);

/* readers.c: links, topology, history and metrics. When the job's turn comes the node is copied as far as the answer tells
 * of it, and the copy is rendered off the loop thread. A copy has at most PAGE_ROWS_MAX rows of history,
 * RENDER_EDGES_MAX edges, all nodes and all links. */
void readers_peers(struct request *request);
void readers_topology(struct request *request);
/* ?since=NUMBER&limit=ROWS, as in page.h; 400 for anything else. */
void readers_history(struct request *request);
void readers_metrics(struct request *request);

#endif
