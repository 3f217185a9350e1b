/* SPDX-License-Identifier: Apache-2.0 */
/* The topology file of a node whose configuration names administrators: a signed document
 * (sgp/rollout.h, docs/ROLLOUT.md). Nothing else is used. It comes from [topology] file, from a
 * neighbour that uses it, or is the proposal that has enough votes. The node never goes back to an
 * earlier version than it has used: STATE/rollout keeps the latest, and what is proposed. Without
 * administrators there is a plain file, and no rollout.
 *
 * A change is made on a copy of the rollout. It is stored, and then takes the place of the present
 * one. So a change that fails has changed nothing.
 *
 * Blocks on files. Errors are one line. Thread: any. */
#ifndef SGPD_SIGNED_FILE_H
#define SGPD_SIGNED_FILE_H

#include "config.h"

#include "sgp/rollout.h"
#include "sgp/topology.h"

#define SIGNED_FILE_NAME_BYTES 112u

/* Of a running node, at most: a rollout has three documents as text and file, and a change makes a
 * copy of it and its text. Two texts are given to neighbours, and four arrive from them. */
#define SIGNED_FILE_MEMORY                                                                         \
    (2 * 3 * (SGP_DOCUMENT_BYTES_MAX + SGP_MANIFEST_FILE_MAX) + 8 * SGP_DOCUMENT_BYTES_MAX)

enum signed_file_from {
    SIGNED_FILE_PATH = 1,  /* [topology] file; an earlier version than the present one is refused */
    SIGNED_FILE_NEIGHBOUR, /* what a neighbour uses: SGP_ROLLOUT_FOLLOW */
    SIGNED_FILE_PROPOSAL,  /* what is proposed */
};

/* The file that is wanted. */
struct signed_file_wish {
    const struct sgp_rollout *present; /* of the running node; NULL: it has only a plain file */
    enum signed_file_from from;        /* without `present`: PATH */
};

struct signed_file {
    struct sgp_topology *topology;
    struct sgp_rollout *rollout; /* as it is once the file is used; NULL: the file is plain */
    /* "version 7 of mill", for messages; "": the file is that of [topology] file */
    char name[SIGNED_FILE_NAME_BYTES];
};

/* What this node has stored. 0, or negative with *error. *ret_rollout is NULL without
 * administrators. */
int signed_file_restore(
    const struct config *config, struct sgp_error *error, struct sgp_rollout **ret_rollout);

/* The caller owns what is returned, and signed_file_keep must store the rollout before the topology
 * is used. `wish` is NULL at the start: of what is stored and [topology] file, the later version is
 * used. 0, or negative with *error. */
int signed_file_read(const struct config *config, const struct signed_file_wish *wish,
    struct sgp_error *error, struct signed_file *ret_file);

/* Whether this file of a document does not name this node. A file that cannot be read strikes no
 * node: that is an error of its own. */
bool signed_file_strikes(const struct config *config, const char *file);

/* Store it in the state directory. NULL is fine. 0, or negative with *error. */
int signed_file_keep(
    const struct config *config, const struct sgp_rollout *rollout, struct sgp_error *error);

#endif
