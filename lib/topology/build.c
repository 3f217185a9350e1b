/* SPDX-License-Identifier: Apache-2.0 */
/* Building a topology. Everything that is refused is refused here, whichever caller asks.
 *
 * Any thread; a topology under construction belongs to one thread. */
#include "topology/build.h"
#include "topology/agreement.h"
#include "topology/colocated.h"
#include "topology/exact.h"
#include "topology/key.h"
#include "topology/owner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool sgp_topology_name_is_good(const char *name)
{
    size_t length = strnlen(name, SGP_NAME_BYTES);
    if (length == 0 || length == SGP_NAME_BYTES)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            !strchr("_-.", c))
            return false;
    }
    return true;
}

static int check_name(const char *kind, const char *name, struct sgp_error *error)
{
    if (sgp_topology_name_is_good(name))
        return 0;
    return sgp_fail(error, SGP_E_TOPOLOGY,
        "%s name \"%.*s\" cannot be used; a name has 1 to %u letters, digits, '_', '-' or '.'",
        kind, (int)SGP_NAME_BYTES, name, SGP_NAME_BYTES - 1);
}

/* The index decides between equal items: the later one is at fault. */
static int by_index(uint32_t a, uint32_t b, int order)
{
    return order != 0 ? order : a < b ? -1 : a > b;
}

static int by_name(const void *a, const void *b, void *context)
{
    const struct sgp_topology_node *nodes = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    return by_index(i, j, strcmp(nodes[i].name, nodes[j].name));
}

static int by_address(const void *a, const void *b, void *context)
{
    const struct sgp_topology_node *nodes = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    return by_index(i, j, strcmp(nodes[i].address, nodes[j].address));
}

/* Find two nodes with the same name or address. Leaves by_name sorted. */
static int check_duplicates(struct sgp_topology *topology, struct sgp_error *error, uint32_t *where)
{
    struct sgp_topology_node *nodes = topology->nodes;
    uint32_t *order = topology->by_name, count = topology->node_count;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, by_address, nodes);
    for (uint32_t i = 1; i < count; i++) {
        const struct sgp_topology_node *a = &nodes[order[i - 1]], *b = &nodes[order[i]];
        *where = order[i];
        if (sgp_topology_is_dialled(topology, order[i]) && strcmp(a->address, b->address) == 0)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "nodes %s and %s have the same address %.200s; every node needs one of its own",
                a->name, b->name, a->address);
    }
    qsort_r(order, count, sizeof *order, by_name, nodes);
    for (uint32_t i = 1; i < count; i++) {
        *where = order[i];
        if (strcmp(nodes[order[i - 1]].name, nodes[order[i]].name) == 0)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "two nodes are named %s; every node needs a name of its own", nodes[order[i]].name);
    }
    return 0;
}

static int check_fleet(const struct sgp_topology_node *nodes, uint32_t node_count,
    struct sgp_error *error, uint32_t *where)
{
    if (node_count == 0)
        return sgp_fail(error, SGP_E_TOPOLOGY, "there is no node; a topology has at least one");
    if (node_count > SGP_NODES_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%u nodes are too many; the limit is %u", node_count,
            SGP_NODES_MAX);
    for (uint32_t i = 0; i < node_count; i++) {
        *where = i;
        sgp_assert(strnlen(nodes[i].address, SGP_ADDRESS_BYTES) < SGP_ADDRESS_BYTES);
        int code = check_name("node", nodes[i].name, error);
        if (code)
            return code;
    }
    return 0;
}

int sgp_topology_create_where(const struct sgp_topology_node *nodes, uint32_t node_count,
    struct sgp_error *error, uint32_t *ret_where, struct sgp_topology **ret_topology)
{
    uint32_t where = SGP_NODE_NONE;
    struct sgp_topology *topology = NULL;
    int code = check_fleet(nodes, node_count, error, &where);
    if (!code) {
        topology = calloc(1, sizeof *topology);
        if (topology) {
            topology->node_count = node_count;
            topology->owner = SGP_NODE_NONE;
            topology->nodes = calloc(node_count, sizeof *topology->nodes);
            topology->by_name = calloc(node_count, sizeof *topology->by_name);
            topology->by_key =
                calloc((size_t)node_count * SGP_NODE_KEYS_MAX, sizeof *topology->by_key);
        }
        if (!topology || !topology->nodes || !topology->by_name || !topology->by_key)
            code = sgp_fail(error, -ENOMEM, "no memory for a topology of %u nodes", node_count);
    }
    if (!code) {
        memcpy(topology->nodes, nodes, node_count * sizeof *nodes);
        code = check_duplicates(topology, error, &where);
    }
    if (!code)
        code = sgp_keys_order(topology, error, &where);
    if (code) {
        sgp_topology_destroy(topology);
        if (ret_where)
            *ret_where = where;
        return code;
    }
    *ret_topology = topology;
    return 0;
}

