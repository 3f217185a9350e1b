/* SPDX-License-Identifier: Apache-2.0 */
/* Generated families: their edges, when they average exactly, and what they refuse. */
#include "sgp/dot.h"
#include "sgp/generate.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((uint32_t)(sizeof array / sizeof *(array)))

static struct sgp_topology *generate(const struct sgp_generate_options *options)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_generate(options, &error, &topology)), "%s %u: %s", options->family,
        options->nodes, error.text);
    return topology;
}

static struct sgp_topology *family(const char *name, uint32_t nodes, uint32_t peers)
{
    return generate(&(struct sgp_generate_options){.family = name, .nodes = nodes, .peers = peers});
}

static void refused(const struct sgp_generate_options *options, int code, const char *text)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_expect(eq(int, sgp_generate(options, &error, &topology), code));
    cr_expect(eq(str, error.text, (char *)text));
    cr_expect(zero(ptr, topology));
}

/* "0-1 2/3" for every pair of a symmetric phase, "0>1 1/2" for every other edge. */
static void expect_edges(const struct sgp_phase *phase, const char *expected)
{
    char text[1024] = "";
    size_t length = 0;
    for (uint32_t e = 0; e < phase->edge_count; e++) {
        struct sgp_edge edge = phase->out[e];
        bool mirrored = false;
        for (uint32_t b = 0; b < phase->edge_count; b++)
            mirrored |= phase->out[b].source == edge.target &&
                        phase->out[b].target == edge.source &&
                        phase->out[b].fraction == edge.fraction;
        uint32_t divisor = 1;
        while (fabs(round(edge.fraction * divisor) - edge.fraction * divisor) > 1e-9)
            divisor++;
        if (!mirrored || edge.source < edge.target)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%u%c%u %.0f/%u",
                length ? ", " : "", edge.source, mirrored ? '-' : '>', edge.target,
                edge.fraction * divisor, divisor);
    }
    cr_expect(eq(str, text, (char *)expected));
}

/* Largest distance of an entry of the product of `rounds` rounds from 1/n, by plain mixing of every
 * unit vector. */
static double distance_from_average(const struct sgp_topology *topology, sgp_round rounds)
{
    uint32_t n = topology->node_count;
    double *mass = calloc((size_t)n * n, sizeof *mass), *next = calloc((size_t)n * n, sizeof *next);
    for (uint32_t i = 0; i < n; i++)
        mass[i * n + i] = 1.0;
    for (sgp_round r = 0; r < rounds; r++) {
        sgp_phase_mix(next, mass, sgp_topology_phase(topology, r), n, n);
        double *kept = mass;
        mass = next;
        next = kept;
    }
    double most = 0;
    for (uint32_t i = 0; i < n * n; i++)
        most = fmax(most, fabs(mass[i] - 1.0 / n));
    free(mass);
    free(next);
    return most;
}

Test(generate, one_peer_exponential_is_exact_for_powers_of_two_only)
{
    for (uint32_t n = 2; n <= 66; n++) {
        struct sgp_topology *t = family("one-peer-exponential", n, 0);
        uint32_t rounds = 0;
        while ((1u << rounds) < n)
            rounds++;
        cr_assert(eq(u32, t->phase_count, rounds));
        double distance = distance_from_average(t, rounds);
        if (n == 1u << rounds)
            cr_assert(distance == 0.0, "n = %u: %g", n, distance); /* dyadic: to the last bit */
        else
            cr_assert(gt(dbl, distance, 1e-4), "n = %u", n);
        for (uint32_t p = 0; p < rounds; p++)
            for (uint32_t i = 0; i < n; i++)
                cr_assert(eq(u32, t->phases[p].out[i].target, (i + (1u << p)) % n));
        sgp_topology_destroy(t);
    }
}

struct base_rounds {
    uint32_t peers, nodes, rounds;
};

