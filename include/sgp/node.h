/* SPDX-License-Identifier: Apache-2.0 */
/* The node: a pure state machine. It takes one event and returns a bounded list of effects.
 *
 * It owns w, rounds, links, promises, credits and buffer slots. It owns no clock, socket, thread or
 * model float. Time arrives inside the event, random numbers come from a seed, and nothing is
 * allocated after init. Two performers carry the effects out: the daemon and the simulator.
 *
 *   joining --hellos--> training --steps done--> settling --the fleet's end--> finished
 *      |                   |  ^                     |                            |
 *      |              pause|  |resume          (pause/resume)                    |
 *      |                 paused                     |                            |
 *      +--------------------+---- stop, leave ------+----------------------------+--> draining
 *
 * One round k of Stochastic Gradient Push (Assran et al. 2019, Algorithm 1) has these stages:
 *
 *   TRAIN     one job: steps of the optimiser at z = x / w (a method may publish before it)
 *   CREDIT    wait until every live out-neighbour of k has granted a buffer
 *   PUBLISH   one job: snapshot of x, x *= keep; w -= given; then a share to each
 *   GATHER    wait for every live in-neighbour whose promise is <= k; absorb in order of source
 *
 * If a node owns the vector (docs/rules/owner.md), the owner alone has weight. A worker's round is
 * the label of its copy. In CREDIT and PUBLISH the worker gives its update, and in GATHER it waits
 * for the copy of the next step. In GATHER the owner waits for updates. If parts have owners, each
 * owner has a label of its own, and a worker's round is the least of its labels.
 *
 * A node that gets a record (sgp/record.h) continues where its process died, with the same
 * incarnation, weight and round. Shares that it owes are settled when their target greets. It
 * catches up with the greatest round that it hears.
 *
 * If its parameters are not those of the record (`seeks`), the node stays joining until an
 * in-neighbour has sent it an estimate, and no node waits for it. ASK sets a buffer aside, ESTIMATE
 * brings the neighbour's x and w, and ADOPT sets x = w_own * x / w. If no neighbour can send one,
 * the node continues with the parameters of its performer. A node without a past does the same if
 * its neighbours are far ahead: by more rounds than nodes and a cycle. Its own first parameters
 * would set back a fleet that has trained.
 *
 * Thread: one; the caller's. */
#ifndef SGP_NODE_H
#define SGP_NODE_H

#include "sgp/message.h"
#include "sgp/method.h"
#include "sgp/random.h"
#include "sgp/record.h"
#include "sgp/status.h"
#include "sgp/topology.h"

#define SGP_SLOT_NONE UINT32_MAX
/* The most estimates that a node compares before it adopts one. */
#define SGP_CANDIDATES_MOST 3u
#define SGP_START_ALL UINT32_MAX

/* The failure detector judges silence by the peer's own pace. A peer is absent after 8 times its
 * longest recent interval, within these bounds. */
/* A link that is silent for this long sends a heartbeat. */
#define SGP_BEAT_NS (500 * SGP_MILLISECOND)
#define SGP_BEAT_IDLE_NS SGP_SECOND /* the same if one of the two takes no part */
#define SGP_SILENCE_FACTOR 8
#define SGP_SILENCE_MIN_NS (3 * SGP_SECOND)
#define SGP_SILENCE_MAX_NS (30 * SGP_SECOND)
/* Bytes a second. If a payload comes more slowly for SGP_SILENCE_MAX_NS, its connection ends,
 * whatever else is heard, unless it is a share of an exact cycle. */
#define SGP_PAYLOAD_LEAST 1024u
#define SGP_PATIENCE_MAX_NS (1000000 * SGP_SECOND)
#define SGP_DIAL_MIN_NS (20 * SGP_MILLISECOND) /* first back-off; doubles, with jitter, up to ... */
#define SGP_DIAL_MAX_NS (5 * SGP_SECOND)
#define SGP_DRAIN_NS (3 * SGP_SECOND) /* a stopping node waits this long for acknowledgements */
#define SGP_SEEK_NS (10 * SGP_SECOND) /* how long a node that may start looks for an estimate */
/* The greatest distance of the estimates of finished neighbours, relative to their length. */
#define SGP_AGREED 1e-5
#define SGP_STARVING 0.75 /* of w_min: below, a node gives less, down to nothing */

enum sgp_direction {
    SGP_OUT = 1, /* this node is the source */
    SGP_IN,      /* this node is the target */
};

/* A connection: peer, direction, and a number that the performer never uses twice. */
struct sgp_link {
    uint32_t peer; /* node index in the topology */
    enum sgp_direction direction;
    uint64_t connection; /* > 0 */
};

