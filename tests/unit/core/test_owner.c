/* SPDX-License-Identifier: Apache-2.0 */
/* Files with an owner: read, written, analysed, and what they must be. */
#include "sgp/analysis.h"
#include "sgp/dot.h"
#include "sgp/generate.h"
#include "sgp/method.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int read_text(const char *text, struct sgp_error *error, struct sgp_topology **ret_topology)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    int code = sgp_dot_read(file, "t", error, ret_topology);
    (void)fclose(file);
    return code;
}

static void refused(const char *text, const char *message)
{
    struct sgp_error error = {0};
    struct sgp_topology *topology = NULL;
    cr_expect(eq(int, read_text(text, &error, &topology), SGP_E_TOPOLOGY), "%s", message);
    cr_expect(eq(str, error.text, (char *)(uintptr_t)message));
}

Test(owner_file, an_owner_alone_begins_with_weight)
{
    struct sgp_error error = {0};
    struct sgp_topology *topology = NULL;
    const char *text =
        "digraph g { backup=1; s [train=false, owns=all]; s -> {a b c}; {a b c} -> s; }";
    cr_assert(zero(int, read_text(text, &error, &topology)), "%s", error.text);
    cr_assert(eq(u32, topology->owner, (uint32_t)sgp_topology_find(topology, "s")));
    cr_assert(eq(u32, topology->phases[0].backup, 1));
    for (uint32_t i = 0; i < 4; i++) {
        bool owner = i == topology->owner;
        cr_assert(eq(dbl, sgp_topology_starts(topology, i), owner ? 1.0 : 0.0));
        cr_assert(eq(int, sgp_topology_has_copy(topology, i), !owner));
    }
    cr_assert(not(sgp_topology_has_exact(topology)));
    sgp_topology_destroy(topology);
}

/* What is generated so, written and read again; its digest stays. */
static struct sgp_topology *generate_and_read(const struct sgp_generate_options *options)
{
    struct sgp_topology *made = NULL, *again = NULL;
    struct sgp_error error = {0};
    char *text = NULL;
    size_t length = 0;
    cr_assert(zero(int, sgp_generate(options, &error, &made)), "%s", error.text);
    FILE *file = open_memstream(&text, &length);
    cr_assert(zero(int, sgp_dot_write(file, made, "")));
    (void)fclose(file);
    cr_assert(zero(int, read_text(text, &error, &again)), "%s", error.text);
    cr_assert(eq(u64, again->digest, made->digest), "%s", text);
    free(text);
    sgp_topology_destroy(made);
    return again;
}

Test(owner_file, what_is_generated_reads_back_alike_and_backup_changes_the_digest)
{
    uint64_t digests[3];
    for (uint32_t backup = 0; backup < 3; backup++) {
        struct sgp_generate_options options = {.family = "owner", .nodes = 5, .backup = backup};
        struct sgp_topology *again = generate_and_read(&options);
        cr_assert(eq(u32, again->owner, 0));
        digests[backup] = again->digest;
        struct sgp_analysis analysis;
        cr_assert(zero(int, sgp_analyse(again, &analysis)));
        cr_assert(analysis.owner && !analysis.diverges && !analysis.exact);
        cr_assert(eq(u32, analysis.backup, backup));
        cr_assert(zero(u32, analysis.warning_count), "%s", analysis.warnings[0]);
        cr_assert(eq(dbl, analysis.vectors_sent_most, 4));
        cr_assert(eq(dbl, analysis.contraction_per_cycle, 0));
        sgp_topology_destroy(again);
    }
    cr_assert(ne(u64, digests[0], digests[1]));
    cr_assert(ne(u64, digests[1], digests[2]));
}

Test(owner_file, what_is_said_of_staleness_reads_back_alike)
{
    static const struct sgp_staleness said[] = {{.damping = SGP_DAMPING_NONE},
        {.damping = SGP_DAMPING_DIVIDE}, {.damping = SGP_DAMPING_NONE, .most = 3},
        {.damping = SGP_DAMPING_COMPENSATE, .compensation = 0.1},
        {.damping = SGP_DAMPING_COMPENSATE, .compensation = 1.0 / 3, .most = 8},
        {.damping = SGP_DAMPING_COMPENSATE, .compensation = 1e-7}};
    uint64_t digests[6];
    for (uint32_t i = 0; i < 6; i++) {
        struct sgp_generate_options options = {.family = "owner", .nodes = 5, .staleness = said[i]};
        struct sgp_topology *again = generate_and_read(&options);
        const struct sgp_staleness *read = &again->phases[0].staleness;
        cr_assert(eq(int, (int)read->damping, (int)said[i].damping));
        cr_assert(eq(dbl, read->compensation, said[i].compensation));
        cr_assert(eq(u32, read->most, said[i].most));
        digests[i] = again->digest;
        for (uint32_t j = 0; j < i; j++)
            cr_assert(ne(u64, digests[i], digests[j]));
        sgp_topology_destroy(again);
    }
}

