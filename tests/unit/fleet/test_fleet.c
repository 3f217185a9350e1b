/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a fleet: their text, which of two counts, how old they are, and rows that are refused. */
#include "fleet_net.h"

#include <criterion/criterion.h>
#include <assertions.h>

static const char *const names[] = {"a", "b", "c"};

static struct sgp_fleet *fleet_by(
    const char *self, uint32_t incarnation, struct sgp_fleet_settings settings)
{
    settings.self = self;
    settings.incarnation = incarnation;
    settings.rows_max = settings.rows_max > 0 ? settings.rows_max : 8;
    struct sgp_fleet *fleet = sgp_fleet_create(&settings);
    cr_assert_not_null(fleet);
    sgp_fleet_prove(fleet, settings.verify != NULL);
    cr_assert(eq(int, sgp_fleet_use(fleet, names, 3), 0));
    return fleet;
}

static struct sgp_fleet *fleet_of(const char *self, uint32_t incarnation)
{
    return fleet_by(self, incarnation, (struct sgp_fleet_settings){.context = NULL});
}

/* Each of a few links offers. */
static void turns(struct sgp_fleet *fleet)
{
    for (int k = 0; k < 3; k++)
        sgp_fleet_turn(fleet);
}

static void tell(struct sgp_fleet *fleet, sgp_round round, sgp_time now)
{
    const struct sgp_fleet_row row = net_row(round, 1000);
    cr_assert(eq(int, sgp_fleet_tell(fleet, &row, now), 0));
    turns(fleet);
}

/* Pass all messages that are due between two links, both ways, until none is. */
static void exchange(struct sgp_fleet_link *a, struct sgp_fleet_link *b, sgp_time now)
{
    struct sgp_fleet_link *from = a, *to = b;
    for (int silent = 0; silent < 2;) {
        struct sgp_summary summary;
        struct sgp_row row;
        const enum sgp_fleet_message what = sgp_fleet_next(from, now, &summary, &row);
        if (what == SGP_FLEET_SUMMARY)
            sgp_fleet_hear(to, &summary);
        else if (what == SGP_FLEET_ROW)
            cr_assert(eq(int, sgp_fleet_take(to, &row, now, 2000), 0));
        silent = what == SGP_FLEET_NOTHING ? silent + 1 : 0;
        if (what == SGP_FLEET_NOTHING) {
            struct sgp_fleet_link *other = from;
            from = to;
            to = other;
        }
    }
}

static sgp_round round_of(const struct sgp_fleet *fleet, uint32_t index)
{
    struct sgp_fleet_row row;
    const struct sgp_fleet_view view = sgp_fleet_look(fleet, index, 0);
    if (view.text == NULL)
        return SGP_ROUND_NONE;
    cr_assert(eq(int, sgp_fleet_row_read(view.text, &row), 0));
    return row.round;
}

/* A row as a neighbour brings it. */
static struct sgp_row row_by(const char *author, uint64_t version, const char *text)
{
    return (struct sgp_row){
        .author = author, .version = version, .text = text, .key = "", .signature = ""};
}

/* ---- the text ---- */

Test(fleet, a_row_is_text_and_the_same_row_again)
{
    struct sgp_fleet_row row = net_row(17, 1000), back;
    char text[SGP_ROW_TEXT_BYTES], again[SGP_ROW_TEXT_BYTES];
    sgp_fleet_row_write(&row, text);
    cr_assert(eq(int, sgp_fleet_row_read(text, &back), 0));
    sgp_fleet_row_write(&back, again);
    cr_assert(eq(str, text, again));
    cr_assert(eq(str, text,
        "1 1000 training 17 100000 2.42857143 0.0555555556 0.111111111 0.9375 1.0625 0.001234 "
        "31.25 "
        "1000.5 17 share n1 0.25 1311768467463790320 0 0.1.0~git+41c9fdee3c2a SkylakeX 3 2.5 "
        "1e-05"));
    cr_assert(eq(i64, back.round, 17));
    cr_assert(back.topology_digest == row.topology_digest);
}

Test(fleet, what_is_not_known_is_a_dash_and_no_word_has_a_blank)
{
    struct sgp_fleet_row row = {.interval_ms = 1,
                             .state = "joining",
                             .round = SGP_ROUND_NONE,
                             .rounds = SGP_ROUND_NONE,
                             .epoch = NAN,
                             .loss = INFINITY,
                             .test_loss = NAN,
                             .test_accuracy = NAN,
                             .device = "Haswell (by hand)"},
                         back;
    char text[SGP_ROW_TEXT_BYTES];
    sgp_fleet_row_write(&row, text);
    cr_assert(
        eq(str, text, "1 1 joining - - - - - - 0 0 0 0 0 - - 0 0 0 - Haswell_(by_hand) 0 0 0"));
    cr_assert(eq(int, sgp_fleet_row_read(text, &back), 0));
    cr_assert(isnan(back.loss) && back.round == SGP_ROUND_NONE && back.waiting[0] == '\0');
}

