/* SPDX-License-Identifier: Apache-2.0 */
/* Topology files, without a daemon: check, show, generate. */
#include "ctl.h"

#include "sgp/analysis.h"
#include "sgp/dot.h"
#include "sgp/generate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum ctl_exit ctl_read_topology(
    struct ctl *ctl, const char *path, struct sgp_topology **ret_topology)
{
    struct sgp_error error = {0};
    int code = strcmp(path, "-") == 0 ? sgp_dot_read(stdin, "-", &error, ret_topology)
                                      : sgp_dot_read_path(path, &error, ret_topology);
    if (code == 0)
        return CTL_DONE;
    return ctl_fail(
        ctl, CTL_INVALID, "%s", error.text[0] != '\0' ? error.text : sgp_strerror(code));
}

/* ---- check ---- */

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

/* ---- show ---- */

static json_t *edge_json(const struct sgp_topology *topology, const struct sgp_edge *edge)
{
    json_t *json = json_pack("{s:s, s:s, s:f}", "source", topology->nodes[edge->source].name,
        "target", topology->nodes[edge->target].name, "fraction", edge->fraction);
    if (edge->part_count > 0)
        (void)json_object_set_new(json, "slice",
            json_pack(
                "[I, I]", (json_int_t)edge->part, (json_int_t)(edge->part + edge->part_count - 1)));
    return json;
}

static json_t *keys_json(const struct sgp_topology *topology, uint32_t node)
{
    char text[SGP_KEYS_BYTES];
    sgp_topology_keys_text(topology, node, text);
    return topology->nodes[node].keys[0][0] != '\0' ? json_string(text) : json_null();
}

/* The parts that the node owns, if these are not all. */
static json_t *parts_json(const struct sgp_topology_node *node)
{
    if (node->own_part_count == 0)
        return json_null();
    return json_pack("[I, I]", (json_int_t)node->own_part,
        (json_int_t)(node->own_part + node->own_part_count - 1));
}

/* The node of the file with which this owner is colocated. */
static json_t *colocated_json(const struct sgp_topology *topology, uint32_t node)
{
    const struct sgp_topology_node *it = &topology->nodes[node];
    return it->colocated ? json_string(topology->nodes[it->trainer].name) : json_null();
}

/* The names are those of GET /v1/topology. */
static json_t *topology_json(const struct sgp_topology *topology)
{
    char digest[17];
    (void)snprintf(digest, sizeof digest, "%016" PRIx64, topology->digest);
    json_t *nodes = json_array(), *phases = json_array();
    for (uint32_t i = 0; i < topology->node_count; i++)
        (void)json_array_append_new(nodes,
            json_pack("{s:s, s:s, s:o, s:b, s:b, s:o, s:o, s:f}", "name", topology->nodes[i].name,
                "address", topology->nodes[i].address, "key", keys_json(topology, i), "train",
                (int)!topology->nodes[i].relay, "owns", (int)topology->nodes[i].owns, "parts",
                parts_json(&topology->nodes[i]), "beside", colocated_json(topology, i), "starts",
                sgp_topology_starts(topology, i)));
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        json_t *edges = json_array();
        for (uint32_t e = 0; e < phase->edge_count; e++)
            (void)json_array_append_new(edges, edge_json(topology, &phase->out[e]));
        (void)json_array_append_new(phases,
            json_pack("{s:s, s:I, s:b, s:b, s:b, s:I, s:s, s:f, s:I, s:s, s:b, s:I, s:I, s:o}",
                "name", phase->name, "rounds", (json_int_t)phase->rounds, "once", (int)phase->once,
                "train", (int)!phase->exchanges, "outer", (int)phase->outer, "backup",
                (json_int_t)phase->backup, "staleness", sgp_damping_name(phase->staleness.damping),
                "compensation", phase->staleness.compensation, "staleness_max",
                (json_int_t)phase->staleness.most, "token", sgp_token_name(phase->delay.token),
                "delay_mean", (int)phase->delay.mean, "delay_max",
                (json_int_t)(phase->delay.token ? sgp_topology_delay_most(topology) : 0),
                "edge_count", (json_int_t)phase->edge_count, "edges", edges));
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:s, s:o, s:o}", "digest", digest,
        "version", (json_int_t)topology->version, "slices", (json_int_t)topology->slices, "repeat",
        (json_int_t)topology->repeat, "prelude_rounds", (json_int_t)topology->prelude_rounds,
        "rounds_per_cycle", (json_int_t)topology->rounds_per_cycle, "exact",
        (int)topology->cycle.exact, "tls", sgp_tls_name(topology->tls), "nodes", nodes, "phases",
        phases);
}