Test(owner_file, what_cannot_be_is_refused_with_the_line)
{
    refused("digraph g {\n s [train=false, owns=some];\n s -> a; a -> s; }",
        "t:2: node s: owns=\"some\" names no parts; write owns=all for the whole vector, a part as "
        "owns=0, or a "
        "range as owns=\"0-3\"; at most 256 parts");
    refused("digraph g { s [train=false, owns=all]; r [train=false, owns=all]; s -> a; a -> s; }",
        "t:1: nodes s and r both say owns=all; the vector has one owner, or write slices=N and "
        "owns=Q");
    refused("digraph g { s [train=false, owns=all]; r [train=false]; s -> {a r}; {a r} -> s; }",
        "t:1: node r neither trains nor owns anything; leave it out, or drop its train=false");
    refused("digraph g { s [train=false, owns=all]; a [starts=1]; s -> a; a -> s; }",
        "t:1: node a says starts, but weight is with who owns; leave it out");
    refused("digraph g { s [train=false, owns=all]; s -> {a b}; {a b} -> s; a -> b; }",
        "t:1: edge a -> b touches no owner, so nothing would go over it; leave it out");
    refused("digraph g { s [train=false, owns=all]; s -> a; a -> s [fraction=1]; }",
        "t:1: edge a -> s says fraction or slice, but what goes over it is what its owner owns; "
        "leave it out");
    refused("digraph g { s [train=false, owns=all]; s -> {a b}; a -> s; }",
        "t:1: node b needs an edge to the owner s, for updates, and one from it, for copies");
    refused(
        "digraph g { s [train=false, owns=all]; s -> a; a -> s; }\ndigraph h { s -> a; a -> s; }",
        "t:2: 2 digraphs, but updates and copies go over the same edges in every round; write one");
    refused("digraph g { outer=true; token=dynamic; s [owns=all]; s -> a; a -> s; }",
        "t:1: digraph g says outer, and a token has no step that all wait for; leave it out");
    refused("digraph g { backup=2; s [train=false, owns=all]; s -> {a b}; {a b} -> s; }",
        "t:1: digraph g: backup=2 of 2 workers leaves none to wait for; take at most 1");
    refused("digraph g { backup=1; staleness_max=2; s [train=false, owns=all]; s -> {a b}; {a b} "
            "-> s; }",
        "t:1: digraph g says backup, for steps that wait, and staleness, for updates that do not; "
        "leave one of them out");
    refused("digraph g { staleness=compensate; s [train=false, owns=all]; s -> a; a -> s; }",
        "t:1: digraph g compensates by how much; write compensation=C, lambda over the learning "
        "rate");
    refused("digraph g { compensation=2; s [train=false, owns=all]; s -> a; a -> s; }",
        "t:1: digraph g says compensation, and does not compensate; write staleness=compensate");
    refused("digraph g {\n staleness=halve; s [train=false, owns=all]; s -> a; a -> s; }",
        "t:2: digraph g: staleness=\"halve\" is not to be had; write none, divide or compensate");
    static const char *const bad[] = {"0", "-1", "1e10", "nan", "inf", "0x1", "1e", "2 "};
    for (uint32_t i = 0; i < 8; i++) {
        char text[256], message[256];
        (void)snprintf(text, sizeof text,
            "digraph g { staleness=compensate; compensation=\"%s\"; s [train=false, owns=all]; "
            "s -> a; a -> s; }",
            bad[i]);
        (void)snprintf(message, sizeof message,
            "t:1: digraph g: compensation=\"%s\" is not usable; write a number above 0, and at "
            "most 1e9",
            bad[i]);
        refused(text, message);
    }
    refused("digraph g { staleness_max=0; s [train=false, owns=all]; s -> a; a -> s; }",
        "t:1: digraph g: staleness_max=\"0\" is not usable; write a whole number from 1 to 65536");
    refused("digraph g { staleness=divide; a -> b; b -> a; }",
        "t:1: digraph g speaks of staleness, in a file in which no node owns the vector; write "
        "owns=all at one");
    refused("digraph g { backup=1; a -> b; b -> a; }",
        "t:1: digraph g: backup=1 is for a file in which a node owns the vector; write owns=all at "
        "one");
}