struct sgp_node_config {
    const struct sgp_topology *topology; /* borrowed; sealed; must outlive the node */
    uint32_t self;                       /* this node's index */
    const struct sgp_method *method;
    uint64_t incarnation; /* random, not 0; see docs/rules/restart.md */
    uint64_t seed;        /* of the jitter of dialling */
    uint64_t parameters;  /* d */
    struct sgp_fingerprint fingerprint;
    sgp_round rounds;     /* turns that this node takes: rounds that train */
    bool open;            /* the end is open until SGP_EVENT_STEPS_END, and `rounds` is ignored */
    uint32_t local_steps; /* optimiser steps per round, >= 1 */
    /* If sgp_method_overlaps: how many rounds old a promise may be, and for how many turns in a row
     * the node may leave out a share for lack of a credit. */
    uint32_t overlap;
    /* If sgp_method_waits: the node continues while that many shares are still awaited (Hop: Luo et
     * al., ASPLOS 2019). */
    uint32_t backup_neighbours;
    /* If a neighbour is in one round for this long (twice this, if it waits itself), the node does
     * not wait for it until its next round. At most SGP_PATIENCE_MAX_NS; 0: no limit. */
    sgp_time patience;
    /* Multiply the learning rate by the mean rate of rounds of this node and its in-neighbours over
     * its own, within 1/8 and 8. Only if sgp_method_may_scale_rate. */
    bool step_by_rate;
    /* The compressor of the shares that the node gives while it trains, to targets that decode its
     * form. Other shares are plain, and so are estimates. */
    enum sgp_compressor compressor;
    /* Of an owner that waits for its workers: the compressor of the changes to their copies while
     * it trains. Every other copy is plain. */
    enum sgp_compressor copies;
    /* The number of estimates that are compared before one is adopted, if as many sources answer:
     * 0 and 1: the first is adopted. More than 1 suits nodes that mix outside exact cycles. At most
     * SGP_CANDIDATES_MOST. */
    uint32_t candidates;
    /* Cycles of mixing after the fleet's last training round, at most. The node mixes only until
     * all models agree by the file, if the file says when (sgp_topology_agrees_after) and the
     * method waits and absorbs in order. 0: no mixing, and models may differ. */
    uint32_t final_cycles;
    /* SGP_START_ALL, or the number of nodes (with this node) that must have said hello. With 0 and
     * 1 the node begins at once. */
    uint32_t start;
    double weight_least; /* w_min of sgp_topology_weight_least */
    /* The node's greatest weight by the file, of sgp_topology_weight_range; 0 means 1. */
    double weight_most;
    /* The sound record of the former process; `incarnation` must then be the record's. NULL: there
     * is none. Borrowed for the call. */
    const struct sgp_record *record;
    bool seeks; /* x is a guess (its best estimate, at weight 1): ask for a better estimate */
    bool fresh; /* x is that of the beginning of training, whatever round the record names */
    /* All nodes begin with the parameters of the file's first node. Any other node seeks, and takes
     * no part before it has them. No node begins round 0 before its neighbours do. Valid until the
     * node's first round. */
    bool one_beginning;
    /* If one_beginning: `digest` of the trainer's x; 0: not known. A node whose x has the digest of
     * its source's takes no estimate. */
    uint64_t x_digest;
};

