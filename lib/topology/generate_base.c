/* SPDX-License-Identifier: Apache-2.0 */
/* Base-(k+1) graphs: exact averages in few rounds for any number of nodes, with at most k peers a
 * round. Source: Takezawa, Sato, Bao, Niwa, Yamada, "Beyond Exponential Graph:
 * Communication-Efficient Topologies for Decentralized Learning via Finite-time Convergence"
 * (2023). Algorithms 1 (hyper-hypercube), 2 (simple base-(k+1)) and 3 (base-(k+1)). Any thread;
 * pure except for memory.
 *
 * A set of nodes is first, first + stride, first + 2 stride, ... Every function below adds the
 * edges of one round to one set. All edges are symmetric. */
#include "topology/edges.h"

#include <stdio.h>

/* 65536 = 2^16 has 16 factors: no number of nodes has more factors, or more digits. */
#define SGP_BASE_FACTORS_MAX 16u
#define SGP_BASE_PARTS_MAX 17u

struct set {
    uint32_t first;
    uint32_t stride;
    uint32_t count;
};

struct factors {
    uint32_t count;
    uint32_t factor[SGP_BASE_FACTORS_MAX];
};

static uint32_t member(struct set set, uint32_t index)
{
    return set.first + index * set.stride;
}

static void push_pair(struct sgp_edges *edges, uint32_t a, uint32_t b, double weight)
{
    sgp_edges_push(edges, a, b, weight);
    sgp_edges_push(edges, b, a, weight);
}

/* The fewest factors of n, none above `most`, tried from the greatest on. False if there are
 * none. */
static bool factorise(
    uint32_t n, uint32_t most, uint32_t depth, struct factors *trial, struct factors *ret_best)
{
    if (n == 1) {
        *ret_best = *trial;
        ret_best->count = depth;
        return true;
    }
    bool found = false;
    for (uint32_t f = most < n ? most : n; f >= 2; f--) {
        if (n % f != 0 || depth == SGP_BASE_FACTORS_MAX || (found && depth + 1 >= ret_best->count))
            continue;
        struct factors best = {.count = 0};
        trial->factor[depth] = f;
        if (factorise(n / f, f, depth + 1, trial, &best) &&
            (!found || best.count < ret_best->count)) {
            *ret_best = best;
            found = true;
        }
    }
    return found;
}

static bool hyper_factors(uint32_t n, uint32_t base, struct factors *ret_factors)
{
    struct factors trial = {0};
    return factorise(n, base, 0, &trial, ret_factors);
}

/* Algorithm 1, one round: the nodes that differ only in digit `level` average completely. The
 * digits are those of the index in the mixed base of the factors, the lowest first. */
static void push_hyper(
    struct sgp_edges *edges, struct set set, const struct factors *factors, uint32_t level)
{
    uint32_t step = 1, factor = factors->factor[level];
    for (uint32_t l = 0; l < level; l++)
        step *= factors->factor[l];
    for (uint32_t i = 0; i < set.count; i++)
        for (uint32_t digit = i / step % factor + 1; digit < factor; digit++)
            push_pair(edges, member(set, i), member(set, i + (digit - i / step % factor) * step),
                1.0 / factor);
}

/* Algorithm 2: the parts of a set, n = a_1 b^p_1 + a_2 b^p_2 + ..., p falling, 1 <= a < b. */
struct part {
    uint32_t offset;      /* offset of its first member within the set */
    uint32_t blocks;      /* a */
    uint32_t size;        /* b^p: the size of a block */
    struct factors all;   /* factors of a * b^p */
    struct factors block; /* factors of b^p */
};

struct simple {
    uint32_t base; /* k + 1 */
    uint32_t rounds;
    bool smooth; /* the whole set is a hyper-hypercube, part[0].all */
    uint32_t parts;
    struct part part[SGP_BASE_PARTS_MAX];
};

static void plan_simple(struct simple *plan, uint32_t n, uint32_t base)
{
    sgp_assert(base >= 2);
    *plan = (struct simple){.base = base};
    plan->smooth = hyper_factors(n, base, &plan->part[0].all);
    if (plan->smooth) {
        plan->rounds = plan->part[0].all.count;
        return;
    }
    uint32_t power = 1, offset = 0;
    while (power <= n / base)
        power *= base;
    for (; power >= 1; power /= base) {
        uint32_t digit = (n - offset) / power;
        if (digit == 0)
            continue;
        struct part *part = &plan->part[plan->parts++];
        part->offset = offset;
        part->blocks = digit;
        part->size = power;
        (void)hyper_factors(digit * power, base, &part->all);
        (void)hyper_factors(power, base, &part->block);
        offset += digit * power;
    }
    plan->rounds = plan->part[0].all.count + 1 + plan->part[0].block.count;
}

