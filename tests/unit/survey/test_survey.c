/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a survey one by one, and answers that are hostile. */
#include "sgp/survey.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const members[] = {"c", "a", "b"};

static struct sgp_survey *survey_about(
    enum sgp_subject subject, const char *name, uint32_t count, uint64_t version)
{
    struct sgp_survey *survey = sgp_survey_create(name, subject);
    const struct sgp_survey_file file = {.members = members, .count = count, .version = version};
    cr_assert(eq(int, sgp_survey_use(survey, &file), 0));
    return survey;
}

static struct sgp_survey *survey_of(const char *name, uint32_t count, uint64_t version)
{
    return survey_about(SGP_SUBJECT_SCALING, name, count, version);
}

/* One question of `asker` to `source`, and its answer. Returns the number of pieces. */
static uint32_t pull(struct sgp_survey *asker, const struct sgp_survey *source)
{
    struct sgp_answering *answering = sgp_answering_create(source);
    struct sgp_survey_cursor cursor = {0};
    struct sgp_arriving arriving = {0};
    struct sgp_bulletin bulletin;
    char text[SGP_BULLETIN_PIECE_MAX + 1];
    uint32_t pieces = 0, heads = 0;
    for (; sgp_survey_next_head(asker, &cursor, &bulletin); heads++)
        sgp_answering_holds(answering, &bulletin);
    cr_assert(eq(u32, heads, sgp_survey_heads(asker)));
    for (; sgp_answering_next(answering, &bulletin, text); pieces++)
        cr_assert(ge(int, sgp_survey_piece(asker, &arriving, &bulletin), 0));
    sgp_answering_destroy(answering);
    sgp_arriving_drop(&arriving);
    return pieces;
}

/* The stamp of the figures of that author, as this node has them. */
static uint64_t stamp_of(const struct sgp_survey *survey, const char *author)
{
    struct sgp_survey_cursor cursor = {0};
    struct sgp_bulletin bulletin;
    while (sgp_survey_next_head(survey, &cursor, &bulletin))
        if (bulletin.kind == SGP_BULLETIN_FIGURES && strcmp(bulletin.author, author) == 0)
            return bulletin.stamp;
    return 0;
}

Test(survey, three_members_tell_vote_and_freeze)
{
    struct sgp_survey *a = survey_of("a", 3, 0), *b = survey_of("b", 3, 0),
                      *c = survey_of("c", 3, 0);
    char long_text[2001] = "";
    uint64_t version = 9;
    memset(long_text, 'x', 2000);
    cr_assert(eq(int, sgp_survey_tell(a, 5, "rows of a"), 0));
    cr_assert(eq(int, sgp_survey_tell(b, 6, long_text), 0));
    cr_assert(eq(int, sgp_survey_tell(c, 7, "rows of c"), 0));
    cr_assert(eq(int, (int)sgp_survey_stage(a), SGP_SURVEY_TELLING));
    cr_assert(sgp_survey_waits(a, 0) && !sgp_survey_waits(a, 1) && sgp_survey_waits(a, 2));
    cr_assert(eq(u32, pull(a, b), 3), "2000 bytes are three pieces");
    cr_assert(eq(u32, pull(a, b), 0), "nothing is sent twice");
    cr_assert(eq(str, (char *)sgp_survey_figures(a, 2), long_text));
    cr_assert(eq(u64, sgp_survey_set(a), 0));
    cr_assert(eq(u32, pull(a, c), 1));
    cr_assert(eq(int, (int)sgp_survey_stage(a), SGP_SURVEY_VOTING));
    cr_assert(sgp_survey_waits(a, 0) && !sgp_survey_waits(a, 1) && sgp_survey_waits(a, 2));
    cr_assert(eq(u32, pull(b, a), 3), "two figures and a vote");
    cr_assert(eq(u64, sgp_survey_set(a), sgp_survey_set(b)));
    cr_assert(ne(u64, sgp_survey_set(a), 0));
    (void)pull(c, b);
    cr_assert(eq(int, (int)sgp_survey_stage(c), SGP_SURVEY_COMPLETE), "c has all three votes");
    cr_assert(eq(int, sgp_survey_freeze(c, 0, "the result"), 0));
    cr_assert(eq(int, (int)sgp_survey_stage(b), SGP_SURVEY_VOTING));
    cr_assert(eq(u32, pull(b, c), 1), "a node with a result sends that alone");
    cr_assert(eq(int, (int)sgp_survey_stage(b), SGP_SURVEY_FROZEN));
    cr_assert(eq(str, (char *)sgp_survey_result(b, &version), "the result"));
    cr_assert(eq(u64, version, 0));
    cr_assert(eq(u32, pull(c, a), 0), "a node with a result learns nothing from one without");
    cr_assert(eq(u32, pull(b, c), 0));
    sgp_survey_destroy(a);
    sgp_survey_destroy(b);
    sgp_survey_destroy(c);
}