enum sgp_event_type {
    SGP_EVENT_START = 1, /* the first event */
    SGP_EVENT_TICK,      /* the deadline has come, or nothing particular */
    /* link: a dialled connection is established (OUT), or a peer greets by its name (IN; the hello
     * follows at once, as MESSAGE). While another connection of that peer is heard, its messages
     * are not accepted, and both connections exist until one is hung up on. */
    SGP_EVENT_UP,
    SGP_EVENT_DOWN, /* link: gone, or could not be dialled (connection 0); code gives the reason */
    /* link, message: whole and of valid form. A share's payload is yet to come */
    SGP_EVENT_MESSAGE,
    /* link, code: the announced payload is complete. The code is 0, SGP_E_NOT_FINITE,
     * SGP_E_OUTSIZED (finite, and far too large), or SGP_E_CHECKSUM. */
    SGP_EVENT_PAYLOAD,
    /* link, bytes: that much of the payload under way has arrived; at most one per 100 ms */
    SGP_EVENT_HEARD,
    /* The TRAIN job is done; code is 0, SGP_E_DIVERGED, or -ECANCELED: no step was taken. */
    SGP_EVENT_TRAINED,
    SGP_EVENT_PUBLISHED, /* the PUBLISH job is done */
    SGP_EVENT_ABSORBED,  /* slot: the ABSORB or ADOPT job is done with it; ADOPT: the first one */
    SGP_EVENT_RESTORED,  /* slot: the RESTORE job is done with this snapshot slot */
    SGP_EVENT_SKETCHED,  /* sketch: the SKETCH job is done */
    SGP_EVENT_ANSWER,    /* message: the ANSWER to the latest question; NULL: none will come */
    SGP_EVENT_ENOUGH,    /* the goal (accuracy) is reached: ask the fleet to stop training */
    SGP_EVENT_PAUSE,
    SGP_EVENT_RESUME,
    /* Drain, then SGP_NOTE_DRAINED. It cancels a leaving that has handed nothing over yet. */
    SGP_EVENT_STOP,
    /* Accumulate a member's mass (for SGP_SILENCE_MAX_NS at most), end the round, hand all mass to
     * an out-neighbour, then SGP_NOTE_DRAINED with status.left. Ignored if there is an obstacle
     * (sgp_node_leave_obstacle). */
    SGP_EVENT_LEAVE,
    /* This node has taken its last step. The others continue, and it mixes with them. Ignored
     * unless its end is open. A TRAIN job may be under way: if it took no step, TRAINED says so. */
    SGP_EVENT_STEPS_END,
    /* message: as many nodes as the file asks for have signed the `ends` and `stop` of its pulse.
     * Only if the file says SGP_TLS_REQUIRE, where no unsigned message proves them. */
    SGP_EVENT_PROVEN,
    /* The token is lost for good: make it again here (docs/rules/token.md). Ignored if there is an
     * obstacle (sgp_node_token_obstacle). */
    SGP_EVENT_TOKEN,
    /* bytes: a round beyond those of all nodes. All nodes have values of one earlier round again: a
     * new epoch begins in that round, with weight 1 at each node, and without the shares given
     * before. It is for all nodes, and each may get it at another time. Ignored unless the method
     * is a synchronous one whose steps come first, on a file without exact cycles and owners. */
    SGP_EVENT_RENEW,
};

/* The number of successive trainings that must equal another node's bit for bit, or have another
 * learning rate, before that is reported. */
#define SGP_LIKENESS_ROUNDS 8u

struct sgp_event {
    enum sgp_event_type type;
    sgp_time now; /* never decreases from event to event */
    struct sgp_link link;
    int code;
    uint32_t slot;
    uint64_t bytes;
    /* TRAINED: digest of the update (sgp/update.h); 0: no change, not known, or not to be
     * compared. */
    uint64_t update;
    double rate;                       /* TRAINED: its learning rate; 0: not known */
    const struct sgp_message *message; /* borrowed for the call */
    const struct sgp_sketch *sketch;   /* borrowed for the call */
};

enum sgp_effect_type {
    SGP_EFFECT_DIAL = 1, /* connect to the peer; answer with UP or DOWN */
    SGP_EFFECT_SEND,     /* send a message, then the snapshot that is its payload, if it has one */
    SGP_EFFECT_HANG_UP,  /* say goodbye if that is easy, and close. No DOWN must follow */
    SGP_EFFECT_RECEIVE,  /* receive the announced payload into this receive slot */
    SGP_EFFECT_TRAIN,    /* job: steps at `weight` */
    /* job: snapshot[slice] = x[slice], x[slice] *= keep; answer with the slot */
    SGP_EFFECT_PUBLISH,
    SGP_EFFECT_ABSORB,  /* job: x[slice] += fraction * receive slot */
    SGP_EFFECT_RESTORE, /* job: x[slice] += fraction * snapshot; a share was returned */
    SGP_EFFECT_NOTE,    /* something to report to people */
    /* job: x = adopt.weight * the estimate of one receive slot, momentum cleared. The performer
     * chooses among several (sgp_guard_choose). */
    SGP_EFFECT_ADOPT,
    SGP_EFFECT_SCALE,  /* job: x[slice] *= factor, which may be 0; answers nothing */
    SGP_EFFECT_OUTER,  /* job: the outer step at `weight` (sgp/outer.h); answers nothing */
    SGP_EFFECT_SKETCH, /* job: the sketch of x / weight; answer with it */
    SGP_EFFECT_FOLD,   /* the payload under way may be changed in place; absorbed, it becomes x */
    SGP_EFFECT_FOLLOW, /* job: copy = x = the receive slot's values; answer with the slot */
    /* job: u = receive slot; u -= factor * u * u * (x - snapshot), value by value. An ABSORB of the
     * slot follows. */
    SGP_EFFECT_COMPENSATE,
    /* Ask the peer this question on a separate connection; answer with ANSWER. Only one question is
     * open: a new one replaces it. */
    SGP_EFFECT_INQUIRE,
    /* The token has come. At once: snapshot = receive slot + fraction * snapshot; if the fraction
     * is 0, the snapshot is not read. Then a job: copy = x = that snapshot. If `computes`, x
     * instead keeps the change that it has made since the snapshot. Answer with the slot; both
     * slots stay unchanged until then. */
    SGP_EFFECT_RECEIVE_TOKEN,
    /* The result of the TRAIN under way cannot count any more: take no step beyond the present one.
     * TRAINED follows as usual. */
    SGP_EFFECT_CURTAIL,
};

