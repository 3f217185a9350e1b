/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the DOT reader: one reading, and what its files share.
 *
 * dot_read.c reads the text and calls dot_fleet.c for the nodes, then dot_phase.c for each digraph;
 * dot_reader.c serves all of them. All run on the thread of dot_read.c's caller. */
#ifndef SGP_TOPOLOGY_DOT_READER_H
#define SGP_TOPOLOGY_DOT_READER_H

#include "sgp/topology.h"
#include "topology/scan.h"

#include <graphviz/cgraph.h>

struct sgp_dot_reader {
    struct sgp_scan_text text;
    struct sgp_error *error;
    Agraph_t **graphs;
    uint32_t graph_count;
    Agraph_t *fleet; /* dictionary of libcgraph: name to index, see sgp_dot_member */
    struct sgp_topology_node *nodes;
    uint32_t node_count;
    bool addressed; /* only nodes with an address are members of the fleet */
};

/* ---- dot_reader.c ---- */

/* Report an error in a line, counted from 1. Returns `code`. */
int sgp_dot_fail_at(struct sgp_dot_reader *r, uint32_t line, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int sgp_dot_fail_memory(struct sgp_dot_reader *r); /* returns -ENOMEM */

/* The line where a node first appears in a digraph. It is searched only for a message, because a
 * search reads the text up to there. */
uint32_t sgp_dot_line_of(const struct sgp_dot_reader *r, uint32_t g, const char *name);

/* The name of a digraph. One without a name is phase0, phase1, ... by its place. */
void sgp_dot_phase_name(const struct sgp_dot_reader *r, uint32_t g, char name[SGP_NAME_BYTES]);

/* The text of an attribute of an object of this kind (AGRAPH, AGNODE, AGEDGE); "" if it is not
 * given. Owned by libcgraph. */
const char *sgp_dot_attribute(Agraph_t *graph, int kind, void *object, const char *name);

/* Reads true or false. `usual` if the attribute is not given. */
int sgp_dot_read_truth(struct sgp_dot_reader *r, uint32_t g, const char *phase, int kind,
    void *object, const char *name, bool usual, bool *ret_truth);

/* Parse the parts of a vector, as `3` or `0-3`. Returns false for any other text. */
bool sgp_dot_parse_parts(const char *text, uint16_t *ret_part, uint16_t *ret_count);

/* ---- dot_fleet.c ---- */

/* Collect the nodes of all digraphs in r->nodes and r->fleet, which the caller frees also after a
 * failure. */
int sgp_dot_collect_fleet(struct sgp_dot_reader *r);

/* The index of a node of r->fleet in r->nodes. */
uint32_t sgp_dot_member(Agnode_t *known);

/* ---- dot_phase.c ---- */

/* Add a digraph to a topology of these nodes. */
int sgp_dot_add_phase(struct sgp_dot_reader *r, uint32_t g, struct sgp_topology *topology);

#endif
