/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl simulate`: a topology file under virtual time, without a daemon.
 *
 * The cores are the same as in the daemon, one for each node of the file. Without a learning rate,
 * the nodes only average random vectors. With a learning rate, each node trains a quadratic
 * function of its own. */
#include "simulate_faults.h"
#include "simulate_options.h"

#include "sgp/dot.h"
#include "sgp/quadratic.h"
#include "sgp/version.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_VECTORS ((uint64_t)4 << 32) /* of the seed; see lib/sim */

struct simulation {
    struct ctl *ctl;
    struct sgp_topology *topology;
    struct sgp_sim_options options;
    struct ctl_faults faults;
    double learning_rate;
    struct sgp_outer_settings outer;
    float *vector; /* scratch: a node's start or centre, then zeros */
    double *mean;  /* the value on which all nodes should agree */
    uint32_t met;  /* nodes that are already in the mean */
    char **words;  /* of the command line, as given */
    int word_count;
    int file_word; /* index of the topology file among them */
    FILE *trace;   /* where every step is logged; NULL: nowhere */
    struct sgp_sink sink;
};

/* ---- the vectors to be averaged, or to be trained towards ---- */

/* A multiple of 1/256 from -4 to 4. Halving and adding such numbers is exact in float32. So an
 * exactly averaging topology shows an error of zero. */
static float coordinate(struct sgp_random *random)
{
    return ((float)sgp_random_below(random, 2049) - 1024) / 256;
}

/* A node's part of the value on which all should agree: its minimum if the node trains. Else its
 * start if the start has weight. */
static double part_of_mean(const struct simulation *simulation, uint32_t node)
{
    const struct sgp_topology *topology = simulation->topology;
    if (simulation->learning_rate > 0)
        return topology->nodes[node].relay ? 0 : 1.0 / sgp_topology_trainers(topology);
    double total = 0;
    for (uint32_t i = 0; i < topology->node_count; i++)
        total += sgp_topology_starts(topology, i);
    return sgp_topology_starts(topology, node) / total;
}

static int make_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    struct simulation *simulation = context;
    uint64_t dimension = simulation->options.dimension;
    const float *zeros = simulation->vector + dimension;
    struct sgp_random random;
    sgp_random_init(&random, simulation->options.seed, STREAM_VECTORS + node);
    bool first = node == simulation->met; /* else its process restarts after a crash */
    double part = part_of_mean(simulation, node);
    simulation->met += first;
    for (uint64_t c = 0; c < dimension; c++) {
        simulation->vector[c] = coordinate(&random);
        if (first)
            simulation->mean[c] += part * (double)simulation->vector[c];
    }
    bool trains = simulation->learning_rate > 0;
    int status = sgp_quadratic_create(dimension, trains ? simulation->vector : zeros,
        trains ? zeros : simulation->vector, simulation->learning_rate, ret_trainer);
    if (status < 0)
        return status;
    status = sgp_quadratic_begin_outer(*ret_trainer, &simulation->outer);
    if (status < 0)
        (*ret_trainer)->methods->destroy(*ret_trainer);
    return status;
}

/* The greatest distance of a present node's estimate, if it has an estimate, from the value on
 * which all should agree. */
static double error_of(struct simulation *simulation, const struct sgp_sim *sim, sgp_time now)
{
    double error = 0;
    for (uint32_t i = 0; i < simulation->topology->node_count; i++) {
        bool gone = false;
        for (uint32_t a = 0; a < simulation->faults.counts[CTL_ABSENT]; a++) {
            const struct sgp_sim_absence *absence = &simulation->faults.absences[a];
            gone |= absence->node == i && absence->to == SGP_TIME_NEVER && absence->from <= now;
        }
        if (gone)
            continue;
        sgp_sim_estimate(sim, i, simulation->vector);
        if (simulation->topology->nodes[i].relay && !isfinite((double)simulation->vector[0]))
            continue; /* it has no estimate at the end */
        for (uint64_t c = 0; c < simulation->options.dimension; c++) {
            double distance = fabs((double)simulation->vector[c] - simulation->mean[c]);
            if (isnan(distance))
                return distance;
            error = fmax(error, distance);
        }
    }
    return error;
}

/* ---- output ---- */

static const char *const columns[] = {"round", "time_seconds", "nodes", "disagreement", "error",
    "total_weight", "weight_least", "bytes", "shares"};
#define COLUMN_COUNT (sizeof columns / sizeof *columns)
#define COLUMN_WIDTH 13

static double seconds(sgp_time time)
{
    return (double)time / (double)SGP_SECOND;
}

/* As error_of, but of the estimates that nodes had at the end of a round. */
static double error_of_row(const struct simulation *simulation, const struct sgp_sim_row *row)
{
    double error = 0;
    for (uint64_t c = 0; c < simulation->options.dimension && !isinf(error); c++) {
        double mean = simulation->mean[c];
        bool finite = isfinite(row->least[c]) && isfinite(row->greatest[c]);
        error =
            finite ? fmax(error, fmax(row->greatest[c] - mean, mean - row->least[c])) : INFINITY;
    }
    return error;
}

static json_t *row_json(const struct simulation *simulation, const struct sgp_sim_row *row)
{
    return json_pack("{s:I, s:f, s:I, s:o, s:o, s:f, s:f, s:I, s:I}", "round",
        (json_int_t)row->round, "time_seconds", seconds(row->time), "nodes", (json_int_t)row->nodes,
        "disagreement", ctl_json_real(row->disagreement), "error",
        ctl_json_real(error_of_row(simulation, row)), "total_weight", row->weight, "weight_least",
        row->weight_least, "bytes", (json_int_t)row->bytes, "shares", (json_int_t)row->shares);
}

/* One line of the table; its head if `row` is NULL. On a terminal, columns are aligned, and the
 * resolution of time depends on the length of rounds. */
static void print_line(const struct ctl *ctl, const json_t *row)
{
    char text[CTL_CELL_BYTES];
    for (size_t k = 0; k < COLUMN_COUNT; k++) {
        const json_t *value = row ? json_object_get(row, columns[k]) : NULL;
        if (!row)
            (void)snprintf(text, sizeof text, "%s", columns[k]);
        else if (ctl->terminal && json_is_number(value))
            (void)snprintf(text, sizeof text, "%.8g", json_number_value(value));
        else
            ctl_cell(ctl, columns[k], value, text);
        bool last = k + 1 == COLUMN_COUNT;
        if (ctl->terminal)
            (void)printf("%*s%s", COLUMN_WIDTH, text, last ? "\n" : " ");
        else
            (void)printf("%s%s", text, last ? "\n" : "\t");
    }
}

static void print_row(void *context, const struct sgp_sim_row *row)
{
    const struct simulation *simulation = context;
    json_t *json = row_json(simulation, row);
    if (simulation->ctl->json) {
        (void)ctl_print_json(json);
    } else {
        print_line(simulation->ctl, json);
        json_decref(json);
    }
}

static json_t *summary_json(struct simulation *simulation, const struct sgp_sim *sim)
{
    struct sgp_sim_summary s;
    char digest[17];
    sgp_sim_summary(sim, &s);
    (void)snprintf(digest, sizeof digest, "%016" PRIx64, s.digest);
    json_t *faults = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
        "connections", (json_int_t)s.connections, "resets", (json_int_t)s.resets, "absences",
        (json_int_t)s.absences, "jumps", (json_int_t)s.jumps, "cycles_renewed",
        (json_int_t)s.cycles_renewed, "shares_empty", (json_int_t)s.shares_empty, "shares_refused",
        (json_int_t)s.shares_refused, "shares_folded", (json_int_t)s.shares_folded,
        "shares_clipped", (json_int_t)s.shares_clipped, "diverged", (json_int_t)s.diverged,
        "half_opened", (json_int_t)s.half_opened, "crashes", (json_int_t)s.crashes, "restored",
        (json_int_t)s.restored, "adopted", (json_int_t)s.adopted, "compared",
        (json_int_t)s.compared, "misled", (json_int_t)s.misled);
    json_t *json = json_pack(
        "{s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:f, s:o, s:o}", "nodes",
        (json_int_t)simulation->topology->node_count, "finished", (json_int_t)s.finished, "seed",
        (json_int_t)simulation->options.seed, "time_seconds", seconds(s.time), "events",
        (json_int_t)s.events, "messages", (json_int_t)s.messages, "bytes", (json_int_t)s.bytes,
        "shares", (json_int_t)s.shares, "total_weight", s.weight, "weight_in_flight",
        s.weight_in_flight, "weight_unknown", s.weight_unknown, "weight_least",
        ctl_json_real(s.weight_least), "mass_error", s.mass_error, "disagreement",
        ctl_json_real(s.disagreement), "error", ctl_json_real(error_of(simulation, sim, s.time)));
    if (json && faults)
        (void)json_object_update(json, faults);
    json_decref(faults);
    if (json)
        (void)json_object_set_new(json, "digest", json_string(digest));
    return json;
}

/* ---- the run ---- */

/* The whole command line, to repeat a failure. It has a line of its own, because the length of an
 * error's line is limited. The program's version is in a shell comment. Standard input is not
 * repeated. */
static void tell_again(const struct simulation *simulation)
{
    bool gone = strcmp(simulation->words[simulation->file_word], "-") == 0;
    if (gone)
        (void)fputs("again: standard input cannot be read again; save the topology to FILE, then: "
                    "sgpctl simulate",
            stderr);
    else
        (void)fputs("again: sgpctl simulate", stderr);
    for (int i = 0; i < simulation->word_count; i++) {
        (void)fputc(' ', stderr);
        ctl_put_word(gone && i == simulation->file_word ? "FILE" : simulation->words[i], stderr);
    }
    (void)fprintf(stderr, " # sgpctl %s\n", sgp_version());
}

static void print_step(void *context, enum sgp_level level, const char *text)
{
    const struct simulation *simulation = context;
    if (level == SGP_LEVEL_TRACE)
        (void)fprintf(simulation->trace, "%s\n", text);
}

/* A dash is standard output, where the steps appear among the rounds. */
static enum ctl_exit open_trace(struct simulation *simulation, const char *path)
{
    if (!path)
        return CTL_DONE;
    simulation->trace = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (!simulation->trace)
        return ctl_fail(simulation->ctl, CTL_FAILED, "--trace %s: cannot be written: %s", path,
            strerror(errno));
    simulation->sink =
        (struct sgp_sink){.line = print_step, .context = simulation, .level = SGP_LEVEL_TRACE};
    simulation->options.sink = &simulation->sink;
    return CTL_DONE;
}

static enum ctl_exit close_trace(struct simulation *simulation, enum ctl_exit status)
{
    FILE *trace = simulation->trace;
    if (!trace || trace == stdout)
        return status;
    bool whole = !ferror(trace);
    whole = fclose(trace) == 0 && whole;
    if (whole || status != CTL_DONE)
        return status;
    return ctl_fail(simulation->ctl, CTL_FAILED, "the trace could not be written whole");
}

static enum ctl_exit run_simulation(struct simulation *simulation)
{
    struct ctl *ctl = simulation->ctl;
    struct sgp_error error = {0};
    struct sgp_sim *sim;
    enum ctl_exit status = CTL_DONE;
    int code = sgp_sim_create(simulation->topology, &simulation->options, &error, &sim);
    if (code == -EINVAL)
        return ctl_usage(ctl, "%s", error.text);
    if (code < 0)
        return ctl_fail(ctl, CTL_FAILED, "%s", error.text);
    if (!ctl->json)
        print_line(ctl, NULL);
    code = sgp_sim_run(sim, SGP_TIME_NEVER, &error);
    if (code < 0) {
        status = ctl_fail(ctl, CTL_FAILED, "%s", error.text);
        tell_again(simulation);
    } else if (ctl->json) {
        status = ctl_print_json(json_pack("{s:o}", "summary", summary_json(simulation, sim)));
    } else {
        json_t *summary = summary_json(simulation, sim);
        (void)putchar('\n');
        ctl_print_object(ctl, summary);
        json_decref(summary);
    }
    sgp_sim_destroy(sim);
    return status;
}

/* ---- the command line ---- */

/* The method's changes to the topology, as in the daemon. */
static enum ctl_exit suit_topology(struct simulation *simulation, const char *path)
{
    struct sgp_error why = {0}, error = {0};
    struct sgp_edge_place culprit;
    if (sgp_method_suit(simulation->options.method, simulation->topology, &why, &culprit) == 0)
        return CTL_DONE;
    (void)sgp_dot_fail(path, simulation->topology, &culprit, &why, &error);
    return ctl_fail(simulation->ctl, CTL_INVALID, "%s", error.text);
}

static enum ctl_exit make_vectors(struct simulation *simulation)
{
    simulation->vector = calloc(2 * simulation->options.dimension, sizeof *simulation->vector);
    simulation->mean = calloc(simulation->options.dimension, sizeof *simulation->mean);
    if (simulation->vector && simulation->mean)
        return CTL_DONE;
    return ctl_fail(simulation->ctl, CTL_FAILED, "out of memory");
}

/* Store the command line before its options are taken out. */
static enum ctl_exit remember(struct simulation *simulation, int argc, char **argv)
{
    simulation->words = calloc((size_t)argc + 1, sizeof *simulation->words);
    if (!simulation->words)
        return ctl_fail(simulation->ctl, CTL_FAILED, "out of memory");
    for (int i = 0; i < argc; i++)
        simulation->words[simulation->word_count++] = argv[i];
    return CTL_DONE;
}

static enum ctl_exit suit_outer(const struct simulation *simulation, const char *file)
{
    const struct sgp_phase *phase = sgp_topology_outer(simulation->topology);
    if (phase == NULL || simulation->outer.kind != SGP_OUTER_NONE)
        return CTL_DONE;
    return ctl_fail(simulation->ctl, CTL_FAILED,
        "%s: digraph %s says outer=true; say which step is meant, as in --outer slowmo:1:0.5", file,
        phase->name);
}

static enum ctl_exit simulate(struct ctl *ctl, int argc, char **argv)
{
    static struct simulation simulation;
    simulation.ctl = ctl;
    sgp_sim_options_init(&simulation.options);
    simulation.options.context = &simulation;
    simulation.options.trainer = make_trainer;
    simulation.options.row = print_row;
    const char *trace = NULL;
    enum ctl_exit status = remember(&simulation, argc, argv);
    if (status == CTL_DONE)
        status = ctl_faults_take(ctl, &argc, argv, &simulation.faults);
    if (status == CTL_DONE)
        status = ctl_simulate_options_take(ctl, &argc, argv, &simulation.options,
            &simulation.learning_rate, &simulation.outer, &trace);
    while (status == CTL_DONE && simulation.words[simulation.file_word] != argv[0])
        simulation.file_word++;
    if (status == CTL_DONE)
        status = ctl_read_topology(ctl, argv[0], &simulation.topology);
    if (status == CTL_DONE)
        status = suit_topology(&simulation, argv[0]);
    if (status == CTL_DONE)
        status = suit_outer(&simulation, argv[0]);
    if (status == CTL_DONE)
        status = ctl_faults_read(ctl, simulation.topology, &simulation.faults, &simulation.options);
    if (status == CTL_DONE)
        status = make_vectors(&simulation);
    if (status == CTL_DONE)
        status = open_trace(&simulation, trace);
    if (status == CTL_DONE)
        status = run_simulation(&simulation);
    status = close_trace(&simulation, status);
    free(simulation.words);
    free(simulation.vector);
    free(simulation.mean);
    ctl_faults_finish(&simulation.faults);
    sgp_topology_destroy(simulation.topology);
    return status;
}

const struct ctl_command ctl_simulate_command = {.words = "simulate",
    .operands = "FILE",
    .options = ctl_simulate_table,
    .summary = "run the nodes of a topology file in virtual time, faults included",
    .help =
        "FILE may be `-` for standard input. No daemon is needed. Every node is the daemon's own\n"
        "core; after every event the total weight is checked, and a violation ends with 1 and the\n"
        "line that shows it again. Equal options and versions give equal output. Prints a line "
        "per\n"
        "round, then a summary; with --json an object per round, then {\"summary\": {...}}.\n"
        "See docs/SIMULATOR.md.\n",
    .run = simulate};
