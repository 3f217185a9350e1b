/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the DOT library: which attributes a topology file may give to what.
 *
 * Graphviz's own attributes, and those of other tools, are free. A name that is nearly one of ours is a typing mistake,
 * and a topology without it would be another one: without ciphers, for instance. */
#ifndef SGP_TOPOLOGY_DOT_ATTRIBUTES_H
#define SGP_TOPOLOGY_DOT_ATTRIBUTES_H

#include "sgp/status.h"

#include <graphviz/cgraph.h>

struct sgp_dot_stray {
    const char *name;          /* of the attribute, for its line; libcgraph's */
    char text[SGP_TEXT_BYTES]; /* what is wrong, and what would be right */
};

/* Find an attribute of a digraph that is misspelt, or that is given to what cannot have it. `phase` is the digraph's name
 * in the message. Returns 0, or SGP_E_TOPOLOGY with *ret_stray. */
int sgp_dot_check_attributes(Agraph_t *graph, const char *phase, struct sgp_dot_stray *ret_stray);

#endif
