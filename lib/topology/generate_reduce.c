/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce as files: exact cycles whose first round trains, and whose other rounds only exchange.
 * Source: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in
 * MPICH", 2005; the tree is binomial. To reduce is to give everything (fraction 1). To hand back is
 * to give so much that every node that trains ends with the mean, with weight 1 where possible.
 * This file also has elastic averaging (Zhang, Choromanska and LeCun, 2015).
 *
 * Any thread; pure except for memory. */
#include "topology/edges.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The rounds of a file under construction. */
struct schedule {
    struct sgp_topology *topology;
    struct sgp_error *error;
    struct sgp_edges edges; /* the edges of the round that is being made */
    uint32_t slices;        /* slices of a piece; 0: whole vectors */
    uint32_t pieces;
    uint32_t round;
    int code;
};

/* The same edges with the parts of one piece. Pieces lie next to each other, each with its
 * parts. */
static void push_piece(struct schedule *s, const struct sgp_edges *whole, uint32_t piece)
{
    uint32_t parts = s->slices > 0 ? s->slices : 1;
    for (uint32_t e = 0; e < whole->count; e++) {
        const struct sgp_edge *edge = &whole->edges[e];
        sgp_edges_push_parts(&s->edges, edge->source, edge->target, edge->fraction,
            piece * parts + edge->part, edge->part_count > 0 ? edge->part_count : parts);
    }
}

static void flush(struct schedule *s, const char *name)
{
    uint32_t parts = s->slices > 0 ? s->slices : s->pieces > 1;
    struct sgp_phase_options options = {
        .name = name, .rounds = 1, .exchanges = s->round > 0, .slices = parts * s->pieces};
    if (s->code == 0)
        s->code = sgp_edges_flush_as(&s->edges, s->topology, &options, s->error);
    s->round++;
}

/* Close a round: NAME, and its number among the rounds of that name. With pieces, one round for
 * each. */
static void next(struct schedule *s, const char *name, uint32_t number)
{
    char text[SGP_NAME_BYTES];
    struct sgp_edges whole = s->edges;
    (void)snprintf(text, sizeof text, "%s%u", name, number);
    if (s->pieces == 1) {
        flush(s, text);
        return;
    }
    s->edges = (struct sgp_edges){.code = whole.code};
    for (uint32_t piece = 0; piece < s->pieces; piece++) {
        (void)snprintf(text, sizeof text, "%s%u_%u", name, number, piece);
        push_piece(s, &whole, piece);
        flush(s, text);
    }
    sgp_edges_finish(&whole);
}

static int finish(struct schedule *s)
{
    sgp_edges_finish(&s->edges);
    return s->code;
}

static int begin(struct schedule *s, struct sgp_topology *topology, uint32_t slices,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    uint32_t pieces = options->pieces > 0 ? options->pieces : 1;
    *s =
        (struct schedule){.topology = topology, .error = error, .slices = slices, .pieces = pieces};
    uint64_t parts = (uint64_t)pieces * (slices > 0 ? slices : 1);
    if (parts > SGP_SLICES_MAX && pieces > 1)
        return sgp_fail(error, SGP_E_LIMIT,
            "%u pieces of %u parts are %" PRIu64 " parts, and %u are the limit; take fewer pieces",
            pieces, slices > 0 ? slices : 1, parts, SGP_SLICES_MAX);
    if (slices <= SGP_SLICES_MAX)
        return 0;
    return sgp_fail(error, SGP_E_LIMIT,
        "%u nodes of %s want as many parts, and %u are the limit; take all-reduce-doubling, "
        "all-reduce-tree or all-reduce-groups",
        options->nodes, options->family, SGP_SLICES_MAX);
}

static uint32_t log2_of(uint32_t power)
{
    return 31u - (uint32_t)__builtin_clz(power);
}

/* The greatest power of two that is at most n. */
static uint32_t power_below(uint32_t n)
{
    return 1u << log2_of(n);
}

/* ---- ring: every part goes round once to be summed, and once more to be handed back ---- */

