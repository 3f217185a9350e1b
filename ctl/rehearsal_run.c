/* SPDX-License-Identifier: Apache-2.0 */
/* One method of a rehearsal: its sites train, and the model of each is measured on the held-out
 * rows; see rehearsal.h. Sites that send nothing train one after another, all others in the
 * simulator. */
#include "rehearsal.h"

#include "sgp/measures.h"
#include "sgp/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS_AT_ONCE 64u /* between two lines of progress */
#define JITTER 0.2        /* of the time of a step, so that sites do not keep time by themselves */

struct run {
    const struct ctl_rehearsal *rehearsal;
    const struct ctl_rehearsal_method *method;
    struct sgp_topology *topology; /* NULL: nothing is sent */
    sgp_round *rounds;             /* of each node */
    sgp_round rounds_most;
    struct ctl_rehearsal_result *result;
    uint32_t measured;    /* sites whose figures are in the result */
    uint64_t memory_left; /* before the first site is made */
};

static void fail(struct run *run, int code, const char *text)
{
    (void)sgp_fail(&run->result->failure, code, "%s", *text ? text : sgp_strerror(code));
}

/* ---- progress, on a terminal ---- */

static void tell(const struct run *run, double part)
{
    if (isatty(STDERR_FILENO) == 1)
        (void)fprintf(stderr, "\r\033[K%s: %.0f %%", run->method->name, 100 * part);
}

static void tell_end(void)
{
    if (isatty(STDERR_FILENO) == 1)
        (void)fputs("\r\033[K", stderr);
}

/* ---- measures ---- */

/* Measure the model x / weight of a site. */
static void measure(struct run *run, struct sgp_trainer *trainer, double weight)
{
    struct ctl_rehearsal_result *result = run->result;
    const bool classes = run->rehearsal->class_count > 0;
    struct sgp_evaluation evaluation;
    struct sgp_measures measures;
    double figure = NAN;
    int code = trainer->methods->measure(trainer, weight, &evaluation, &measures);
    if (code < 0) {
        fail(run, code,
            code == SGP_E_DIVERGED ? "the model of a site gives outputs that are no numbers; give "
                                     "a smaller --learning-rate"
                                   : "");
        return;
    }
    (void)(classes ? sgp_measures_accuracy(&measures, &figure)
                   : sgp_measures_squared_error(&measures, measures.outputs, &figure));
    sgp_measures_finish(&measures);
    const double worst = classes ? fmin(result->worst, figure) : fmax(result->worst, figure);
    const double best = classes ? fmax(result->best, figure) : fmin(result->best, figure);
    const bool first = run->measured++ == 0;
    result->worst = first ? figure : worst;
    result->best = first ? figure : best;
    result->mean += (figure - result->mean) / run->measured;
}

/* ---- memory ---- */

static uint64_t find_memory_left(void)
{
    char line[128];
    uint64_t kib = UINT64_MAX / 1024;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            break;
    if (file)
        (void)fclose(file);
    return kib * 1024;
}

/* Refuse so many learners, with vectors of so many values, if there is no memory for them. */
static bool is_too_large(struct run *run, uint32_t learners, uint64_t values)
{
    const uint64_t vectors = values * sizeof(float), left = run->memory_left;
    const uint64_t bytes = vectors + learners * run->rehearsal->workspace_bytes;
    char text[SGP_TEXT_BYTES];
    run->result->vector_bytes = vectors;
    if (bytes <= left)
        return false;
    (void)snprintf(text, sizeof text,
        "%u sites of %" PRIu64 " parameters take %.1f GiB, and %.1f GiB are left; give fewer "
        "--nodes or smaller --layers",
        run->rehearsal->plan.count, run->rehearsal->model.parameters, (double)bytes / (1 << 30),
        (double)left / (1 << 30));
    fail(run, -ENOMEM, text);
    return true;
}

/* The values that the learner of one site has beside its rows: x, gradient, and those of the
 * rule. */
static uint64_t learner_values(const struct run *run)
{
    const struct ctl_rehearsal *rehearsal = run->rehearsal;
    return (2 + sgp_optimizer_vectors(&rehearsal->settings.optimizer)) *
           rehearsal->model.parameters;
}

/* ---- without a network ---- */

