/* SPDX-License-Identifier: Apache-2.0 */
/* What a node is made of. One invariant rules: weight is in one account of `mass` at a time, and moves by the postings of mass.c
 * alone. A group names the files that write it. */
#ifndef SGP_CORE_STATE_H
#define SGP_CORE_STATE_H

#include "sgp/node.h"

/* Where a node stands inside a round. */
enum sgp_stage {
    SGP_STAGE_IDLE = 1,   /* joining or draining */
    SGP_STAGE_BEGIN,      /* a round is about to start */
    SGP_STAGE_TRAIN,      /* the TRAIN job is under way */
    SGP_STAGE_CREDIT,     /* waits until it may give */
    SGP_STAGE_PUBLISHING, /* the PUBLISH job is under way */
    SGP_STAGE_GATHER,     /* waits for promised shares */
    SGP_STAGE_END,        /* all rounds done; waits for acknowledgements and agreement; finished */
};

/* A share that this node gave and has not seen acknowledged. At most one a link, and two within an exact cycle. */
struct sgp_owed {
    bool exists;
    bool sent;               /* on the present connection */
    bool told;               /* on any: it may have been accepted */
    bool publishing;         /* its snapshot is still being made */
    sgp_time since;          /* it was sent, */
    sgp_time spent;          /* and so long it was under way on connections before */
    enum sgp_reason refused; /* on the present connection, and not taken up yet (fold.c); else 0 */
    bool lost;     /* of a former process: it is not sent again, only settled or taken back */
    bool is_void;  /* of an epoch that is over: whatever its target says, it is forgotten */
    uint32_t slot; /* of the snapshot; SGP_SLOT_NONE: the share is empty, or its snapshot is gone */
    struct sgp_share share;
};

/* IN: a connection that came while another stands. */
struct sgp_aside {
    uint64_t caller;     /* it has not said hello yet; 0: nobody */
    uint64_t connection; /* greeted, and not answered yet; 0: none */
    sgp_time since;
    struct sgp_pulse pulse; /* of its hello */
    struct sgp_hello hello; /* without its names */
};

/* Asking one node after the other about a share. */
struct sgp_search {
    uint64_t number; /* of the share; else it is another search */
    uint32_t pass;   /* 0: the target; 1: its out-neighbours; 2: all others */
    uint32_t at;     /* the next node of the pass */
    bool moved;      /* the target answered, as another than the one that was meant */
    bool silent;     /* somebody could not be asked */
    sgp_time begun, next, pace;
};

/* One directed edge, with at most one connection. Of what it has twice within an exact cycle the
 * first is at 0, and the second moves up. Each group names its writer; layout.c begins a link,
 * record.c restores it, reload.c moves it, and `disconnect` in link.c clears what was half-done. */
struct sgp_core_link {
    uint32_t peer;
    enum sgp_direction direction;
    bool retired;           /* no edge of the file any more */
    struct sgp_pulse pulse; /* link.c: the latest; state 0 before the first */

    /* link.c; greet.c: up; node.c, watch.c: dialled; emit.c: said; share.c, owed.c: the last reason */
    struct {
        enum sgp_link_state state; /* CONNECTING: connected, and not greeted yet */
        uint64_t id;               /* 0 while there is none */
        sgp_time since;            /* of the present state */
        sgp_time redial;           /* OUT: when to dial; NEVER while it is dialled or connected */
        sgp_time backoff;
        sgp_time said; /* when anything was last sent */
        int last_error;
        enum sgp_reason last_reason;
        uint32_t forms; /* OUT: that the peer said last that it decodes; greet.c */
    } connection;

    /* link.c; watch.c: absent, and heard no more. What is heard, on this link alone: hearing a peer on one says nothing about the
     * other. */
    struct {
        sgp_time heard;      /* SGP_TIME_NEVER: not yet, or it is not reckoned with any more */
        sgp_time longest[2]; /* longest silence of the present and the previous window of 32 */
        uint32_t intervals;  /* in the present window */
        bool absent;
    } liveness;

    struct {           /* greet.c; emit.c: said */
        bool trained;  /* it was seen training, or far behind: if it joins, nobody waits for it */
        uint64_t said; /* digest of this node's topology file, as the peer has heard last */
        uint64_t topology; /* of the peer's, as heard last */
        bool steps;        /* its learning rate or batch differ */
        bool mismatch;     /* that, or its topology file does */
        bool other_data;   /* both take parts of a table, and it is not one */
    } greeting;