/* ---- several owners ---- */

Test(owner_file, each_owner_of_a_part_begins_with_weight_and_its_edges_are_of_that)
{
    for (uint32_t owners = 2; owners < 5; owners++) {
        struct sgp_generate_options options = {
            .family = "owner", .nodes = 7, .owners = owners, .backup = 1};
        struct sgp_topology *again = generate_and_read(&options);
        uint64_t next = 0;
        cr_assert(eq(u32, again->owners, owners));
        cr_assert(eq(u32, again->slices, owners));
        for (uint32_t i = 0; i < 7; i++) {
            bool owner = i < owners;
            cr_assert(eq(dbl, sgp_topology_starts(again, i), owner ? 1.0 : 0.0));
            cr_assert(eq(int, sgp_topology_has_copy(again, i), !owner));
            cr_assert(eq(int, sgp_topology_owns_parts(again, i), owner));
            struct sgp_slice owned = sgp_topology_owned(again, i, 101);
            cr_assert(eq(u64, owner ? owned.first : next, next));
            next += owned.count;
            uint32_t count;
            const struct sgp_edge *edges = sgp_phase_out(&again->phases[0], i, &count);
            cr_assert(eq(u32, count, owner ? 7 - owners : owners));
            for (uint32_t e = 0; e < count; e++)
                cr_assert(eq(u32, edges[e].part, owner ? i : edges[e].target));
        }
        cr_assert(eq(u64, next, 101), "every value has one owner");
        struct sgp_analysis analysis;
        cr_assert(zero(int, sgp_analyse(again, &analysis)));
        cr_assert(analysis.owner && !analysis.exact && analysis.warning_count == 0);
        cr_assert(eq(dbl, analysis.vectors_sent_most, fmax(1, (7.0 - owners) / owners)));
        cr_assert(zero(int, sgp_method_suit(sgp_method_find("backup"), again, NULL, NULL)));
        cr_assert(
            eq(int, sgp_method_suit(sgp_method_find("sgp"), again, NULL, NULL), SGP_E_TOPOLOGY));
        sgp_topology_destroy(again);
    }
}

Test(owner_file, parts_may_be_unlike_and_their_owners_change_the_digest)
{
    static const char *const texts[] = {"digraph g { slices=3; s [train=false, owns=\"0-1\"]; r "
                                        "[train=false, owns=2]; {s r} -> {a b}; {a b} -> {s r}; }",
        "digraph g { slices=3; s [train=false, owns=0]; r [train=false, owns=\"1-2\"]; {s r} -> {a "
        "b}; {a b} -> {s r}; }"};
    uint64_t digests[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct sgp_error error = {0};
        struct sgp_topology *topology = NULL;
        cr_assert(zero(int, read_text(texts[i], &error, &topology)), "%s", error.text);
        cr_assert(eq(u64, sgp_topology_owned(topology, 0, 30).count, i == 0 ? 20 : 10));
        cr_assert(eq(u64, sgp_topology_owned(topology, 1, 30).first, i == 0 ? 20 : 10));
        digests[i] = topology->digest;
        sgp_topology_destroy(topology);
    }
    cr_assert(ne(u64, digests[0], digests[1]));
}

Test(owner_file, the_line_is_that_of_the_node_or_the_edge)
{
    refused("digraph g { slices=2;\n s [train=false, owns=0];\n r [train=false, owns=0];\n {s r} "
            "-> a; a -> {s r}; }",
        "t:3: nodes s and r both own part 0; each part has one owner");
    refused("digraph g { slices=2;\n s [train=false, owns=0];\n r [train=false, owns=2];\n {s r} "
            "-> a; a -> {s r}; }",
        "t:3: node r owns part 2; with slices=2 parts are 0 to 1");
    refused("digraph g { slices=2;\n s [train=false, owns=0];\n r [train=false, owns=1];\n {s r} "
            "-> a; a -> {s r};\n s -> r; }",
        "t:5: edge s -> r joins two owners, so nothing would go over it; leave it out");
    refused("digraph g {\n s [train=false, owns=all];\n a;\n b; s -> {a b};\n a -> s; }",
        "t:4: node b needs an edge to the owner s, for updates, and one from it, for copies");
}