static void print_token(const struct sgp_topology *topology, const struct sgp_phase *phase)
{
    bool fixed = phase->delay.token == SGP_TOKEN_FIXED;
    (void)printf("  owning is a token, which begins at %s and goes to the next that is %s\n",
        topology->nodes[topology->owner].name, fixed ? "there" : "ready");
    (void)printf("  a node waits after %u update%s without the token",
        sgp_topology_delay_most(topology), sgp_topology_delay_most(topology) == 1 ? "" : "s");
    (void)puts(phase->delay.mean ? ", and adds their mean" : "");
}

static void print_owner(const struct sgp_topology_node *node)
{
    uint32_t last = node->own_part + node->own_part_count - 1u;
    if (!node->owns)
        return;
    if (node->own_part_count == 0)
        (void)printf("  %s owns the vector\n", node->name);
    else if (node->own_part_count == 1)
        (void)printf("  %s owns part %u\n", node->name, last);
    else
        (void)printf("  %s owns parts %u-%u\n", node->name, node->own_part, last);
}

static void print_owned(const struct sgp_topology *topology, const struct sgp_phase *phase)
{
    if (phase->delay.token != SGP_TOKEN_NONE) {
        print_token(topology, phase);
        return;
    }
    for (uint32_t i = 0; i < topology->node_count; i++)
        print_owner(&topology->nodes[i]);
    (void)puts("  the others push their updates, and take copies");
    if (phase->backup > 0)
        (void)printf("  a step waits for all but %u of %u workers\n", phase->backup,
            sgp_topology_trainers(topology));
    if (phase->staleness.damping == SGP_DAMPING_DIVIDE)
        (void)puts("  a late update is divided by its staleness");
    if (phase->staleness.damping == SGP_DAMPING_COMPENSATE)
        (void)printf("  a late update is compensated by %g\n", phase->staleness.compensation);
    if (phase->staleness.most > 0)
        (void)printf(
            "  nobody is more than %u updates ahead of the slowest\n", phase->staleness.most);
}

/* Print 1/3 instead of 0.333333 if the fraction is exactly that. */
static void print_fraction(double fraction)
{
    for (int denominator = 1; denominator <= 64; denominator++) {
        double numerator = nearbyint(fraction * denominator);
        if (numerator >= 1 && fabs(fraction * denominator - numerator) < 1e-12) {
            (void)printf(denominator == 1 ? "%.0f" : "%.0f/%d", numerator, denominator);
            return;
        }
    }
    (void)printf("%.6g", fraction);
}

static void print_parts(const struct sgp_edge *edge)
{
    uint32_t last = edge->part + edge->part_count - 1u;
    if (edge->part_count == 1)
        (void)printf(" of part %u", last);
    else
        (void)printf(" of parts %u-%u", edge->part, last);
}