Test(survey, a_result_of_a_later_version_replaces_one)
{
    struct sgp_survey *a = survey_of("a", 3, 1), *b = survey_of("b", 3, 2);
    uint64_t version;
    (void)sgp_survey_freeze(a, 1, "first");
    (void)sgp_survey_freeze(b, 2, "second");
    cr_assert(eq(u32, pull(b, a), 0));
    cr_assert(eq(u32, pull(a, b), 1));
    cr_assert(eq(str, (char *)sgp_survey_result(a, &version), "second"));
    cr_assert(eq(u64, version, 2));
    sgp_survey_destroy(a);
    sgp_survey_destroy(b);
}

/* Two nodes may offer the best model of one label with one stamp: their places in the file are
 * those of different files. */
Test(survey, of_equal_stamps_all_nodes_take_one_copy_of_the_best_model)
{
    struct sgp_survey *a = survey_about(SGP_SUBJECT_BEST, "a", 3, 0);
    struct sgp_survey *b = survey_about(SGP_SUBJECT_BEST, "b", 3, 0);
    uint64_t stamp;
    (void)sgp_survey_freeze(a, 7, "the copy of a");
    (void)sgp_survey_freeze(b, 7, "the copy of b");
    cr_assert(eq(u32, pull(a, b) + pull(b, a), 1), "the greater digest goes to the other");
    cr_assert(eq(str, (char *)sgp_survey_result(a, &stamp), (char *)sgp_survey_result(b, &stamp)));
    cr_assert(eq(u64, sgp_survey_result_digest(a), sgp_survey_result_digest(b)));
    cr_assert(eq(u32, pull(a, b) + pull(b, a), 0), "and nothing is sent twice");
    sgp_survey_destroy(a);
    sgp_survey_destroy(b);
}

/* What follows from two signed files of one version is for the rollout, so each is told. */
Test(survey, of_equal_versions_each_node_is_told_the_other_signed_file)
{
    struct sgp_survey *a = survey_about(SGP_SUBJECT_PROPOSED, "a", 3, 0);
    struct sgp_survey *b = survey_about(SGP_SUBJECT_PROPOSED, "b", 3, 0);
    uint64_t stamp;
    (void)sgp_survey_freeze(a, 14, "the file of a");
    (void)sgp_survey_freeze(b, 14, "the file of b");
    cr_assert(eq(u32, pull(a, b), 1));
    (void)sgp_survey_freeze(a, 14, "the file of a");
    cr_assert(eq(u32, pull(b, a), 1));
    cr_assert(eq(u32, pull(a, b) + pull(b, a), 0), "and nothing is sent twice");
    cr_assert(eq(int, sgp_survey_freeze(a, 0, NULL), 0));
    cr_assert_null(sgp_survey_result(a, &stamp));
    cr_assert(eq(u32, pull(b, a), 0), "there is none any more");
    cr_assert(eq(u32, pull(a, b), 1));
    sgp_survey_destroy(a);
    sgp_survey_destroy(b);
}

