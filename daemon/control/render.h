/* SPDX-License-Identifier: Apache-2.0 */
/* What the control server says: views turned into JSON and Prometheus text.
 *
 * A NaN becomes null. 64-bit identities (incarnation, digests) are strings of 16 hexadecimal
 * digits, because most readers of JSON keep 53 bits of a number. If memory is out, a function
 * returns NULL.
 *
 * Any thread; pure. */
#ifndef SGPD_RENDER_H
#define SGPD_RENDER_H

#include "control.h"
#include "page.h"

#include <jansson.h>
#include <stdio.h>

#define RENDER_EDGES_MAX 20000u /* a larger topology is rendered with counts instead of edges */

json_t *render_status(const struct view_status *view, const struct sgp_topology *topology);
json_t *render_peer(const struct view_peer *view);
/* Whether render_topology names the edges. */
bool render_has_edges(const struct sgp_topology *topology);
json_t *render_topology(const struct view_status *status, const struct sgp_topology *topology);
json_t *render_reload(const struct view_reload *reload);
/* {"left", "heir", "weight", "owed"}; the heir is null if "". */
json_t *render_left(const char *heir, double weight, double owed);
/* `measures` may be NULL. `best`: of the model that all nodes keep. */
json_t *render_evaluation(const struct view_model *model, const struct sgp_evaluation *evaluation,
    const struct sgp_measures *measures, sgp_round round, bool best);

/* What the nodes have told of their models, and the sum: {"members", "told", "silent", "rounds",
 * "final", "best", "rows", "nodes", "measures"}.
 * The texts must have been read before (sgp/report.h). */
json_t *render_fleet(const struct view_model *model, const struct view_reports *reports);

/* outputs[rows x width]. Where outputs are classes, the class of the greatest output is added. */
json_t *render_prediction(
    const struct view_model *model, const float *outputs, uint64_t rows, uint64_t width);

/* Text from outside, or text that may end within a letter. Bytes that are not UTF-8 become '?'. */
json_t *render_text(const char *text);

/* {"error": {"status": 404, "code": ..., "message": ..., `hints`}}. Takes ownership of the hints;
 * NULL: none. */
json_t *render_error(unsigned status, const char *code, const char *message, json_t *hints);

/* The answer of GET /v1/history: `rows` are those of the page. */
json_t *render_history(const struct page *page, const struct view_history_row *rows);

/* The nodes of the fleet, as they were copied. */
struct render_nodes {
    const char *name; /* of this node */
    const struct view_node *nodes;
    uint32_t count;
    struct sgp_fleet_counts refused;
};

/* The answer of GET /v1/fleet: {"name", "nodes", "refused"}. */
json_t *render_nodes(const struct render_nodes *nodes);

/* extremes.c: the lines of GET /metrics about the whole fleet: nodes by state, and the least and
 * greatest of some figures. Only fresh rows count. */
void render_extremes(FILE *stream, const struct render_nodes *nodes);

/* The text of GET /metrics, in the exposition format 0.0.4; the caller frees *ret_text. */
int render_metrics(const struct view_status *status, const struct view_peer *peers,
    uint32_t peer_count, const struct render_nodes *nodes, char **ret_text, size_t *ret_bytes);

#endif
