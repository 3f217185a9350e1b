/* SPDX-License-Identifier: Apache-2.0 */
/* A bulletin: a text that one node of a fleet writes for all nodes, and that every node passes on.
 *
 * A node keeps one bulletin of each kind and author, the one of the greatest (stamp, digest). Votes
 * are the exception: all votes of an author are kept. Nodes learn bulletins by asking their
 * neighbours for those that they lack (anti-entropy, Demers et al. 1987, section 1.3). A question
 * is about one subject. */
#ifndef SGP_BULLETIN_H
#define SGP_BULLETIN_H

#include "sgp/types.h"

/* What bulletins are about. */
enum sgp_subject {
    SGP_SUBJECT_SCALING = 0, /* the scaling on which all nodes agree: figures, votes, a result */
    SGP_SUBJECT_MEASURES,    /* how good the model is: a report of each node */
    SGP_SUBJECT_BEST,        /* the copy of the best model that all nodes keep: a result */
    SGP_SUBJECT_ACTIVE,      /* the signed topology file that a node uses: a result; rollout.h */
    SGP_SUBJECT_PROPOSED,    /* the one on which it votes: likewise */
    SGP_SUBJECTS,
};

enum sgp_bulletin_kind {
    SGP_BULLETIN_FIGURES = 1, /* statistics of the author's rows; sgp/statistics.h */
    SGP_BULLETIN_VOTE,        /* the author holds the set of figures with this digest; no text */
    SGP_BULLETIN_RESULT,      /* what all members have voted for; sgp/survey.h */
    SGP_BULLETIN_REPORT,      /* measures of the author's model; sgp/report.h */
    SGP_BULLETIN_KINDS = SGP_BULLETIN_REPORT,
};

#define SGP_BULLETIN_MAX (16u * 1024u * 1024u) /* bytes of a text */
#define SGP_BULLETIN_STAMP_MAX (UINT64_C(1) << 62)
#define SGP_BULLETIN_PIECE_MAX 700u /* bytes of a text in one message */

/* A bulletin, or in a message a piece of it. Every message about a bulletin names it by its first
 * five fields. A message with an empty `text` only names it. */
struct sgp_bulletin {
    enum sgp_bulletin_kind kind;
    const char *author; /* < SGP_NAME_BYTES */
    uint64_t stamp;     /* <= SGP_BULLETIN_STAMP_MAX; RESULT: the version of the topology file */
    uint64_t digest;    /* of the text; VOTE: of the set that the author votes for */
    uint32_t bytes;     /* of the whole text, which is printable ASCII; <= SGP_BULLETIN_MAX */
    uint32_t first;     /* place of the piece in the text; 0 in a whole bulletin */
    const char *text;   /* the piece, or all of it */
};

/* Ask a node for the bulletins that the sender lacks. `heads` messages follow, which name the
 * bulletins that the sender has. The answer is all other bulletins in pieces; a PULL without heads
 * ends it. */
struct sgp_pull {
    const char *source, *target; /* < SGP_NAME_BYTES */
    uint32_t heads;              /* <= SGP_PULL_HEADS_MAX */
    uint32_t subject;            /* enum sgp_subject; an unknown one is refused */
    /* The number of a wish: all nodes are asked to tell anew. A node that hears of it for the first
     * time does so, and asks its own neighbours with it. 0: no wish. */
    uint64_t wish;
    uint32_t wish_ms; /* the time that it has left, <= SGP_WISH_MS_MAX */
};
#define SGP_PULL_HEADS_MAX 65536u
#define SGP_WISH_MS_MAX 300000u

/* A wish has two parts: SGP_WISH_COUNT_BITS that count the wishes of one process, and above them
 * bits that the process has drawn at random. So wishes of two processes are never compared, and no
 * clock is needed. */
#define SGP_WISH_COUNT_BITS 20

/* Whether a node that knows `wish` has heard of it after `earlier` was made: both are of one
 * process, and `wish` is not before `earlier`. */
static inline bool sgp_wish_follows(uint64_t wish, uint64_t earlier)
{
    return wish >> SGP_WISH_COUNT_BITS == earlier >> SGP_WISH_COUNT_BITS && wish >= earlier;
}

#endif
