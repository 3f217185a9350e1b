/* SPDX-License-Identifier: Apache-2.0 */
/* The guard on received shares: how far one share may move the estimate of its target.
 *
 * A share carries a fraction of its source's mass: dx and dw. It says v = dx / dw, the source's
 * estimate. Let z = x / w be the target's own estimate when the share is absorbed, and d = |v - z|.
 * The weight is taken whole, and the vector as far as the bound:
 *
 *     w += dw,    x += dw * (z + (v - z) * min(1, bound / d))
 *
 * So the total weight stays exact. What the bound takes from the vector is lost, and not returned:
 * the sum of all x changes as by a local step.
 *
 * The bound is `multiple` times the median, over the neighbours that were heard, of the median of
 * each one's latest SGP_GUARD_DISTANCES distances. A neighbour's own distances are one word of
 * several, so a liar does not set its own bound. That holds from three neighbours on. Of two the
 * lesser word counts, and with fewer the bound is 0.
 *
 * This protects from broken nodes and crude liars. It is not Byzantine fault tolerance: see
 * docs/rules/guard.md. After clipping around the own estimate (He, Karimireddy, Jaggi 2022).
 *
 * Pure. Thread: the caller's, one at a time. */
#ifndef SGP_GUARD_H
#define SGP_GUARD_H

#include "sgp/node.h"
#include "sgp/topology.h"

#define SGP_GUARD_DISTANCES 5u /* that are kept of each neighbour */
/* The range of `multiple`. */
#define SGP_GUARD_MULTIPLE_LEAST 0.1
#define SGP_GUARD_MULTIPLE_MOST 10.0

struct sgp_guard_neighbour {
    uint32_t peer;  /* node index in the topology file */
    uint32_t heard; /* the number of its shares so far */
    double distances[SGP_GUARD_DISTANCES];
};

struct sgp_guard {
    double multiple; /* `[train] guard` */
    uint64_t files;  /* the performer's count of files by which the peers are numbered */
    uint32_t count;
    struct sgp_guard_neighbour neighbours[SGP_GUARD_SOURCES_MOST];
};

/* Begin without any distance. */
void sgp_guard_begin(struct sgp_guard *guard, double multiple);

/* The present bound, >= 0. */
double sgp_guard_bound(const struct sgp_guard *guard);

/* Which of up to SGP_CANDIDATES_MOST received estimates a node without one of its own adopts: the
 * index of one of `count` > 0.
 *
 * Of three, the one whose distances to the two others are the least together. If one of the three
 * is false, it is taken only if it is nearer to an honest one than the two honest ones are to each
 * other. Of two, the one nearer to the node's own earlier model, because two alone cannot show
 * which is false. Without such a model the first counts.
 *
 * `apart[i][j]` is the distance between estimates i and j, and `own[i]` the distance of estimate i
 * from the node's own earlier model; NULL: it has none. A distance that is not finite counts as
 * greater than any other. The bound of the guard cannot judge: a node that has just started has
 * heard no distances. */
uint32_t sgp_guard_choose(
    uint32_t count, double apart[SGP_CANDIDATES_MOST][SGP_CANDIDATES_MOST], const double *own);

/* The part min(1, bound / distance) of the way from the own estimate to what a share says. The part
 * is 0 if the distance is not finite. */
double sgp_guard_part(double bound, double distance);

/* A share of this peer says an estimate at this distance, whatever part of it was taken. Call it
 * after the share was judged by the bound. A peer beyond SGP_GUARD_SOURCES_MOST is not
 * remembered. */
void sgp_guard_hear(struct sgp_guard *guard, uint32_t peer, double distance);

#endif