int sgp_topology_create(const struct sgp_topology_node *nodes, uint32_t node_count,
    struct sgp_error *error, struct sgp_topology **ret_topology)
{
    return sgp_topology_create_where(nodes, node_count, error, NULL, ret_topology);
}

static void phase_finish(struct sgp_phase *phase)
{
    free(phase->out);
    free(phase->out_first);
    free(phase->in);
    free(phase->in_first);
}

void sgp_topology_destroy(struct sgp_topology *topology)
{
    if (!topology)
        return;
    for (uint32_t p = 0; p < topology->phase_count; p++)
        phase_finish(&topology->phases[p]);
    free(topology->phases);
    free(topology->phase_first);
    free(topology->phase_turns);
    free(topology->prelude.ends);
    free(topology->cycle.ends);
    free(topology->agrees);
    free(topology->nodes);
    free(topology->by_name);
    free(topology->by_key);
    free(topology);
}

/* One pass of a radix sort, stable, by source or by target. `first` gets node_count + 1 offsets. */
static void sort_edges(struct sgp_edge *sorted, uint32_t *first, const struct sgp_edge *edges,
    uint32_t edge_count, uint32_t node_count, bool by_target)
{
    memset(first, 0, ((size_t)node_count + 1) * sizeof *first);
    for (uint32_t e = 0; e < edge_count; e++)
        first[(by_target ? edges[e].target : edges[e].source) + 1]++;
    for (uint32_t i = 0; i < node_count; i++)
        first[i + 1] += first[i];
    for (uint32_t e = 0; e < edge_count; e++)
        sorted[first[by_target ? edges[e].target : edges[e].source]++] = edges[e];
    /* each offset has moved to its successor's place: move them back */
    memmove(first + 1, first, (size_t)node_count * sizeof *first);
    first[0] = 0;
}

static bool cannot_be_dialled(const struct sgp_topology *topology, uint32_t node)
{
    return strcmp(topology->nodes[node].address, SGP_ADDRESS_NONE) == 0;
}

static int check_edge(const struct sgp_topology *topology, uint32_t slices,
    const struct sgp_edge *edge, const struct sgp_edge *before, struct sgp_error *error)
{
    const char *source = topology->nodes[edge->source].name;
    const char *target = topology->nodes[edge->target].name;
    if (edge->source == edge->target)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "edge %s -> %s is a self-loop; what is not given away stays, so leave it out", source,
            target);
    if (cannot_be_dialled(topology, edge->source) && cannot_be_dialled(topology, edge->target))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "edge %s -> %s: neither can be dialled; give one an address", source, target);
    if (before && edge->target == before->target)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "edge %s -> %s is repeated; write it once, with the sum as its fraction", source,
            target);
    if (!(edge->fraction <= 1.0))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "edge %s -> %s gives the fraction %g; a fraction is above 0 and at most 1", source,
            target, edge->fraction);
    if (edge->part_count > 0 && (uint32_t)edge->part + edge->part_count > slices)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            slices > 0 ? "edge %s -> %s gives part %u; with slices=%u parts are 0 to %u"
                       : "edge %s -> %s gives part %u, but the digraph does not say how many parts "
                         "there are; write slices=N in it",
            source, target, edge->part + edge->part_count - 1u, slices, slices - 1);
    return 0;
}

/* The greatest sum of fractions that a source gives of one part. */
static double column_sum(const struct sgp_edge *edges, uint32_t count)
{
    double sums[SGP_SLICES_MAX] = {0}, most = 0;
    for (uint32_t e = 0; e < count; e++) {
        uint32_t part = edges[e].part;
        uint32_t end = edges[e].part_count > 0 ? part + edges[e].part_count : SGP_SLICES_MAX;
        for (; part < end; part++)
            sums[part] += edges[e].fraction;
    }
    for (uint32_t q = 0; q < SGP_SLICES_MAX; q++)
        most = sums[q] > most ? sums[q] : most;
    return most;
}

