/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl topology generate`: a topology file of a family. */
#include "ctl.h"
#include "topology.h"

#include "sgp/dot.h"
#include "sgp/generate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
        .summary = "owner: no copy for a worker that is more than S updates ahead of the slowest"},
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
        return ctl_print_json(ctl_topology_json(topology));
    comment_on(what, comment, sizeof comment);
    return ctl_topology_print_file(ctl, topology, comment);
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
