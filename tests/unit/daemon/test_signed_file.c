/* SPDX-License-Identifier: Apache-2.0 */
/* Which signed file a node uses: at its start and at a reload, beside what a neighbour uses. */
#include "setup/signed_file.h"

#include "rollout/rollout_keys.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_OF(edges) "digraph g { " edges " }"

static char state[] = "/tmp/sgp-signed-XXXXXX";
static char path[sizeof state + sizeof "/fleet.signed"];
static struct config config;
static struct sgp_rollout *rollout;

static char *document(uint64_t version, const char *file)
{
    return keys_document(keys_manifest(version, "", file), file, "ab");
}

static void copy_to_path(uint64_t version, const char *edges)
{
    char *text = document(version, edges);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fprintf(file, "%s\n", text) > 0 && fclose(file) == 0);
    free(text);
}

/* A neighbour uses this version. */
static void hear(uint64_t version, const char *edges)
{
    struct sgp_error error = {0};
    char *text = document(version, edges);
    cr_assert(
        eq(int, sgp_rollout_take(rollout, SGP_ROLLOUT_ACTIVE, text, &error), 1), "%s", error.text);
    free(text);
}

/* This node uses version 1. */
static void make(void)
{
    const struct sgp_rollout_settings settings = {
        .administrators = keys_administrators(), .verify = keys_verify};
    cr_assert(mkdtemp(state) != NULL);
    (void)snprintf(path, sizeof path, "%s/fleet.signed", state);
    config = (struct config){.name = "x", .topology = path, .state_directory = state};
    rollout = sgp_rollout_create(&settings);
    hear(1, FILE_OF("x -> y -> x"));
    sgp_rollout_activate(rollout, SGP_ROLLOUT_ACTIVE);
}

static void clear(void)
{
    char command[256];
    sgp_rollout_destroy(rollout);
    (void)snprintf(command, sizeof command, "rm -rf %s", state);
    cr_assert(eq(int, system(command), 0));
}

/* What a reload uses: its nodes, and the name that messages have. */
static void expect(enum signed_file_from from, uint32_t nodes, const char *name)
{
    const struct signed_file_wish wish = {.present = rollout, .from = from};
    struct sgp_error error = {0};
    struct signed_file file;
    cr_assert(eq(int, signed_file_read(&config, &wish, &error, &file), 0), "%s", error.text);
    cr_expect(eq(u32, file.topology->node_count, nodes));
    cr_expect(eq(str, file.name, (char *)name));
    sgp_topology_destroy(file.topology);
    sgp_rollout_destroy(file.rollout);
}

Test(signed_file, a_reload_uses_the_path_if_it_is_later, .init = make, .fini = clear)
{
    copy_to_path(2, FILE_OF("x -> y -> z -> x"));
    expect(SIGNED_FILE_PATH, 3, "");
}

Test(signed_file, a_reload_with_an_earlier_file_is_refused, .init = make, .fini = clear)
{
    const struct signed_file_wish wish = {.present = rollout, .from = SIGNED_FILE_PATH};
    struct sgp_error error = {0};
    struct signed_file file;
    hear(3, FILE_OF("x -> y -> z -> u -> x"));
    sgp_rollout_activate(rollout, SGP_ROLLOUT_ACTIVE);
    copy_to_path(2, FILE_OF("x -> y -> z -> x"));
    cr_assert(eq(int, signed_file_read(&config, &wish, &error, &file), SGP_E_STATE));
    cr_assert(strstr(error.text, "it is version 2, and this node has used version 3") != NULL);
}

/* A node that must restart for version 3 is given version 2, or 3 itself. */
Test(signed_file, a_reload_names_the_file_that_it_uses, .init = make, .fini = clear)
{
    hear(3, FILE_OF("x -> y -> z -> u -> x"));
    expect(SIGNED_FILE_NEIGHBOUR, 4, "version 3 of mill");
    copy_to_path(2, FILE_OF("x -> y -> z -> x"));
    expect(SIGNED_FILE_PATH, 4, "version 3 of mill");
    copy_to_path(3, FILE_OF("x -> y -> z -> u -> x"));
    expect(SIGNED_FILE_PATH, 4, "");
    copy_to_path(4, FILE_OF("x -> y -> z -> x"));
    expect(SIGNED_FILE_PATH, 3, "");
}

Test(signed_file, a_file_strikes_a_node_that_it_does_not_name)
{
    const struct config x = {.name = "x"};
    cr_assert(not(signed_file_strikes(&x, FILE_OF("x -> y -> x"))));
    cr_assert(signed_file_strikes(&x, FILE_OF("y -> z -> y")));
    cr_assert(not(signed_file_strikes(&x, "no file")));
}

Test(signed_file, what_cannot_be_stored_leaves_what_is_stored, .init = make, .fini = clear)
{
    struct sgp_error error = {0};
    struct stat before, after;
    char stored[256], temporary[256];
    (void)snprintf(stored, sizeof stored, "%s/rollout", state);
    (void)snprintf(temporary, sizeof temporary, "%s/rollout.new", state);
    cr_assert(eq(int, signed_file_keep(&config, rollout, &error), 0));
    cr_assert(eq(int, stat(stored, &before), 0));
    hear(3, FILE_OF("x -> y -> z -> u -> x"));
    sgp_rollout_activate(rollout, SGP_ROLLOUT_ACTIVE);
    cr_assert(eq(int, mkdir(temporary, 0700), 0)); /* in the place of the temporary file */
    cr_assert(lt(int, signed_file_keep(&config, rollout, &error), 0));
    cr_assert(strncmp(error.text, temporary, strlen(temporary)) == 0, "%s", error.text);
    cr_assert(eq(int, stat(stored, &after), 0));
    cr_assert(before.st_ino == after.st_ino && before.st_size == after.st_size);
    cr_assert(eq(int, rmdir(temporary), 0));
    cr_assert(eq(int, signed_file_keep(&config, rollout, &error), 0));
    cr_assert(eq(int, stat(stored, &after), 0));
    cr_assert(after.st_size > before.st_size);
}