Test(fleet, the_longest_row_fits)
{
    struct sgp_fleet_row row = net_row(SGP_ROUND_MAX, SGP_FLEET_INTERVAL_MAX);
    char text[SGP_ROW_TEXT_BYTES];
    char *const words[] = {
        row.state, row.waiting, row.waiting_peer, row.version, row.device, row.rollout_why};
    double *const reals[] = {&row.epoch, &row.loss, &row.test_loss, &row.test_accuracy, &row.weight,
        &row.disagreement, &row.rounds_per_second, &row.samples_per_second, &row.uptime_seconds,
        &row.waiting_seconds, &row.promised_epsilon, &row.promised_delta};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        memset(words[i], 'x', SGP_NAME_BYTES - 1);
        words[i][SGP_NAME_BYTES - 1] = '\0';
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        *reals[i] = -1.23456789e-300;
    row.rounds = SGP_ROUND_MAX;
    row.topology_digest = row.topology_version = UINT64_MAX;
    row.promised = row.rollout_vote = UINT32_MAX;
    row.rollout_active = row.rollout_proposed = row.rollout_mark = UINT64_MAX;
    sgp_fleet_row_write(&row, text);
    cr_assert(eq(int, sgp_fleet_row_read(text, &row), 0));
    cr_assert(eq(sz, strlen(row.waiting_peer), SGP_NAME_BYTES - 1));
    cr_assert(eq(sz, strlen(row.rollout_why), SGP_NAME_BYTES - 1));
    cr_assert(eq(sz, strlen(row.device), 31));
}

Test(fleet, a_row_says_which_signed_file_a_node_uses_and_its_vote)
{
    struct sgp_fleet_row row = net_row(17, 1000), back;
    char text[SGP_ROW_TEXT_BYTES];
    sgp_fleet_row_write(&row, text);
    cr_assert(eq(int, sgp_fleet_row_read(text, &back), 0));
    cr_assert(back.rollout_active == 0 && back.rollout_vote == 0 && back.rollout_why[0] == '\0');
    row.rollout_active = 6;
    row.rollout_proposed = 7;
    row.rollout_mark = UINT64_C(0xfedcba9876543210);
    row.rollout_vote = 3;
    (void)strcpy(row.rollout_why, "by it this node owns other values");
    sgp_fleet_row_write(&row, text);
    cr_assert_not_null(
        strstr(text, " 1e-05 6 7 18364758544493064720 3 by~it~this~node~owns~other~values"));
    cr_assert(eq(int, sgp_fleet_row_read(text, &back), 0));
    cr_assert(back.rollout_active == 6 && back.rollout_proposed == 7 && back.rollout_vote == 3);
    cr_assert(back.rollout_mark == row.rollout_mark);
    cr_assert(eq(str, back.rollout_why, row.rollout_why));
}

Test(fleet, a_later_row_may_have_more_words_and_another_form_is_refused)
{
    struct sgp_fleet_row row = net_row(17, 1000);
    char text[SGP_ROW_TEXT_BYTES], more[SGP_ROW_TEXT_BYTES + 16];
    row.rollout_active = 1; /* else its words are left out */
    sgp_fleet_row_write(&row, text);
    (void)snprintf(more, sizeof more, "%s 5 five", text);
    cr_assert(eq(int, sgp_fleet_row_read(more, &row), 0));
    cr_assert(eq(int, sgp_fleet_row_read("1 1000 training 17", &row), 0), "of an earlier one");
    cr_assert(isnan(row.weight) && row.round == 17 && row.rounds == SGP_ROUND_NONE);
    cr_assert(row.promised == SGP_FLEET_PROMISED_UNKNOWN && isnan(row.promised_epsilon));
    (void)snprintf(more, sizeof more, "2%s", text + 1);
    cr_assert(eq(int, sgp_fleet_row_read(more, &row), SGP_E_VERSION));
    static const char *const wrong[] = {"", "1", "x", "1  1000", " 1", "1 1000 ",
        "1 0 training 1 1 1 1 1 1 1 1 1 1 1 - - 1 1 1 v d", /* no interval */
        "1 1000 training -1 1 1 1 1 1 1 1 1 1 1 - - 1 1 1 v d",
        "1 1000 training 1 1 inf 1 1 1 1 1 1 1 1 - - 1 1 1 v d",
        "1 1000 training 1 1 nan 1 1 1 1 1 1 1 1 - - 1 1 1 v d",
        "1 1000 training 1 1 0x1 1 1 1 1 1 1 1 1 - - 1 1 1 v d",
        "1 1000 training 1 1 1e999 1 1 1 1 1 1 1 1 - - 1 1 1 v d",
        "1 1000 training 1 1 1 1 1 1 1 1 1 1 1 - - 1 18446744073709551616 1 v d",
        "1 1000 training 1 1 1 1 1 1 1 1 1 1 1 - - 1 1 1 v d ",
        "1 1000 training 1 1 1 1 1 1 1 1 1 1 1 - - 1 1 1 v d\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect(eq(int, sgp_fleet_row_read(wrong[i], &row), SGP_E_DATA), "%s", wrong[i]);
}

Test(fleet, rows_promise_like_privacy_or_not)
{
    const struct sgp_fleet_row unknown = {.promised_epsilon = NAN, .promised_delta = NAN},
                               none = {.promised = SGP_FLEET_PROMISED_NONE,
                                   .promised_epsilon = NAN,
                                   .promised_delta = NAN},
                               counted = {.promised = SGP_FLEET_PROMISED_COUNTED,
                                   .promised_epsilon = 3,
                                   .promised_delta = 1e-5},
                               claimed = {.promised = SGP_FLEET_PROMISED_CLAIMED,
                                   .promised_epsilon = 3,
                                   .promised_delta = 1e-5},
                               more = {.promised = SGP_FLEET_PROMISED_CLAIMED,
                                   .promised_epsilon = 4,
                                   .promised_delta = 1e-5},
                               rarer = {.promised = SGP_FLEET_PROMISED_CLAIMED,
                                   .promised_epsilon = 3,
                                   .promised_delta = 1e-6};
    const struct sgp_fleet_row *const rows[] = {&none, &counted, &claimed, &more, &rarer};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect(sgp_fleet_promises_differ(rows[i], &unknown) == false);
        cr_expect(sgp_fleet_promises_differ(&unknown, rows[i]) == false);
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++)
            cr_expect(sgp_fleet_promises_differ(rows[i], rows[j]) == (i != j), "%zu %zu", i, j);
    }
    cr_expect(eq(str, (char *)sgp_fleet_promised_word(SGP_FLEET_PROMISED_CLAIMED), "claimed"));
    cr_expect(sgp_fleet_promised_word(SGP_FLEET_PROMISED_UNKNOWN) == NULL);
    cr_expect(sgp_fleet_promised_word(17) == NULL, "of a later program");
}

