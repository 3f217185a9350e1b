/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of the core about a link: the level of their lines, and whether they are errors of the link. */
#include "node/notes.h"

#include "node/edges.h"

#include "sgp/dot.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <string.h>
#include <unistd.h>

static struct config config = {.name = "a"};
static struct prepared prepared;
static struct log log_;
static struct edge edges[2] = {{.peer = 1}, {.peer = 1}}; /* to b, and from b */
static struct daemon daemon_ = {.config = &config,
    .prepared = &prepared,
    .log = &log_,
    .edges = edges,
    .out_count = 1,
    .edge_count = 2};
static int written[2];

static void begin(void)
{
    static const char text[] = "digraph { a -> b; b -> a }";
    struct sgp_error error = {0};
    struct sgp_topology *topology;
    cr_assert(zero(int, sgp_dot_parse(text, strlen(text), "file", &error, &topology)));
    prepared.topology = topology;
    cr_assert(zero(int, pipe(written)));
    log_init_to(&log_, SGP_LEVEL_DEBUG, "", written[1], LOG_PLAIN);
}

static void finish(void)
{
    sgp_topology_destroy((struct sgp_topology *)prepared.topology);
    (void)close(written[0]);
    (void)close(written[1]);
}

/* The line of a share from b that this node refuses for that reason. */
static const char *refuse(enum sgp_reason reason)
{
    static char line[1024];
    struct sgp_effect effect = {.type = SGP_EFFECT_NOTE};
    effect.note.what = SGP_NOTE_REFUSED;
    effect.note.reason = reason;
    effect.note.link = (struct sgp_link){.peer = 1, .direction = SGP_IN};
    notes_note(&daemon_, &effect);
    ssize_t length = read(written[0], line, sizeof line - 1);
    cr_assert(gt(long, length, 0));
    line[length] = '\0';
    return line;
}

Test(notes, a_share_of_false_values_is_an_error_of_its_link, .init = begin, .fini = finish)
{
    const char *line = refuse(SGP_REASON_NOT_FINITE);
    cr_assert(strstr(line, "event=refused peer=b direction=in") != NULL, "%s", line);
    cr_assert(strstr(line, "warning") != NULL, "%s", line);
    cr_assert(eq(str, edges[1].error, sgp_reason_text(SGP_REASON_NOT_FINITE)));
    cr_assert(strstr(daemon_.last_error, "b: ") != NULL, "%s", daemon_.last_error);
}

/* It happens at each stop of a node, and whenever a round goes on without a source. */
Test(notes, a_share_that_is_overtaken_is_no_error, .init = begin, .fini = finish)
{
    const char *line = refuse(SGP_REASON_CHANGED);
    cr_assert(strstr(line, "event=refused peer=b direction=in") != NULL, "%s", line);
    cr_assert(strstr(line, "warning") == NULL, "%s", line);
    cr_assert(eq(str, edges[1].error, ""));
    cr_assert(eq(str, daemon_.last_error, ""));
}
