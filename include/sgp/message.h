/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes say to each other: the core's messages, which lib/wire turns into bytes and back.
 *
 * One connection per directed edge, dialled by the source. On it
 *     source -> target   HELLO, BEAT, SHARE, ESTIMATE (their payload follows in chunks), BEQUEATH, GOODBYE
 *     target -> source   WELCOME, BEAT, CREDIT, ACK, ASK, ANSWER, GOODBYE
 * STATEMENT goes both ways, to whom it concerns, and is not for the core: it is signed, and who may sign is not the core's to say.
 * FACT goes both ways, too, and is not for the core: programs decide by it, and no round waits for it.
 * LAYOUT goes both ways before WELCOME, and is not for the core: two nodes find the first tensor in which their models differ.
 * A connection that begins with INQUIRE is for that one question: it ends with the ANSWER.
 * Every message carries the sender's pulse, so any message is a sign of life and a statement of
 * where its sender stands. Strings are borrowed and valid during the call that passes the message. */
#ifndef SGP_MESSAGE_H
#define SGP_MESSAGE_H

#include "sgp/coding.h"
#include "sgp/sketch.h"
#include "sgp/types.h"

/* The life of a node; travels, so it starts at 1 and numbers stay. */
enum sgp_node_state {
    SGP_NODE_JOINING = 1, /* waits for the hellos that `start` asks for */
    SGP_NODE_TRAINING,
    SGP_NODE_SETTLING, /* its steps are done; gives and absorbs until the fleet's end */
    SGP_NODE_FINISHED, /* gives no more; still accepts what comes */
    SGP_NODE_PAUSED,   /* gives nothing and is not waited for until resumed */
    SGP_NODE_DRAINING, /* ends: waits for acknowledgements, then is gone */
};

/* An epoch of exact cycles (docs/rules/cycle.md). Epochs are compared by number, then by start. */
struct sgp_epoch {
    uint64_t number;   /* 0: the first, in which nothing was renewed */
    sgp_round start;   /* the round with which it begins */
    uint64_t topology; /* digest of the sender's file; 0: no epochs are in use */
};

struct sgp_pulse {
    enum sgp_node_state state;
    bool computing;       /* the compute thread is at work: waited for, however long it takes */
    sgp_round round;      /* the round the sender is in */
    sgp_round next_round; /* source -> target: the promise, the next round in which it will give to
                             this target; SGP_ROUND_NONE if never. target -> source: NONE */
    sgp_round
        then_round; /* source -> target: the round after that one, if its credit may come as early: within an exact
                             cycle; else 0 */
    sgp_round ends; /* the greatest count of training rounds heard of in the fleet (max-gossip):
                             everybody mixes until then, so all end on one label */
    sgp_round stop; /* the least round at which somebody asked the fleet to stop training early
                             (min-gossip), or SGP_ROUND_NONE */
    struct sgp_epoch epoch;
};

/* What two nodes must share to train one model. The first five must be equal or the connection is
 * refused, naming the one that differs; topology, learning rate, batch and data only warn. */
struct sgp_fingerprint {
    uint64_t shape; /* layers and parameter count */
    uint64_t loss;
    uint64_t classes; /* label names in order */
    uint64_t scaling; /* how columns become features */
    uint32_t method;  /* number of the method, see method.h */
    uint64_t topology;
    double learning_rate;
    uint32_t
        batch; /* 0: a relay, which has no rows: classes, scaling and learning rate say nothing */
    uint64_t
        data; /* the table that the sender's rows are a part of; 0: they are all of it, or not said */
    uint64_t
        run; /* number of the run that the sender takes part in; 0: any, it has not begun one */
};

/* A weight above the number of members and so much more is absurd. Sound ones can exceed that number a
 * little, where restarts without a ledger have minted some. */
#define SGP_WEIGHT_SLACK 2.0

/* The types, with their words for people. Numbers travel, so they stay: a new one comes last. */
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
    X(LAYOUT, 16, "layout")

#define SGP_MESSAGE_NUMBER(name, number, word) SGP_##name = (number),
enum sgp_message_type { SGP_MESSAGE_TABLE(SGP_MESSAGE_NUMBER) };

#define SGP_MESSAGE_ONE(name, number, word) +1
enum { SGP_MESSAGE_TYPES = SGP_MESSAGE_TABLE(SGP_MESSAGE_ONE) }; /* how many; the greatest number */

