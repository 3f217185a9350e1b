/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between nodes. lib/wire turns them into bytes and back.
 *
 * Each directed edge has one connection, which the source dials. On it travel:
 *     source -> target   HELLO, BEAT, SHARE, ESTIMATE (their payload follows in chunks), BEQUEATH,
 *                        GOODBYE
 *     target -> source   WELCOME, BEAT, CREDIT, ACK, ASK, ANSWER, GOODBYE
 *
 * Five messages travel both ways, and the core does not handle them:
 *     STATEMENT   is signed; the daemon decides which nodes may sign
 *     FACT        carries decisions of programs; no round waits for it
 *     LAYOUT      comes before WELCOME; two nodes find the first tensor that differs
 *     SUMMARY     says which rows of the fleet the sender has, or wants
 *     ROW         is what a node says about itself, for people
 *
 * A connection that begins with INQUIRE carries that one question, and ends with the ANSWER. A
 * connection that begins with PULL carries bulletins alone. On other connections these messages are
 * out of turn.
 *
 * Every message carries the sender's pulse, so any message is a sign of life and states the
 * sender's progress. Strings are borrowed and valid during the call that passes the message. */
#ifndef SGP_MESSAGE_H
#define SGP_MESSAGE_H

#include "sgp/bulletin.h"
#include "sgp/coding.h"
#include "sgp/join.h"
#include "sgp/row.h"
#include "sgp/sketch.h"
#include "sgp/types.h"

/* The states of a node. They travel, so numbers start at 1 and never change. */
enum sgp_node_state {
    SGP_NODE_JOINING = 1, /* waits for the hellos that `start` asks for */
    SGP_NODE_TRAINING,
    SGP_NODE_SETTLING, /* has done its steps; gives and absorbs until the fleet's end */
    SGP_NODE_FINISHED, /* gives no more; still accepts shares */
    SGP_NODE_PAUSED,   /* gives nothing, and no node waits for it until it is resumed */
    SGP_NODE_DRAINING, /* ends: waits for acknowledgements, then the process exits */
};

/* An epoch of exact cycles (docs/rules/cycle.md). Epochs are compared by number, then by start. */
struct sgp_epoch {
    uint64_t number;   /* 0: the first epoch, in which nothing was renewed */
    sgp_round start;   /* the round with which the epoch begins */
    uint64_t topology; /* digest of the sender's file; 0: the sender uses no epochs */
};

struct sgp_pulse {
    enum sgp_node_state state;
    bool computing;  /* the compute thread is at work; neighbours wait, however long it takes */
    sgp_round round; /* the round of the sender */
    /* From source to target: the promise. It is the next round in which the source will give to
     * this target, or SGP_ROUND_NONE if it never will. From target to source: SGP_ROUND_NONE. */
    sgp_round next_round;
    /* From source to target, within an exact cycle: the round after next_round, if its credit may
     * come as early. Otherwise 0. */
    sgp_round then_round;
    /* The greatest count of training rounds that the sender has heard of in the fleet (max-gossip).
     * Every node mixes until then, so all end on one label. */
    sgp_round ends;
    /* The least round at which a node asked the fleet to stop training early (min-gossip), or
     * SGP_ROUND_NONE. */
    sgp_round stop;
    struct sgp_epoch epoch;
};

/* The properties that two nodes must share to train one model. The first five must be equal;
 * otherwise the connection is refused, with the name of the property that differs. Topology,
 * learning rate, batch and data only warn. */
struct sgp_fingerprint {
    uint64_t shape; /* layers and parameter count */
    uint64_t loss;
    uint64_t classes; /* label names in order */
    uint64_t scaling; /* how columns become features */
    uint32_t method;  /* number of the method, see method.h */
    uint64_t topology;
    double learning_rate;
    /* 0: the sender is a relay without rows; its classes, scaling and learning rate mean
     * nothing. */
    uint32_t batch;
    /* The table of which the sender's rows are a part; 0: the sender has all rows, or none is
     * named. */
    uint64_t data;
    /* The number of the run that the sender takes part in; 0: the sender has begun no run. */
    uint64_t run;
};

/* Weight above the number of members plus this slack is refused. Honest totals can exceed the
 * number of members a little, where restarts without a ledger have minted weight. */
#define SGP_WEIGHT_SLACK 2.0

/* The types, with their words for people. Numbers travel and never change: add new ones at the
 * end. */
