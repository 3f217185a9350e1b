/* SPDX-License-Identifier: Apache-2.0 */
/* Judging a payload that has come whole, checksums and all: it may still be nonsense, which no training like ours
 * comes to. One rule, for daemons and for the simulator.
 *
 * The measure is the length |z| of an estimate beside those that the node has seen: its own, and of what it found
 * good. A length and no distance, for an honest neighbour that was cut off, or whose program has just loaded a model,
 * is about as far away as it is long.
 *
 * A share whose payload is refused comes home to its source (sgp_node_step, SGP_EVENT_PAYLOAD with the code).
 * Pure. Thread: any. */
#ifndef SGP_PAYLOAD_H
#define SGP_PAYLOAD_H

#include "sgp/topology.h"

/* Times the largest magnitude of our own estimate, taken for at least 1: whatever is known of lengths. */
#define SGP_OUTSIZED 0x1p20
/* Times the longest of late. A longest of late that is below this of a vector of ones is taken for that: so a model
 * that began with zeros is outgrown, and one whose values are 1 on the mean is always in proportion. */
#define SGP_LENGTH_MOST 0x1p4
#define SGP_LENGTH_LEAST 0x1p-4
/* So many payloads are found good before any is refused by its length: by then all neighbours have been heard. */
#define SGP_LENGTHS_LEARNT 32u
/* From then on the longest of late grows by no more with each of them, twofold in 32, and falls by no more, half in 256:
 * one who lies again and again widens the measure slowly. */
#define SGP_LENGTH_GROWS 0x1.059b0d3158574p0
#define SGP_LENGTH_FALLS 0x1.fe9d96b2a23d9p-1
#define SGP_LOOK_ROUNDS 32u /* our own estimate is looked at once in so many rounds */

/* The w of the estimate whose parameters a payload are, as its announcement tells: of a share its weight over its fraction;
 * of an estimate, whose fraction is 0, its weight. One without a weight, of an exact cycle or an update, is at most all that
 * there is: as much as the nodes of the file that train. */
SGP_API double sgp_payload_unit(
    double weight, double fraction, const struct sgp_topology *topology);

/* What is seen of a vector, or of a part of one. */
struct sgp_measure {
    float largest;  /* magnitude; not finite if one of the values is not */
    double squares; /* their sum; it may be infinite */
    double unit;    /* the weight w of which they are the parameters (sgp_payload_unit), > 0 */
};

/* What a node knows of lengths; zeros when its process begins. */
struct sgp_lengths {
    double own_largest, own; /* of our estimate when it was looked at last */
    double longest;          /* of what came, of late */
    uint32_t learnt;         /* SGP_LENGTHS_LEARNT at most */
};

SGP_API void sgp_lengths_look(struct sgp_lengths *lengths, const struct sgp_measure *own);

/* `parameters` are those of the whole vector, whatever part of it came. Returns 0, and has learnt from it;
 * SGP_E_NOT_FINITE or SGP_E_OUTSIZED. */
SGP_API int sgp_payload_judge(
    struct sgp_lengths *lengths, const struct sgp_measure *came, uint64_t parameters);

#endif