Test(fleet, what_tells_of_rows_can_be_withheld)
{
    struct sgp_fleet_row row = net_row(17, 1000);
    sgp_fleet_row_withhold(&row);
    cr_assert(isnan(row.loss) && isnan(row.test_loss) && isnan(row.test_accuracy));
    cr_assert(isnan(row.epoch) && isnan(row.samples_per_second));
    cr_assert(eq(i64, row.round, 17));
}

/* ---- which row counts ---- */

Test(fleet, rows_spread_over_a_node_between_and_nothing_is_said_twice)
{
    struct sgp_fleet *a = fleet_of("a", 1000), *b = fleet_of("b", 1000), *c = fleet_of("c", 1000);
    struct sgp_fleet_link *ab = sgp_fleet_open(a, 0), *ba = sgp_fleet_open(b, 0),
                          *bc = sgp_fleet_open(b, 0), *cb = sgp_fleet_open(c, 0);
    struct sgp_summary summary;
    struct sgp_row row;
    tell(a, 5, 0);
    exchange(ab, ba, 0);
    exchange(bc, cb, 0);
    cr_assert(eq(i64, round_of(c, 0), 5));
    turns(a);
    turns(b);
    exchange(ab, ba, SGP_SECOND);
    cr_assert(eq(int, sgp_fleet_next(ab, SGP_SECOND, &summary, &row), SGP_FLEET_NOTHING));
    cr_assert(eq(int, sgp_fleet_next(ba, SGP_SECOND, &summary, &row), SGP_FLEET_NOTHING),
        "what came from a is not offered to a");
    cr_assert(eq(int, sgp_fleet_next(bc, SGP_SECOND, &summary, &row), SGP_FLEET_NOTHING));
    sgp_fleet_destroy(a);
    sgp_fleet_destroy(b);
    sgp_fleet_destroy(c);
}

Test(fleet, in_each_turn_one_link_offers_and_then_the_next)
{
    enum { LINKS = 3 };
    struct sgp_fleet *a = fleet_of("a", 1000);
    struct sgp_fleet_link *links[LINKS];
    const struct sgp_fleet_row said = net_row(7, 1000);
    struct sgp_summary summary;
    struct sgp_row row;
    sgp_fleet_turn(a); /* without links */
    for (int k = 0; k < LINKS; k++) {
        links[k] = sgp_fleet_open(a, 0);
        cr_assert(eq(int, sgp_fleet_next(links[k], 0, &summary, &row), SGP_FLEET_NOTHING));
    }
    cr_assert(eq(int, sgp_fleet_tell(a, &said, 0), 0));
    for (int turn = 0, offered = 0; turn <= LINKS; turn++) {
        for (int k = 0; k < LINKS; k++)
            while (sgp_fleet_next(links[k], 0, &summary, &row) != SGP_FLEET_NOTHING)
                offered++;
        cr_assert(eq(int, offered, turn));
        sgp_fleet_turn(a);
    }
    cr_assert(eq(int, sgp_fleet_tell(a, &said, 0), 0));
    sgp_fleet_hurry(a);
    for (int k = 0; k < LINKS; k++)
        cr_assert(eq(int, sgp_fleet_next(links[k], 0, &summary, &row), SGP_FLEET_SUMMARY));
    sgp_fleet_close(links[LINKS - 2]); /* whose turn is next */
    cr_assert(eq(int, sgp_fleet_tell(a, &said, 0), 0));
    sgp_fleet_turn(a);
    cr_assert(eq(int, sgp_fleet_next(links[0], 0, &summary, &row), SGP_FLEET_SUMMARY));
    sgp_fleet_destroy(a);
}

Test(fleet, a_row_in_another_order_does_not_take_the_place_of_a_later_one)
{
    struct sgp_fleet *a = fleet_of("a", 1000);
    struct sgp_fleet_link *link = sgp_fleet_open(a, 0);
    struct sgp_fleet_row said = net_row(7, 1000);
    char early[SGP_ROW_TEXT_BYTES], late[SGP_ROW_TEXT_BYTES];
    sgp_fleet_row_write(&said, early);
    said.round = 8;
    sgp_fleet_row_write(&said, late);
    const uint64_t version = (UINT64_C(1000) << 32) + 2;
    const struct sgp_row first = row_by("b", version, late),
                         replayed = row_by("b", version - 1, early);
    cr_assert(eq(int, sgp_fleet_take(link, &first, 0, 2000), 0));
    cr_assert(eq(int, sgp_fleet_take(link, &first, 0, 2000), 0), "once more: of no use");
    cr_assert(eq(u64, sgp_fleet_counts(a).earlier, 0));
    cr_assert(eq(int, sgp_fleet_take(link, &replayed, 0, 2000), 0));
    cr_assert(eq(u64, sgp_fleet_counts(a).earlier, 1));
    cr_assert(eq(i64, round_of(a, 1), 8));
    sgp_fleet_destroy(a);
}

