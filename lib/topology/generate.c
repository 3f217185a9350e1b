/* SPDX-License-Identifier: Apache-2.0 */
/* The families of topologies that are rules rather than files. Any thread; pure but for memory. */
#include "topology/edges.h"
#include "sgp/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SGP_DEGREE_DEFAULT 2u

static int finish_single(struct sgp_edges *edges, struct sgp_topology *topology, const char *name,
    struct sgp_error *error)
{
    int code = sgp_edges_flush(edges, topology, name, error);
    sgp_edges_finish(edges);
    return code;
}

/* Every node gives to the one `hop` further on. */
static void push_hop(struct sgp_edges *edges, uint32_t n, uint64_t hop)
{
    for (uint32_t i = 0; i < n; i++)
        sgp_edges_push(edges, i, (uint32_t)((i + hop) % n), SGP_FRACTION_DEFAULT);
}

static int add_ring(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    struct sgp_edges edges = {0};
    push_hop(&edges, options->nodes, 1);
    return finish_single(&edges, topology, "ring", error);
}

static int add_bidirectional_ring(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    struct sgp_edges edges = {0};
    uint32_t n = options->nodes;
    push_hop(&edges, n, 1);
    if (n > 2) /* of two nodes each is both neighbours of the other */
        push_hop(&edges, n, n - 1);
    return finish_single(&edges, topology, "ring", error);
}

static int add_complete(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    struct sgp_edges edges = {0};
    for (uint32_t hop = 1; hop < options->nodes && !edges.code; hop++)
        push_hop(&edges, options->nodes, hop);
    return finish_single(&edges, topology, "complete", error);
}

static int add_star(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    struct sgp_edges edges = {0};
    for (uint32_t i = 1; i < options->nodes; i++) {
        sgp_edges_push(&edges, 0, i, SGP_FRACTION_DEFAULT);
        sgp_edges_push(&edges, i, 0, SGP_FRACTION_DEFAULT);
    }
    return finish_single(&edges, topology, "star", error);
}

static int add_torus(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    uint32_t n = options->nodes, rows = 1;
    for (uint32_t d = 2; d * d <= n; d++)
        if (n % d == 0)
            rows = d;
    uint32_t columns = n / rows;
    if (rows == 1 && n > 3)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "%u nodes make no grid of two rows or more; take a number that is not prime, "
            "or the family bidirectional-ring",
            n);
    struct sgp_edges edges = {0};
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++) {
            uint32_t i = r * columns + c, right = r * columns + (c + 1) % columns;
            uint32_t below = (r + 1) % rows * columns + c;
            /* Two in a row or column are neighbours once, not on both sides. */
            if (columns > 2 || c == 0) {
                sgp_edges_push(&edges, i, right, SGP_FRACTION_DEFAULT);
                sgp_edges_push(&edges, right, i, SGP_FRACTION_DEFAULT);
            }
            if (rows > 2 || (rows == 2 && r == 0)) {
                sgp_edges_push(&edges, i, below, SGP_FRACTION_DEFAULT);
                sgp_edges_push(&edges, below, i, SGP_FRACTION_DEFAULT);
            }
        }
    return finish_single(&edges, topology, "torus", error);
}

/* Hops j * (m+1)^i, j = 1..m, for all i with (m+1)^i < n (Assran et al. 2019, section 4 and
 * appendix A; m = 1 is the one-peer graph). */
static int add_hops(
    struct sgp_topology *topology, uint32_t n, uint32_t peers, struct sgp_error *error)
{
    struct sgp_edges edges = {0};
    int code = 0;
    for (uint64_t power = 1; power < n && !code; power *= (uint64_t)peers + 1) {
        for (uint32_t j = 1; j <= peers && !code; j++) {
            uint64_t hop = j * power;
            /* Hops j and j' meet only if j - j' comes back to 0: then that one is refused first. */
            if (hop % n == 0)
                code = sgp_fail(error, SGP_E_TOPOLOGY,
                    "%u peers of %u nodes do not work: the hop %u * %llu is 0 mod %u, the node "
                    "itself; "
                    "take another --peers or number of nodes, or the family base, which fits any",
                    peers, n, j, (unsigned long long)power, n);
            else
                push_hop(&edges, n, hop);
        }
        char name[SGP_NAME_BYTES];
        (void)snprintf(name, sizeof name, "hop%llu", (unsigned long long)power);
        if (!code)
            code = sgp_edges_flush(&edges, topology, name, error);
    }
    sgp_edges_finish(&edges);
    return code;
}