static const struct base_rounds published[] = {{1, 2, 1}, {1, 3, 3}, {1, 4, 2}, {1, 5, 5},
    {1, 6, 4}, {1, 7, 5}, {1, 8, 3}, {1, 9, 7}, {1, 10, 6}, {1, 11, 7}, {1, 12, 5}, {1, 13, 7},
    {1, 14, 6}, {1, 15, 7}, {1, 16, 4}, {1, 17, 9}, {1, 24, 6}, {1, 32, 5}, {1, 33, 11}, {2, 3, 1},
    {2, 5, 3}, {2, 6, 2}, {2, 7, 4}, {2, 9, 2}, {2, 10, 4}, {2, 27, 3}, {3, 4, 1}, {3, 5, 3},
    {3, 8, 2}, {3, 16, 2}, {3, 32, 3}};

Test(generate, base_takes_the_published_rounds)
{
    for (size_t i = 0; i < COUNT(published); i++) {
        const struct base_rounds *b = &published[i];
        struct sgp_topology *t = family("base", b->nodes, b->peers);
        cr_assert(eq(u32, t->phase_count, b->rounds), "peers %u, n = %u", b->peers, b->nodes);
        cr_assert(lt(dbl, distance_from_average(t, b->rounds), 1e-14));
        cr_assert(gt(dbl, distance_from_average(t, b->rounds - 1), 1e-3));
        sgp_topology_destroy(t);
    }
}

/* Exact for every n and m, symmetric, never more peers than promised. */
Test(generate, base_averages_exactly_for_any_number)
{
    for (uint32_t peers = 1; peers <= 6; peers++)
        for (uint32_t n = 1; n <= 100; n++) {
            struct sgp_topology *t = family("base", n, peers);
            cr_assert(lt(dbl, distance_from_average(t, t->rounds_per_cycle), 1e-13),
                "peers %u, n = %u", peers, n);
            for (uint32_t p = 0; p < t->phase_count; p++) {
                const struct sgp_phase *phase = &t->phases[p];
                for (uint32_t i = 0; i < n; i++)
                    cr_assert(le(u32, phase->out_first[i + 1] - phase->out_first[i], peers));
                for (uint32_t e = 0; e < phase->edge_count; e++)
                    cr_assert(phase->out[e].source == phase->in[e].target &&
                              phase->out[e].target == phase->in[e].source &&
                              phase->out[e].fraction == phase->in[e].fraction);
            }
            sgp_topology_destroy(t);
        }
}

Test(generate, base_has_the_published_schedules)
{
    struct sgp_topology *t = family("base", 3, 1);
    expect_edges(&t->phases[0], "0-1 1/2");
    expect_edges(&t->phases[1], "1-2 2/3");
    expect_edges(&t->phases[2], "0-1 1/2");
    sgp_topology_destroy(t);
    t = family("base", 5, 1);
    expect_edges(&t->phases[0], "0-1 1/2, 2-3 1/2");
    expect_edges(&t->phases[1], "0-2 1/2, 1-3 1/2");
    expect_edges(&t->phases[2], "0-1 1/2, 3-4 4/5");
    expect_edges(&t->phases[3], "0-1 1/2, 2-3 1/2");
    expect_edges(&t->phases[4], "0-2 1/2, 1-3 1/2");
    sgp_topology_destroy(t);
    t = family("base", 6, 1);
    expect_edges(&t->phases[0], "0-1 1/2, 3-4 1/2");
    expect_edges(&t->phases[1], "1-2 2/3, 4-5 2/3");
    expect_edges(&t->phases[2], "0-1 1/2, 3-4 1/2");
    expect_edges(&t->phases[3], "0-3 1/2, 1-4 1/2, 2-5 1/2");
    sgp_topology_destroy(t);
}

/* The second singular value of the product of the first cycle: power iteration on M^T M with
 * M = P - J/n, from a fixed start. */
