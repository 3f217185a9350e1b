/* SPDX-License-Identifier: Apache-2.0 */
/* Questions and answers between two surveys; see sgp/survey.h. */
#include "survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sgp_bulletin head_of_text(
    enum sgp_bulletin_kind kind, const char *author, const struct sgp_survey_text *text)
{
    return (struct sgp_bulletin){.kind = kind,
        .author = author,
        .stamp = text->stamp,
        .digest = text->digest,
        .bytes = text->bytes,
        .text = ""};
}

static struct sgp_bulletin head_of_vote(const struct sgp_survey_member *member, uint32_t vote)
{
    return (struct sgp_bulletin){.kind = SGP_BULLETIN_VOTE,
        .author = member->name,
        .digest = member->votes[vote],
        .text = ""};
}

/* ---- the heads of a question ---- */

static uint32_t heads_of(const struct sgp_survey_member *member)
{
    return (member->figures.text != NULL) + member->vote_count;
}

uint32_t sgp_survey_heads(const struct sgp_survey *survey)
{
    uint32_t heads = 0;
    if (survey->result.text != NULL)
        return 1;
    for (uint32_t i = 0; i < survey->count; i++)
        heads += heads_of(&survey->members[i]);
    return heads;
}

static struct sgp_bulletin head_of(
    const struct sgp_survey *survey, const struct sgp_survey_member *member, uint32_t bulletin)
{
    const bool tells = member->figures.text != NULL;
    return tells && bulletin == 0
               ? head_of_text(sgp_survey_kind(survey), member->name, &member->figures)
               : head_of_vote(member, bulletin - tells);
}

bool sgp_survey_next_head(const struct sgp_survey *survey, struct sgp_survey_cursor *cursor,
    struct sgp_bulletin *ret_head)
{
    if (survey->result.text != NULL) {
        *ret_head = head_of_text(SGP_BULLETIN_RESULT, survey->name, &survey->result);
        return cursor->bulletin++ == 0;
    }
    for (; cursor->member < survey->count; cursor->member++, cursor->bulletin = 0)
        if (cursor->bulletin < heads_of(&survey->members[cursor->member])) {
            *ret_head = head_of(survey, &survey->members[cursor->member], cursor->bulletin++);
            return true;
        }
    return false;
}

/* ---- an answer ---- */

struct sgp_answering {
    const struct sgp_survey *survey;
    uint64_t files;           /* of the survey when the question came */
    uint32_t member;          /* of the next piece */
    uint32_t vote;            /* of this member; its figures come before its votes */
    uint32_t first;           /* place in its figures, or in the result */
    uint64_t digest;          /* of the text that is being sent */
    struct sgp_bulletin held; /* RESULT: which the asker holds */
    uint64_t holds[];         /* of each member: the digest of figures, then a bit for each vote */
};

struct sgp_answering *sgp_answering_create(const struct sgp_survey *survey)
{
    struct sgp_answering *answering =
        calloc(1, sizeof *answering + 2 * survey->count * sizeof *answering->holds);
    if (answering == NULL)
        return NULL;
    answering->survey = survey;
    answering->files = survey->files;
    return answering;
}

void sgp_answering_destroy(struct sgp_answering *answering)
{
    free(answering);
}

bool sgp_answering_holds(struct sgp_answering *answering, const struct sgp_bulletin *head)
{
    const struct sgp_survey *survey = answering->survey;
    if (head->kind == SGP_BULLETIN_RESULT)
        answering->held = *head;
    const struct sgp_survey_member *member = sgp_survey_find(survey, head->author);
    if (answering->files != survey->files || member == NULL)
        return false;
    uint64_t *holds = &answering->holds[2 * (member - survey->members)];
    const bool tells = head->kind == sgp_survey_kind(survey);
    if (tells && head->stamp == member->figures.stamp)
        holds[0] = head->digest;
    for (uint32_t i = 0; head->kind == SGP_BULLETIN_VOTE && i < member->vote_count; i++)
        if (member->votes[i] == head->digest)
            holds[1] |= UINT64_C(1) << i;
    return tells && survey->result.text == NULL &&
           sgp_survey_is_later(&member->figures, head->stamp, head->digest);
}

/* The next piece of a text; 0 at its end, or if it is another text by now. */
static int piece_of(struct sgp_answering *answering, const struct sgp_survey_text *whole,
    struct sgp_bulletin head, struct sgp_bulletin *ret_piece, char text[SGP_BULLETIN_PIECE_MAX + 1])
{
    if (answering->first > 0 && answering->digest != whole->digest)
        return 0;
    answering->digest = whole->digest;
    const uint32_t left = whole->bytes - answering->first;
    const uint32_t bytes = left < SGP_BULLETIN_PIECE_MAX ? left : SGP_BULLETIN_PIECE_MAX;
    if (bytes == 0)
        return 0;
    memcpy(text, whole->text + answering->first, bytes);
    text[bytes] = '\0';
    head.first = answering->first;
    head.text = text;
    *ret_piece = head;
    answering->first += bytes;
    return 1;
}

static int next_of_result(struct sgp_answering *answering, struct sgp_bulletin *ret_piece,
    char text[SGP_BULLETIN_PIECE_MAX + 1])
{
    const struct sgp_survey_text *result = &answering->survey->result;
    const struct sgp_bulletin *known = &answering->held;
    const bool held =
        known->kind == SGP_BULLETIN_RESULT && !sgp_survey_replaces(answering->survey, result->stamp,
                                                  result->digest, known->stamp, known->digest);
    const struct sgp_bulletin head =
        head_of_text(SGP_BULLETIN_RESULT, answering->survey->name, result);
    if (answering->digest != result->digest) /* it has come, or another has, meanwhile */
        answering->first = 0;
    return held ? 0 : piece_of(answering, result, head, ret_piece, text);
}

