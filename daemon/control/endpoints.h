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

/* invitations.c: POST /v1/invite?name=NAME&seconds=S&address=HOST:PORT, 400 for any other query;
 * GET /v1/invitations. */
void invitations_invite(struct request *request);
void invitations_list(struct request *request);

/* reports.c: POST /v1/evaluate/fleet?seconds=S, 400 for any other query; GET /v1/report. */
void reports_evaluate(struct request *request);
void reports_report(struct request *request);

/* rollouts.c: POST and GET /v1/rollout, GET /v1/rollout/log, and GET /v1/rollout/document?version=N
 * with a number, "active" or "proposed"; 400 for any other query. */
void rollouts_push(struct request *request);
void rollouts_show(struct request *request);
void rollouts_log(struct request *request);
void rollouts_document(struct request *request);

/* readers.c: links, topology, history, fleet, metrics. A job copies the node when its turn comes:
 * at most PAGE_ROWS_MAX rows, RENDER_EDGES_MAX edges, all nodes and links, and the text of at most
 * SGP_FLEET_ROWS_MAX rows of the fleet. It renders off the loop thread.
 */
void readers_peers(struct request *request);
void readers_topology(struct request *request);
/* ?since=NUMBER&limit=ROWS, as in page.h; 400 for any other query. */
void readers_history(struct request *request);
void readers_fleet(struct request *request);
void readers_metrics(struct request *request);

#endif
