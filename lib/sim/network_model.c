/* SPDX-License-Identifier: Apache-2.0 */
/* What the model does to hosts, to their clocks and to the network between them: which faults are
 * active now. Each question is answered from the options and the time. Only a swizzle is random,
 * and it is drawn once. */
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_SWIZZLE ((uint64_t)5 << 32) /* of the seed */

/* ---- queries during the run ---- */

/* The end of the absences that hold the host at that time. The time itself if there is none. */
static sgp_time absent_until(const struct sgp_sim *sim, uint32_t host, sgp_time time)
{
    sgp_time until = time;
    for (uint32_t i = 0; i < sim->options.absence_count; i++) {
        const struct sgp_sim_absence *absence = &sim->options.absences[i];
        bool away = absence->node == host && absence->from <= time && time < absence->to;
        if (away && absence->to > until)
            until = absence->to;
    }
    return until;
}

/* One absence may begin before another one ends. Events for the host wait for the end of both. If
 * they waited for one after the other, a later event could overtake an earlier one. */
sgp_time sgp_sim_ready(const struct sgp_sim *sim, uint32_t host)
{
    sgp_time time = sim->now, until;
    while ((until = absent_until(sim, host, time)) > time)
        time = until;
    return time;
}

/* Whether a cut holds messages from one side to the other. */
static bool holds(enum sgp_sim_way way, bool source_inside, bool target_inside)
{
    if (source_inside == target_inside)
        return false;
    return way == SGP_SIM_BOTH_WAYS || (way == SGP_SIM_OUTWARD) == source_inside;
}

sgp_time sgp_sim_passable(const struct sgp_sim *sim, uint32_t source, uint32_t target)
{
    sgp_time time = sim->now;
    for (uint32_t i = 0; i < sim->options.cut_count; i++) {
        const struct sgp_sim_cut *cut = &sim->options.cuts[i];
        const unsigned char *inside = sim->cut_sides[i];
        bool on = cut->from <= sim->now && sim->now < cut->to;
        if (on && cut->to > time && holds(cut->way, inside[source], inside[target]))
            time = cut->to;
    }
    for (uint32_t i = 0; i < sim->options.clog_count; i++) {
        const struct sgp_sim_clog *clog = &sim->options.clogs[i];
        bool on = clog->from <= sim->now && sim->now < clog->to;
        if (on && clog->to > time && clog->source == source && clog->target == target)
            time = clog->to;
    }
    return time;
}

sgp_time sgp_sim_clock(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    sgp_time time = sim->now;
    for (uint32_t i = 0; i < sim->options.clock_count; i++) {
        const struct sgp_sim_clock *clock = &sim->options.clocks[i];
        sgp_time since = sim->now - clock->at;
        if (clock->node != host->index || since < 0)
            continue;
        time += clock->leap > -since ? clock->leap : -since;
        time = time < 2 * SGP_SIM_TIME_MAX ? time : 2 * SGP_SIM_TIME_MAX;
        /* many clocks may be suspended */
        time = time > -SGP_SIM_TIME_MAX ? time : -SGP_SIM_TIME_MAX;
    }
    if (time > host->clock)
        host->clock = time;
    return host->clock;
}

/* ---- drawn and scheduled before the run ---- */

/* Clog every link of `chosen`, and release them in another order. */
static void clog_links(struct sgp_sim *sim, const struct sgp_sim_swizzle *swizzle,
    struct sgp_random *random, const uint32_t *chosen, uint32_t count, struct sgp_sim_clog *clogs)
{
    const struct sgp_sim_host *host = &sim->hosts[swizzle->node];
    uint32_t *order = malloc((count + 1u) * sizeof *order);
    if (!order) {
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
        return;
    }
    sgp_time step = (swizzle->to - swizzle->from) / 2 / (count + 1);
    sgp_time middle = swizzle->from + (swizzle->to - swizzle->from) / 2;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    sgp_random_shuffle(random, order, count);
    for (uint32_t i = 0; i < count; i++) {
        bool out = chosen[i] < host->out_count;
        uint32_t peer = sim->links[host->link_first + chosen[i]].peer;
        clogs[i] = (struct sgp_sim_clog){.source = out ? host->index : peer,
            .target = out ? peer : host->index,
            .from = swizzle->from + step * i,
            .to = middle + step * (order[i] + 1) + 1};
    }
    free(order);
}

