/* SPDX-License-Identifier: Apache-2.0 */
/* Topology files: what is read, what is written back, and the exact words of every refusal. */
#include "sgp/dot.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sgp_topology *parse(const char *text)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(
        zero(int, sgp_dot_parse(text, strlen(text), "t.dot", &error, &topology)), "%s", error.text);
    return topology;
}

static void is_read(const char *text)
{
    sgp_topology_destroy(parse(text));
}

static void refused(const char *text, int code, const char *message)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    int got = sgp_dot_parse(text, strlen(text), "t.dot", &error, &topology);
    cr_expect(eq(int, got, code), "%s", text);
    cr_expect(eq(str, error.text, (char *)message));
    cr_expect(zero(ptr, topology));
}

static const char example[] =
    "// two phases and a prelude\n"
    "digraph warm { rounds=3; once=true; n0 -> {n1 n2}; }\n"
    "digraph hop1 {\n"
    "  n0 [address=\"10.0.0.10:7400\"]; n1 [address=\"[fd00::1]\"]; n2 [address=\"box-2\"];\n"
    "  n0 -> n1 -> n2 -> n0;\n"
    "}\n"
    "digraph { n0 -> n2; n2 -> n1 [fraction=0.25, color=red]; n1 -> n0 [fraction=\"2/3\"]; }\n";

Test(dot, reads_phases_addresses_and_fractions)
{
    struct sgp_topology *t = parse(example);
    cr_assert(eq(u32, t->node_count, 3));
    cr_assert(eq(u32, t->phase_count, 3));
    cr_assert(eq(str, t->nodes[0].address, "10.0.0.10:7400"));
    cr_assert(eq(str, t->nodes[1].address, "[fd00::1]:7311"));
    cr_assert(eq(str, t->nodes[2].address, "box-2:7311"));
    cr_assert(eq(str, t->phases[0].name, "warm"));
    cr_assert(t->phases[0].once && t->phases[0].rounds == 3 && t->prelude_rounds == 3);
    cr_assert(eq(i64, t->rounds_per_cycle, 2));
    cr_assert(t->phases[0].out[1].fraction == 1.0 / 3);
    cr_assert(t->phases[1].out[0].fraction == 0.5);
    cr_assert(eq(str, t->phases[2].name, "phase2"));
    cr_assert(t->phases[2].out[0].source == 0 && t->phases[2].out[0].target == 2);
    cr_assert(t->phases[2].out[1].fraction == 2.0 / 3);
    cr_assert(t->phases[2].out[2].fraction == 0.25);
    sgp_topology_destroy(t);
}

Test(dot, without_addresses_the_first_digraph_names_the_fleet)
{
    struct sgp_topology *t = parse("digraph a { x; y -> z } digraph { z -> x }");
    cr_assert(eq(u32, t->node_count, 3));
    cr_assert(eq(str, t->nodes[0].name, "x"));
    cr_assert(eq(str, t->nodes[2].name, "z"));
    cr_assert(eq(str, t->nodes[2].address, ""));
    sgp_topology_destroy(t);
}

Test(dot, one_node_and_odd_but_fine_texts)
{
    sgp_topology_destroy(parse("digraph one { n0 }"));
    sgp_topology_destroy(parse("digraph one\r\n{ n0 -> n1 // \"\r\n }\r\n"));
    sgp_topology_destroy(
        parse("# a line\n/* b */ strict digraph \"q-1\" { \"node\" -> \"4.2\" ; }"));
    sgp_topology_destroy(parse("digraph a { subgraph cluster_1 { x y } -> z; z -> { x y } }"));
    sgp_topology_destroy(parse("digraph a { x -> y [fraction=.5]; y -> x [fraction=\"1e-3\"] }"));
    sgp_topology_destroy(parse("digraph a { x [address=\"h:1\"]; y [address=\"h:2\"] }"
                               "digraph b { x [address=\"h:1\"]; x -> y }"));
}

static struct sgp_topology *rewrite(
    const struct sgp_topology *t, const char *comment, char **ret_text)
{
    size_t length = 0;
    FILE *file = open_memstream(ret_text, &length);
    cr_assert(zero(int, sgp_dot_write(file, t, comment)));
    cr_assert(zero(int, fclose(file)));
    return parse(*ret_text);
}