static double second_singular_value(const struct sgp_topology *topology)
{
    enum { n = 32 };
    static double mass[n * n], next[n * n];
    memset(mass, 0, sizeof mass);
    for (uint32_t i = 0; i < n; i++)
        mass[i * n + i] = 1.0;
    for (sgp_round r = 0; r < topology->rounds_per_cycle; r++) {
        sgp_phase_mix(next, mass, sgp_topology_phase(topology, r), n, n);
        memcpy(mass, next, sizeof mass);
    }
    double v[n], u[n], norm = 0;
    for (int i = 0; i < n; i++)
        v[i] = i * i % 7 + 1;
    for (int step = 0; step < 2000; step++) {
        for (int i = 0; i < n; i++) {
            u[i] = 0;
            for (int j = 0; j < n; j++)
                u[i] += (mass[i * n + j] - 1.0 / n) * v[j];
        }
        norm = 0;
        for (int j = 0; j < n; j++) {
            v[j] = 0;
            for (int i = 0; i < n; i++)
                v[j] += (mass[i * n + j] - 1.0 / n) * u[i];
            norm += v[j] * v[j];
        }
        norm = sqrt(norm);
        for (int j = 0; j < n && norm > 0; j++)
            v[j] /= norm;
    }
    return sqrt(norm);
}

Test(generate, doubling_hops_beat_counting_hops)
{
    struct sgp_topology *doubling = family("one-peer-exponential", 32, 0);
    cr_assert(second_singular_value(doubling) == 0.0);
    struct sgp_topology *counting = NULL;
    cr_assert(zero(int, sgp_topology_create(doubling->nodes, 32, NULL, &counting)));
    for (uint32_t hop = 1; hop <= 5; hop++) {
        struct sgp_edge edges[32];
        for (uint32_t i = 0; i < 32; i++)
            edges[i] = (struct sgp_edge){i, (i + hop) % 32, SGP_FRACTION_DEFAULT};
        cr_assert(zero(int, sgp_topology_add_phase(counting, "hop", 1, false, edges, 32, NULL)));
    }
    cr_assert(zero(int, sgp_topology_seal(counting, NULL)));
    cr_assert(epsilon_eq(dbl, second_singular_value(counting), 0.761, 5e-4));
    sgp_topology_destroy(doubling);
    sgp_topology_destroy(counting);
}

Test(generate, static_families_have_their_edges)
{
    struct sgp_topology *t = family("ring", 3, 0);
    expect_edges(&t->phases[0], "0>1 1/2, 1>2 1/2, 2>0 1/2");
    sgp_topology_destroy(t);
    t = family("bidirectional-ring", 4, 0);
    expect_edges(&t->phases[0], "0-1 1/3, 0-3 1/3, 1-2 1/3, 2-3 1/3");
    sgp_topology_destroy(t);
    t = family("bidirectional-ring", 2, 0);
    expect_edges(&t->phases[0], "0-1 1/2");
    sgp_topology_destroy(t);
    t = family("complete", 3, 0);
    expect_edges(&t->phases[0], "0-1 1/3, 0-2 1/3, 1-2 1/3");
    sgp_topology_destroy(t);
    t = family("star", 4, 0);
    expect_edges(&t->phases[0], "0>1 1/4, 0>2 1/4, 0>3 1/4, 1>0 1/2, 2>0 1/2, 3>0 1/2");
    sgp_topology_destroy(t);
    t = family("torus", 6, 0);
    expect_edges(&t->phases[0], "0-1 1/4, 0-2 1/4, 0-3 1/4, 1-2 1/4, 1-4 1/4, 2-5 1/4, 3-4 1/4, "
                                "3-5 1/4, 4-5 1/4");
    sgp_topology_destroy(t);
    t = family("torus", 12, 0);
    cr_assert(eq(u32, t->phases[0].edge_count, 48));
    sgp_topology_destroy(t);
}

