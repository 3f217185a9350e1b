/* SPDX-License-Identifier: Apache-2.0 */
/* A way to train together is a row of policies: with whom to share, when to wait, how to absorb,
 * whether a share goes out before the steps, and what is wanted of the topology. The engine asks the row; it
 * has no branch named after a method.
 *
 * Pure functions over a constant table. Thread: any. */
#ifndef SGP_METHOD_H
#define SGP_METHOD_H

#include "sgp/topology.h"

enum sgp_whom {
    SGP_WHOM_OUT_NEIGHBOURS = 1, /* of the round, in the topology file */
    SGP_WHOM_ONE_BY_LOT,         /* of any round, who then answers; in training only */
    SGP_WHOM_NEXT_READY,         /* all of it, to the next in the order of the file */
};

enum sgp_when {
    SGP_WHEN_ALL_PROMISED = 1, /* for every live promise of the round */
    SGP_WHEN_OVERDUE,          /* for promises that are `overlap` rounds old */
    SGP_WHEN_NEVER,            /* at its own pace */
};

enum sgp_how {
    SGP_HOW_IN_ORDER_OF_SOURCE = 1, /* at the end of the round, so that it repeats to the bit */
    SGP_HOW_AS_THEY_COME,
};

enum sgp_wants { /* of the topology */
    SGP_WANTS_ANY = 1,
    SGP_WANTS_SYMMETRIC, /* symmetric and doubly stochastic in every phase */
    SGP_WANTS_REVERSES,  /* every edge has its reverse, in whatever phase */
    SGP_WANTS_OWNER,     /* a node owns the vector; no other method takes such a file */
    SGP_WANTS_TOKEN,     /* owning is a token; likewise */
};

struct sgp_method {
    const char *name; /* as in `[train] algorithm` */
    uint32_t number;  /* travels in the fingerprint; from 1 */
    enum sgp_whom whom;
    enum sgp_when when;
    enum sgp_how how;
    bool publishes_first; /* before the round's steps instead of after them */
    enum sgp_wants wants;
};

/* The presets, by index from 0 without a gap; NULL beyond the last. Static: nobody frees them.
 *   sgp    Stochastic Gradient Push (Assran et al., ICML 2019, Algorithm 1)
 *   osgp   the same with overlap: shares travel while the next rounds train (Algorithm 2)
 *   agp    asynchronous gradient push (Assran and Rabbat, IEEE TAC 2020)
 *   dpsgd  decentralised parallel SGD (Lian et al., NeurIPS 2017, Algorithm 1)
 *   adpsgd asynchronous decentralised parallel SGD (Lian et al., ICML 2018), as shares
 *   backup synchronous SGD with backup workers (Chen, Pan, Monga, Bengio, Jozefowicz 2016), by an owner
 *   downpour  asynchronous SGD (Dean et al., NIPS 2012): an owner that adds each update as it comes
 *   cyclic    cyclic update with dynamic delay (Hu et al. 2018): owning goes from node to node */
SGP_API const struct sgp_method *sgp_method_at(uint32_t index);
SGP_API const struct sgp_method *sgp_method_find(const char *name); /* of a name, or NULL */

/* ---- what follows from a preset ---- */

/* Whether a node that trains waits for others' shares; only then are there backup neighbours. */
SGP_API bool sgp_method_waits(const struct sgp_method *method);

/* Whether a share may come some rounds late (sgp_node_config.overlap) before anybody waits for it. */
SGP_API bool sgp_method_overlaps(const struct sgp_method *method);

/* Whether a node far behind takes the fleet's round. Not where each counts rounds of its own. */
SGP_API bool sgp_method_may_jump(const struct sgp_method *method);

/* Whether the learning rate may be scaled by a node's rate of rounds, so that one that makes more of them
 * moves the fleet no further than the others. Not where rounds are an owner's. */
SGP_API bool sgp_method_may_scale_rate(const struct sgp_method *method);

/* Whether every in-link has a buffer of its own, so that a credit outlives its round. Else buffers go
 * round by round to those whose shares are awaited, and a credit is good for its round alone. */
SGP_API bool sgp_method_has_own_buffers(const struct sgp_method *method);

/* Whether a node that trains chooses itself whom to give to; else the topology file says whom. */
SGP_API bool sgp_method_chooses(const struct sgp_method *method);

/* What part of its mass a gift leaves to a node that chooses; 1 where the file says how much. */
SGP_API double sgp_method_keep(const struct sgp_method *method);

/* Whether shares are absorbed at the end of their round, in the order of their sources. */
SGP_API bool sgp_method_in_order(const struct sgp_method *method);

/* ---- and of the topology ---- */

/* See to it that a sealed topology, not shared yet, is what the method wants; dpsgd gives its edges
 * Metropolis weights. Returns 0, or SGP_E_TOPOLOGY with the edge that is in the way, which *ret_culprit
 * (may be NULL) is then, and a remedy. */
SGP_API int sgp_method_suit(const struct sgp_method *method, struct sgp_topology *topology,
    struct sgp_error *error, struct sgp_edge_place *ret_culprit);

/* Rounds of overlap beyond this are refused: a share that old says little about its sender. */
#define SGP_OVERLAP_MAX 64u

#endif