static void print_node(
    const struct sgp_topology *topology, const struct sgp_phase *phase, uint32_t node, int width)
{
    uint32_t count;
    const struct sgp_edge *edges = sgp_phase_out(phase, node, &count);
    double keeps = 1;
    bool parts = false;
    (void)printf("  %-*s ->", width, topology->nodes[node].name);
    for (uint32_t e = 0; e < count; e++) {
        (void)printf("%s %s ", e > 0 ? "," : "", topology->nodes[edges[e].target].name);
        print_fraction(edges[e].fraction);
        if (edges[e].part_count > 0)
            print_parts(&edges[e]);
        keeps -= edges[e].fraction;
        parts = parts || edges[e].part_count > 0;
    }
    (void)fputs(count > 0 ? "" : " nobody", stdout);
    if (!parts) {
        (void)fputs(", keeps ", stdout);
        print_fraction(keeps < 1e-12 ? 0 : keeps);
    }
    (void)putchar('\n');
}

static void print_topology(const struct sgp_topology *topology)
{
    int width = 0;
    (void)printf("%u node%s, %u phase%s, %" PRId64 " round%s a cycle%s\n", topology->node_count,
        topology->node_count == 1 ? "" : "s", topology->phase_count,
        topology->phase_count == 1 ? "" : "s", topology->rounds_per_cycle,
        topology->rounds_per_cycle == 1 ? "" : "s",
        topology->cycle.exact ? ", which averages exactly" : "");
    if (topology->version > 0)
        (void)printf("version %" PRIu64 "\n", topology->version);
    if (topology->repeat > 1)
        (void)printf(
            "first %u passes of %" PRId64 " rounds\n", topology->repeat, topology->prelude.rounds);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        const struct sgp_topology_node *node = &topology->nodes[i];
        if ((int)strlen(node->name) > width)
            width = (int)strlen(node->name);
        uint32_t owner = sgp_topology_colocated_owner(topology, i);
        if (owner != SGP_NODE_NONE)
            (void)printf("  %s trains, and owns as %s\n", node->name, topology->nodes[owner].name);
        else if (node->address[0] != '\0')
            (void)printf(
                sgp_topology_is_dialled(topology, i) ? "  %s at %s\n" : "  %s cannot be dialled\n",
                node->name, node->address);
        if (node->keys[0][0] != '\0') {
            char keys[SGP_KEYS_BYTES];
            sgp_topology_keys_text(topology, i, keys);
            (void)printf("  %s has the key %s\n", node->name, keys);
        }
        if (node->relay || node->starts != SGP_STARTS_USUAL)
            (void)printf("  %s %s, starts with weight %g\n", node->name,
                node->relay ? "is a relay" : "trains", sgp_topology_starts(topology, i));
    }
    if (topology->tls != SGP_TLS_OFF)
        (void)printf(
            "links are ciphered%s\n", topology->tls == SGP_TLS_OFFER ? " with whoever can" : "");
    if (topology->stops > 1)
        (void)printf("a word on the end counts when %u nodes have signed it\n", topology->stops);
    if (topology->slices > 1)
        (void)printf("the vector is cut into %u parts\n", topology->slices);
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        (void)printf("phase %u '%s', %u round%s%s%s%s\n", p, phase->name, phase->rounds,
            phase->rounds == 1 ? "" : "s",
            phase->once
                ? topology->repeat > 1 ? ", in the first passes" : ", in the first pass only"
                : "",
            phase->exchanges ? ", without training" : "",
            phase->outer ? ", and an outer step at its end" : "");
        if (topology->owner != SGP_NODE_NONE)
            print_owned(topology, phase);
        for (uint32_t i = 0; i < topology->node_count && topology->owner == SGP_NODE_NONE; i++)
            print_node(topology, phase, i, width);
    }
}

static enum ctl_exit print_file(
    struct ctl *ctl, const struct sgp_topology *topology, const char *comment)
{
    int code = sgp_dot_write(stdout, topology, comment);
    return code < 0 ? ctl_fail(ctl, CTL_FAILED, "standard output: %s", sgp_strerror(code))
                    : CTL_DONE;
}

static const struct ctl_option show_options[] = {
    {"--address", .value = "HOST:PORT+",
        .summary = "print the file itself, with node i at HOST:(PORT + i)"},
    {0},
};

