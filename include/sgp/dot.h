/* SPDX-License-Identifier: Apache-2.0 */
/* Topology files: reading and writing Graphviz DOT.
 *
 * A file holds one or more digraphs, each a phase, used in turn. docs/TOPOLOGY.md has all
 * attributes. The most important are node `address` (HOST:PORT, sgp_address_split of topology.h;
 * port 7311 if left out), edge `fraction` (a decimal or A/B; default 1/(1+outdegree)), and graph
 * `rounds` (1 to SGP_PHASE_ROUNDS_MAX) and `once` (true, false). Node `key` and graph `tls` (off,
 * offer, require) say which peers may talk (docs/SECURITY.md). All other attributes are Graphviz's
 * and ignored. A UTF-8 byte order mark at the start is skipped. The nodes are those with an
 * address, or, if no node has one, those of the first digraph. They are numbered in order of first
 * appearance.
 *
 * libcgraph keeps global state: only one thread at a time may be inside these functions. Nothing is
 * printed. The text may be hostile: its size is checked before it is parsed. */
#ifndef SGP_DOT_H
#define SGP_DOT_H

#include <stdio.h>

#include "sgp/topology.h"

#define SGP_DOT_BYTES_MAX (64u << 20) /* the longest topology file */
#define SGP_DOT_DEPTH_MAX 64u         /* braces within braces */

/* Read a topology from text[0..length), from a stream up to its end, or from a file. `name` is the
 * file's name in messages: "NAME:LINE: what is wrong; what would be right". On success
 * *ret_topology is sealed, and the caller destroys it. Errors: SGP_E_SYNTAX (not DOT, with the line
 * where the parser stopped); SGP_E_TOPOLOGY (undirected graph, unknown node, bad or duplicate
 * address, bad fraction, column above 1, repeated edge, self-loop, bad rounds and the like, with
 * file, line as far as it can be found, digraph and edge); SGP_E_LIMIT; -ENOMEM; for streams and
 * files -errno. */
SGP_API int sgp_dot_parse(const char *text, size_t length, const char *name,
    struct sgp_error *error, struct sgp_topology **ret_topology);
SGP_API int sgp_dot_read(
    FILE *file, const char *name, struct sgp_error *error, struct sgp_topology **ret_topology);
SGP_API int sgp_dot_read_path(
    const char *path, struct sgp_error *error, struct sgp_topology **ret_topology);

/* For faults that are found later: write the line of `path` that holds an edge or digraph of the
 * topology read from it, as far as it can be found, before the message of `why`: "PATH:LINE: ...",
 * or "PATH: ..." if it cannot be read again. Returns why's code. */
int sgp_dot_fail(const char *path, const struct sgp_topology *topology,
    const struct sgp_edge_place *place, const struct sgp_error *why, struct sgp_error *error);

/* Write a sealed topology as DOT; sgp_dot_parse reads it back to the same digest and addresses.
 * Every line of `comment` (may be NULL) comes first, after "// ". Either all nodes have an address
 * or none has. Returns 0 or -errno if the stream failed; does not flush or close it. */
SGP_API int sgp_dot_write(FILE *file, const struct sgp_topology *topology, const char *comment);

#endif