/* Set the default fraction, and refuse a bad column. The edges are sorted, and have one source. */
static int check_column(const struct sgp_topology *topology, uint32_t slices,
    struct sgp_edge *edges, uint32_t count, struct sgp_error *error, struct sgp_edge *where)
{
    for (uint32_t e = 0; e < count; e++) {
        edges[e].usual = edges[e].fraction <= 0.0;
        if (edges[e].usual)
            edges[e].fraction = 1.0 / (1.0 + (double)count);
        *where = edges[e];
        int code = check_edge(topology, slices, &edges[e], e > 0 ? &edges[e - 1] : NULL, error);
        if (code)
            return code;
    }
    double sum = count > 0 ? column_sum(edges, count) : 0;
    if (sum > 1.0 + SGP_FRACTION_SLACK) {
        where->target = SGP_NODE_NONE;
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "node %s gives away %.6g in all (column above 1); its fractions must add up to at most "
            "1",
            topology->nodes[edges[0].source].name, sum);
    }
    return 0;
}

static int build_phase(const struct sgp_topology *topology, uint32_t slices,
    const struct sgp_edge *edges, struct sgp_phase *phase, struct sgp_error *error,
    struct sgp_edge *where)
{
    uint32_t n = topology->node_count, count = phase->edge_count;
    phase->out = calloc((size_t)count + 1, sizeof *phase->out);
    phase->in = calloc((size_t)count + 1, sizeof *phase->in);
    phase->out_first = calloc((size_t)n + 1, sizeof *phase->out_first);
    phase->in_first = calloc((size_t)n + 1, sizeof *phase->in_first);
    if (!phase->out || !phase->in || !phase->out_first || !phase->in_first)
        return sgp_fail(error, -ENOMEM, "no memory for %u edges", count);
    /* Sort by target, then stably by source: `out` is ordered by (source, target). `in` is made
     * from it in the reverse order. */
    sort_edges(phase->in, phase->in_first, edges, count, n, true);
    sort_edges(phase->out, phase->out_first, phase->in, count, n, false);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = phase->out_first[i];
        int code = check_column(
            topology, slices, phase->out + first, phase->out_first[i + 1] - first, error, where);
        if (code)
            return code;
    }
    sort_edges(phase->in, phase->in_first, phase->out, count, n, true);
    return 0;
}

static int check_phase(const struct sgp_topology *topology, const struct sgp_phase *phase,
    const struct sgp_edge *edges, struct sgp_error *error)
{
    uint64_t edge_count = phase->edge_count;
    for (uint32_t p = 0; p < topology->phase_count; p++)
        edge_count += topology->phases[p].edge_count;
    if (topology->phase_count == SGP_PHASES_MAX)
        return sgp_fail(
            error, SGP_E_LIMIT, "there are too many phases; the limit is %u", SGP_PHASES_MAX);
    if (edge_count > SGP_EDGES_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%llu edges are too many; the limit is %u",
            (unsigned long long)edge_count, SGP_EDGES_MAX);
    if (phase->rounds < 1 || phase->rounds > SGP_PHASE_ROUNDS_MAX)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "rounds=%u is out of range; a phase holds for 1 to %u", phase->rounds,
            SGP_PHASE_ROUNDS_MAX);
    if (phase->once && topology->phase_count > 0 &&
        !topology->phases[topology->phase_count - 1].once)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "phase %s is marked once but stands after phase %s, which is not; "
            "put the phases with once=true first",
            phase->name, topology->phases[topology->phase_count - 1].name);
    for (uint32_t e = 0; e < phase->edge_count; e++)
        sgp_assert(
            edges[e].source < topology->node_count && edges[e].target < topology->node_count);
    return 0;
}