static enum ctl_exit show(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given address = {0};
    struct sgp_topology *topology;
    struct sgp_error error = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, &address, 1, 1, 1);
    if (status == CTL_DONE)
        status = ctl_read_topology(ctl, argv[0], &topology);
    if (status != CTL_DONE)
        return status;
    if (address.given && sgp_topology_place(topology, address.value, &error) < 0)
        status = ctl_usage(ctl, "%s", error.text);
    else if (ctl->json)
        status = ctl_print_json(topology_json(topology));
    else if (address.given)
        status = print_file(ctl, topology, NULL);
    else
        print_topology(topology);
    sgp_topology_destroy(topology);
    return status;
}

const struct ctl_command ctl_topology_show_command = {.words = "topology show",
    .operands = "FILE",
    .options = show_options,
    .summary = "print who gives how much to whom, phase by phase",
    .help = "FILE may be `-` for standard input. No daemon is needed.\n",
    .run = show};

/* ---- generate ---- */

static const char *family_at(size_t index, const char **ret_summary)
{
    *ret_summary = sgp_generate_families[index].summary;
    return sgp_generate_families[index].name;
}

enum {
    PEERS,
    DEGREE,
    PHASES,
    SEED,
    GROUP,
    HUBS,
    PIECES,
    RELAYS,
    FRACTION,
    OWNERS,
    MEMBERS,
    BACKUP,
    STALENESS,
    COMPENSATION,
    STALENESS_MAX,
    FIXED,
    DELAY_MEAN,
    DELAY_MAX,
    PRELUDE,
    OUTER,
    ADDRESS,
    NAMES,
    KEYS,
    OPTION_COUNT
};

static const struct ctl_option generate_options[OPTION_COUNT + 1] = {
    [PEERS] = {"--peers", .value = "M",
        .summary = "exponential and base: whom a node gives to in a round (1)"},
    [DEGREE] = {"--degree", .value = "D", .summary = "random: out-neighbours of a node (2)"},
    [PHASES] = {"--phases", .value = "P",
        .summary = "pairs: digraphs of the cycle (N, or N - 1 if N is even, but at most 16)"},
    [SEED] = {"--seed", .value = "S", .summary = "random and pairs: of the draw"},
    [GROUP] = {"--group", .value = "M", .summary = "all-reduce-groups: nodes in a group"},
    [HUBS] = {"--hubs", .value = "K", .summary = "all-reduce-hubs: how many hubs there are (1)"},
    [PIECES] = {"--pieces", .value = "P",
        .summary =
            "all-reduce-*: the vector is cut into P, one under way while another is summed up"},
    [RELAYS] = {"--relays", .summary = "all-reduce-hubs: the hubs have no data, and do not train"},
    [FRACTION] = {"--fraction", .value = "A",
        .summary = "elastic: what passes to and from the relay, 0 to 1 (1/N)"},
    [OWNERS] = {"--owners", .value = "K",
        .summary = "owner: the first K nodes own a part of the vector each (1)"},
    [MEMBERS] = {"--members", .summary = "owner: those train, too"},
    [BACKUP] = {"--backup", .value = "B",
        .summary = "owner: a step goes on without the updates of B workers"},
    [STALENESS] = {"--staleness", .value = "HOW",
        .summary =
            "owner: updates are added as they come, as they are, divided by their staleness, or "
            "compensated for it",
        .words = "none divide compensate"},
    [COMPENSATION] = {"--compensation", .value = "C", .summary = "owner: by how much, above 0"},
    [STALENESS_MAX] = {"--staleness-max", .value = "S",
        .summary = "owner: nobody gets a copy who is more than S updates ahead of the slowest"},
    [FIXED] = {"--fixed", .summary = "token: in strict order, one update each time"},
    [DELAY_MEAN] = {"--delay-mean", .summary = "token: it adds the mean of updates, not the sum"},
    [DELAY_MAX] = {"--delay-max", .value = "D",
        .summary = "token: a node waits after D updates without the token (8)"},
    [PRELUDE] = {"--prelude", .value = "E",
        .summary = "E cycles of the second family, an all-reduce-*, come first"},
    [OUTER] = {"--outer",
        .summary = "nodes take the step of [outer] after each cycle, with pairs after each round"},
    [ADDRESS] = {"--address", .value = "HOST:PORT+", .summary = "node i is at HOST:(PORT + i)"},
    [NAMES] = {"--names", .value = "A,B,...",
        .summary = "the nodes' names, with commas; N may then be left out"},
    [KEYS] = {"--keys", .value = "FILE",
        .summary =
            "a file with the line that key generate prints for each node, and its address if it "
            "says one; links are ciphered (tls=require)"},
};

