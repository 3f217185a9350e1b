/* SPDX-License-Identifier: Apache-2.0 */
/* Roles: what a node is to its neighbours, according to its topology file. A node mixes, outside
 * exact cycles (gossip) or within one (cycle). Or it owns the vector or a part of it, works for
 * owners, or trains with a token.
 *
 * Each role has a table, in its own file. Other files read here what follows from a role, and never
 * ask which role it is. Zero and NULL mean the behaviour of gossip, which the caller of a function
 * then performs itself. Only `awaited` is required. The method decides how a node paces itself,
 * chooses a target and uses buffers (sgp/method.h). */
#ifndef SGP_CORE_ROLE_H
#define SGP_CORE_ROLE_H

#include "sgp/node.h"

struct sgp_core_link;
struct sgp_receive;

/* Whose model counts. A node that leads has the model, and a follower has a copy of it. */
enum sgp_part {
    SGP_PART_NONE = 0,  /* all models count alike */
    SGP_PART_LEADS,     /* the node has all weight of its values */
    SGP_PART_FOLLOWS,   /* the node has no weight */
    SGP_PART_BY_WEIGHT, /* the node leads while it has weight, and follows otherwise */
};

struct sgp_role {
    const char *name;
    /* Whether a node has this role outside exact cycles. NULL: every node that has no other. */
    bool (*suits)(const struct sgp_node_config *config);
    enum sgp_part part;
    /* A round is one of all nodes. All of them are awaited. No share returns, and no share has
     * weight. */
    bool collective;
    bool gives_nothing; /* no share goes along the edges of a round */
    /* every edge of a round carries a share, however long its target must be waited for */
    bool gives_always;
    /* Such a share is whole and has no weight. It is the change that the node's steps made. */
    bool gives_updates;
    /* The weight is what the file says, whatever is on record, and x of a record has weight 1. */
    bool weight_by_file;
    bool counts_steps; /* labels count steps; the node never jumps to a round */
    bool one_model;  /* all nodes end with the leader's model, so no round mixes after the steps */
    bool keeps_copy; /* the node trains from a copy of another's estimate */
    /* One share carries all weight. If it was not sent, it returns. If in doubt, it was
     * accepted. */
    bool unique;
    const char *leave_obstacle; /* why the node cannot leave for good; NULL: it can */
    /* The first neighbour that the round waits for, or NULL: the round is complete. */
    const struct sgp_core_link *(*awaited)(const struct sgp_node *node);
    /* The next round in which this node gives on an out-link, or NONE; NULL: by the file. */
    sgp_round (*promise)(struct sgp_node *node, struct sgp_core_link *link);
    /* Whether a source gives such a share in the round that the share announces; NULL: any share
     * fits. */
    bool (*fits)(const struct sgp_node *node, const struct sgp_core_link *link,
        const struct sgp_share *share);
    /* Called when the node joins. `late`: living neighbours are rounds ahead. NULL: nothing to
     * do. */
    void (*joins)(struct sgp_node *node, bool late);
    /* The round in which a node with a past, or a late node, resumes. NULL: the round of the
     * others. */
    sgp_round (*resumes_at)(const struct sgp_node *node);
    /* Give what is due in this round. False: the node must wait. NULL: this turn's outgoing shares
     * (outgoing.c). */
    bool (*give)(struct sgp_node *node);
    /* Whether a held share may be added. `early`: ahead of other shares. NULL: decided by its step
     * or its epoch. */
    bool (*may_absorb)(const struct sgp_node *node, const struct sgp_receive *receive, bool early);
    /* Add a held share. NULL: to x and w. */
    void (*absorb)(struct sgp_node *node, struct sgp_receive *receive);
    /* A share of this node returns. `slot` is its snapshot, or NONE. NULL: the share returns to
     * x. */
    void (*restore_share)(struct sgp_node *node, uint32_t slot);
    /* Called when a higher epoch was heard of. NULL: cycles are renewed (cycle.c). */
    void (*renew)(struct sgp_node *node);
    /* The round that follows this one, which is complete. NULL: the next number. */
    sgp_round (*next_label)(struct sgp_node *node);
};

/* The roles outside exact cycles. A node has the first role that suits it. */
#define SGP_ROLES(X) X(token) X(owner) X(worker) X(gossip)

#define SGP_ROLE_TABLE(name) extern const struct sgp_role sgp_role_##name;
SGP_ROLES(SGP_ROLE_TABLE)
SGP_ROLE_TABLE(cycle)
#undef SGP_ROLE_TABLE

#endif
