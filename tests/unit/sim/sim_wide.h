/* SPDX-License-Identifier: Apache-2.0 */
/* Fleets whose vectors have many values, for suites of coded shares. */
#ifndef SIM_WIDE_H
#define SIM_WIDE_H

#include "sim_fleet.h"

#define WIDE_PARTS 4u /* each of whole blocks */
#define WIDE (WIDE_PARTS * SGP_PART_BLOCKED_LEAST + 100)

/* Minima of unlike size, each node its own, all from one place. */
static int wide_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    static float centre[WIDE], start[WIDE];
    const struct fleet *fleet = context;
    for (uint32_t c = 0; c < WIDE; c++) {
        centre[c] = sinf((float)(c * (node + 1))) * (c % 5 == 0 ? 8 : 1);
        start[c] = 1;
    }
    return sgp_quadratic_create(WIDE, centre, start, fleet->eta, ret_trainer);
}

static void fleet_widen(struct fleet *fleet, enum sgp_compressor compressor)
{
    fleet->options.trainer = wide_trainer;
    fleet->options.left = NULL;
    fleet->options.dimension = WIDE;
    fleet->options.chooser.compressor = compressor;
}

#endif
