/* SPDX-License-Identifier: Apache-2.0 */
/* The run: one queue entry after another, until all hosts have finished or an invariant breaks. */
#include "sim/world.h"

static void checkpoint(struct sgp_sim *sim, struct sgp_sim_host *host, sgp_time ready)
{
    if (ready == SGP_TIME_NEVER)
        return;
    if (!host->dead && ready <= sim->now)
        sgp_sim_checkpoint(host);
    sgp_time next = sim->now + sim->options.checkpoint_ns;
    if (next <= SGP_SIM_TIME_MAX)
        sgp_sim_push(sim, ready > next ? ready : next, SGP_SIM_CHECKPOINT, 0, host->index);
}

/* A queue entry of a host's own process waits until the process runs. */
static void host_entry(struct sgp_sim *sim, const struct sgp_queue_entry *entry,
    enum sgp_sim_kind kind, uint32_t index)
{
    struct sgp_sim_host *host = &sim->hosts[index];
    uint32_t detail = (uint32_t)(entry->item >> 8 & 0xff);
    sgp_time ready = sgp_sim_ready(sim, index);
    if (kind == SGP_SIM_TICK) {
        sgp_sim_tick(sim, host, entry->time);
    } else if (kind == SGP_SIM_LEAP) {
        sgp_sim_wake(sim, host);
    } else if (kind == SGP_SIM_CHECKPOINT) {
        checkpoint(sim, host, ready);
    } else if (kind == SGP_SIM_GONE) {
        sgp_sim_gone(sim, host);
    } else if (ready > sim->now) {
        /* An order to a process dies with the process. If there is no process, the next one does
         * not get the order. */
        bool heard = (kind != SGP_SIM_COMMAND && kind != SGP_SIM_INQUIRED) || !host->dead;
        if (ready != SGP_TIME_NEVER && heard)
            sgp_sim_push(sim, ready, kind, detail, index);
    } else if (kind == SGP_SIM_INQUIRED) {
        sgp_sim_inquired(sim, host, detail);
    } else if (kind == SGP_SIM_JOB) {
        if (detail == host->life)
            sgp_sim_job_done(host);
    } else if (!host->dead && (kind != SGP_SIM_START || detail == host->life)) {
        if (kind == SGP_SIM_COMMAND && detail == SGP_EVENT_STEPS_END)
            sgp_sim_cancel(host);
        struct sgp_event event = {
            .type = kind == SGP_SIM_START ? SGP_EVENT_START : (enum sgp_event_type)detail};
        sgp_sim_post(sim, host, &event);
    }
}

static void step(struct sgp_sim *sim)
{
    struct sgp_queue_entry entry = sgp_queue_pop(&sim->queue);
    enum sgp_sim_kind kind = (enum sgp_sim_kind)(entry.item & 0xff);
    uint32_t detail = (uint32_t)(entry.item >> 8 & 0xff);
    uint32_t index = (uint32_t)(entry.item >> 16);
    sim->now = entry.time;
    if (kind >= SGP_SIM_DIALLED)
        sgp_sim_network_entry(sim, kind, detail, index);
    else if (kind == SGP_SIM_HALF_OPEN)
        sgp_sim_half_open(sim, &sim->options.half_opens[index]);
    else if (kind == SGP_SIM_CRASH)
        sgp_sim_die(sim, &sim->options.crashes[index]);
    else if (kind == SGP_SIM_SAVE)
        sgp_sim_save(sim, &sim->options.crashes[index]);
    else if (kind == SGP_SIM_RELOAD)
        sgp_sim_reload(sim, &sim->options.reloads[index]);
    else if (kind == SGP_SIM_REBIRTH)
        sgp_sim_rebirth(sim, &sim->options.crashes[index]);
    else
        host_entry(sim, &entry, kind, index);
}

/* The run is done, no job is queued, and nothing is owed any more, or no host will settle it. */
static bool is_settled(const struct sgp_sim *sim, sgp_time next)
{
    if (sim->done_at == SGP_TIME_NEVER || next <= sim->done_at + sim->options.linger_ns)
        return false;
    bool open = false;
    for (uint32_t i = 0; i < sim->host_count && !open; i++) {
        const struct sgp_sim_host *host = &sim->hosts[i];
        open = !host->gone && (host->weight_in_flight > 0 || host->job_first);
    }
    return !open || next > sim->done_at + SGP_SIM_SETTLE_NS;
}

int sgp_sim_run(struct sgp_sim *sim, sgp_time until, struct sgp_error *error)
{
    while (sim->error.code == 0 && sim->queue.count > 0) {
        sgp_time next = sgp_queue_next(&sim->queue);
        if (next > until || is_settled(sim, next))
            break;
        if (sim->done_at == SGP_TIME_NEVER && sgp_sim_is_stalled(sim, next)) {
            sgp_sim_fail_stalled(sim);
            break;
        }
        step(sim);
    }
    if (sim->error.code == 0 && sim->queue.count == 0 && !sgp_sim_done(sim))
        sgp_sim_fail_stalled(sim);
    if (sim->error.code == 0)
        sgp_sim_check_all(sim);
    if (sim->error.code == 0)
        return 0;
    return sgp_fail(error, sim->error.code, "%s", sim->error.text);
}

bool sgp_sim_done(const struct sgp_sim *sim)
{
    return sim->done_count == sim->host_count;
}

int sgp_sim_command(struct sgp_sim *sim, sgp_time time, uint32_t node, enum sgp_event_type type)
{
    sgp_assert(time >= sim->now && node < sim->host_count && type >= SGP_EVENT_ENOUGH &&
               type <= SGP_EVENT_TOKEN); /* RENEW needs a round */
    sgp_sim_push(sim, time, SGP_SIM_COMMAND, (uint32_t)type, node);
    return sim->error.code;
}