/* So a result costs its judge once for each answer, whatever a peer sends. */
Test(survey, an_answer_has_one_result)
{
    struct sgp_survey *a = survey_about(SGP_SUBJECT_PROPOSED, "a", 3, 0);
    struct sgp_arriving arriving = {.answer = 0};
    struct sgp_bulletin piece = {.kind = SGP_BULLETIN_RESULT,
        .author = "b",
        .stamp = 14,
        .bytes = 5,
        .digest = sgp_bulletin_digest("first", 5),
        .text = "first"};
    cr_assert(eq(int, sgp_survey_piece(a, &arriving, &piece), 1));
    piece.stamp = 16;
    piece.text = "other";
    piece.digest = sgp_bulletin_digest("other", 5);
    cr_assert(eq(int, sgp_survey_piece(a, &arriving, &piece), SGP_E_PROTOCOL));
    sgp_arriving_drop(&arriving);
    sgp_survey_destroy(a);
}

/* A scaling that was agreed on stays, whatever a member tells. */
Test(survey, of_equal_versions_the_first_scaling_stays)
{
    struct sgp_survey *a = survey_of("a", 3, 1), *b = survey_of("b", 3, 1);
    uint64_t version;
    (void)sgp_survey_freeze(a, 1, "first");
    (void)sgp_survey_freeze(b, 1, "second");
    cr_assert(eq(u32, pull(a, b) + pull(b, a), 0));
    cr_assert(eq(str, (char *)sgp_survey_result(a, &version), "first"));
    cr_assert(eq(str, (char *)sgp_survey_result(b, &version), "second"));
    sgp_survey_destroy(a);
    sgp_survey_destroy(b);
}

Test(survey, the_version_is_part_of_the_set)
{
    struct sgp_survey *a = survey_of("a", 2, 1), *b = survey_of("a", 2, 2);
    struct sgp_survey *c = survey_of("c", 2, 1);
    (void)sgp_survey_tell(a, 1, "a");
    (void)sgp_survey_tell(b, 1, "a");
    (void)sgp_survey_tell(c, 1, "c");
    (void)pull(a, c);
    (void)pull(b, c);
    cr_assert(ne(u64, sgp_survey_set(a), 0));
    cr_assert(ne(u64, sgp_survey_set(b), 0));
    cr_assert(ne(u64, sgp_survey_set(a), sgp_survey_set(b)));
    sgp_survey_destroy(a);
    sgp_survey_destroy(b);
    sgp_survey_destroy(c);
}

Test(survey, an_author_overtakes_its_earlier_life)
{
    struct sgp_survey *earlier = survey_of("a", 2, 0), *c = survey_of("c", 2, 0);
    (void)sgp_survey_tell(earlier, 100, "old rows");
    (void)pull(c, earlier);
    struct sgp_survey *later = survey_of("a", 2, 0);
    (void)sgp_survey_tell(later, 50, "new rows"); /* its clock went back */
    (void)pull(c, later);
    cr_assert(eq(str, (char *)sgp_survey_figures(c, 1), "old rows"));
    (void)pull(later, c);
    cr_assert(eq(str, (char *)sgp_survey_figures(later, 1), "new rows"));
    (void)pull(c, later);
    cr_assert(eq(str, (char *)sgp_survey_figures(c, 1), "new rows"));
    sgp_survey_destroy(earlier);
    sgp_survey_destroy(later);
    sgp_survey_destroy(c);
}

/* Its earlier life may have given up the set of that stamp, and this one knows nothing of it. */
Test(survey, an_author_that_returns_with_the_same_rows_tells_them_later)
{
    struct sgp_survey *earlier = survey_of("a", 2, 0), *c = survey_of("c", 2, 0);
    (void)sgp_survey_tell(earlier, 100, "rows");
    (void)pull(c, earlier);
    struct sgp_survey *later = survey_of("a", 2, 0);
    (void)sgp_survey_tell(later, 50, "rows"); /* its clock went back */
    (void)pull(later, c);
    cr_assert(gt(u32, pull(c, later), 0));
    cr_assert(eq(u64, stamp_of(c, "a"), 101));
    (void)pull(later, c);
    cr_assert(eq(u64, stamp_of(later, "a"), 101), "its own words change nothing");
    sgp_survey_destroy(earlier);
    sgp_survey_destroy(later);
    sgp_survey_destroy(c);
}

