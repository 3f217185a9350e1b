/* SPDX-License-Identifier: Apache-2.0 */
/* Owners that train: what of the file becomes two nodes, by which edges, who speaks as them, and what is written back. */
#include "sgp/analysis.h"
#include "sgp/dot.h"
#include "sgp/generate.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_A "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define KEY_B "SHA256:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA"

static struct sgp_topology *read_text(const char *text)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(
        zero(int, sgp_dot_parse(text, strlen(text), "t", &error, &topology)), "%s", error.text);
    return topology;
}

static void refused(const char *text, const char *message)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_expect(ne(int, sgp_dot_parse(text, strlen(text), "t", &error, &topology), 0), "%s", text);
    cr_expect(eq(str, error.text, (char *)message));
}

/* Written, and read back. */
static struct sgp_topology *again(const struct sgp_topology *topology, char **ret_text)
{
    size_t bytes;
    FILE *file = open_memstream(ret_text, &bytes);
    cr_assert_not_null(file);
    cr_assert(zero(int, sgp_dot_write(file, topology, NULL)));
    cr_assert(zero(int, fclose(file)));
    return read_text(*ret_text);
}

static bool gives(const struct sgp_topology *topology, const char *source, const char *target)
{
    int64_t from = sgp_topology_find(topology, source), to = sgp_topology_find(topology, target);
    cr_assert(from >= 0 && to >= 0, "%s -> %s", source, target);
    return sgp_phase_gives(&topology->phases[0], (uint32_t)from, (uint32_t)to);
}

/* a and b own and train, c trains, r owns. */
static const char mixed[] = "digraph g {\n slices=3;\n"
                            " a [owns=0, address=\"h:1\", key=\"" KEY_A "\"];\n"
                            " b [owns=1, address=\"h:2\"];\n"
                            " c [address=\"h:3\"];\n"
                            " r [owns=2, train=false, address=\"h:4\", key=\"" KEY_B "\"];\n"
                            " a -> {c r}; c -> {a r}; r -> {a c};\n}\n";

Test(colocated, an_owner_that_trains_is_two_nodes)
{
    struct sgp_topology *t =
        read_text("digraph g { slices=2; a [owns=0, address=\"h:1\"]; b [owns=1, address=\"h:2\"]; "
                  "c [address=\"h:3\"]; a -> {b c}; b -> {a c}; c -> {a b}; }");
    cr_assert(eq(u32, t->node_count, 5));
    cr_assert(eq(u32, t->owners, 2));
    cr_assert(eq(u32, sgp_topology_trainers(t), 3));
    static const char *const names[] = {"a", "b", "c", "a.owner", "b.owner"};
    static const char *const addresses[] = {"none", "none", "h:3", "h:1", "h:2"};
    for (uint32_t i = 0; i < 5; i++) {
        const struct sgp_topology_node *node = &t->nodes[i];
        cr_assert(eq(str, (char *)node->name, (char *)names[i]));
        cr_assert(eq(str, (char *)node->address, (char *)addresses[i]));
        cr_assert(eq(int, node->relay, i > 2));
        cr_assert(eq(int, node->owns, i > 2));
        cr_assert(eq(int, node->colocated, i > 2));
        cr_assert(eq(u32, sgp_topology_machine(t, i), i % 3));
        cr_assert(eq(u32, sgp_topology_colocated_owner(t, i), i < 2 ? i + 3 : SGP_NODE_NONE));
        cr_assert(eq(dbl, sgp_topology_starts(t, i), i > 2 ? 1 : 0));
    }
    for (uint32_t i = 0; i < 5; i++)
        for (uint32_t j = 0; j < 5; j++) /* stars around the owners, and nothing else */
            cr_assert(eq(int, gives(t, names[i], names[j]), (i > 2) != (j > 2)));
    cr_assert(eq(u64, sgp_topology_owned(t, 4, 11).first, 6));
    sgp_topology_destroy(t);
}

Test(colocated, it_may_stand_among_owners_that_do_not_train)
{
    struct sgp_topology *t = read_text("digraph g { slices=2; a [owns=0]; r [owns=1, train=false]; "
                                       "c; a -> {r c}; r -> {a c}; c -> {a r}; }");
    cr_assert(eq(u32, t->node_count, 4));
    cr_assert(gives(t, "a", "r") && gives(t, "r", "a"));
    cr_assert(zero(int, gives(t, "a.owner", "r")));
    cr_assert(zero(int, gives(t, "r", "a.owner")));
    cr_assert(gives(t, "a.owner", "c") && gives(t, "c", "a.owner"));
    sgp_topology_destroy(t);
}

Test(colocated, one_alone_works_for_itself)
{
    struct sgp_topology *t = read_text("digraph g { a [owns=all]; }");
    cr_assert(eq(u32, t->node_count, 2));
    cr_assert(gives(t, "a", "a.owner") && gives(t, "a.owner", "a"));
    sgp_topology_destroy(t);
}

