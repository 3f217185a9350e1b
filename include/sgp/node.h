/* SPDX-License-Identifier: Apache-2.0 */
/* The node: a pure state machine. One event in, a bounded list of effects out.
 *
 * It owns w, rounds, links, promises, credits and buffer slots; it owns no clock, socket, thread or
 * model float. Time arrives inside the event, chance comes from a seed, and nothing is allocated
 * after init. Two performers carry the effects out: the daemon and the simulator.
 *
 *   joining --hellos--> training --steps done--> settling --the fleet's end--> finished
 *      |                   |  ^                     |                            |
 *      |              pause|  |resume          (pause/resume)                    |
 *      |                 paused                     |                            |
 *      +--------------------+---- stop, leave ------+----------------------------+--> draining
 *
 * One round k of Stochastic Gradient Push (Assran et al. 2019, Algorithm 1), as stages:
 *
 *   TRAIN     one job: steps of the optimiser at z = x / w (a method may publish before it)
 *   CREDIT    wait until every live out-neighbour of k has granted a buffer
 *   PUBLISH   one job: snapshot of x, x *= keep; w -= given; then a share to each
 *   GATHER    wait for every live in-neighbour whose promise is <= k; absorb in order of source
 *
 * Where a node owns the vector (docs/rules/owner.md), it alone has weight. A worker's round is the label of its copy:
 * CREDIT and PUBLISH give its update, and GATHER waits for the copy of the next step. The owner's GATHER waits for updates.
 * Where parts have owners, each has a label of its own, and a worker's round is the least of its labels.
 *
 * A node that is given a record (sgp/record.h) goes on where its process died: same lineage, weight and
 * round; what it owed is settled when the target greets. It catches up with the greatest round it
 * hears. If its parameters are not those of the record (`seeks`), it stays joining, and nobody waits
 * for it, until an in-neighbour has handed it an estimate: ASK sets a buffer aside, ESTIMATE brings
 * the neighbour's x and w, ADOPT makes them x = w_own * x / w. When nobody can, it goes on with what
 * its performer had. A node without a past does the same if it finds its neighbours far ahead (more
 * rounds than nodes and a cycle): its own first parameters would set a fleet back that has trained.
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
#define SGP_START_ALL UINT32_MAX

/* Pace. Silence is judged against the peer's own: absent after 8 times its longest recent interval,
 * within these bounds. */
#define SGP_BEAT_NS (500 * SGP_MILLISECOND) /* a link that said nothing for this long says so */
#define SGP_BEAT_IDLE_NS SGP_SECOND         /* the same where one of the two takes no part */
#define SGP_SILENCE_FACTOR 8
#define SGP_SILENCE_MIN_NS (3 * SGP_SECOND)
#define SGP_SILENCE_MAX_NS (30 * SGP_SECOND)
#define SGP_PAYLOAD_LEAST                                                                          \
    1024u /* bytes a second: a payload that comes more slowly for SGP_SILENCE_MAX_NS
                                   ends its connection, whatever else is heard */
