/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a node. One invariant rules: each unit of push-sum weight is in one account of
 * `mass` at a time, and only mass.c changes the accounts: by postings, or by setting `weight`. The
 * comment of each group of members names the files that write the group. */
#ifndef SGP_CORE_STATE_H
#define SGP_CORE_STATE_H

#include "sgp/node.h"

/* The stage of the current round. */
enum sgp_stage {
    SGP_STAGE_IDLE = 1,   /* the node is joining or draining */
    SGP_STAGE_BEGIN,      /* a round is about to start */
    SGP_STAGE_TRAIN,      /* the TRAIN job is running */
    SGP_STAGE_CREDIT,     /* the node waits until it may give */
    SGP_STAGE_PUBLISHING, /* the PUBLISH job is running */
    SGP_STAGE_GATHER,     /* the node waits for promised shares */
    /* no rounds remain; the node waits for acknowledgements and agreement, or has finished */
    SGP_STAGE_END,
};

/* A share that this node gave and whose acknowledgement has not arrived. A link has at most one, or
 * two within an exact cycle. */
struct sgp_owed {
    bool exists;
    bool sent;       /* sent on the present connection */
    bool told;       /* sent on any connection, so the target may have accepted it */
    bool publishing; /* the PUBLISH job of its snapshot is not done */
    /* The share is from an earlier process. It is not sent again, only settled or taken back. */
    bool lost;
    /* The share is of an epoch that is over. It is forgotten, whatever the target answers. */
    bool is_void;
    /* reason of a refusal on this connection that fold.c has not handled yet; 0: none */
    enum sgp_reason refused;
    uint32_t slot;  /* its snapshot; SGP_SLOT_NONE: the share is empty, or the snapshot is lost */
    sgp_time since; /* when it was sent on the present connection */
    sgp_time spent; /* time that it was under way on earlier connections */
    struct sgp_share share;
};

/* IN: a second connection of the source, which arrived while the first one exists. */
struct sgp_pending {
    uint64_t caller;     /* a connection whose hello has not arrived; 0: none */
    sgp_time called;     /* since when it is there */
    uint64_t connection; /* a connection whose hello arrived and has no answer yet; 0: none */
    sgp_time since;
    struct sgp_pulse pulse; /* the pulse of its hello */
    struct sgp_hello hello; /* its hello, without names */
};

/* A search: asking one node after the other about a share. */
struct sgp_search {
    /* number of the share, 0: there is no search; if the number differs, this is another search */
    uint64_t number;
    uint32_t pass; /* 0: the target; 1: its out-neighbours; 2: all other nodes */
    uint32_t at;   /* the next node of the pass */
    bool moved;    /* the target answered with another incarnation than the search is about */
    bool silent;   /* at least one node could not be asked */
    sgp_time begun, next, pace;
};

/* One directed edge of the topology, with at most one connection. Where an exact cycle needs two
 * entries of something, the first is at index 0, and the second moves up. The comment of each group
 * names its writers. In addition, layout.c begins a link, record.c restores it, reload.c moves it,
 * and `disconnect` in link.c clears what the connection left unfinished.
 *
 * In a simulation of a thousand nodes, a step takes as long as the cache lines that it touches. So
 * links begin on cache lines, what each step reads comes first, and in later groups, what is often
 * read lies beside that of the next group. */
#define SGP_CORE_CACHE_LINE 64
struct sgp_core_link {
    _Alignas(SGP_CORE_CACHE_LINE) uint32_t peer;
    enum sgp_direction direction;
    bool retired; /* the topology file no longer has this edge */

    /* link.c; greet.c: up; node.c, watch.c: dialled; emit.c: said; share.c, owed.c: the last
     * reason */
    struct {
        enum sgp_link_state state; /* CONNECTING also means: connected, but not greeted yet */
        uint64_t id;               /* 0: there is no connection */
        sgp_time since;            /* when the present state began */
        sgp_time said;             /* when this node last sent anything */
        sgp_time redial;           /* OUT: when to dial; NEVER while dialled or connected */
        sgp_time backoff;
        int last_error;
        enum sgp_reason last_reason;
        uint32_t codings; /* OUT: those that the peer decodes, as it said last; greet.c */
    } connection;

