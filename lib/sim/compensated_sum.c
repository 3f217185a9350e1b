/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that lose no precision, however many events add to them. */
#include "sim/world.h"

#include <math.h>

void sgp_sim_add(struct sgp_sim_sum *sum, double value)
{
    double next = sum->value + value;
    if (fabs(sum->value) >= fabs(value))
        sum->rest += (sum->value - next) + value;
    else
        sum->rest += (value - next) + sum->value;
    sum->value = next;
}

double sgp_sim_total(const struct sgp_sim_sum *sum)
{
    return sum->value + sum->rest;
}

double sgp_sim_weight(const struct sgp_sim *sim)
{
    return sgp_sim_total(&sim->weight) + sgp_sim_total(&sim->weight_in_flight) -
           sgp_sim_total(&sim->weight_unseen);
}