/* The next figures or vote of the present member; 0: it has no more. */
static int next_of_member(struct sgp_answering *answering, struct sgp_bulletin *ret_piece,
    char text[SGP_BULLETIN_PIECE_MAX + 1])
{
    const struct sgp_survey_member *member = &answering->survey->members[answering->member];
    const uint64_t *holds = &answering->holds[2 * answering->member];
    const struct sgp_survey_text *figures = &member->figures;
    const struct sgp_bulletin head =
        head_of_text(sgp_survey_kind(answering->survey), member->name, figures);
    if (answering->vote == 0 && figures->text != NULL && holds[0] != figures->digest &&
        piece_of(answering, figures, head, ret_piece, text))
        return 1;
    while (answering->vote < member->vote_count) {
        const uint32_t vote = answering->vote++;
        if ((holds[1] >> vote & 1) != 0)
            continue;
        *ret_piece = head_of_vote(member, vote);
        return 1;
    }
    return 0;
}

int sgp_answering_next(struct sgp_answering *answering, struct sgp_bulletin *ret_piece,
    char text[SGP_BULLETIN_PIECE_MAX + 1])
{
    const struct sgp_survey *survey = answering->survey;
    if (answering->files != survey->files)
        return 0;
    if (survey->result.text != NULL)
        return next_of_result(answering, ret_piece, text);
    if (answering->held.kind == SGP_BULLETIN_RESULT) /* the asker takes nothing else */
        return 0;
    for (; answering->member < survey->count; answering->member++) {
        if (next_of_member(answering, ret_piece, text))
            return 1;
        answering->vote = answering->first = 0;
    }
    return 0;
}

/* ---- arrival ---- */

#define BULLETINS_MAX (SGP_NODES_MAX * (1 + SGP_SURVEY_VOTES)) /* of an answer */

void sgp_arriving_drop(struct sgp_arriving *arriving)
{
    free(arriving->text);
    arriving->text = NULL;
}

static int begin(struct sgp_arriving *arriving, const struct sgp_bulletin *piece)
{
    sgp_arriving_drop(arriving);
    arriving->head = *piece;
    (void)snprintf(arriving->author, sizeof arriving->author, "%s", piece->author);
    arriving->head.author = arriving->author;
    arriving->head.text = NULL;
    arriving->text = malloc((size_t)piece->bytes + 1);
    return arriving->text == NULL ? -ENOMEM : 0;
}

static bool is_same(const struct sgp_bulletin *one, const struct sgp_bulletin *other)
{
    return one->kind == other->kind && one->stamp == other->stamp && one->digest == other->digest &&
           one->bytes == other->bytes && strcmp(one->author, other->author) == 0;
}

/* Note that this answer has had a text of this author. False: it has had one before. */
static bool note_author(
    const struct sgp_survey *survey, const struct sgp_arriving *arriving, const char *author)
{
    struct sgp_survey_member *member = sgp_survey_find(survey, author);
    const bool first = member == NULL || member->answer != arriving->answer;
    if (member != NULL)
        member->answer = arriving->answer;
    return first;
}

static int finish(struct sgp_survey *survey, struct sgp_arriving *arriving)
{
    char *text = arriving->text;
    const bool result = arriving->head.kind == SGP_BULLETIN_RESULT;
    arriving->text = NULL;
    text[arriving->received] = '\0';
    if (sgp_bulletin_digest(text, arriving->received) != arriving->head.digest ||
        (result ? arriving->result : !note_author(survey, arriving, arriving->author))) {
        free(text);
        return SGP_E_PROTOCOL;
    }
    arriving->result |= result;
    return sgp_survey_take(survey, &arriving->head, text);
}

int sgp_survey_piece(
    struct sgp_survey *survey, struct sgp_arriving *arriving, const struct sgp_bulletin *piece)
{
    const size_t bytes = strlen(piece->text);
    if (arriving->answer == 0)
        arriving->answer = ++survey->answers;
    if (!sgp_survey_is_about(survey, piece->kind) ||
        (piece->first == 0 && ++arriving->bulletins > BULLETINS_MAX))
        return SGP_E_PROTOCOL;
    if (piece->kind == SGP_BULLETIN_VOTE)
        return bytes == 0 && piece->bytes == 0 ? sgp_survey_take(survey, piece, NULL)
                                               : SGP_E_PROTOCOL;
    if (bytes == 0 || piece->bytes > sgp_survey_bytes_max(survey) ||
        piece->stamp > SGP_BULLETIN_STAMP_MAX || bytes > piece->bytes - piece->first ||
        piece->first > piece->bytes)
        return SGP_E_PROTOCOL;
    if (piece->first == 0) {
        const int code = begin(arriving, piece);
        if (code < 0)
            return code;
    } else if (arriving->text == NULL || piece->first != arriving->received ||
               !is_same(&arriving->head, piece)) {
        return SGP_E_PROTOCOL;
    }
    memcpy(arriving->text + piece->first, piece->text, bytes);
    arriving->received = piece->first + (uint32_t)bytes;
    return arriving->received < piece->bytes ? 0 : finish(survey, arriving);
}
