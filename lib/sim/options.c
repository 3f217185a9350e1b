/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a simulation: the defaults, checks of their ranges, and a copy of the faults. */
#include "sim/world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MAX_TEXT "73 years" /* SGP_SIM_TIME_MAX */

void sgp_sim_options_init(struct sgp_sim_options *options)
{
    *options = (struct sgp_sim_options){
        .seed = 1,
        .rounds = 100,
        .method = sgp_method_find("sgp"),
        .local_steps = 1,
        .final_cycles = 2,
        .start = SGP_START_ALL,
        .dimension = 8,
        .latency_ns = SGP_MILLISECOND,
        .bandwidth = 125e6,
        .compute_ns = 10 * SGP_MILLISECOND,
    };
}

/* ---- ranges ---- */

static bool is_time(sgp_time time)
{
    return time >= 0 && time <= SGP_SIM_TIME_MAX;
}

/* The end may be SGP_TIME_NEVER. */
static bool is_span(sgp_time from, sgp_time to)
{
    return is_time(from) && to > from && (is_time(to) || to == SGP_TIME_NEVER);
}

static int check_counts(const struct sgp_sim_options *options, struct sgp_error *error)
{
    const uint32_t counts[] = {options->absence_count, options->cut_count, options->crash_count,
        options->clog_count, options->swizzle_count, options->half_open_count, options->clock_count,
        options->straggler_count, options->liar_count};
    bool many = false;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        many = many || counts[i] > SGP_SIM_FAULTS_MAX;
    return many ? sgp_fail(error, -EINVAL, "too many faults; at most %u", SGP_SIM_FAULTS_MAX) : 0;
}

/* Check faults of processes: stragglers, absences, crashes and clocks. */
static int check_processes(
    uint32_t nodes, const struct sgp_sim_options *options, struct sgp_error *error)
{
    for (uint32_t i = 0; i < options->straggler_count; i++) {
        const struct sgp_sim_straggler *straggler = &options->stragglers[i];
        if (straggler->node >= nodes || !isfinite(straggler->factor) || straggler->factor <= 0)
            return sgp_fail(error, -EINVAL, "a straggler's factor must be above 0");
    }
    for (uint32_t i = 0; i < options->absence_count; i++) {
        const struct sgp_sim_absence *absence = &options->absences[i];
        if (absence->node >= nodes || !is_span(absence->from, absence->to))
            return sgp_fail(error, -EINVAL, "an absence must end after it begins");
    }
    for (uint32_t i = 0; i < options->crash_count; i++) {
        const struct sgp_sim_crash *crash = &options->crashes[i];
        if (crash->node >= nodes || !is_span(crash->at, crash->back) ||
            crash->back == SGP_TIME_NEVER)
            return sgp_fail(error, -EINVAL, "a node must be started again after it crashed");
        if (crash->saved < 0 || crash->saved >= crash->at || (crash->saved > 0 && crash->forgets))
            return sgp_fail(error, -EINVAL,
                "a record that is put back is saved before the crash, and not forgotten");
    }
    for (uint32_t i = 0; i < options->clock_count; i++) {
        const struct sgp_sim_clock *clock = &options->clocks[i];
        if (clock->node >= nodes || !is_time(clock->at) || clock->leap == 0 ||
            clock->leap > SGP_SIM_TIME_MAX || clock->leap < -SGP_SIM_TIME_MAX)
            return sgp_fail(error, -EINVAL, "a clock must leap or stand still for some time");
    }
    return 0;
}

static int check_liars(const struct sgp_topology *topology, const struct sgp_sim_options *options,
    struct sgp_error *error)
{
    for (uint32_t i = 0; i < options->liar_count; i++) {
        const struct sgp_sim_liar *liar = &options->liars[i];
        if (liar->node >= topology->node_count || liar->lie < SGP_SIM_LIE_FLIP ||
            liar->lie > SGP_SIM_LIE_MOST)
            return sgp_fail(error, -EINVAL,
                "a liar is a node, and its lie flip, scale, noise, weightless, estimate, alie, "
                "ipm, drift or dissensus");
        if (sgp_sim_needs_knowledge(liar->lie) && topology->owner != SGP_NODE_NONE)
            return sgp_fail(error, -EINVAL,
                "the lies alie, ipm, drift and dissensus are for nodes that mix, and here the "
                "vector has an owner; take flip, scale or noise");
    }
    return 0;
}

