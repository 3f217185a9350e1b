/* The faults of a simulation, from the command line: NODE:FACTOR, NODE:FROM[:TO], NODES:FROM:TO. */
#include "simulate_faults.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STRAGGLER, ABSENT, CUT, KINDS };
static const char *const names[KINDS] = {"--straggler", "--absent", "--cut"};

enum ctl_exit ctl_faults_take(struct ctl *ctl, int *argc, char **argv, struct ctl_faults *faults)
{
    int kept = 0, i = 0;
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        size_t length = strcspn(argv[i], "=");
        int kind = 0;
        while (kind < KINDS &&
               (strlen(names[kind]) != length || strncmp(argv[i], names[kind], length) != 0))
            kind++;
        if (kind == KINDS) {
            argv[kept++] = argv[i];
            continue;
        }
        const char *value = argv[i][length] == '=' ? argv[i] + length + 1 : NULL;
        if (!value && i + 1 == *argc)
            return ctl_usage(ctl, "%s needs a value", names[kind]);
        if (!value)
            value = argv[++i];
        if (faults->text_counts[kind] == CTL_FAULTS_MAX)
            return ctl_usage(ctl, "%s more than %u times", names[kind], CTL_FAULTS_MAX);
        faults->texts[kind][faults->text_counts[kind]++] = value;
    }
    while (i < *argc)
        argv[kept++] = argv[i++];
    *argc = kept;
    return CTL_DONE;
}

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

/* The index of the node whose name is text[0..length). */
static enum ctl_exit find_node(struct ctl *ctl, const struct sgp_topology *topology,
    const char *text, size_t length, uint32_t *ret_node)
{
    char name[SGP_NAME_BYTES];
    int64_t node = -1;
    if (length < sizeof name) {
        memcpy(name, text, length);
        name[length] = '\0';
        node = sgp_topology_find(topology, name);
    }
    if (node < 0)
        return ctl_usage(
            ctl, "'%.*s' is not a node of the topology", (int)(length < 64 ? length : 64), text);
    *ret_node = (uint32_t)node;
    return CTL_DONE;
}

static enum ctl_exit read_straggler(struct ctl *ctl, const struct sgp_topology *topology,
    const char *text, struct sgp_sim_straggler *ret_straggler)
{
    size_t length = strcspn(text, ":");
    double factor;
    if (text[length] == '\0' || !ctl_text_real(text + length + 1, &factor) || factor <= 0)
        return ctl_usage(ctl, "--straggler is NODE:FACTOR with a factor above 0, not '%s'", text);
    ret_straggler->factor = factor;
    return find_node(ctl, topology, text, length, &ret_straggler->node);
}

/* FROM or FROM:TO behind a colon; without TO the end is SGP_TIME_NEVER. */
static bool read_span(const char *text, sgp_time *ret_from, sgp_time *ret_to)
{
    if (*text++ != ':')
        return false;
    size_t length = strcspn(text, ":");
    *ret_to = SGP_TIME_NEVER;
    if (!ctl_text_time(text, length, ret_from))
        return false;
    if (text[length] == ':' && !ctl_text_time(text + length + 1, strlen(text + length + 1), ret_to))
        return false;
    return *ret_to > *ret_from;
}

static enum ctl_exit read_absence(struct ctl *ctl, const struct sgp_topology *topology,
    const char *text, struct sgp_sim_absence *ret_absence)
{
    size_t length = strcspn(text, ":");
    if (!read_span(text + length, &ret_absence->from, &ret_absence->to))
        return ctl_usage(ctl,
            "--absent is NODE:FROM or NODE:FROM:TO with times such as 1.5s and FROM before TO, not "
            "'%s'",
            text);
    return find_node(ctl, topology, text, length, &ret_absence->node);
}

static enum ctl_exit read_cut(struct ctl *ctl, const struct sgp_topology *topology,
    const char *text, uint32_t **ret_nodes, struct sgp_sim_cut *ret_cut)
{
    size_t length = strcspn(text, ":");
    if (!read_span(text + length, &ret_cut->from, &ret_cut->to))
        return ctl_usage(ctl,
            "--cut is NODE,NODE,...:FROM or ...:FROM:TO with times such as 1.5s and FROM before "
            "TO, "
            "not '%s'",
            text);
    *ret_nodes = calloc(length + 1, sizeof **ret_nodes);
    if (!*ret_nodes)
        return ctl_fail(ctl, CTL_FAILED, "out of memory");
    ret_cut->nodes = *ret_nodes;
    for (size_t at = 0; at <= length; ret_cut->node_count++) {
        size_t end = at + strcspn(text + at, ",:");
        enum ctl_exit status =
            find_node(ctl, topology, text + at, end - at, *ret_nodes + ret_cut->node_count);
        if (status != CTL_DONE)
            return status;
        at = end + 1;
    }
    return CTL_DONE;
}

enum ctl_exit ctl_faults_read(struct ctl *ctl, const struct sgp_topology *topology,
    struct ctl_faults *faults, struct sgp_sim_options *options)
{
    enum ctl_exit status = CTL_DONE;
    for (; status == CTL_DONE && faults->straggler_count < faults->text_counts[STRAGGLER];
         faults->straggler_count++)
        status = read_straggler(ctl, topology, faults->texts[STRAGGLER][faults->straggler_count],
            &faults->stragglers[faults->straggler_count]);
    for (; status == CTL_DONE && faults->absence_count < faults->text_counts[ABSENT];
         faults->absence_count++)
        status = read_absence(ctl, topology, faults->texts[ABSENT][faults->absence_count],
            &faults->absences[faults->absence_count]);
    for (; status == CTL_DONE && faults->cut_count < faults->text_counts[CUT]; faults->cut_count++)
        status = read_cut(ctl, topology, faults->texts[CUT][faults->cut_count],
            &faults->cut_nodes[faults->cut_count], &faults->cuts[faults->cut_count]);
    options->stragglers = faults->stragglers;
    options->straggler_count = faults->straggler_count;
    options->absences = faults->absences;
    options->absence_count = faults->absence_count;
    options->cuts = faults->cuts;
    options->cut_count = faults->cut_count;
    return status;
}

void ctl_faults_finish(struct ctl_faults *faults)
{
    for (uint32_t i = 0; i < CTL_FAULTS_MAX; i++)
        free(faults->cut_nodes[i]);
}