#define SGP_PATIENCE_MAX_NS (1000000 * SGP_SECOND)
#define SGP_DIAL_MIN_NS (20 * SGP_MILLISECOND) /* first back-off; doubles, with jitter, up to ... */
#define SGP_DIAL_MAX_NS (5 * SGP_SECOND)
#define SGP_DRAIN_NS (3 * SGP_SECOND) /* a stopping node waits this long for acknowledgements */
#define SGP_SEEK_NS (10 * SGP_SECOND) /* how long a node that may start looks for an estimate */
#define SGP_AGREED                                                                                 \
    1e-5                  /* of their length: so far apart may the estimates of finished
                                         neighbours be */
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
    uint64_t lineage;    /* random, not 0; see docs/rules/restart.md */
    uint64_t seed;       /* of the jitter of dialling */
    uint64_t parameters; /* d */
    struct sgp_fingerprint fingerprint;
    sgp_round rounds; /* turns that this node takes: rounds that train */
    bool open; /* ... as many as there are until SGP_EVENT_STEPS_END; `rounds` says nothing */
    uint32_t local_steps;       /* optimiser steps per round, >= 1 */
    uint32_t overlap;           /* if sgp_method_overlaps: how many rounds old a promise may be, and
                                   for how many turns in a row a share may be left out for want of a
                                   credit */
    uint32_t backup_neighbours; /* if sgp_method_waits: go on while so many are still awaited
                                   (Hop: Luo et al., ASPLOS 2019) */
    sgp_time
        patience; /* a neighbour that is in one round for so long (twice, if it waits itself) is not
                          waited for until its next; at most SGP_PATIENCE_MAX_NS; 0: for ever */
    bool step_by_rate; /* multiply the learning rate by the mean rate of rounds of this node and its
                          in-neighbours over its own, within 1/8 and 8; only if
                          sgp_method_may_scale_rate */
    /* Of the shares that it gives while it trains, to targets that decode its form. Other shares
     * are plain, and so are estimates. */
    enum sgp_compressor compressor;
    /* Of an owner that waits for its workers: of the changes to their copies while it trains. Every
     * other copy is plain. */
    enum sgp_compressor copies;
    uint32_t final_cycles; /* cycles of mixing after the fleet's last training round */
    uint32_t start;        /* SGP_START_ALL, or the number of nodes (with itself) that must have
                              said hello; 0 and 1 begin at once */
    double weight_least;   /* w_min of sgp_topology_weight_least */
    double
        weight_most; /* its greatest weight likewise, by sgp_topology_weight_range; 0: 1 is taken for it */
    /* What its former process left, sound, and then `lineage` must be the record's; NULL: nothing.
     * Borrowed for the call. */
    const struct sgp_record *record;
    bool seeks; /* x is a guess (its best estimate, at weight 1): ask for a better one */
    bool fresh; /* x is what training begins with, whatever round the record names */
    /* All begin with the parameters of the file's first node: any other seeks, and takes no part before it has them;
     * and nobody begins round 0 before its neighbours do. Until its first round. */
    bool one_beginning;
};

enum sgp_event_type {
    SGP_EVENT_START = 1, /* the first event */
    SGP_EVENT_TICK,      /* the deadline has come, or nothing particular */
    SGP_EVENT_UP,      /* link: a dialled connection stands (OUT), or somebody greets in the name of
                            a peer (IN; the hello follows at once, as MESSAGE). What it says is not
                            believed while another connection of that peer is heard: both stand then,
                            until one of them is hung up on */
    SGP_EVENT_DOWN,    /* link: gone, or could not be dialled (connection 0); code says why */
    SGP_EVENT_MESSAGE, /* link, message: whole and of valid form. A share's payload is yet to come */
    SGP_EVENT_PAYLOAD, /* link, code: the announced payload is complete: 0, SGP_E_NOT_FINITE,
                            SGP_E_OUTSIZED (finite, and absurd), or SGP_E_CHECKSUM */
    SGP_EVENT_HEARD, /* link, bytes: so much of the payload under way has come; at most one per 100 ms */
    SGP_EVENT_TRAINED, /* the TRAIN job is done; code is 0, SGP_E_DIVERGED, or -ECANCELED: no step was taken */
    SGP_EVENT_PUBLISHED, /* the PUBLISH job is done */
    SGP_EVENT_ABSORBED,  /* slot: the ABSORB or ADOPT job is done with this receive slot */
    SGP_EVENT_RESTORED,  /* slot: the RESTORE job is done with this snapshot slot */
    SGP_EVENT_SKETCHED,  /* sketch: the SKETCH job is done */
    SGP_EVENT_ANSWER,    /* message: the ANSWER to the question last asked; NULL: none will come */
    SGP_EVENT_ENOUGH,    /* the goal (accuracy) is reached: ask the fleet to stop training */
    SGP_EVENT_PAUSE,
    SGP_EVENT_RESUME,
    SGP_EVENT_STOP, /* drain, then SGP_NOTE_DRAINED. Ends a leaving that has handed nothing over yet */
    SGP_EVENT_LEAVE, /* gather a member's mass (for SGP_SILENCE_MAX_NS at most), end the round, hand
                        all to an out-neighbour, then SGP_NOTE_DRAINED with status.left; ignored if
                        there is an obstacle (sgp_node_leave_obstacle) */
    SGP_EVENT_STEPS_END, /* this node has taken its last step; the others go on, and it mixes with them. Ignored
                            unless its end is open */
    SGP_EVENT_PROVEN, /* message: the `ends` and `stop` of its pulse are signed by as many nodes as the file asks for;
                         only where it says SGP_TLS_REQUIRE, for there no neighbour's word proves them */
    SGP_EVENT_TOKEN, /* the token is lost for good: make it anew here (docs/rules/token.md); ignored if there is
                        an obstacle (sgp_node_token_obstacle) */
};