static struct set subset(struct set set, uint32_t offset, uint32_t count)
{
    return (struct set){.first = member(set, offset), .stride = set.stride, .count = count};
}

/* Part j meets all later parts. Every later node exchanges with one node of each of the part's
 * blocks, from the end. The fractions are such that the later nodes together, and each block by
 * itself, get the average of all. The remaining nodes of the part average in groups, all of which
 * hold the same value. */
static void push_meeting(
    struct sgp_edges *edges, struct set set, const struct simple *plan, uint32_t j)
{
    const struct part *part = &plan->part[j];
    uint32_t later = set.count - part->offset - part->blocks * part->size;
    double weight = (double)part->size / (set.count - part->offset);
    for (uint32_t v = 0; v < later; v++) {
        uint32_t node = member(set, part->offset + part->blocks * part->size + v);
        for (uint32_t b = 0; b < part->blocks; b++)
            push_pair(
                edges, member(set, part->offset + (b + 1) * part->size - 1 - v), node, weight);
    }
    for (uint32_t b = 0; b < part->blocks; b++)
        for (uint32_t i = 0; i < part->size - later; i += plan->base) {
            uint32_t left = part->size - later - i;
            struct factors group = {.count = 1, .factor = {left < plan->base ? left : plan->base}};
            push_hyper(
                edges, subset(set, part->offset + b * part->size + i, group.factor[0]), &group, 0);
        }
}

/* Algorithm 2, one round. First every part averages within itself. Then part 1 meets all later
 * parts, then part 2, and so on. A part that has met averages within its blocks. A part that is
 * done begins again. */
static void push_simple(
    struct sgp_edges *edges, struct set set, const struct simple *plan, uint32_t round)
{
    if (plan->smooth) {
        push_hyper(edges, set, &plan->part[0].all, round);
        return;
    }
    uint32_t inner = plan->part[0].all.count;
    for (uint32_t j = 0; j < plan->parts; j++) {
        const struct part *part = &plan->part[j];
        uint32_t met = inner + j;
        if (round < inner && part->all.count > 0) {
            push_hyper(edges, subset(set, part->offset, part->blocks * part->size), &part->all,
                round % part->all.count);
        } else if (round == met && j + 1 < plan->parts) {
            push_meeting(edges, set, plan, j);
        } else if (round > met && part->block.count > 0) {
            for (uint32_t b = 0; b < part->blocks; b++)
                push_hyper(edges, subset(set, part->offset + b * part->size, part->size),
                    &part->block, (round - met - 1) % part->block.count);
        }
    }
}

/* Algorithm 3: n = p q, where p has all prime factors up to k+1. The graph is p simple graphs of q
 * nodes next to each other, then hyper-hypercubes across them. If the simple graph of all n nodes
 * is shorter, it is used instead. */
int sgp_generate_base(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    uint32_t n = options->nodes, base = (options->peers ? options->peers : 1) + 1, p = 1;
    for (uint32_t f = 2; f <= base && f <= n; f++)
        while (n / p % f == 0)
            p *= f;
    struct simple whole, split;
    struct factors across;
    plan_simple(&whole, n, base);
    plan_simple(&split, n / p, base);
    (void)hyper_factors(p, base, &across);
    bool simpler = whole.rounds < split.rounds + across.count;
    uint32_t rounds = simpler ? whole.rounds : split.rounds + across.count;
    struct sgp_edges edges = {0};
    int code = 0;
    for (uint32_t round = 0; round < rounds && !code; round++) {
        if (simpler)
            push_simple(&edges, (struct set){0, 1, n}, &whole, round);
        for (uint32_t b = 0; !simpler && round < split.rounds && b < p; b++)
            push_simple(&edges, (struct set){b * (n / p), 1, n / p}, &split, round);
        for (uint32_t i = 0; !simpler && round >= split.rounds && i < n / p; i++)
            push_hyper(&edges, (struct set){i, n / p, p}, &across, round - split.rounds);
        char name[SGP_NAME_BYTES];
        (void)snprintf(name, sizeof name, "base%u", round);
        code = sgp_edges_flush(&edges, topology, name, error);
    }
    sgp_edges_finish(&edges);
    return code;
}