/* b begins anew: with a later clock; in the same second; and with a clock of the past. */
Test(fleet, a_node_that_begins_anew_is_not_beaten_by_its_own_old_row)
{
    static const uint32_t incarnations[] = {1001, 1000, 3};
    for (size_t i = 0; i < sizeof incarnations / sizeof *incarnations; i++) {
        struct sgp_fleet *a = fleet_of("a", 1000), *b = fleet_of("b", 1000);
        struct sgp_fleet_link *ab = sgp_fleet_open(a, 0), *ba = sgp_fleet_open(b, 0);
        for (sgp_round round = 90; round < 100; round++)
            tell(b, round, 0);
        exchange(ab, ba, 0);
        cr_assert(eq(i64, round_of(a, 1), 99));
        sgp_fleet_destroy(b);
        sgp_fleet_close(ab);
        b = fleet_of("b", incarnations[i]);
        ab = sgp_fleet_open(a, SGP_SECOND);
        ba = sgp_fleet_open(b, SGP_SECOND);
        tell(b, 1, SGP_SECOND);
        exchange(ab, ba, SGP_SECOND);
        cr_assert(eq(int, sgp_fleet_must_tell(b), incarnations[i] <= 1000));
        cr_assert(eq(i64, round_of(b, 1), 1), "its own row stays");
        tell(b, 2, 2 * SGP_SECOND);
        exchange(ab, ba, 2 * SGP_SECOND);
        cr_assert(not(sgp_fleet_must_tell(b)));
        cr_assert(eq(i64, round_of(a, 1), 2));
        sgp_fleet_destroy(a);
        sgp_fleet_destroy(b);
    }
}

/* ---- ages ---- */

Test(fleet, the_age_is_the_time_for_which_nodes_have_held_a_row)
{
    struct sgp_fleet *a = fleet_of("a", 1000), *b = fleet_of("b", 1000), *c = fleet_of("c", 1000);
    struct sgp_fleet_link *ab = sgp_fleet_open(a, 0), *ba = sgp_fleet_open(b, 0);
    /* the clock of c is another, and its row waits 5 s at b */
    const sgp_time other = 1000000 * SGP_SECOND;
    struct sgp_fleet_link *bc = sgp_fleet_open(b, 0), *cb = sgp_fleet_open(c, other);
    tell(a, 5, 0);
    exchange(ab, ba, 2 * SGP_SECOND);
    struct sgp_summary summary;
    struct sgp_row row;
    cr_assert(eq(int, sgp_fleet_next(bc, 7 * SGP_SECOND, &summary, &row), SGP_FLEET_SUMMARY));
    sgp_fleet_hear(cb, &summary);
    cr_assert(eq(int, sgp_fleet_next(cb, other, &summary, &row), SGP_FLEET_SUMMARY));
    cr_assert(summary.wants);
    sgp_fleet_hear(bc, &summary);
    cr_assert(eq(int, sgp_fleet_next(bc, 7 * SGP_SECOND, &summary, &row), SGP_FLEET_ROW));
    cr_assert(eq(u64, row.age_ms, 7000));
    cr_assert(eq(int, sgp_fleet_take(cb, &row, other, 2000), 0));
    cr_assert(not(sgp_fleet_look(c, 0, other + 3 * SGP_SECOND).stale));
    cr_assert(eq(i64, sgp_fleet_look(c, 0, other + 4 * SGP_SECOND).age, 11 * SGP_SECOND));
    cr_assert(sgp_fleet_look(c, 0, other + 4 * SGP_SECOND).stale);
    cr_assert(sgp_fleet_look(c, 2, other).stale, "no row has come");
    sgp_fleet_destroy(a);
    sgp_fleet_destroy(b);
    sgp_fleet_destroy(c);
}

/* An age is not signed, so a node that relays a row may lie. */
Test(fleet, a_row_of_the_greatest_age_is_stale_and_keeps_its_age)
{
    struct sgp_fleet *a = fleet_of("a", 1000), *c = fleet_of("c", 1000);
    struct sgp_fleet_link *ab = sgp_fleet_open(a, 0), *ac = sgp_fleet_open(a, 0),
                          *ca = sgp_fleet_open(c, 0);
    const struct sgp_fleet_row said = net_row(7, 1000);
    const sgp_time greatest = (sgp_time)SGP_ROW_AGE_MAX * SGP_MILLISECOND,
                   now = 8640000 * SGP_SECOND;
    char text[SGP_ROW_TEXT_BYTES];
    struct sgp_row row = row_by("b", (UINT64_C(1000) << 32) + 1, text);
    sgp_fleet_row_write(&said, text);
    row.age_ms = SGP_ROW_AGE_MAX;
    cr_assert(eq(int, sgp_fleet_take(ab, &row, 0, 2000), 0));
    cr_assert(eq(i64, sgp_fleet_look(a, 1, 0).age, greatest));
    cr_assert(eq(i64, sgp_fleet_look(a, 1, now).age, greatest + now));
    cr_assert(sgp_fleet_look(a, 1, now).stale);
    exchange(ac, ca, now);
    cr_assert(eq(i64, sgp_fleet_look(c, 1, now).age, greatest));
    cr_assert(sgp_fleet_look(c, 1, now).stale);
    sgp_fleet_destroy(a);
    sgp_fleet_destroy(c);
}