Test(generate, time_varying_families_have_their_hops)
{
    struct sgp_topology *t = family("exponential", 7, 2);
    cr_assert(eq(u32, t->phase_count, 2));
    cr_assert(eq(str, t->phases[1].name, "hop3"));
    uint32_t count;
    const struct sgp_edge *out = sgp_phase_out(&t->phases[1], 5, &count);
    cr_assert(count == 2 && out[0].target == 1 && out[1].target == 4 && out[0].fraction == 1.0 / 3);
    sgp_topology_destroy(t);
    t = family("exponential", 6, 1);
    struct sgp_topology *one = family("one-peer-exponential", 6, 0);
    cr_assert(eq(u64, t->digest, one->digest));
    sgp_topology_destroy(one);
    sgp_topology_destroy(t);
    t = family("bipartite-exponential", 6, 0);
    cr_assert(eq(u32, t->phase_count, 2));
    expect_edges(&t->phases[0], "0-1 1/2, 2-3 1/2, 4-5 1/2");
    expect_edges(&t->phases[1], "0-3 1/2, 1-4 1/2, 2-5 1/2");
    sgp_topology_destroy(t);
    t = family("bipartite-exponential", 2, 0);
    expect_edges(&t->phases[0], "0-1 1/2");
    sgp_topology_destroy(t);
}

/* Wherever the cycle leads, every pair of nodes is joined and out-degrees are as asked. */
Test(generate, random_is_a_cycle_and_more_edges_and_depends_on_the_seed_alone)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct sgp_generate_options options = {
            .family = "random", .nodes = 7, .degree = 3, .seed = seed};
        struct sgp_topology *t = generate(&options), *again = generate(&options);
        cr_assert(eq(u64, t->digest, again->digest));
        options.seed++;
        struct sgp_topology *other = generate(&options);
        cr_assert(ne(u64, t->digest, other->digest));
        bool reach[7][7] = {{false}};
        for (uint32_t i = 0; i < 7; i++) {
            uint32_t count;
            const struct sgp_edge *out = sgp_phase_out(&t->phases[0], i, &count);
            cr_assert(eq(u32, count, 3));
            for (uint32_t e = 0; e < count; e++)
                reach[i][out[e].target] = true;
        }
        for (int k = 0; k < 7; k++)
            for (int i = 0; i < 7; i++)
                for (int j = 0; j < 7; j++)
                    reach[i][j] |= reach[i][k] && reach[k][j];
        for (int i = 0; i < 49; i++)
            cr_assert(reach[i / 7][i % 7], "seed %u", (unsigned)seed);
        sgp_topology_destroy(t);
        sgp_topology_destroy(again);
        sgp_topology_destroy(other);
    }
}

/* ---- random pairs ---- */

struct matching {
    uint32_t partner[32]; /* the node itself: it rests */
    uint32_t rests;
};

/* Everybody keeps a half and gives the other to the node that gives it a half, or keeps all. */
static struct matching matching_of(const struct sgp_topology *topology, uint32_t p)
{
    const struct sgp_phase *phase = &topology->phases[p];
    struct matching matching = {.rests = 0};
    double column[32] = {0};
    for (uint32_t i = 0; i < topology->node_count; i++) {
        uint32_t count;
        const struct sgp_edge *out = sgp_phase_out(phase, i, &count);
        cr_assert(le(u32, count, 1));
        cr_assert(count == 0 || out[0].fraction == 0.5);
        matching.partner[i] = count == 0 ? i : out[0].target;
        matching.rests += count == 0;
        column[i] += count == 0 ? 1 : 0.5;
        column[matching.partner[i]] += count == 0 ? 0 : 0.5;
    }
    for (uint32_t i = 0; i < topology->node_count; i++) {
        cr_assert(eq(u32, matching.partner[matching.partner[i]], i));
        cr_assert(column[i] == 1);
    }
    return matching;
}

static void expect_pairs(const struct sgp_topology *topology, uint32_t phases)
{
    uint32_t n = topology->node_count, rests[32] = {0}, reached = 1;
    bool seen[32] = {true};
    struct matching matchings[70];
    cr_assert(eq(u32, topology->phase_count, phases));
    for (uint32_t p = 0; p < phases; p++) {
        matchings[p] = matching_of(topology, p);
        cr_assert(eq(u32, matchings[p].rests, n % 2));
        cr_assert(eq(i64, topology->phases[p].rounds, 1));
        for (uint32_t i = 0; i < n; i++)
            rests[i] += matchings[p].partner[i] == i;
    }
    for (uint32_t i = 0; i < n && n % 2 == 1; i++)
        cr_assert(rests[i] == phases / n || (phases % n > 0 && rests[i] == phases / n + 1),
            "node %u rests %u times in %u phases", i, rests[i], phases);
    for (uint32_t before = 0; before < reached;) {
        before = reached;
        for (uint32_t p = 0; p < phases; p++)
            for (uint32_t i = 0; i < n; i++)
                if (seen[i] && !seen[matchings[p].partner[i]]) {
                    seen[matchings[p].partner[i]] = true;
                    reached++;
                }
    }
    cr_assert(eq(u32, reached, n), "the phases connect %u of %u nodes", reached, n);
}

