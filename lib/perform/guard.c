/* SPDX-License-Identifier: Apache-2.0 */
/* The guard on received shares; see sgp/guard.h. Daemons and the simulator use one rule.
 *
 * The rule: docs/rules/guard.md */
#include "sgp/guard.h"

#include "sgp/status.h"

#include <math.h>
#include <stddef.h>

#define FAR 1e30 /* a distance that is not finite counts as this one */

void sgp_guard_begin(struct sgp_guard *guard, double multiple)
{
    guard->multiple = multiple;
    guard->count = 0;
}

/* ---- the bound ---- */

/* The median of `count` > 0 values, which are sorted by that. */
static double median(double *values, uint32_t count)
{
    sgp_assert(count > 0);
    for (uint32_t i = 1; i < count; i++) {
        double value = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static double word_of(const struct sgp_guard_neighbour *neighbour)
{
    double distances[SGP_GUARD_DISTANCES];
    uint32_t count =
        neighbour->heard < SGP_GUARD_DISTANCES ? neighbour->heard : SGP_GUARD_DISTANCES;
    for (uint32_t i = 0; i < count; i++)
        distances[i] = neighbour->distances[i];
    return median(distances, count);
}

double sgp_guard_bound(const struct sgp_guard *guard)
{
    double words[SGP_GUARD_SOURCES_MOST];
    if (guard->count < SGP_GUARD_SOURCES_LEAST - 1)
        return 0;
    for (uint32_t i = 0; i < guard->count; i++)
        words[i] = word_of(&guard->neighbours[i]);
    double typical = guard->count < SGP_GUARD_SOURCES_LEAST ? fmin(words[0], words[1])
                                                            : median(words, guard->count);
    return guard->multiple * typical;
}

double sgp_guard_part(double bound, double distance)
{
    if (distance <= bound)
        return 1;
    return isfinite(distance) ? bound / distance : 0;
}

/* ---- estimates ---- */

static double limited(double distance)
{
    return isfinite(distance) ? fmin(distance, FAR) : FAR;
}

uint32_t sgp_guard_choose(
    uint32_t count, double apart[SGP_CANDIDATES_MOST][SGP_CANDIDATES_MOST], const double *own)
{
    double sums[SGP_CANDIDATES_MOST] = {0};
    uint32_t chosen = 0;
    sgp_assert(count > 0 && count <= SGP_CANDIDATES_MOST);
    for (uint32_t i = 0; i < count; i++) {
        if (count == 2 && own != NULL)
            sums[i] = limited(own[i]);
        for (uint32_t j = 0; j < count && count > 2; j++)
            sums[i] += i != j ? limited(apart[i][j]) : 0;
        chosen = sums[i] < sums[chosen] ? i : chosen;
    }
    return chosen;
}

/* ---- what is remembered ---- */

static struct sgp_guard_neighbour *find(struct sgp_guard *guard, uint32_t peer)
{
    uint32_t i = 0;
    while (i < guard->count && guard->neighbours[i].peer != peer)
        i++;
    if (i == SGP_GUARD_SOURCES_MOST)
        return NULL;
    if (i == guard->count)
        guard->neighbours[guard->count++] = (struct sgp_guard_neighbour){.peer = peer};
    return &guard->neighbours[i];
}

void sgp_guard_hear(struct sgp_guard *guard, uint32_t peer, double distance)
{
    struct sgp_guard_neighbour *neighbour = find(guard, peer);
    if (neighbour == NULL)
        return;
    neighbour->distances[neighbour->heard % SGP_GUARD_DISTANCES] = limited(distance);
    neighbour->heard++;
}
