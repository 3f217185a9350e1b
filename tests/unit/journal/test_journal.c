/* SPDX-License-Identifier: Apache-2.0 */
/* The event journal: what is written is what is read, whatever is done to the bytes in between. That a
 * daemon is played again to the same trace is shown in tests/system/test_replay.py. */
#include "sgp/journal.h"

#include "sgp/generate.h"
#include "sgp/version.h"
#include "sgp/wire.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 64u

static char lines[LINES_MAX][SGP_TEXT_BYTES];
static uint32_t line_count, warning_count;

static void hear(void *context, enum sgp_level level, const char *text)
{
    (void)context;
    warning_count += level == SGP_LEVEL_WARNING;
    if (line_count < LINES_MAX)
        (void)snprintf(lines[line_count++], SGP_TEXT_BYTES, "%s", text);
}
static const struct sgp_sink sink = {.line = hear, .level = SGP_LEVEL_TRACE};

/* ---- a small journal: n0 of a ring of two is greeted, trains, and takes another file ---- */

static struct sgp_topology *ring(uint32_t nodes)
{
    struct sgp_generate_options options = {.family = "ring", .nodes = nodes};
    struct sgp_topology *topology = NULL;
    cr_assert(eq(int, sgp_generate(&options, NULL, &topology), 0));
    return topology;
}

static struct sgp_node_config config_of(const struct sgp_topology *topology)
{
    return (struct sgp_node_config){.topology = topology,
        .method = sgp_method_find("sgp"),
        .incarnation = 7,
        .seed = 11,
        .parameters = 3,
        .rounds = 5,
        .local_steps = 2,
        .final_cycles = 1,
        .weight_least = 1};
}

static void put_start(
    struct sgp_journal *journal, const char *version, const struct sgp_node_config *config)
{
    const struct sgp_journal_start start = {
        .version = version, .date = 86400 * SGP_SECOND, .now = 5, .config = config};
    cr_assert(eq(int, sgp_journal_put_start(journal, &start), 0));
}

static void put(struct sgp_journal *journal, struct sgp_event event)
{
    cr_assert(eq(int, sgp_journal_put_event(journal, &event), 0));
}

static struct sgp_journal small(void)
{
    struct sgp_topology *two = ring(2), *three = ring(3);
    struct sgp_node_config config = config_of(two);
    const struct sgp_node_change change = {.topology = three, .weight_least = 1};
    const struct sgp_link in = {.peer = 1, .direction = SGP_IN, .connection = 1};
    const struct sgp_message hello = {.type = SGP_HELLO,
        .pulse = {.state = SGP_NODE_JOINING, .next_round = 0, .ends = 5, .stop = SGP_ROUND_NONE},
        .hello = {.source = "n1",
            .target = "n0",
            .incarnation = 9,
            .parameters = 3,
            .fingerprint = {.method = 1, .topology = two->digest}}};
    struct sgp_journal journal = {.bytes = NULL};
    put_start(&journal, sgp_version(), &config);
    put(&journal, (struct sgp_event){.type = SGP_EVENT_START, .now = 10});
    put(&journal, (struct sgp_event){.type = SGP_EVENT_UP, .now = 20, .link = in});
    put(&journal,
        (struct sgp_event){.type = SGP_EVENT_MESSAGE, .now = 20, .link = in, .message = &hello});
    put(&journal, (struct sgp_event){.type = SGP_EVENT_TRAINED, .now = 30});
    cr_assert(eq(int, sgp_journal_put_reload(&journal, 40, &change), 0));
    put(&journal, (struct sgp_event){.type = SGP_EVENT_TICK, .now = 40});
    sgp_topology_destroy(two);
    sgp_topology_destroy(three);
    return journal;
}

static int replay(const struct sgp_journal *journal, struct sgp_error *error)
{
    line_count = warning_count = 0;
    *error = (struct sgp_error){0};
    return sgp_journal_replay(journal->bytes, journal->count, "j", &sink, error);
}