/* ---- names and keys of the nodes ---- */

struct names {
    char *text; /* owned; the names, each zero-terminated */
    const char **list;
    uint32_t count;
};

static void free_names(struct names *names)
{
    free(names->text);
    free((void *)(uintptr_t)names->list);
}

/* "alice,bob" */
static enum ctl_exit take_names(struct ctl *ctl, const char *text, struct names *names)
{
    names->text = strdup(text);
    names->list = calloc(strlen(text) + 1, sizeof *names->list);
    if (!names->text || !names->list)
        return ctl_fail(ctl, CTL_FAILED, "no memory for the names");
    char *rest = names->text;
    for (char *name; (name = strsep(&rest, ","));) {
        if (*name == '\0' || strlen(name) >= SGP_NAME_BYTES)
            return ctl_usage(ctl,
                "--names takes names with commas between, as in alice,bob, and none is empty or "
                "longer than %u letters",
                SGP_NAME_BYTES - 1);
        names->list[names->count++] = name;
    }
    return CTL_DONE;
}

/* The lines are nodes of a digraph, so they are parsed as a digraph. Returns NULL after it has
 * reported an error, which is CTL_INVALID. */
static struct sgp_topology *read_keys(struct ctl *ctl, const char *path)
{
    struct sgp_error error = {0};
    struct sgp_topology *keys = NULL;
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t length = 0, more = 0;
    FILE *joined = file ? open_memstream(&text, &length) : NULL;
    char piece[4096];
    if (!file || !joined) {
        if (file)
            (void)fclose(file);
        (void)ctl_fail(ctl, CTL_INVALID, "%s: %s", path, strerror(errno));
        return NULL;
    }
    (void)fputs("digraph keys { ", joined);
    while ((more = fread(piece, 1, sizeof piece, file)) > 0)
        (void)fwrite(piece, 1, more, joined);
    (void)fputs("}", joined);
    (void)fclose(file);
    int code = fclose(joined) == 0 ? sgp_dot_parse(text, length, path, &error, &keys) : -ENOMEM;
    free(text);
    if (code < 0)
        (void)ctl_fail(
            ctl, CTL_INVALID, "%s", error.text[0] != '\0' ? error.text : sgp_strerror(code));
    return keys;
}

/* Copy keys, and addresses if they are given, from the nodes of a file to those of a topology. The
 * keys cipher its links. */
static enum ctl_exit give_keys(struct ctl *ctl, const char *path, struct sgp_topology *topology)
{
    enum ctl_exit status = CTL_DONE;
    struct sgp_topology *keys = read_keys(ctl, path);
    if (keys == NULL)
        return CTL_INVALID;
    for (uint32_t i = 0; i < topology->node_count && status == CTL_DONE; i++) {
        struct sgp_topology_node *node = &topology->nodes[i];
        int64_t at = sgp_topology_find(keys, node->name);
        if (node->colocated) /* it has the key of the node with which it is colocated */
            continue;
        if (at < 0 || keys->nodes[at].keys[0][0] == '\0') {
            status = ctl_fail(ctl, CTL_INVALID,
                "%s: it has no key for %s; sgpctl key generate %s prints the line", path,
                node->name, node->name);
            continue;
        }
        memcpy(node->keys, keys->nodes[at].keys, sizeof node->keys);
        if (keys->nodes[at].address[0] != '\0')
            memcpy(node->address, keys->nodes[at].address, sizeof node->address);
    }
    topology->tls = SGP_TLS_REQUIRE;
    sgp_topology_destroy(keys);
    return status;
}