/* Check faults of the network: cuts, clogs, swizzles and half-open links. */
static int check_network(
    uint32_t nodes, const struct sgp_sim_options *options, struct sgp_error *error)
{
    for (uint32_t i = 0; i < options->cut_count; i++) {
        const struct sgp_sim_cut *cut = &options->cuts[i];
        if (!is_span(cut->from, cut->to) || cut->way > SGP_SIM_INWARD)
            return sgp_fail(error, -EINVAL, "a cut must end after it begins");
        for (uint32_t j = 0; j < cut->node_count; j++)
            if (cut->nodes[j] >= nodes)
                return sgp_fail(error, -EINVAL, "a cut names a node that does not exist");
    }
    for (uint32_t i = 0; i < options->clog_count; i++) {
        const struct sgp_sim_clog *clog = &options->clogs[i];
        if (clog->source >= nodes || clog->target >= nodes || clog->source == clog->target ||
            !is_span(clog->from, clog->to))
            return sgp_fail(
                error, -EINVAL, "a clog is between two nodes and must end after it begins");
    }
    for (uint32_t i = 0; i < options->swizzle_count; i++) {
        const struct sgp_sim_swizzle *swizzle = &options->swizzles[i];
        if (swizzle->node >= nodes || !is_span(swizzle->from, swizzle->to) ||
            swizzle->to == SGP_TIME_NEVER)
            return sgp_fail(error, -EINVAL, "a swizzle must end after it begins");
    }
    for (uint32_t i = 0; i < options->half_open_count; i++) {
        const struct sgp_sim_half_open *half = &options->half_opens[i];
        if (half->loser >= nodes || half->keeper >= nodes || half->loser == half->keeper ||
            !is_time(half->at))
            return sgp_fail(error, -EINVAL, "a half-open link is between two nodes");
    }
    return 0;
}

/* With a guard at each node, each node of each file may have one. */
static int check_guard(const struct sgp_topology *topology, const struct sgp_sim_options *options,
    struct sgp_error *error)
{
    double c = options->guard;
    if (!(c >= 0 && c <= SGP_GUARD_MULTIPLE_MOST) || (c > 0 && c < SGP_GUARD_MULTIPLE_LEAST))
        return sgp_fail(error, -EINVAL, "a guard must be from %g to %g, or 0 for none",
            SGP_GUARD_MULTIPLE_LEAST, SGP_GUARD_MULTIPLE_MOST);
    for (uint32_t f = 0; f <= options->reload_count && c > 0; f++) {
        const struct sgp_topology *file =
            f < options->reload_count ? options->reloads[f].topology : topology;
        for (uint32_t i = 0; i < file->node_count; i++)
            if (sgp_topology_check_guard(file, i, error) < 0)
                return -EINVAL;
    }
    return 0;
}

int sgp_sim_check_options(const struct sgp_topology *topology,
    const struct sgp_sim_options *options, struct sgp_error *error)
{
    sgp_assert(options->trainer && options->method);
    if (options->step_by_rate && !sgp_method_may_scale_rate(options->method))
        return sgp_fail(error, -EINVAL, "steps by rate are for methods in which nobody waits");
    if (options->overlap > SGP_OVERLAP_MAX)
        return sgp_fail(error, -EINVAL, "the overlap must be at most %u rounds", SGP_OVERLAP_MAX);
    if (options->rounds < 1 || options->rounds >= SGP_ROUND_MAX)
        return sgp_fail(error, -EINVAL, "rounds must be at least 1");
    for (uint32_t i = 0; options->node_rounds && i < topology->node_count; i++)
        if (options->node_rounds[i] < !topology->nodes[i].relay ||
            options->node_rounds[i] >= SGP_ROUND_MAX)
            return sgp_fail(error, -EINVAL, "the rounds of each node must be at least 1");
    if (options->local_steps < 1)
        return sgp_fail(error, -EINVAL, "local steps must be at least 1");
    if (options->dimension < 1 || options->dimension > SGP_SIM_DIMENSION_MAX)
        return sgp_fail(
            error, -EINVAL, "the dimension must be from 1 to %u", SGP_SIM_DIMENSION_MAX);
    bool owned = topology->owner != SGP_NODE_NONE && !sgp_topology_has_token(topology);
    if (sgp_chooser_is_of_updates(&options->chooser) && !owned)
        return sgp_fail(
            error, -EINVAL, "compression %s is for files with owners", options->chooser.word);
    if (!sgp_chooser_is_of_copies(&options->copies))
        return sgp_fail(error, -EINVAL, "%s is not for copies of owners", options->copies.word);
    if (sgp_topology_check_owners(topology, options->dimension, error) < 0)
        return -EINVAL;
    if (!is_time(options->latency_ns) || !is_time(options->compute_ns))
        return sgp_fail(
            error, -EINVAL, "latency and compute time must be from 0 to " TIME_MAX_TEXT);
    if (options->patience_ns < 0 || options->patience_ns > SGP_PATIENCE_MAX_NS)
        return sgp_fail(error, -EINVAL, "the patience must be from 0 to 10^6 s");
    if (!isfinite(options->bandwidth) || options->bandwidth < 0)
        return sgp_fail(error, -EINVAL, "the bandwidth must be above 0, or 0 for no limit");
    if (!(options->compute_jitter >= 0 && options->compute_jitter < 1))
        return sgp_fail(error, -EINVAL, "the jitter must be at least 0 and below 1");
    if (!(options->loss >= 0 && options->loss < 1))
        return sgp_fail(error, -EINVAL, "the loss must be at least 0 and below 1");
    bool tail = options->compute_tail > 0;
    if (!isfinite(options->compute_tail) || options->compute_tail < 0 ||
        (tail && !(options->compute_tail_max >= 1 && isfinite(options->compute_tail_max))))
        return sgp_fail(
            error, -EINVAL, "a tail has a shape above 0 and a greatest factor of at least 1");
    if (!is_time(options->checkpoint_ns))
        return sgp_fail(
            error, -EINVAL, "the time between checkpoints must be from 0 to " TIME_MAX_TEXT);
    if (!is_time(options->linger_ns))
        return sgp_fail(
            error, -EINVAL, "the time after everybody is done must be from 0 to " TIME_MAX_TEXT);
    int status = check_guard(topology, options, error);
    if (status == 0)
        status = check_counts(options, error);
    if (status == 0)
        status = check_processes(topology->node_count, options, error);
    if (status == 0)
        status = check_liars(topology, options, error);
    if (status == 0)
        status = check_network(topology->node_count, options, error);
    return status == 0 ? sgp_sim_check_reloads(topology, options, error) : status;
}