/* Why a share was given back, or why a connection ends. Travels. */
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
    SGP_REASON_CREDIT, /* a share without a credit, or the buffer is needed elsewhere */
    SGP_REASON_CHECKSUM,
    SGP_REASON_PROTOCOL, /* a message that cannot come now */
    SGP_REASON_ABSENT,   /* silent for too long */
    SGP_REASON_REPLACED, /* another connection of the same source stands, newer or older */
    SGP_REASON_LEAVING,  /* the sender stops */
    SGP_REASON_METHOD,   /* another algorithm */
    SGP_REASON_TOPOLOGY, /* by the sender's new topology the edge is gone, or the address another */
    SGP_REASON_OUTSIZED, /* the payload is finite, and out of all proportion to the target's own */
    SGP_REASON_LEFT,     /* the sender has left for good, and accepts nothing any more */
    SGP_REASON_ROUNDS,   /* so many rounds of training that one of the two is mistaken */
    SGP_REASON_CHANGED,  /* what the share was being added to has changed before it was whole */
    SGP_REASON_RUN,      /* the same model, and another run of it: one of the two was reset */
    SGP_REASON_FORGOT,   /* an end restarted and has no trace of the share; never travels */
    SGP_REASON_COUNT,    /* one past the last; never travels */
};

struct sgp_hello {
    const char *source; /* the dialler's name, < SGP_NAME_BYTES */
    const char *target; /* whom it believes to be talking to */
    uint64_t lineage;   /* of the source; a new one means that the source forgot its past */
    uint64_t parameters;
    struct sgp_fingerprint fingerprint;
    uint64_t target_lineage; /* as the source knows it; 0: it does not */
    uint64_t acknowledged;   /* number of the last share that this target acknowledged, or 0 */
};

struct sgp_welcome {
    const char *target; /* the answerer's name */
    uint64_t lineage;   /* of the target */
    uint64_t accepted;  /* number of the last share accepted from the source's lineage, or 0 */
    struct sgp_fingerprint fingerprint;
    uint32_t forms; /* that the target decodes, SGP_CODING_BIT of each */
};

/* What a beat says beyond the pulse. */
struct sgp_beat {
    sgp_round
        mixes; /* mix until this label, one past (max-gossip): from the end of training on the sender's
                        last round, or what was asked for because estimates differed; 0: not known yet */
    bool ended; /* the sender is through with its rounds; `sketch` is that of its estimate, */
    bool
        empty; /* but it has no estimate, for want of weight, or none that a sketch can tell: then the
                   sketch says nothing, and is 0 */
    struct sgp_sketch sketch;
};

struct sgp_credit {
    sgp_round round; /* one share of this round may be sent: a buffer is reserved for it */
};

struct sgp_share {
    uint64_t
        number; /* 1, 2, ... within (source lineage, target); 2^62 at most, and no more than 2^40
                        beyond the last that was accepted */
    sgp_round round;
    double fraction; /* of the source's mass; 0 = an empty share, only so that nobody waits */
    double
        weight; /* fraction * source's w: enters the target's w exactly. 0 within an exact cycle, where the
                        file tells the weights of all parts, and of an update, which a worker gives to its owner whole */
    struct sgp_slice slice;
    /* Of slice.count values in its form, or 0 when the fraction is 0. The core of a source says the most that they can be,
     * and its performer sends what they are. */
    uint64_t payload_bytes;
    /* > 0: the source leaves for good, with so many members' mass: its own and what it had inherited
     * itself; all of its mass is in this share then. 0: an ordinary share. */
    double bequest;
    bool asks; /* the source hopes for a share of the target's mass, as it was before this one */
    uint64_t
        update; /* digest of what the source's latest training changed (sgp/update.h); 0: not said */
    double rate; /* the learning rate of that; 0: not said. At most SGP_RATE_MAX */
    sgp_round
        heavy; /* rounds for which the source, and everybody of whom it has heard, has had more than its part of all the weight that there can be, */
    sgp_round light; /* or less than its least weight (lib/core/total.c). 0 otherwise */
    enum sgp_coding
        coding; /* the form of the payload: its source has given what that decodes to (sgp/codec.h). A bequest is plain */
    enum sgp_compressor compressor; /* what made it. Not sent: known at the source alone */
};
#define SGP_RATE_MAX 1000000u

struct sgp_ack {
    uint64_t number;        /* everything up to here is settled */
    enum sgp_reason reason; /* of this number: NONE = accepted, else it returns to its source */
};

struct sgp_ask {
    bool wants;      /* a buffer is set aside for one; false: it has come, or is not wanted now */
    sgp_round newer; /* only one of this label (sgp_estimate.round) or a later one is of use */
    bool holds;      /* the sender has the copy of label newer - 1 as it came on this connection */
};

/* A copy of the source's x, whole; between an owner of parts and a worker, of that owner's. Moves no mass. Its model is
 * payload / weight. */