/* So many trainings in a row that are another node's bit for bit, or at another learning rate, are told. */
#define SGP_LIKENESS_ROUNDS 8u

struct sgp_event {
    enum sgp_event_type type;
    sgp_time now; /* never decreases from event to event */
    struct sgp_link link;
    int code;
    uint32_t slot;
    uint64_t bytes;
    uint64_t
        update; /* TRAINED: digest of what training changed (sgp/update.h); 0: nothing, not known, or not to be compared */
    double rate;                       /* TRAINED: its learning rate; 0: not known */
    const struct sgp_message *message; /* borrowed for the call */
    const struct sgp_sketch *sketch;   /* borrowed for the call */
};

enum sgp_effect_type {
    SGP_EFFECT_DIAL = 1, /* connect to the peer; answer with UP or DOWN */
    SGP_EFFECT_SEND, /* a message; a share or an estimate with payload sends its snapshot after it */
    SGP_EFFECT_HANG_UP, /* say goodbye if that is easy, close. No DOWN must follow */
    SGP_EFFECT_RECEIVE, /* the payload just announced belongs in this receive slot */
    SGP_EFFECT_TRAIN,   /* job: steps at `weight` */
    SGP_EFFECT_PUBLISH, /* job: snapshot[slice] = x[slice], x[slice] *= keep; answer with the slot */
    SGP_EFFECT_ABSORB,  /* job: x[slice] += fraction * receive slot */
    SGP_EFFECT_RESTORE, /* job: x[slice] += fraction * snapshot; a share came back */
    SGP_EFFECT_NOTE,    /* something a person may want to read */
    SGP_EFFECT_ADOPT,   /* job: x = factor * receive slot, momentum cleared */
    SGP_EFFECT_SCALE,   /* job: x[slice] *= factor, which may be 0; answers nothing */
    SGP_EFFECT_OUTER,   /* job: the outer step at `weight` (sgp/outer.h); answers nothing */
    SGP_EFFECT_SKETCH,  /* job: the sketch of x / weight; answer with it */
    SGP_EFFECT_FOLD, /* the payload under way may be changed in its place until it is absorbed; it then is x */
    SGP_EFFECT_FOLLOW, /* job: the copy is what the receive slot holds, and so is x; answer with the slot */
    SGP_EFFECT_COMPENSATE, /* job: u = receive slot; u -= factor * u * u * (x - snapshot), value by value; an ABSORB of the
                              slot follows */
    SGP_EFFECT_INQUIRE, /* ask the peer this on a connection of its own; answer with ANSWER. One at a
                            time: another one takes the place of the one before */
    SGP_EFFECT_VISIT, /* the token has come. At once: snapshot = receive slot + fraction * snapshot, of which nothing is
                         read where the fraction is 0. Then a job: the copy is that snapshot, and so is x; or, if
                         `computes`, x goes on with what it has moved since the snapshot was made. Answer with the
                         slot; both stay as they are until then */
    SGP_EFFECT_CURTAIL, /* what the TRAIN under way comes to cannot count any more: no step beyond the present one need be
                           taken. TRAINED follows as ever */
};

