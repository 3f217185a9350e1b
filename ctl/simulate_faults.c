/* SPDX-License-Identifier: Apache-2.0 */
/* The faults of a simulation, from the command line: NODE:FACTOR, NODE:FROM:TO, NODE,NODE:FROM:TO.
 *
 * Each value is split at its colons, and its first part at its commas. Each kind has one reader for
 * these parts. */
#include "simulate_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 4u

/* ---- small texts ---- */

bool ctl_text_time(const char *text, size_t length, sgp_time *ret_time)
{
    static const struct {
        const char *unit;
        double nanoseconds;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"min", 60e9}};
    char number[64];
    if (length == 0 || length >= sizeof number)
        return false;
    memcpy(number, text, length);
    number[length] = '\0';
    size_t digits = strspn(number, "0123456789.");
    char *unit = number + digits;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        double value;
        if (strcmp(unit, units[i].unit) != 0)
            continue;
        *unit = '\0';
        if (!ctl_text_real(number, &value) || value * units[i].nanoseconds > CTL_TIME_MAX_S * 1e9)
            return false;
        *ret_time = (sgp_time)llround(value * units[i].nanoseconds);
        return true;
    }
    return false;
}

/* A value during parsing. */
struct reader {
    struct ctl *ctl;
    const struct sgp_topology *topology;
    struct ctl_faults *faults;
    uint32_t index; /* index of the fault within its kind */
    const char *parts[PARTS_MAX];
    size_t lengths[PARTS_MAX];
    uint32_t part_count; /* PARTS_MAX + 1: too many */
};

static void split(struct reader *reader, const char *text)
{
    reader->part_count = 0;
    for (;; text++) {
        size_t length = strcspn(text, ":");
        if (reader->part_count++ == PARTS_MAX)
            return;
        reader->parts[reader->part_count - 1] = text;
        reader->lengths[reader->part_count - 1] = length;
        text += length;
        if (*text == '\0')
            return;
    }
}

static bool is_word(const struct reader *reader, uint32_t part, const char *word)
{
    return part < reader->part_count && reader->lengths[part] == strlen(word) &&
           strncmp(reader->parts[part], word, reader->lengths[part]) == 0;
}

static bool read_time(const struct reader *reader, uint32_t part, sgp_time *ret_time)
{
    return part < reader->part_count &&
           ctl_text_time(reader->parts[part], reader->lengths[part], ret_time);
}

/* FROM and TO, parts 1 and 2; without TO the end is SGP_TIME_NEVER. */
static bool read_span(const struct reader *reader, sgp_time *ret_from, sgp_time *ret_to)
{
    *ret_to = SGP_TIME_NEVER;
    return read_time(reader, 1, ret_from) &&
           (reader->part_count == 2 || read_time(reader, 2, ret_to)) && *ret_to > *ret_from;
}

/* The node whose name is text[0..length). */
static enum ctl_exit find_node(
    const struct reader *reader, const char *text, size_t length, uint32_t *ret_node)
{
    char name[SGP_NAME_BYTES];
    int64_t node = -1;
    if (length < sizeof name) {
        memcpy(name, text, length);
        name[length] = '\0';
        node = sgp_topology_find(reader->topology, name);
    }
    if (node < 0)
        return ctl_usage(reader->ctl, "'%.*s' is not a node of the topology",
            (int)(length < 64 ? length : 64), text);
    *ret_node = (uint32_t)node;
    return CTL_DONE;
}

static enum ctl_exit read_node(const struct reader *reader, uint32_t *ret_node)
{
    return find_node(reader, reader->parts[0], reader->lengths[0], ret_node);
}

/* NODE,NODE in the first part. */
static enum ctl_exit read_pair(const struct reader *reader, uint32_t *ret_a, uint32_t *ret_b)
{
    const char *text = reader->parts[0];
    size_t first = strcspn(text, ",:");
    size_t skip = first < reader->lengths[0] ? first + 1 : first;
    enum ctl_exit status = find_node(reader, text, first, ret_a);
    if (status == CTL_DONE)
        status = find_node(reader, text + skip, reader->lengths[0] - skip, ret_b);
    if (status == CTL_DONE && *ret_a == *ret_b)
        return ctl_usage(reader->ctl, "'%.*s' names one node twice", (int)reader->lengths[0], text);
    return status;
}

/* ---- one reader for each kind ---- */

#define MISREAD -1 /* does not have the form in the table */

static int read_straggler(const struct reader *reader)
{
    struct sgp_sim_straggler *straggler = &reader->faults->stragglers[reader->index];
    if (reader->part_count != 2 || !ctl_text_real(reader->parts[1], &straggler->factor) ||
        straggler->factor <= 0)
        return MISREAD;
    return (int)read_node(reader, &straggler->node);
}