Test(dot, what_is_written_reads_back_alike)
{
    static const char *const texts[] = {example,
        "digraph \"digraph\" { \"node\" -> \"4.2\" [fraction=0.1234567890123456]; \"4.2\" -> "
        "\"a-b\" }",
        "digraph a { x -> y [fraction=.5]; y -> x [fraction=\"1e-3\"] }", "digraph one { n0 }",
        "digraph a { once=true; repeat=3; slices=2; x [train=true]; y; z [train=false]; x -> y "
        "[slice=0, fraction=1]; y -> x [slice=\"1\", fraction=1] } digraph b { once=true; "
        "repeat=3; slices=2; train=false; y -> x [slice=0]; x -> y [slice=\"1-1\"] } digraph c { "
        "x -> y; y -> z; z -> x }",
        "digraph a { hub [train=false, starts=1]; x -> hub; hub -> x }",
        "digraph a { x -> y } digraph b { rounds=3; outer=true; train=false; y -> x }"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *text = NULL;
        struct sgp_topology *t = parse(texts[i]);
        struct sgp_topology *again = rewrite(t, "good for\n\ntests */", &text);
        cr_assert(
            zero(int, strncmp(text, "// good for\n//\n// tests */\ndigraph", 34)), "%s", text);
        cr_assert(eq(u64, again->digest, t->digest), "%s", text);
        for (uint32_t n = 0; n < t->node_count; n++)
            cr_assert(eq(str, again->nodes[n].address, t->nodes[n].address));
        sgp_topology_destroy(again);
        sgp_topology_destroy(t);
        free(text);
    }
}

Test(dot, written_text_is_plain)
{
    char *text = NULL;
    struct sgp_topology *t = parse(example);
    sgp_topology_destroy(rewrite(t, NULL, &text));
    cr_assert(eq(str, text,
        "digraph warm {\n  rounds=3;\n  once=true;\n  n0 [address=\"10.0.0.10:7400\"];\n"
        "  n1 [address=\"[fd00::1]:7311\"];\n  n2 [address=\"box-2:7311\"];\n"
        "  n0 -> n1;\n  n0 -> n2;\n}\n"
        "digraph hop1 {\n  n0 -> n1;\n  n1 -> n2;\n  n2 -> n0;\n}\n"
        "digraph phase2 {\n  n0 -> n2;\n  n1 -> n0 [fraction=\"2/3\"];\n"
        "  n2 -> n1 [fraction=\"1/4\"];\n}\n"));
    sgp_topology_destroy(t);
    free(text);
}

Test(dot, a_full_disk_is_told)
{
    struct sgp_topology *t = parse(example);
    FILE *file = fopen("/dev/full", "w");
    (void)setvbuf(file, NULL, _IONBF, 0);
    cr_assert(eq(int, sgp_dot_write(file, t, NULL), -ENOSPC));
    (void)fclose(file);
    sgp_topology_destroy(t);
}

Test(dot, syntax_errors_name_file_and_line)
{
    refused("digraph a {\n  n0 -> n1 [\n}\n", SGP_E_SYNTAX,
        "t.dot:3: syntax error near '}'; "
        "look here and just above for a missing brace, bracket, quote or semicolon");
    refused("digraph a {\n n0 -> n1;\n", SGP_E_SYNTAX,
        "t.dot:3: syntax error at the end of the text; "
        "look here and just above for a missing brace, bracket, quote or semicolon");
    refused("digraph a { n0 -> n1 }\ndigraph b { n0 -- n1 }\n", SGP_E_SYNTAX,
        "t.dot:2: syntax error near '--'; "
        "look here and just above for a missing brace, bracket, quote or semicolon");
    refused("digraph a { n0 [address=10.0.0.1:7311] }\n", SGP_E_SYNTAX,
        "t.dot:1: syntax ambiguity - badly delimited number '10.0.'; "
        "put names and values that are not plain words in \"quotes\"");
    refused("\ndigraph a { n0 [address=\"x] }\n", SGP_E_SYNTAX,
        "t.dot:2: a string is not closed; end it with a quote");
    refused("digraph a { n0 }\n\n/* more", SGP_E_SYNTAX,
        "t.dot:3: a comment is not closed; end it with */");
    refused("digraph a { n0 -> n1; # to the end\n }", SGP_E_SYNTAX,
        "t.dot:1: syntax error near '#'; a comment begins with //");
    refused("digraph a {\r\n n0 -> n1; \r }", SGP_E_SYNTAX,
        "t.dot:2: a carriage return without a line feed; a topology file is plain text");
    refused("digraph a {\n @ }", SGP_E_SYNTAX, "t.dot:2: syntax error near '@'; put it in quotes");
}

Test(dot, a_zero_byte_and_an_empty_text_are_refused)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(
        eq(int, sgp_dot_parse("digraph\n\0{ a }", 14, "t.dot", &error, &topology), SGP_E_SYNTAX));
    cr_assert(eq(str, error.text, "t.dot:2: a zero byte; a topology file is plain text"));
    static const char none[] = "t.dot:1: there is no digraph; "
                               "write one for each phase, as digraph p { a -> b; b -> a; }";
    refused("", SGP_E_TOPOLOGY, none);
    refused("// nothing\n", SGP_E_TOPOLOGY, none);
}

Test(dot, undirected_graphs_are_refused)
{
    refused("digraph a { n0 -> n1 }\ngraph g { n0 -- n1 }\n", SGP_E_TOPOLOGY,
        "t.dot:2: graph g is undirected; write digraph, and a -> b; b -> a for both directions");
}