/* The kinds of NOTE. */
enum sgp_note {
    SGP_NOTE_STATE = 1, /* the node's state changed */
    /* A round is complete: round, weight; of an owner, amount: the number of updates that it
     * added. */
    SGP_NOTE_ROUND,
    SGP_NOTE_JUMP,     /* the node took a round far ahead: round is the new one */
    SGP_NOTE_UP,       /* peer: both sides have greeted each other on this link */
    SGP_NOTE_DOWN,     /* peer: a link went down; code */
    SGP_NOTE_ABSENT,   /* peer: silent beyond the bound; the node no longer waits for it */
    SGP_NOTE_BACK,     /* peer: heard again after having been absent */
    SGP_NOTE_RETURNED, /* peer: a share was returned to this node; reason */
    SGP_NOTE_REFUSED,  /* peer: this node refused its share; reason */
    SGP_NOTE_MISMATCH, /* peer: topology digest, learning rate or batch differ; a warning only */
    /* The weight is below 0.75 w_min: the node gives less or nothing until it has grown. Reported
     * once that has lasted for 3 s, and then once a minute. */
    SGP_NOTE_STARVING,
    SGP_NOTE_DIVERGED, /* training failed; the node pauses itself */
    /* peer: the node adopted its estimate. If the node compares estimates, peer is the node itself,
     * because the ADOPT job chooses. Of an owner, amount: the number of recorded steps that no copy
     * contains. */
    SGP_NOTE_ADOPTED,
    /* After STOP: all shares are settled or the bound has passed; the process may end. After LEAVE:
     * the node has left (status.left, heir, weight_left). */
    SGP_NOTE_DRAINED,
    SGP_NOTE_INHERITED, /* peer: it has left, and its mass is this node's: amount is the weight */
    /* peer: at the end its estimate is `amount` away; mixing continues to `until` */
    SGP_NOTE_MIXES,
    SGP_NOTE_DISAGREES, /* peer: the same, but mixing has not helped, or may not continue */
    /* The node removed `amount` of the inherited weight from its own. With a slot: it never added
     * the share in that receive slot, which is free. */
    SGP_NOTE_DISSOLVED,
    SGP_NOTE_OTHER_DATA, /* peer: its rows and ours are parts of different tables; a warning only */
    SGP_NOTE_TURNED_AWAY, /* link: refused, because a connection of that name exists; reason */
    /* link.peer, direction. IN: a payload came too slowly, and its connection ended. OUT: it did
     * not acknowledge an owed share in the time that it may take. The node does not wait for it
     * until a payload has come whole. In an exact cycle the connection stays and the node waits. */
    SGP_NOTE_TRICKLES,
    /* peer: in its round for longer than the patience; the node does not wait for it until its
     * next. */
    SGP_NOTE_OVERDUE,
    /* peer: it came back under another incarnation, and may have accepted the share that it was
     * owed before: other nodes are asked. A second time, with a slot: the node dropped the
     * snapshot. */
    SGP_NOTE_DISPUTED,
    /* peer: it has seen more than the record of this node says. Once a process. amount: by how much
     * the total may be off at most, including earlier amounts. */
    SGP_NOTE_OUTDATED,
    SGP_NOTE_SETTLED, /* peer: weight `amount` that was in doubt; reason: accepted, or returned */
    /* A higher epoch is in force: the values of the cycle are dropped, and the node begins at round
     * `until` with the estimate that it had before. amount: the change of its weight, including
     * held and owed shares. */
    SGP_NOTE_RENEWED,
    SGP_NOTE_LATE, /* peer: its update came too late to be added; slot: where it was received */
    /* peer: an owner at its own pace adds its update. amount: the staleness, which is the number of
     * updates added since the update's copy was made. */
    SGP_NOTE_ADDED,
    /* This node asks the fleet to stop training at round `until`. If that must be signed, it does
     * not count before PROVEN. */
    SGP_NOTE_ENOUGH,
    /* peer: the token came from it; amount: the updates that it has taken up here */
    SGP_NOTE_TOKEN_RECEIVED,
    /* peer: its latest SGP_LIKENESS_ROUNDS updates were those of this node, or of another source,
     * bit for bit; a warning only. */
    SGP_NOTE_SAME_UPDATES,
    /* peer: for that many trainings its learning rate, `amount`, was none of this node's recent
     * rates; a warning only. */
    SGP_NOTE_OTHER_RATE,
    /* The fleet has more weight than members: this node removed `amount` from its own; first: for
     * the first time in a minute. */
    SGP_NOTE_EXCESS,
    /* The fleet has so little weight that averaging stopped: this node added `amount` to its own;
     * first: as above. */
    SGP_NOTE_LACK,
    SGP_NOTE_COUNT, /* one past the last */
};