/* Options that must be the same wherever they are given. */
static int check_options(const struct sgp_topology *topology,
    const struct sgp_phase_options *options, struct sgp_error *error)
{
    if (options->slices > SGP_SLICES_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "slices=%u are too many; the limit is %u",
            options->slices, SGP_SLICES_MAX);
    if (options->slices > 0 && topology->slices > 0 && options->slices != topology->slices)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "slices=%u here and %u in a digraph before; the vector is cut in one way",
            options->slices, topology->slices);
    if (options->repeat > 0 && !options->once)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "repeat=%u is for digraphs with once=true; all others are repeated for ever",
            options->repeat);
    if (options->repeat > SGP_REPEAT_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "repeat=%u is too much; the limit is %u",
            options->repeat, SGP_REPEAT_MAX);
    if (options->repeat > 0 && topology->repeat > 0 && options->repeat != topology->repeat)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "repeat=%u here and %u in a digraph before; all digraphs with once=true are repeated "
            "together",
            options->repeat, topology->repeat);
    if (options->tls != SGP_TLS_UNSAID && topology->tls != SGP_TLS_UNSAID &&
        options->tls != topology->tls)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "tls=%s here and tls=%s in a digraph before; all links are ciphered in one way",
            sgp_tls_name(options->tls), sgp_tls_name(topology->tls));
    if (options->stops > 0 && topology->stops > 0 && options->stops != topology->stops)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "stops=%u here and stops=%u in a digraph before; a fleet has one end", options->stops,
            topology->stops);
    if (options->version > SGP_TOPOLOGY_VERSION_MAX)
        return sgp_fail(error, SGP_E_LIMIT,
            "version=%" PRIu64 " is too great; the limit is %" PRIu64, options->version,
            SGP_TOPOLOGY_VERSION_MAX);
    if (options->version > 0 && topology->version > 0 && options->version != topology->version)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "version=%" PRIu64 " here and version=%" PRIu64
            " in a digraph before; a file has one version",
            options->version, topology->version);
    return 0;
}

int sgp_topology_add_where(struct sgp_topology *topology, const struct sgp_phase_options *options,
    const struct sgp_edge *edges, uint32_t edge_count, struct sgp_error *error,
    struct sgp_edge *ret_where)
{
    struct sgp_edge where = {.source = SGP_NODE_NONE, .target = SGP_NODE_NONE};
    struct sgp_phase phase = {.rounds = options->rounds,
        .once = options->once,
        .exchanges = options->exchanges,
        .outer = options->outer,
        .backup = options->backup,
        .staleness = options->staleness,
        .delay = options->delay,
        .edge_count = edge_count};
    int code = check_name("phase", options->name, error);
    if (!code) {
        memcpy(phase.name, options->name, strlen(options->name) + 1);
        code = check_phase(topology, &phase, edges, error);
    }
    if (!code)
        code = check_options(topology, options, error);
    if (!code)
        code = build_phase(topology, options->slices, edges, &phase, error, &where);
    struct sgp_phase *phases = NULL;
    if (!code) {
        phases = realloc(topology->phases, (topology->phase_count + 1) * sizeof *phases);
        if (!phases)
            code = sgp_fail(error, -ENOMEM, "no memory for phase %s", options->name);
    }
    if (code) {
        phase_finish(&phase);
        if (ret_where)
            *ret_where = where;
        return code;
    }
    topology->phases = phases;
    topology->phases[topology->phase_count++] = phase;
    topology->slices = options->slices > 0 ? options->slices : topology->slices;
    topology->repeat = options->repeat > 0 ? options->repeat : topology->repeat;
    topology->tls = options->tls != SGP_TLS_UNSAID ? options->tls : topology->tls;
    topology->stops = options->stops > 0 ? options->stops : topology->stops;
    topology->version = options->version > 0 ? options->version : topology->version;
    return 0;
}

int sgp_topology_add(struct sgp_topology *topology, const struct sgp_phase_options *options,
    const struct sgp_edge *edges, uint32_t edge_count, struct sgp_error *error)
{
    return sgp_topology_add_where(topology, options, edges, edge_count, error, NULL);
}

int sgp_topology_add_phase(struct sgp_topology *topology, const char *name, uint32_t rounds,
    bool once, const struct sgp_edge *edges, uint32_t edge_count, struct sgp_error *error)
{
    const struct sgp_phase_options options = {.name = name, .rounds = rounds, .once = once};
    return sgp_topology_add(topology, &options, edges, edge_count, error);
}

/* ---- owners that train ---- */

static int rewire(struct sgp_topology *topology, struct sgp_phase *phase, uint32_t divided,
    struct sgp_error *error, struct sgp_edge *where)
{
    uint64_t most = 2 * ((uint64_t)phase->edge_count + divided);
    struct sgp_edge *edges = calloc(most + 1, sizeof *edges);
    struct sgp_phase next = *phase;
    int code = edges ? 0 : sgp_fail(error, -ENOMEM, "no memory for %u edges", phase->edge_count);
    next.out = next.in = NULL;
    next.out_first = next.in_first = NULL;
    if (!code) {
        next.edge_count = sgp_colocated_edges(topology, phase, edges);
        code = build_phase(topology, topology->slices, edges, &next, error, where);
    }
    free(edges);
    if (code) {
        phase_finish(&next);
        return code;
    }
    phase_finish(phase);
    *phase = next;
    return 0;
}

