/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `sgpctl simulate` that name no node. Each is a word with a value, or a flag. */
#include "simulate_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BANDWIDTH_MAX 1e15
#define TAIL_MAX 100 /* times a step's time, unless given */
#define FINAL_CYCLES_MAX 1000000u

enum {
    ROUNDS,
    SEED,
    DIMENSION,
    LATENCY,
    BANDWIDTH,
    COMPUTE,
    JITTER,
    LOSS,
    TAIL,
    CHECKPOINT,
    LEARNING_RATE,
    OUTER,
    ALGORITHM,
    OVERLAP,
    BACKUP,
    PATIENCE,
    STEP_BY_RATE,
    GUARD,
    LOCAL_STEPS,
    FINAL_CYCLES,
    COMPRESSION,
    COPIES,
    THROUGH_WIRE,
    TRACE,
    OPTION_COUNT
};
_Static_assert(OPTION_COUNT == CTL_SIMULATE_OPTION_COUNT, "the faults stand behind all of them");

#define FAULT(kind) [OPTION_COUNT + (kind)]
const struct ctl_option ctl_simulate_table[] = {
    [ROUNDS] = {"--rounds", .value = "R", .summary = "rounds to run (100)"},
    [SEED] = {"--seed", .value = "S", .summary = "of the vectors, the jitter and the losses (1)"},
    [DIMENSION] = {"--dimension", .value = "D", .summary = "parameters of each node (8)"},
    [LATENCY] = {"--latency", .value = "T",
        .summary = "of a link, one way (1ms); times take us, ms, s, min"},
    [BANDWIDTH] = {"--bandwidth", .value = "B",
        .summary = "out of a machine, bytes a second (125M); 0 for no limit"},
    [COMPUTE] = {"--compute", .value = "T", .summary = "of one training step (10ms)"},
    [JITTER] = {"--jitter", .value = "F",
        .summary = "each training job takes 1 -+ F of its time (0)"},
    [LOSS] = {"--loss", .value = "P",
        .summary = "a message breaks its connection with this chance (0)"},
    [TAIL] = {"--tail", .value = "SHAPE[:MAX]",
        .summary = "each training job takes a Pareto draw times as long, at most MAX (100)"},
    [CHECKPOINT] = {"--checkpoint", .value = "T",
        .summary = "write the parameters down at this pace, for those who crash"},
    [LEARNING_RATE] = {"--learning-rate", .value = "E",
        .summary =
            "train quadratics with random minima; 0, the default, only averages random vectors"},
    [OUTER] = {"--outer", .value = "KIND:RATE:MOMENTUM",
        .summary = "the step where the file says outer=true: slowmo or nesterov",
        .words = "slowmo: nesterov:"},
    [ALGORITHM] = {"--algorithm", .value = "NAME",
        .summary = "as in sgpd.conf(5): " SGP_METHOD_NAMES(", ") " (sgp)",
        .words = SGP_METHOD_NAMES(" ")},
    [OVERLAP] = {"--overlap", .value = "N", .summary = "osgp: rounds that a share may be late (1)"},
    [BACKUP] = {"--backup-neighbours", .value = "N",
        .summary = "go on while so many shares are awaited (0)"},
    [PATIENCE] = {"--patience", .value = "T",
        .summary = "then one in the same round is not waited for (for ever)"},
    [STEP_BY_RATE] = {"--step-by-rate",
        .summary = "agp, adpsgd: divide the learning rate by a node's relative pace"},
    [GUARD] = {"--guard", .value = "C",
        .summary = "no share moves an estimate further than C times the usual distance (off)"},
    [LOCAL_STEPS] = {"--local-steps", .value = "N", .summary = "steps in a round (1)"},
    [FINAL_CYCLES] = {"--final-cycles", .value = "N",
        .summary = "cycles of averaging after the last round, at most (2 when training, else "
                   "0)"},
    [COMPRESSION] = {"--compression", .value = "NAME",
        .summary = "of the shares of training rounds: none, fp16, int8 ..., with owners also sign, "
                   "top:F ... (none)",
        .words =
            "none fp16 bf16 int8 int6 int4 int4:64 int2 sign qsgd: terngrad top: dgc: adacomp"},
    [COPIES] = {"--copies", .value = "NAME",
        .summary = "of the changes to copies of owners: none, fp16, int8 ..., top:F (none)",
        .words = "none fp16 bf16 int8 int6 int4 int4:64 top:"},
    [THROUGH_WIRE] = {"--through-wire", .summary = "encode and decode every message"},
    [TRACE] = {"--trace", .value = "FILE",
        .summary = "write what every step of every node did, and whom it then waits for; a dash is "
                   "standard output"},
    FAULT(CTL_STRAGGLER) = {"--straggler", .value = "NODE:FACTOR", .repeats = true,
        .summary = "its steps take FACTOR times as long"},
    FAULT(CTL_ABSENT) = {"--absent", .value = "NODE:FROM[:TO]", .repeats = true,
        .summary = "a node is stopped in this span; without :TO it is gone for good"},
    FAULT(CTL_CUT) = {"--cut", .value = "NODE,...:FROM[:TO[:out|:in]]", .repeats = true,
        .summary = "nothing passes between these nodes and the others"},
    FAULT(CTL_CLOG) = {"--clog", .value = "SOURCE,TARGET:FROM[:TO]", .repeats = true,
        .summary = "what one sends the other is held, in order"},
    FAULT(CTL_SWIZZLE) = {"--swizzle", .value = "NODE:FROM:TO", .repeats = true,
        .summary = "half of its edges are clogged one by one, then released"},
    FAULT(CTL_HALF_OPEN) = {"--half-open", .value = "LOSER,KEEPER:AT", .repeats = true,
        .summary = "one loses its connections with the other, unsaid"},
    FAULT(CTL_CRASH) = {"--crash", .value = "NODE:FROM:TO[:forgets|:SAVED]", .repeats = true,
        .summary =
            "killed, and started again from its ledger, without it, or from the one that was "
            "saved at that time"},
    FAULT(CTL_CLOCK) = {"--clock", .value = "NODE:AT:LEAP", .repeats = true,
        .summary = "its clock leaps ahead; a negative LEAP stands still for so long"},
    FAULT(CTL_LIAR) = {"--liar", .value = "NODE:LIE", .repeats = true,
        .summary = "its shares carry other values than it has: flip, scale, noise, weightless, "
                   "alie, ipm, drift or dissensus; or its estimates do: estimate"},
    [OPTION_COUNT + CTL_FAULT_KINDS] = {0}};