/* What a NOTE tells. */
enum sgp_note {
    SGP_NOTE_STATE = 1, /* the node's state changed (from round.. see state) */
    SGP_NOTE_ROUND, /* a round is complete: round, weight; of an owner, amount: updates that were added */
    SGP_NOTE_JUMP,     /* took a round far ahead: round is the new one */
    SGP_NOTE_UP,       /* peer: both sides have greeted each other on this link */
    SGP_NOTE_DOWN,     /* peer: a link went down; code */
    SGP_NOTE_ABSENT,   /* peer: silent beyond the bound; no longer waited for */
    SGP_NOTE_BACK,     /* peer: heard again after having been absent */
    SGP_NOTE_RETURNED, /* peer: a share came back to this node; reason */
    SGP_NOTE_REFUSED,  /* peer: this node refused its share; reason */
    SGP_NOTE_MISMATCH, /* peer: topology digest, learning rate or batch differ; a warning only */
    SGP_NOTE_STARVING, /* weight below 0.75 w_min: gives less or nothing until it has grown; told when
                           that has lasted for 3 s, and then once a minute */
    SGP_NOTE_DIVERGED, /* training failed; the node pauses itself */
    SGP_NOTE_ADOPTED, /* peer: took its estimate; of an owner, amount: so many of the steps on record are in no copy */
    SGP_NOTE_DRAINED,   /* after STOP: everything settled or the bound passed; the process may end.
                         After LEAVE: it has left (status.left, heir, weight_left) */
    SGP_NOTE_INHERITED, /* peer: it has left, and its mass is this node's: amount is the weight */
    SGP_NOTE_MIXES,     /* peer: at the end its estimate is `amount` away; mixing goes on until */
    SGP_NOTE_DISAGREES, /* peer: the same, but mixing has not helped, or may not go on */
    SGP_NOTE_DISSOLVED, /* of what was inherited, this node took `amount` off its weight; or, with a slot, never added what is in
                            that receive slot, which is free */
    SGP_NOTE_OTHER_DATA,  /* peer: its rows and ours are parts of unlike tables; a warning only */
    SGP_NOTE_TURNED_AWAY, /* link: refused beside the connection of that name that stands; reason */
    SGP_NOTE_TRICKLES, /* link.peer, direction: hung up on for a payload that came too slowly (IN), or what
                          it is owed was not acknowledged in the time that it may take (OUT); not waited
                          for until one has come whole */
    SGP_NOTE_OVERDUE, /* peer: in its round for longer than the patience; not waited for until its next */
    SGP_NOTE_DISPUTED, /* peer: it came back as another, and may have accepted the share that it was
                           owed before: others are asked. A second time, with a slot: its snapshot
                           was let go of */
    SGP_NOTE_OUTDATED, /* peer: it has seen more than the record of this node says; once a process;
                          amount: by so much may the total be off at most, with what was before */
    SGP_NOTE_SETTLED,  /* peer: weight `amount` that was in doubt; reason: accepted, or come home */
    SGP_NOTE_RENEWED, /* a higher epoch is in force: what there was of a cycle is dropped, and the node begins at
                          round `until` with the estimate that it had before; amount: what its weight, with what it
                          held and was owed, changed by */
    SGP_NOTE_LATE, /* peer: an update of it came too late to be added; slot: where it was received */
    SGP_NOTE_ADDED, /* peer: an owner at its own pace adds an update of it; amount: its staleness, how many were added
                       since the copy was made from which it was computed */
    SGP_NOTE_ENOUGH, /* this node asks the fleet to stop training at round `until`. Where that is to be signed, it does
                        not count before PROVEN */
    SGP_NOTE_VISITED, /* peer: the token came from it; amount: updates that it has taken up here */
    SGP_NOTE_SAME_UPDATES, /* peer: its latest SGP_LIKENESS_ROUNDS trainings were those of this node, or of another
                              source of it, bit for bit; a warning only */
    SGP_NOTE_OTHER_RATE, /* peer: for so many trainings its learning rate, `amount`, was none that this node had of late; a
                            warning only */
    SGP_NOTE_EXCESS, /* the fleet has more weight than members: this node took `amount` off its own; first: since a minute */
    SGP_NOTE_LACK, /* the fleet has so little that averaging stood still: this node added `amount` to its own; first: likewise */
    SGP_NOTE_COUNT, /* one past the last */
};