#define SGP_MESSAGE_TABLE(X)                                                                       \
    X(HELLO, 1, "hello")                                                                           \
    X(WELCOME, 2, "welcome")                                                                       \
    X(BEAT, 3, "beat")                                                                             \
    X(CREDIT, 4, "credit")                                                                         \
    X(SHARE, 5, "share")                                                                           \
    X(ACK, 6, "ack")                                                                               \
    X(GOODBYE, 7, "goodbye")                                                                       \
    X(ASK, 8, "ask")                                                                               \
    X(ESTIMATE, 9, "estimate")                                                                     \
    X(BEQUEATH, 10, "bequeath")                                                                    \
    X(INQUIRE, 11, "inquire")                                                                      \
    X(ANSWER, 12, "answer")                                                                        \
    X(CALL, 13, "call")                                                                            \
    X(STATEMENT, 14, "statement")                                                                  \
    X(FACT, 15, "fact")                                                                            \
    X(LAYOUT, 16, "layout")                                                                        \
    X(BULLETIN, 17, "bulletin")                                                                    \
    X(PULL, 18, "pull")                                                                            \
    X(SUMMARY, 19, "summary")                                                                      \
    X(ROW, 20, "row")                                                                              \
    X(JOIN, 21, "join")                                                                            \
    X(JOINED, 22, "joined")

#define SGP_MESSAGE_NUMBER(name, number, word) SGP_##name = (number),
enum sgp_message_type { SGP_MESSAGE_TABLE(SGP_MESSAGE_NUMBER) };

#define SGP_MESSAGE_ONE(name, number, word) +1
/* The number of types, which is also the greatest number of a type. */
enum { SGP_MESSAGE_TYPES = SGP_MESSAGE_TABLE(SGP_MESSAGE_ONE) };

/* The reason why a share was refused, or why a connection ends. It travels. */
enum sgp_reason {
    SGP_REASON_NONE = 1,   /* accepted */
    SGP_REASON_NOT_FINITE, /* the payload holds a NaN or an infinity */
    SGP_REASON_RANGE,      /* weight, fraction, round or slice is out of range */
    SGP_REASON_SHAPE,      /* another number of parameters or other layers */
    SGP_REASON_LOSS,
    SGP_REASON_CLASSES,
    SGP_REASON_SCALING,
    SGP_REASON_UNKNOWN, /* the source, or the target it asked for, is not in the topology */
    SGP_REASON_VERSION,
    SGP_REASON_CREDIT, /* a share came without a credit, or its buffer is needed elsewhere */
    SGP_REASON_CHECKSUM,
    SGP_REASON_PROTOCOL, /* the message is not allowed now */
    SGP_REASON_ABSENT,   /* silent for too long */
    SGP_REASON_REPLACED, /* another connection of the same source exists, newer or older */
    SGP_REASON_LEAVING,  /* the sender stops */
    SGP_REASON_METHOD,   /* another algorithm */
    SGP_REASON_TOPOLOGY, /* the sender's new topology lacks the edge, or has another address */
    SGP_REASON_OUTSIZED, /* the payload is finite, and far larger than the target's own values */
    SGP_REASON_LEFT,     /* the sender has left for good, and accepts no more shares */
    SGP_REASON_ROUNDS,   /* the rounds of training differ so much that one node must be wrong */
    SGP_REASON_CHANGED,  /* the target's parameters changed before the folded share was whole */
    SGP_REASON_RUN,      /* another run of the same model: one of the two nodes was reset */
    SGP_REASON_FORGOT,   /* an end restarted and has no trace of the share; never travels */
    SGP_REASON_COUNT,    /* one past the last; never travels */
};

struct sgp_hello {
    const char *source; /* the dialler's name, < SGP_NAME_BYTES */
    const char *target; /* the name of the node that it dialled */
    uint64_t
        incarnation; /* of the source; a new incarnation means that the source forgot its past */
    uint64_t parameters;
    struct sgp_fingerprint fingerprint;
    uint64_t target_incarnation; /* as the source knows it; 0: it does not */
    uint64_t acknowledged;       /* number of the last share that this target acknowledged, or 0 */
};

struct sgp_welcome {
    const char *target;   /* the answerer's name */
    uint64_t incarnation; /* of the target */
    uint64_t accepted; /* number of the last share accepted from the source's incarnation, or 0 */
    struct sgp_fingerprint fingerprint;
    uint32_t codings; /* the codings that the target decodes: SGP_CODING_BIT of each */
    bool rows;        /* the target takes SUMMARY and ROW; the source may then begin with SUMMARY */
};

/* The fields of a heartbeat beyond the pulse. */
struct sgp_beat {
    /* Nodes mix until this label, one past the last (max-gossip). From the end of training on it is
     * the sender's last round, or a later round, requested because estimates differed. 0: not
     * known yet. */
    sgp_round mixes;
    bool ended; /* the sender has finished its rounds, and `sketch` is that of its estimate */
    /* The sender has finished, but has no estimate for lack of weight, or none with a finite
     * sketch. Then the sketch is 0 and means nothing. */
    bool empty;
    struct sgp_sketch sketch;
};

