/* SPDX-License-Identifier: Apache-2.0 */
/* A digest of an update, by which two nodes find out that they took the same step.
 *
 * It is XXH3 of the bits of a sample of the values. The places depend on the number of values
 * alone, so nodes with one model sample the same values. A sample costs the same for every model.
 * Two steps on different rows agree in all sampled values only if these are zero, and such a sample
 * is no update.
 *
 * Any thread; no state. */
#ifndef SGP_UPDATE_H
#define SGP_UPDATE_H

#include "sgp/types.h"

#define SGP_UPDATE_VALUES 1024u /* of a sample; all values if there are fewer */

/* The digest of `after - before`, or of `after` if `before` is NULL, following the steps with
 * digest `earlier` (0: there are none). Both hold `count` values, at least 1. Returns `earlier` if
 * all values of the sample are zero, else a number that is not 0. */
uint64_t sgp_update_digest(
    const float *after, const float *before, uint64_t count, uint64_t earlier);

/* The digest of steps `earlier`, and then of steps `later`; 0 of either: there were none. */
uint64_t sgp_update_chain(uint64_t earlier, uint64_t later);

#endif