    /* outdated.c; greet.c: the target's lineage; share.c, outgoing.c, role_token.c: the numbers of shares. What both ends
     * remember. */
    struct {
        bool recorded;         /* the link was on record */
        bool met;              /* the peer has greeted since this process knows the link */
        uint64_t lineage;      /* of the peer */
        uint64_t number;       /* OUT: of the last share given */
        uint64_t acknowledged; /* OUT: of the last that the peer says it accepted; 0: none yet */
        uint64_t accepted;     /* IN: number of the last accepted share of `lineage` */
        bool brought;          /* IN: any of these had weight; true if that is not known */
        /* IN: the same of the last other one that brought any */
        uint64_t former_lineage, former_accepted;
    } memory;

    struct {             /* pace.c */
        sgp_round round; /* of the peer when its pace began to be measured */
        sgp_time since;
    } pace;

    struct {                  /* patience.c; share.c, estimate.c: a payload has come whole */
        sgp_time round_since; /* the peer's round and state have been the same */
        sgp_time longest_round;
        sgp_round furthest;      /* round of the peer that led to what it is waited for, */
        sgp_time furthest_since; /* and since when */
        bool overdue;            /* that is longer ago than this node waits */
        sgp_time window_since;   /* of the payload under way: then ... */
        uint64_t window_bytes;   /* ... so much of it had come */
        bool trickles; /* IN: a payload came too slowly, and none has come whole since; OUT: what is
                        * owed was not acknowledged in the time that it may take */
    } patience;

    struct {                   /* agree.c; emit.c: told, named; link.c: a connection ends */
        struct sgp_beat ended; /* what the latest beat said */
        bool told;             /* on this connection that we are through with our rounds, */
        sgp_round named;       /* and which round is our last; 0: not yet */
    } end;

    struct { /* IN: seek.c, estimate.c; receive.c: it is over */
        uint32_t
            slot; /* receive slot set aside for the estimate that the peer was asked for; SGP_SLOT_NONE: it was not */
        bool filling;    /* `incoming` was announced and its payload is under way */
        sgp_round newer; /* it is to be of this label or a later one */
        sgp_time until;  /* then it is another one's turn */
        struct sgp_estimate incoming;
    } question;

    struct {             /* handing.c; estimate.c: refused */
        bool refused;    /* IN: the peer's */
        bool asks;       /* OUT: the peer wants ours, */
        sgp_round newer; /* of this label or a later one; */
        sgp_round holds; /* OUT: label of the copy that the peer has; SGP_ROUND_NONE: none */
        uint32_t slot;   /* the snapshot that is for it; SGP_SLOT_NONE: none yet */
        bool sent;
    } estimate;

    /* OUT: emit.c, outgoing.c; facts.c: the plan; share.c: the credit, answer_due; link.c: a connection ends */
    struct {
        sgp_round plan; /* the next round with this edge, from `plan_from` on */
        sgp_round plan_from;
        sgp_round announced[2]; /* the promises last stated */
        sgp_round pledged_from; /* the first that was stated since there was none */
        sgp_round credit[2];    /* the rounds of unused credits, or NONE */
        uint32_t left_out;      /* turns in a row without a share */
        bool answer_due;        /* the peer gave us a share that asks for one of ours */
    } giving;

    /* OUT: outgoing.c and role_token.c give it; share.c: sent; owed.c settles it; fold.c: refused; cycle.c: void; round.c: published; link.c: a
     * connection ends. What was given after it, before that was settled, has no weight. */
    struct sgp_owed owed[2];

    struct {             /* accounts.c; share.c: declined; link.c: a connection ends */
        bool declined;   /* OUT: on this connection the peer would not have our bequest */
        uint32_t handed; /* OUT: accounts sent before our bequest */
        uint32_t staged; /* that came on this connection; OUT: that the peer says have come */
        /* connections on which an heir was told of the link, and of its former lineage */
        uint64_t told_on[2];
    } bequest;

    struct {                  /* OUT: inquiry.c; greet.c, cycle.c: disputed */
        sgp_time unreachable; /* since then, while something is owed; NEVER: it is not */
        uint64_t disputed;    /* lineage to which our bequest was owed, if the peer has another */
        struct sgp_search search;
    } inquiry;