Test(colocated, what_is_written_is_the_file_and_has_its_digest)
{
    for (uint32_t nodes = 1; nodes < 7; nodes++)
        for (uint32_t owners = 1; owners <= nodes; owners++) {
            struct sgp_generate_options options = {.family = "owner",
                .nodes = nodes,
                .owners = owners,
                .members = true,
                .backup = nodes > 2};
            struct sgp_topology *made = NULL;
            struct sgp_error error = {0};
            char *text = NULL;
            cr_assert(zero(int, sgp_generate(&options, &error, &made)), "%s", error.text);
            cr_assert(zero(int, sgp_topology_place(made, "h:100+", &error)), "%s", error.text);
            struct sgp_topology *read = again(made, &text);
            cr_assert_null(strstr(text, ".owner"), "%s", text);
            cr_assert(eq(u32, read->node_count, nodes + owners));
            cr_assert(eq(u64, read->digest, made->digest));
            for (uint32_t i = 0; i < nodes; i++) {
                char address[32];
                (void)snprintf(address, sizeof address, "h:%u", 100 + i);
                uint32_t owner = sgp_topology_colocated_owner(read, i);
                cr_assert(eq(str, read->nodes[i < owners ? owner : i].address, address));
                cr_assert(eq(int, i < owners, owner != SGP_NODE_NONE));
            }
            struct sgp_analysis analysis;
            cr_assert(zero(int, sgp_analyse(read, &analysis)));
            cr_assert(zero(u32, analysis.warning_count), "%s", analysis.warnings[0]);
            /* updates to the other owners, and copies to the other nodes */
            double most = (owners - 1.0) / owners + (nodes - 1.0) / owners;
            cr_assert(epsilon_eq(dbl, analysis.vectors_sent_most, most, 1e-12));
            free(text);
            sgp_topology_destroy(read);
            sgp_topology_destroy(made);
        }
}

Test(colocated, who_owns_by_the_file_changes_the_digest)
{
    struct sgp_topology *trains = read_text("digraph g { a [owns=all]; b; a -> b; b -> a; }");
    struct sgp_topology *relay =
        read_text("digraph g { a [owns=all, train=false]; b; a -> b; b -> a; }");
    struct sgp_topology *other = read_text("digraph g { a; b [owns=all]; a -> b; b -> a; }");
    cr_assert(ne(u64, trains->digest, relay->digest));
    cr_assert(ne(u64, trains->digest, other->digest));
    sgp_topology_destroy(trains);
    sgp_topology_destroy(relay);
    sgp_topology_destroy(other);
}

Test(colocated, its_key_speaks_for_both)
{
    struct sgp_topology *t =
        read_text("digraph g { a [owns=all, key=\"" KEY_A "\"]; b [key=\"" KEY_B
                  "\"]; tls=require; a -> b; b -> a; }");
    static const char *const names[] = {"a", "b", "a.owner"};
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert(eq(str, t->nodes[i].name, (char *)names[i]));
        cr_assert(eq(int, sgp_topology_has_key(t, i, KEY_A), i != 1));
        cr_assert(eq(int, sgp_topology_has_key(t, i, KEY_B), i == 1));
        cr_assert(zero(int, sgp_topology_has_key(t, i, "")));
    }
    cr_assert(eq(i64, sgp_topology_find_key(t, KEY_A), 0));
    sgp_topology_destroy(t);
}

Test(colocated, what_is_wrong_is_said_of_the_node_in_the_file)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "%s", mixed);
    refused(text, "t:4: node b needs an edge to the owner r, for updates, and one from it, for "
                  "copies");
    refused("digraph g { slices=2;\n a [owns=0];\n b [owns=0]; a -> b; b -> a; }",
        "t:3: nodes a and b both own part 0; each part has one owner");
    refused("digraph g { slices=2;\n a [owns=0];\n b [owns=5]; a -> b; b -> a; }",
        "t:3: node b owns part 5; with slices=2 parts are 0 to 1");
    refused("digraph g {\n a [owns=all];\n b [owns=all]; a -> b; b -> a; }",
        "t:3: nodes a and b both say owns=all; the vector has one owner, or write slices=N and "
        "owns=Q");
    refused("digraph g {\n a [owns=all];\n b; c;\n a -> {b c}; {b c} -> a;\n b -> c; }",
        "t:5: edge b -> c touches no owner, so nothing would go over it; leave it out");
    refused("digraph g {\n a [owns=all];\n b;\n a -> b [fraction=0.5];\n b -> a; }",
        "t:4: edge a -> b says fraction or slice, but what goes over it is what its owner owns; "
        "leave it out");
    refused("digraph g {\n a [owns=all];\n \"a.owner\"; a -> \"a.owner\"; \"a.owner\" -> a; }",
        "t:2: two nodes are named a.owner; every node needs a name of its own");
    refused("digraph g {\n a [owns=all, starts=1];\n b; a -> b; b -> a; }",
        "t:2: node a says starts, but weight is with who owns; leave it out");
    refused("digraph g {\n a [owns=all, address=none];\n b [address=none]; a -> b; b -> a; }",
        "t:3: digraph g: edge a -> b: neither can be dialled; give one an address");
    refused("digraph g {\n a [owns=all, address=none];\n b [address=\"h:1\"]; a -> b; b -> a; }",
        "t:2: node a owns something, so its workers dial it; give it an address");
    refused("digraph g {\n backup=2; a [owns=all]; b; a -> b; b -> a; }",
        "t:1: digraph g: backup=2 of 2 workers leaves none to wait for; take at most 1");
    refused("digraph g { slices=2;\n a [owns=0, address=\"h:1\"];\n r [owns=1, train=false, "
            "address=none];\n b [address=\"h:2\"]; a -> {b r}; b -> {a r}; r -> {a b}; }",
        "t:3: node r owns something, so its workers dial it; give it an address");
    refused("digraph g { tls=require; stops=3; a [owns=all, key=\"" KEY_A "\"]; b [key=\"" KEY_B
            "\"]; a -> b; b -> a; }",
        "t:1: stops=3 of 2 nodes can never have signed; take at most 2");
    (void)snprintf(text, sizeof text, "digraph g {\n %060d [owns=all]; }", 0);
    refused(text, "t:2: node 0000000000000000000000000000000000000000... owns and trains, so what "
                  "it owns is called by its name and .owner, which is too long; take a name of at "
                  "most 57 bytes");
}
