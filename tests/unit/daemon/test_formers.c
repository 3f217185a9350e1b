/* SPDX-License-Identifier: Apache-2.0 */
/* Struck nodes: which nodes the used versions and reloads have struck, and how many are known. */
#include "node/formers.h"

#include "store/versions.h"

#include "sgp/dot.h"
#include "sgp/rollout.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY(letter) "SHA256:" TEN(letter) TEN(letter) TEN(letter) TEN(letter) letter letter "A"
#define TEN(letter) letter letter letter letter letter letter letter letter letter letter

static char state[] = "/tmp/sgp-formers-XXXXXX";
static struct config config;
static struct prepared prepared;
static struct daemon daemon_;

static struct sgp_topology *parse(const char *text)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(
        eq(int, sgp_dot_parse(text, strlen(text), "file", &error, &topology), 0), "%s", error.text);
    return topology;
}

/* A ring of n0, n1 and so on. */
static char *ring(uint32_t count)
{
    char *text = malloc(64 + 32 * (size_t)count);
    size_t used = (size_t)sprintf(text, "digraph { n0");
    for (uint32_t i = 1; i <= count; i++)
        used += (size_t)sprintf(text + used, " -> n%u", (unsigned)(i % count));
    (void)sprintf(text + used, " }");
    return text;
}

static void used(uint64_t version, const char *file)
{
    struct sgp_error error = {0};
    struct sgp_document document = {
        .manifest = {.fleet = "mill", .version = version}, .file = (char *)file};
    cr_assert(eq(int, sgp_document_name_file(&document.manifest, file, strlen(file), &error), 0));
    char *text = sgp_document_write(&document);
    cr_assert(eq(int, versions_keep(state, version, text, 1, &error), 0), "%s", error.text);
    free(text);
}

static void open_with(const char *present)
{
    prepared.topology = parse(present);
    formers_open(&daemon_);
}

static void reload(const char *present)
{
    struct sgp_topology *former = prepared.topology;
    prepared.topology = parse(present);
    formers_reloaded(&daemon_, former);
    sgp_topology_destroy(former);
}

/* On a link without a cipher. */
static int64_t find(const char *name)
{
    static const struct link plain = {.cipher = NULL};
    return formers_find(&daemon_, &plain, name);
}

static void make(void)
{
    cr_assert(mkdtemp(state) != NULL);
    config.state_directory = state;
    prepared.rollout = sgp_rollout_create(&(struct sgp_rollout_settings){.verify = NULL});
    daemon_ = (struct daemon){.config = &config, .prepared = &prepared};
}

static void clear(void)
{
    char command[256];
    formers_finish(&daemon_);
    sgp_topology_destroy(prepared.topology);
    sgp_rollout_destroy(prepared.rollout);
    (void)snprintf(command, sizeof command, "rm -rf %s", state);
    cr_assert(eq(int, system(command), 0));
}

#define NODE(name, letter) " " name " [address=\"h:1" letter "\", key=\"" KEY(letter) "\"];"
#define OLD                                                                                        \
    "digraph { tls=offer;" NODE("a", "1") NODE("b", "2") NODE("c", "3")                            \
        NODE("d", "4") " a -> b -> c -> d -> a }"
#define LATER                                                                                      \
    "digraph { tls=offer;" NODE("a", "1") NODE("b", "2") NODE("d", "5") " a -> b -> d -> a }"

Test(formers, are_the_nodes_of_used_versions_that_are_not_named_any_more, .init = make,
    .fini = clear)
{
    used(1, OLD);
    used(2, LATER);
    open_with("digraph { a -> b -> a }");
    cr_assert(eq(i64, find("d"), 0)); /* struck latest */
    cr_assert(eq(i64, find("c"), 1));
    cr_assert(eq(i64, find("a"), -1));
    cr_assert(eq(i64, find("x"), -1));
    cr_assert(formers_have_key(&daemon_, KEY("3")));
    cr_assert(formers_have_key(&daemon_, KEY("5")));
    cr_assert(not(formers_have_key(&daemon_, KEY("4")))); /* its key was changed before */
    cr_assert(not(formers_have_key(&daemon_, KEY("1")))); /* of a node that is named */
    cr_assert(not(formers_have_key(&daemon_, "")));
}