int sgp_generate_reduce_ring(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    struct schedule s;
    uint32_t n = options->nodes;
    int code = begin(&s, topology, n, options, error);
    if (code)
        return code;
    for (uint32_t k = 0; k + 1 < n; k++) {
        for (uint32_t r = 0; r < n; r++)
            sgp_edges_push_parts(&s.edges, r, (r + 1) % n, 1, (r + n - k) % n, 1);
        next(&s, "reduce", k);
    }
    for (uint32_t k = 0; k + 1 < n; k++) { /* a node with weight m keeps 1 and passes on m - 1 */
        double fraction = (double)(n - k - 1) / (n - k);
        for (uint32_t r = 0; r < n; r++)
            sgp_edges_push_parts(&s.edges, r, (r + 1) % n, fraction, (r + 1 + n - k) % n, 1);
        next(&s, "gather", k);
    }
    return finish(&s);
}

/* ---- direct: every node sums one part, without intermediate hops ---- */

/* Nodes first, first + stride, ...: `count` of them. */
static void push_direct(struct schedule *s, uint32_t count, uint32_t stride, bool back)
{
    for (uint32_t r = 0; r < count; r++)
        for (uint32_t q = 0; q < count; q++) {
            if (q != r && !back)
                sgp_edges_push_parts(&s->edges, r * stride, q * stride, 1, q, 1);
            else if (q != r)
                sgp_edges_push_parts(&s->edges, r * stride, q * stride, 1.0 / count, r, 1);
        }
}

int sgp_generate_reduce_direct(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    struct schedule s;
    int code = begin(&s, topology, options->nodes, options, error);
    if (code)
        return code;
    push_direct(&s, options->nodes, 1, false);
    next(&s, "reduce", 0);
    push_direct(&s, options->nodes, 1, true);
    next(&s, "gather", 0);
    return finish(&s);
}

/* ---- nodes beyond a power of two give everything to a partner first, and get half back last
 * ---- */

static void fold(struct schedule *s, uint32_t n, uint32_t core)
{
    for (uint32_t r = 0; core + r < n; r++)
        sgp_edges_push(&s->edges, core + r, r, 1);
    if (n > core)
        next(s, "fold", 0);
}

static void unfold(struct schedule *s, uint32_t n, uint32_t core)
{
    for (uint32_t r = 0; core + r < n; r++)
        sgp_edges_push(&s->edges, r, core + r, 0.5);
    if (n > core)
        next(s, "unfold", 0);
}

int sgp_generate_reduce_doubling(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    struct schedule s;
    uint32_t n = options->nodes, core = power_below(n);
    int code = begin(&s, topology, 0, options, error);
    if (code)
        return code;
    fold(&s, n, core);
    for (uint32_t k = 0; k < log2_of(core); k++) {
        for (uint32_t r = 0; r < core; r++)
            sgp_edges_push(&s.edges, r, r ^ 1u << k, 0.5);
        next(&s, "pair", k);
    }
    unfold(&s, n, core);
    return finish(&s);
}

/* ---- halving first, doubling afterwards, within blocks of a power of two ---- */

/* `size` nodes from `first` on, which hold `unit` parts each after halving. */
struct block {
    uint32_t first, size, unit;
};

/* Round k of halving: of what it still has, each node gives its partner the half that is the
 * partner's. */
static void push_halving(struct schedule *s, const struct block *block, uint32_t k)
{
    uint32_t half = block->size >> (k + 1);
    for (uint32_t r = 0; r < block->size; r++) {
        uint32_t partner = r ^ half, begins = partner & ~(half - 1);
        sgp_edges_push_parts(&s->edges, block->first + r, block->first + partner, 1,
            begins * block->unit, half * block->unit);
    }
}

/* Round k of doubling: each node gives half of what it has to its partner. */
static void push_doubling(struct schedule *s, const struct block *block, uint32_t k)
{
    uint32_t count = 1u << k;
    for (uint32_t r = 0; r < block->size; r++) {
        uint32_t begins = r & ~(count - 1);
        sgp_edges_push_parts(&s->edges, block->first + r, block->first + (r ^ count), 0.5,
            begins * block->unit, count * block->unit);
    }
}

