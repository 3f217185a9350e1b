/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the queue: what happens, and when. */
#include "sim/world.h"

#include <errno.h>
#include <math.h>

sgp_time sgp_sim_span(double nanoseconds)
{
    return (sgp_time)fmin(nanoseconds, (double)SGP_SIM_TIME_MAX);
}

void sgp_sim_push(
    struct sgp_sim *sim, sgp_time time, enum sgp_sim_kind kind, uint32_t detail, uint32_t index)
{
    uint64_t item = (uint64_t)kind | (uint64_t)detail << 8 | (uint64_t)index << 16;
    if (time > SGP_SIM_TIME_MAX) {
        sgp_sim_fail(sim, SGP_E_STATE, "virtual time is over before what was asked for is done");
        return;
    }
    if (sgp_queue_push(&sim->queue, time, item) < 0)
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
}