static int add_one_peer_exponential(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    return add_hops(topology, options->nodes, 1, error);
}

static int add_exponential(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    return add_hops(topology, options->nodes, options->peers ? options->peers : 1, error);
}

/* In phase k every even node and the odd one 2^k - 1 further on exchange halves (the undirected
 * time-varying graph on which Assran et al. 2019, appendix A, run D-PSGD). */
static int add_bipartite_exponential(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    uint32_t n = options->nodes;
    if (n % 2 != 0)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "%u nodes cannot be paired, even with odd; take an even number, "
            "or the family base, which pairs any number",
            n);
    struct sgp_edges edges = {0};
    int code = 0;
    for (uint32_t hop = 1; hop < n && !code; hop = 2 * hop + 1) {
        for (uint32_t i = 0; i < n; i += 2) {
            sgp_edges_push(&edges, i, (i + hop) % n, 0.5);
            sgp_edges_push(&edges, (i + hop) % n, i, 0.5);
        }
        char name[SGP_NAME_BYTES];
        (void)snprintf(name, sizeof name, "hop%u", hop);
        code = sgp_edges_flush(&edges, topology, name, error);
    }
    sgp_edges_finish(&edges);
    return code;
}

/* Targets of one node of `random`: its successor on the cycle, then others drawn without return. */
static void push_random_targets(struct sgp_edges *edges, struct sgp_random *random, uint32_t n,
    uint32_t source, uint32_t successor, uint32_t degree, uint32_t *chosen)
{
    uint32_t count = 0;
    chosen[count++] = successor;
    while (count < degree) {
        uint32_t target = (uint32_t)sgp_random_below(random, n);
        bool taken = target == source;
        for (uint32_t c = 0; c < count && !taken; c++)
            taken = chosen[c] == target;
        if (!taken)
            chosen[count++] = target;
    }
    for (uint32_t c = 0; c < count; c++)
        sgp_edges_push(edges, source, chosen[c], SGP_FRACTION_DEFAULT);
}

static int add_random(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    uint32_t n = options->nodes, degree = options->degree;
    if (degree >= n)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "a node cannot give to %u of %u others; take a --degree of at most %u", degree, n - 1,
            n - 1);
    if ((uint64_t)n * degree > SGP_EDGES_MAX)
        return sgp_fail(error, SGP_E_LIMIT,
            "%u nodes of out-degree %u have too many edges; the limit is %u", n, degree,
            SGP_EDGES_MAX);
    if (degree == 0)
        degree = n - 1 < SGP_DEGREE_DEFAULT ? n - 1 : SGP_DEGREE_DEFAULT;
    uint32_t *order = calloc((size_t)n + degree, sizeof *order);
    if (!order)
        return sgp_fail(error, -ENOMEM, "no memory for %u nodes", n);
    struct sgp_random random;
    sgp_random_init(&random, options->seed, n);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    sgp_random_shuffle(&random, order, n);
    struct sgp_edges edges = {0};
    for (uint32_t i = 0; i < n; i++)
        push_random_targets(&edges, &random, n, order[i], order[(i + 1) % n], degree, order + n);
    free(order);
    return finish_single(&edges, topology, "random", error);
}