/* A relay hears the votes of both members before they hear each other's; then one of them returns
 * with other rows. */
Test(survey, who_is_no_member_takes_the_result_of_members)
{
    struct sgp_survey *a = survey_of("a", 2, 0), *c = survey_of("c", 2, 0);
    struct sgp_survey *relay = survey_of("r", 2, 0);
    uint64_t version;
    (void)sgp_survey_tell(a, 1, "a");
    (void)sgp_survey_tell(c, 1, "c");
    (void)pull(relay, a);
    (void)pull(a, c);
    (void)pull(c, relay);
    (void)pull(relay, a);
    (void)pull(relay, c);
    cr_assert(eq(int, (int)sgp_survey_stage(a), SGP_SURVEY_VOTING));
    cr_assert(eq(int, (int)sgp_survey_stage(c), SGP_SURVEY_VOTING));
    cr_assert(eq(int, (int)sgp_survey_stage(relay), SGP_SURVEY_VOTING), "it has no vote to give");
    struct sgp_survey *later = survey_of("c", 2, 0);
    (void)sgp_survey_tell(later, 2, "other rows");
    (void)pull(a, later);
    (void)pull(later, a);
    cr_assert(eq(int, (int)sgp_survey_stage(later), SGP_SURVEY_COMPLETE));
    (void)sgp_survey_freeze(later, 0, "of other rows");
    (void)pull(relay, later);
    cr_assert(eq(str, (char *)sgp_survey_result(relay, &version), "of other rows"));
    sgp_survey_destroy(a);
    sgp_survey_destroy(c);
    sgp_survey_destroy(relay);
    sgp_survey_destroy(later);
}

/* c returns with other rows and a clock that went back. To a its new rows come before its old
 * ones, and to b after them. */
Test(survey, a_set_that_was_given_up_does_not_come_back)
{
    struct sgp_survey *a = survey_of("a", 3, 0), *b = survey_of("b", 3, 0);
    struct sgp_survey *c = survey_of("c", 3, 0), *later = survey_of("c", 3, 0);
    (void)sgp_survey_tell(a, 1, "a");
    (void)sgp_survey_tell(b, 1, "b");
    (void)sgp_survey_tell(c, 100, "old rows");
    (void)sgp_survey_tell(later, 50, "new rows");
    (void)pull(a, b);
    (void)pull(later, a);
    (void)pull(c, a);
    (void)pull(b, c); /* c and b vote for the old rows, */
    (void)pull(a, later);
    (void)pull(b, a);
    (void)pull(a, b); /* and a for the new ones, then for the old ones */
    cr_assert(eq(int, (int)sgp_survey_stage(a), SGP_SURVEY_COMPLETE));
    (void)sgp_survey_freeze(a, 0, "of old rows");
    (void)pull(later, b);
    (void)pull(b, later);
    cr_assert(eq(str, (char *)sgp_survey_figures(b, 0), "new rows"));
    cr_assert(eq(int, (int)sgp_survey_stage(b), SGP_SURVEY_VOTING), "a has given them up");
    (void)pull(b, a);
    cr_assert(eq(int, (int)sgp_survey_stage(b), SGP_SURVEY_FROZEN));
    sgp_survey_destroy(a);
    sgp_survey_destroy(b);
    sgp_survey_destroy(c);
    sgp_survey_destroy(later);
}

Test(survey, figures_stay_over_a_change_of_the_file)
{
    struct sgp_survey *a = survey_of("a", 2, 0), *b = survey_of("b", 3, 0);
    (void)sgp_survey_tell(a, 1, "a");
    (void)sgp_survey_tell(b, 1, "b");
    struct sgp_answering *answering = sgp_answering_create(a);
    const struct sgp_survey_file file = {.members = members, .count = 3};
    cr_assert(eq(int, sgp_survey_use(a, &file), 0));
    struct sgp_bulletin piece;
    char text[SGP_BULLETIN_PIECE_MAX + 1];
    cr_assert(eq(int, sgp_answering_next(answering, &piece, text), 0), "the file has changed");
    sgp_answering_destroy(answering);
    cr_assert(eq(str, (char *)sgp_survey_figures(a, 1), "a"));
    (void)pull(a, b);
    cr_assert(eq(str, (char *)sgp_survey_figures(a, 2), "b"));
    sgp_survey_destroy(a);
    sgp_survey_destroy(b);
}