/* The properties of the topology, as the first lines of the file. */
static void comment_on(const struct sgp_generate_options *what, char *text, size_t capacity)
{
    const struct sgp_generate_family *family = sgp_generate_families;
    while (strcmp(family->name, what->family) != 0)
        family++;
    (void)snprintf(text, capacity, "%s, %u nodes: %s", what->family, what->nodes, family->summary);
}

static enum ctl_exit take_staleness(
    struct ctl *ctl, const struct ctl_given options[OPTION_COUNT], struct sgp_staleness *staleness)
{
    uint64_t most = 0;
    if (options[STALENESS].given &&
        !sgp_damping_find(options[STALENESS].value, &staleness->damping))
        return ctl_usage(
            ctl, "--staleness is none, divide or compensate, not '%s'", options[STALENESS].value);
    enum ctl_exit status = ctl_option_real(
        ctl, &options[COMPENSATION], 0, SGP_COMPENSATION_MAX, &staleness->compensation);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &options[STALENESS_MAX], 1, SGP_NODES_MAX, &most);
    staleness->most = (uint32_t)most;
    return status;
}

static enum ctl_exit take_delay(
    struct ctl *ctl, const struct ctl_given options[OPTION_COUNT], struct sgp_delay *delay)
{
    uint64_t most = 0;
    enum ctl_exit status = ctl_option_u64(ctl, &options[DELAY_MAX], 1, SGP_DELAY_MAX, &most);
    delay->token = options[FIXED].given ? SGP_TOKEN_FIXED : SGP_TOKEN_NONE;
    delay->mean = options[DELAY_MEAN].given;
    delay->most = (uint32_t)most;
    return status;
}

/* Options that set a number of sgp_generate_options. */
static const struct {
    size_t option;
    uint64_t least, most;
    size_t place;
} counts[] = {
#define COUNT(option, least, most, member)                                                         \
    {                                                                                              \
        option, least, most, offsetof(struct sgp_generate_options, member)                         \
    }
    COUNT(PEERS, 1, SGP_NODES_MAX, peers),
    COUNT(DEGREE, 1, SGP_NODES_MAX, degree),
    COUNT(PHASES, 1, SGP_PHASES_MAX, phases),
    COUNT(GROUP, 2, SGP_NODES_MAX, group),
    COUNT(HUBS, 1, SGP_SLICES_MAX, hubs),
    COUNT(PIECES, 1, SGP_SLICES_MAX, pieces),
    COUNT(PRELUDE, 1, SGP_REPEAT_MAX, prelude),
    COUNT(BACKUP, 0, SGP_NODES_MAX, backup),
    COUNT(OWNERS, 1, SGP_SLICES_MAX, owners),
#undef COUNT
};

static enum ctl_exit take_counts(struct ctl *ctl, const struct ctl_given options[OPTION_COUNT],
    struct sgp_generate_options *what)
{
    enum ctl_exit status = CTL_DONE;
    for (size_t i = 0; i < sizeof counts / sizeof *counts && status == CTL_DONE; i++) {
        uint64_t value = 0;
        status = ctl_option_u64(
            ctl, &options[counts[i].option], counts[i].least, counts[i].most, &value);
        *(uint32_t *)(void *)((char *)what + counts[i].place) = (uint32_t)value;
    }
    return status;
}

