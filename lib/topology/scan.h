/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the DOT library: a scan of the text itself, before and after libcgraph.
 *
 * Before: libcgraph multiplies sets of nodes, and keeps the state of its scanner after an open
 * comment. So the text is measured, and its quotes and comments are checked. After: objects of
 * libcgraph have no line, so the line for a message is searched in the text. */
#ifndef SGP_TOPOLOGY_SCAN_H
#define SGP_TOPOLOGY_SCAN_H

#include "sgp/dot.h"

struct sgp_scan_text {
    const char *name;
    const char *text;
    size_t length;
};

/* Refuse text that cannot be parsed safely: zero bytes, open comments or strings, too much nesting,
 * too many digraphs, or more edges than SGP_EDGES_MAX. Returns 0, SGP_E_SYNTAX, SGP_E_TOPOLOGY or
 * SGP_E_LIMIT. */
int sgp_scan_measure(const struct sgp_scan_text *text, struct sgp_error *error);

/* The line, from 1, of the occurrence-th (from 1) `source -> target` in the digraph of that number
 * (from 0). If the edge is written otherwise, the line where source first appears. Otherwise the
 * line where the digraph begins. target NULL: search for source alone. source NULL: the
 * beginning. */
uint32_t sgp_scan_line(const struct sgp_scan_text *text, uint32_t digraph, const char *source,
    const char *target, uint32_t occurrence);

#endif