struct sgp_credit {
    sgp_round round; /* the source may send one share of this round: a buffer is reserved for it */
};

struct sgp_share {
    /* 1, 2, ... within (source incarnation, target). At most 2^62, and at most 2^40 beyond the last
     * accepted number. */
    uint64_t number;
    sgp_round round;
    double fraction; /* of the source's mass; 0: an empty share, so that the target does not wait */
    /* fraction * source's w; it is added to the target's w exactly. 0 within an exact cycle, where
     * the file fixes the weights of all parts, and 0 for an update. */
    double weight;
    struct sgp_slice slice;
    /* The bytes of slice.count values in their form, or 0 if the fraction is 0. The core of a
     * source gives the maximum, and its performer sends the actual number. */
    uint64_t payload_bytes;
    /* > 0: the source leaves for good, with the mass of that many members: its own and those that
     * it had inherited. All of its mass is then in this share. 0: an ordinary share. */
    double bequest;
    bool asks; /* the source asks for a share of the target's mass, as it was before this share */
    /* Digest of the source's latest update (sgp/update.h); 0: not given. */
    uint64_t update;
    double rate; /* the learning rate of that update; 0: not given. At most SGP_RATE_MAX */
    /* The number of rounds for which the source, and every member of which it has heard, has had
     * more than its part of the greatest possible weight, or less than its least weight
     * (lib/core/wrong_total.c). Otherwise 0. */
    sgp_round heavy;
    sgp_round light;
    /* The coding of the payload. The source has given the decoded values (sgp/codec.h). A bequest
     * is plain. */
    enum sgp_coding coding;
    enum sgp_compressor compressor; /* that made the payload. Not sent: known at the source alone */
};
#define SGP_RATE_MAX 1000000u

struct sgp_ack {
    uint64_t number;        /* all shares up to this number are settled */
    enum sgp_reason reason; /* of this number: NONE: accepted; otherwise it returns to its source */
};

struct sgp_ask {
    bool wants; /* a buffer is set aside; false: the estimate has come, or is not wanted now */
    /* Only an estimate of this label (sgp_estimate.round) or a later one is useful. */
    sgp_round newer;
    bool holds; /* the sender has the copy of label newer - 1 as it came on this connection */
    /* Of the sender's x, at weight 1 (`digest` of sgp/trainer.h); 0: not given. It allows the
     * answer `same`. It need not resist an attacker: a node that lies in a digest or in `same` only
     * makes the asker keep the parameters with which it came, and an estimate can say anything. */
    uint64_t digest;
};

/* A whole copy of the source's x, or the word that the asker has it (`same`). Between an owner of
 * parts and a worker it is a copy of the owner's parts. It moves no mass. The model is payload /
 * weight. */
struct sgp_estimate {
    /* The round of the source when the copy was made. From an owner, and of a worker's copy of it:
     * the label, which is the number of steps that the owner has closed. */
    sgp_round round;
    double weight; /* > 0 */
    uint64_t payload_bytes;
    struct sgp_slice slice; /* the values of the copy; count 0: all */
    /* NONE: the payload is the copy. Otherwise it is a change, which is added to the copy of label
     * `since`. */
    enum sgp_coding coding;
    sgp_round since;
    enum sgp_compressor compressor; /* of the change; known to its source alone */
    /* The source's x is the asker's, as the digest of its question shows: there is no payload. */
    bool same;
    /* The copy is of a token of an epoch before the source's, or its label was used twice. Its
     * label cannot be compared with that of the token. */
    bool former;
    /* The values contain no training, whatever `round` says: the source has lost its training. With
     * `round` 0 the receiver takes that for granted. */
    bool untrained;
};

/* An account that the heir of a bequest takes over. It is sent before the bequest. */
enum sgp_bequeath_kind {
    /* Target accepted no share of source beyond `number`. */
    SGP_BEQUEATH_ACCEPTED = 1,
    /* Source may or may not have given `weight` to target in share `number`. */
    SGP_BEQUEATH_DEBT,
    /* `weight` members were announced to the leaver, and their mass never came */
    SGP_BEQUEATH_TOLD,
    /* The total may be off by `weight`: the leaver had an outdated record. */
    SGP_BEQUEATH_UNKNOWN,
};

struct sgp_bequeath {
    uint32_t kind;
    const char *source, *target; /* < SGP_NAME_BYTES */
    uint64_t source_incarnation, target_incarnation;
    uint64_t number;
    double weight;
};

/* The question: has `target` accepted share `number` of `source`? The target answers, or its
 * heir. */
struct sgp_inquire {
    const char *source, *target;
    uint64_t source_incarnation, target_incarnation;
    uint64_t number;
};

/* The answer to INQUIRE. It also answers BEQUEATH: `known` then says whether there was room, and
 * `number` counts the accounts of this connection. */