/* The first draw of two phases rarely connects many nodes, so the second draw is tested, too. */
Test(generate, pairs_are_perfect_matchings_that_connect_all_nodes)
{
    static const uint32_t sizes[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 32};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (uint64_t seed = 0; seed < 100; seed++) {
            uint32_t n = sizes[s], phases[] = {0, 2, 3, n - 1, n, 2 * n + 1};
            for (size_t p = 0; p < COUNT(phases); p++) {
                if (phases[p] == 1)
                    continue;
                struct sgp_generate_options options = {
                    .family = "pairs", .nodes = n, .phases = phases[p], .seed = seed};
                struct sgp_topology *t = generate(&options), *again = generate(&options);
                cr_assert(eq(u64, t->digest, again->digest));
                expect_pairs(t, phases[p] > 0 ? phases[p] : n >= 17 ? 16 : n % 2 == 0 ? n - 1 : n);
                sgp_topology_destroy(t);
                sgp_topology_destroy(again);
            }
        }
    struct sgp_topology *two =
        generate(&(struct sgp_generate_options){.family = "pairs", .nodes = 2, .phases = 1});
    expect_pairs(two, 1);
    sgp_topology_destroy(two);
}

Test(generate, pairs_depend_on_the_seed_and_favour_nobody)
{
    uint32_t partners[6] = {0}, rests[5] = {0};
    uint64_t before = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct sgp_generate_options options = {.family = "pairs", .nodes = 6, .seed = seed};
        struct sgp_topology *t = generate(&options);
        partners[matching_of(t, 0).partner[0]]++;
        cr_assert(ne(u64, t->digest, before));
        before = t->digest;
        sgp_topology_destroy(t);
        options.nodes = 5;
        t = generate(&options);
        for (uint32_t i = 0; i < 5; i++)
            rests[i] += matching_of(t, 0).partner[i] == i;
        sgp_topology_destroy(t);
    }
    cr_assert(zero(u32, partners[0]));
    for (uint32_t i = 0; i < 5; i++) { /* 600 each; the standard deviation is 22 */
        cr_assert(gt(u32, partners[i + 1], 512));
        cr_assert(lt(u32, partners[i + 1], 688));
        cr_assert(gt(u32, rests[i], 512));
        cr_assert(lt(u32, rests[i], 688));
    }
}

Test(generate, pairs_take_an_outer_step_after_each_phase)
{
    struct sgp_topology *t =
        generate(&(struct sgp_generate_options){.family = "pairs", .nodes = 5, .outer = true});
    for (uint32_t p = 0; p < t->phase_count; p++)
        cr_assert(t->phases[p].outer);
    sgp_topology_destroy(t);
}

Test(generate, every_family_serves_one_node_and_reads_back)
{
    uint32_t families = 0;
    for (const struct sgp_generate_family *f = sgp_generate_families; f->name; f++, families++) {
        struct sgp_topology *t = family(f->name, 1, 0);
        cr_assert(t->phase_count == 1 && t->phases[0].edge_count == 0);
        sgp_topology_destroy(t);
        for (uint32_t n = 2; n <= 16; n += 2) {
            t = generate(&(struct sgp_generate_options){.family = f->name,
                .nodes = n,
                .group = f->options & SGP_GENERATE_GROUP ? 3 : 0,
                .address = "[fd00::1]:8000+"});
            char *text = NULL, expected[32];
            size_t length = 0;
            FILE *file = open_memstream(&text, &length);
            cr_assert(zero(int, sgp_dot_write(file, t, f->summary)));
            (void)fclose(file);
            struct sgp_topology *again = NULL;
            struct sgp_error error = {0};
            cr_assert(
                zero(int, sgp_dot_parse(text, length, "-", &error, &again)), "%s", error.text);
            cr_assert(eq(u64, again->digest, t->digest));
            (void)snprintf(expected, sizeof expected, "[fd00::1]:%u", 8000 + n - 1);
            cr_assert(eq(str, again->nodes[n - 1].address, expected));
            sgp_topology_destroy(again);
            sgp_topology_destroy(t);
            free(text);
        }
    }
    cr_assert(eq(u32, families, 22));
}