/* One site takes all its steps, and is measured. `done` and `all` count sites. */
static void train_alone(
    struct run *run, const struct sgp_dataset *rows, uint32_t done, uint32_t all)
{
    struct sgp_learner_settings settings;
    struct sgp_learner *learner = NULL;
    struct sgp_training training;
    uint64_t steps = 0;
    int code = ctl_rehearsal_site(
        run->rehearsal, rows, done, all, &run->result->failure, &settings, &steps);
    if (code == 0)
        code = sgp_learner_create(&settings, &run->result->failure, &learner);
    if (code < 0) {
        if (run->result->failure.code == 0)
            fail(run, code, "");
        return;
    }
    struct sgp_trainer *trainer = sgp_learner_trainer(learner);
    for (uint64_t taken = 0; taken < steps && code == 0; taken += STEPS_AT_ONCE) {
        const uint64_t left = steps - taken;
        tell(run, (done + (double)taken / (double)steps) / all);
        code = trainer->methods->train(
            trainer, 1, left < STEPS_AT_ONCE ? (uint32_t)left : STEPS_AT_ONCE, 1, &training);
    }
    if (code < 0)
        fail(
            run, code, "the loss of a site grew beyond all bounds; give a smaller --learning-rate");
    else
        measure(run, trainer, 1);
    if (steps > run->result->rounds)
        run->result->rounds = steps;
    sgp_learner_destroy(learner);
}

static void run_alone(struct run *run)
{
    const struct sgp_sites *sites = &run->rehearsal->sites;
    if (is_too_large(run, 1, learner_values(run)))
        return;
    if (run->method->pooled)
        train_alone(run, sites->all, 0, 1);
    for (uint32_t i = 0; !run->method->pooled && i < sites->count; i++)
        if (run->result->failure.code == 0)
            train_alone(run, sites->rows[i], i, sites->count);
}

/* ---- in the simulator ---- */

/* The rank of a node among those that train. */
static uint32_t rank_of(const struct sgp_topology *topology, uint32_t node)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < node; i++)
        rank += !topology->nodes[i].relay;
    return rank;
}

/* The settings of a node; its rounds. */
static int settings_of(struct run *run, uint32_t node, struct sgp_error *error,
    struct sgp_learner_settings *ret_settings, sgp_round *ret_rounds)
{
    const struct sgp_sites *sites = &run->rehearsal->sites;
    const uint32_t rank = rank_of(run->topology, node), every = run->method->local_steps;
    uint64_t steps = 0;
    *ret_rounds = 0;
    if (run->topology->nodes[node].relay) { /* an owner has no rows, and nothing to measure on */
        *ret_settings = run->rehearsal->settings;
        ret_settings->evaluation = NULL;
        return 0;
    }
    int code = ctl_rehearsal_site(
        run->rehearsal, sites->rows[rank], rank, sites->count, error, ret_settings, &steps);
    if (code == 0 && steps >= (uint64_t)SGP_ROUND_MAX)
        code = sgp_fail(
            error, SGP_E_LIMIT, "a site would take %" PRIu64 " steps; give fewer --epochs", steps);
    *ret_rounds = (sgp_round)((steps + every - 1) / every);
    return code;
}

static int make_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    struct run *run = context;
    struct sgp_learner_settings settings;
    struct sgp_learner *learner;
    sgp_round rounds;
    int code = settings_of(run, node, &run->result->failure, &settings, &rounds);
    if (code == 0)
        code = sgp_learner_create(&settings, &run->result->failure, &learner);
    if (code == 0)
        *ret_trainer = sgp_learner_trainer(learner);
    return code;
}

/* Advance in virtual time, with a line of progress every second of it. */
static int advance(struct run *run, struct sgp_sim *sim, struct sgp_error *error)
{
    sgp_time until = 0;
    int code = 0;
    while (code == 0 && !sgp_sim_done(sim)) {
        struct sgp_sim_node_summary last;
        sgp_sim_node_summary(sim, run->topology->node_count - 1, &last);
        tell(run, fmin(1, (double)last.rounds / (double)run->rounds_most));
        until += SGP_SECOND;
        code = sgp_sim_run(sim, until, error);
    }
    return code < 0 ? code : sgp_sim_run(sim, SGP_TIME_NEVER, error);
}