    /* link.c; notice.c: probed; watch.c: absent, and heard no more. The failure detector of this
     * link alone: a message on one link of a peer proves nothing about the other link. */
    struct {
        sgp_time heard; /* SGP_TIME_NEVER: not heard yet, or no longer monitored */
        /* Since when the peer must show that it is alive, even if no heartbeats are due.
         * SGP_TIME_NEVER: it need not. */
        sgp_time probed;
        /* The node has heard twice, and said nothing between. Only a probe is followed by another
         * message before it is answered. */
        bool asked;
        /* longest silence in the present and the previous window of 32 intervals */
        sgp_time longest[2];
        uint32_t intervals; /* number of intervals in the present window */
        bool absent;
    } liveness;

    struct sgp_pulse pulse; /* link.c: the latest; its state is 0 before the first */

    struct { /* patience.c; share.c, estimate.c: a payload has come whole */
        /* The peer reached `furthest` longer ago than this node's patience. */
        bool overdue;
        /* IN: a payload arrived too slowly, and no whole payload has arrived since. OUT: the owed
         * share was not acknowledged in the time that this may take. */
        bool trickles;
        sgp_time round_since; /* since when the peer's round and state have been the same */
        sgp_time longest_round;
        /* The peer's greatest round at which it came closer to what this node waits for. */
        sgp_round furthest;
        sgp_time furthest_since; /* when it reached that round */
        sgp_time window_since;   /* start of the measuring window of the payload that is arriving */
        uint64_t window_bytes;   /* bytes of that payload that had arrived by then */
    } patience;

    /* OUT: emit.c, outgoing.c; facts.c: the plan; share.c: the credit, answer_due; role_owner.c,
     * watch.c: missed; link.c: a connection ends */
    struct {
        sgp_round plan; /* the next round with this edge, searched from `plan_from` on */
        sgp_round plan_from;
        sgp_round announced[2]; /* the promises stated last */
        sgp_round pledged_from; /* the first promise stated after a time without promises */
        sgp_round credit[2];    /* rounds of the unused flow-control credits, or NONE */
        uint32_t left_out;      /* consecutive turns without a share on this link */
        bool answer_due;        /* a share of the peer asks for a share in return */
        bool missed; /* the closed step has no update of the peer, and the peer must be told */
    } giving;

    struct {             /* handing.c; estimate.c, seek.c: refused */
        bool refused;    /* IN: the peer refused the question */
        bool asks;       /* OUT: the peer asks for this node's estimate */
        uint64_t digest; /* OUT: of the peer's x; 0: not given */
        sgp_round newer; /* the least version (label) that the peer wants */
        /* OUT: version (label) of the copy that the peer has; SGP_ROUND_NONE: none */
        sgp_round holds;
        uint32_t slot; /* the snapshot for the peer; SGP_SLOT_NONE: none yet */
        bool sent;
    } estimate;

    struct { /* OUT: inquiry.c; greet.c, cycle.c: disputed */
        /* since when the peer is unreachable while a share is owed; NEVER: it is not */
        sgp_time unreachable;
        /* the incarnation that was owed this node's bequest, if the peer has another one */
        uint64_t disputed;
        struct sgp_search search;
    } inquiry;

    struct { /* role_owner.c; reload.c; estimate.c: held */
        /* IN, from an owner: version of the copy of its part; SGP_ROUND_NONE: none */
        sgp_round copy;
        /* IN: that version, if the copy arrived on this connection and under this file */
        sgp_round held;
        sgp_round given; /* IN, from an owner: the greatest version from which an update was made */
        /* OUT: snapshot of the copy from which the peer trains; SGP_SLOT_NONE: not kept */
        uint32_t base;
        sgp_round label; /* version of that copy */
        /* IN: how many more of its updates were added than of the slowest worker's */
        uint32_t ahead;
        /* IN: staleness of the update that was added last; SGP_ROUND_NONE: none was */
        sgp_round staleness;
    } work;

    struct { /* of shares: outgoing.c, role_token.c, share.c, owed.c; role_owner.c: late */
        uint64_t sent, received, returned;
        uint64_t late; /* IN: received updates that were too late to be added */
    } count;

    struct {             /* accounts.c; share.c: declined; link.c: a connection ends */
        bool declined;   /* OUT: on this connection the peer declined this node's bequest */
        uint32_t handed; /* OUT: number of accounts sent before this node's bequest */
        /* IN: accounts staged on this connection; OUT: accounts that the peer says it staged */
        uint32_t staged;
        /* The connections on which an heir was told of the link, and of its former incarnation. */
        uint64_t told_on[2];
    } bequest;