/* The contents of a NOTE, beside its effect's round and weight. Fields that a note does not name
 * are 0. */
struct sgp_noted {
    enum sgp_note what;
    struct sgp_link link; /* peer: this node itself if the note is of no peer */
    int code;
    enum sgp_reason reason;
    double amount;               /* of weight, or a distance */
    bool first;                  /* EXCESS, LACK: log it */
    sgp_round until;             /* MIXES, DISAGREES, ENOUGH */
    uint32_t slot;               /* DISPUTED: the dropped snapshot, or SGP_SLOT_NONE, */
    double fraction;             /* its fraction, */
    struct sgp_inquire question; /* and the share */
};

/* How a payload may be changed in place while it arrives, if it is the next to be absorbed and x
 * equals keep * snapshot until then: value[i] = keep * snapshot[i] + fraction * value[i], each
 * product rounded to float32 first. The received values are judged (SGP_EVENT_PAYLOAD's code). The
 * snapshot does not change meanwhile. */
struct sgp_fold {
    /* slot; SGP_SLOT_NONE: stop changing the payload, which will be refused. */
    uint32_t snapshot;
    double keep;
    double fraction;
    double weight; /* that comes with the payload; 0: none of its own */
    /* x is snapshot - (1 - keep) * project(snapshot) (sgp/codec.h); with no compressor as above. */
    enum sgp_compressor compressor;
};

/* Why a snapshot is made. */
enum sgp_publish {
    /* For this turn's targets, which get the part that is not kept. In an exact cycle each range of
     * values has its own PUBLISH into the same slot; at its opening all values have one. */
    SGP_PUBLISH_SHARES = 1,
    SGP_PUBLISH_ESTIMATE, /* a copy for a neighbour that asked; all is kept */
    SGP_PUBLISH_UPDATE,   /* of a worker: snapshot = x - copy; x = copy, unless it is kept */
    SGP_PUBLISH_NOTHING,  /* of a worker: x = copy; the snapshot is unused */
    /* Of a worker that has a compressor: after UPDATE, for each range that a target gets. Let u be
     * snapshot + rest. The snapshot becomes s, the values that the target decodes of u. The rest
     * becomes u - s. */
    SGP_PUBLISH_CHOSEN,
    SGP_PUBLISH_COPY, /* snapshot = copy: of a worker, for an owner that asked; and of an owner */
    /* Of an owner whose copies are coded: snapshot = the values that a target decodes of x - copy,
     * and the copy changes by these. With compressor NONE: copy = x, and the snapshot is that. */
    SGP_PUBLISH_CHANGE,
    SGP_PUBLISH_TOKEN, /* of the token's holder: snapshot = copy = x = copy + keep * (x - copy) */
};

/* A received estimate that may be adopted: values of the slot / weight. */
struct sgp_candidate {
    uint32_t peer; /* its source */
    uint32_t slot;
    double weight;
};

/* A job's scalars travel by value. Messages are part of the effect and live as long as the list.
 * The type selects the member of the union. */
struct sgp_effect {
    enum sgp_effect_type type;
    sgp_round round; /* of the node, */
    /* The w of z = x / w when the effect was requested, before a PUBLISH gives anything. 0: x
     * is no estimate (within an exact cycle, or of an owner of parts). */
    double weight;
    union {
        struct {
            uint32_t peer;
        } dial;
        struct {
            struct sgp_link link;
            uint32_t slot; /* of the snapshot that is its payload; SGP_SLOT_NONE: it has none */
            struct sgp_message message;
        } send;
        struct {
            struct sgp_link link;
            int code;
            enum sgp_reason reason;
            struct sgp_message message; /* the farewell */
        } hang_up;
        struct {
            struct sgp_link link;
            uint32_t slot;
        } receive;
        struct {
            struct sgp_link link; /* whose payload is under way, */
            uint32_t slot;        /* into this receive slot */
            struct sgp_fold how;
        } fold;
        struct {
            uint32_t steps;
            double pace;    /* factor of the learning rate */
            sgp_round turn; /* the number of rounds that trained before this one */
        } train;
        struct {
            uint32_t slot;
            double keep; /* the factor of x that stays */
            /* The node gives 1 - keep of the values that a target decodes, and the rest stays. */
            enum sgp_compressor compressor;
            enum sgp_publish purpose;
            struct sgp_slice slice;
        } publish;
        struct {
            uint32_t peer;   /* the source of the share, */
            sgp_round round; /* and its round */
            uint32_t slot;
            /* FOLD named it: if the fold was done, the slot holds the new x, else the share. */
            bool folded;
            double fraction;
            double weight; /* that comes with it; 0: none of its own */
            struct sgp_slice slice;
        } absorb;
        struct {
            uint32_t slot;
            double fraction;
            enum sgp_compressor compressor; /* by which a target would have decoded */
            struct sgp_slice slice;
        } restore;
        struct {
            uint32_t count; /* of the candidates: 1, or more if the node compares estimates */
            struct sgp_candidate candidates[SGP_CANDIDATES_MOST];
            double weight;          /* of x with that estimate */
            struct sgp_slice slice; /* the values in each slot */
            bool trained;           /* x is an earlier model, not the first parameters */
        } adopt;
        struct {
            double factor;
            struct sgp_slice slice;
        } scale;
        struct {
            uint32_t peer;
            uint32_t slot;          /* SGP_SLOT_NONE: x becomes the present copy */
            struct sgp_slice slice; /* the values in the slot */
            bool adds;              /* the slot holds a change, which is added to the copy */
        } follow;
        struct {
            uint32_t slot;
            uint32_t snapshot;
            double factor; /* above 0 */
            struct sgp_slice slice;
        } compensate;
        struct {
            uint32_t slot;
            uint32_t snapshot;
            double fraction; /* 1 over the number of updates if these count by their mean */
            bool computes;
        } receive_token;
        struct {
            uint32_t peer;
            struct sgp_inquire question;
        } inquire;
        struct sgp_noted note;
    };
};

