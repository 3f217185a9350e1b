/* SPDX-License-Identifier: Apache-2.0 */
/* A survey: what each member of a fleet tells, at every member. No node is in charge.
 *
 * 1. Tell. Each member has one bulletin. For each author the greater (stamp, digest) wins. An
 *    author that hears of a later stamp of its own tells again, with a later one.
 * 2. Pull. A node asks its neighbours for the bulletins that it lacks. A question names what the
 *    asker has, so a node that is asked may find that it lacks something itself.
 *
 * A survey of measures is complete when all members have told. In a survey of a scaling, all
 * members agree before training on one text that follows from what they have told about their rows:
 *
 * 3. Vote. A node that holds the figures of all members votes for this set: for the version of its
 *    topology file and the (name, stamp, digest) of all members. No vote is ever taken back.
 * 4. Freeze. When all members have voted for the set that a member holds now, its survey is
 *    complete. The caller computes the result from the figures and freezes it. A node with a result
 *    votes no more, and no reload changes the result.
 * 5. Adopt. A node without a result takes that of a neighbour. A node with a result takes another
 *    only if it is of a later version of the topology file.
 *
 * The best model is a result without figures and votes. Its stamp is no version, and of two results
 * of one stamp the greater digest wins. So is a signed topology file; of two of one stamp each is
 * told to who has the other, and what follows is decided by sgp/rollout.h, which judges all texts.
 *
 * So two nodes cannot freeze different sets of one version. Each is a member and needs the votes of
 * all members, and a member that votes for a second set has given up the first for good. A file
 * that names a struck member again needs a higher version; without that, two results are possible.
 *
 * A survey is a pure state machine: no clock, socket or file. Functions that can be out of memory
 * say so; the survey is then unchanged. One thread at a time. */
#ifndef SGP_SURVEY_H
#define SGP_SURVEY_H

#include "sgp/bulletin.h"
#include "sgp/status.h"

struct sgp_survey;

/* What a survey needs of a topology file: the nodes with rows, in the order of the file. */
struct sgp_survey_file {
    const char *const *members; /* distinct, each < SGP_NAME_BYTES */
    uint32_t count;             /* 1 .. SGP_NODES_MAX */
    uint64_t version;
};

enum sgp_survey_stage {
    SGP_SURVEY_TELLING = 1, /* figures of members are missing */
    SGP_SURVEY_VOTING,      /* votes of members are missing */
    SGP_SURVEY_COMPLETE,    /* all have told, and voted: the caller may compute the result */
    SGP_SURVEY_FROZEN,      /* there is a result */
};

/* ---- the rules (survey.c) -------------------------------------------------------------------- */

/* A survey of the node `name`, without a file. NULL: out of memory. */
struct sgp_survey *sgp_survey_create(const char *name, enum sgp_subject subject);
void sgp_survey_destroy(struct sgp_survey *survey); /* NULL is fine */

/* Which texts of others are taken. Not asked about figures, which are judged when all are there. */
struct sgp_survey_judge {
    void *context;
    uint32_t bytes_max; /* of a text; 0, as at first: SGP_BULLETIN_MAX */
    /* 1: take it. 0: leave it, as if it had not come. Negative: it is unsound, and the connection
     * that brought it ends. The bulletin's text is zero-terminated. NULL, as at first: take all. */
    int (*judge)(void *context, const struct sgp_bulletin *bulletin);
};
void sgp_survey_judge(struct sgp_survey *survey, const struct sgp_survey_judge *judge);

/* Use a topology file from now on. The figures and votes of members of both files stay. The node
 * itself may be no member; it then never votes, and takes the result of others. 0 or -ENOMEM. */
int sgp_survey_use(struct sgp_survey *survey, const struct sgp_survey_file *file);

/* Tell the text of this node (printable ASCII, 1 .. SGP_BULLETIN_MAX bytes, copied). `stamp` is the
 * clock's; a greater one is used if this node, or an earlier life of it, has told with a greater
 * one. The node must be a member. 0, -ENOMEM or SGP_E_LIMIT. */
int sgp_survey_tell(struct sgp_survey *survey, uint64_t stamp, const char *text);

/* A text that an earlier life of this node has kept, of a member of the file; of any other it is
 * left. Copied. 0, -ENOMEM or SGP_E_LIMIT. */