/* A member that replaces its text again and again would keep an answer from its end. */
Test(survey, a_text_that_is_replaced_while_it_is_sent_breaks_off)
{
    struct sgp_survey *a = survey_of("a", 2, 0), *c = survey_of("c", 2, 0);
    struct sgp_arriving arriving = {0};
    struct sgp_bulletin piece;
    char text[SGP_BULLETIN_PIECE_MAX + 1], first[1001] = "", second[1001] = "";
    memset(first, '1', 1000);
    memset(second, '2', 1000);
    (void)sgp_survey_tell(a, 1, first);
    struct sgp_answering *answering = sgp_answering_create(a);
    cr_assert(eq(int, sgp_answering_next(answering, &piece, text), 1));
    cr_assert(eq(int, sgp_survey_piece(c, &arriving, &piece), 0));
    (void)sgp_survey_tell(a, 2, second);
    cr_assert(eq(int, sgp_answering_next(answering, &piece, text), 0));
    sgp_answering_destroy(answering);
    sgp_arriving_drop(&arriving);
    cr_assert(eq(u32, pull(c, a), 2));
    cr_assert(eq(str, (char *)sgp_survey_figures(c, 1), second));
    sgp_survey_destroy(a);
    sgp_survey_destroy(c);
}

Test(survey, a_result_that_comes_while_figures_are_sent_follows)
{
    struct sgp_survey *a = survey_of("a", 2, 0), *c = survey_of("c", 2, 0);
    struct sgp_arriving arriving = {0};
    struct sgp_bulletin piece;
    char text[SGP_BULLETIN_PIECE_MAX + 1], figures[1001] = "";
    uint64_t version;
    memset(figures, '1', 1000);
    (void)sgp_survey_tell(a, 1, figures);
    struct sgp_answering *answering = sgp_answering_create(a);
    cr_assert(eq(int, sgp_answering_next(answering, &piece, text), 1));
    cr_assert(eq(int, sgp_survey_piece(c, &arriving, &piece), 0));
    (void)sgp_survey_freeze(a, 0, "the result");
    while (sgp_answering_next(answering, &piece, text))
        cr_assert(ge(int, sgp_survey_piece(c, &arriving, &piece), 0));
    cr_assert(eq(str, (char *)sgp_survey_result(c, &version), "the result"));
    sgp_answering_destroy(answering);
    sgp_arriving_drop(&arriving);
    sgp_survey_destroy(a);
    sgp_survey_destroy(c);
}

Test(survey, votes_of_a_member_are_bounded)
{
    struct sgp_survey *c = survey_of("c", 2, 0);
    struct sgp_arriving arriving = {0};
    for (uint64_t vote = 1; vote <= 1000; vote++) {
        const struct sgp_bulletin bulletin = {
            .kind = SGP_BULLETIN_VOTE, .author = "a", .digest = vote, .text = ""};
        cr_assert(eq(int, sgp_survey_piece(c, &arriving, &bulletin), 1));
        cr_assert(eq(int, sgp_survey_piece(c, &arriving, &bulletin), 0));
    }
    cr_assert(le(u32, sgp_survey_heads(c), 64));
    sgp_survey_destroy(c);
}