/* The shipped files are what the generator makes, with addresses, and say what they are good for. */
Test(generate, shipped_files_are_the_families)
{
    static const struct sgp_generate_options shipped[] = {
        {.family = "ring", .nodes = 4},
        {.family = "bidirectional-ring", .nodes = 5},
        {.family = "complete", .nodes = 4},
        {.family = "star", .nodes = 5},
        {.family = "torus", .nodes = 9},
        {.family = "one-peer-exponential", .nodes = 8},
        {.family = "exponential", .nodes = 9, .peers = 2},
        {.family = "bipartite-exponential", .nodes = 8},
        {.family = "base", .nodes = 6},
        {.family = "random", .nodes = 7, .seed = 1},
        {.family = "pairs", .nodes = 5, .seed = 1},
        {.family = "elastic", .nodes = 5},
        {.family = "all-reduce-ring", .nodes = 4},
        {.family = "all-reduce-direct", .nodes = 4},
        {.family = "all-reduce-doubling", .nodes = 5},
        {.family = "all-reduce-halving", .nodes = 8},
        {.family = "all-reduce-blocks", .nodes = 6},
        {.family = "all-reduce-tree", .nodes = 6},
        {.family = "all-reduce-groups", .nodes = 8, .group = 4},
        {.family = "all-reduce-hubs", .nodes = 6, .hubs = 2, .relays = true},
        {.family = "owner", .nodes = 6, .backup = 1},
    };
    for (size_t i = 0; i < COUNT(shipped); i++) {
        char path[512];
        (void)snprintf(
            path, sizeof path, "%s/topologies/%s.dot", SGP_SOURCE_ROOT, shipped[i].family);
        struct sgp_topology *made = generate(&shipped[i]), *read = NULL;
        struct sgp_error error = {0};
        cr_assert(zero(int, sgp_dot_read_path(path, &error, &read)), "%s", error.text);
        cr_assert(eq(u64, read->digest, made->digest), "%s", path);
        cr_assert(eq(str, read->nodes[0].address, "10.0.0.10:7311"));
        sgp_topology_destroy(read);
        sgp_topology_destroy(made);
    }
}

Test(generate, every_shipped_file_reads_and_begins_with_a_comment)
{
    glob_t files;
    cr_assert(zero(int, glob(SGP_SOURCE_ROOT "/topologies/*.dot", 0, NULL, &files)));
    cr_assert(eq(sz, files.gl_pathc, 26));
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct sgp_topology *topology = NULL;
        struct sgp_error error = {0};
        cr_assert(
            zero(int, sgp_dot_read_path(files.gl_pathv[i], &error, &topology)), "%s", error.text);
        sgp_topology_destroy(topology);
        FILE *file = fopen(files.gl_pathv[i], "r");
        char start[4] = "";
        cr_assert(eq(sz, fread(start, 1, 3, file), 3));
        cr_assert(eq(str, start, "// "));
        (void)fclose(file);
    }
    globfree(&files);
}

/* Which the family behind it does not know. */
Test(generate, a_prelude_has_options_of_its_own)
{
    struct sgp_topology *t = generate(&(struct sgp_generate_options){.family = "base",
        .nodes = 6,
        .prelude = 3,
        .prelude_family = "all-reduce-groups",
        .group = 2});
    cr_assert(eq(u32, t->phases[0].edge_count, 3), "the first of each three groups collects");
    sgp_topology_destroy(t);
    t = generate(&(struct sgp_generate_options){.family = "ring",
        .nodes = 6,
        .prelude = 3,
        .prelude_family = "all-reduce-hubs",
        .hubs = 2});
    cr_assert(eq(u32, t->slices, 2));
    sgp_topology_destroy(t);
}

