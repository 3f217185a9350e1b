/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a survey, for the two files of this module. */
#ifndef SGP_SURVEY_SURVEY_H
#define SGP_SURVEY_SURVEY_H

#include "sgp/survey.h"

/* Of each member so many votes are kept, the latest. An older one is learned again if it counts. */
#define SGP_SURVEY_VOTES 32u

struct sgp_survey_text {
    uint64_t stamp, digest;
    uint32_t bytes;
    char *text; /* owned; NULL: none */
};

struct sgp_survey_member {
    char name[SGP_NAME_BYTES];
    struct sgp_survey_text figures;
    uint64_t answer; /* the latest answer that had figures of this member; 0: none */
    uint64_t votes[SGP_SURVEY_VOTES];
    uint32_t vote_count; /* kept */
    uint32_t vote_next;  /* place of the next vote */
};

struct sgp_survey {
    char name[SGP_NAME_BYTES];
    enum sgp_subject subject;
    struct sgp_survey_member *members; /* in the order of the file */
    uint32_t *by_name;                 /* places of members, sorted by name */
    uint32_t count;
    struct sgp_survey_member *self; /* NULL: the file does not name this node as a member */
    uint64_t version;
    uint64_t files;   /* how many files have been used */
    uint64_t answers; /* how many answers of others have begun */
    uint64_t stamp;   /* the greatest of this node that is known */
    uint64_t set;     /* digest of what the node holds; 0: incomplete */
    struct sgp_survey_text result;
    struct sgp_survey_judge judge;
};

/* The kind of what members tell. */
static inline enum sgp_bulletin_kind sgp_survey_kind(const struct sgp_survey *survey)
{
    return survey->subject == SGP_SUBJECT_SCALING ? SGP_BULLETIN_FIGURES : SGP_BULLETIN_REPORT;
}

/* Whether a survey is about bulletins of this kind. */
static inline bool sgp_survey_is_about(const struct sgp_survey *survey, enum sgp_bulletin_kind kind)
{
    if (survey->subject == SGP_SUBJECT_SCALING)
        return kind != SGP_BULLETIN_REPORT;
    return kind ==
           (survey->subject == SGP_SUBJECT_MEASURES ? SGP_BULLETIN_REPORT : SGP_BULLETIN_RESULT);
}

/* The most bytes that a text of others may have. */
static inline uint32_t sgp_survey_bytes_max(const struct sgp_survey *survey)
{
    return survey->judge.bytes_max > 0 ? survey->judge.bytes_max : SGP_BULLETIN_MAX;
}

/* Whether a text of this (stamp, digest) would replace one. */
bool sgp_survey_is_later(const struct sgp_survey_text *than, uint64_t stamp, uint64_t digest);

/* Whether a result of this (stamp, digest) replaces one of that. */
bool sgp_survey_replaces(const struct sgp_survey *survey, uint64_t stamp, uint64_t digest,
    uint64_t than_stamp, uint64_t than_digest);

/* The member of that name, or NULL. */
struct sgp_survey_member *sgp_survey_find(const struct sgp_survey *survey, const char *name);

bool sgp_survey_has_vote(const struct sgp_survey_member *member, uint64_t vote);

/* A whole bulletin that the survey is about. Takes over `text` (allocated; NULL for a vote).
 * Returns 1 if the survey has changed, 0 if not, or negative: the judge refuses the text. */
int sgp_survey_take(struct sgp_survey *survey, const struct sgp_bulletin *bulletin, char *text);

#endif
