/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of the test's own with a topology, rows and a configuration, and what `prepare` makes of them. */
#ifndef PREPARE_PLACE_H
#define PREPARE_PLACE_H

#include "train/names.h"
#include "setup/prepare.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __attribute__((unused)) char directory[] = "/tmp/test_prepare.XXXXXX";
static __attribute__((unused)) const char ring[] =
    "digraph ring {\n"
    "  n0 [address=\"10.0.0.1:7311\"]; n1 [address=\"10.0.0.2:7311\"];\n"
    "  n0 -> n1 -> n0;\n"
    "}\n";

static __attribute__((unused)) const char handed[] =
    "digraph token { token=dynamic; n0 [address=\"10.0.0.1:7311\", owns=all];\n"
    "  n1 [address=\"10.0.0.2:7311\"]; n0 -> n1; n1 -> n0; }\n";
static __attribute__((unused)) const char owned[] =
    "digraph owner {\n"
    "  n0 [address=\"10.0.0.1:7311\", train=false, owns=all]; n1 [address=\"10.0.0.2:7311\"];\n"
    "  n0 -> n1 -> n0;\n"
    "}\n";

static __attribute__((unused)) void write_file(const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    (void)fputs(text, file);
    (void)fclose(file);
}

static __attribute__((unused)) void setup(void)
{
    cr_assert(mkdtemp(directory) != NULL);
    write_file("fleet.dot", ring);
    char rows[2048] = "a,b,kind\n";
    for (int i = 0; i < 50; i++)
        (void)snprintf(rows + strlen(rows), 32, "%d,%d.5,%s\n", i, 3 * i, i % 2 ? "odd" : "even");
    write_file("rows.csv", rows);
}

static __attribute__((unused)) void teardown(void)
{
    static const char *const names[] = {"fleet.dot", "rows.csv", "scale.json"};
    char path[128];
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(directory);
}

struct parts { /* sections of a configuration; NULL: as in the good one */
    const char *node, *train, *model, *data, *network, *rest;
};

static __attribute__((unused)) const char *either(const char *given, const char *usual)
{
    return given ? given : usual;
}

static __attribute__((unused)) int build(
    struct parts parts, struct config *config, struct prepared *p, struct sgp_error *error)
{
    char text[4096];
    char path[128];
    (void)snprintf(path, sizeof path, "%s/n.conf", directory);
    (void)snprintf(text, sizeof text,
        "[node]\n%s\n[topology]\nfile = fleet.dot\n[train]\n%s\n[model]\n%s\n[data]\n%s\n"
        "[network]\n%s\n%s",
        either(parts.node, "name = n1"), either(parts.train, "epochs = 3"),
        either(parts.model, "layers = dense 4 relu, dense 2"),
        either(parts.data, "train = rows.csv\nlabel = kind\nclasses = even odd\nholdout = 0.2"),
        either(parts.network, "listen = 10.0.0.2:7311"), either(parts.rest, ""));
    int code = config_parse(path, text, strlen(text), error, config);
    return code < 0 ? code : prepare(config, NULL, error, p);
}

/* message: what follows the directory of the test and a slash. */
static __attribute__((unused)) void expect_refusal(
    struct parts parts, int code, const char *message)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    memset(&p, 0x5a, sizeof p);
    cr_assert(eq(int, build(parts, &config, &p, &error), code), "%s", error.text);
    cr_assert(eq(u8, *(unsigned char *)&p, 0x5a), "an output is untouched on failure");
    size_t prefix = strlen(directory) + 1;
    cr_assert(eq(int, strncmp(error.text, directory, prefix - 1), 0), "%s", error.text);
    cr_assert(eq(str, error.text + prefix, (char *)message));
    config_finish(&config);
}

static __attribute__((unused)) void expect_warning(const struct prepared *p, const char *part)
{
    bool found = false;
    for (uint32_t i = 0; i < p->warning_count; i++)
        found = found || strstr(p->warnings[i], part);
    cr_assert(found, "no warning says: %s", part);
}

#endif