/* As many nodes as there may be, each with an edge both ways: looking at them all is no matter of their square. */
Test(owner_file, a_large_star_is_looked_at_in_no_time)
{
    struct sgp_generate_options options = {.family = "owner", .nodes = SGP_NODES_MAX, .owners = 8};
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_generate(&options, &error, &topology)), "%s", error.text);
    cr_assert(eq(u32, topology->owners, 8));
    sgp_topology_destroy(topology);
}

Test(owner_file, what_several_owners_cannot_be_is_refused)
{
    refused("digraph g { slices=2; s [train=false, owns=all]; s -> a; a -> s; }",
        "t:1: digraph g says slices, and an owner of all parts; leave it out, or write owns=Q at "
        "each of several");
    refused("digraph g { slices=2; s [train=false, owns=0]; r [train=false, owns=0]; {s r} -> a; a "
            "-> {s r}; }",
        "t:1: nodes s and r both own part 0; each part has one owner");
    refused("digraph g { slices=2; s [train=false, owns=0]; r [train=false, owns=all]; {s r} -> a; "
            "a -> {s r}; }",
        "t:1: node s owns a part, and node r says owns=all; each part has one owner");
    refused("digraph g { slices=3; s [train=false, owns=0]; r [train=false, owns=2]; {s r} -> a; a "
            "-> {s r}; }",
        "t:1: nobody owns part 1 of 3; write owns=1 at a node");
    refused("digraph g { slices=2; s [train=false, owns=0]; r [train=false, owns=2]; {s r} -> a; a "
            "-> {s r}; }",
        "t:1: node r owns part 2; with slices=2 parts are 0 to 1");
    refused(
        "digraph g { s [train=false, owns=0]; r [train=false, owns=1]; {s r} -> a; a -> {s r}; }",
        "t:1: node r owns part 1, but the digraph does not say how many parts there are; write "
        "slices=N in it, or owns=all");
    refused("digraph g { slices=2; s [train=false, owns=0]; r [train=false, owns=1]; {s r} -> a; a "
            "-> {s r}; s -> r; }",
        "t:1: edge s -> r joins two owners, so nothing would go over it; leave it out");
    refused("digraph g { slices=2; s [train=false, owns=0]; r [train=false, owns=1]; {s r} -> a; a "
            "-> s; }",
        "t:1: node a needs an edge to the owner r, for updates, and one from it, for copies");
    refused(
        "digraph g { slices=2; backup=2; s [train=false, owns=0]; r [train=false, owns=1]; {s r} "
        "-> {a b}; {a b} -> {s r}; }",
        "t:1: digraph g: backup=2 of 2 workers leaves none to wait for; take at most 1");
    refused("digraph g { token=dynamic; slices=2; a [owns=0]; b [owns=1]; a -> b; b -> a; }",
        "t:1: node a owns a part, but a token is of the whole vector; write owns=all");
}

/* ---- where owning is a token ---- */

Test(owner_file, a_token_reads_back_alike_and_changes_the_digest)
{
    const struct sgp_delay said[] = {{.token = SGP_TOKEN_DYNAMIC}, {.token = SGP_TOKEN_FIXED},
        {.token = SGP_TOKEN_DYNAMIC, .mean = true}, {.token = SGP_TOKEN_DYNAMIC, .most = 3}};
    static const uint32_t most[] = {SGP_DELAY_USUAL, 1, SGP_DELAY_USUAL, 3};
    uint64_t digests[4];
    for (uint32_t i = 0; i < 4; i++) {
        struct sgp_generate_options options = {.family = "token", .nodes = 5, .delay = said[i]};
        struct sgp_topology *again = generate_and_read(&options);
        cr_assert(eq(int, (int)again->phases[0].delay.token, (int)said[i].token));
        cr_assert(eq(u32, sgp_topology_delay_most(again), most[i]));
        cr_assert(sgp_topology_has_token(again) && again->phases[0].delay.mean == said[i].mean);
        for (uint32_t n = 0; n < 5; n++) {
            cr_assert(eq(dbl, sgp_topology_starts(again, n), n == 0));
            cr_assert(sgp_topology_has_copy(again, n));
        }
        digests[i] = again->digest;
        for (uint32_t j = 0; j < i; j++)
            cr_assert(ne(u64, digests[i], digests[j]));
        sgp_topology_destroy(again);
    }
}