Test(fleet, a_node_that_becomes_stale_is_told_once_and_once_more_when_it_is_back)
{
    struct sgp_fleet *a = fleet_of("a", 1000), *b = fleet_of("b", 1000);
    struct sgp_fleet_link *ab = sgp_fleet_open(a, 0), *ba = sgp_fleet_open(b, 0);
    uint32_t index = 9;
    bool stale = false;
    tell(b, 5, 0);
    exchange(ab, ba, 0);
    cr_assert(not(sgp_fleet_changed(a, 9 * SGP_SECOND, &index, &stale)));
    cr_assert(sgp_fleet_changed(a, 11 * SGP_SECOND, &index, &stale));
    cr_assert(index == 1 && stale);
    cr_assert(not(sgp_fleet_changed(a, 12 * SGP_SECOND, &index, &stale)));
    tell(b, 6, 20 * SGP_SECOND);
    exchange(ab, ba, 20 * SGP_SECOND);
    cr_assert(sgp_fleet_changed(a, 20 * SGP_SECOND, &index, &stale));
    cr_assert(index == 1 && !stale);
    cr_assert(not(sgp_fleet_changed(a, 20 * SGP_SECOND, &index, &stale)));
    sgp_fleet_destroy(a);
    sgp_fleet_destroy(b);
}

Test(fleet, with_more_nodes_each_publishes_less_often)
{
    cr_assert(eq(u32, sgp_fleet_interval(12), 1000));
    cr_assert(eq(u32, sgp_fleet_interval(100), 8333));
    cr_assert(eq(u32, sgp_fleet_interval(4096), 341333));
    cr_assert(eq(u32, sgp_fleet_interval(UINT32_MAX), SGP_FLEET_INTERVAL_MAX));
}

/* ---- rows that are refused ---- */

/* What a topology file and a key say of every row, and how often they were asked. */
static bool key_fits, signature_fits;
static uint32_t lookups, verifications;

static bool has_key(void *context, const struct sgp_row *row)
{
    (void)context, (void)row;
    lookups++;
    return key_fits;
}

static bool verify(void *context, const struct sgp_row *row, const char *bytes, size_t count)
{
    char expected[1024];
    (void)context;
    (void)snprintf(expected, sizeof expected, "sgpd row\n%016x\n%s\n%" PRIu64 "\n%s\n", 0u,
        row->author, row->version, row->text);
    cr_assert(count == strlen(expected) && memcmp(bytes, expected, count) == 0);
    verifications++;
    return signature_fits;
}

static const struct sgp_fleet_settings proving = {.has_key = has_key, .verify = verify};

static struct sgp_row signed_by(const char *author, uint64_t version, const char *text)
{
    struct sgp_row row = row_by(author, version, text);
    row.key = "k";
    row.signature = "s";
    return row;
}

/* A neighbour may have another file, so a row that cannot be proved says nothing of it. */
Test(fleet, rows_that_are_refused_are_counted_and_only_nonsense_ends_the_link)
{
    struct sgp_fleet *a = fleet_by("a", 1000, proving);
    struct sgp_fleet_link *link = sgp_fleet_open(a, 0);
    const struct sgp_fleet_row said = net_row(7, 1000);
    char text[SGP_ROW_TEXT_BYTES];
    sgp_fleet_row_write(&said, text);
    const uint64_t version = UINT64_C(1000) << 32;
    const struct sgp_row good = signed_by("b", version + 1, text),
                         bare = row_by("b", version + 1, text), stranger = row_by("x", 1, text),
                         nonsense = row_by("b", version + 2, "1 0"),
                         form = row_by("b", version + 2, "2 words"),
                         ahead = row_by("b", (UINT64_C(2000) + 86401) << 32, text);
    key_fits = true;
    cr_assert(eq(int, sgp_fleet_take(link, &bare, 0, 2000), 0), "without a signature");
    cr_assert(eq(u32, lookups, 0));
    key_fits = false;
    signature_fits = true;
    cr_assert(eq(int, sgp_fleet_take(link, &good, 0, 2000), 0), "with another key");
    cr_assert(eq(u32, verifications, 0), "which costs no verification");
    key_fits = true;
    signature_fits = false;
    cr_assert(eq(int, sgp_fleet_take(link, &good, 0, 2000), 0), "with a wrong signature");
    cr_assert_null(sgp_fleet_look(a, 1, 0).text);
    signature_fits = true;
    cr_assert(eq(int, sgp_fleet_take(link, &stranger, 0, 2000), 0));
    cr_assert(eq(int, sgp_fleet_take(link, &nonsense, 0, 2000), SGP_E_PROTOCOL));
    cr_assert(eq(int, sgp_fleet_take(link, &form, 0, 2000), 0), "of a later program");
    cr_assert(eq(int, sgp_fleet_take(link, &ahead, 0, 2000), 0));
    const struct sgp_fleet_counts counts = sgp_fleet_counts(a);
    cr_assert(eq(u64, counts.forged, 3));
    cr_assert(eq(u64, counts.strangers, 1));
    cr_assert(eq(u64, counts.malformed, 2));
    cr_assert(eq(u64, counts.ahead, 1));
    cr_assert_null(sgp_fleet_look(a, 1, 0).text);
    cr_assert(eq(int, sgp_fleet_take(link, &good, 0, 2000), 0));
    cr_assert(eq(i64, round_of(a, 1), 7));
    sgp_fleet_destroy(a);
}

/* A signature that only these bytes have. */
static void digest_of(const char *bytes, size_t count, char ret_text[SGP_ROW_SIGNATURE_BYTES])
{
    uint64_t digest = 0;
    for (size_t i = 0; i < count; i++)
        digest = digest * 31 + (uint8_t)bytes[i];
    (void)snprintf(ret_text, SGP_ROW_SIGNATURE_BYTES, "%016" PRIx64, digest);
}