/* The caller's list; step clears and fills it. One list may serve many nodes in turn. */
struct sgp_effects {
    struct sgp_effect *items;
    uint32_t count;
    uint32_t capacity;
};

/* What a node needs of its performer, by topology and method, or as it is. */
struct sgp_node_needs {
    /* Snapshot slots: 2, and one per out-neighbour that may become unreachable. The lowest free
     * slot is taken first, so slots beyond 2 stay untouched without failures. */
    uint32_t snapshots;
    /* Receive slots: the most shares of two successive rounds, and one. For a method that overlaps:
     * one for every in-neighbour, and one, if that is more. A node has at least as many as the
     * estimates that it compares; sgp_node_needs does not know these. */
    uint32_t receives;
    uint32_t effects; /* most effects of one step */
    /* The largest share has `share_parts` of `slices` parts of the vector. No more of a receive
     * slot is ever written, except in one slot, by an estimate or by a leaver's whole mass. A node
     * that compares estimates writes up to SGP_CANDIDATES_MOST slots. */
    uint32_t share_parts, slices;
    uint32_t links; /* and entries of a record */
};
/* Returns 0 or -ENOMEM. */
int sgp_node_needs(const struct sgp_topology *topology, uint32_t self,
    const struct sgp_method *method, struct sgp_node_needs *ret_needs);

struct sgp_node;   /* opaque: lib/core/state.h */
struct sgp_reload; /* opaque: lib/core/reload.c */

/* Create a node in state joining; it does nothing before SGP_EVENT_START. The config is copied, the
 * topology borrowed. Returns 0, -EINVAL for a config out of range, -ENOMEM. */
int sgp_node_create(const struct sgp_node_config *config, struct sgp_node **ret_node);
void sgp_node_destroy(struct sgp_node *node); /* NULL is allowed */

/* The needs of a node as it is. They exceed those of its topology if its record or a former
 * topology named links that are no longer edges. */
void sgp_node_counts(const struct sgp_node *node, struct sgp_node_needs *ret_needs);

/* One step. It cannot fail: an operating error is an event, and a peer's error becomes HANG_UP.
 * effects->capacity must be at least sgp_node_counts' effects. Events of a connection that is gone
 * are ignored. Perform the effects in order, before the next step of this node. */
void sgp_node_step(
    struct sgp_node *node, const struct sgp_event *event, struct sgp_effects *effects);

/* Another topology for a running node, in two parts, so that the second cannot fail. The links are
 * then the edges of the new file, and the former edges to peers that it still names. The latter are
 * `retired`: nothing is given over them any more, owed shares are settled, and an edge that returns
 * continues with its numbers. Round, weight and running jobs stay; the performer's slots keep their
 * numbers. */
struct sgp_node_change {
    const struct sgp_topology *topology; /* borrowed; sealed; must outlive the node */
    uint32_t self;                       /* the node's index in it; the name must be the same */
    double weight_least;                 /* of sgp_topology_weight_least */
    double weight_most;                  /* as in struct sgp_node_config */
};
/* Allocate everything. *ret_needs is what the performer must then have, never fewer slots than now.
 * Returns 0; -EINVAL for a change out of range, or another node's; -ENOMEM. No step of the node may
 * come between this and the next. */
int sgp_reload_prepare(const struct sgp_node *node, const struct sgp_node_change *change,
    struct sgp_node_needs *ret_needs, struct sgp_reload **ret_reload);
