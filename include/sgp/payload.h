/* SPDX-License-Identifier: Apache-2.0 */
/* Judging a payload that has come whole, checksums and all: it may still be nonsense, which no training like ours
 * comes to. One rule, for daemons and for the simulator.
 *
 * A share whose payload is refused comes home to its source (sgp_node_step, SGP_EVENT_PAYLOAD with the code).
 * Pure. Thread: any. */
#ifndef SGP_PAYLOAD_H
#define SGP_PAYLOAD_H

#include "sgp/types.h"

/* Times the largest magnitude of our own estimate, taken for at least 1. So wide that no honest model outgrows it
 * between two looks at our own, which are taken once in so many rounds. */
#define SGP_OUTSIZED 0x1p20
#define SGP_LOOK_ROUNDS 32u

/* `largest` is the largest magnitude among the values, not finite if one of them is not; `unit` is the weight
 * w of which they are the parameters: of a share its weight over its fraction, > 0; `own` is the largest magnitude in
 * our estimate, 0 before the first look. Returns 0, SGP_E_NOT_FINITE or SGP_E_OUTSIZED. */
SGP_API int sgp_payload_judge(float largest, double unit, double own);

#endif