    struct { /* IN: seek.c, estimate.c; receive.c: it is over */
        struct sgp_estimate incoming;
        sgp_round newer; /* the least version (label) of the estimate that this node wants */
        sgp_time asked_at;
        sgp_time until;  /* when the next source is asked instead */
        uint64_t digest; /* of x, as the question said; 0: it said none */
        /* Receive slot reserved for the estimate that the peer was asked for. SGP_SLOT_NONE: the
         * peer was not asked. */
        uint32_t slot;
        bool filling; /* `incoming` was announced, and its payload is arriving */
        bool whole;   /* it has come, and is a candidate (estimate.c) */
    } question;

    /* IN: receive.c, grant.c, share.c; fold.c: folds, spoiled; role_owner.c, cycle.c: latest;
     * link.c: a connection ends */
    struct {
        /* next_round and then_round of the peer's pulse, or NONE. Both are frozen while a payload
         * is arriving. */
        sgp_round promise[2];
        /* Receive slots granted for these promises, or NONE. The first may be filling. */
        uint32_t slot[2];
        bool filling;   /* `incoming` was announced, and its payload is arriving */
        bool folds;     /* the payload is added to x while it arrives (fold.c) */
        bool spoiled;   /* it was being added until x changed */
        sgp_time since; /* when the payload began to arrive */
        struct sgp_share incoming;
        struct sgp_epoch epoch; /* epoch of `incoming` */
        sgp_round latest; /* round of the last share accepted in the epoch in force; NONE: none */
    } receiving;

    /* outdated.c; greet.c: the target's incarnation; share.c, outgoing.c, role_token.c: the numbers
     * of shares. What both ends of the link remember. */
    struct {
        bool recorded;        /* the record had this link */
        bool met;             /* the peer has greeted since this process has the link */
        uint64_t incarnation; /* incarnation of the peer */
        uint64_t number;      /* OUT: number of the last share given */
        /* OUT: greatest number that the peer says it accepted; 0: none yet */
        uint64_t acknowledged;
        uint64_t accepted; /* IN: number of the last share accepted from `incarnation` */
        bool brought;      /* IN: one of these shares had weight; true if that is not known */
        /* IN: the same for the last other incarnation whose shares had weight */
        uint64_t former_incarnation, former_accepted;
    } memory;

    /* OUT: outgoing.c and role_token.c give it; share.c: sent; owed.c settles it; fold.c: refused;
     * cycle.c: void; round.c: published; link.c: a connection ends. A share that is given while an
     * earlier one is not settled has no weight. */
    struct sgp_owed owed[2];

    struct {             /* IN: likeness.c */
        uint64_t update; /* digest of the peer's latest training, as it told; 0: none yet */
        bool matched;    /* the digest equalled one of another node */
        uint32_t same;   /* how many consecutive times that was so */
        double rate;     /* the peer's learning rate; 0: not known */
        uint32_t unlike; /* consecutive times that this node had no such learning rate recently */
    } likeness;

    struct sgp_pending pending; /* IN: pending_connection.c */

    struct {                    /* IN: wrong_total.c */
        sgp_round round;        /* this node's round when the source last told its counts */
        sgp_round heavy, light; /* those counts; SGP_ROUND_NONE: never told */
    } news;

    struct { /* agree.c; emit.c: told, named, named_since, replies; link.c: a connection ends */
        struct sgp_beat ended; /* what the latest beat said */
        bool told;       /* this connection has told the peer that this node's rounds are over */
        uint8_t replies; /* beats that came since `named_since`, up to what agree.c needs */
        sgp_round named; /* the last round that this connection has told the peer; 0: none yet */
        sgp_time named_since; /* when it told that round first */
    } end;

    struct {               /* greet.c; emit.c: said */
        uint64_t topology; /* digest of the peer's topology file, as heard last */
        uint64_t said;     /* digest of this node's topology file that the peer heard last */
        /* The peer was seen training, or far behind. If it joins, no node waits for it. */
        bool trained;
        bool steps;      /* the peer's learning rate or batch size differs */
        bool mismatch;   /* the learning rate, the batch size or the topology file differs */
        bool other_data; /* both nodes take parts of a data table, and the tables differ */
    } greeting;

    struct {             /* pace.c */
        sgp_round round; /* the peer's round when the measurement of its pace began */
        sgp_time since;
    } pace;
};

