/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the DOT library: which attributes a topology file may give to which objects.
 *
 * Attributes of Graphviz and of other tools are allowed. A name that is similar to an attribute of
 * sgp is a typing mistake. Without that attribute the topology would be a different one, for
 * example without ciphers. */
#ifndef SGP_TOPOLOGY_DOT_ATTRIBUTES_H
#define SGP_TOPOLOGY_DOT_ATTRIBUTES_H

#include "sgp/status.h"

#include <graphviz/cgraph.h>

struct sgp_dot_stray {
    const char *name;          /* name of the attribute, to find its line; owned by libcgraph */
    char text[SGP_TEXT_BYTES]; /* what is wrong, and what would be right */
};

/* Find an attribute of a digraph that is misspelt, or that belongs to another kind of object.
 * `phase` is the digraph's name in the message. Returns 0, or SGP_E_TOPOLOGY with *ret_stray. */
int sgp_dot_check_attributes(Agraph_t *graph, const char *phase, struct sgp_dot_stray *ret_stray);

#endif