/* What all nodes have come to. */
static void sum_up(struct run *run, const struct sgp_sim *sim)
{
    struct ctl_rehearsal_result *result = run->result;
    uint32_t diverged = 0;
    for (uint32_t i = 0; i < run->topology->node_count; i++) {
        struct sgp_sim_node_summary node;
        sgp_sim_node_summary(sim, i, &node);
        diverged += node.diverged;
        if ((uint64_t)node.rounds > result->rounds)
            result->rounds = (uint64_t)node.rounds;
        if (node.bytes > result->bytes_most)
            result->bytes_most = node.bytes;
        if (run->topology->nodes[i].relay)
            continue;
        result->bytes += (double)node.bytes / run->rehearsal->plan.count;
        if (diverged == 0 && result->failure.code == 0)
            measure(run, sgp_sim_trainer(sim, i), node.weight);
    }
    if (diverged > 0)
        (void)sgp_fail(&result->failure, SGP_E_DIVERGED,
            "the loss of %u of %u sites grew beyond all bounds; give a smaller --learning-rate",
            diverged, run->rehearsal->plan.count);
}

/* All vectors of all nodes. */
static uint64_t sum_values(const struct run *run, const struct sgp_sim *sim)
{
    uint64_t values = run->topology->node_count * learner_values(run);
    for (uint32_t i = 0; i < run->topology->node_count; i++) {
        struct sgp_sim_node_summary node;
        sgp_sim_node_summary(sim, i, &node);
        values += node.values;
    }
    return values;
}

static int find_rounds(struct run *run, struct sgp_error *error)
{
    const uint32_t count = run->topology->node_count;
    int code = 0;
    run->rounds = calloc(count, sizeof *run->rounds);
    if (!run->rounds)
        return sgp_fail(error, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < count && code == 0; i++) {
        struct sgp_learner_settings settings;
        code = settings_of(run, i, error, &settings, &run->rounds[i]);
        run->rounds_most = run->rounds[i] > run->rounds_most ? run->rounds[i] : run->rounds_most;
    }
    return code;
}

static int simulate(struct run *run, struct sgp_error *error)
{
    const uint32_t nodes = run->topology->node_count;
    struct sgp_sim_options options;
    struct sgp_sim *sim;
    int code = find_rounds(run, error);
    if (code < 0)
        return code;
    sgp_sim_options_init(&options);
    options.seed = run->rehearsal->plan.seed;
    options.rounds = run->rounds_most;
    options.node_rounds = run->rounds;
    options.method = sgp_method_find(run->method->algorithm);
    options.overlap = (uint32_t)run->rehearsal->config.overlap;
    options.local_steps = run->method->local_steps;
    options.final_cycles = (uint32_t)run->rehearsal->config.final_cycles;
    options.dimension = run->rehearsal->model.parameters;
    options.compute_jitter = JITTER;
    options.context = run;
    options.trainer = make_trainer;
    if (is_too_large(run, nodes, nodes * learner_values(run)))
        return run->result->failure.code;
    code = sgp_sim_create(run->topology, &options, error, &sim);
    if (code < 0)
        return code;
    if (is_too_large(run, nodes, sum_values(run, sim)))
        code = run->result->failure.code;
    if (code == 0)
        code = advance(run, sim, error);
    if (code == 0)
        sum_up(run, sim);
    sgp_sim_destroy(sim);
    return code;
}

void ctl_rehearsal_run(const struct ctl_rehearsal *rehearsal,
    const struct ctl_rehearsal_method *method, struct ctl_rehearsal_result *ret_result)
{
    struct run run = {.rehearsal = rehearsal,
        .method = method,
        .result = ret_result,
        .memory_left = find_memory_left()};
    struct sgp_error error = {0};
    *ret_result = (struct ctl_rehearsal_result){0};
    if (!method->algorithm) {
        run_alone(&run);
    } else {
        int code = ctl_rehearsal_topology(
            method, rehearsal->plan.count, ret_result->topology, &error, &run.topology);
        if (code == 0)
            code = simulate(&run, &error);
        if (code < 0 && ret_result->failure.code == 0)
            fail(&run, code, error.text);
    }
    tell_end();
    free(run.rounds);
    sgp_topology_destroy(run.topology);
}