struct sgp_estimate {
    sgp_round
        round; /* of the source when the copy was made; from an owner, and of a worker's copy of it: its label, the
                        steps that the owner has closed */
    double weight; /* > 0 */
    uint64_t payload_bytes;
    struct sgp_slice slice; /* the values that it is of; count 0: all */
    /* NONE: the payload is the copy. Else it is a change: the copy of label `since`, and this added
     * to it, are the copy. */
    enum sgp_coding coding;
    sgp_round since;
    enum sgp_compressor compressor; /* of the change; known to its source alone */
};

/* One thing that the heir of a bequest is to answer for from then on; before the bequest itself. */
enum sgp_bequeath_kind {
    SGP_BEQUEATH_ACCEPTED = 1, /* target accepted nothing of source beyond `number` */
    SGP_BEQUEATH_DEBT, /* source may or may not have given `weight` to target in share `number` */
    SGP_BEQUEATH_TOLD, /* `weight` members of whom the leaver was told, and whose mass never came */
    SGP_BEQUEATH_UNKNOWN, /* by `weight` the total may be off: the leaver had an outdated record */
};

struct sgp_bequeath {
    uint32_t kind;
    const char *source, *target; /* < SGP_NAME_BYTES */
    uint64_t source_lineage, target_lineage;
    uint64_t number;
    double weight;
};

/* Has `target`, or one who answers for it, accepted share `number` of `source`? */
struct sgp_inquire {
    const char *source, *target;
    uint64_t source_lineage, target_lineage;
    uint64_t number;
};

/* To INQUIRE; and to BEQUEATH: whether there was room, and how many have come on this connection. */
struct sgp_answer {
    bool known;       /* false: somebody else may know */
    uint64_t lineage; /* of the target as it was asked about, if that is the answerer; else 0 */
    uint64_t number;  /* the last that was accepted */
};

/* The first word of `target`, which cannot be dialled, on a connection that it made: `source` is to greet it there. */
struct sgp_call {
    const char *source, *target; /* < SGP_NAME_BYTES */
};

/* A node's signed word on the end of the fleet, relayed as it is (docs/PROTOCOL.md has the text that is signed). */
enum sgp_statement_kind {
    SGP_STATEMENT_ENDS = 1, /* it trains until `round`, one past its last */
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

/* A small fact about a member, relayed as it is until all members have it (docs/rules/decide.md). */
enum sgp_fact_kind {
    SGP_FACT_TOLD =
        1, /* `text` is the author's word in decision `number`, among the members of this digest */
    SGP_FACT_AGREED, /* the author has the words of all `count` members in decision `number` */
    SGP_FACT_KINDS = SGP_FACT_AGREED,
};

struct sgp_fact {
    uint32_t kind;
    uint64_t number;    /* 1, 2, ... in the life of a fleet */
    uint64_t members;   /* digest of the names of the nodes that train, by the author's file */
    uint32_t count;     /* AGREED: of these; else 0 */
    const char *author; /* < SGP_NAME_BYTES */
    const char *text;   /* < SGP_FACT_BYTES; AGREED: "" */
};
#define SGP_FACT_BYTES 200u

/* One entry of the sender's layout: its tensors in their order, then what else must be equal (docs/rules/greeting.md). The
 * entry with equal `before` and unequal `text` is the first that differs. */
struct sgp_layout_entry {
    uint32_t index;  /* of the entry: 0, 1, ..., < SGP_LAYOUT_ENTRIES */
    uint64_t before; /* digest of all entries before it */
    const char *
        text; /* < SGP_LAYOUT_BYTES: "conv1.weight [16, 1, 3, 3]"; "nothing" behind the last tensor */
};
#define SGP_LAYOUT_ENTRIES 4098u /* 4096 tensors, where values begin, and the frozen parameters */
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
    };
};

/* The payload of a message: values of all parameters, in a form. All zero: it has none. */
struct sgp_cargo {
    struct sgp_slice slice; /* which values */
    uint64_t bytes;         /* of them in that form; of a core's message the most they can be */
    enum sgp_coding coding;
    enum sgp_compressor compressor; /* that made it; known at the source alone */
};
/* Of a SHARE or an ESTIMATE what is announced; of another message none. Pure; any thread. */
SGP_API struct sgp_cargo sgp_message_cargo(const struct sgp_message *message);

/* Words for people and logs; static storage, "?" for a value outside the enumeration. */
SGP_API const char *sgp_node_state_name(enum sgp_node_state state);    /* "training" */
SGP_API const char *sgp_message_type_name(enum sgp_message_type type); /* "share" */
SGP_API const char *sgp_reason_text(enum sgp_reason reason);           /* "the share holds ..." */

#endif
