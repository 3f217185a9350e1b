/* SPDX-License-Identifier: Apache-2.0 */
/* The rollout of a signed topology file: which version a node uses, which version it votes on, and
 * when it changes from the one to the other. docs/ROLLOUT.md has the rules and their reasons.
 *
 *     pushed -> proposed --all nodes of the file have accepted--> active
 *
 * A node holds two documents. The active one is the version that it uses; without one it uses the
 * file of its configuration, version 0. The proposed one is the highest version that it knows, if
 * that is not active. Neighbours exchange both. A node votes on the proposed version once it has
 * tried the file, and shows its vote to all. A node that sees all votes activates the version. A
 * node that hears that a neighbour has activated a later version follows it.
 *
 * Two manifests of one version are a fork. Both are refused by each node that knows both, and the
 * document that has both tells the others. A higher version ends the fork.
 *
 * The caller must store what sgp_rollout_save returns before it shows that it has accepted a
 * version. A node that has forgotten what it accepted could accept another file of that version.
 *
 * A pure state machine: no clock, socket or file. One thread at a time. */
#ifndef SGP_ROLLOUT_H
#define SGP_ROLLOUT_H

#include "sgp/manifest.h"

/* ---- documents (document.c) ------------------------------------------------------------------ */

/* A manifest with its file, or two manifests that fork, as one line of printable ASCII:
 *
 *     MANIFEST content=BASE64
 *     MANIFEST rival MANIFEST */
struct sgp_document {
    struct sgp_manifest manifest;
    char identity[SGP_HASH_BYTES]; /* sgp_manifest_identify of it */
    char *file;                    /* with a terminating zero; NULL: the document is a fork */
    struct sgp_manifest rival;     /* of a fork */
};
#define SGP_DOCUMENT_BYTES_MAX (2u << 20)
#define SGP_DOCUMENT_MANIFEST (SGP_MANIFEST_BYTES + 16) /* bytes that have the whole manifest */

/* 0, SGP_E_DATA with *error, or -ENOMEM. The text may be hostile. Its signatures are not judged. */
int sgp_document_read(const char *text, struct sgp_error *error, struct sgp_document *ret_document);
/* The manifest of a document that is no fork: the first SGP_DOCUMENT_MANIFEST bytes of its text are
 * enough. 0, or SGP_E_DATA with *error. Its file is not looked at. */
int sgp_document_read_manifest(
    const char *text, struct sgp_error *error, struct sgp_manifest *ret_manifest);
/* The line, which the caller frees. NULL: no memory. */
char *sgp_document_write(const struct sgp_document *document);
void sgp_document_finish(struct sgp_document *document);

/* Name this file in a manifest. 0, or SGP_E_LIMIT with *error: its size is 0 or above the most. */
int sgp_document_name_file(
    struct sgp_manifest *manifest, const char *file, size_t bytes, struct sgp_error *error);

/* ---- the rollout (rollout.c) ----------------------------------------------------------------- */

struct sgp_rollout;

struct sgp_rollout_settings {
    struct sgp_administrators administrators;
    sgp_manifest_verify *verify;
};

/* NULL: out of memory. */
struct sgp_rollout *sgp_rollout_create(const struct sgp_rollout_settings *settings);
void sgp_rollout_destroy(struct sgp_rollout *rollout); /* NULL is fine */

/* Another one with the same documents and vote, to try what follows. NULL: out of memory. */
struct sgp_rollout *sgp_rollout_copy(const struct sgp_rollout *rollout);

enum sgp_rollout_slot { SGP_ROLLOUT_ACTIVE = 0, SGP_ROLLOUT_PROPOSED, SGP_ROLLOUT_SLOTS };

/* The document for others, and a number that grows with each change of it (bulletins have it as
 * their stamp); NULL: there is none. Borrowed until the next take, activation or restore. */
