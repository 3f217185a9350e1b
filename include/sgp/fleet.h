/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a fleet: each node publishes one row about itself, and holds the latest row of every
 * other node. Rows spread from neighbour to neighbour, so every node can show the whole fleet.
 *
 * They are for people, and have the votes on signed topology files (sgp/rollout.h). Nothing else is
 * decided by them: whether a neighbour is alive is decided by its heartbeats alone.
 *
 * On each link a node offers the versions of the rows that have changed since it did so last. A
 * neighbour that has an earlier version wants the row, and gets it. A link is open to rows while it
 * is up, so nothing is offered twice. The bytes sent on a link have a bound; what is beyond it
 * waits, and of a row that changes meanwhile only the latest version is sent.
 *
 * The age of a row is the sum of the times for which nodes have held it. No two clocks are
 * compared. A row is stale if it is older than 10 s and than three intervals of its author. If its
 * author begins anew, its incarnation is greater, so its earlier rows count no more. If it hears of
 * a row in its own name that counts more than its own, it publishes a row with a greater version.
 *
 * A pure state machine: no clock, socket or file. One thread at a time. */
#ifndef SGP_FLEET_H
#define SGP_FLEET_H

#include "sgp/row.h"
#include "sgp/status.h"

#define SGP_FLEET_ROWS_MAX 4096u /* rows of a daemon: of the first nodes of its file */

/* Bytes that are sent on a link: at most this rate, after a rest at most so many at once, and one
 * message (at most SGP_WIRE_FRAME_MAX bytes) more. So in no second more than 16 KiB. */
#define SGP_FLEET_LINK_RATE 12288u
#define SGP_FLEET_LINK_BURST 3072u

/* A node takes a turn so often. In each it sends on all links what was asked for meanwhile, and one
 * link, the next, offers. So what rows cost a node does not grow with the number of its links. */
#define SGP_FLEET_TURN_MS 125u

/* Rows that a peer may send: more a second than an honest peer sends, and at once what may have
 * waited on the line. A row costs at most the verification of one signature, and that only if its
 * key is the author's. */
#define SGP_FLEET_ROWS_RATE 128u
#define SGP_FLEET_ROWS_BURST 2048u

/* ---- what a row says (row.c) ----------------------------------------------------------------- */

/* What a node says about itself. The names are those of GET /v1/status. A real number that is not
 * known is NaN, a text that is not known is "", and a round is SGP_ROUND_NONE. Texts are words of
 * printable ASCII. */
struct sgp_fleet_row {
    uint32_t interval_ms; /* the author publishes at least so often; 1 .. SGP_FLEET_INTERVAL_MAX */
    char state[SGP_NAME_BYTES]; /* "training" */
    sgp_round round;
    sgp_round rounds;
    double epoch;
    double loss, test_loss, test_accuracy;
    double weight;       /* push-sum weight */
    double disagreement; /* consensus distance: relative, to the models of its neighbours */
    double rounds_per_second;
    double samples_per_second;
    double uptime_seconds;
    char waiting[SGP_NAME_BYTES];      /* for what: "share"; "": for nothing */
    char waiting_peer[SGP_NAME_BYTES]; /* for which node; "": for none */
    double waiting_seconds;
    uint64_t topology_digest;
    uint64_t topology_version;
    char version[SGP_NAME_BYTES]; /* of the program */
    char device[SGP_NAME_BYTES];  /* on which the node computes */
    /* of its rows of data: enum sgp_fleet_promised, or a later number; and for each of them */
    uint32_t promised;
    double promised_epsilon, promised_delta;
    /* of signed topology files (struct sgp_rollout_view): versions, the mark of what is proposed,
     * the vote on it, and the beginning of its reason; 0 and "" without administrators */
    uint64_t rollout_active, rollout_proposed, rollout_mark;
    uint32_t rollout_vote;
    char rollout_why[SGP_NAME_BYTES]; /* may have blanks */
};

enum sgp_fleet_promised {
    SGP_FLEET_PROMISED_UNKNOWN, /* a relay, or an earlier program published the row */
    SGP_FLEET_PROMISED_NONE,    /* nothing is promised */
    SGP_FLEET_PROMISED_COUNTED, /* the node counts its noisy steps, up to this epsilon */
    SGP_FLEET_PROMISED_CLAIMED, /* the program that trains through it claims this */
};

/* "none", "counted", "claimed"; NULL: not known. Static. */
const char *sgp_fleet_promised_word(uint32_t promised);

/* Whether two rows promise different privacy. False if the promise of one of them is not known. */
bool sgp_fleet_promises_differ(const struct sgp_fleet_row *one, const struct sgp_fleet_row *other);

#define SGP_FLEET_INTERVAL_LEAST 1000u  /* ms */
#define SGP_FLEET_INTERVAL_MAX 3600000u /* ms */

/* Leave out what tells of a node's rows of data: losses and accuracy. An epoch and rows a second
 * tell how many rows there are. For a node that may not tell it. */
void sgp_fleet_row_withhold(struct sgp_fleet_row *row);

/* The text of a row: words with one blank between them, the first of which is the form, 1. A later
 * program may add words at the end, and words that are missing there are not known. A character
 * that is not allowed in a word becomes '_'. Of a word that is no node's name or reason, 31
 * characters are written. */
void sgp_fleet_row_write(const struct sgp_fleet_row *row, char ret_text[SGP_ROW_TEXT_BYTES]);

/* 0; SGP_E_VERSION: a text of a later form; SGP_E_DATA: not a row. The text may be hostile. */
int sgp_fleet_row_read(const char *text, struct sgp_fleet_row *ret_row);

/* ---- rows of all nodes (store.c) ------------------------------------------------------------- */