/* What a hostile neighbour may send: each is refused or ignored, and the next good text is taken. */
Test(survey, hostile_pieces)
{
    const uint64_t digest = sgp_bulletin_digest("abcdef", 6);
    const struct sgp_bulletin good = {.kind = SGP_BULLETIN_FIGURES,
        .author = "a",
        .stamp = 1,
        .digest = digest,
        .bytes = 6,
        .text = "abcdef"};
    struct sgp_survey *c = survey_of("c", 2, 0);
    struct sgp_arriving arriving = {0};
    struct sgp_bulletin bad[] = {good, good, good, good, good, good, good};
    bad[0].digest++;  /* another text */
    bad[1].first = 1; /* in the middle */
    bad[2].bytes = 3; /* longer than it says */
    bad[3].text = ""; /* nothing */
    bad[4].first = 7; /* beyond its end */
    bad[5].bytes = SGP_BULLETIN_MAX + 1;
    bad[6].stamp = UINT64_MAX; /* no author could tell a later one */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert(eq(int, sgp_survey_piece(c, &arriving, &bad[i]), SGP_E_PROTOCOL), "%zu", i);
    struct sgp_bulletin part = good, other = good;
    part.text = "abc";
    other.first = 3;
    other.text = "def";
    other.stamp = 2; /* of another bulletin */
    cr_assert(eq(int, sgp_survey_piece(c, &arriving, &part), 0));
    cr_assert(eq(int, sgp_survey_piece(c, &arriving, &other), SGP_E_PROTOCOL));
    const struct sgp_bulletin vote = {
        .kind = SGP_BULLETIN_VOTE, .author = "a", .digest = 1, .bytes = 3, .text = "abc"};
    cr_assert(eq(int, sgp_survey_piece(c, &arriving, &vote), SGP_E_PROTOCOL));
    struct sgp_bulletin stranger = good;
    stranger.author = "nobody";
    cr_assert(eq(int, sgp_survey_piece(c, &arriving, &stranger), 0));
    cr_assert(eq(u32, sgp_survey_heads(c), 0));
    cr_assert(eq(int, sgp_survey_piece(c, &arriving, &good), 1));
    cr_assert(eq(str, (char *)sgp_survey_figures(c, 1), "abcdef"));
    sgp_arriving_drop(&arriving);
    sgp_survey_destroy(c);
}

/* ---- measures: reports without votes ---- */

static struct sgp_survey *reports_of(const char *name)
{
    return survey_about(SGP_SUBJECT_MEASURES, name, 3, 0);
}

Test(survey, reports_travel_without_votes)
{
    struct sgp_survey *a = reports_of("a"), *b = reports_of("b"), *relay = reports_of("r");
    cr_assert(eq(u32, sgp_survey_members(a), 3));
    cr_assert(eq(str, (char *)sgp_survey_name(a, 1), "a"));
    cr_assert(eq(u32, sgp_survey_self(a), 1));
    cr_assert(eq(u32, sgp_survey_self(relay), SGP_NODES_MAX));
    (void)sgp_survey_tell(a, 5, "of a");
    (void)sgp_survey_tell(b, 6, "of b");
    (void)sgp_survey_restore(b, "c", 4, "of c, kept");
    (void)sgp_survey_restore(b, "nobody", 4, "of nobody");
    cr_assert(eq(u32, pull(relay, a), 1));
    cr_assert(eq(u32, pull(relay, b), 2));
    cr_assert(eq(u32, pull(a, relay), 2), "no vote");
    cr_assert(eq(u32, pull(a, relay), 0));
    cr_assert(eq(str, (char *)sgp_survey_figures(a, 0), "of c, kept"));
    cr_assert(eq(u64, sgp_survey_stamp(a, 0), 4));
    cr_assert(eq(int, (int)sgp_survey_stage(a), SGP_SURVEY_COMPLETE));
    (void)sgp_survey_tell(b, 6, "of b, later"); /* the same clock */
    cr_assert(eq(u64, sgp_survey_stamp(b, 2), 7));
    cr_assert(eq(u32, pull(a, b), 1));
    cr_assert(eq(str, (char *)sgp_survey_figures(a, 2), "of b, later"));
    sgp_survey_destroy(a);
    sgp_survey_destroy(b);
    sgp_survey_destroy(relay);
}