/* ---- copies ---- */

void *sgp_sim_copy(const void *items, size_t count, size_t size)
{
    void *copy = calloc(count + 1, size);
    if (copy && count > 0)
        memcpy(copy, items, count * size);
    return copy;
}

/* Draw the nodes inside of each cut. The lists of the cuts belong to the caller. */
static int draw_cuts(struct sgp_sim *sim, struct sgp_sim_cut *cuts)
{
    sim->cut_sides = calloc(sim->options.cut_count + 1u, sizeof *sim->cut_sides);
    for (uint32_t i = 0; i < sim->options.cut_count; i++) {
        unsigned char *inside = sim->cut_sides ? calloc(sim->host_count, 1) : NULL;
        if (!inside)
            return -ENOMEM;
        sim->cut_sides[i] = inside;
        for (uint32_t j = 0; j < cuts[i].node_count; j++)
            inside[cuts[i].nodes[j]] = 1;
        cuts[i].nodes = NULL;
    }
    return sim->cut_sides ? 0 : -ENOMEM;
}

int sgp_sim_copy_faults(struct sgp_sim *sim)
{
    struct sgp_sim_options *options = &sim->options;
    struct sgp_sim_cut *cuts = sgp_sim_copy(options->cuts, options->cut_count, sizeof *cuts);
    options->cuts = cuts;
#define COPY(items, count) items = sgp_sim_copy(items, count, sizeof *(items))
    COPY(options->absences, options->absence_count);
    COPY(options->crashes, options->crash_count);
    COPY(options->clogs, options->clog_count);
    COPY(options->swizzles, options->swizzle_count);
    COPY(options->half_opens, options->half_open_count);
    COPY(options->clocks, options->clock_count);
    COPY(options->liars, options->liar_count);
    const bool own_rounds = options->node_rounds != NULL;
    if (own_rounds)
        COPY(options->node_rounds, sim->host_count);
#undef COPY
    bool complete = cuts && (!own_rounds || options->node_rounds) && options->absences &&
                    options->crashes && options->clogs && options->swizzles &&
                    options->half_opens && options->clocks && options->liars;
    return complete ? draw_cuts(sim, cuts) : -ENOMEM;
}

void sgp_sim_free_faults(struct sgp_sim *sim)
{
    const struct sgp_sim_options *options = &sim->options;
    const void *const copies[] = {options->node_rounds, options->absences, options->cuts,
        options->crashes, options->clogs, options->swizzles, options->half_opens, options->clocks,
        options->liars};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        free((void *)(uintptr_t)copies[i]);
    for (uint32_t i = 0; i < options->cut_count && sim->cut_sides; i++)
        free(sim->cut_sides[i]);
    free(sim->cut_sides);
}