#undef FAULT

static enum ctl_exit read_time(struct ctl *ctl, const struct ctl_given *option, sgp_time *ret_time)
{
    if (!option->given || ctl_text_time(option->value, strlen(option->value), ret_time))
        return CTL_DONE;
    return ctl_usage(ctl, "%s is a time such as 500us, 1ms, 0.2s or 2min, not '%s'", option->name,
        option->value);
}

/* Bytes per second, with k, M or G. */
static enum ctl_exit read_bandwidth(
    struct ctl *ctl, const struct ctl_given *option, double *ret_bandwidth)
{
    static const char units[] = "kMG";
    char text[64];
    if (!option->given)
        return CTL_DONE;
    size_t length = strlen(option->value);
    const char *unit = length > 0 ? strchr(units, option->value[length - 1]) : NULL;
    double value = 0;
    (void)snprintf(text, sizeof text, "%.*s", (int)(unit ? length - 1 : length), option->value);
    bool good = length > 0 && length < sizeof text && ctl_text_real(text, &value) && value >= 0;
    if (good && unit)
        value *= pow(1000, (double)(unit - units + 1));
    if (!good || value > BANDWIDTH_MAX)
        return ctl_usage(ctl, "%s is bytes a second such as 125M, 0 for no limit, not '%s'",
            option->name, option->value);
    *ret_bandwidth = value;
    return CTL_DONE;
}

static enum ctl_exit read_chooser(struct ctl *ctl, const struct ctl_given *option,
    const char *words, struct sgp_chooser *ret_chooser)
{
    struct sgp_error error = {0};
    if (!option->given || sgp_chooser_parse(option->value, words, &error, ret_chooser) == 0)
        return CTL_DONE;
    return ctl_usage(ctl, "%s: %s", option->name, error.text);
}

/* SHAPE or SHAPE:GREATEST of a Pareto distribution. */
static enum ctl_exit read_tail(
    struct ctl *ctl, const struct ctl_given *option, struct sgp_sim_options *options)
{
    char shape[64];
    if (!option->given)
        return CTL_DONE;
    size_t length = strcspn(option->value, ":");
    const char *greatest = option->value[length] == ':' ? option->value + length + 1 : NULL;
    options->compute_tail_max = TAIL_MAX;
    (void)snprintf(
        shape, sizeof shape, "%.*s", (int)(length < sizeof shape ? length : 0), option->value);
    if (ctl_text_real(shape, &options->compute_tail) && options->compute_tail > 0 &&
        (!greatest || ctl_text_real(greatest, &options->compute_tail_max)) &&
        options->compute_tail_max >= 1)
        return CTL_DONE;
    return ctl_usage(
        ctl, "--tail is SHAPE or SHAPE:GREATEST such as 1.5:50, not '%s'", option->value);
}