/* Leaves what begins with l, refuses what begins with r, takes the rest. */
static int judge_by_letter(void *context, const struct sgp_bulletin *bulletin)
{
    ++*(int *)context;
    return bulletin->text[0] == 'l' ? 0 : bulletin->text[0] == 'r' ? SGP_E_PROTOCOL : 1;
}

static struct sgp_bulletin bulletin_of(
    enum sgp_bulletin_kind kind, uint64_t stamp, const char *text)
{
    const uint32_t bytes = (uint32_t)strlen(text);
    return (struct sgp_bulletin){.kind = kind,
        .author = "a",
        .stamp = stamp,
        .digest = sgp_bulletin_digest(text, bytes),
        .bytes = bytes,
        .text = text};
}

Test(survey, reports_of_others_are_judged)
{
    struct sgp_survey *c = reports_of("c");
    struct sgp_arriving arriving = {0};
    int asked = 0;
    const struct sgp_survey_judge judge = {
        .context = &asked, .bytes_max = 8, .judge = judge_by_letter};
    const struct {
        enum sgp_bulletin_kind kind;
        uint64_t stamp;
        const char *text;
        int code, asked;
    } cases[] = {
        {SGP_BULLETIN_REPORT, 2, "take", 1, 1},
        {SGP_BULLETIN_REPORT, 2, "take", 0, 1}, /* it is known */
        {SGP_BULLETIN_REPORT, 1, "refuse", 0, 1},
        {SGP_BULLETIN_REPORT, 3, "refuse", SGP_E_PROTOCOL, 2},
        {SGP_BULLETIN_REPORT, 3, "leave", 0, 3},
        {SGP_BULLETIN_REPORT, 3, "too long!", SGP_E_PROTOCOL, 3},
        {SGP_BULLETIN_FIGURES, 3, "figures", SGP_E_PROTOCOL, 3},
        {SGP_BULLETIN_RESULT, 3, "result", SGP_E_PROTOCOL, 3},
        {SGP_BULLETIN_VOTE, 3, "", SGP_E_PROTOCOL, 3},
    };
    sgp_survey_judge(c, &judge);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sgp_bulletin bulletin =
            bulletin_of(cases[i].kind, cases[i].stamp, cases[i].text);
        arriving.answer = 0; /* each in an answer of its own */
        cr_assert(eq(int, sgp_survey_piece(c, &arriving, &bulletin), cases[i].code), "%zu", i);
        cr_assert(eq(int, asked, cases[i].asked), "%zu", i);
    }
    cr_assert(eq(str, (char *)sgp_survey_figures(c, 1), "take"));
    struct sgp_survey *scaling = survey_of("c", 2, 0);
    const struct sgp_bulletin report = bulletin_of(SGP_BULLETIN_REPORT, 1, "report");
    cr_assert(eq(int, sgp_survey_piece(scaling, &arriving, &report), SGP_E_PROTOCOL));
    sgp_arriving_drop(&arriving);
    sgp_survey_destroy(scaling);
    sgp_survey_destroy(c);
}

/* A peer could otherwise send as many texts as a fleet has nodes, and none would be judged. */
Test(survey, a_survey_of_a_result_takes_no_figures_and_no_votes)
{
    static const enum sgp_subject subjects[] = {
        SGP_SUBJECT_BEST, SGP_SUBJECT_ACTIVE, SGP_SUBJECT_PROPOSED};
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        struct sgp_survey *survey = sgp_survey_create("a", subjects[i]);
        for (enum sgp_bulletin_kind kind = SGP_BULLETIN_FIGURES; kind <= SGP_BULLETIN_KINDS;
             kind++) {
            struct sgp_arriving arriving = {0};
            const bool votes = kind == SGP_BULLETIN_VOTE;
            const char *text = votes ? "" : "text";
            const uint32_t bytes = votes ? 0 : 4;
            const struct sgp_bulletin piece = {.kind = kind,
                .author = "b",
                .stamp = 2,
                .digest = sgp_bulletin_digest(text, bytes),
                .bytes = bytes,
                .text = text};
            cr_assert(eq(int, sgp_survey_piece(survey, &arriving, &piece),
                kind == SGP_BULLETIN_RESULT ? 1 : SGP_E_PROTOCOL));
            sgp_arriving_drop(&arriving);
        }
        sgp_survey_destroy(survey);
    }
}