Test(journal, is_played_as_it_was_written)
{
    struct sgp_error error;
    struct sgp_journal journal = small();
    cr_assert(eq(int, replay(&journal, &error), 0), "%s", error.text);
    cr_assert(eq(u32, warning_count, 0), "%s", lines[0]);
    const char *const beginnings[] = {"t=5 node=n0 event=process version=", "t=10 node=n0 state=",
        "t=10 node=n0 round=0 waits=", "t=20 node=n0 state=", "t=20 node=n0 state=",
        "t=30 node=n0 state=", "t=30 node=n0 round=0 waits=", "t=40 node=n0 state=",
        "t=40 node=n0 round=0 waits=", "t=40 node=n0 state="};
    for (uint32_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        cr_expect(
            strncmp(lines[i], beginnings[i], strlen(beginnings[i])) == 0, "%u: %s", i, lines[i]);
    cr_expect(strstr(lines[0], " date=1970-01-02T00:00:00Z ") != NULL, "%s", lines[0]);
    cr_expect(strstr(lines[0], " seed=11 incarnation=0000000000000007 ") != NULL, "%s", lines[0]);
    free(journal.bytes);
}

Test(journal, that_is_cut_off_is_played_as_far_as_it_goes)
{
    struct sgp_error error;
    struct sgp_journal journal = small();
    size_t whole = journal.count;
    cr_assert(eq(int, replay(&journal, &error), 0));
    uint32_t all = line_count;
    for (journal.count = 1; journal.count < whole; journal.count++) {
        uint8_t *exact = malloc(journal.count); /* so that a sanitizer sees a byte too far */
        memcpy(exact, journal.bytes, journal.count);
        const struct sgp_journal cut = {.bytes = exact, .count = journal.count};
        bool begun = journal.count >= strlen(SGP_JOURNAL_MARK);
        cr_assert(eq(int, replay(&cut, &error), begun ? 0 : SGP_E_FILE), "%zu: %s", cut.count,
            error.text);
        cr_assert(warning_count <= 1 && line_count - warning_count < all);
        free(exact);
    }
    free(journal.bytes);
}

/* One bit anywhere: told with its place, or (in a version's or a date's text that is under a checksum too)
 * never taken for sound. */
Test(journal, with_a_bit_flipped_is_refused)
{
    struct sgp_error error;
    struct sgp_journal journal = small();
    for (size_t at = 0; at < journal.count; at++) {
        journal.bytes[at] ^= (uint8_t)(1u << at % 8);
        cr_assert(eq(int, replay(&journal, &error), SGP_E_FILE), "byte %zu", at);
        cr_assert(strncmp(error.text, "j: byte ", 8) == 0, "%s", error.text);
        cr_assert(strtoull(error.text + 8, NULL, 10) <= at, "%zu: %s", at, error.text);
        journal.bytes[at] ^= (uint8_t)(1u << at % 8);
    }
    cr_assert(eq(int, replay(&journal, &error), 0));
    free(journal.bytes);
}

Test(journal, of_several_processes_goes_on_behind_a_cut)
{
    struct sgp_error error;
    struct sgp_journal journal = small(), twice = {.bytes = malloc(2 * journal.count)};
    for (size_t lost = 0; lost < 80; lost++) {
        size_t first = journal.count - lost;
        memcpy(twice.bytes, journal.bytes, first);
        memcpy(twice.bytes + first, journal.bytes, journal.count);
        twice.count = first + journal.count;
        cr_assert(eq(int, replay(&twice, &error), 0), "%zu: %s", lost, error.text);
        cr_assert(warning_count <= 1 && line_count > 11);
    }
    memset(
        twice.bytes + journal.count, 0, 100); /* room that a machine without power did not fill */
    twice.count = journal.count + 100;
    memcpy(twice.bytes, journal.bytes, journal.count);
    cr_assert(eq(int, replay(&twice, &error), 0), "%s", error.text);
    cr_assert(eq(u32, warning_count, 1));
    free(twice.bytes);
    free(journal.bytes);
}

Test(journal, of_another_version_is_told)
{
    struct sgp_error error;
    struct sgp_topology *two = ring(2);
    struct sgp_node_config config = config_of(two);
    struct sgp_journal journal = {.bytes = NULL};
    put_start(&journal, "0.0.9+feed", &config);
    cr_assert(eq(int, replay(&journal, &error), 0), "%s", error.text);
    cr_assert(eq(u32, warning_count, 1));
    cr_expect(strstr(lines[0], "j: byte 14: written by sgpd 0.0.9+feed, and this is ") != NULL,
        "%s", lines[0]);
    free(journal.bytes);
    sgp_topology_destroy(two);
}

Test(journal, holds_the_record_that_a_node_was_made_from)
{
    struct sgp_error error;
    struct sgp_topology *two = ring(2);
    struct sgp_node_config config = config_of(two);
    struct sgp_record_link links[] = {
        {.peer = 1,
            .out = true,
            .incarnation = 9,
            .number = 4,
            .acknowledged = 3,
            .owes = true,
            .owed_round = 3,
            .owed_fraction = 0.5,
            .owed_weight = 0.75,
            .owed_kept = true,
            .owed_slot = 1},
        {.peer = 1, .incarnation = 9, .number = 4},
    };
    struct sgp_account account = {.kind = SGP_ACCOUNT_ACCEPTED,
        .source = "n1",
        .target = "gone",
        .source_incarnation = 9,
        .target_incarnation = 5,
        .number = 8};
    struct sgp_record record = {.incarnation = 7,
        .round = 3,
        .weight = 1.0 / 3,
        .rounds = 5,
        .stop = SGP_ROUND_NONE,
        .link_count = 2,
        .link_capacity = 2,
        .links = links,
        .account_count = 1,
        .account_capacity = 1,
        .accounts = &account};
    config.record = &record;
    struct sgp_journal journal = {.bytes = NULL};
    put_start(&journal, sgp_version(), &config);
    put(&journal, (struct sgp_event){.type = SGP_EVENT_START, .now = 10});
    cr_assert(eq(int, replay(&journal, &error), 0), "%s", error.text);
    cr_expect(
        strstr(lines[1], " round=3 w=0.33333333333333331 event=start") != NULL, "%s", lines[1]);
    journal.count = 0;
    links[0].owed_slot = 1000;
    put_start(&journal, sgp_version(), &config);
    cr_assert(eq(int, replay(&journal, &error), SGP_E_FILE));
    free(journal.bytes);
    sgp_topology_destroy(two);
}

/* ---- sound bytes that say what no performer says ---- */

static void assert_refused(struct sgp_event event, const char *why)
{
    struct sgp_error error;
    struct sgp_journal journal = small();
    put(&journal, event);
    cr_assert(eq(int, replay(&journal, &error), SGP_E_FILE), "%s", why);
    cr_assert(strstr(error.text, why) != NULL, "%s", error.text);
    free(journal.bytes);
}

Test(journal, what_no_performer_says_is_refused)
{
    const struct sgp_link out = {.peer = 1, .direction = SGP_OUT, .connection = 2};
    const struct sgp_link nobody = {.peer = 3, .direction = SGP_OUT, .connection = 2};
    assert_refused((struct sgp_event){.type = 0, .now = 50}, "of no known type");
    assert_refused((struct sgp_event){.type = SGP_EVENT_START, .now = 50}, "begins with START");
    assert_refused((struct sgp_event){.type = SGP_EVENT_TICK, .now = 39}, "time runs backwards");
    assert_refused((struct sgp_event){.type = SGP_EVENT_TICK, .now = INT64_MAX}, "time runs");
    assert_refused((struct sgp_event){.type = SGP_EVENT_TRAINED, .now = 50}, "not asked for");
    assert_refused(
        (struct sgp_event){.type = SGP_EVENT_ABSORBED, .now = 50, .slot = 900}, "not asked for");
    assert_refused(
        (struct sgp_event){.type = SGP_EVENT_RESTORED, .now = 50, .slot = 900}, "not asked for");
    assert_refused(
        (struct sgp_event){.type = SGP_EVENT_UP, .now = 50, .link = nobody}, "of no node");
    assert_refused((struct sgp_event){.type = SGP_EVENT_UP,
                       .now = 50,
                       .link = {.peer = 0, .direction = SGP_IN, .connection = 2}},
        "on no edge");
    assert_refused(
        (struct sgp_event){.type = SGP_EVENT_MESSAGE, .now = 50, .link = out}, "missing");
    assert_refused(
        (struct sgp_event){.type = SGP_EVENT_PAYLOAD, .now = 50, .link = out}, "from a target");
}

Test(journal, a_file_of_another_kind_is_left_alone)
{
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_journal_check((const uint8_t *)"", 0, "j", &error), 0));
    cr_assert(eq(int, sgp_journal_check((const uint8_t *)"digraph {}\n\n\n\n", 14, "j", &error),
        SGP_E_FILE));
    cr_assert(strstr(error.text, "not an event journal") != NULL);
    error = (struct sgp_error){0};
    cr_assert(eq(
        int, sgp_journal_check((const uint8_t *)"sgpd events 9\n", 14, "j", &error), SGP_E_FILE));
    cr_assert(strstr(error.text, "another format") != NULL);
}