void sgp_reload_cancel(struct sgp_reload *reload); /* NULL is allowed */

/* Carry the reload out, and end `reload`. The effects name peers by their FORMER indices.
 *
 * A peer that the new file does not name is hung up on. Shares owed to it are taken back (or become
 * a debt, if an heir may have them already), and shares from it are absorbed. A peer with another
 * address is hung up on. Dials under way are void: the performer forgets them, and peers are
 * dialled again.
 *
 * When the performer has performed the effects, it moves all that it keeps by peer or by link to
 * the new indices, and posts a TICK. */
void sgp_node_reload(
    struct sgp_node *node, sgp_time now, struct sgp_reload *reload, struct sgp_effects *effects);

/* Why this node cannot leave for good now, a clause for people; NULL if it can. Static storage. */
const char *sgp_node_leave_obstacle(const struct sgp_node *node);
/* Why this node cannot make the token again, in the same form. */
const char *sgp_node_token_obstacle(const struct sgp_node *node);

/* When to send SGP_EVENT_TICK at the latest if no other event comes; SGP_TIME_NEVER when idle. */
sgp_time sgp_node_deadline(const struct sgp_node *node);

/* What the node waits for, for status and people. */
enum sgp_waiting {
    SGP_WAITING_NOTHING = 1,
    SGP_WAITING_HELLO,     /* joining: peer has not said hello */
    SGP_WAITING_CREDIT,    /* peer has not granted a buffer for this round */
    SGP_WAITING_SHARE,     /* peer promised a share for this round */
    SGP_WAITING_ACK,       /* both snapshots, or the end, wait for peer to acknowledge */
    SGP_WAITING_JOB,       /* the compute thread */
    SGP_WAITING_ESTIMATE,  /* joining: peer sends its estimate, or no peer does yet */
    SGP_WAITING_HEIR,      /* leaving: no out-neighbour is up; peer is the first of them */
    SGP_WAITING_END,       /* at its end; peer has not reached its own */
    SGP_WAITING_MASS,      /* leaving: it has none to hand over */
    SGP_WAITING_BEGINNING, /* one_beginning: peer has not taken the first parameters */
    SGP_WAITING_PACE,      /* alone: a round lasts an eighth longer than those with others did */
    /* At the start of an exact cycle: peer is absent, or has another file or epoch. */
    SGP_WAITING_CYCLE,
};

struct sgp_node_status {
    enum sgp_node_state state;
    sgp_round round;
    /* One past the fleet's last training round, as far as known (pulse.ends or stop). */
    sgp_round rounds;
    sgp_round last_round;    /* one past the last round of mixing */
    double weight;           /* w, with accepted shares that are not absorbed yet */
    double weight_in_flight; /* of shares that were given and not seen acknowledged */
    /* The w of the estimate for a job that is queued now: of x, or of that snapshot; 0: there is
     * none. */
    double weight_estimate;
    double
        weight_checkpoint; /* the same for the contents of a checkpoint, also of an owner's parts */
    /* Within an exact cycle the snapshot that is the estimate; else SGP_SLOT_NONE: x is. */
    uint32_t estimate_slot;
    struct sgp_epoch epoch;
    uint64_t cycles_renewed;
    /* The node, or its neighbours, have given in an exact cycle, so the cycle's end relies on this
     * process. */
    bool amid_cycle;
    uint64_t jumps;
    bool starving;
    /* Of a worker: the number of steps that the owner had closed. SGP_ROUND_NONE: the node has no
     * copy, or is no worker. */
    sgp_round copy_label;
    sgp_time copy_since; /* when that copy was taken */
    bool open;           /* its last step is not known */
    bool seeks;          /* its parameters are a guess until a neighbour's estimate has come */
    bool fresh;          /* its parameters are of round 0: they contain no training */
    bool leaving;        /* for good, from the order on */
    bool left;           /* everything is handed over and acknowledged */
    uint32_t heir;       /* SGP_SLOT_NONE before it has left, or if a former process left */
    double weight_left;  /* the weight that was handed over */
    double weight_owed;  /* beside it: owed to absent nodes; the heir settles it with them */
    double weight_debts; /* of weight_in_flight: inherited, or in doubt after a new incarnation */
    double surplus;      /* members whose mass it inherited and has not dissolved yet */
    /* By how much the total may be off at most, because its record was outdated or a member lied
     * about weight. It adds up. */
    double unknown;
    enum sgp_waiting waiting;
    uint32_t waiting_peer; /* SGP_SLOT_NONE if none */
    sgp_time waiting_since;
};
SGP_API void sgp_node_status(const struct sgp_node *node, struct sgp_node_status *ret_status);
/* One past the node's own last training round; 0: it has none of its own, as a relay, or while the
 * end is open. */