/* What a NOTE tells; beside that its effect's round and weight. Fields that a note does not name are 0. */
struct sgp_noted {
    enum sgp_note what;
    struct sgp_link link; /* peer: this node itself where the note is of none */
    int code;
    enum sgp_reason reason;
    double amount;               /* of weight, or a distance */
    bool first;                  /* EXCESS, LACK: worth a line */
    sgp_round until;             /* MIXES, DISAGREES, ENOUGH */
    uint32_t slot;               /* DISPUTED: the snapshot that was let go of, or SGP_SLOT_NONE, */
    double fraction;             /* its fraction, */
    struct sgp_inquire question; /* and which share */
};

/* How a payload may be changed in its place while it comes, since it is the next to be absorbed and x is
 * keep * snapshot till then: value[i] = keep * snapshot[i] + fraction * value[i], each product rounded to float32 first.
 * What is judged (SGP_EVENT_PAYLOAD's code) is what came. The snapshot does not change meanwhile. */
struct sgp_fold {
    uint32_t
        snapshot; /* slot; SGP_SLOT_NONE: no more of it is changed, and what came will be refused */
    double keep;
    double fraction;
    double weight; /* that comes with the payload; 0: none of its own */
    enum sgp_compressor
        compressor; /* x is snapshot - (1 - keep) * project(snapshot) (sgp/codec.h): with none, as above */
};

/* Why a snapshot is made. */
enum sgp_publish {
    SGP_PUBLISH_SHARES =
        1, /* for this turn's targets, who get what is not kept. In an exact cycle each range of values
                               has a PUBLISH of its own into the same slot; at its opening all values have */
    SGP_PUBLISH_ESTIMATE, /* a copy for a neighbour that asked; all is kept */
    SGP_PUBLISH_UPDATE,   /* of a worker: snapshot = x - copy; x = copy, unless it is kept */
    SGP_PUBLISH_NOTHING,  /* of a worker: x = copy; the snapshot is of no use */
    /* Of a worker that has a compressor: after UPDATE, for each range that a target gets. Let u be
     * snapshot + rest. The snapshot becomes s, what the target decodes of u. The rest becomes
     * u - s. */
    SGP_PUBLISH_CHOSEN,
    SGP_PUBLISH_COPY, /* snapshot = copy: of a worker, for an owner that asked; and of an owner */
    /* Of an owner whose copies are coded: snapshot = what a target decodes of x - copy, and the copy
     * changes by that. With compressor NONE: copy = x, and the snapshot is that. */
    SGP_PUBLISH_CHANGE,
    SGP_PUBLISH_TOKEN, /* of who has it: snapshot = copy + keep * (x - copy), and so is the copy, and x */
};

/* A job's scalars travel by value; messages are part of the effect and live as long as the list. The member
 * of the union is that of the type. */
struct sgp_effect {
    enum sgp_effect_type type;
    sgp_round round; /* of the node, */
    double
        weight; /* and the w of z = x / w, when this was asked for, before anything is given of a PUBLISH; 0: x is no
                   estimate (within an exact cycle, or of an owner of parts) */
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
            sgp_round turn; /* how many rounds that train came before this one */
        } train;
        struct {
            uint32_t slot;
            double keep; /* factor of what stays */
            enum sgp_compressor
                compressor; /* what is given is 1 - keep of what a target decodes, and the rest stays */
            enum sgp_publish purpose;
            struct sgp_slice slice;
        } publish;
        struct {
            uint32_t peer;   /* from whom, */
            sgp_round round; /* and of which round, it came */
            uint32_t slot;
            bool
                folded; /* FOLD was said of it: if it was done, the slot holds what x becomes, else the share */
            double fraction;
            double weight; /* that comes with it; 0: none of its own */
            struct sgp_slice slice;
        } absorb;
        struct {
            uint32_t slot;
            double fraction;
            enum sgp_compressor compressor; /* of what a target would have decoded */
            struct sgp_slice slice;
        } restore;
        struct {
            uint32_t peer;
            uint32_t slot;
            double factor;
            struct sgp_slice slice; /* which the slot holds */
        } adopt;
        struct {
            double factor;
            struct sgp_slice slice;
        } scale;
        struct {
            uint32_t peer;
            uint32_t slot;          /* SGP_SLOT_NONE: x becomes the copy that there is */
            struct sgp_slice slice; /* which the slot holds */
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
            double fraction; /* 1 over the number of updates if these count for their mean */
            bool computes;
        } visit;
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

