/* SPDX-License-Identifier: Apache-2.0 */
/* Judging a payload that has come whole, with right checksums. It may still have values that
 * training never produces. Daemons and the simulator use one rule.
 *
 * The rule limits the length |z| of an estimate, relative to the lengths that the node has seen:
 * its own, and those of accepted payloads. It limits the length and not the distance: an honest
 * neighbour that was cut off, or whose program has just loaded a model, is about as far away as it
 * is long.
 *
 * A share whose payload is refused returns to its source (sgp_node_step, SGP_EVENT_PAYLOAD with the
 * code). Pure. Thread: any. */
#ifndef SGP_PAYLOAD_H
#define SGP_PAYLOAD_H

#include "sgp/topology.h"

/* Limit for the largest magnitude, as a multiple of our own estimate's, which is floored at 1. It
 * holds whatever is known of lengths. */
#define SGP_OUTSIZED 0x1p20
/* Limit for a payload's length, as a multiple of the recent maximum. The recent maximum is floored
 * at SGP_LENGTH_LEAST of the length of an all-ones vector. So a model that began with zeros can
 * grow, and a model whose values are 1 on average is always accepted. That vector has
 * SGP_LENGTH_VALUES ones at least: the few weights of a small linear model may be far from 1, and
 * a node that trained alone may be far from others that are still near zero. */
#define SGP_LENGTH_MOST 0x1p4
#define SGP_LENGTH_LEAST 0x1p-4
#define SGP_LENGTH_VALUES 256u
/* The number of payloads that are accepted before any is refused by its length: by then all
 * neighbours have been heard. */
#define SGP_LENGTHS_LEARNT 32u
/* After that, each payload raises the recent maximum by at most this factor (twofold in 32), and
 * lowers it by at most the other (half in 256). So a node that lies again and again widens the
 * limit slowly. */
#define SGP_LENGTH_GROWS 0x1.059b0d3158574p0
#define SGP_LENGTH_FALLS 0x1.fe9d96b2a23d9p-1
#define SGP_LOOK_ROUNDS 32u /* our own estimate is measured once in this many rounds */

/* The w of the estimate in a payload, by its announcement. Of a share it is weight over fraction;
 * of an estimate, whose fraction is 0, its weight. A payload without a weight is of an exact cycle
 * or an update: its w is the greatest possible, the number of nodes of the file that train. */
double sgp_payload_unit(double weight, double fraction, const struct sgp_topology *topology);

/* The measure of a vector, or of a part of one. */
struct sgp_measure {
    float largest;  /* magnitude; not finite if one of the values is not */
    double squares; /* their sum; it may be infinite */
    double unit;    /* the w of the estimate (sgp_payload_unit), > 0 */
};

/* The lengths that a node knows; zeros when its process begins. */
struct sgp_lengths {
    double own_largest, own; /* of our estimate at its last measurement */
    double longest;          /* the recent maximum of received payloads */
    uint32_t learnt;         /* SGP_LENGTHS_LEARNT at most */
};

void sgp_lengths_look(struct sgp_lengths *lengths, const struct sgp_measure *own);

/* `parameters` is the length of the whole vector, whatever part of it arrived. Returns 0, and
 * updates the lengths; SGP_E_NOT_FINITE or SGP_E_OUTSIZED. */
int sgp_payload_judge(
    struct sgp_lengths *lengths, const struct sgp_measure *came, uint64_t parameters);

#endif
