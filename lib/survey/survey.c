/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a survey; see sgp/survey.h. */
#include "survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

uint64_t sgp_bulletin_digest(const char *text, uint32_t bytes)
{
    return XXH3_64bits_withSeed(text, bytes, 0);
}

/* ---- members ---- */

static int by_name(const void *left, const void *right, void *context)
{
    const struct sgp_survey_member *members = context;
    return strcmp(members[*(const uint32_t *)left].name, members[*(const uint32_t *)right].name);
}

struct sgp_survey_member *sgp_survey_find(const struct sgp_survey *survey, const char *name)
{
    uint32_t low = 0, high = survey->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        struct sgp_survey_member *member = &survey->members[survey->by_name[middle]];
        const int order = strcmp(name, member->name);
        if (order == 0)
            return member;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool sgp_survey_has_vote(const struct sgp_survey_member *member, uint64_t vote)
{
    for (uint32_t i = 0; i < member->vote_count; i++)
        if (member->votes[i] == vote)
            return true;
    return false;
}

/* Returns whether the vote is new. */
static bool add_vote(struct sgp_survey_member *member, uint64_t vote)
{
    if (sgp_survey_has_vote(member, vote))
        return false;
    member->votes[member->vote_next] = vote;
    member->vote_next = (member->vote_next + 1) % SGP_SURVEY_VOTES;
    if (member->vote_count < SGP_SURVEY_VOTES)
        member->vote_count++;
    return true;
}

bool sgp_survey_is_later(const struct sgp_survey_text *than, uint64_t stamp, uint64_t digest)
{
    return than->text == NULL || stamp > than->stamp ||
           (stamp == than->stamp && digest > than->digest);
}

/* A scaling that was agreed on is not replaced by another of the same version. */
bool sgp_survey_replaces(const struct sgp_survey *survey, uint64_t stamp, uint64_t digest,
    uint64_t than_stamp, uint64_t than_digest)
{
    const bool ties = stamp == than_stamp && survey->subject != SGP_SUBJECT_SCALING;
    const bool greater =
        survey->subject == SGP_SUBJECT_BEST ? digest > than_digest : digest != than_digest;
    return stamp > than_stamp || (ties && greater);
}

/* ---- the set, and the vote for it ---- */

/* The digest of the version and of all members with their figures; never 0. With the stamps, so
 * that the sets of a member have one order: a set that it has given up does not come back. */
static uint64_t digest_of_set(const struct sgp_survey *survey)
{
    uint64_t digest = XXH3_64bits_withSeed("survey", 6, survey->version);
    for (uint32_t i = 0; i < survey->count; i++) {
        const struct sgp_survey_member *member = &survey->members[i];
        digest = XXH3_64bits_withSeed(member->name, strlen(member->name) + 1, digest);
        const uint64_t figures[] = {member->figures.stamp, member->figures.digest};
        digest = XXH3_64bits_withSeed(figures, sizeof figures, digest);
    }
    return digest + (digest == 0);
}

/* Find the set again after a change, and vote for it. */
static void look(struct sgp_survey *survey)
{
    bool whole = survey->count > 0;
    for (uint32_t i = 0; i < survey->count && whole; i++)
        whole = survey->members[i].figures.text != NULL;
    survey->set = whole ? digest_of_set(survey) : 0;
    if (whole && survey->subject == SGP_SUBJECT_SCALING && survey->result.text == NULL &&
        survey->self != NULL)
        (void)add_vote(survey->self, survey->set);
}

/* ---- the life of a survey ---- */

struct sgp_survey *sgp_survey_create(const char *name, enum sgp_subject subject)
{
    struct sgp_survey *survey = calloc(1, sizeof *survey);
    if (survey == NULL)
        return NULL;
    (void)snprintf(survey->name, sizeof survey->name, "%s", name);
    survey->subject = subject;
    return survey;
}

void sgp_survey_judge(struct sgp_survey *survey, const struct sgp_survey_judge *judge)
{
    survey->judge = *judge;
}

static void free_members(struct sgp_survey_member *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(members[i].figures.text);
    free(members);
}

void sgp_survey_destroy(struct sgp_survey *survey)
{
    if (survey == NULL)
        return;
    free_members(survey->members, survey->count);
    free(survey->by_name);
    free(survey->result.text);
    free(survey);
}

/* What is known about a member moves to its place in the new file. */
static void move_member(const struct sgp_survey *from, struct sgp_survey_member *to)
{
    struct sgp_survey_member *former = sgp_survey_find(from, to->name);
    if (former == NULL)
        return;
    *to = *former;
    former->figures.text = NULL;
}

int sgp_survey_use(struct sgp_survey *survey, const struct sgp_survey_file *file)
{
    struct sgp_survey_member *members = calloc(file->count, sizeof *members);
    uint32_t *sorted = calloc(file->count, sizeof *sorted);
    if (members == NULL || sorted == NULL) {
        free(members);
        free(sorted);
        return -ENOMEM;
    }
    survey->self = NULL;
    for (uint32_t i = 0; i < file->count; i++) {
        (void)snprintf(members[i].name, sizeof members[i].name, "%s", file->members[i]);
        sorted[i] = i;
        move_member(survey, &members[i]);
        if (strcmp(members[i].name, survey->name) == 0)
            survey->self = &members[i];
    }
    qsort_r(sorted, file->count, sizeof *sorted, by_name, members);
    free_members(survey->members, survey->count);
    free(survey->by_name);
    survey->members = members;
    survey->by_name = sorted;
    survey->count = file->count;
    survey->version = file->version;
    survey->files++;
    look(survey);
    return 0;
}

/* Replace a text by another, which is taken over. */
static void replace(struct sgp_survey_text *place, uint64_t stamp, uint64_t digest, char *text)
{
    free(place->text);
    *place = (struct sgp_survey_text){
        .stamp = stamp, .digest = digest, .bytes = (uint32_t)strlen(text), .text = text};
}

/* Replace a text by a copy. */
static int copy(struct sgp_survey_text *place, uint64_t stamp, const char *text)
{
    const size_t bytes = strlen(text);
    if (bytes == 0 || bytes > SGP_BULLETIN_MAX)
        return SGP_E_LIMIT;
    char *own = malloc(bytes + 1);
    if (own == NULL)
        return -ENOMEM;
    memcpy(own, text, bytes + 1);
    replace(place, stamp, sgp_bulletin_digest(text, (uint32_t)bytes), own);
    return 0;
}

int sgp_survey_tell(struct sgp_survey *survey, uint64_t stamp, const char *text)
{
    sgp_assert(survey->self != NULL);
    const uint64_t later = survey->stamp + 1;
    stamp = stamp > later ? stamp : later;
    const int code = copy(&survey->self->figures, stamp, text);
    if (code < 0)
        return code;
    survey->stamp = stamp;
    look(survey);
    return 0;
}

int sgp_survey_restore(
    struct sgp_survey *survey, const char *author, uint64_t stamp, const char *text)
{
    struct sgp_survey_member *member = sgp_survey_find(survey, author);
    const int code = member != NULL ? copy(&member->figures, stamp, text) : 0;
    if (member != NULL && member == survey->self && stamp > survey->stamp)
        survey->stamp = stamp;
    look(survey);
    return code;
}

int sgp_survey_freeze(struct sgp_survey *survey, uint64_t version, const char *text)
{
    if (text != NULL)
        return copy(&survey->result, version, text);
    free(survey->result.text);
    survey->result = (struct sgp_survey_text){.text = NULL};
    return 0;
}

/* ---- what others have told ---- */

/* An earlier life of this node has told with a later stamp, or somebody tells in its name: the
 * present text is told again. For a scaling its stamp is later even if the text is the same: this
 * life knows nothing of the votes of that one, and must not come back to a set that it gave up. */
static int hear_of_oneself(struct sgp_survey *survey, const struct sgp_bulletin *bulletin)
{
    struct sgp_survey_text *own = &survey->self->figures;
    const bool same = own->text == NULL || own->digest == bulletin->digest;
    const bool anew = !same || survey->subject == SGP_SUBJECT_SCALING;
    if (bulletin->stamp < survey->stamp || (bulletin->stamp == survey->stamp && same))
        return 0;
    survey->stamp = bulletin->stamp;
    if (own->text == NULL)
        return 0;
    if (anew && survey->stamp < SGP_BULLETIN_STAMP_MAX)
        survey->stamp++;
    own->stamp = survey->stamp;
    return 1;
}

/* 1: take the text. */
static int judge(
    const struct sgp_survey *survey, const struct sgp_bulletin *bulletin, const char *text)
{
    struct sgp_bulletin whole = *bulletin;
    whole.text = text;
    return survey->judge.judge == NULL || bulletin->kind == SGP_BULLETIN_FIGURES
               ? 1
               : survey->judge.judge(survey->judge.context, &whole);
}

static int take_figures(struct sgp_survey *survey, const struct sgp_bulletin *bulletin, char *text)
{
    struct sgp_survey_member *member = sgp_survey_find(survey, bulletin->author);
    const bool own = member != NULL && member == survey->self;
    const bool later = member != NULL && survey->result.text == NULL &&
                       sgp_survey_is_later(&member->figures, bulletin->stamp, bulletin->digest);
    const int taken = later ? judge(survey, bulletin, text) : 0;
    if (taken <= 0 || own) {
        free(text);
        return taken > 0 ? hear_of_oneself(survey, bulletin) : taken;
    }
    replace(&member->figures, bulletin->stamp, bulletin->digest, text);
    return 1;
}

static int take_vote(struct sgp_survey *survey, const struct sgp_bulletin *bulletin)
{
    struct sgp_survey_member *member = sgp_survey_find(survey, bulletin->author);
    return survey->result.text == NULL && member != NULL && add_vote(member, bulletin->digest);
}

static int take_result(struct sgp_survey *survey, const struct sgp_bulletin *bulletin, char *text)
{
    const struct sgp_survey_text *present = &survey->result;
    const bool later =
        present->text == NULL || sgp_survey_replaces(survey, bulletin->stamp, bulletin->digest,
                                     present->stamp, present->digest);
    const int taken = later ? judge(survey, bulletin, text) : 0;
    if (taken <= 0) {
        free(text);
        return taken;
    }
    replace(&survey->result, bulletin->stamp, bulletin->digest, text);
    return 1;
}

int sgp_survey_take(struct sgp_survey *survey, const struct sgp_bulletin *bulletin, char *text)
{
    int changed = 0;
    switch (bulletin->kind) {
    case SGP_BULLETIN_FIGURES:
    case SGP_BULLETIN_REPORT:
        changed = take_figures(survey, bulletin, text);
        break;
    case SGP_BULLETIN_VOTE:
        changed = take_vote(survey, bulletin);
        break;
    case SGP_BULLETIN_RESULT:
        changed = take_result(survey, bulletin, text);
        break;
    }
    if (changed > 0)
        look(survey);
    return changed;
}

/* ---- what a survey shows ---- */

enum sgp_survey_stage sgp_survey_stage(const struct sgp_survey *survey)
{
    if (survey->result.text != NULL)
        return SGP_SURVEY_FROZEN;
    if (survey->set == 0)
        return SGP_SURVEY_TELLING;
    if (survey->subject != SGP_SUBJECT_SCALING)
        return SGP_SURVEY_COMPLETE;
    for (uint32_t i = 0; i < survey->count; i++)
        if (!sgp_survey_has_vote(&survey->members[i], survey->set))
            return SGP_SURVEY_VOTING;
    /* A node that has no vote to give cannot hold back another set. */
    return survey->self != NULL ? SGP_SURVEY_COMPLETE : SGP_SURVEY_VOTING;
}

const char *sgp_survey_result(const struct sgp_survey *survey, uint64_t *ret_version)
{
    if (survey->result.text != NULL)
        *ret_version = survey->result.stamp;
    return survey->result.text;
}

uint64_t sgp_survey_result_digest(const struct sgp_survey *survey)
{
    return survey->result.text != NULL ? survey->result.digest : 0;
}

uint32_t sgp_survey_members(const struct sgp_survey *survey)
{
    return survey->count;
}

const char *sgp_survey_name(const struct sgp_survey *survey, uint32_t member)
{
    sgp_assert(member < survey->count);
    return survey->members[member].name;
}

uint32_t sgp_survey_self(const struct sgp_survey *survey)
{
    return survey->self != NULL ? (uint32_t)(survey->self - survey->members) : SGP_NODES_MAX;
}

const char *sgp_survey_figures(const struct sgp_survey *survey, uint32_t member)
{
    sgp_assert(member < survey->count);
    return survey->members[member].figures.text;
}

uint64_t sgp_survey_stamp(const struct sgp_survey *survey, uint32_t member)
{
    sgp_assert(member < survey->count);
    return survey->members[member].figures.stamp;
}

bool sgp_survey_waits(const struct sgp_survey *survey, uint32_t member)
{
    sgp_assert(member < survey->count);
    if (survey->result.text != NULL)
        return false;
    const struct sgp_survey_member *it = &survey->members[member];
    return survey->set == 0 ? it->figures.text == NULL : !sgp_survey_has_vote(it, survey->set);
}

uint64_t sgp_survey_set(const struct sgp_survey *survey)
{
    return survey->set;
}