/* What a node needs of its performer, from topology and method, or as it is. */
struct sgp_node_needs {
    uint32_t snapshots; /* snapshot slots: 2, and one per out-neighbour that may become unreachable;
                           slots are taken lowest first, so those beyond 2 stay untouched in peace */
    uint32_t receives;  /* receive slots: most awaited in two successive rounds, and one; for a
                           method that overlaps, one for every in-neighbour, and one, if that is
                           more */
    uint32_t effects;   /* most effects of one step */
    /* The largest share that comes is so many of so many parts of the vector: no more of a receive slot is ever
     * written to, but for one, by an estimate or by all that one who leaves has. */
    uint32_t share_parts, slices;
    uint32_t links; /* and entries of a record */
};
/* Returns 0 or -ENOMEM. */
SGP_API int sgp_node_needs(const struct sgp_topology *topology, uint32_t self,
    const struct sgp_method *method, struct sgp_node_needs *ret_needs);

struct sgp_node;   /* opaque: lib/core/state.h */
struct sgp_reload; /* opaque: lib/core/reload.c */

/* Create a node in state joining; it does nothing before SGP_EVENT_START. The config is copied, the
 * topology borrowed. Returns 0, -EINVAL for a config out of range, -ENOMEM. */
SGP_API int sgp_node_create(const struct sgp_node_config *config, struct sgp_node **ret_node);
SGP_API void sgp_node_destroy(struct sgp_node *node); /* NULL is fine */

/* What a node needs as it is: more than its topology says if its record or a former topology named
 * links that are no edges any more. */
SGP_API void sgp_node_counts(const struct sgp_node *node, struct sgp_node_needs *ret_needs);

/* One step. Cannot fail: an operating error is an event, a peer's error becomes HANG_UP.
 * effects->capacity must be at least sgp_node_counts' effects. Events of a connection already gone are
 * ignored. Effects must be performed in order, before the next step of this node. */
SGP_API void sgp_node_step(
    struct sgp_node *node, const struct sgp_event *event, struct sgp_effects *effects);

/* Another topology for a running node, in two parts, so that the second cannot fail. Its links are then
 * the edges of the new file, and those of the former to peers that it still names (`retired`: nothing
 * is given over them any more, what is owed is settled, and an edge that returns goes on with its
 * numbers). Round, weight and jobs under way stay; the performer's slots keep their numbers. */
struct sgp_node_change {
    const struct sgp_topology *topology; /* borrowed; sealed; must outlive the node */
    uint32_t self;                       /* the node's index in it; the name must be the same */
    double weight_least;                 /* of sgp_topology_weight_least */
    double weight_most;                  /* as in struct sgp_node_config */
};
/* Allocate everything. *ret_needs is what the performer must then have, never fewer slots than now.
 * Returns 0; -EINVAL for a change out of range, or another node's; -ENOMEM. No step of the node may
 * come between this and the next. */
SGP_API int sgp_reload_prepare(const struct sgp_node *node, const struct sgp_node_change *change,
    struct sgp_node_needs *ret_needs, struct sgp_reload **ret_reload);
SGP_API void sgp_reload_cancel(struct sgp_reload *reload); /* NULL is fine */

/* Do it, and end `reload`. The effects speak of peers by their FORMER indices: a peer that the new file
 * does not name is hung up on, what it is owed taken back (or a debt, if an heir may have it already),
 * what it gave absorbed; one with another address is hung up on. Dials under way are void: the performer
 * forgets them, and peers are dialled anew. Whatever else the performer keeps by peer or by link it
 * carries over to the new indices when the effects are performed, and posts a TICK. */
SGP_API void sgp_node_reload(
    struct sgp_node *node, sgp_time now, struct sgp_reload *reload, struct sgp_effects *effects);