static bool sign_digest(void *context, const char *bytes, size_t count,
    char ret_key[SGP_ROW_KEY_BYTES], char ret_signature[SGP_ROW_SIGNATURE_BYTES])
{
    (void)context;
    (void)snprintf(ret_key, SGP_ROW_KEY_BYTES, "k");
    digest_of(bytes, count, ret_signature);
    return true;
}

static bool verify_digest(void *context, const struct sgp_row *row, const char *bytes, size_t count)
{
    char expected[SGP_ROW_SIGNATURE_BYTES];
    (void)context;
    digest_of(bytes, count, expected);
    return strcmp(row->signature, expected) == 0;
}

/* Two fleets have the same names and keys, and somebody is a node of both. */
Test(fleet, a_row_of_a_fleet_that_trains_another_model_is_not_taken)
{
    struct sgp_fleet_settings settings = {
        .model = 1, .sign = sign_digest, .has_key = has_key, .verify = verify_digest};
    struct sgp_fleet *here = fleet_by("a", 1000, settings), *same = fleet_by("b", 1000, settings);
    settings.model = 2;
    struct sgp_fleet *other = fleet_by("b", 1000, settings);
    struct sgp_fleet_link *link = sgp_fleet_open(here, 0), *far = sgp_fleet_open(other, 0);
    key_fits = true;
    tell(other, 99, 0);
    exchange(link, far, 0);
    cr_assert(eq(i64, round_of(here, 1), SGP_ROUND_NONE));
    cr_assert(eq(u64, sgp_fleet_counts(here).forged, 1));
    struct sgp_fleet_link *near = sgp_fleet_open(same, 0);
    tell(same, 7, 0);
    exchange(link, near, 0);
    cr_assert(eq(i64, round_of(here, 1), 7));
    sgp_fleet_destroy(here);
    sgp_fleet_destroy(same);
    sgp_fleet_destroy(other);
}

Test(fleet, a_row_in_the_name_of_the_reader_only_raises_its_next_version)
{
    struct sgp_fleet *a = fleet_of("a", 1000);
    struct sgp_fleet_link *link = sgp_fleet_open(a, 0);
    const struct sgp_fleet_row said = net_row(777, 1000);
    char text[SGP_ROW_TEXT_BYTES];
    struct sgp_summary summary;
    struct sgp_row row = row_by("a", (UINT64_C(1500) << 32) + 5, text);
    sgp_fleet_row_write(&said, text);
    tell(a, 1, 0);
    cr_assert(eq(int, sgp_fleet_take(link, &row, 0, 2000), 0));
    cr_assert(sgp_fleet_must_tell(a));
    cr_assert(eq(i64, round_of(a, 0), 1));
    tell(a, 2, 0);
    cr_assert(eq(int, sgp_fleet_next(link, 0, &summary, &row), SGP_FLEET_SUMMARY));
    cr_assert(eq(u64, summary.versions[0], (UINT64_C(1500) << 32) + 6));
    sgp_fleet_destroy(a);
}

Test(fleet, a_peer_that_sends_more_rows_than_any_honest_one_ends_its_link)
{
    struct sgp_fleet *a = fleet_of("a", 1000);
    struct sgp_fleet_link *link = sgp_fleet_open(a, 0);
    const struct sgp_row row = row_by("x", 1, "1 1000");
    for (sgp_time now = 0; now < 60 * SGP_SECOND; now += SGP_SECOND / SGP_FLEET_ROWS_RATE)
        cr_assert(eq(int, sgp_fleet_take(link, &row, now, 2000), 0));
    for (uint32_t k = 0; k < SGP_FLEET_ROWS_BURST; k++)
        cr_assert(eq(int, sgp_fleet_take(link, &row, 60 * SGP_SECOND, 2000), 0));
    cr_assert(eq(int, sgp_fleet_take(link, &row, 60 * SGP_SECOND, 2000), SGP_E_PROTOCOL));
    sgp_fleet_destroy(a);
}

/* A peer asks for everything, as often as it can, and reads nothing: what is sent has its bound. */
Test(fleet, a_peer_that_asks_without_end_gets_what_fits_the_rate)
{
    struct sgp_fleet *a = fleet_of("a", 1000);
    struct sgp_fleet_link *link = sgp_fleet_open(a, 0);
    struct sgp_summary summary, asks = {.wants = true, .nodes = {sgp_fleet_name_digest("a")}};
    struct sgp_row row;
    uint64_t sent = 0;
    tell(a, 1, 0);
    for (uint32_t k = 1; k < SGP_SUMMARY_ENTRIES; k++)
        asks.nodes[k] = k; /* nodes that there are not */
    for (sgp_time now = 0; now < SGP_SECOND; now += SGP_MILLISECOND) {
        for (uint32_t k = 0; k < 100; k++)
            sgp_fleet_hear(link, &asks);
        while (sgp_fleet_next(link, now, &summary, &row) != SGP_FLEET_NOTHING) {
            sgp_fleet_sent(link, 1000);
            sent += 1000;
            sgp_fleet_hear(link, &asks);
        }
    }
    cr_assert(sent > 12000 && sent <= 16384, "%llu", (unsigned long long)sent);
    sgp_fleet_destroy(a);
}

Test(fleet, the_sum_of_memory_grows_with_nodes_and_links_up_to_the_rows_that_there_can_be)
{
    const uint64_t four = sgp_fleet_bytes(4096, 0);
    cr_assert(four > 3500u << 10 && four < 4096u << 10, "%llu", (unsigned long long)four);
    cr_assert(eq(u64, sgp_fleet_bytes(65536, 0), four));
    cr_assert(sgp_fleet_bytes(4096, 10) - four < 11u << 10);
}