const struct sgp_generate_family sgp_generate_families[] = {
    {"ring", "each gives to the next; least traffic, slowest agreement", 0, add_ring},
    {"bidirectional-ring", "each gives to both neighbours; symmetric", 0, add_bidirectional_ring},
    {"complete", "each gives to all; exact in one round, for few nodes and fast links", 0,
        add_complete},
    {"star", "all through n0; for sites that can reach only one machine", 0, add_star},
    {"torus", "a grid whose edges wrap, four neighbours; symmetric", 0, add_torus},
    {"one-peer-exponential", "one target a round at hops 1, 2, 4, ...; the usual choice", 0,
        add_one_peer_exponential},
    {"exponential", "--peers targets a round at hops j * (peers+1)^i", SGP_GENERATE_PEERS,
        add_exponential},
    {"bipartite-exponential", "pairs at hops 1, 3, 7, ...; symmetric; an even number of nodes", 0,
        add_bipartite_exponential},
    {"base", "Base-(peers+1): exact averages for any number of nodes; symmetric",
        SGP_GENERATE_PEERS, sgp_generate_base},
    {"random", "a random cycle and more edges up to --degree, by --seed",
        SGP_GENERATE_DEGREE | SGP_GENERATE_SEED, add_random},
    {"pairs", "random pairs exchange halves, others in each of --phases, by --seed; symmetric",
        SGP_GENERATE_PHASES | SGP_GENERATE_SEED, sgp_generate_pairs},
    {"elastic", "a relay n0 holds the centre; --fraction to and from it", SGP_GENERATE_FRACTION,
        sgp_generate_elastic},
    {"all-reduce-ring", "the mean in 2(N-1) rounds of 1/N vectors; the least bytes",
        SGP_GENERATE_EXACT, sgp_generate_reduce_ring},
    {"all-reduce-direct", "the mean in 2 rounds: every node sums one part up", SGP_GENERATE_EXACT,
        sgp_generate_reduce_direct},
    {"all-reduce-doubling", "the mean in log2 N rounds of whole vectors; for small models",
        SGP_GENERATE_EXACT, sgp_generate_reduce_doubling},
    {"all-reduce-halving", "the mean in 2 log2 N rounds: halves forth, and back",
        SGP_GENERATE_EXACT, sgp_generate_reduce_halving},
    {"all-reduce-blocks", "the same in blocks of powers of two, for any number of nodes",
        SGP_GENERATE_EXACT, sgp_generate_reduce_blocks},
    {"all-reduce-tree", "the mean up and down a binomial tree of whole vectors", SGP_GENERATE_EXACT,
        sgp_generate_reduce_tree},
    {"all-reduce-groups", "the mean in groups of --group, among their firsts, and back",
        SGP_GENERATE_EXACT | SGP_GENERATE_GROUP, sgp_generate_reduce_groups},
    {"all-reduce-hubs", "the mean through the first nodes, --hubs of them; each sums one part up",
        SGP_GENERATE_EXACT | SGP_GENERATE_HUBS, sgp_generate_reduce_hubs},
    {"owner",
        "n0 owns the vector, or --owners each a part; the others work, or --members all; --backup "
        "or --staleness",
        SGP_GENERATE_OWNER, sgp_generate_owner},
    {"token", "owning is a token that goes from node to node; --fixed, --delay-mean, --delay-max",
        SGP_GENERATE_TOKEN, sgp_generate_token},
    {NULL, NULL, 0, NULL},
};

static int find_family(
    const char *name, struct sgp_error *error, const struct sgp_generate_family **ret_family)
{
    char list[SGP_TEXT_BYTES - 100] = "";
    size_t length = 0;
    for (const struct sgp_generate_family *f = sgp_generate_families; f->name; f++) {
        if (strcmp(f->name, name) == 0) {
            *ret_family = f;
            return 0;
        }
        length += (size_t)snprintf(
            list + length, sizeof list - length, "%s%s", length ? ", " : "", f->name);
    }
    return sgp_fail(
        error, SGP_E_TOPOLOGY, "there is no family \"%.40s\"; families are %s", name, list);
}

/* What the families listen to; that of a prelude to a few. */
static unsigned known_options(
    const struct sgp_generate_options *options, const struct sgp_generate_family *family)
{
    const struct sgp_generate_family *first = NULL;
    struct sgp_error error = {0};
    if (options->prelude == 0 || find_family(options->prelude_family, &error, &first) < 0)
        return family->options;
    return family->options |
           (first->options & (SGP_GENERATE_GROUP | SGP_GENERATE_HUBS | SGP_GENERATE_EXACT));
}