Test(dot, unknown_nodes_are_refused)
{
    refused("digraph a { n0 -> n1 }\ndigraph hop2 {\n n0 ->\n n9 }\n", SGP_E_TOPOLOGY,
        "t.dot:4: digraph hop2: unknown node n9; nodes are those of the first digraph (n0, n1)");
    refused("digraph a {\n n0 [address=\"h:1\"]\n n1 [address=\"h:2\"]\n n0 -> nl }\n",
        SGP_E_TOPOLOGY,
        "t.dot:4: digraph a: unknown node nl; nodes are those with an address (n0, n1)");
}

Test(dot, a_column_above_one_is_refused)
{
    sgp_topology_destroy(parse("digraph b { n0 -> n1 [fraction=0.75]; n1 -> n0 [fraction=.5] }"));
    refused("digraph a { n0 -> {n1 n2} }\ndigraph b {\n n1 -> n0;\n n0 -> n1 [fraction=0.75];\n"
            " n0 -> n2 [fraction=\"1/2\"] }",
        SGP_E_TOPOLOGY,
        "t.dot:3: digraph b: node n0 gives away 1.25 in all (column above 1); "
        "its fractions must add up to at most 1");
}

Test(dot, bad_fractions_are_refused)
{
    static const char *const bad[] = {"0", "1.5", "3/2", "1/0", "-0.5", "nan", "inf", "0x1p-2",
        "1/3/4", "1e400", "half", "0.5 ", "1e", ".", "1/"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[128], message[256];
        (void)snprintf(text, sizeof text, "digraph a {\n\n n0 -> n1 [fraction=\"%s\"] }", bad[i]);
        (void)snprintf(message, sizeof message,
            "t.dot:3: digraph a: edge n0 -> n1: fraction \"%s\" is not one; "
            "write a number above 0 and at most 1, as 0.25 or \"2/3\"",
            bad[i]);
        refused(text, SGP_E_TOPOLOGY, message);
    }
}