    struct
    { /* IN: receive.c, grant.c, share.c; fold.c: folds, spoiled; role_owner.c, cycle.c: latest; link.c: a connection ends */
        /* next_round and then_round of its pulse, or NONE; both frozen while a payload is under way */
        sgp_round promise[2];
        uint32_t slot[2]; /* granted for these, the first perhaps being filled; NONE: it is not */
        bool filling;     /* `incoming` was announced and its payload is under way */
        bool folds;       /* and is folded while it comes (fold.c); */
        bool spoiled;     /* or was, until x changed */
        sgp_time since;   /* when it began to come */
        struct sgp_share incoming;
        struct sgp_epoch epoch; /* of `incoming` */
        sgp_round latest;       /* last share accepted in the epoch in force; NONE: none */
    } receiving;

    struct { /* of shares: outgoing.c, role_token.c, share.c, owed.c; role_owner.c: late */
        uint64_t sent, received, returned;
        uint64_t late; /* IN: of those received, updates that came too late to be added */
    } count;

    struct {            /* role_owner.c; reload.c; estimate.c: held; watch.c: missed */
        sgp_round copy; /* IN, from an owner: label of the copy of its part; SGP_ROUND_NONE: none */
        sgp_round held; /* IN: that label, if the copy came on this connection and by this file */
        sgp_round given; /* IN, from an owner: the greatest from which an update was made */
        uint32_t
            base; /* OUT: snapshot of the copy from which the peer trains; SGP_SLOT_NONE: not kept */
        sgp_round label;     /* of that */
        uint32_t ahead;      /* IN: updates that were added of it, more than of the slowest */
        sgp_round staleness; /* IN: of the last that was added; SGP_ROUND_NONE: none was */
        bool
            missed; /* OUT: nothing of the peer came to the step that is closed, which it has to hear */
    } work;

    struct {             /* IN: likeness.c */
        uint64_t update; /* digest of the peer's latest training that it told; 0: none yet */
        bool matched;    /* another node's was the same, */
        uint32_t same;   /* so often in a row */
        double rate;     /* the peer's learning rate; 0: not known */
        uint32_t unlike; /* so often in a row it was none that this node had of late */
    } likeness;

    struct {                    /* IN: total.c */
        sgp_round round;        /* of this node when the source last said ... */
        sgp_round heavy, light; /* that; SGP_ROUND_NONE: never */
    } news;

    struct sgp_aside aside; /* IN: aside.c; link.c: the caller */
};

/* What goes to one neighbour in this turn. */
struct sgp_outgoing {
    struct sgp_core_link *link;
    double fraction;             /* of this node's mass before the turn */
    const struct sgp_edge *edge; /* of the file; NULL: the node chose, and gives of all values */
    bool asks;
    double bequest;
    struct sgp_slice slice;         /* of what goes; no values: the share is empty */
    enum sgp_compressor compressor; /* of that */
};

#define SGP_CORE_STAGED_MAX (2 * SGP_ACCOUNTS_MAX) /* by all neighbours together */
#define SGP_CORE_WINDOW 16u                        /* accounts on their way to an heir */
#define SGP_CORE_ACCOUNTS_MAX (SGP_ACCOUNTS_MAX + SGP_CORE_STAGED_MAX)

struct sgp_core_account {
    struct sgp_account account;
    uint32_t stager; /* who is about to leave it to us; SGP_SLOT_NONE: it is in force */
    double told;     /* staged, and no account: so many members whose mass never came, */
    double unknown;  /* or by how much the total may be off */
    uint32_t slot; /* of the share's snapshot; SGP_SLOT_NONE: it would come home by weight alone */
    double fraction;
    enum sgp_compressor compressor;
    uint64_t told_on; /* the connection on which an heir was told of it */
    struct sgp_search search;
};

/* The one question under way. Its answer is for the debt or the link to which just that share is still owed. */
struct sgp_inquiry {
    bool asked;
    struct sgp_account about; /* number 0: whatever is said is void */
    uint32_t whom;            /* SGP_SLOT_NONE: gone meanwhile */
    bool links;               /* some link owes what is asked about, if not now, then later */
    sgp_time until, next;
};

/* receive.c, grant.c, share.c, estimate.c, seek.c; node.c: absorbed */
enum sgp_receive_state {
    SGP_RECEIVE_FREE = 0,
    SGP_RECEIVE_GRANTED, /* to one source, or set aside for an estimate; its payload may be coming */
    SGP_RECEIVE_HELD,    /* accepted, and not absorbed yet */
    SGP_RECEIVE_ABSORBING, /* or being adopted */
};