/* ---- other nodes ---- */

Test(fleet, another_file_keeps_the_rows_of_those_who_stay)
{
    static const char *const later[] = {"d", "b", "a"};
    struct sgp_fleet *a = fleet_of("a", 1000), *b = fleet_of("b", 1000), *c = fleet_of("c", 1000);
    struct sgp_fleet_link *ab = sgp_fleet_open(a, 0), *ba = sgp_fleet_open(b, 0),
                          *ac = sgp_fleet_open(a, 0), *ca = sgp_fleet_open(c, 0);
    tell(a, 1, 0);
    tell(b, 2, 0);
    tell(c, 3, 0);
    exchange(ab, ba, 0);
    exchange(ac, ca, 0);
    cr_assert(eq(i64, round_of(a, 2), 3));
    cr_assert(eq(int, sgp_fleet_use(a, later, 3), 0));
    cr_assert(eq(i64, round_of(a, 0), SGP_ROUND_NONE));
    cr_assert(eq(i64, round_of(a, 1), 2));
    cr_assert(eq(i64, round_of(a, 2), 1));
    tell(b, 4, SGP_SECOND);
    exchange(ab, ba, SGP_SECOND);
    cr_assert(eq(i64, round_of(a, 1), 4));
    cr_assert(eq(int, sgp_fleet_use(a, later, 2), 0), "without this node itself");
    tell(a, 9, SGP_SECOND);
    cr_assert(eq(u32, sgp_fleet_count(a), 2));
    sgp_fleet_destroy(a);
    sgp_fleet_destroy(b);
    sgp_fleet_destroy(c);
}

/* b had the former file when a offered the row of d, which then says no more. */
Test(fleet, a_node_that_gets_another_file_asks_for_the_rows_that_it_lacks)
{
    static const char *const later[] = {"d", "b", "a"};
    struct sgp_fleet *a = fleet_of("a", 1000), *b = fleet_of("b", 1000);
    struct sgp_fleet_link *ab = sgp_fleet_open(a, 0), *ba = sgp_fleet_open(b, 0),
                          *ad = sgp_fleet_open(a, 0);
    const struct sgp_fleet_row said = net_row(7, 1000);
    char text[SGP_ROW_TEXT_BYTES];
    struct sgp_summary summary;
    struct sgp_row row;
    sgp_fleet_row_write(&said, text);
    const struct sgp_row last = row_by("d", (UINT64_C(1000) << 32) + 1, text);
    cr_assert(eq(int, sgp_fleet_use(a, later, 3), 0));
    cr_assert(eq(int, sgp_fleet_take(ad, &last, 0, 2000), 0));
    exchange(ab, ba, 0);
    cr_assert(eq(int, sgp_fleet_use(b, later, 3), 0));
    exchange(ab, ba, SGP_SECOND);
    cr_assert(eq(i64, round_of(b, 0), 7));
    exchange(ab, ba, 2 * SGP_SECOND);
    cr_assert(eq(int, sgp_fleet_next(ba, 2 * SGP_SECOND, &summary, &row), SGP_FLEET_NOTHING),
        "it has asked once");
    sgp_fleet_destroy(a);
    sgp_fleet_destroy(b);
}

/* A file that asks for signatures, after one that did not, or after another such. */
Test(fleet, another_file_keeps_rows_that_were_proved_and_verifies_none_again)
{
    struct sgp_fleet *a = fleet_by("a", 1000, proving);
    struct sgp_fleet_link *link = sgp_fleet_open(a, 0);
    const struct sgp_fleet_row said = net_row(7, 1000);
    char text[SGP_ROW_TEXT_BYTES];
    sgp_fleet_row_write(&said, text);
    const uint64_t version = (UINT64_C(1000) << 32) + 1;
    const struct sgp_row b = signed_by("b", version, text), c = signed_by("c", version, text);
    key_fits = signature_fits = true;
    tell(a, 5, 0);
    cr_assert(eq(int, sgp_fleet_take(link, &b, 0, 2000), 0));
    sgp_fleet_prove(a, false);
    cr_assert(eq(int, sgp_fleet_use(a, names, 3), 0));
    cr_assert(eq(int, sgp_fleet_take(link, &c, 0, 2000), 0));
    cr_assert(eq(i64, round_of(a, 2), 7));
    verifications = 0;
    sgp_fleet_prove(a, true);
    cr_assert(eq(int, sgp_fleet_use(a, names, 3), 0));
    cr_assert(eq(i64, round_of(a, 1), 7));
    cr_assert(eq(i64, round_of(a, 2), SGP_ROUND_NONE), "it came while no row was proved");
    key_fits = false;
    sgp_fleet_prove(a, true);
    cr_assert(eq(int, sgp_fleet_use(a, names, 3), 0));
    cr_assert(eq(i64, round_of(a, 1), SGP_ROUND_NONE), "the file gives b another key");
    cr_assert(eq(i64, round_of(a, 0), 5), "its own row stays");
    cr_assert(eq(u32, verifications, 0));
    sgp_fleet_destroy(a);
}

/* The version of a's row that a link offers; 0: it offers none. */
static uint64_t version_offered(struct sgp_fleet_link *link)
{
    struct sgp_summary summary;
    struct sgp_row row;
    uint64_t version = 0;
    while (sgp_fleet_next(link, 0, &summary, &row) == SGP_FLEET_SUMMARY)
        if (!summary.wants && summary.nodes[0] == sgp_fleet_name_digest("a"))
            version = summary.versions[0];
    return version;
}