Test(dot, empty_fractions_are_refused_wherever_they_stand)
{
    static const char *const bad[] = {"digraph a {\n n0 -> n1 [fraction=\"\"] }",
        "digraph a {\n n0 -> n1 [color=red, \"fraction\" = /* ? */ \"\"]; n1 -> n0 }",
        "digraph a {\n edge [fraction=<>]; n0 -> n1 }"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(bad[i], SGP_E_TOPOLOGY,
            "t.dot:2: a fraction is empty; write a number above 0 and at most 1, as 0.25 or "
            "\"2/3\", or leave it out");
    sgp_topology_destroy(parse("digraph fraction { fraction -> x [label=\"\"] }"));
}

Test(dot, a_byte_order_mark_is_stepped_over)
{
    struct sgp_topology *marked = parse("\xef\xbb\xbf"
                                        "digraph a { n0 -> n1 -> n0 }");
    struct sgp_topology *plain = parse("digraph a { n0 -> n1 -> n0 }");
    cr_assert(eq(u64, marked->digest, plain->digest));
    sgp_topology_destroy(marked);
    sgp_topology_destroy(plain);
    refused("\xef\xbb\xbf"
            "digraph a {\n n0 -> n0 }",
        SGP_E_TOPOLOGY,
        "t.dot:2: digraph a: edge n0 -> n0 is a self-loop; what is not given away stays, so leave "
        "it out");
}

Test(dot, repeated_edges_and_self_loops_are_refused)
{
    refused("digraph a {\n n0 -> n1;\n n1 -> n0;\n n0 -> n1 }", SGP_E_TOPOLOGY,
        "t.dot:4: digraph a: edge n0 -> n1 is repeated; write it once, with the sum as its "
        "fraction");
    refused("digraph a { n0 -> n1;\n n1 -> n1 }", SGP_E_TOPOLOGY,
        "t.dot:2: digraph a: edge n1 -> n1 is a self-loop; what is not given away stays, so leave "
        "it out");
}

Test(dot, bad_addresses_are_refused)
{
    refused("digraph a {\n n0 [address=\"h:1\"];\n n1 [address=\"h:99999\"] }", SGP_E_TOPOLOGY,
        "t.dot:3: node n1: address \"h:99999\" has a bad port; a port is a number from 1 to 65535");
    refused("digraph a {\n n0 [address=\"h\"];\n n1 [address=\"k:1\"]\n n2 [address=\"h:7311\"] }",
        SGP_E_TOPOLOGY,
        "t.dot:4: nodes n0 and n2 have the same address h:7311; every node needs one of its own");
    refused("digraph a { n0 [address=\"h:1\"] }\ndigraph b { n0 [address=\"h:2\"] }",
        SGP_E_TOPOLOGY, "t.dot:2: node n0 has the address h:2 here and h:1 before; give it once");
    const char *const wrong[] = {
        "10.50.0.312", "10.0.0", "10.0.0.1.2", "1..2.3", "0.0.0.1000", "7"};
    for (size_t i = 0; i < 6; i++) {
        char text[200], message[300];
        (void)snprintf(text, sizeof text, "digraph a {\n n0 [address=\"%s\"] }", wrong[i]);
        (void)snprintf(message, sizeof message,
            "t.dot:2: node n0: address \"%s\" is no IPv4 address; it has four numbers from 0 to "
            "255, as 10.0.0.1:7311",
            wrong[i]);
        refused(text, SGP_E_TOPOLOGY, message);
    }
    /* It fits, but not with the default port. */
    char host[SGP_ADDRESS_BYTES - sizeof ":731"], text[SGP_ADDRESS_BYTES + 40];
    memset(host, 'h', sizeof host);
    (void)snprintf(
        text, sizeof text, "digraph a {\n n0 [address=\"%.*s\"] }", (int)sizeof host, host);
    refused(text, SGP_E_TOPOLOGY, "t.dot:2: node n0: its address is too long");
    (void)snprintf(
        text, sizeof text, "digraph a {\n n0 [address=\"%.*s\"] }", (int)sizeof host - 1, host);
    is_read(text);
    is_read("digraph a { n0 [address=\"10.50.0.255\"]; n1 [address=\"300box\"]; "
            "n2 [address=\"1.2.3.4.example\"] }");
}

Test(dot, bad_names_rounds_and_preludes_are_refused)
{
    refused("digraph a {\n n0 -> \"n 1\" }", SGP_E_TOPOLOGY,
        "t.dot:2: node name \"n 1\" cannot be used; "
        "a name has 1 to 63 letters, digits, '_', '-' or '.'");
    refused(
        "digraph a { }", SGP_E_TOPOLOGY, "t.dot:1: there is no node; a topology has at least one");
    refused("digraph a {\n rounds=0; n0 }", SGP_E_TOPOLOGY,
        "t.dot:2: digraph a: rounds=\"0\" is not usable; write a whole number from 1 to 1048576");
    refused("digraph a {\n rounds=many; n0 }", SGP_E_TOPOLOGY,
        "t.dot:2: digraph a: rounds=\"many\" is not usable; write a whole number from 1 to "
        "1048576");
    refused("digraph a { once=yes; n0 }", SGP_E_TOPOLOGY,
        "t.dot:1: digraph a: once=\"yes\" is neither true nor false; write once=true");
    refused("digraph a { n0 }\ndigraph b { once=true }", SGP_E_TOPOLOGY,
        "t.dot:2: digraph b: phase b is marked once but stands after phase a, which is not; "
        "put the phases with once=true first");
    refused("digraph a { once=true; n0 }", SGP_E_TOPOLOGY,
        "t.dot:1: there is no phase in the cycle; at least one phase must not be marked once");
}

/* 3,000 words make 2,250,000 edges twice over: refused before libcgraph sees them. */
Test(dot, multiplied_sets_are_refused_before_they_are_made)
{
    static char text[40000];
    size_t length = (size_t)snprintf(text, sizeof text, "digraph a {\n");
    for (int line = 0; line < 2; line++) {
        for (int side = 0; side < 2; side++) {
            length += (size_t)snprintf(text + length, sizeof text - length, side ? " -> {" : "{");
            for (int i = 0; i < 1500; i++)
                length += (size_t)snprintf(text + length, sizeof text - length, "n%d ", i);
            length += (size_t)snprintf(text + length, sizeof text - length, "}");
        }
        length += (size_t)snprintf(text + length, sizeof text - length, "\n");
    }
    (void)snprintf(text + length, sizeof text - length, "}");
    refused(text, SGP_E_LIMIT, "t.dot:3: there are too many edges; the limit is 4194304");
}

Test(dot, named_sets_are_measured_too)
{
    static char text[60000];
    size_t length = (size_t)snprintf(text, sizeof text, "digraph a { subgraph s {");
    for (int i = 0; i < 3000; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "n%d ", i);
    (void)snprintf(text + length, sizeof text - length, "}\n subgraph s -> subgraph s }");
    refused(text, SGP_E_LIMIT, "t.dot:2: there are too many edges; the limit is 4194304");
}

Test(dot, depth_and_count_of_digraphs_are_limited)
{
    static char text[65536 * 2];
    size_t length = (size_t)snprintf(text, sizeof text, "digraph a ");
    for (unsigned i = 0; i <= SGP_DOT_DEPTH_MAX; i++)
        text[length++] = '{';
    text[length] = '\0';
    refused(text, SGP_E_LIMIT, "t.dot:1: braces are nested too deep; the limit is 64");
    length = 0;
    for (unsigned i = 0; i <= SGP_PHASES_MAX; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "digraph { n0 }\n");
    refused(text, SGP_E_LIMIT, "t.dot:4097: there are too many digraphs; the limit is 4096");
    memset(text, 'x', sizeof text);
    memcpy(text, "digraph \"", 9);
    strcpy(text + 9000, "\" { }");
    refused(text, SGP_E_LIMIT, "t.dot:1: a string has 8991 bytes; the limit is 8192");
}

/* libcgraph's scanner outlives a parse: whatever was wrong before must not touch the next file. */
Test(dot, a_bad_file_does_not_spoil_the_next)
{
    static const char *const bad[] = {"digraph a { /* ", "digraph a { \"x", "digraph a { <x",
        "hello", "digraph a { b -- c } digraph d { q -> q }", "digraph a { b -> c",
        "digraph a { x @ y }", "digraph a { 5x } digraph b {", "digraph a { b } trailing words",
        "graph g { a -- b }", "}", "digraph a { x [a=b } digraph c { } \"", "x #\"\n\"", "x #<\n>",
        "x #/*\n*/", "digraph a { b -> ; # x\r/* } \n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sgp_topology *t = NULL;
        struct sgp_error error = {0};
        cr_assert(
            lt(int, sgp_dot_parse(bad[i], strlen(bad[i]), "bad", &error, &t), 0), "%s", bad[i]);
        t = parse(example);
        cr_assert(eq(u32, t->phase_count, 3), "%s", bad[i]);
        sgp_topology_destroy(t);
    }
}

Test(dot, streams_and_files_are_read_to_their_end)
{
    FILE *file = fmemopen((void *)(uintptr_t)example, strlen(example), "r");
    struct sgp_topology *t = NULL, *parsed = parse(example);
    cr_assert(zero(int, sgp_dot_read(file, "-", NULL, &t)));
    cr_assert(eq(u64, t->digest, parsed->digest));
    (void)fclose(file);
    sgp_topology_destroy(t);
    sgp_topology_destroy(parsed);
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_dot_read_path("/nonexistent/t.dot", &error, &t), -ENOENT));
    cr_assert(eq(str, error.text, "/nonexistent/t.dot: No such file or directory"));
    error = (struct sgp_error){0};
    cr_assert(eq(int, sgp_dot_read_path("/", &error, &t), -EISDIR));
    cr_assert(eq(str, error.text, "/: Is a directory"));
}