Test(owner_file, what_a_token_cannot_be_is_refused)
{
    refused("digraph g {\n token=round; a [owns=all]; a -> b; b -> a; }",
        "t:2: digraph g: token=\"round\" is not to be had; write none, dynamic or fixed");
    refused("digraph g { token=dynamic; a -> b; b -> a; }",
        "t:1: digraph g says token=dynamic, but nobody has it to begin with; write owns=all at a "
        "node");
    refused("digraph g { token=dynamic; a [owns=all, train=false]; a -> b; b -> a; }",
        "t:1: node a does not train, but where owning is a token every node does; drop its "
        "train=false");
    refused("digraph g { token=dynamic; a [owns=all]; b; c; a -> b; b -> a; b -> c; c -> b; }",
        "t:1: node c has no edge to a, the next in the order of the file, to which it hands the "
        "token; write c -> a");
    refused("digraph g { delay_max=2; s [train=false, owns=all]; s -> a; a -> s; }",
        "t:1: digraph g says delay_max, which is for a token; write token=dynamic, or leave it "
        "out");
    refused("digraph g { token=fixed; delay_mean=true; a [owns=all]; a -> b; b -> a; }",
        "t:1: digraph g says delay_mean, but with token=fixed each takes one step between two "
        "arrivals of the token; leave it out, or write token=dynamic");
    refused("digraph g { token=fixed; backup=1; a [owns=all]; a -> b; b -> a; }",
        "t:1: digraph g says backup, for an owner that stays, and token, for one that does not; "
        "leave one of them out");
}

Test(owner_file, backup_workers_are_for_steps_that_wait_and_staleness_for_those_that_do_not)
{
    for (uint32_t waits = 0; waits < 2; waits++) {
        for (uint32_t backup = 0; backup < 2; backup++) {
            struct sgp_generate_options options = {
                .family = "owner", .nodes = 4, .backup = backup, .staleness.most = !backup};
            struct sgp_topology *topology = NULL;
            struct sgp_error error = {0};
            cr_assert(zero(int, sgp_generate(&options, &error, &topology)));
            const struct sgp_method *method = sgp_method_find(waits ? "backup" : "downpour");
            cr_expect(eq(int, sgp_method_suit(method, topology, &error, NULL),
                waits == backup ? 0 : SGP_E_TOPOLOGY));
            sgp_topology_destroy(topology);
        }
    }
}

Test(owner_file, outer_steps_are_for_owners_that_wait)
{
    struct sgp_generate_options options = {.family = "owner", .nodes = 4, .outer = true};
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_generate(&options, &error, &topology)), "%s", error.text);
    cr_assert(zero(int, sgp_method_suit(sgp_method_find("backup"), topology, &error, NULL)));
    const struct sgp_method *downpour = sgp_method_find("downpour");
    cr_assert(eq(int, sgp_method_suit(downpour, topology, &error, NULL), SGP_E_TOPOLOGY));
    cr_assert(eq(str, error.text,
        (char *)"digraph owner says outer, but with algorithm downpour each update is a step of "
                "its "
                "own; leave it out, or choose backup"));
    sgp_topology_destroy(topology);
}

Test(owner_file, only_a_method_that_has_an_owner_takes_it)
{
    const struct sgp_method *method;
    for (uint32_t i = 0; (method = sgp_method_at(i)) != NULL; i++) {
        static const char *const families[] = {"bidirectional-ring", "owner", "token"};
        uint32_t wanted = method->wants == SGP_WANTS_OWNER   ? 1
                          : method->wants == SGP_WANTS_TOKEN ? 2
                                                             : 0;
        for (uint32_t family = 0; family < 3; family++) {
            struct sgp_generate_options options = {.family = families[family], .nodes = 4};
            struct sgp_topology *topology = NULL;
            struct sgp_error error = {0};
            cr_assert(zero(int, sgp_generate(&options, &error, &topology)));
            bool suits = wanted == family;
            cr_expect(eq(int, sgp_method_suit(method, topology, &error, NULL),
                          suits ? 0 : SGP_E_TOPOLOGY),
                "%s", method->name);
            sgp_topology_destroy(topology);
        }
    }
}