static int read_absence(const struct reader *reader)
{
    struct sgp_sim_absence *absence = &reader->faults->absences[reader->index];
    if (reader->part_count > 3 || !read_span(reader, &absence->from, &absence->to))
        return MISREAD;
    return (int)read_node(reader, &absence->node);
}

static int read_cut(const struct reader *reader)
{
    struct ctl_faults *faults = reader->faults;
    struct sgp_sim_cut *cut = &faults->cuts[reader->index];
    bool out = is_word(reader, 3, "out"), in = is_word(reader, 3, "in");
    if (reader->part_count > 4 || (reader->part_count == 4 && !out && !in) ||
        !read_span(reader, &cut->from, &cut->to))
        return MISREAD;
    cut->way = out ? SGP_SIM_OUTWARD : in ? SGP_SIM_INWARD : SGP_SIM_BOTH_WAYS;
    const char *text = reader->parts[0];
    size_t length = reader->lengths[0];
    uint32_t *nodes = calloc(length + 1, sizeof *nodes);
    if (!nodes)
        return (int)ctl_fail(reader->ctl, CTL_FAILED, "out of memory");
    cut->nodes = faults->cut_nodes[reader->index] = nodes;
    for (size_t at = 0; at <= length; cut->node_count++) {
        size_t end = at + strcspn(text + at, ",:");
        enum ctl_exit status = find_node(reader, text + at, end - at, nodes + cut->node_count);
        if (status != CTL_DONE)
            return (int)status;
        at = end + 1;
    }
    return (int)CTL_DONE;
}

static int read_clog(const struct reader *reader)
{
    struct sgp_sim_clog *clog = &reader->faults->clogs[reader->index];
    if (reader->part_count > 3 || !read_span(reader, &clog->from, &clog->to))
        return MISREAD;
    return (int)read_pair(reader, &clog->source, &clog->target);
}

static int read_swizzle(const struct reader *reader)
{
    struct sgp_sim_swizzle *swizzle = &reader->faults->swizzles[reader->index];
    if (reader->part_count != 3 || !read_span(reader, &swizzle->from, &swizzle->to))
        return MISREAD;
    return (int)read_node(reader, &swizzle->node);
}

static int read_half_open(const struct reader *reader)
{
    struct sgp_sim_half_open *half = &reader->faults->half_opens[reader->index];
    if (reader->part_count != 2 || !read_time(reader, 1, &half->at))
        return MISREAD;
    return (int)read_pair(reader, &half->loser, &half->keeper);
}

static int read_crash(const struct reader *reader)
{
    struct sgp_sim_crash *crash = &reader->faults->crashes[reader->index];
    crash->forgets = is_word(reader, 3, "forgets");
    if (reader->part_count < 3 || reader->part_count > 4 ||
        !read_span(reader, &crash->at, &crash->back))
        return MISREAD;
    bool saved = reader->part_count == 4 && !crash->forgets;
    if (saved &&
        (!read_time(reader, 3, &crash->saved) || crash->saved == 0 || crash->saved >= crash->at))
        return MISREAD;
    return (int)read_node(reader, &crash->node);
}

static int read_clock(const struct reader *reader)
{
    struct sgp_sim_clock *clock = &reader->faults->clocks[reader->index];
    if (reader->part_count != 3 || !read_time(reader, 1, &clock->at))
        return MISREAD;
    bool back = reader->lengths[2] > 0 && reader->parts[2][0] == '-';
    if (!ctl_text_time(reader->parts[2] + back, reader->lengths[2] - back, &clock->leap) ||
        clock->leap == 0)
        return MISREAD;
    clock->leap = back ? -clock->leap : clock->leap;
    return (int)read_node(reader, &clock->node);
}

static const char *const lies[SGP_SIM_LIE_MOST + 1] = {[SGP_SIM_LIE_FLIP] = "flip",
    [SGP_SIM_LIE_SCALE] = "scale",
    [SGP_SIM_LIE_NOISE] = "noise",
    [SGP_SIM_LIE_ESTIMATE] = "estimate",
    [SGP_SIM_LIE_WEIGHTLESS] = "weightless",
    [SGP_SIM_LIE_ALIE] = "alie",
    [SGP_SIM_LIE_IPM] = "ipm",
    [SGP_SIM_LIE_DRIFT] = "drift",
    [SGP_SIM_LIE_DISSENSUS] = "dissensus"};

static int read_liar(const struct reader *reader)
{
    struct sgp_sim_liar *liar = &reader->faults->liars[reader->index];
    int lie = SGP_SIM_LIE_FLIP;
    while (lie <= SGP_SIM_LIE_MOST && !is_word(reader, 1, lies[lie]))
        lie++;
    if (reader->part_count != 2 || lie > SGP_SIM_LIE_MOST)
        return MISREAD;
    liar->lie = (enum sgp_sim_lie)lie;
    return (int)read_node(reader, &liar->node);
}

