/* SPDX-License-Identifier: Apache-2.0 */
/* How much noisy steps tell about one row: an account of differential privacy.
 *
 * A step takes each row with the probability `chance`, clips the row's gradient to a length C, and
 * adds normal noise of deviation noise * C to the sum (Abadi et al. 2016, algorithm 1). Two tables
 * are neighbours if one of them lacks one row of the other. A step then has a Renyi divergence at
 * each order, and the divergences of successive steps add up (Mironov 2017, proposition 1). The
 * account keeps these sums, and turns them into (epsilon, delta).
 *
 * The account is an upper bound. It is 10 to 20% above the exact value, and never below it.
 *
 * Pure; any thread. */
#ifndef SGP_PRIVACY_H
#define SGP_PRIVACY_H

#include "sgp/status.h"

#define SGP_PRIVACY_ORDERS 70u /* 2 to 64, 80, 96, 128, 192, 256, 384, 512 */
/* The normal numbers of a step end at 9.2 deviations. One row must move its sum by less of them. */
#define SGP_PRIVACY_NOISE_MIN 0.3
#define SGP_PRIVACY_NOISE_MAX 1e4
#define SGP_PRIVACY_EPSILON_MIN 0.01 /* orders up to 512 bear no smaller one at a usual delta */
#define SGP_PRIVACY_EPSILON_MAX 100.0
#define SGP_PRIVACY_DELTA_MIN 1e-12
#define SGP_PRIVACY_DELTA_MAX 0.1
#define SGP_PRIVACY_STEPS_MAX UINT64_C(1000000000000)

/* Renyi divergences, one for each order. All zero: nothing was told. */
struct sgp_privacy_cost {
    double divergence[SGP_PRIVACY_ORDERS];
};

/* The order of divergence[i], i < SGP_PRIVACY_ORDERS. */
unsigned sgp_privacy_order(unsigned i);

/* The cost of one step: `chance` in (0, 1] of each row, `noise` from SGP_PRIVACY_NOISE_MIN to
 * SGP_PRIVACY_NOISE_MAX as a multiple of the clipping length. Mironov, Talwar, Zhang 2019, section
 * 3.3: the divergence at a whole order is a finite sum. */
void sgp_privacy_step(double chance, double noise, struct sgp_privacy_cost *ret_cost);

/* total += steps * cost. */
void sgp_privacy_add(
    struct sgp_privacy_cost *total, const struct sgp_privacy_cost *cost, uint64_t steps);

/* Raise each divergence of *cost to that of the other, if that is greater. */
void sgp_privacy_raise(struct sgp_privacy_cost *cost, const struct sgp_privacy_cost *other);

/* The least epsilon >= 0 that the orders give for `delta` in (0, 1). Canonne, Kamath, Steinke 2020,
 * proposition 12. A cost of zero has epsilon 0. */
double sgp_privacy_epsilon(const struct sgp_privacy_cost *cost, double delta);

/* The greatest number of steps after which `total` costs no more than epsilon at delta. */
uint64_t sgp_privacy_steps_left(const struct sgp_privacy_cost *total,
    const struct sgp_privacy_cost *step, double epsilon, double delta);

/* The least noise, to 0.001 from above, with which so many steps cost no more than epsilon at
 * delta. Returns 0, or SGP_E_LIMIT with *error (may be NULL): no noise up to SGP_PRIVACY_NOISE_MAX
 * is enough. */
int sgp_privacy_noise_for(double epsilon, double delta, double chance, uint64_t steps,
    struct sgp_error *error, double *ret_noise);

#endif