/* Why this node cannot leave for good now, a clause for people; NULL if it can. Static storage. */
SGP_API const char *sgp_node_leave_obstacle(const struct sgp_node *node);
/* The same of making the token anew. */
SGP_API const char *sgp_node_token_obstacle(const struct sgp_node *node);

/* When to send SGP_EVENT_TICK at the latest if nothing happens before; SGP_TIME_NEVER when idle. */
SGP_API sgp_time sgp_node_deadline(const struct sgp_node *node);

/* What it waits for, for status and people. */
enum sgp_waiting {
    SGP_WAITING_NOTHING = 1,
    SGP_WAITING_HELLO,     /* joining: peer has not said hello */
    SGP_WAITING_CREDIT,    /* peer has not granted a buffer for this round */
    SGP_WAITING_SHARE,     /* peer promised a share for this round */
    SGP_WAITING_ACK,       /* both snapshots, or the end, wait for peer to acknowledge */
    SGP_WAITING_JOB,       /* the compute thread */
    SGP_WAITING_ESTIMATE,  /* joining: peer hands over its estimate, or nobody yet */
    SGP_WAITING_HEIR,      /* leaving: no out-neighbour is up; peer is the first of them */
    SGP_WAITING_END,       /* at its end; peer has not come to its own */
    SGP_WAITING_MASS,      /* leaving: it has none to hand over */
    SGP_WAITING_BEGINNING, /* one_beginning: peer has not taken the first parameters */
    SGP_WAITING_PACE, /* alone: a round lasts as long as those with others did, and an eighth more */
    SGP_WAITING_CYCLE, /* at the start of an exact cycle: peer is not there, or not with this file and epoch */
};

struct sgp_node_status {
    enum sgp_node_state state;
    sgp_round round;
    sgp_round
        rounds; /* one past the fleet's last training round, as far as known (pulse.ends or stop) */
    sgp_round last_round;    /* one past the last round of mixing */
    double weight;           /* w, with what is accepted and not yet absorbed */
    double weight_in_flight; /* given and not seen acknowledged */
    double
        weight_estimate; /* the w of the estimate for a job queued now: of x, or of that snapshot; 0: there is none */
    double weight_checkpoint; /* the same of what a checkpoint holds: an owner's parts, too */
    uint32_t
        estimate_slot; /* within an exact cycle: the snapshot that is the estimate; else SGP_SLOT_NONE: x is */
    struct sgp_epoch epoch;
    uint64_t cycles_renewed;
    bool
        amid_cycle; /* an exact one: it has given in it, or others to it, so its end relies on this process */
    uint64_t jumps;
    bool starving;
    sgp_round
        copy_label; /* of a worker: steps that the owner had closed; SGP_ROUND_NONE: it has no copy, or is none */
    sgp_time copy_since; /* that was taken */
    bool open;           /* its last step is not known */
    bool seeks;          /* its parameters are a guess until a neighbour's estimate has come */
    bool fresh;          /* its parameters are of round 0: no training of anybody is in them */
    bool leaving;        /* for good, from the order on */
    bool left;           /* everything is handed over and acknowledged */
    uint32_t heir; /* who has it; SGP_SLOT_NONE before it has left, or if a former process left */
    double weight_left; /* that was handed over */
    double
        weight_owed; /* beside it: owed to nodes that were absent; the heir settles it with them */
    double
        weight_debts; /* of weight_in_flight: inherited, or in doubt since a peer came back as another */
    double surplus; /* members whose mass it inherited and has not dissolved yet */
    double
        unknown; /* by which the total may be off at most: its record was outdated, or somebody lied about weight; adds up */
    enum sgp_waiting waiting;
    uint32_t waiting_peer; /* SGP_SLOT_NONE if none */
    sgp_time waiting_since;
};
SGP_API void sgp_node_status(const struct sgp_node *node, struct sgp_node_status *ret_status);
/* One past its own last training round; 0: it has none of its own, as a relay, or as long as that is open. */
SGP_API sgp_round sgp_node_own_end(const struct sgp_node *node);
/* Of these `round` alone, for one who asks link by link. */
SGP_API sgp_round sgp_node_round(const struct sgp_node *node);
/* The number of the run that it takes part in (sgp/run.h), which it may learn from a neighbour; 0: of none yet. */
SGP_API uint64_t sgp_node_run(const struct sgp_node *node);
/* Links to neighbours whose estimates differ from this node's at the end of both. Looks at all. */
SGP_API uint32_t sgp_node_disagreeing(const struct sgp_node *node);