int sgp_generate_reduce_halving(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    struct schedule s;
    uint32_t n = options->nodes, core = power_below(n), bits = log2_of(core);
    struct block block = {.first = 0, .size = core, .unit = 1};
    int code = begin(&s, topology, core, options, error);
    if (code)
        return code;
    fold(&s, n, core);
    for (uint32_t k = 0; k < bits; k++) {
        push_halving(&s, &block, k);
        next(&s, "halve", k);
    }
    for (uint32_t k = 0; k < bits; k++) {
        push_doubling(&s, &block, k);
        next(&s, "double", k);
    }
    unfold(&s, n, core);
    return finish(&s);
}

/* ---- binary blocks: the smaller blocks feed the larger ones, and are fed by them afterwards
 * ---- */

#define BLOCKS_MAX 16u

/* From a node with a part of the smaller block to the nodes of the larger block with pieces of it.
 * `fraction` goes to the larger block (1), or back. */
static void push_feed(struct schedule *s, const struct block *small, const struct block *large,
    double fraction, bool back)
{
    uint32_t each = large->size / small->size;
    for (uint32_t r = 0; r < small->size; r++)
        for (uint32_t m = 0; m < each; m++) {
            uint32_t here = small->first + r, there = large->first + r * each + m;
            sgp_edges_push_parts(&s->edges, back ? there : here, back ? here : there, fraction,
                (r * each + m) * large->unit, large->unit);
        }
}

/* The number of members of this block and of all smaller blocks. */
static uint32_t members_from(const struct block *blocks, uint32_t count, uint32_t from)
{
    uint32_t members = 0;
    for (uint32_t b = from; b < count; b++)
        members += blocks[b].size;
    return members;
}

int sgp_generate_reduce_blocks(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    struct schedule s;
    struct block blocks[BLOCKS_MAX + 1];
    uint32_t n = options->nodes, largest = power_below(n), count = 0;
    int code = begin(&s, topology, largest, options, error);
    if (code)
        return code;
    for (uint32_t first = 0, size; first < n; first += size) {
        size = power_below(n - first);
        blocks[count++] = (struct block){first, size, largest / size};
    }
    uint32_t rounds = log2_of(largest) + (count > 1);
    for (uint32_t t = 0; t < rounds; t++) { /* after halving a block is fed, and then feeds */
        for (uint32_t b = 0; b < count; b++) {
            if (t < log2_of(blocks[b].size))
                push_halving(&s, &blocks[b], t);
            else if (t == log2_of(blocks[b].size) && b + 1 < count)
                push_feed(&s, &blocks[b + 1], &blocks[b], 1, false);
        }
        next(&s, "reduce", t);
    }
    for (uint32_t t = rounds; t-- > 0;) { /* the same in reverse order */
        for (uint32_t b = 0; b < count; b++) {
            uint32_t bits = log2_of(blocks[b].size);
            double below = members_from(blocks, count, b + 1);
            if (t < bits)
                push_doubling(&s, &blocks[b], bits - 1 - t);
            else if (t == bits && b + 1 < count)
                push_feed(
                    &s, &blocks[b + 1], &blocks[b], below / members_from(blocks, count, b), true);
        }
        next(&s, "gather", rounds - 1 - t);
    }
    return finish(&s);
}

/* ---- tree ---- */

/* The number of nodes that the subtree of r holds once steps below `step` are done. */
static uint32_t held(uint32_t n, uint32_t r, uint32_t step)
{
    return n - r < step ? n - r : step;
}

int sgp_generate_reduce_tree(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    struct schedule s;
    uint32_t n = options->nodes, step = 1, number = 0;
    int code = begin(&s, topology, 0, options, error);
    if (code)
        return code;
    for (; step < n; step *= 2) {
        for (uint32_t r = step; r < n; r += 2 * step)
            sgp_edges_push(&s.edges, r, r - step, 1);
        next(&s, "up", number++);
    }
    for (number = 0; step > 1; number++) {
        step /= 2;
        for (uint32_t r = step; r < n; r += 2 * step)
            sgp_edges_push(
                &s.edges, r - step, r, (double)held(n, r, step) / (step + held(n, r, step)));
        next(&s, "down", number);
    }
    return finish(&s);
}