struct sgp_answer {
    bool known; /* false: another node may know */
    uint64_t
        incarnation; /* the target's, as in the question, if the answerer is that target; else 0 */
    uint64_t number; /* the last accepted number */
};

/* The first message of `target`, which cannot be dialled, on a connection that it made. It asks
 * `source` to greet it there. */
struct sgp_call {
    const char *source, *target; /* < SGP_NAME_BYTES */
};

/* A node's signed statement on the end of the fleet, relayed unchanged. docs/PROTOCOL.md has the
 * signed text. */
enum sgp_statement_kind {
    SGP_STATEMENT_ENDS = 1, /* the author trains until `round`, one past its last round */
    SGP_STATEMENT_STOP,     /* training shall stop at `round` */
    SGP_STATEMENT_KINDS = SGP_STATEMENT_STOP,
};

struct sgp_statement {
    uint32_t kind;
    sgp_round round;
    const char *author;    /* < SGP_NAME_BYTES */
    const char *key;       /* its public key, < SGP_PUBLIC_BYTES */
    const char *signature; /* < SGP_SIGNATURE_BYTES */
};

/* A small fact about a member, relayed unchanged until all members have it
 * (docs/rules/decide.md). */
enum sgp_fact_kind {
    /* `text` is the author's word in decision `number`, among the members of this digest */
    SGP_FACT_TOLD = 1,
    /* The author has the words of all `count` members in decision `number`. */
    SGP_FACT_AGREED,
    SGP_FACT_KINDS = SGP_FACT_AGREED,
};

struct sgp_fact {
    uint32_t kind;
    uint64_t number;    /* 1, 2, ... in the life of a fleet */
    uint64_t members;   /* digest of the names of the nodes that train, by the author's file */
    uint32_t count;     /* AGREED: the number of these nodes; else 0 */
    const char *author; /* < SGP_NAME_BYTES */
    const char *text;   /* < SGP_FACT_BYTES; AGREED: "" */
};
#define SGP_FACT_BYTES 200u

/* One entry of the sender's layout: its tensors in order, then the other properties that must be
 * equal (docs/rules/greeting.md). The entry with equal `before` and unequal `text` is the first
 * that differs. */
struct sgp_layout_entry {
    uint32_t index;  /* of the entry: 0, 1, ..., < SGP_LAYOUT_ENTRIES */
    uint64_t before; /* digest of all entries before it */
    /* < SGP_LAYOUT_BYTES: "conv1.weight [16, 1, 3, 3]"; "nothing" after the last tensor */
    const char *text;
};
#define SGP_LAYOUT_ENTRIES 4098u /* 4096 tensors, the start of the values, the frozen parameters */
#define SGP_LAYOUT_BYTES 200u

struct sgp_goodbye {
    enum sgp_reason reason;
    const char *text; /* one line for the other side's log, < SGP_GOODBYE_BYTES */
};
#define SGP_GOODBYE_BYTES 200u

struct sgp_message {
    enum sgp_message_type type;
    struct sgp_pulse pulse;
    union {
        struct sgp_hello hello;
        struct sgp_welcome welcome;
        struct sgp_beat beat;
        struct sgp_credit credit;
        struct sgp_share share;
        struct sgp_ack ack;
        struct sgp_goodbye goodbye;
        struct sgp_ask ask;
        struct sgp_estimate estimate;
        struct sgp_bequeath bequeath;
        struct sgp_inquire inquire;
        struct sgp_answer answer;
        struct sgp_call call;
        struct sgp_statement statement;
        struct sgp_fact fact;
        struct sgp_layout_entry layout;
        struct sgp_bulletin bulletin;
        struct sgp_pull pull;
        const struct sgp_summary *summary; /* borrowed, as it is large; not NULL */
        struct sgp_row row;
        struct sgp_join join;
        struct sgp_joined joined;
    };
};

/* The payload of a message: values of all parameters, in a form. All zero: the message has none. */
struct sgp_cargo {
    struct sgp_slice slice; /* the values */
    uint64_t bytes;         /* in that form; from the core an upper bound, see sgp_perform_send */
    enum sgp_coding coding;
    enum sgp_compressor compressor; /* that made the payload; known at the source alone */
};
/* The payload that a SHARE or an ESTIMATE announces; of another message none. Pure; any thread. */
struct sgp_cargo sgp_message_cargo(const struct sgp_message *message);

/* Words for people and logs; static storage, "?" for a value outside the enumeration. */
const char *sgp_node_state_name(enum sgp_node_state state);    /* "training" */
const char *sgp_message_type_name(enum sgp_message_type type); /* "share" */
const char *sgp_reason_text(enum sgp_reason reason);           /* "the share holds ..." */

#endif