Test(dot, an_endless_stream_is_refused)
{
    struct sgp_topology *t = NULL;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_dot_read_path("/dev/zero", &error, &t), SGP_E_LIMIT));
    cr_assert(eq(str, error.text, "/dev/zero: the file is too long; the limit is 67108864 bytes"));
}

/* The edge of a sealed topology carries no line, so the file is read again. */
Test(dot, an_edge_that_is_wrong_later_has_its_line)
{
    char path[] = "/tmp/test_dot.XXXXXX";
    int descriptor = mkstemp(path);
    cr_assert(ge(int, descriptor, 0));
    FILE *file = fdopen(descriptor, "w");
    (void)fputs(example, file);
    (void)fclose(file);
    struct sgp_topology *t = NULL;
    cr_assert(zero(int, sgp_dot_read_path(path, NULL, &t)));
    const struct sgp_error why = {.code = SGP_E_TOPOLOGY, .text = "it is wrong"};
    const struct {
        struct sgp_edge_place place;
        const char *said;
    } cases[] = {{{0, 0, 2}, ":2: it is wrong"}, {{1, 1, 2}, ":5: it is wrong"},
        {{2, 2, 1}, ":7: it is wrong"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sgp_error error = {0};
        cr_assert(eq(int, sgp_dot_fail(path, t, &cases[i].place, &why, &error), SGP_E_TOPOLOGY));
        cr_assert(eq(int, strncmp(error.text, path, strlen(path)), 0));
        cr_assert(eq(str, error.text + strlen(path), (char *)cases[i].said));
    }
    cr_assert(zero(int, unlink(path)));
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_dot_fail(path, t, &cases[0].place, &why, &error), SGP_E_TOPOLOGY));
    cr_assert(eq(str, error.text + strlen(path), ": it is wrong"), "it is gone by then");
    sgp_topology_destroy(t);
}

Test(dot, a_node_that_cannot_be_dialled_needs_neighbours_that_can)
{
    struct sgp_topology *t =
        parse("digraph p { a [address=\"h:1\"]; b [address=none]; c [address=none];"
              " a -> b; b -> a; a -> c; c -> a }");
    cr_assert(sgp_topology_is_dialled(t, 0));
    cr_assert(not(sgp_topology_is_dialled(t, 1)));
    cr_assert(eq(str, t->nodes[2].address, SGP_ADDRESS_NONE));
    sgp_topology_destroy(t);
    refused("digraph p { a [address=\"h:1\"]; b [address=none]; c [address=none];\n a -> b -> a;\n "
            "b -> c }",
        SGP_E_TOPOLOGY,
        "t.dot:3: digraph p: edge b -> c: neither can be dialled; give one an address");
    refused("digraph p { a [address=\"h:1\"]; b [address=none]; a -> b }\n"
            "digraph q { b [address=\"h:2\"]; b -> a }",
        SGP_E_TOPOLOGY, "t.dot:2: node b has the address h:2 here and none before; give it once");
}

/* ---- keys ---- */

#define KEY_A "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define KEY_B "SHA256:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBE"
#define KEY_C "SHA256:zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz+/09zzzw"
#define RING "a -> b; b -> a }"