Test(formers, without_administrators_there_are_none, .init = make, .fini = clear)
{
    used(1, OLD);
    sgp_rollout_destroy(prepared.rollout);
    prepared.rollout = NULL;
    open_with("digraph { a -> b -> a }");
    cr_assert(eq(i64, find("c"), -1));
    cr_assert(not(formers_have_key(&daemon_, KEY("3"))));
    reload("digraph { a -> b -> a }");
    cr_assert(eq(i64, find("c"), -1));
}

Test(formers, a_caller_without_a_key_is_none_where_the_file_requires_keys, .init = make,
    .fini = clear)
{
    used(1, OLD);
    open_with("digraph { a -> b -> a }");
    cr_assert(eq(i64, find("c"), 0));
    prepared.topology->tls = SGP_TLS_REQUIRE;
    cr_assert(eq(i64, find("c"), -1));
}

Test(formers, follow_each_reload, .init = make, .fini = clear)
{
    open_with("digraph { a -> b -> c -> d -> a }");
    cr_assert(eq(i64, find("d"), -1));
    reload("digraph { a -> b -> c -> a }");
    cr_assert(eq(i64, find("d"), 0));
    reload("digraph { a -> b -> a }");
    cr_assert(eq(i64, find("c"), 0));
    cr_assert(eq(i64, find("d"), 1));
    reload("digraph { a -> b -> d -> a }"); /* it is back */
    cr_assert(eq(i64, find("c"), 0));
    cr_assert(eq(i64, find("d"), -1));
    reload("digraph { a -> c -> a }");
    cr_assert(eq(i64, find("d"), 0));
    cr_assert(eq(i64, find("b"), 1));
    cr_assert(eq(i64, find("c"), -1));
}

Test(formers, the_latest_256_are_known, .init = make, .fini = clear)
{
    char *large = ring(FORMERS_MAX + 44);
    open_with(large);
    reload("digraph { x -> y -> x }");
    cr_assert(eq(i64, find("n299"), 0));
    cr_assert(eq(i64, find("n44"), FORMERS_MAX - 1));
    cr_assert(eq(i64, find("n43"), -1));
    reload("digraph { x -> z -> x }");
    cr_assert(eq(i64, find("y"), 0));
    cr_assert(eq(i64, find("n45"), FORMERS_MAX - 1));
    cr_assert(eq(i64, find("n44"), -1));
    free(large);
}

Test(formers, at_the_start_no_more_are_found, .init = make, .fini = clear)
{
    char *large = ring(FORMERS_MAX + 44);
    used(1, "digraph { u -> v -> u }");
    used(2, large);
    open_with("digraph { x -> y -> x }");
    cr_assert(eq(i64, find("n0"), 0));
    cr_assert(eq(i64, find("n255"), FORMERS_MAX - 1));
    cr_assert(eq(i64, find("n256"), -1));
    cr_assert(eq(i64, find("u"), -1));
    free(large);
}

Test(formers, a_version_that_is_damaged_is_left_out, .init = make, .fini = clear)
{
    char path[256];
    used(1, "digraph { u -> v -> u }");
    used(2, "digraph { w -> v -> w }");
    (void)snprintf(path, sizeof path, "%s/versions/2", state);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fputs("sgpd-used-1 1\nhalf\n", file) >= 0 && fclose(file) == 0);
    open_with("digraph { x -> y -> x }");
    cr_assert(eq(i64, find("u"), 0));
    cr_assert(eq(i64, find("v"), 1));
    cr_assert(eq(i64, find("w"), -1));
}
