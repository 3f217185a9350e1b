/* SPDX-License-Identifier: Apache-2.0 */
/* Roles: what a node is to its neighbours, by its topology file: a node that mixes, outside exact
 * cycles (gossip) or within one (cycle); an owner of the vector or of a part; a worker of owners;
 * or a node that trains with a token.
 *
 * Each role has a table, in a file of its own. Other files read here what follows from a role, and
 * never ask which it is. Zero and NULL stand for what gossip does; the caller of a function does
 * that itself. How a node paces itself, chooses a target and uses buffers is its method's
 * (sgp/method.h). */
#ifndef SGP_CORE_ROLE_H
#define SGP_CORE_ROLE_H

#include "sgp/node.h"

struct sgp_core_link;
struct sgp_receive;

/* Whose model counts: that of a node that leads. A follower's is a copy of it. */
enum sgp_part {
    SGP_PART_NONE = 0,  /* all models count alike */
    SGP_PART_LEADS,     /* the node has all weight of its values */
    SGP_PART_FOLLOWS,   /* the node has no weight */
    SGP_PART_BY_WEIGHT, /* the node leads while it has weight, and follows otherwise */
};

struct sgp_role {
    const char *name;
    enum sgp_part part;
    bool collective; /* a round is one of all nodes: all are awaited; nothing returns, or weighs */
    bool gives_nothing; /* no share goes along the edges of a round */
    bool gives_always;  /* each of them does, however long its target must be waited for */
    bool gives_updates; /* such a share is whole and weightless: what the node moved by */
    bool counts_steps;  /* labels count steps: the node never jumps, nor mixes at the end */
    bool keeps_copy;    /* the node trains from a copy of another's estimate */
    bool unique;        /* one share is all weight: unsent it returns; in doubt it was accepted */
    const char *leave_obstacle; /* why the node cannot leave for good; NULL: it can */
    /* The first neighbour that the round waits for, or NULL: the round is complete. */
    const struct sgp_core_link *(*awaited)(const struct sgp_node *node);
    /* The next round in which this node gives on an out-link, or NONE; NULL: by the file. */
    sgp_round (*promise)(struct sgp_node *node, struct sgp_core_link *link);
    /* Whether a source gives such a share, which it announces, in its round; NULL: any. */
    bool (*fits)(const struct sgp_node *node, const struct sgp_core_link *link,
        const struct sgp_share *share);
    /* The node joins. `late`: living neighbours are rounds ahead. NULL: nothing is to be done. */
    void (*joins)(struct sgp_node *node, bool late);
    /* Where a node begins that has a past, or comes late; NULL: where the others are. */
    sgp_round (*resumes_at)(const struct sgp_node *node);
    /* Give what is due in this round; false: it must wait. NULL: this turn's outgoing shares (outgoing.c). */
    bool (*give)(struct sgp_node *node);
    /* Whether a held share may be added; `early`: before others. NULL: by its step or its epoch. */
    bool (*may_absorb)(const struct sgp_node *node, const struct sgp_receive *receive, bool early);
    /* Add a share that is held; NULL: to x and w. */
    void (*absorb)(struct sgp_node *node, struct sgp_receive *receive);
    /* What the node gave returns, of that snapshot, or NONE. NULL: to x. */
    void (*come_home)(struct sgp_node *node, uint32_t slot);
    /* A higher epoch was heard of; NULL: cycles are renewed (cycle.c). */
    void (*renew)(struct sgp_node *node);
    /* The round after this one, which is complete; NULL: the next. */
    sgp_round (*next_label)(struct sgp_node *node);
};

extern const struct sgp_role sgp_role_gossip, sgp_role_cycle, sgp_role_owner, sgp_role_worker,
    sgp_role_token;

#endif