Test(dot, keys_and_tls_are_read_and_written_back_and_are_no_part_of_the_digest)
{
    struct sgp_topology *plain = parse("digraph p { " RING);
    struct sgp_topology *t =
        parse("digraph p { tls=offer; a [key=\"" KEY_B " " KEY_A "\"]; b [key=\"" KEY_C "\"]; " RING
              "digraph q { tls=offer; " RING);
    cr_assert(eq(int, (int)t->tls, SGP_TLS_OFFER));
    cr_assert(eq(int, (int)plain->tls, SGP_TLS_OFF));
    cr_assert(eq(str, t->nodes[0].keys[0], KEY_B));
    cr_assert(eq(str, t->nodes[0].keys[1], KEY_A));
    cr_assert(eq(i64, sgp_topology_find_key(t, KEY_A), 0));
    cr_assert(eq(i64, sgp_topology_find_key(t, KEY_B), 0));
    cr_assert(eq(i64, sgp_topology_find_key(t, KEY_C), 1));
    cr_assert(eq(i64, sgp_topology_find_key(t, "SHA256:"), -ENOENT));
    cr_assert(eq(i64, sgp_topology_find_key(t, ""), -ENOENT));
    char text[SGP_KEYS_BYTES];
    sgp_topology_keys_text(t, 0, text);
    cr_assert(eq(str, text, KEY_B " " KEY_A));
    char *written = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&written, &length);
    cr_assert(zero(int, sgp_dot_write(file, t, NULL)));
    cr_assert(zero(int, fclose(file)));
    struct sgp_topology *again = parse(written);
    cr_assert(eq(int, (int)again->tls, SGP_TLS_OFFER));
    for (int i = 0; i < 2; i++)
        cr_assert(
            zero(int, memcmp(again->nodes[i].keys, t->nodes[i].keys, sizeof t->nodes[i].keys)));
    sgp_topology_destroy(again);
    again = parse("digraph p { tls=require; a [key=\"" KEY_A "\"]; b [key=\"" KEY_B "\"]; " RING
                  "digraph q { " RING);
    cr_assert(eq(u64, again->digest, t->digest));
    cr_assert(ne(u64, plain->digest, t->digest)); /* of one digraph */
    free(written);
    sgp_topology_destroy(again);
    sgp_topology_destroy(plain);
    sgp_topology_destroy(t);
}

Test(dot, stops_are_read_and_written_back_and_are_no_part_of_the_digest)
{
    const char *nodes = "a [key=\"" KEY_A "\"]; b [key=\"" KEY_B "\"]; ";
    char text[500];
    (void)snprintf(text, sizeof text, "digraph p { tls=require; stops=2; %s" RING, nodes);
    struct sgp_topology *two = parse(text);
    (void)snprintf(text, sizeof text, "digraph p { tls=require; %s" RING, nodes);
    struct sgp_topology *one = parse(text);
    cr_assert(eq(u32, two->stops, 2));
    cr_assert(eq(u32, one->stops, 1));
    cr_assert(eq(u64, one->digest, two->digest));
    char *written = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&written, &length);
    cr_assert(zero(int, sgp_dot_write(file, two, NULL)));
    cr_assert(zero(int, fclose(file)));
    struct sgp_topology *again = parse(written);
    cr_assert(eq(u32, again->stops, 2));
    free(written);
    sgp_topology_destroy(again);
    sgp_topology_destroy(one);
    sgp_topology_destroy(two);
}

Test(dot, a_version_is_read_and_written_back_and_is_no_part_of_the_digest)
{
    static const struct {
        const char *text;
        uint64_t version;
    } cases[] = {{"digraph p { " RING "digraph q { " RING, 0},
        {"digraph p { version=0; " RING "digraph q { " RING, 0},
        {"digraph p { version=3; " RING "digraph q { " RING, 3},
        {"digraph p { " RING "digraph q { version=3; " RING, 3},
        {"digraph p { version=3; " RING "digraph q { version=\"3\"; " RING, 3},
        {"digraph p { version=9007199254740992; " RING "digraph q { " RING,
            SGP_TOPOLOGY_VERSION_MAX}};
    struct sgp_topology *first = parse(cases[0].text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sgp_topology *t = parse(cases[i].text);
        cr_assert(eq(u64, t->version, cases[i].version));
        cr_assert(eq(u64, t->digest, first->digest));
        char *written = NULL;
        size_t length = 0;
        FILE *file = open_memstream(&written, &length);
        cr_assert(zero(int, sgp_dot_write(file, t, NULL)));
        cr_assert(zero(int, fclose(file)));
        struct sgp_topology *again = parse(written);
        cr_assert(eq(u64, again->version, cases[i].version));
        cr_assert(eq(int, strstr(written, "version") != NULL, cases[i].version > 0));
        free(written);
        sgp_topology_destroy(again);
        sgp_topology_destroy(t);
    }
    sgp_topology_destroy(first);
}