const char *sgp_rollout_text(
    const struct sgp_rollout *rollout, enum sgp_rollout_slot slot, uint64_t *ret_stamp);

/* A document has come from a neighbour, or was pushed here: in the slot where the sender has it.
 * 1: it has changed this node. 0: it is known already, or not above what is known. SGP_E_DATA with
 * *error: it is refused. -ENOMEM. */
int sgp_rollout_take(struct sgp_rollout *rollout, enum sgp_rollout_slot slot, const char *text,
    struct sgp_error *error);

/* What the caller must do next. */
enum sgp_rollout_due {
    SGP_ROLLOUT_NOTHING = 1,
    SGP_ROLLOUT_TRY,    /* try the file, and call sgp_rollout_vote */
    SGP_ROLLOUT_FOLLOW, /* use the file, and call sgp_rollout_activate: a neighbour uses it */
};
/* ret_file: the file; borrowed as above. */
enum sgp_rollout_due sgp_rollout_due(const struct sgp_rollout *rollout, const char **ret_file);

/* This node has tried the proposed file. `why`: NULL if the node could use it, else one line. */
void sgp_rollout_vote(struct sgp_rollout *rollout, const char *why);

enum sgp_vote {
    SGP_VOTE_NONE = 1, /* no version is proposed, or the file was not tried yet */
    SGP_VOTE_ACCEPTED,
    SGP_VOTE_REFUSED,
    SGP_VOTE_FORKED,
    SGP_VOTES = SGP_VOTE_FORKED,
};
/* "none", "accepted", "refused", "forked"; NULL: no vote. Static. */
const char *sgp_vote_name(enum sgp_vote vote);

/* What a node shows of its rollout. */
struct sgp_rollout_view {
    uint64_t active;   /* version; 0: the file of the configuration */
    uint64_t proposed; /* version; 0: none */
    uint64_t mark;     /* the first 64 bits of the identity of what is proposed; 0: none */
    enum sgp_vote vote;
    char why[SGP_TEXT_BYTES]; /* REFUSED and FORKED: the reason */
};
void sgp_rollout_look(const struct sgp_rollout *rollout, struct sgp_rollout_view *ret_view);

/* A manifest that this node holds; NULL: it has none there, or a fork. */
const struct sgp_document *sgp_rollout_document(
    const struct sgp_rollout *rollout, enum sgp_rollout_slot slot);

/* The words of a node of the file that is in use. */
struct sgp_rollout_voter {
    const char *name;
    bool stays; /* the proposed file has the node, too */
    uint64_t mark;
    enum sgp_vote vote; /* NONE if nothing is known */
};

/* The votes on what is proposed. It is ready if no vote is missing, and those that have accepted
 * are more than half of all voters, or the recovery key has signed. */
struct sgp_rollout_tally {
    uint32_t accepted, missing, refused; /* missing and refused: of nodes that must accept */
    char waits_for[SGP_NAME_BYTES];      /* the first of those that are missing or refuse; "" */
    bool ready;
};
void sgp_rollout_count(const struct sgp_rollout *rollout, const struct sgp_rollout_voter *voters,
    uint32_t count, struct sgp_rollout_tally *ret_tally);

/* This node uses the file of this slot from now on: PROPOSED, after a tally that was ready; or
 * ACTIVE, after SGP_ROLLOUT_FOLLOW. */
void sgp_rollout_activate(struct sgp_rollout *rollout, enum sgp_rollout_slot slot);

/* All that must survive the process, as text of lines; the caller frees it. NULL: no memory. */
char *sgp_rollout_save(const struct sgp_rollout *rollout);

/* What was saved. 0, SGP_E_DATA with *error, or -ENOMEM; the rollout must be new. The signatures of
 * the active document are not judged again: the administrators may have changed since. A proposed
 * document is dropped unless they have signed it. */
int sgp_rollout_restore(struct sgp_rollout *rollout, const char *text, struct sgp_error *error);

#endif