static int check_options(const struct sgp_generate_options *options,
    const struct sgp_generate_family *family, struct sgp_error *error)
{
    unsigned known = known_options(options, family);
    if (options->nodes < 1 || options->nodes > SGP_NODES_MAX)
        return sgp_fail(error, options->nodes ? SGP_E_LIMIT : SGP_E_TOPOLOGY,
            "%u nodes cannot be generated; take 1 to %u", options->nodes, SGP_NODES_MAX);
    if (options->peers && !(family->options & SGP_GENERATE_PEERS))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "the family %s knows no --peers; leave it out, or take exponential or base",
            family->name);
    if (options->degree && !(family->options & SGP_GENERATE_DEGREE))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "the family %s knows no --degree; leave it out, or take random", family->name);
    if (options->phases && !(family->options & SGP_GENERATE_PHASES))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "the family %s knows no --phases; leave it out, or take pairs", family->name);
    if (options->group && !(known & SGP_GENERATE_GROUP))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "the family %s knows no --group; leave it out, or take all-reduce-groups",
            family->name);
    if ((options->hubs || options->relays) && !(known & SGP_GENERATE_HUBS))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "the family %s knows no --%s; leave it out, or take all-reduce-hubs", family->name,
            options->hubs ? "hubs" : "relays");
    if (options->pieces > 0 && !(known & SGP_GENERATE_EXACT))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "the family %s knows no --pieces; leave it out, or take one of all-reduce-*",
            family->name);
    if (options->fraction > 0 && !(family->options & SGP_GENERATE_FRACTION))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "the family %s knows no --fraction; leave it out, or take elastic", family->name);
    bool owned = options->backup || options->owners || options->members ||
                 sgp_staleness_is_said(&options->staleness);
    if (owned && !(family->options & SGP_GENERATE_OWNER))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "the family %s knows no --%s; leave it out, or take owner", family->name,
            options->backup    ? "backup"
            : options->owners  ? "owners"
            : options->members ? "members"
                               : "staleness");
    const struct sgp_delay *delay = &options->delay;
    bool handed = delay->token != SGP_TOKEN_NONE || delay->mean || delay->most > 0;
    if (handed && !(family->options & SGP_GENERATE_TOKEN))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "the family %s knows no --%s; leave it out, or take token", family->name,
            delay->mean       ? "delay-mean"
            : delay->most > 0 ? "delay-max"
                              : "fixed");
    if (options->peers >= SGP_NODES_MAX)
        return sgp_fail(
            error, SGP_E_LIMIT, "%u peers are too many; take fewer than the nodes", options->peers);
    return 0;
}

static int make_nodes(const struct sgp_generate_options *options, struct sgp_error *error,
    struct sgp_topology **ret_topology)
{
    struct sgp_topology_node *nodes = calloc(options->nodes, sizeof *nodes);
    if (!nodes)
        return sgp_fail(error, -ENOMEM, "no memory for %u nodes", options->nodes);
    for (uint32_t i = 0; i < options->nodes; i++)
        if (options->names)
            (void)snprintf(nodes[i].name, sizeof nodes[i].name, "%s", options->names[i]);
        else
            (void)snprintf(nodes[i].name, sizeof nodes[i].name, "n%u", i);
    int code = sgp_topology_create(nodes, options->nodes, error, ret_topology);
    free(nodes);
    return code;
}

/* The phases of another family first, as a prelude of `prelude` passes. */
static int add_prelude(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    const struct sgp_generate_family *family = NULL;
    struct sgp_generate_options first = *options;
    first.family = options->prelude_family;
    first.peers = first.degree = first.phases = 0;
    first.fraction = 0;
    first.backup = first.owners = 0;
    first.members = false;
    first.staleness = (struct sgp_staleness){.most = 0};
    first.delay = (struct sgp_delay){.most = 0};
    if (options->prelude > SGP_REPEAT_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "a prelude of %u passes is too long; take at most %u",
            options->prelude, SGP_REPEAT_MAX);
    int code = find_family(options->prelude_family, error, &family);
    if (!code && !(family->options & SGP_GENERATE_EXACT))
        code = sgp_fail(error, SGP_E_TOPOLOGY,
            "%s does not average exactly, and is no prelude; take one of the families all-reduce-*",
            family->name);
    if (!code)
        code = family->add_phases(topology, &first, error);
    for (uint32_t p = 0; p < topology->phase_count && !code; p++)
        topology->phases[p].once = true;
    topology->repeat = options->prelude;
    return code;
}

static int add_all(struct sgp_topology *topology, const struct sgp_generate_options *options,
    const struct sgp_generate_family *family, struct sgp_error *error)
{
    if (options->nodes == 1 && !options->members)
        return sgp_topology_add_phase(topology, "alone", 1, false, NULL, 0, error);
    int code = options->prelude > 0 ? add_prelude(topology, options, error) : 0;
    if (!code)
        code = family->add_phases(topology, options, error);
    if (!code && options->outer)
        topology->phases[topology->phase_count - 1].outer = true;
    return code;
}

int sgp_generate(const struct sgp_generate_options *options, struct sgp_error *error,
    struct sgp_topology **ret_topology)
{
    const struct sgp_generate_family *family = NULL;
    struct sgp_topology *topology = NULL;
    int code = find_family(options->family, error, &family);
    if (!code)
        code = check_options(options, family, error);
    if (!code)
        code = make_nodes(options, error, &topology);
    if (!code && options->address)
        code = sgp_topology_place(topology, options->address, error);
    if (!code)
        code = add_all(topology, options, family, error);
    if (!code)
        code = sgp_topology_seal(topology, error);
    if (code)
        sgp_topology_destroy(topology);
    else
        *ret_topology = topology;
    return code;
}
