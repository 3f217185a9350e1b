/* SPDX-License-Identifier: Apache-2.0 */
/* A training method is a row of policies: which targets get a share, when to wait, how to absorb,
 * whether a share is published before the steps, and what the topology must have. The engine reads
 * the row and has no branch named after a method.
 *
 * Pure functions over a constant table. Thread: any. */
#ifndef SGP_METHOD_H
#define SGP_METHOD_H

#include "sgp/topology.h"

enum sgp_whom {
    SGP_WHOM_OUT_NEIGHBOURS = 1, /* of the round, in the topology file */
    SGP_WHOM_ONE_BY_LOT, /* a random neighbour of any round, which then answers; in training only */
    SGP_WHOM_NEXT_READY, /* all mass, to the next ready node in the order of the file */
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
    SGP_WANTS_REVERSES,  /* every edge has its reverse, in any phase */
    SGP_WANTS_OWNER,     /* a node owns the vector; no other method accepts such a file */
    SGP_WANTS_TOKEN,     /* ownership is a token; no other method accepts such a file */
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

/* The methods, by index from 0 without a gap; NULL beyond the last. Static storage.
 *   sgp       Stochastic Gradient Push (Assran et al., ICML 2019, Algorithm 1)
 *   osgp      the same with overlap: shares travel while the next rounds train (Algorithm 2)
 *   agp       asynchronous gradient push (Assran and Rabbat, IEEE TAC 2020)
 *   dpsgd     decentralised parallel SGD (Lian et al., NeurIPS 2017, Algorithm 1)
 *   adpsgd    asynchronous decentralised parallel SGD (Lian et al., ICML 2018), as shares
 *   backup    synchronous SGD with backup workers, by an owner (Chen, Pan, Monga, Bengio,
 *             Jozefowicz 2016)
 *   downpour  asynchronous SGD (Dean et al., NIPS 2012): an owner adds each update as it comes
 *   cyclic    cyclic update with dynamic delay (Hu et al. 2018): ownership travels */
SGP_API const struct sgp_method *sgp_method_at(uint32_t index);
/* Their names, in this order, as a string literal with `gap` between two names. */
#define SGP_METHOD_NAMES(gap)                                                                      \
    "sgp" gap "osgp" gap "agp" gap "dpsgd" gap "adpsgd" gap "backup" gap "downpour" gap "cyclic"
/* The method of this name, or NULL. */
SGP_API const struct sgp_method *sgp_method_find(const char *name);

/* ---- what follows from a preset ---- */

/* Whether a node that trains waits for others' shares; only then may there be backup neighbours. */
bool sgp_method_waits(const struct sgp_method *method);
#define SGP_METHODS_THAT_WAIT "sgp, osgp or dpsgd" /* those that do, in files without owners */

/* Whether a share may come some rounds late (sgp_node_config.overlap) before its target waits for
 * it. */
bool sgp_method_overlaps(const struct sgp_method *method);

/* Whether a node far behind takes the fleet's round. Not if each node counts its own rounds. */
bool sgp_method_may_jump(const struct sgp_method *method);

/* Whether the learning rate may be scaled by a node's rate of rounds, so that a fast node moves the
 * fleet no further than the others. Not if rounds are an owner's. */
bool sgp_method_may_scale_rate(const struct sgp_method *method);

/* Whether every in-link has a buffer of its own, so that a credit outlives its round. Otherwise
 * buffers go round by round to the awaited shares, and a credit is valid for its round alone. */
bool sgp_method_has_own_buffers(const struct sgp_method *method);

/* Whether a node that trains chooses its targets itself; otherwise the topology file names them. */
bool sgp_method_chooses(const struct sgp_method *method);

/* The fraction of its mass that a node keeps if it chooses its targets; 1 if the file gives the
 * fractions. */
double sgp_method_keep(const struct sgp_method *method);

/* Whether shares are absorbed at the end of their round, in the order of their sources. */
bool sgp_method_in_order(const struct sgp_method *method);

/* Why a fleet has no best model of one round (`[train] keep_best`), as a clause for a message:
 * "each node keeps its own pace, ..."; static storage. NULL: it has one. */
const char *sgp_method_lacks_best(const struct sgp_method *method);
#define SGP_METHODS_WITH_BEST "sgp or dpsgd" /* those whose fleets have one */

/* ---- and of the topology ---- */

/* Make a sealed topology that is not shared yet fit the method; dpsgd gives its edges Metropolis
 * weights. Returns 0, or SGP_E_TOPOLOGY with a text that names the edge and a remedy; *ret_culprit
 * (may be NULL) is then the edge. */
int sgp_method_suit(const struct sgp_method *method, struct sgp_topology *topology,
    struct sgp_error *error, struct sgp_edge_place *ret_culprit);

/* The greatest number of rounds of overlap: an older share says little about its sender. */
#define SGP_OVERLAP_MAX 64u

#endif