Test(generate, what_cannot_be_is_refused_with_the_reason)
{
    refused(&(struct sgp_generate_options){.family = "mesh", .nodes = 4}, SGP_E_TOPOLOGY,
        "there is no family \"mesh\"; families are ring, bidirectional-ring, complete, star, "
        "torus, "
        "one-peer-exponential, exponential, bipartite-exponential, base, random, pairs, elastic, "
        "all-reduce-ring, all-reduce-direct, all-reduce-doubling, all-reduce-halving, "
        "all-reduce-blocks, all-reduce-tree, all-reduce-groups, all-reduce-hubs, owner, "
        "token");
    refused(&(struct sgp_generate_options){.family = "ring"}, SGP_E_TOPOLOGY,
        "0 nodes cannot be generated; take 1 to 65536");
    refused(&(struct sgp_generate_options){.family = "ring", .nodes = 70000}, SGP_E_LIMIT,
        "70000 nodes cannot be generated; take 1 to 65536");
    refused(&(struct sgp_generate_options){.family = "exponential", .nodes = 8, .peers = 3},
        SGP_E_TOPOLOGY,
        "3 peers of 8 nodes do not work: the hop 2 * 4 is 0 mod 8, the node itself; "
        "take another --peers or number of nodes, or the family base, which fits any");
    refused(&(struct sgp_generate_options){.family = "exponential", .nodes = 3, .peers = 5},
        SGP_E_TOPOLOGY,
        "5 peers of 3 nodes do not work: the hop 3 * 1 is 0 mod 3, the node itself; "
        "take another --peers or number of nodes, or the family base, which fits any");
    refused(&(struct sgp_generate_options){.family = "bipartite-exponential", .nodes = 5},
        SGP_E_TOPOLOGY,
        "5 nodes cannot be paired, even with odd; take an even number, "
        "or the family base, which pairs any number");
    refused(&(struct sgp_generate_options){.family = "torus", .nodes = 7}, SGP_E_TOPOLOGY,
        "7 nodes make no grid of two rows or more; take a number that is not prime, "
        "or the family bidirectional-ring");
    refused(&(struct sgp_generate_options){.family = "random", .nodes = 4, .degree = 4},
        SGP_E_TOPOLOGY, "a node cannot give to 4 of 3 others; take a --degree of at most 3");
    refused(&(struct sgp_generate_options){.family = "pairs", .nodes = 3, .phases = 1},
        SGP_E_TOPOLOGY, "one phase of pairs does not connect 3 nodes; take --phases 2 or more");
    refused(&(struct sgp_generate_options){.family = "pairs", .nodes = 4, .phases = 4097},
        SGP_E_LIMIT, "4097 phases are too many; the limit is 4096");
    refused(&(struct sgp_generate_options){.family = "pairs", .nodes = 65536, .phases = 65},
        SGP_E_LIMIT, "65 phases of 65536 nodes have too many edges; take --phases 64 or fewer");
    refused(&(struct sgp_generate_options){.family = "complete", .nodes = 65536}, SGP_E_LIMIT,
        "65536 nodes of this family have too many edges; the limit is 4194304, "
        "so take a sparser family");
}