/* The share for one neighbour in this turn. */
struct sgp_outgoing {
    struct sgp_core_link *link;
    double fraction; /* part of the mass that this node had before the turn */
    /* the edge of the file; NULL: the node chose the target, and gives of all values */
    const struct sgp_edge *edge;
    bool asks;
    double bequest;
    struct sgp_slice slice;         /* the values that it carries; none: the share is empty */
    enum sgp_compressor compressor; /* how they are compressed */
};

#define SGP_CORE_STAGED_MAX (2 * SGP_ACCOUNTS_MAX) /* for all neighbours together */
#define SGP_CORE_WINDOW 16u /* accounts that may be on their way to an heir */
#define SGP_CORE_ACCOUNTS_MAX (SGP_ACCOUNTS_MAX + SGP_CORE_STAGED_MAX)

struct sgp_core_account {
    struct sgp_account account;
    /* the node that is about to leave the account to this one; SGP_SLOT_NONE: in force */
    uint32_t stager;
    /* Staged, but not as an account: the number of members whose mass never arrived. */
    double told;
    double unknown; /* Likewise: the bound for the error of the total. */
    /* the share's snapshot; SGP_SLOT_NONE: if the share returns, only its weight does */
    uint32_t slot;
    double fraction;
    enum sgp_compressor compressor;
    uint64_t told_on; /* the connection on which an heir was told of the account */
    struct sgp_search search;
};

/* The one question that is pending. Its answer applies to the debt or the link to which exactly
 * that share is still owed. */
struct sgp_inquiry {
    bool asked;
    bool links;    /* some link owes the share in question, or will owe it later */
    uint32_t whom; /* the node that was asked; SGP_SLOT_NONE: a reload has removed it */
    sgp_time until, next;
    struct sgp_account about; /* number 0: the answer is ignored */
};

/* receive.c, grant.c, share.c, estimate.c, seek.c; node.c: absorbed */
enum sgp_receive_state {
    SGP_RECEIVE_FREE = 0,
    /* granted to one source, or reserved for an estimate; the payload may be arriving */
    SGP_RECEIVE_GRANTED,
    SGP_RECEIVE_HELD,      /* accepted, but not absorbed yet */
    SGP_RECEIVE_ABSORBING, /* being absorbed or adopted */
    SGP_RECEIVE_COMPARED,  /* an estimate that is compared with the one in slot `first` */
};

struct sgp_receive { /* A receive buffer. */
    enum sgp_receive_state state;
    uint32_t peer;          /* node index of the source */
    struct sgp_share share; /* GRANTED: only its round is set, from the credit */
    struct sgp_epoch epoch;
    bool counts; /* HELD, an update: its step is closed, and it counts for `share.fraction` */
    /* snapshot from which the update's delay is compensated; SGP_SLOT_NONE: it is not */
    uint32_t base;
    uint32_t first; /* COMPARED */
};

/* The share that is added to x while it arrives. There is one at a time. fold.c; publish.c,
 * round.c: published; emit.c: x changes */
struct sgp_folding {
    /* x is `keep` times this snapshot; SGP_SLOT_NONE: no such snapshot is known */
    uint32_t snapshot;
    double keep;
    enum sgp_compressor compressor; /* how the part that was given of the snapshot is compressed */
    uint32_t pinned; /* the snapshot to which a share is being added; SGP_SLOT_NONE: none */
    bool changed;    /* x has changed since the fold began */
    bool refusals;   /* targets refused shares of this node during the fold */
};

/* Exact cycles. cycle.c; epoch.c: epoch, heard, heeds; role_token.c: an epoch of its own; round.c:
 * stop_by */
struct sgp_exact {
    struct sgp_epoch epoch; /* the epoch in force */
    struct sgp_epoch heard; /* the highest epoch heard of; never below the epoch in force */
    /* This node has given in the present cycle, or saw that others did. Then x is no estimate. */
    bool begun;
    /* snapshot of the vector with which the node entered the cycle; NONE: there is none, or the
     * node is a relay */
    uint32_t input;
    /* a pending stop: at the end of the cycle, or then at the latest; NEVER: none */
    sgp_time stop_by;
    uint64_t renewed; /* number of renewed cycles */
    /* epochs that are still followed, although the file has no exact cycles any more */
    uint32_t heeds;
};