struct sgp_receive { /* a receive slot */
    enum sgp_receive_state state;
    uint32_t peer;          /* node index of the source */
    struct sgp_share share; /* GRANTED: only its round, that of the credit */
    struct sgp_epoch epoch;
    bool counts;   /* HELD, an update: its step is closed; it counts for `share.fraction` */
    uint32_t base; /* it is compensated from that snapshot on; SGP_SLOT_NONE: it is not */
};

/* The share that is added to x while it comes: one at a time. fold.c; publish.c, round.c: published; emit.c: x changes */
struct sgp_folding {
    uint32_t snapshot; /* x is `keep` times that one; SGP_SLOT_NONE: it is not known to be */
    double keep;
    enum sgp_compressor compressor; /* of what was given of it */
    uint32_t pinned; /* the snapshot that a share is being added to; SGP_SLOT_NONE: none is */
    bool changed;    /* x has changed since */
    bool refusals;   /* came meanwhile, of what this node gave */
};

/* Exact cycles. cycle.c; epoch.c: epoch, heard, heeds; role_token.c: an epoch of its own; round.c: stop_by */
struct sgp_exact {
    struct sgp_epoch epoch; /* in force */
    struct sgp_epoch heard; /* the highest heard of; not below that in force */
    bool begun; /* this node has given in the present cycle, or seen others do: x is no estimate */
    uint32_t entry; /* snapshot: the vector that entered the cycle; NONE: none, or it is a relay */
    sgp_time stop_by; /* it stops at the end of the cycle, or then; NEVER: no such order */
    uint64_t renewed; /* cycles */
    uint32_t heeds; /* epochs that are still heeded, though the file has no exact cycles any more */
};

/* The estimate that was copied last for peers that ask. */
struct sgp_handing {
    uint32_t slot;   /* of the snapshot, */
    bool publishing; /* which is still being made */
    struct sgp_estimate estimate;
    /* Of an owner whose copies are coded: the label of the copy that its performer keeps, NONE:
     * there is none; and the snapshot of the change that made it, NONE: it is x. */
    sgp_round label;
    uint32_t change;
    struct sgp_estimate changed; /* how that change is announced */
};

/* A worker's copy of its owner's estimate, from which it trains. If parts have owners, each part is
 * of its owner's. */
struct sgp_copy {
    bool exists;      /* of all parts */
    sgp_round label;  /* the least of theirs */
    sgp_time since;   /* one was taken */
    sgp_round turn;   /* one past that which it took last */
    uint32_t updates; /* rounds of steps since, that a token has not taken up; of any role */
    bool curtailed;   /* the steps under way are to end, for they come too late */
};

/* Where owning is a token. */
struct sgp_token_state {
    uint32_t slot;  /* snapshot: the token if it is here, else this node's updates; NONE: neither */
    uint32_t told;  /* updates in that, while the token is away */
    bool of_record; /* it is here by the record of a former process */
    bool renewed;   /* an epoch began, and the token has not been here since */
    sgp_time quickest; /* the least time that the steps of a round took in this process, */
    uint32_t timed;    /* and how many rounds were timed, up to a bound */
};

/* Digests of trainings, and learning rates. */
#define SGP_CORE_UPDATES 64u /* that are remembered, of this node and its sources */
struct sgp_seen_update {
    uint32_t peer;
    uint64_t update; /* 0: there is none */
};
struct sgp_likeness {
    uint64_t update; /* of this node's latest training; 0: it changed nothing, or is not known */
    double rate;     /* and its learning rate; 0: not known */
    struct sgp_seen_update seen[SGP_CORE_UPDATES];
    uint32_t next;
    double rates[SGP_LIKENESS_ROUNDS];
    uint32_t next_rate;
};

/* The estimate that this node looks for, and whom it asks next; a worker of several owners, each of these. */
struct sgp_seeking {
    bool wants;
    uint32_t slot;  /* receive slot set aside for the next question, or SGP_SLOT_NONE */
    sgp_time until; /* SGP_TIME_NEVER before it may start */
    uint32_t turn;  /* of the in-links, the one to begin with when the next is chosen */
    uint32_t turns; /* how often one that was asked gave way to another */
};

