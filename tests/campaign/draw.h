/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that draw a campaign call of each other. They draw in one order, which a seed depends on. */
#ifndef CAMPAIGN_DRAW_H
#define CAMPAIGN_DRAW_H

#include "campaign.h"

#include "sgp/analysis.h"

#include <math.h>

/* ---- chance ---- */

static inline bool draw_chance(struct campaign *campaign, double probability)
{
    return sgp_random_double(&campaign->random) < probability;
}

static inline uint32_t draw_below(struct campaign *campaign, uint32_t bound)
{
    return (uint32_t)sgp_random_below(&campaign->random, bound);
}

/* Between least and greatest, each order of magnitude as likely as the other. */
static inline double draw_spread(struct campaign *campaign, double least, double greatest)
{
    return least * pow(greatest / least, sgp_random_double(&campaign->random));
}

/* ---- fleet.c ---- */

/* A topology that suits the method, and a fleet that suits the topology. Returns 0, or a negative code with
 * the reason. */
int draw_fleet(struct campaign *campaign, uint32_t nodes, struct sgp_error *error);
/* The topology alone, and the name of its family. The caller destroys it. */
int draw_topology(struct campaign *campaign, uint32_t nodes, const char **ret_family,
    struct sgp_topology **ret_topology, struct sgp_error *error);
/* The greatest learning rate with which no node diverges on this file. */
double draw_eta_most(const struct campaign *campaign, const struct sgp_analysis *analysis);

/* ---- faults.c ---- */

/* Faults of every kind for a fleet. Returns 0, or a negative code with the reason. */
int draw_faults(struct campaign *campaign, uint32_t nodes, struct sgp_error *error);

#endif