sgp_round sgp_node_own_end(const struct sgp_node *node);
/* The `round` or the `state` of the status alone, for callers that ask for each link or event. */
sgp_round sgp_node_round(const struct sgp_node *node);
enum sgp_node_state sgp_node_state(const struct sgp_node *node);
/* Likewise `weight` (the result) and `weight_in_flight`. */
double sgp_node_weight(const struct sgp_node *node, double *ret_in_flight);
/* The number of the node's run (sgp/run.h), which it may learn from a neighbour; 0: no run yet. */
uint64_t sgp_node_run(const struct sgp_node *node);
/* The number of links to neighbours whose estimates differ from this node's at the end of both.
 * Looks at all links. */
uint32_t sgp_node_disagreeing(const struct sgp_node *node);

enum sgp_link_state { SGP_LINK_DOWN = 1, SGP_LINK_CONNECTING, SGP_LINK_UP };

struct sgp_peer_status { /* one link: a peer seen in one direction */
    uint32_t peer;
    enum sgp_direction direction;
    enum sgp_link_state state;
    bool retired; /* an edge of a former topology, kept until all shares over it are settled */
    bool absent;
    bool slow; /* computes for 8 times its longest round, and for 30 s at least */
    /* heard, and not waited for: SGP_NOTE_TRICKLES or SGP_NOTE_OVERDUE. False within an exact
     * cycle, which waits for every neighbour. */
    bool overdue;
    enum sgp_node_state peer_state; /* 0 until first heard */
    sgp_round round;                /* of the peer, SGP_ROUND_NONE until heard */
    sgp_round promise;              /* IN: its next_round */
    sgp_time last_heard;            /* SGP_TIME_NEVER if never */
    sgp_time silence_bound;         /* it is absent after a silence of this length */
    uint64_t shares_sent;           /* settled or not */
    uint64_t shares_received;       /* accepted */
    uint64_t shares_returned;       /* OUT: returned to us; IN: refused by us */
    uint64_t shares_late; /* IN: of those received, updates that came too late to be added */
    /* IN: of its last update that an owner at its own pace added; SGP_ROUND_NONE: none was
     * added. */
    sgp_round staleness;
    bool owes;                   /* OUT: a share was given and is not acknowledged, */
    double weight_owed;          /* of this weight */
    uint64_t last_number;        /* OUT: last given; IN: last accepted */
    int last_error;              /* code of the last DOWN, 0 if none */
    enum sgp_reason last_reason; /* of the last refusal, 0 if none */
    /* Of its estimate from ours at the end of both, |z - z'|, as the sketches tell; NaN: not
     * known. */
    double distance;
    double distance_relative; /* to the longer of the two */
    bool disagrees;           /* distance_relative is more than SGP_AGREED */
    /* The peer has said that its rounds are over; with a token, at this node's label. */
    bool ended;
    bool mismatch; /* its topology digest, learning rate, batch or data differ */
    /* IN: its latest SGP_LIKENESS_ROUNDS updates were another node's bit for bit. */
    bool same_updates;
    double learning_rate; /* IN: of its latest training; 0: not known */
};
/* Links are numbered 0 .. count-1: out-links by peer, then in-links by peer. */
SGP_API uint32_t sgp_node_link_count(const struct sgp_node *node);
SGP_API void sgp_node_link_status(
    const struct sgp_node *node, uint32_t index, struct sgp_peer_status *ret_status);
/* The number of the link to or from a peer; SGP_SLOT_NONE: there is none. */
uint32_t sgp_node_find_link(
    const struct sgp_node *node, uint32_t peer, enum sgp_direction direction);
/* The first link from `from` on over which a share may be owed, or the count of all links. */
uint32_t sgp_node_next_owing(const struct sgp_node *node, uint32_t from);
/* The `last_number` and `weight_owed` of the link alone, for callers that ask after every step. */
void sgp_node_link_account(const struct sgp_node *node, uint32_t index, uint64_t *ret_last_number,
    double *ret_weight_owed);

/* The answer to a question that came on a separate connection. False: the node cannot tell yet, or
 * has left and cannot tell any more, so close without an answer. Changes nothing. */
bool sgp_node_answer(
    const struct sgp_node *node, const struct sgp_inquire *question, struct sgp_answer *ret_answer);

/* The debts that are a part of weight_in_flight, 0 .. count-1; in no order. */
uint32_t sgp_node_debt_count(const struct sgp_node *node);
const struct sgp_account *sgp_node_debt(const struct sgp_node *node, uint32_t index);

const char *sgp_note_name(enum sgp_note note);          /* "share_returned"; static storage */
const char *sgp_waiting_name(enum sgp_waiting waiting); /* "share" */

#endif
