/* SPDX-License-Identifier: Apache-2.0 */
/* The topology file of a fleet with one node more or less, by the family of the present file
 * (membership.c). Nothing is changed by these functions: the file counts where an administrator
 * puts it. */
#ifndef CTL_MEMBERSHIP_H
#define CTL_MEMBERSHIP_H

#include "topology.h"

struct ctl_change {
    const struct sgp_topology *topology; /* the present file */
    const char *path;                    /* its name, for messages */
    const char *family;                  /* NULL: the family of the file */
    const char *add;                     /* the name of a new node; NULL: none, */
    const char *address, *key;           /* with these, */
    const char *remove;                  /* or of a node that goes; NULL: none */
};

/* The options of the file itself, as of a command that proposes one. */
struct ctl_proposal_options {
    const char *output; /* NULL: standard output */
    bool force;         /* replace it */
};

/* A proposed file as text, which the caller frees, and its family. CTL_DONE, or another status
 * after reporting the error. The text has been read back: it is a valid topology file. */
struct ctl_proposal {
    char *text;
    size_t bytes;
    const char *family; /* static */
    uint64_t version;   /* one more than that of the present file */
    uint32_t nodes;
};
enum ctl_exit ctl_propose(
    struct ctl *ctl, const struct ctl_change *change, struct ctl_proposal *ret_proposal);

/* Write it where the options say, or report why that cannot be done. */
enum ctl_exit ctl_proposal_write(struct ctl *ctl, const struct ctl_proposal *proposal,
    const struct ctl_proposal_options *options);
/* Report now if it could not be written then. */
enum ctl_exit ctl_proposal_check(struct ctl *ctl, const struct ctl_proposal_options *options);

/* The present topology: of the file at `path`, a topology file or a signed document. If that is
 * NULL, of the daemon: the signed version that it uses, or the file of its configuration.
 * *ret_name names it in messages; the caller frees it, also after an error. The caller destroys
 * *ret_topology. */
enum ctl_exit ctl_present_topology(
    struct ctl *ctl, const char *path, char **ret_name, struct sgp_topology **ret_topology);

#endif
