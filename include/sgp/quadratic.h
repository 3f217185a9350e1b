/* SPDX-License-Identifier: Apache-2.0 */
/* The simplest trainer: f(z) = |z - centre|^2 / 2, one centre for each node.
 *
 * The minimum over a fleet is the mean of the centres, so a simulation can be compared with exact
 * numbers. With eta = 0 it trains nothing and the fleet only averages its starts.
 *
 * Thread: as every trainer, see sgp/trainer.h. */
#ifndef SGP_QUADRATIC_H
#define SGP_QUADRATIC_H

#include "sgp/outer.h"
#include "sgp/trainer.h"

/* A trainer of `parameters` values (1..SGP_PARAMETERS_MAX). `centre` and `start` have that many
 * finite values and are copied; start may be NULL for all zeros. eta is finite and >= 0.
 *
 * One step is x -= eta * (x / weight - centre), rounded to float32. A step counts as one sample and
 * one epoch; its loss is f at the estimate before it. `evaluate` gives f(x / weight), one sample,
 * accuracy NaN. Returns 0, SGP_E_LIMIT or -ENOMEM; destroy it by its methods->destroy. */
SGP_API int sgp_quadratic_create(uint64_t parameters, const float *centre, const float *start,
    double eta, struct sgp_trainer **ret_trainer);

/* Make the trainer take outer steps by checked settings, from its start on. Call it once. Returns 0
 * or -ENOMEM. */
SGP_API int sgp_quadratic_begin_outer(
    struct sgp_trainer *trainer, const struct sgp_outer_settings *settings);

#endif