/* The snapshot of the estimate that was made last for peers that ask. */
struct sgp_handing {
    uint32_t slot;   /* the slot of the snapshot */
    bool publishing; /* its PUBLISH job is not done */
    struct sgp_estimate estimate;
    struct sgp_epoch epoch; /* of this node when it made the snapshot */
    /* For an owner whose copies are coded: `label` is the version of the copy that the performer
     * keeps, NONE if there is none, and `values` are those that it has. `change` is the snapshot of
     * the difference that led to that copy, NONE if the copy is x itself. */
    sgp_round label;
    struct sgp_slice values;
    uint32_t change;
    struct sgp_estimate changed; /* how that difference is announced */
};

/* A worker's copy of its owner's estimate, from which it trains. If each part of the vector has an
 * owner, the copy has each part from the owner of that part. */
struct sgp_copy {
    bool exists;     /* the copy is complete in all parts */
    sgp_round label; /* the least version of the parts */
    /* The label is of a former epoch, or was used twice, so it cannot be compared with the token's.
     * The token has not been here since. */
    bool former;
    bool untrained; /* the copy of some part contains no training */
    sgp_time since; /* when a part was last replaced */
    sgp_round turn; /* one past the last turn that the worker took */
    /* rounds of steps since then that a token has not taken; used by every role */
    uint32_t updates;
    bool curtailed; /* the running steps must end, because they are too late */
};

/* The state of a node that trains with a token. */
struct sgp_token_state {
    /* snapshot: the token if it is here, otherwise this node's accumulated updates; NONE:
     * neither */
    uint32_t slot;
    uint32_t offered;  /* number of updates in that snapshot while the token is away */
    bool of_record;    /* the token is here only according to the record of an earlier process */
    sgp_time quickest; /* the shortest time that the steps of a round took in this process */
    uint32_t timed;    /* number of rounds that were timed, up to a bound */
};

/* Digests of training results, and learning rates. */
#define SGP_CORE_UPDATES 64u /* digests that are remembered, of this node and its sources */
struct sgp_seen_update {
    uint32_t peer;
    uint64_t update; /* 0: none */
};
struct sgp_likeness {
    /* digest of this node's latest training; 0: it changed nothing, or is not known */
    uint64_t update;
    double rate; /* its learning rate; 0: not known */
    struct sgp_seen_update seen[SGP_CORE_UPDATES];
    uint32_t next;
    double rates[SGP_LIKENESS_ROUNDS];
    uint32_t next_rate;
};

/* The search for an estimate, and which source is asked next. A worker of several owners asks each
 * of them. */
struct sgp_seeking {
    bool wants;
    uint32_t slot; /* receive slot reserved for the next question, or SGP_SLOT_NONE */
    /* until when the node waits for more estimates to compare; SGP_TIME_NEVER: it has none */
    sgp_time compares_until;
    sgp_time until; /* when the search ends; SGP_TIME_NEVER: it may not start yet */
    uint32_t turn;  /* the in-link from which the choice of the next source begins */
    uint32_t turns; /* how often a source was too late, and the next one was asked */
};

/* Leaving the fleet for good. */
struct sgp_leaving {
    bool wanted;               /* from the order on; on record */
    bool sent;                 /* the bequest was sent, so the heir may have accepted it */
    bool left;                 /* the heir accepted it; on record */
    bool stopped;              /* the process must end before that is known */
    sgp_time accumulate_from;  /* from then on its sources know that it leaves */
    sgp_time accumulate_until; /* until then the node keeps its mass, and waits for more */
    uint32_t heir;             /* SGP_SLOT_NONE: no heir is up */
    sgp_time heir_until; /* when the next heir is tried, unless the bequest was sent to this one */
    sgp_round round;     /* the round of the bequest */
    double weight;       /* the weight that was handed over */
    double owed;         /* the weight that was owed to absent nodes, in addition */
    /* Connections on which the heir was told two figures: the members not covered, and the weight
     * not known. */
    uint64_t told_on[2];
    sgp_time since;    /* when the node began to drain */
    sgp_time until;    /* the node answers messages until then at least */
    sgp_time patience; /* after it left: payloads that are arriving are awaited until then */
};

/* The end of this node's rounds. */
struct sgp_ending {
    uint32_t asked; /* how many consecutive times this node asked */
    double apart;   /* the greatest relative distance to a neighbour when it asked last */
    bool sketching; /* the SKETCH job is running */
    bool spoiled;   /* a job behind the running SKETCH job changes the estimate */
    bool fresh;     /* `sketch` is of the estimate at the end of the job queue */
    bool empty;     /* the sketch has no values, because the node has no model */
    struct sgp_sketch sketch;
    bool judges; /* something that a neighbour said is not evaluated yet */
    /* The greatest last round that a node named or asked for because estimates differed. 0:
     * none. */
    sgp_round mixes;
};

