/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the DOT library: a look at the text itself, before and after libcgraph.
 *
 * Before: libcgraph multiplies sets of nodes and keeps its scanner's state after an open comment, so
 * the text is measured and its quotes and comments are checked first. After: its objects carry no
 * line, so the line of what a message speaks of is searched in the text. */
#ifndef SGP_TOPOLOGY_SCAN_H
#define SGP_TOPOLOGY_SCAN_H

#include "sgp/dot.h"

struct sgp_scan_text {
    const char *name;
    const char *text;
    size_t length;
};

/* Refuse text that cannot be parsed safely: zero bytes, open comments and strings, too deep, too many
 * digraphs, more edges than SGP_EDGES_MAX. Returns 0, SGP_E_SYNTAX, SGP_E_TOPOLOGY or SGP_E_LIMIT. */
int sgp_scan_measure(const struct sgp_scan_text *text, struct sgp_error *error);

/* The line, from 1, of the occurrence-th (from 1) `source -> target` in the digraph of that number
 * (from 0); where it is written otherwise, the line where source first appears in it; else the line
 * where the digraph begins. target NULL: search for source alone; source NULL: the beginning. */
uint32_t sgp_scan_line(const struct sgp_scan_text *text, uint32_t digraph, const char *source,
    const char *target, uint32_t occurrence);

#endif