/* The way out for good. */
struct sgp_leaving {
    bool wanted;           /* from the order on; on record */
    bool sent;             /* the bequest has left, so its heir may have accepted it */
    bool left;             /* it was accepted; on record */
    bool stopped;          /* the process shall end before that is known */
    sgp_time gather_from;  /* then its sources know that it does */
    sgp_time gather_until; /* until then it keeps what it has, and waits for more */
    uint32_t heir;         /* SGP_SLOT_NONE: none is up */
    sgp_time heir_until;   /* then it gives way to another, unless the bequest was sent to it */
    sgp_round round;       /* of the bequest */
    double weight;         /* that was handed over */
    double owed;           /* and, beside it, what absent ones were owed */
    uint64_t told_on[2]; /* connections on which an heir was told: what is not covered, not known */
    sgp_time since;      /* it drains */
    sgp_time until;      /* what comes is answered till then at least */
    sgp_time patience;   /* once it has left: payloads under way are waited for till then */
};

/* The end of this node's rounds. */
struct sgp_ending {
    sgp_round mixes; /* greatest last round named or asked for, as estimates differed; 0: none */
    uint32_t asked;  /* how often in a row by this node, */
    double apart;    /* and how far the furthest was then, relative */
    bool sketching;  /* the SKETCH job is under way, */
    bool spoiled;    /* and one behind it changes the estimate */
    bool fresh;      /* `sketch` is that of the estimate at the end of the queue of jobs, */
    bool empty;      /* but says nothing */
    bool judges;     /* something that was said is not judged yet */
    struct sgp_sketch sketch;
};

enum sgp_set {       /* of links; `touched` ones count as members of all */
    SGP_SET_TOUCHED, /* in this step */
    SGP_SET_OWING,
    SGP_SET_ASKING,
    SGP_SET_TO_ANSWER,
    SGP_SET_NEAR,           /* IN: promised for the next round or before */
    SGP_SET_WITHOUT_BUFFER, /* IN: up, and it may be granted one now */
    SGP_SET_ENDING,         /* connected, and no edge of the file any more */
    SGP_SET_COUNT,
};

/* What all links depend on. */
struct sgp_facts {
    enum sgp_node_state state;
    bool drained, leaving, left, chooses, pledges, grants_all;
    uint32_t heir;
    sgp_round bequest_round, last, named;
    sgp_round round, from; /* the round, and that of the next turn */
};

struct sgp_roster {
    uint32_t words;         /* of a set */
    uint32_t first_due;     /* the link on which something is due first */
    uint64_t *sets;         /* bit by link */
    sgp_time *due;          /* by link: when something is due on it */
    sgp_round *promised;    /* by link: IN: for later than the next round; else SGP_ROUND_MAX */
    uint32_t *peers;        /* by link */
    struct sgp_facts facts; /* as last noticed */
};

/* The arrays of a node which the file of that name makes; who has to do with an entry writes it. */
struct sgp_layout {
    uint32_t link_count, out_count;
    struct sgp_core_link *links; /* out-links by peer, then in-links by peer */
    struct sgp_roster roster;
    uint32_t snapshot_count, receive_count;
    uint32_t share_parts, slices; /* as in struct sgp_node_needs */
    uint32_t *snapshot_users;     /* shares and jobs that need the snapshot */
    struct sgp_receive *receives;
    struct sgp_outgoing *outgoing; /* room for every out-link */
};

struct sgp_node {
    struct sgp_node_config config;
    const struct sgp_role *roles[2]; /* role.c: outside exact cycles and within one; */
    const struct sgp_role *role;     /* facts.c: that of the round */
    struct sgp_random random;
    sgp_time now;
    struct sgp_effects *effects; /* during a step only */
    bool again;                  /* more can be done at once: ask for a tick now */
    bool changed;                /* tell all peers by a beat at the end of this step */
    bool unrecorded;             /* this step changed what a record holds */

    /* round.c, leave.c, by emit.c */
    enum sgp_node_state state; /* JOINING, TRAINING, SETTLING, FINISHED or DRAINING */
    bool paused;               /* over any of the first three */
    bool drained;
    sgp_time drain_until;
    enum sgp_stage stage;
    sgp_time stage_since;

    /* round.c; facts.c: the round; outgoing.c: gave; share.c: bandwidth_bound; cycle.c and role_token.c: a cycle, or the last lap, begins elsewhere */
    sgp_round round;
    sgp_time round_since;
    bool gave, trained;   /* in this round already */
    sgp_round passes;     /* times that it gave in it, beyond the first (sgp_core_passes_on_at) */
    sgp_time passed;      /* when it did so last; */
    sgp_time waits;       /* and since when it waits in this round */
    bool received_share;  /* a share with mass has come since the round before ended */
    bool bandwidth_bound; /* the last share took more than half of the time since the round began */
    uint64_t jumps;