static bool signs;

static bool sign_if_asked(void *context, const char *bytes, size_t count,
    char ret_key[SGP_ROW_KEY_BYTES], char ret_signature[SGP_ROW_SIGNATURE_BYTES])
{
    (void)context;
    (void)bytes;
    (void)count;
    (void)snprintf(ret_key, SGP_ROW_KEY_BYTES, "%s", signs ? "a key" : "");
    (void)snprintf(ret_signature, SGP_ROW_SIGNATURE_BYTES, "%s", signs ? "a signature" : "");
    return true;
}

/* Every node that has the new file would refuse it, and count a forged row. */
Test(fleet, an_own_row_without_signature_is_not_offered_after_a_file_that_asks_for_it)
{
    struct sgp_fleet_settings settings = proving;
    settings.sign = sign_if_asked;
    struct sgp_fleet *a = fleet_by("a", 1000, settings);
    struct sgp_fleet_link *link = sgp_fleet_open(a, 0);
    signs = false;
    sgp_fleet_prove(a, false);
    cr_assert(sgp_fleet_must_tell(a));
    tell(a, 5, 0);
    cr_assert(not(sgp_fleet_must_tell(a)));
    sgp_fleet_prove(a, true);
    cr_assert(eq(int, sgp_fleet_use(a, names, 3), 0));
    cr_assert(eq(u64, version_offered(link), 0));
    cr_assert(sgp_fleet_must_tell(a));
    signs = true;
    tell(a, 6, 0);
    cr_assert(not(sgp_fleet_must_tell(a)));
    cr_assert(eq(int, sgp_fleet_use(a, names, 3), 0));
    cr_assert(eq(u64, version_offered(link), (UINT64_C(1000) << 32) + 2));
    sgp_fleet_destroy(a);
}

enum { MANY = 4096 };
static char many[MANY][SGP_NAME_BYTES];
static const char *list[MANY];

/* A row of one of many, at a time at which the link has patience for it. */
static void take_one(
    struct sgp_fleet_link *link, uint32_t index, uint32_t number, sgp_time *ret_now)
{
    const struct sgp_fleet_row said = net_row(number, 1000);
    char text[SGP_ROW_TEXT_BYTES];
    sgp_fleet_row_write(&said, text);
    const struct sgp_row row = row_by(list[index], (UINT64_C(1000) << 32) + number, text);
    *ret_now += 10 * SGP_MILLISECOND;
    cr_assert(eq(int, sgp_fleet_take(link, &row, *ret_now, 2000), 0));
}

/* What is said on a link until nothing is due; the number of rows. */
static uint32_t offers(
    struct sgp_fleet_link *link, sgp_time now, uint64_t *ret_digests, uint32_t summaries)
{
    struct sgp_summary summary;
    struct sgp_row row;
    uint32_t used = 0;
    while (summaries-- > 0 && sgp_fleet_next(link, now, &summary, &row) == SGP_FLEET_SUMMARY)
        for (uint32_t k = 0; k < SGP_SUMMARY_ENTRIES && summary.nodes[k] != 0; k++)
            ret_digests[used++] = summary.nodes[k];
    return used;
}

/* A row that changes is offered once more, behind the others, also the one that was offered last. */
Test(fleet, all_rows_are_offered_in_the_order_in_which_they_came)
{
    static uint64_t digests[MANY + 1];
    struct sgp_fleet *hub = sgp_fleet_create(
        &(struct sgp_fleet_settings){.self = "n0", .incarnation = 1000, .rows_max = MANY});
    struct sgp_fleet_link *from = sgp_fleet_open(hub, 0), *to = sgp_fleet_open(hub, 0);
    sgp_time now = 0;
    uint32_t last = SGP_SUMMARY_ENTRIES, later = 100, place = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        net_name(many[i], i);
        list[i] = many[i];
    }
    cr_assert(eq(int, sgp_fleet_use(hub, list, MANY), 0));
    for (uint32_t i = 1; i < MANY; i++)
        take_one(from, i, 1, &now);
    cr_assert(eq(int, sgp_fleet_use(hub, list, MANY), 0), "all links begin anew");
    uint32_t count = offers(to, now, digests, 1);
    cr_assert(eq(u32, count, last));
    take_one(from, last, 2, &now);
    take_one(from, later, 2, &now);
    count += offers(to, now, digests + count, MANY);
    cr_assert(eq(u32, count, MANY), "all others, and one of them twice");
    for (uint32_t i = 1; i < MANY; i++)
        if (i != later)
            cr_assert(eq(u64, digests[place++], sgp_fleet_name_digest(list[i])));
    cr_assert(eq(u64, digests[place++], sgp_fleet_name_digest(list[last])));
    cr_assert(eq(u64, digests[place++], sgp_fleet_name_digest(list[later])));
    sgp_fleet_destroy(hub);
}

Test(fleet, of_more_nodes_those_behind_have_no_rows)
{
    struct sgp_fleet *c = fleet_by("c", 1000, (struct sgp_fleet_settings){.rows_max = 2});
    struct sgp_fleet_link *link = sgp_fleet_open(c, 0);
    struct sgp_summary summary;
    struct sgp_row row;
    tell(c, 1, 0);
    cr_assert(eq(u32, sgp_fleet_count(c), 2));
    cr_assert(eq(int, sgp_fleet_next(link, 0, &summary, &row), SGP_FLEET_NOTHING));
    sgp_fleet_destroy(c);
}