enum sgp_set {     /* Sets of links. A link that is in DIRTY counts as a member of all sets. */
    SGP_SET_DIRTY, /* changed in this step */
    SGP_SET_OWING,
    SGP_SET_ASKING,
    SGP_SET_TO_ANSWER,
    SGP_SET_NEAR,           /* IN: promised for the next round or an earlier one */
    SGP_SET_WITHOUT_BUFFER, /* IN: up, and may be granted a buffer now */
    SGP_SET_ENDING,         /* connected, but the file no longer has the edge */
    SGP_SET_COUNT,
};

/* The facts of the node on which all links depend. */
struct sgp_facts {
    /* The heir, the state, and one bit for each condition (notice.c). One word, because a wide read
     * of what was just written in small pieces makes a processor wait. */
    uint64_t word;
    sgp_round bequest_round;
    sgp_round ends, stop, mixes; /* what the last round follows from, beside the configuration */
    sgp_round round, from;       /* the current round, and the round of the next turn */
};

struct sgp_link_index {
    uint32_t words;     /* number of words of a set */
    uint32_t first_due; /* the link with the earliest due time */
    uint64_t *sets;     /* one bit for each link */
    sgp_time *due;      /* for each link: when something is due on it */
    /* for each in-link: its promise if later than the next round, otherwise SGP_ROUND_MAX */
    sgp_round *promised;
    uint32_t *peers;        /* for each link: its peer */
    struct sgp_facts facts; /* as notice.c saw them last */
};

/* The arrays of a node, which `sgp_core_lay_out` makes. The file that handles an entry writes
 * it. */
struct sgp_layout {
    uint32_t link_count, out_count;
    struct sgp_core_link *links; /* out-links by peer, then in-links by peer */
    struct sgp_link_index link_index;
    uint32_t snapshot_count, receive_count;
    uint32_t share_parts, slices; /* see struct sgp_node_needs */
    uint32_t *snapshot_users; /* for each snapshot: the number of shares and jobs that need it */
    struct sgp_receive *receives;
    struct sgp_outgoing *outgoing; /* one for each out-link */
};

struct sgp_node {
    struct sgp_node_config config;
    const struct sgp_role *roles[2]; /* role.c: outside exact cycles and within one */
    const struct sgp_role *role;     /* facts.c: the role in the current round */

    sgp_time now;
    struct sgp_effects *effects; /* set during a step only */
    bool again;                  /* more can be done immediately: ask for a tick */
    bool changed;                /* tell all peers by a beat at the end of this step */
    bool unrecorded;             /* this step changed what a record contains */

    /* round.c, leave.c, by emit.c */
    enum sgp_node_state state; /* JOINING, TRAINING, SETTLING, FINISHED or DRAINING */
    bool paused;               /* in addition to one of the first three */
    bool drained;
    sgp_time drain_until;
    enum sgp_stage stage;
    sgp_time stage_since;

    /* round.c; facts.c: the round; outgoing.c: gave; share.c: bandwidth_bound; cycle.c and
     * role_token.c: a cycle, or the last lap, begins elsewhere */
    sgp_round round;
    sgp_time round_since;
    bool gave, trained; /* in the current round */
    /* shares that the node gave in this round beyond the first (sgp_core_passes_on_at) */
    sgp_round passes;
    sgp_time passed;      /* when it gave the last of these */
    sgp_time waits;       /* since when it waits in this round */
    bool received_share;  /* a share with mass has arrived since the previous round ended */
    bool bandwidth_bound; /* the last share took more than half of the time since the round began */
    uint64_t jumps;

    struct {             /* greet.c, round.c; cycle.c: heard */
        sgp_round ends;  /* greatest number of training rounds heard of */
        bool endless;    /* this node's own number of rounds is or was unlimited */
        sgp_round stop;  /* least early stop heard of, or NONE */
        sgp_round asked; /* least early stop that this node asked for, or NONE */
        sgp_round heard; /* no round heard of is beyond this one */
    } fleet;

    /* reload.c, record.c: rounds that train, before a round: they are counted from here on */
    struct {
        sgp_round round, count;
    } turns;