static const struct {
    int (*read)(const struct reader *reader); /* an exit status, or MISREAD */
    const char *form;
} kinds[CTL_FAULT_KINDS] = {
    [CTL_STRAGGLER] = {read_straggler, "NODE:FACTOR with a factor above 0"},
    [CTL_ABSENT] = {read_absence,
        "NODE:FROM or NODE:FROM:TO with times such as 1.5s and FROM before TO"},
    [CTL_CUT] = {read_cut,
        "NODE,NODE,...:FROM, ...:FROM:TO or ...:FROM:TO:out (or :in) with times such as 1.5s and "
        "FROM before TO"},
    [CTL_CLOG] = {read_clog,
        "SOURCE,TARGET:FROM or SOURCE,TARGET:FROM:TO with times such as 1.5s and FROM before TO"},
    [CTL_SWIZZLE] = {read_swizzle, "NODE:FROM:TO with times such as 1.5s and FROM before TO"},
    [CTL_HALF_OPEN] = {read_half_open, "LOSER,KEEPER:AT with a time such as 1.5s"},
    [CTL_CRASH] = {read_crash,
        "NODE:FROM:TO or NODE:FROM:TO:forgets or NODE:FROM:TO:SAVED with times such as 1.5s, SAVED "
        "before FROM before TO"},
    [CTL_CLOCK] = {read_clock,
        "NODE:AT:LEAP with times such as 1.5s; a LEAP of -1.5s stands still for so long"},
    [CTL_LIAR] = {read_liar,
        "NODE:LIE, and LIE flip, scale, noise, estimate, weightless, alie, ipm, drift or "
        "dissensus"},
};

/* ---- all of them ---- */

static const char *name_of(const struct ctl *ctl, int kind)
{
    return ctl->command->options[CTL_SIMULATE_OPTION_COUNT + kind].name;
}

enum ctl_exit ctl_faults_take(struct ctl *ctl, int *argc, char **argv, struct ctl_faults *faults)
{
    int kept = 0, i = 0;
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        size_t length = strcspn(argv[i], "=");
        int kind = 0;
        while (kind < CTL_FAULT_KINDS && (strlen(name_of(ctl, kind)) != length ||
                                             strncmp(argv[i], name_of(ctl, kind), length) != 0))
            kind++;
        if (kind == CTL_FAULT_KINDS) {
            argv[kept++] = argv[i];
            continue;
        }
        const char *value = argv[i][length] == '=' ? argv[i] + length + 1 : NULL;
        if (!value && i + 1 == *argc)
            return ctl_usage(ctl, "%s needs a value", name_of(ctl, kind));
        if (!value)
            value = argv[++i];
        if (faults->counts[kind] == CTL_FAULTS_MAX)
            return ctl_usage(ctl, "%s more than %u times", name_of(ctl, kind), CTL_FAULTS_MAX);
        faults->texts[kind][faults->counts[kind]++] = value;
    }
    while (i < *argc)
        argv[kept++] = argv[i++];
    *argc = kept;
    return CTL_DONE;
}

static enum ctl_exit read_fault(struct reader *reader, int kind)
{
    const char *text = reader->faults->texts[kind][reader->index];
    split(reader, text);
    int status = kinds[kind].read(reader);
    if (status != MISREAD)
        return (enum ctl_exit)status;
    return ctl_usage(
        reader->ctl, "%s is %s, not '%s'", name_of(reader->ctl, kind), kinds[kind].form, text);
}

enum ctl_exit ctl_faults_read(struct ctl *ctl, const struct sgp_topology *topology,
    struct ctl_faults *faults, struct sgp_sim_options *options)
{
    struct reader reader = {.ctl = ctl, .topology = topology, .faults = faults};
    enum ctl_exit status = CTL_DONE;
    for (int kind = 0; kind < CTL_FAULT_KINDS; kind++)
        for (reader.index = 0; status == CTL_DONE && reader.index < faults->counts[kind];
             reader.index++)
            status = read_fault(&reader, kind);
#define HAND_OVER(name, kind)                                                                      \
    options->name##s = faults->name##s;                                                            \
    options->name##_count = faults->counts[kind]
    HAND_OVER(straggler, CTL_STRAGGLER);
    HAND_OVER(absence, CTL_ABSENT);
    HAND_OVER(cut, CTL_CUT);
    HAND_OVER(clog, CTL_CLOG);
    HAND_OVER(swizzle, CTL_SWIZZLE);
    HAND_OVER(half_open, CTL_HALF_OPEN);
    HAND_OVER(clock, CTL_CLOCK);
    HAND_OVER(liar, CTL_LIAR);
#undef HAND_OVER
    options->crashes = faults->crashes;
    options->crash_count = faults->counts[CTL_CRASH];
    return status;
}

void ctl_faults_finish(struct ctl_faults *faults)
{
    for (uint32_t i = 0; i < CTL_FAULTS_MAX; i++)
        free(faults->cut_nodes[i]);
}