Test(dot, versions_that_cannot_be_are_refused)
{
    static const char *const bad[] = {
        "-1", "1.5", "x", "9007199254740993", "99999999999999999999999999999999", "0x3", "3 "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[SGP_TEXT_BYTES], message[SGP_TEXT_BYTES];
        (void)snprintf(text, sizeof text, "digraph p {\n version=\"%s\"; " RING, bad[i]);
        (void)snprintf(message, sizeof message,
            "t.dot:2: digraph p: version=\"%s\" is not usable; write a whole number from 0 to "
            "9007199254740992",
            bad[i]);
        refused(text, SGP_E_TOPOLOGY, message);
    }
    refused("digraph p {\n version=2; " RING "\ndigraph q { version=1; " RING, SGP_E_TOPOLOGY,
        "t.dot:3: digraph q: version=1 here and version=2 in a digraph before; a file has one "
        "version");
}

Test(dot, stops_that_cannot_be_are_refused)
{
    refused("digraph p {\n stops=0; " RING, SGP_E_TOPOLOGY,
        "t.dot:2: digraph p: stops=\"0\" is not usable; write a whole number from 1 to 16");
    refused("digraph p {\n stops=2; " RING "digraph q { stops=1; " RING, SGP_E_TOPOLOGY,
        "t.dot:2: digraph q: stops=1 here and stops=2 in a digraph before; a fleet has one end");
}

Test(dot, keys_that_cannot_be_are_refused)
{
    refused("digraph p {\n a [key=\"SHA256:short\"]; " RING, SGP_E_TOPOLOGY,
        "t.dot:2: node a: key \"SHA256:short\" is none; a key is SHA256: and 43 letters of base64, "
        "as "
        "sgpctl key generate prints it");
    refused("digraph p {\n a [key=\"" KEY_A "=\"]; " RING, SGP_E_TOPOLOGY,
        "t.dot:2: node a: key \"" KEY_A
        "=\" is none; a key is SHA256: and 43 letters of base64, as "
        "sgpctl key generate prints it");
    /* Bits behind the hash: the same hash in other letters. */
    refused("digraph p {\n a [key=\"SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB\"]; " RING,
        SGP_E_TOPOLOGY,
        "t.dot:2: node a: key \"SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB\" is none; a "
        "key "
        "is SHA256: and 43 letters of base64, as sgpctl key generate prints it");
    refused("digraph p {\n a [key=\"" KEY_A " " KEY_B " " KEY_C "\"]; " RING, SGP_E_TOPOLOGY,
        "t.dot:2: node a: there are more than 2 keys; a node has one, or two while one is being "
        "replaced");
    refused("digraph p {\n a [key=\"" KEY_A "\"];\n b [key=\"" KEY_B " " KEY_A "\"]; " RING,
        SGP_E_TOPOLOGY,
        "t.dot:3: nodes a and b have the same key " KEY_A "; every node needs one of its own");
    refused("digraph p {\n a [key=\"" KEY_A " " KEY_A "\"]; " RING, SGP_E_TOPOLOGY,
        "t.dot:2: nodes a and a have the same key " KEY_A "; every node needs one of its own");
    refused("digraph p {\n tls=offer;\n a [key=\"" KEY_A "\"];\n " RING, SGP_E_TOPOLOGY,
        "t.dot:4: node b has no key, and links are to be ciphered (tls=offer); sgpctl key generate "
        "b "
        "makes one and prints it");
    refused("digraph p {\n tls=yes; " RING, SGP_E_TOPOLOGY,
        "t.dot:2: digraph p: tls=\"yes\" is not usable; write tls=off, tls=offer or tls=require");
    refused("digraph p { tls=off; " RING "\ndigraph q { tls=require; " RING, SGP_E_TOPOLOGY,
        "t.dot:2: digraph q: tls=require here and tls=off in a digraph before; all links are "
        "ciphered "
        "in one way");
    refused("digraph p { a [key=\"" KEY_A "\"]; " RING "\ndigraph q { a [key=\"" KEY_B "\"]; " RING,
        SGP_E_TOPOLOGY,
        "t.dot:2: node a: key is not what the digraph says in which the node comes first; say it "
        "there");
}

/* ---- attributes that are none of ours ---- */

#define UNKNOWN(what, name, meant)                                                                 \
    "t.dot:2: " what ": unknown attribute " name "; did you mean " meant "?"

