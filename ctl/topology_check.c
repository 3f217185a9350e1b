/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl topology check`: what averaging on a topology file will do. */
#include "ctl.h"

#include "sgp/analysis.h"

static json_t *round_or_null(sgp_round round)
{
    return round == SGP_ROUND_NONE ? json_null() : json_integer(round);
}

static json_t *analysis_json(const struct sgp_analysis *a, uint64_t version)
{
    json_t *warnings = json_array();
    for (uint32_t i = 0; i < a->warning_count; i++)
        (void)json_array_append_new(warnings, json_string(a->warnings[i]));
    return json_pack("{s:I, s:I, s:I, s:b, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:o, s:b, s:b, s:I, "
                     "s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o}",
        "version", (json_int_t)version, "nodes", (json_int_t)a->nodes, "relays",
        (json_int_t)a->relays, "owner", (int)a->owner, "backup", (json_int_t)a->backup, "phases",
        (json_int_t)a->phases, "slices", (json_int_t)a->slices, "rounds_per_cycle",
        (json_int_t)a->rounds_per_cycle, "turns_per_cycle", (json_int_t)a->turns_per_cycle,
        "exact_cycle", (int)a->exact, "strongly_connected", (int)a->strongly_connected,
        "window_rounds", round_or_null(a->window_rounds), "symmetric", (int)a->symmetric,
        "doubly_stochastic", (int)a->doubly_stochastic, "out_degree_max",
        (json_int_t)a->out_degree_max, "in_degree_max", (json_int_t)a->in_degree_max, "guard_liars",
        (json_int_t)a->guard_liars, "contraction_per_cycle",
        ctl_json_real(a->contraction_per_cycle), "exact_average_rounds",
        round_or_null(a->exact_average_rounds), "weight_min", ctl_json_real(a->weight_min),
        "weight_max", ctl_json_real(a->weight_max), "shares_per_cycle",
        (json_int_t)a->shares_per_cycle, "vectors_sent_mean", ctl_json_real(a->vectors_sent_mean),
        "vectors_sent_most", ctl_json_real(a->vectors_sent_most), "warnings", warnings);
}

static enum ctl_exit check(struct ctl *ctl, int argc, char **argv)
{
    struct sgp_topology *topology;
    static struct sgp_analysis analysis;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, NULL, 0, 1, 1);
    if (status == CTL_DONE)
        status = ctl_read_topology(ctl, argv[0], &topology);
    if (status != CTL_DONE)
        return status;
    int code = sgp_analyse(topology, &analysis);
    uint64_t version = topology->version;
    sgp_topology_destroy(topology);
    if (code < 0)
        return ctl_fail(ctl, CTL_FAILED, "%s: %s", argv[0], sgp_strerror(code));
    json_t *json = analysis_json(&analysis, version);
    if (ctl->json) {
        status = ctl_print_json(json);
    } else {
        (void)json_object_del(json, "warnings");
        if (version == 0)
            (void)json_object_del(json, "version");
        ctl_print_object(ctl, json);
        json_decref(json);
        for (uint32_t i = 0; i < analysis.warning_count; i++)
            (void)printf("warning: %s\n", analysis.warnings[i]);
    }
    return status == CTL_DONE && analysis.diverges ? CTL_FAILED : status;
}

const struct ctl_command ctl_topology_check_command = {.words = "topology check",
    .operands = "FILE",
    .summary = "check a topology file and say what averaging on it will do",
    .help =
        "FILE may be `-` for standard input. No daemon is needed.\n"
        "\n"
        "version               the file's own number; not printed if it gives none\n"
        "turns_per_cycle       rounds of a cycle that train; the others only exchange\n"
        "exact_cycle           a cycle is one collective act (fraction=1 or slices), proven to end "
        "with\n"
        "                      the mean of all; a node that is missing makes the others stand. "
        "Gossip\n"
        "                      may average exactly without that: see exact_average_rounds\n"
        "vectors_sent_mean     what a node sends in a cycle, in vectors as long as the model\n"
        "window_rounds         rounds whose edges together connect everybody with everybody\n"
        "guard_liars           members that may lie if every node has [train] guard: fewer than "
        "half "
        "of the\n"
        "                      nodes that give to any node in a cycle; 0 if a guard has no use "
        "here\n"
        "contraction_per_cycle factor by which disagreement shrinks per cycle in the long run;\n"
        "                      0 when a cycle averages exactly, null when it cannot vanish\n"
        "exact_average_rounds  rounds after which everybody holds the exact average, or null\n"
        "weight_min            least weight of a node before giving; small weights slow it down\n"
        "\n"
        "Ends with 6 if the file is not valid, and with 1 if it is but the nodes can never agree\n"
        "(a warning says why).\n",
    .run = check};