    struct {             /* greet.c, round.c; cycle.c: heard */
        sgp_round ends;  /* greatest count of training rounds heard of */
        bool endless;    /* its own end is open, or was */
        sgp_round stop;  /* least early stop heard of, or NONE */
        sgp_round asked; /* least early stop that this node asked for, or NONE */
        sgp_round heard; /* no round heard of is beyond this one */
    } fleet;

    struct {             /* pace.c; round.c: begun, steps */
        sgp_round round; /* when its own pace began to be measured */
        sgp_time since;
        sgp_time each;  /* a round of its own on the mean, when its steps were done; 0: not known */
        sgp_time begun; /* when the steps of its round began, */
        sgp_time steps; /* and how long the last ones took; 0: not known */
        bool idle;      /* the round of mixing before neither gave nor received a share */
        sgp_time together; /* a round with others, on the mean of so many of late */
        sgp_round together_rounds;
    } pace;

    struct
    { /* reload.c, record.c: rounds that train, before a round: they are counted from here on */
        sgp_round round, count;
    } turns;

    struct sgp_exact exact;
    struct sgp_copy copy; /* role_worker.c, role_token.c; round.c: the turn, curtailed, updates */
    struct sgp_token_state token; /* role_token.c */

    struct {            /* mass.c alone */
        double weight;  /* w of z = x / w, at the end of the queue of jobs */
        double held;    /* of shares that were accepted and not absorbed, */
        double owed;    /* of those that links owe, */
        double debt;    /* and of debts in force: by postings; what decides is summed up anew */
        double surplus; /* members that left their mass to this node, not dissolved yet */
        double covered; /* of these, those whose mass has come: it may be dissolved */
        double unknown; /* the total is off by so much at most: an outdated record, or a lie */
        double members_most; /* the most that a file of this node has named */
        double due;          /* what came from outside less what went there: all four together */
    } mass;

    struct {                    /* total.c; outgoing.c: kept */
        bool excess;            /* weight was made somewhere, and this node heals that */
        sgp_round calm_from;    /* it has scaled nothing since */
        sgp_round counted;      /* the round that was counted last */
        sgp_round heavy, light; /* rounds in a row in which all heard of had too much, too little */
        double left;            /* weight after its last turn, */
        double kept;            /* part of its weight that it did not give in its last turn */
        sgp_time quiet_until;   /* until then it is not told again */
    } total;

    struct { /* outgoing.c; publish.c, round.c: published; role_token.c: a hand-over */
        bool starving;
        bool nothing;                   /* was given in its last turn, for it starves */
        sgp_time starves_since;         /* the first time of those that are told as one, */
        sgp_time starves_until;         /* of which is the next, if it comes before this */
        sgp_time quiet_until;           /* until then that is not told again */
        uint32_t count;                 /* of the outgoing shares of this turn */
        uint32_t slot;                  /* of the PUBLISH jobs under way, */
        uint32_t jobs;                  /* and how many there are */
        enum sgp_compressor compressor; /* of this turn's shares */
    } giving;

    struct sgp_folding folding; /* fold.c, publish.c, emit.c */

    struct {                              /* accounts.c */
        uint32_t count;                   /* in force and staged; the oldest first */
        uint32_t staged, debts;           /* of these; debts in force */
        struct sgp_core_account *entries; /* SGP_CORE_ACCOUNTS_MAX */
    } accounts;

    struct
    { /* record.c, round.c, role_token.c; receive.c, estimate.c: fresh; outdated.c: outdated */
        bool recorded;     /* made from a record, */
        bool outdated;     /* which neighbours know to be an old one */
        bool another_file; /* that record was made with another topology file */
        bool restored;     /* comes to a fleet under way, and has not begun a round there */
        bool fresh;        /* x is of round 0 */
    } past;

    struct sgp_layout layout;
    struct sgp_leaving leaving;   /* leave.c; accounts.c, share.c: the bequest's end; reload.c */
    struct sgp_ending ending;     /* agree.c; emit.c: spoiled */
    struct sgp_inquiry inquiry;   /* inquiry.c; accounts.c: a reload */
    struct sgp_handing handing;   /* handing.c */
    struct sgp_seeking seeking;   /* seek.c, estimate.c, receive.c; reload.c */
    struct sgp_likeness likeness; /* likeness.c */
};

#endif