enum sgp_link_state { SGP_LINK_DOWN = 1, SGP_LINK_CONNECTING, SGP_LINK_UP };

struct sgp_peer_status { /* one link: a peer seen in one direction */
    uint32_t peer;
    enum sgp_direction direction;
    enum sgp_link_state state;
    bool retired; /* an edge of a former topology, kept for what is still to be settled */
    bool absent;
    bool slow;    /* computes for 8 times its longest round, and for 30 s at least */
    bool overdue; /* heard, and not waited for: SGP_NOTE_TRICKLES or SGP_NOTE_OVERDUE */
    enum sgp_node_state peer_state; /* 0 until first heard */
    sgp_round round;                /* of the peer, SGP_ROUND_NONE until heard */
    sgp_round promise;              /* IN: its next_round */
    sgp_time last_heard;            /* SGP_TIME_NEVER if never */
    sgp_time silence_bound;         /* it is absent after so long a silence */
    uint64_t shares_sent;           /* settled or not */
    uint64_t shares_received;       /* accepted */
    uint64_t shares_returned;       /* OUT: came back; IN: refused by us */
    uint64_t shares_late; /* IN: of those received, updates that came too late to be added */
    sgp_round
        staleness; /* IN: of its last update that was added, at an owner's own pace; SGP_ROUND_NONE: none was */
    bool owes;                   /* OUT: a share was given and is not acknowledged, */
    double weight_owed;          /* of this weight */
    uint64_t last_number;        /* OUT: last given; IN: last accepted */
    int last_error;              /* code of the last DOWN, 0 if none */
    enum sgp_reason last_reason; /* of the last refusal, 0 if none */
    double distance;          /* of its estimate from ours at the end of both, |z - z'|, as sketches
                                       tell it; NaN: not known */
    double distance_relative; /* to the longer of the two */
    bool disagrees;           /* it is more than SGP_AGREED */
    bool
        ended; /* the peer has said that its rounds are over, at this node's label where there is a token */
    bool mismatch; /* its topology digest, learning rate, batch or data differ */
    bool
        same_updates; /* IN: its latest SGP_LIKENESS_ROUNDS trainings were another node's bit for bit */
    double learning_rate; /* IN: of its latest training; 0: not known */
};
/* Links are numbered 0 .. count-1: out-links by peer, then in-links by peer. */
SGP_API uint32_t sgp_node_link_count(const struct sgp_node *node);
SGP_API void sgp_node_link_status(
    const struct sgp_node *node, uint32_t index, struct sgp_peer_status *ret_status);
/* The first link from `from` on over which something may be owed, or the count of all links. */
SGP_API uint32_t sgp_node_next_owing(const struct sgp_node *node, uint32_t from);
/* Of these `last_number` and `weight_owed` alone, for one who asks after every step. */
SGP_API void sgp_node_link_account(const struct sgp_node *node, uint32_t index,
    uint64_t *ret_last_number, double *ret_weight_owed);

/* What to answer to a question that came on a connection of its own. False: it cannot be told yet, so hang
 * up without an answer. Changes nothing. */
SGP_API bool sgp_node_answer(
    const struct sgp_node *node, const struct sgp_inquire *question, struct sgp_answer *ret_answer);

/* The debts that are a part of weight_in_flight, 0 .. count-1; in no order. */
SGP_API uint32_t sgp_node_debt_count(const struct sgp_node *node);
SGP_API const struct sgp_account *sgp_node_debt(const struct sgp_node *node, uint32_t index);

SGP_API const char *sgp_note_name(enum sgp_note note); /* "share_returned"; static storage */
SGP_API const char *sgp_waiting_name(enum sgp_waiting waiting); /* "share" */

#endif