/* From here on each of these owners is two nodes. */
static int divide_owners(
    struct sgp_topology *topology, struct sgp_error *error, struct sgp_edge_place *where)
{
    uint32_t divided = sgp_colocated_count(topology), count = topology->node_count + divided;
    struct sgp_edge edge = {.source = SGP_NODE_NONE, .target = SGP_NODE_NONE};
    if (divided == 0)
        return 0;
    struct sgp_topology_node *nodes = realloc(topology->nodes, count * sizeof *nodes);
    topology->nodes = nodes ? nodes : topology->nodes;
    uint32_t *by_name = realloc(topology->by_name, count * sizeof *by_name);
    topology->by_name = by_name ? by_name : topology->by_name;
    if (!nodes || !by_name)
        return sgp_fail(error, -ENOMEM, "no memory for a topology of %u nodes", count);
    int code = sgp_colocated_divide(topology, error, &where->source);
    if (!code)
        code = check_duplicates(topology, error, &where->source);
    if (code)
        return code;
    where->source = SGP_NODE_NONE;
    for (uint32_t p = 0; p < topology->phase_count && !code; p++) {
        code = rewire(topology, &topology->phases[p], divided, error, &edge);
        where->phase = p;
    }
    if (code) {
        where->source = edge.source;
        where->target = edge.target;
    }
    where->phase = code ? where->phase : 0;
    return code;
}

/* FNV-1a, 64 bits, on values in little-endian order, because the digest is compared between
 * machines. */
static void digest_u64(uint64_t *digest, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        *digest ^= (value >> (8 * i)) & 0xff;
        *digest *= UINT64_C(0x100000001b3);
    }
}

static void digest_text(uint64_t *digest, const char *text)
{
    do {
        *digest ^= (unsigned char)*text;
        *digest *= UINT64_C(0x100000001b3);
    } while (*text++);
}

static uint64_t digest_topology(const struct sgp_topology *topology)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    digest_u64(&digest, topology->node_count);
    for (uint32_t i = 0; i < topology->node_count; i++)
        digest_text(&digest, topology->nodes[i].name);
    digest_u64(&digest, topology->phase_count);
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        digest_text(&digest, phase->name);
        digest_u64(&digest, phase->rounds);
        digest_u64(&digest, phase->once);
        digest_u64(&digest, phase->edge_count);
        for (uint32_t e = 0; e < phase->edge_count; e++) {
            uint64_t bits;
            memcpy(&bits, &phase->out[e].fraction, sizeof bits);
            digest_u64(&digest, phase->out[e].source);
            digest_u64(&digest, phase->out[e].target);
            digest_u64(&digest, bits);
        }
    }
    return digest;
}

static void digest_staleness(uint64_t *digest, const struct sgp_staleness *staleness)
{
    uint64_t bits;
    memcpy(&bits, &staleness->compensation, sizeof bits);
    digest_u64(digest, bits);
    digest_u64(digest, (uint64_t)staleness->most << 8 | staleness->damping);
}

/* Later extensions of the format. A file that does not use them keeps its digest. */
static uint64_t digest_program(const struct sgp_topology *topology, uint64_t digest)
{
    bool says = topology->slices > 1 || topology->repeat > 1 || topology->owner != SGP_NODE_NONE;
    for (uint32_t i = 0; i < topology->node_count; i++)
        says = says || topology->nodes[i].relay || topology->nodes[i].starts != SGP_STARTS_USUAL;
    for (uint32_t p = 0; p < topology->phase_count; p++)
        says = says || topology->phases[p].exchanges || topology->phases[p].outer;
    if (!says)
        return digest;
    digest_u64(&digest, topology->slices);
    digest_u64(&digest, topology->repeat);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        digest_u64(&digest, topology->nodes[i].relay);
        digest_u64(&digest, sgp_topology_starts(topology, i) > 0);
    }
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        digest_u64(&digest, (uint64_t)phase->outer << 1 | phase->exchanges);
        for (uint32_t e = 0; e < phase->edge_count; e++)
            digest_u64(&digest, (uint64_t)phase->out[e].part << 16 | phase->out[e].part_count);
        if (topology->owner != SGP_NODE_NONE)
            digest_u64(&digest, (uint64_t)phase->backup << 32 | topology->owner);
        for (uint32_t i = 0; i < topology->node_count && topology->owners > 1; i++)
            digest_u64(&digest,
                (uint64_t)topology->nodes[i].own_part << 16 | topology->nodes[i].own_part_count);
        if (sgp_staleness_is_said(&phase->staleness))
            digest_staleness(&digest, &phase->staleness);
        if (phase->delay.token != SGP_TOKEN_NONE)
            digest_u64(&digest, (uint64_t)sgp_topology_delay_most(topology) << 8 |
                                    (uint64_t)phase->delay.mean << 4 | phase->delay.token);
    }
    return digest;
}