/* ---- hubs: each sums one part of all nodes that train, and hands it back ---- */

/* Between a hub and the nodes that train from `first` on: part h, or everything if there is one
 * hub. */
static void push_hub(
    struct schedule *s, uint32_t n, uint32_t first, uint32_t h, double fraction, bool back)
{
    for (uint32_t r = first; r < n; r++) {
        uint32_t source = back ? h : r, target = back ? r : h;
        if (r != h && s->slices > 0)
            sgp_edges_push_parts(&s->edges, source, target, fraction, h, 1);
        else if (r != h)
            sgp_edges_push(&s->edges, source, target, fraction);
    }
}

int sgp_generate_reduce_hubs(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    struct schedule s;
    uint32_t n = options->nodes, hubs = options->hubs > 0 ? options->hubs : 1;
    uint32_t first = options->relays ? hubs : 0;
    if (hubs > SGP_SLICES_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%u hubs want as many parts, and %u are the limit",
            hubs, SGP_SLICES_MAX);
    if (hubs > n || first >= n)
        return sgp_fail(error, SGP_E_TOPOLOGY, "%u nodes cannot have %u hubs%s; take at most %u", n,
            hubs, options->relays ? " that do not train, and others that do" : "",
            n - options->relays);
    int code = begin(&s, topology, hubs > 1 ? hubs : 0, options, error);
    if (code)
        return code;
    for (uint32_t h = 0; h < first; h++)
        topology->nodes[h].relay = true;
    for (uint32_t h = 0; h < hubs; h++)
        push_hub(&s, n, first, h, 1, false);
    next(&s, "reduce", 0);
    for (uint32_t h = 0; h < hubs; h++)
        push_hub(&s, n, first, h, 1.0 / (n - first), true);
    next(&s, "gather", 0);
    return finish(&s);
}

/* ---- groups: to the first node of each, directly among these, and back ---- */

int sgp_generate_reduce_groups(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error)
{
    struct schedule s;
    uint32_t n = options->nodes, size = options->group;
    uint32_t groups = size > 0 ? (n + size - 1) / size : 0;
    if (size < 2)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "all-reduce-groups wants to know how large a group is; say --group M, 2 or more");
    int code = begin(&s, topology, groups > 1 ? groups : 0, options, error);
    if (code)
        return code;
    for (uint32_t r = 0; r < n; r++)
        if (r % size > 0)
            sgp_edges_push(&s.edges, r, r - r % size, 1);
    next(&s, "collect", 0);
    if (groups > 1) {
        push_direct(&s, groups, size, false);
        next(&s, "reduce", 0);
        push_direct(&s, groups, size, true);
        next(&s, "gather", 0);
    }
    for (uint32_t r = 0; r < n; r++) {
        uint32_t first = r - r % size, members = n - first < size ? n - first : size;
        if (r > first)
            sgp_edges_push(&s.edges, first, r, 1.0 / members);
    }
    next(&s, "share", 0);
    return finish(&s);
}

/* ---- elastic averaging: a relay in the middle holds the centre ---- */

int sgp_generate_elastic(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    struct sgp_edges edges = {0};
    uint32_t n = options->nodes;
    double fraction = options->fraction > 0 ? options->fraction : 1.0 / n;
    if (!(fraction * (n - 1) < 1))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "with --fraction %g the relay would give %u nodes all that it has, or more; take less "
            "than %g",
            fraction, n - 1, 1.0 / (n - 1));
    topology->nodes[0].relay = true;
    topology->nodes[0].starts = SGP_STARTS_WHOLE;
    for (uint32_t i = 1; i < n; i++) {
        sgp_edges_push(&edges, 0, i, fraction);
        sgp_edges_push(&edges, i, 0, fraction);
    }
    int code = sgp_edges_flush(&edges, topology, "elastic", error);
    sgp_edges_finish(&edges);
    return code;
}