/* Somebody tells in the name of a, with a's stamp, and with the greatest one. Its own text wins, or
 * at least nobody refuses it. */
Test(survey, an_author_hears_what_is_told_in_its_name)
{
    static const char *const texts[] = {"forged 1", "forged 2", "forged 3", "forged 4"};
    struct sgp_survey *a = reports_of("a"), *b = reports_of("b");
    struct sgp_arriving arriving = {0};
    (void)sgp_survey_tell(a, 5, "of a");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct sgp_bulletin forged =
            bulletin_of(SGP_BULLETIN_REPORT, sgp_survey_stamp(a, 1), texts[i]);
        arriving.answer = 0;
        cr_assert(ge(int, sgp_survey_piece(b, &arriving, &forged), 0));
        (void)pull(a, b);
        (void)pull(b, a);
        cr_assert(eq(str, (char *)sgp_survey_figures(b, 1), "of a"), "%zu", i);
    }
    const struct sgp_bulletin greatest =
        bulletin_of(SGP_BULLETIN_REPORT, SGP_BULLETIN_STAMP_MAX, "forged");
    arriving.answer = 0;
    cr_assert(eq(int, sgp_survey_piece(b, &arriving, &greatest), 1));
    (void)pull(a, b);
    cr_assert(eq(u64, sgp_survey_stamp(a, 1), SGP_BULLETIN_STAMP_MAX));
    (void)pull(b, a); /* asserts that no piece is refused */
    sgp_arriving_drop(&arriving);
    sgp_survey_destroy(a);
    sgp_survey_destroy(b);
}

/* A question names what the asker has. So the node that is asked learns that it lacks something. */
Test(survey, a_question_says_that_the_asker_has_more)
{
    struct sgp_survey *a = reports_of("a"), *b = reports_of("b");
    (void)sgp_survey_tell(a, 0, "of a");
    (void)pull(b, a);
    struct sgp_answering *answering = sgp_answering_create(b);
    struct sgp_bulletin head = bulletin_of(SGP_BULLETIN_REPORT, 1, "of a");
    cr_assert_not(sgp_answering_holds(answering, &head));
    head.stamp++;
    cr_assert(sgp_answering_holds(answering, &head));
    head.author = "b"; /* somebody tells in its name */
    cr_assert(sgp_answering_holds(answering, &head));
    head.author = "nobody";
    cr_assert_not(sgp_answering_holds(answering, &head));
    head.author = "a";
    head.kind = SGP_BULLETIN_VOTE;
    cr_assert_not(sgp_answering_holds(answering, &head));
    sgp_answering_destroy(answering);
    sgp_survey_destroy(a);
    sgp_survey_destroy(b);
}

/* An answer comes to an end, whatever is in it. */
Test(survey, an_answer_has_one_text_of_each_member)
{
    struct sgp_survey *c = reports_of("c");
    struct sgp_arriving arriving = {0};
    const struct sgp_bulletin first = bulletin_of(SGP_BULLETIN_REPORT, 1, "first");
    const struct sgp_bulletin second = bulletin_of(SGP_BULLETIN_REPORT, 2, "second");
    struct sgp_bulletin stranger = first;
    int code = 0;
    cr_assert(eq(int, sgp_survey_piece(c, &arriving, &first), 1));
    cr_assert(eq(int, sgp_survey_piece(c, &arriving, &second), SGP_E_PROTOCOL));
    arriving = (struct sgp_arriving){.answer = 0};
    cr_assert(eq(int, sgp_survey_piece(c, &arriving, &second), 1));
    stranger.author = "nobody";
    for (uint32_t i = 0; code == 0 && i < UINT32_C(1) << 24; i++)
        code = sgp_survey_piece(c, &arriving, &stranger);
    cr_assert(eq(int, code, SGP_E_PROTOCOL));
    sgp_arriving_drop(&arriving);
    sgp_survey_destroy(c);
}