Test(generate, what_a_family_of_all_reduce_cannot_be_is_refused_with_the_reason)
{
    refused(&(struct sgp_generate_options){.family = "all-reduce-groups", .nodes = 6},
        SGP_E_TOPOLOGY,
        "all-reduce-groups wants to know how large a group is; say --group M, 2 or more");
    refused(&(struct sgp_generate_options){.family = "ring", .nodes = 6, .pieces = 2},
        SGP_E_TOPOLOGY,
        "the family ring knows no --pieces; leave it out, or take one of all-reduce-*");
    refused(&(struct sgp_generate_options){.family = "all-reduce-ring", .nodes = 100, .pieces = 3},
        SGP_E_LIMIT,
        "3 pieces of 100 parts are 300 parts, and 256 are the limit; take fewer pieces");
    refused(&(struct sgp_generate_options){.family = "ring", .nodes = 6, .group = 3},
        SGP_E_TOPOLOGY,
        "the family ring knows no --group; leave it out, or take all-reduce-groups");
    refused(&(struct sgp_generate_options){.family = "ring", .nodes = 6, .hubs = 3}, SGP_E_TOPOLOGY,
        "the family ring knows no --hubs; leave it out, or take all-reduce-hubs");
    refused(&(struct sgp_generate_options){.family = "owner", .nodes = 6, .relays = true},
        SGP_E_TOPOLOGY,
        "the family owner knows no --relays; leave it out, or take all-reduce-hubs");
    refused(&(struct sgp_generate_options){.family = "all-reduce-hubs", .nodes = 4, .hubs = 5},
        SGP_E_TOPOLOGY, "4 nodes cannot have 5 hubs; take at most 4");
    refused(
        &(struct sgp_generate_options){
            .family = "all-reduce-hubs", .nodes = 4, .hubs = 4, .relays = true},
        SGP_E_TOPOLOGY,
        "4 nodes cannot have 4 hubs that do not train, and others that do; take at most 3");
    refused(&(struct sgp_generate_options){.family = "all-reduce-hubs", .nodes = 300, .hubs = 257},
        SGP_E_LIMIT, "257 hubs want as many parts, and 256 are the limit");
    refused(&(struct sgp_generate_options){.family = "ring", .nodes = 6, .fraction = 0.5},
        SGP_E_TOPOLOGY, "the family ring knows no --fraction; leave it out, or take elastic");
    refused(&(struct sgp_generate_options){.family = "elastic", .nodes = 5, .fraction = 0.25},
        SGP_E_TOPOLOGY,
        "with --fraction 0.25 the relay would give 4 nodes all that it has, or more; take less "
        "than "
        "0.25");
    refused(&(struct sgp_generate_options){.family = "all-reduce-ring", .nodes = 300}, SGP_E_LIMIT,
        "300 nodes of all-reduce-ring want as many parts, and 256 are the limit; take "
        "all-reduce-doubling, all-reduce-tree or all-reduce-groups");
    refused(
        &(struct sgp_generate_options){
            .family = "base", .nodes = 6, .prelude = 3, .prelude_family = "ring"},
        SGP_E_TOPOLOGY,
        "ring does not average exactly, and is no prelude; take one of the families all-reduce-*");
}

Test(generate, options_that_do_not_belong_are_refused)
{
    refused(&(struct sgp_generate_options){.family = "ring", .nodes = 4, .peers = 2},
        SGP_E_TOPOLOGY,
        "the family ring knows no --peers; leave it out, or take exponential or base");
    refused(&(struct sgp_generate_options){.family = "ring", .nodes = 4, .degree = 2},
        SGP_E_TOPOLOGY, "the family ring knows no --degree; leave it out, or take random");
    refused(&(struct sgp_generate_options){.family = "random", .nodes = 4, .phases = 2},
        SGP_E_TOPOLOGY, "the family random knows no --phases; leave it out, or take pairs");
    refused(&(struct sgp_generate_options){.family = "ring", .nodes = 4, .address = "h:70"},
        SGP_E_TOPOLOGY,
        "--address \"h:70\" does not end in '+'; write HOST:PORT+, and node i gets PORT + i");
    refused(&(struct sgp_generate_options){.family = "ring", .nodes = 4, .address = "h:65534+"},
        SGP_E_TOPOLOGY,
        "4 nodes from port 65534 on would go beyond 65535; take a lower first port");
    refused(&(struct sgp_generate_options){.family = "ring", .nodes = 4, .address = "h:x+"},
        SGP_E_TOPOLOGY, "address \"h:x\" has a bad port; a port is a number from 1 to 65535");
}