struct sgp_fleet;

struct sgp_fleet_settings {
    const char *self;     /* this node's name, < SGP_NAME_BYTES; copied */
    uint32_t incarnation; /* seconds since 1970, when the process began */
    uint32_t rows_max;    /* of more nodes, those behind have no rows */
    uint64_t model;       /* the shape of the fingerprint; what is signed holds for this model */
    void *context;
    /* Sign these bytes, which are a row of this node. False: no memory. NULL: rows are not
     * signed. */
    bool (*sign)(void *context, const char *bytes, size_t count, char ret_key[SGP_ROW_KEY_BYTES],
        char ret_signature[SGP_ROW_SIGNATURE_BYTES]);
    /* For a file with which rows must be proved: whether the file gives the author of a row the
     * row's key; and, asked after that, whether these bytes are signed with it. */
    bool (*has_key)(void *context, const struct sgp_row *row);
    bool (*verify)(void *context, const struct sgp_row *row, const char *bytes, size_t count);
};

/* Rows that were not taken, by reason. A row that is known already is not counted. */
struct sgp_fleet_counts {
    uint64_t strangers; /* of nodes that the file does not name */
    uint64_t earlier;   /* earlier than the row that this node has */
    uint64_t ahead;     /* of an incarnation that is more than a day in the future */
    uint64_t forged;    /* the signature is missing or wrong, or the key is not the author's */
    uint64_t malformed; /* not a row, or of a later form */
};

/* The name of a node in a summary; never 0. */
uint64_t sgp_fleet_name_digest(const char *name);

/* The most bytes of a store of so many nodes, with so many links. */
uint64_t sgp_fleet_bytes(uint32_t nodes, uint32_t links);

/* Without nodes at first. NULL: out of memory. */
struct sgp_fleet *sgp_fleet_create(const struct sgp_fleet_settings *settings);
void sgp_fleet_destroy(struct sgp_fleet *fleet); /* NULL is fine */

/* Whether rows must be proved from now on; at first they need not. */
void sgp_fleet_prove(struct sgp_fleet *fleet, bool proves);

/* Use these nodes, of which each name is < SGP_NAME_BYTES, in this order. The rows of nodes that
 * were there before stay; if rows must be proved, those that were proved when they came, and whose
 * authors still have their keys. No signature is verified again. This node's own row stays if it is
 * signed, or if this node cannot sign. 0, or -ENOMEM: nothing has changed. */
int sgp_fleet_use(struct sgp_fleet *fleet, const char *const *names, uint32_t count);

/* The interval at which each of so many nodes publishes, in ms: the longer the more there are, so
 * that the rows of all take the same time of a node, and fit a link. */
uint32_t sgp_fleet_interval(uint32_t count);

/* Publish a row of this node. 0, or -ENOMEM. */
int sgp_fleet_tell(struct sgp_fleet *fleet, const struct sgp_fleet_row *row, sgp_time now);

/* Whether this node must publish at once: it has no row that counts with the present file, or
 * another row in its name counts more than its own. */
bool sgp_fleet_must_tell(const struct sgp_fleet *fleet);

/* A node as it is shown. */
struct sgp_fleet_view {
    const char *name; /* these two are borrowed until rows change */
    const char *text; /* of its row; NULL: none has come */
    sgp_time age;     /* of the row */
    bool stale;       /* or there is no row */
};
uint32_t sgp_fleet_count(const struct sgp_fleet *fleet); /* nodes that may have a row */
struct sgp_fleet_view sgp_fleet_look(const struct sgp_fleet *fleet, uint32_t index, sgp_time now);
struct sgp_fleet_counts sgp_fleet_counts(const struct sgp_fleet *fleet);

/* The next node of which no row is fresh any more (`ret_stale`), or again one is, since this was
 * asked. False: there is no other. */
bool sgp_fleet_changed(struct sgp_fleet *fleet, sgp_time now, uint32_t *ret_index, bool *ret_stale);

/* ---- the exchange on a link (link.c, exchange.c) --------------------------------------------- */

struct sgp_fleet_link;

/* A link is up, and its peer takes rows. NULL: out of memory. */
struct sgp_fleet_link *sgp_fleet_open(struct sgp_fleet *fleet, sgp_time now);
void sgp_fleet_close(struct sgp_fleet_link *link); /* NULL is fine */

/* The next link offers the rows that have changed, when it is asked for its next message. To be
 * called each SGP_FLEET_TURN_MS. */
void sgp_fleet_turn(struct sgp_fleet *fleet);

/* All links offer, since what this node says must not wait for their turns. */
void sgp_fleet_hurry(struct sgp_fleet *fleet);

enum sgp_fleet_message {
    SGP_FLEET_NOTHING = 1, /* nothing is due, or no byte may be sent yet */
    SGP_FLEET_SUMMARY,
    SGP_FLEET_ROW,
};
/* The next message for the peer; its text is borrowed until rows change. The caller says how many
 * bytes it was. */
enum sgp_fleet_message sgp_fleet_next(struct sgp_fleet_link *link, sgp_time now,
    struct sgp_summary *ret_summary, struct sgp_row *ret_row);
void sgp_fleet_sent(struct sgp_fleet_link *link, size_t bytes);

/* A summary has come. */
void sgp_fleet_hear(struct sgp_fleet_link *link, const struct sgp_summary *summary);

/* A row has come; `seconds` since 1970 by the clock of this node. 0: it was taken, or is of no use.
 * SGP_E_PROTOCOL: no honest node sends it, or so many, so the link should end. */
int sgp_fleet_take(
    struct sgp_fleet_link *link, const struct sgp_row *row, sgp_time now, uint64_t seconds);

#endif