Test(dot, an_attribute_that_is_nearly_ours_is_refused)
{
    const struct {
        const char *said, *message;
    } cases[] = {
        {"tsl=require;", UNKNOWN("digraph p", "tsl", "tls")},
        {"graph [tlss=require];", UNKNOWN("digraph p", "tlss", "tls")},
        {"TLS=require;", UNKNOWN("digraph p", "TLS", "tls")},
        {"round=2;", UNKNOWN("digraph p", "round", "rounds")},
        {"stop=2;", UNKNOWN("digraph p", "stop", "stops")},
        {"versions=2;", UNKNOWN("digraph p", "versions", "version")},
        {"x [version=2];", "t.dot:2: node x: version is said of a digraph, not of a node"},
        {"trian=false;", UNKNOWN("digraph p", "trian", "train")},
        {"\"staleness-max\"=2;", UNKNOWN("digraph p", "staleness-max", "staleness_max")},
        {"x [adress=\"h:1\"];", UNKNOWN("node x", "adress", "address")},
        {"x [adres=\"h:1\"];", UNKNOWN("node x", "adres", "address")},
        {"node [keys=\"" KEY_A "\"];", UNKNOWN("nodes", "keys", "key")},
        {"x [own=all];", UNKNOWN("node x", "own", "owns")},
        {"x [start=0];", UNKNOWN("node x", "start", "starts")},
        {"x -> z [frction=0.25];", UNKNOWN("edge x -> z", "frction", "fraction")},
        {"edge [slices=0];", UNKNOWN("edges", "slices", "slice")},
        {"x [tls=require];", "t.dot:2: node x: tls is said of a digraph, not of a node"},
        {"x -> z [rounds=2];", "t.dot:2: edge x -> z: rounds is said of a digraph, not of an edge"},
        {"fraction=0.5;", "t.dot:2: digraph p: fraction is said of an edge, not of a digraph"},
        {"train=true; edge [train=false];",
            "t.dot:2: edges: train is said of a digraph or a node, not of an edge"},
        {"subgraph c { tls=require; x }",
            "t.dot:2: subgraph c: tls is said of a digraph, not of a part of it; write it before "
            "the subgraph"},
        {"subgraph c { subgraph { rounds=2; x } }",
            "t.dot:2: a subgraph: rounds is said of a digraph, not of a part of it; write it "
            "before the subgraph"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[SGP_TEXT_BYTES];
        (void)snprintf(
            text, sizeof text, "digraph p {\n %s x -> y; y -> x; y -> z; z -> y }", cases[i].said);
        refused(text, SGP_E_TOPOLOGY, cases[i].message);
    }
}

/* All of https://graphviz.org/doc/info/attrs.html, and some that people give to their own tools. */
Test(dot, attributes_for_drawing_stay_free)
{
    static const char graph[] =
        "_background bb beautify bgcolor center charset class clusterrank colorscheme comment "
        "compound concentrate Damping defaultdist dim dimen diredgeconstraints dpi epsilon esep "
        "fontcolor fontname fontnames fontpath fontsize forcelabels gradientangle href id "
        "imagepath "
        "inputscale K label label_scheme labeljust labelloc landscape layerlistsep layers "
        "layerselect layersep layout levels levelsgap lheight linelength lp lwidth margin maxiter "
        "mclimit mindist mode model newrank nodesep nojustify normalize notranslate nslimit "
        "nslimit1 oneblock ordering orientation outputorder overlap overlap_scaling overlap_shrink "
        "pack packmode pad page pagedir quadtree quantum rankdir ranksep ratio remincross "
        "repulsiveforce resolution root rotate rotation scale searchsize sep showboxes size "
        "smoothing sortv splines start style stylesheet target TBbalance tooltip truecolor URL "
        "viewport voro_margin xdotversion author date status title note owner site version";
    static const char node[] =
        "area class color colorscheme comment distortion fillcolor fixedsize fontcolor fontname "
        "fontsize gradientangle group height href id image imagepos imagescale label labelloc "
        "layer "
        "margin nojustify ordering orientation penwidth peripheries pin pos rects regular root "
        "samplepoints shape shapefile showboxes sides skew sortv style target tooltip URL vertices "
        "width xlabel xlp z state status host port rack site role ip name type";
    static const char edge[] =
        "arrowhead arrowsize arrowtail class color colorscheme comment constraint decorate dir "
        "edgehref edgetarget edgetooltip edgeURL fillcolor fontcolor fontname fontsize head_lp "
        "headclip headhref headlabel headport headtarget headtooltip headURL href id key label "
        "labelangle labeldistance labelfloat labelfontcolor labelfontname labelfontsize labelhref "
        "labeltarget labeltooltip labelURL layer len lhead lp ltail minlen nojustify penwidth pos "
        "radius samehead sametail showboxes style tail_lp tailclip tailhref taillabel tailport "
        "tailtarget tailtooltip tailURL target tooltip URL weight xlabel xlp cost rate site since";
    const struct {
        const char *names, *before, *after;
    } kinds[] = {{graph, "", "=1; x -> y; y -> x"}, {node, "x [", "=1]; x -> y; y -> x"},
        {edge, "y -> x; x -> y [", "=1]"}};
    for (size_t k = 0; k < 3; k++) {
        char names[sizeof graph + sizeof node], text[200], *rest = names;
        (void)snprintf(names, sizeof names, "%s", kinds[k].names);
        for (char *name; (name = strsep(&rest, " "));) {
            (void)snprintf(
                text, sizeof text, "digraph p { %s%s%s }", kinds[k].before, name, kinds[k].after);
            is_read(text);
        }
    }
    is_read("digraph p { subgraph cluster_1 { label=one; color=red; x } tls=off; x -> y; y -> x }");
    is_read("digraph p { rounds=2; subgraph c { x } x -> y; y -> x }");
}