    struct { /* mass.c alone */
        /* the account *here* of docs/rules/mass.md: w of z = x / w, at the end of the job queue */
        double weight;
        double held; /* weight of shares that were accepted but not absorbed */
        double owed; /* weight of shares that links owe, without debts (sgp_core_in_flight) */
        /* Weight of debts in force. These sums follow the postings; decisions use sums computed
         * anew. */
        double debt;
        /* members that left their mass to this node, where it is not dissolved yet */
        double surplus;
        double covered; /* those of `surplus` whose mass has arrived, so that it may be dissolved */
        /* bound for the error of the total, from an outdated record or a lying node */
        double unknown;
        double members_most; /* the greatest number of members that a file of this node has named */
        /* what arrived from outside less what left: the sum that the four accounts must have */
        double due;
    } mass;

    struct sgp_exact exact;
    struct sgp_copy copy; /* role_worker.c, role_token.c; round.c: the turn, curtailed, updates */

    struct sgp_seeking seeking; /* seek.c, estimate.c, receive.c; reload.c */

    struct {                              /* accounts.c */
        uint32_t count;                   /* in force and staged; the oldest first */
        uint32_t staged, debts;           /* number of staged ones; number of debts in force */
        struct sgp_core_account *entries; /* room for SGP_CORE_ACCOUNTS_MAX */
    } accounts;

    struct sgp_folding folding;   /* fold.c, publish.c, emit.c */
    struct sgp_token_state token; /* role_token.c */

    struct { /* outgoing.c; publish.c, round.c: published; role_token.c: a hand-over */
        bool starving;
        bool nothing; /* it gave nothing in its last turn, because it is starving */
        /* start of the present series of such turns, which is reported once */
        sgp_time starves_since;
        /* the next such turn belongs to the series if it begins before this time */
        sgp_time starves_until;
        sgp_time quiet_until;           /* until then the note is not repeated */
        uint32_t count;                 /* number of outgoing shares in this turn */
        uint32_t slot;                  /* the snapshot of the running PUBLISH jobs */
        uint32_t jobs;                  /* the number of these jobs */
        enum sgp_compressor compressor; /* of this turn's shares */
    } giving;

    struct
    { /* record.c, round.c, role_token.c; receive.c, estimate.c: fresh; outdated.c: outdated */
        bool recorded;     /* this node was made from a record */
        bool outdated;     /* neighbours have shown that the record is outdated */
        bool another_file; /* the record was made with another topology file */
        bool restored;     /* joins a fleet that is training, and has not begun a round there */
        bool fresh;        /* x is the initial model, of round 0 */
        double weight;     /* of the record, whatever role the node had */
    } past;

    /* node.c, reload.c: the source of the first parameters by the file (sgp_topology_spread);
     * SGP_NODE_NONE: any source */
    uint32_t first_source;

    struct sgp_layout layout;

    struct sgp_leaving leaving;   /* leave.c; accounts.c, share.c: the bequest's end; reload.c */
    struct sgp_ending ending;     /* agree.c; emit.c: spoiled */
    struct sgp_inquiry inquiry;   /* inquiry.c; accounts.c: a reload */
    struct sgp_handing handing;   /* handing.c */
    struct sgp_likeness likeness; /* likeness.c */

    struct {             /* pace.c; round.c: begun, steps */
        sgp_round round; /* this node's round when the measurement of its own pace began */
        sgp_time since;
        sgp_time each;  /* mean time of a round, up to the end of its steps; 0: not known */
        sgp_time begun; /* when the steps of the current round began */
        sgp_time steps; /* how long the last steps took; 0: not known */
        bool idle;      /* in the previous round of mixing no share was given or received */
        /* mean time of a round with others, over the number of recent rounds below */
        sgp_time together;
        sgp_round together_rounds;
    } pace;

    struct {                 /* wrong_total.c; outgoing.c: kept */
        bool excess;         /* a member created weight, and this node removes the excess */
        sgp_round calm_from; /* the round since which the node has scaled nothing */
        sgp_round counted;   /* the round that was counted last */
        /* consecutive rounds in which every node heard of had too much, or too little */
        sgp_round heavy, light;
        double left;          /* the node's weight after its last turn */
        double kept;          /* the part of its weight that it did not give in its last turn */
        sgp_time quiet_until; /* until then the note is not repeated */
    } total;

    struct sgp_random random;
};

#endif