int sgp_survey_restore(
    struct sgp_survey *survey, const char *author, uint64_t stamp, const char *text);

/* The result: computed by this node after COMPLETE, or kept from an earlier life, with the version
 * of the file that it is of. Copied. Replaces an earlier result; NULL: there is none any more. 0,
 * -ENOMEM or SGP_E_LIMIT. */
int sgp_survey_freeze(struct sgp_survey *survey, uint64_t version, const char *text);

enum sgp_survey_stage sgp_survey_stage(const struct sgp_survey *survey);

/* The result, or NULL. Valid until the next freeze, take or piece. */
const char *sgp_survey_result(const struct sgp_survey *survey, uint64_t *ret_version);

/* The digest of the result; 0: there is none. */
uint64_t sgp_survey_result_digest(const struct sgp_survey *survey);

/* The members of the file: their number, and the name of one. */
uint32_t sgp_survey_members(const struct sgp_survey *survey);
const char *sgp_survey_name(const struct sgp_survey *survey, uint32_t member);

/* The place of this node among them; SGP_NODES_MAX: it is no member. */
uint32_t sgp_survey_self(const struct sgp_survey *survey);

/* What a member (its place in the file) has told, or NULL. Valid until the next change. */
const char *sgp_survey_figures(const struct sgp_survey *survey, uint32_t member);

/* The stamp with which it has told; 0 if it has not. */
uint64_t sgp_survey_stamp(const struct sgp_survey *survey, uint32_t member);

/* Whether the stage waits for this member. */
bool sgp_survey_waits(const struct sgp_survey *survey, uint32_t member);

/* The version and digest of the set that the node holds now; 0 while figures are missing. */
uint64_t sgp_survey_set(const struct sgp_survey *survey);

/* ---- exchange (exchange.c) ------------------------------------------------------------------- */

/* The bulletins that a node names in a question, and their number. A node with a result names only
 * that. A cursor is all zero at the start, and invalid after a change of the survey. */
struct sgp_survey_cursor {
    uint32_t member, bulletin;
};
uint32_t sgp_survey_heads(const struct sgp_survey *survey);
/* The next one, without its text. False: there is none. */
bool sgp_survey_next_head(const struct sgp_survey *survey, struct sgp_survey_cursor *cursor,
    struct sgp_bulletin *ret_head);

/* The answer to one question, piece by piece. A change of the file ends it. */
struct sgp_answering;
/* NULL: out of memory. It borrows the survey. */
struct sgp_answering *sgp_answering_create(const struct sgp_survey *survey);
void sgp_answering_destroy(struct sgp_answering *answering);
/* The asker holds this bulletin. Unknown ones are ignored. Returns whether it would replace figures
 * or a report of this survey: the asker is to be asked in its turn. */
bool sgp_answering_holds(struct sgp_answering *answering, const struct sgp_bulletin *head);
/* The next piece to send; its text is valid until the next call. An answer has at most one text of
 * each member: a text that is replaced while it is sent breaks off, and is in the next answer.
 * Returns 1; 0 at the end, or when the survey uses another file. */
int sgp_answering_next(struct sgp_answering *answering, struct sgp_bulletin *ret_piece,
    char text[SGP_BULLETIN_PIECE_MAX + 1]);

/* The answer that arrives on one connection, with its present bulletin. All zero at the start;
 * sgp_arriving_drop at the end. At most SGP_BULLETIN_MAX bytes. */
struct sgp_arriving {
    struct sgp_bulletin head;
    char author[SGP_NAME_BYTES];
    char *text;
    uint32_t received;
    uint64_t answer;    /* its number; 0: it has not begun */
    uint32_t bulletins; /* that have begun in it */
    bool result;        /* it has had a whole result */
};
void sgp_arriving_drop(struct sgp_arriving *arriving);

/* A piece has arrived from a member of the file. Returns 1 if the survey has changed, 0 if not,
 * -ENOMEM, or SGP_E_PROTOCOL: pieces out of order, a text without its digest, an unsound text, a
 * bulletin of another subject, a second text of one member or a second result, or more bulletins
 * than any fleet has, so that no answer is endless. */
int sgp_survey_piece(
    struct sgp_survey *survey, struct sgp_arriving *arriving, const struct sgp_bulletin *piece);

/* The digest of a text. Pure. */
uint64_t sgp_bulletin_digest(const char *text, uint32_t bytes);

#endif
