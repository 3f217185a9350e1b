/* SPDX-License-Identifier: Apache-2.0 */
/* Events: passed to the core of a host. Its effects are checked, and its next tick is scheduled. */
#include "sim/world.h"

#include <xxhash.h>

#define TICKS_MAX 10000u /* consecutive ticks without a change of time */

static void digest_event(
    struct sgp_sim *sim, const struct sgp_sim_host *host, const struct sgp_event *event)
{
    struct {
        sgp_time now;
        uint32_t host, type, peer, direction;
        int64_t code;
        double weight, weight_in_flight;
    } trace = {
        .now = sim->now,
        .host = host->index,
        .type = (uint32_t)event->type,
        .peer = event->link.peer,
        .direction = (uint32_t)event->link.direction,
        .code = event->code,
        .weight = host->weight,
        .weight_in_flight = host->weight_in_flight,
    };
    sim->digest = XXH3_64bits_withSeed(&trace, sizeof trace, sim->digest);
}

static void count_done(struct sgp_sim *sim, struct sgp_sim_host *host, enum sgp_node_state state)
{
    bool done = host->gone || host->diverged || host->drained || state == SGP_NODE_FINISHED;
    if (done == host->done)
        return;
    host->done = done;
    sim->done_count += done ? 1u : UINT32_MAX; /* plus or minus one */
    sim->done_at = sim->done_count == sim->host_count ? sim->now : SGP_TIME_NEVER;
}

static void schedule_tick(struct sgp_sim *sim, struct sgp_sim_host *host, sgp_time time)
{
    if (time >= host->tick_at)
        return;
    host->tick_at = time > sim->now ? time : sim->now;
    sgp_sim_push(sim, host->tick_at, SGP_SIM_TICK, 0, host->index);
}

/* When the core's deadline is reached, if the host's clock keeps its rate until then. */
static sgp_time when_due(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    sgp_time deadline = sgp_node_deadline(host->node);
    return deadline == SGP_TIME_NEVER ? deadline : deadline - sgp_sim_clock(sim, host) + sim->now;
}

/* While some nodes have begun another epoch and others have not, the weights are not those of one
 * fleet. Shares of the former epoch are neither accepted nor returned. */
static void count_no_more(struct sgp_sim *sim)
{
    sim->mixed = sim->apart = true;
    for (uint32_t i = 0; i < sim->host_count; i++)
        for (uint32_t k = 0; k < sim->hosts[i].performer.snapshots.count; k++)
            sim->hosts[i].outstanding[k] = 0;
}

void sgp_sim_post(struct sgp_sim *sim, struct sgp_sim_host *host, struct sgp_event *event)
{
    sgp_assert(!host->dead);
    bool left_before = host->diverged || host->drained;
    event->now = sgp_sim_clock(sim, host);
    sim->summary.events++;
    sim->remade = sim->remade || event->type == SGP_EVENT_TOKEN;
    if (event->type == SGP_EVENT_RENEW && !sim->apart)
        count_no_more(sim);
    sgp_driver_post(&host->driver, event);
    sgp_sim_check_event(sim, host, event);
    digest_event(sim, host, event);
    count_done(sim, host, sgp_node_state(host->node));
    if ((host->diverged || host->drained) && !left_before)
        sgp_sim_rows_recount(sim);
    schedule_tick(sim, host, when_due(sim, host));
}

void sgp_sim_tick(struct sgp_sim *sim, struct sgp_sim_host *host, sgp_time time)
{
    if (time != host->tick_at) /* an earlier tick replaced it */
        return;
    host->tick_at = SGP_TIME_NEVER;
    sgp_time deadline = when_due(sim, host);
    sgp_time ready = sgp_sim_ready(sim, host->index);
    deadline = deadline > ready ? deadline : ready;
    if (deadline > sim->now) {
        if (deadline != SGP_TIME_NEVER)
            schedule_tick(sim, host, deadline);
        return;
    }
    if (host->ticked_at != sim->now)
        host->ticks_here = 0;
    host->ticked_at = sim->now;
    if (++host->ticks_here > TICKS_MAX)
        sgp_sim_fail(
            sim, SGP_E_STATE, "%s asks for ticks without end", sgp_sim_name(sim, host->index));
    struct sgp_event event = {.type = SGP_EVENT_TICK};
    sgp_sim_post(sim, host, &event);
}

void sgp_sim_wake(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    if (!host->dead)
        schedule_tick(sim, host, sim->now);
}

void sgp_sim_gone(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    host->gone = true;
    count_done(sim, host, SGP_NODE_FINISHED);
    sgp_sim_rows_recount(sim);
}