static enum ctl_exit read_algorithm(
    struct ctl *ctl, const struct ctl_given *option, struct sgp_sim_options *options)
{
    if (!option->given)
        return CTL_DONE;
    const struct sgp_method *method = sgp_method_find(option->value);
    if (method == NULL)
        return ctl_usage(ctl, "--algorithm %s is none of " SGP_METHOD_NAMES(", "), option->value);
    options->method = method;
    return CTL_DONE;
}

/* KIND:RATE:MOMENTUM. */
static enum ctl_exit read_outer(
    struct ctl *ctl, const struct ctl_given *option, struct sgp_outer_settings *outer)
{
    char kind[16], rate[32], momentum[32];
    int length = 0;
    if (!option->given)
        return CTL_DONE;
    bool good =
        sscanf(option->value, "%15[a-z]:%31[^:]:%31[^:]%n", kind, rate, momentum, &length) == 3 &&
        option->value[length] == '\0' && sgp_outer_kind_parse(kind, NULL, &outer->kind) == 0 &&
        ctl_text_real(rate, &outer->learning_rate) && ctl_text_real(momentum, &outer->momentum) &&
        sgp_outer_check(outer, NULL) == 0;
    return good ? CTL_DONE
                : ctl_usage(ctl,
                      "--outer is slowmo:RATE:MOMENTUM or nesterov:RATE:MOMENTUM such as "
                      "slowmo:1:0.5, not '%s'",
                      option->value);
}

static enum ctl_exit read_options(struct ctl *ctl, const struct ctl_given *given,
    struct sgp_sim_options *options, double *learning_rate, struct sgp_outer_settings *outer)
{
    uint64_t rounds = (uint64_t)options->rounds, steps = 1, cycles;
    uint64_t overlap = 1, backup = 0;
    enum ctl_exit status = read_algorithm(ctl, &given[ALGORITHM], options);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[OVERLAP], 0, SGP_OVERLAP_MAX, &overlap);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[BACKUP], 0, SGP_NODES_MAX, &backup);
    if (status == CTL_DONE)
        status = read_time(ctl, &given[PATIENCE], &options->patience_ns);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[ROUNDS], 1, (uint64_t)1 << 40, &rounds);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[SEED], 0, INT64_MAX, &options->seed);
    if (status == CTL_DONE)
        status =
            ctl_option_u64(ctl, &given[DIMENSION], 1, SGP_SIM_DIMENSION_MAX, &options->dimension);
    if (status == CTL_DONE)
        status = read_time(ctl, &given[LATENCY], &options->latency_ns);
    if (status == CTL_DONE)
        status = read_bandwidth(ctl, &given[BANDWIDTH], &options->bandwidth);
    if (status == CTL_DONE)
        status = read_time(ctl, &given[COMPUTE], &options->compute_ns);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[JITTER], 0, 0.99, &options->compute_jitter);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[LOSS], 0, 0.99, &options->loss);
    if (status == CTL_DONE)
        status = read_tail(ctl, &given[TAIL], options);
    if (status == CTL_DONE)
        status = read_time(ctl, &given[CHECKPOINT], &options->checkpoint_ns);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[LEARNING_RATE], 0, 1e6, learning_rate);
    if (status == CTL_DONE)
        status = read_outer(ctl, &given[OUTER], outer);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[GUARD], 0, 1e6, &options->guard);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[LOCAL_STEPS], 1, UINT32_MAX, &steps);
    if (status == CTL_DONE)
        status = read_chooser(ctl, &given[COMPRESSION], SGP_CHOOSER_WORDS, &options->chooser);
    if (status == CTL_DONE)
        status = read_chooser(ctl, &given[COPIES], SGP_CHOOSER_COPY_WORDS, &options->copies);
    cycles = *learning_rate > 0 ? options->final_cycles : 0;
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[FINAL_CYCLES], 0, FINAL_CYCLES_MAX, &cycles);
    options->rounds = (sgp_round)rounds;
    options->overlap = (uint32_t)overlap;
    options->step_by_rate = given[STEP_BY_RATE].given;
    options->backup_neighbours = (uint32_t)backup;
    options->local_steps = (uint32_t)steps;
    options->final_cycles = (uint32_t)cycles;
    options->through_wire = given[THROUGH_WIRE].given;
    return status;
}

enum ctl_exit ctl_simulate_options_take(struct ctl *ctl, int *argc, char **argv,
    struct sgp_sim_options *options, double *learning_rate, struct sgp_outer_settings *outer,
    const char **ret_trace)
{
    struct ctl_given given[CTL_SIMULATE_OPTION_COUNT + CTL_FAULT_KINDS] = {0}; /* without faults */
    enum ctl_exit status =
        ctl_options_take(ctl, argc, argv, given, sizeof given / sizeof *given, 1, 1);
    if (given[TRACE].given)
        *ret_trace = given[TRACE].value;
    return status == CTL_DONE ? read_options(ctl, given, options, learning_rate, outer) : status;
}