/* Sum up the rounds and turns of both cycles. */
static int count_rounds(struct sgp_topology *topology)
{
    uint32_t count = topology->phase_count;
    sgp_round *first = calloc((size_t)count + 1, sizeof *first);
    sgp_round *turns = calloc((size_t)count + 1, sizeof *turns);
    topology->phase_first = first;
    topology->phase_turns = turns;
    if (!first || !turns)
        return -ENOMEM;
    for (uint32_t p = 0; p < count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        struct sgp_cycle *cycle = phase->once ? &topology->prelude : &topology->cycle;
        first[p + 1] = first[p] + phase->rounds;
        turns[p + 1] = turns[p] + (phase->exchanges ? 0 : phase->rounds);
        cycle->rounds += phase->rounds;
        cycle->turns += phase->exchanges ? 0 : phase->rounds;
    }
    topology->prelude_rounds = topology->prelude.rounds * topology->repeat;
    topology->rounds_per_cycle = topology->cycle.rounds;
    return 0;
}

/* The file does not have the co-located nodes. */
static struct sgp_edge_place place_in_file(
    const struct sgp_topology *topology, struct sgp_edge_place place)
{
    if (place.source != SGP_NODE_NONE)
        place.source = sgp_topology_machine(topology, place.source);
    if (place.target != SGP_NODE_NONE)
        place.target = sgp_topology_machine(topology, place.target);
    if (place.source == place.target)
        place.target = SGP_NODE_NONE;
    return place;
}

int sgp_topology_seal_where(
    struct sgp_topology *topology, struct sgp_error *error, struct sgp_edge_place *ret_where)
{
    sgp_assert(!topology->phase_first);
    uint32_t count = topology->phase_count;
    struct sgp_edge_place where = {.source = SGP_NODE_NONE, .target = SGP_NODE_NONE};
    if (ret_where)
        *ret_where = where;
    if (count == 0 || topology->phases[count - 1].once)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "there is no phase in the cycle; at least one phase must not be marked once");
    topology->slices = topology->slices > 0 ? topology->slices : 1;
    topology->repeat = topology->repeat > 0 ? topology->repeat : 1;
    topology->tls = topology->tls != SGP_TLS_UNSAID ? topology->tls : SGP_TLS_OFF;
    topology->stops = topology->stops > 0 ? topology->stops : 1;
    int code = count_rounds(topology);
    if (code)
        return sgp_fail(error, code, "no memory for %u phases", count);
    if (topology->cycle.turns == 0)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "no round of the cycle trains; at least one digraph must not say train=false");
    if (sgp_topology_trainers(topology) == 0)
        return sgp_fail(
            error, SGP_E_TOPOLOGY, "every node is a relay; at least one must not say train=false");
    code = divide_owners(topology, error, &where);
    if (!code)
        code = sgp_owner_check(topology, error, &where);
    if (!code)
        code = sgp_exact_prove(topology, error, &where.phase);
    if (!code && (code = sgp_keys_check(topology, error, &where.source)) == 0)
        where.source = SGP_NODE_NONE;
    if (!code && (code = sgp_agreement_find(topology)) < 0)
        code = sgp_fail(error, code, "no memory for %u nodes", topology->node_count);
    if (ret_where)
        *ret_where = place_in_file(topology, where);
    topology->digest = digest_program(topology, digest_topology(topology));
    return code;
}

int sgp_topology_seal(struct sgp_topology *topology, struct sgp_error *error)
{
    return sgp_topology_seal_where(topology, error, NULL);
}