static void swizzle(struct sgp_sim *sim, const struct sgp_sim_swizzle *swizzle,
    struct sgp_random *random, struct sgp_sim_clog *clogs)
{
    const struct sgp_sim_host *host = &sim->hosts[swizzle->node];
    uint32_t *links = malloc((host->link_count + 1u) * sizeof *links);
    if (!links) {
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
        return;
    }
    for (uint32_t i = 0; i < host->link_count; i++)
        links[i] = i;
    sgp_random_shuffle(random, links, host->link_count);
    clog_links(sim, swizzle, random, links, (host->link_count + 1) / 2, clogs);
    free(links);
}

static int swizzle_all(struct sgp_sim *sim)
{
    const struct sgp_sim_options *options = &sim->options;
    uint32_t total = options->clog_count;
    for (uint32_t i = 0; i < options->swizzle_count; i++)
        total += (sim->hosts[options->swizzles[i].node].link_count + 1) / 2;
    struct sgp_sim_clog *clogs =
        realloc((void *)(uintptr_t)options->clogs, (total + 1u) * sizeof *clogs);
    if (!clogs)
        return -ENOMEM;
    struct sgp_random random;
    sgp_random_init(&random, options->seed, STREAM_SWIZZLE);
    uint32_t used = options->clog_count;
    for (uint32_t i = 0; i < options->swizzle_count; i++) {
        swizzle(sim, &options->swizzles[i], &random, clogs + used);
        used += (sim->hosts[options->swizzles[i].node].link_count + 1) / 2;
    }
    sim->options.clogs = clogs;
    sim->options.clog_count = total;
    return sim->error.code;
}

int sgp_sim_schedule_faults(struct sgp_sim *sim)
{
    const struct sgp_sim_options *options = &sim->options;
    int status = swizzle_all(sim);
    for (uint32_t i = 0; i < options->absence_count; i++)
        if (options->absences[i].to == SGP_TIME_NEVER)
            sgp_sim_push(
                sim, options->absences[i].from, SGP_SIM_GONE, 0, options->absences[i].node);
    for (uint32_t i = 0; i < options->crash_count; i++)
        sgp_sim_push(sim, options->crashes[i].at, SGP_SIM_CRASH, 0, i);
    for (uint32_t i = 0; i < options->crash_count; i++)
        if (options->crashes[i].saved > 0)
            sgp_sim_push(sim, options->crashes[i].saved, SGP_SIM_SAVE, 0, i);
    for (uint32_t i = 0; i < options->half_open_count; i++)
        sgp_sim_push(sim, options->half_opens[i].at, SGP_SIM_HALF_OPEN, 0, i);
    for (uint32_t i = 0; i < options->clock_count; i++)
        if (options->clocks[i].leap > 0)
            sgp_sim_push(sim, options->clocks[i].at, SGP_SIM_LEAP, 0, options->clocks[i].node);
    for (uint32_t i = 0; i < sim->host_count && options->checkpoint_ns > 0; i++) {
        /* not all at the same time */
        sgp_time first = options->checkpoint_ns / sim->host_count * (i + 1);
        sgp_sim_push(sim, first, SGP_SIM_CHECKPOINT, 0, i);
    }
    return status < 0 ? status : sim->error.code;
}

static void extend(sgp_time *latest, sgp_time time)
{
    if (time != SGP_TIME_NEVER && time > *latest)
        *latest = time;
}

sgp_time sgp_sim_faults_end(const struct sgp_sim *sim)
{
    const struct sgp_sim_options *options = &sim->options;
    sgp_time latest = 0;
    for (uint32_t i = 0; i < options->absence_count; i++)
        extend(&latest, options->absences[i].to);
    for (uint32_t i = 0; i < options->crash_count; i++)
        extend(&latest, options->crashes[i].back);
    for (uint32_t i = 0; i < options->cut_count; i++)
        extend(&latest, options->cuts[i].to);
    for (uint32_t i = 0; i < options->clog_count; i++)
        extend(&latest, options->clogs[i].to);
    for (uint32_t i = 0; i < options->half_open_count; i++)
        extend(&latest, options->half_opens[i].at);
    for (uint32_t i = 0; i < options->clock_count; i++) {
        const struct sgp_sim_clock *clock = &options->clocks[i];
        extend(&latest, clock->at + (clock->leap < 0 ? -clock->leap : 0));
    }
    return latest;
}
