/* What is asked of a simulation: the defaults, what is out of range, and a copy of its faults. */
#include "sim/world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static int check_faults(const struct sgp_topology *topology, const struct sgp_sim_options *options,
    struct sgp_error *error)
{
    if (options->absence_count > SGP_SIM_FAULTS_MAX || options->cut_count > SGP_SIM_FAULTS_MAX ||
        options->crash_count > SGP_SIM_FAULTS_MAX ||
        options->straggler_count > topology->node_count)
        return sgp_fail(error, -EINVAL, "too many faults; at most %u", SGP_SIM_FAULTS_MAX);
    for (uint32_t i = 0; i < options->straggler_count; i++) {
        const struct sgp_sim_straggler *straggler = &options->stragglers[i];
        if (straggler->node >= topology->node_count || !isfinite(straggler->factor) ||
            straggler->factor <= 0)
            return sgp_fail(error, -EINVAL, "a straggler's factor must be above 0");
    }
    for (uint32_t i = 0; i < options->absence_count; i++) {
        const struct sgp_sim_absence *absence = &options->absences[i];
        if (absence->node >= topology->node_count || absence->from < 0 ||
            absence->to <= absence->from)
            return sgp_fail(error, -EINVAL, "an absence must end after it begins");
    }
    for (uint32_t i = 0; i < options->crash_count; i++) {
        const struct sgp_sim_crash *crash = &options->crashes[i];
        if (crash->node >= topology->node_count || crash->at < 0 || crash->back <= crash->at ||
            crash->back == SGP_TIME_NEVER)
            return sgp_fail(error, -EINVAL, "a node must be started again after it crashed");
    }
    for (uint32_t i = 0; i < options->cut_count; i++) {
        const struct sgp_sim_cut *cut = &options->cuts[i];
        if (cut->from < 0 || cut->to <= cut->from)
            return sgp_fail(error, -EINVAL, "a cut must end after it begins");
        for (uint32_t j = 0; j < cut->node_count; j++)
            if (cut->nodes[j] >= topology->node_count)
                return sgp_fail(error, -EINVAL, "a cut names a node that does not exist");
    }
    return 0;
}

int sgp_sim_check_options(const struct sgp_topology *topology,
    const struct sgp_sim_options *options, struct sgp_error *error)
{
    sgp_assert(options->trainer && options->method);
    if (options->overlap > SGP_OVERLAP_MAX)
        return sgp_fail(error, -EINVAL, "the overlap must be at most %u rounds", SGP_OVERLAP_MAX);
    if (options->rounds < 1 || options->rounds >= SGP_ROUND_MAX)
        return sgp_fail(error, -EINVAL, "rounds must be at least 1");
    if (options->local_steps < 1)
        return sgp_fail(error, -EINVAL, "local steps must be at least 1");
    if (options->dimension < 1 || options->dimension > SGP_SIM_DIMENSION_MAX)
        return sgp_fail(
            error, -EINVAL, "the dimension must be from 1 to %u", SGP_SIM_DIMENSION_MAX);
    if (options->latency_ns < 0 || options->compute_ns < 0)
        return sgp_fail(error, -EINVAL, "latency and compute time must not be negative");
    if (!isfinite(options->bandwidth) || options->bandwidth < 0)
        return sgp_fail(error, -EINVAL, "the bandwidth must be above 0, or 0 for no limit");
    if (!(options->compute_jitter >= 0 && options->compute_jitter < 1))
        return sgp_fail(error, -EINVAL, "the jitter must be at least 0 and below 1");
    if (!(options->loss >= 0 && options->loss < 1))
        return sgp_fail(error, -EINVAL, "the loss must be at least 0 and below 1");
    return check_faults(topology, options, error);
}

int sgp_sim_copy_faults(struct sgp_sim *sim)
{
    struct sgp_sim_options *options = &sim->options;
    size_t bytes = options->absence_count * sizeof *options->absences;
    struct sgp_sim_absence *absences = malloc(bytes + 1);
    struct sgp_sim_cut *cuts = calloc(options->cut_count + 1u, sizeof *cuts);
    struct sgp_sim_crash *crashes = calloc(options->crash_count + 1u, sizeof *crashes);
    if (crashes && options->crash_count > 0)
        memcpy(crashes, options->crashes, options->crash_count * sizeof *crashes);
    sim->cut_sides = calloc(options->cut_count + 1u, sizeof *sim->cut_sides);
    if (absences && bytes > 0)
        memcpy(absences, options->absences, bytes);
    for (uint32_t i = 0; i < options->cut_count && cuts && sim->cut_sides; i++) {
        cuts[i] = options->cuts[i];
        sim->cut_sides[i] = calloc(sim->host_count, 1);
        for (uint32_t j = 0; j < cuts[i].node_count && sim->cut_sides[i]; j++)
            sim->cut_sides[i][cuts[i].nodes[j]] = 1;
        cuts[i].nodes = NULL;
    }
    options->absences = absences;
    options->cuts = cuts;
    options->crashes = crashes;
    bool complete = absences && cuts && crashes && sim->cut_sides;
    for (uint32_t i = 0; i < options->cut_count && complete; i++)
        complete = sim->cut_sides[i] != NULL;
    return complete ? 0 : -ENOMEM;
}

void sgp_sim_free_faults(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->options.cut_count && sim->cut_sides; i++)
        free(sim->cut_sides[i]);
    free((void *)(uintptr_t)sim->options.absences);
    free((void *)(uintptr_t)sim->options.cuts);
    free((void *)(uintptr_t)sim->options.crashes);
    free(sim->cut_sides);
}