/* Read the values of the options. */
static enum ctl_exit take_options(struct ctl *ctl, const struct ctl_given options[OPTION_COUNT],
    int argc, char **argv, const struct names *names, struct sgp_generate_options *what)
{
    uint64_t nodes = 0;
    enum ctl_exit status = take_counts(ctl, options, what);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &options[SEED], 0, UINT64_MAX, &what->seed);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &options[FRACTION], 0, 1, &what->fraction);
    if (status == CTL_DONE)
        status = take_staleness(ctl, options, &what->staleness);
    if (status == CTL_DONE)
        status = take_delay(ctl, options, &what->delay);
    if (status != CTL_DONE)
        return status;
    /* Without N the second operand is the prelude's family. */
    bool counted = names->count == 0 || (argc > 1 && argv[1][0] >= '0' && argv[1][0] <= '9');
    int second = counted ? 2 : 1;
    if (counted && argc < 2)
        return ctl_usage(ctl, "N is missing, the number of nodes; or give their --names");
    if (counted && (!ctl_text_u64(argv[1], &nodes) || nodes < 1 || nodes > SGP_NODES_MAX))
        return ctl_usage(
            ctl, "N is a number of nodes from 1 to %u, not '%s'", SGP_NODES_MAX, argv[1]);
    if (counted && names->count > 0 && nodes != names->count)
        return ctl_usage(
            ctl, "N is %llu, and --names has %u", (unsigned long long)nodes, names->count);
    if (argc > second + 1 || (what->prelude > 0) != (argc == second + 1))
        return ctl_usage(ctl,
            what->prelude > 0 ? "--prelude wants a family behind its number, as in "
                                "--prelude 100 all-reduce-ring"
                              : "'%s' is too much; a second family goes with --prelude E",
            argc > second ? argv[second] : "");
    what->family = argv[0];
    what->nodes = counted ? (uint32_t)nodes : names->count;
    what->names = names->count > 0 ? names->list : NULL;
    what->relays = options[RELAYS].given;
    what->members = options[MEMBERS].given;
    what->prelude_family = argc == second + 1 ? argv[second] : NULL;
    what->address = options[ADDRESS].value;
    what->outer = options[OUTER].given;
    return CTL_DONE;
}

static enum ctl_exit print_generated(
    struct ctl *ctl, const struct sgp_generate_options *what, const struct sgp_topology *topology)
{
    char comment[SGP_TEXT_BYTES];
    if (ctl->json)
        return ctl_print_json(topology_json(topology));
    comment_on(what, comment, sizeof comment);
    return print_file(ctl, topology, comment);
}

static enum ctl_exit generate(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given options[OPTION_COUNT] = {0};
    struct sgp_generate_options what = {.seed = 0};
    struct names names = {0};
    struct sgp_error error = {0};
    struct sgp_topology *topology = NULL;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, options, OPTION_COUNT, 1, 3);
    if (status == CTL_DONE && options[NAMES].given)
        status = take_names(ctl, options[NAMES].value, &names);
    if (status == CTL_DONE)
        status = take_options(ctl, options, argc, argv, &names, &what);
    int code = status == CTL_DONE ? sgp_generate(&what, &error, &topology) : 0;
    if (code < 0)
        status = ctl_usage(ctl, "%s", error.text[0] != '\0' ? error.text : sgp_strerror(code));
    if (status == CTL_DONE && options[KEYS].given)
        status = give_keys(ctl, options[KEYS].value, topology);
    if (status == CTL_DONE)
        status = print_generated(ctl, &what, topology);
    sgp_topology_destroy(topology);
    free_names(&names);
    return status;
}

const struct ctl_command ctl_topology_generate_command = {.words = "topology generate",
    .operands = "FAMILY [N] [FAMILY]",
    .options = generate_options,
    .choice = family_at,
    .summary = "write a topology file of a family for N nodes",
    .help = "The file goes to standard output; the nodes are n0, n1, ..., or what --names says. No "
            "daemon is needed.\n",
    .run = generate};
