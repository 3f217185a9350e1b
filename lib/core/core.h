/* The inside of the node: its structures, and what its files ask of each other.
 *
 * Its files stand on floors, the highest first. Each calls downward alone (tests/walls/walls.py):
 *
 *   node.c     create, step (an event to its handler), deadline
 *   reload.c   another topology, in the middle of everything
 *   inspect.c  what status shows
 *
 *   round.c    the stages of a round, start, pause, end
 *   watch.c    who is silent, who is dialled, to whom a beat is due, and when
 *
 *   leave.c    leaving, for good or for now
 *
 *   aside.c    a connection that comes while another of its source stands
 *
 *   message.c  each message to its file
 *   grant.c    who gets a receive buffer
 *   seek.c     asking sources for their estimate
 *
 *   link.c     hearing a neighbour; connections that begin and end
 *   greet.c    who is at the other end, and whether it trains the same
 *   inquiry.c  who is asked about what is owed to one that cannot be reached
 *   record.c   what survives the process, and a node made from it
 *
 *   share.c    accepting, sending, settling
 *   gift.c     to whom this turn's mass goes, and how much
 *   estimate.c estimates that come, and that are handed out
 *
 *   accounts.c what an heir answers for, and how it is handed over
 *
 *   mass.c     what a node has and is owed, and what comes home
 *
 *   receive.c  receive buffers, and absorbing
 *   agree.c    whether neighbours hold one model at the end
 *   outdated.c what both ends of a link remember, and where one of them remembers less
 *   patience.c how long one that is heard may keep the node waiting
 *   pace.c     how fast the node is beside its neighbours
 *
 *   emit.c     effects, notes, messages, states
 *   layout.c   which links and how many buffers under a topology
 *
 *   facts.c    what follows from how a node and its links stand
 *
 *   roster.c   which links have something to do, so that nobody looks at all of them
 *   restart.c  what the next process relies on, of the record and of a checkpoint
 *   payload.c  which payloads are nonsense
 *   words.c, method.c  names, and the table of methods
 *
 * One invariant rules: `weight` + held + owed changes by nothing but what crosses a link. */
#ifndef SGP_CORE_H
#define SGP_CORE_H

#include "sgp/node.h"

/* Where a node stands inside a round. */
enum sgp_stage {
    SGP_STAGE_IDLE = 1,   /* joining, finished or draining */
    SGP_STAGE_BEGIN,      /* a round is about to start */
    SGP_STAGE_TRAIN,      /* the TRAIN job is under way */
    SGP_STAGE_CREDIT,     /* waits until it may give */
    SGP_STAGE_PUBLISHING, /* the PUBLISH job is under way */
    SGP_STAGE_GATHER,     /* waits for promised shares */
    SGP_STAGE_END,        /* all rounds done; waits for acknowledgements and agreement; finished */
};

/* A share that this node gave and has not seen acknowledged. At most one a link. */
struct sgp_owed {
    bool exists;
    bool sent;       /* on the present connection */
    bool told;       /* on any: it may have been accepted */
    bool publishing; /* its snapshot is still being made */
    sgp_time since;  /* it was sent, */
    sgp_time spent;  /* and so long it was under way on connections before */
    bool lost;       /* of a former process: it is not sent again, only settled or taken back */
    uint32_t slot;   /* of the snapshot; SGP_SLOT_NONE for an empty share */
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

struct sgp_core_link {
    uint32_t peer;
    enum sgp_direction direction;
    enum sgp_link_state state; /* CONNECTING: dialled, or not greeted yet */
    uint64_t connection;       /* 0 while there is none */
    sgp_time since;            /* of the present state */
    sgp_time redial;           /* OUT, DOWN: when to dial; NEVER if not wanted */
    sgp_time backoff;
    sgp_time said; /* when anything was last sent */

    /* What is heard, on this link alone: hearing a peer on one says nothing about the other. */
    sgp_time heard;      /* SGP_TIME_NEVER before the first time */
    sgp_time longest[2]; /* longest silence of the present and the previous window of 32 */
    uint32_t intervals;  /* in the present window */
    bool absent;
    bool trained;  /* it was seen training, or far behind: if it joins, nobody waits for it */
    bool retired;  /* no edge of the file any more */
    bool met;      /* it has greeted since this process knows the link */
    bool recorded; /* the link was on record */
    struct sgp_pulse pulse; /* the latest; state 0 before the first */
    struct sgp_beat ended;  /* what the latest beat said */
    bool ended_told;        /* ours said on this connection that we are through with our rounds */
    bool mismatch;
    bool other_data; /* both take parts of a table, and it is not one */
    int last_error;
    enum sgp_reason last_reason;
    uint64_t lineage; /* of the peer */
    uint64_t shares_sent, shares_received, shares_returned;

    sgp_round pace_round; /* of the peer when its pace began to be measured */
    sgp_time pace_since;
    sgp_time round_since; /* the peer's round and state have been the same */
    sgp_time longest_round;
    sgp_round furthest;      /* round of the peer that led to what it is waited for, */
    sgp_time furthest_since; /* and since when */
    bool overdue;            /* that is longer ago than this node waits */

    bool barren; /* IN: its estimate was refused */
    bool asks;   /* OUT: the peer wants our estimate */

    /* OUT */
    sgp_round credit; /* the round of an unused credit, or NONE */
    sgp_round plan;   /* the next round with this edge, from `plan_from` on */
    sgp_round plan_from;
    sgp_round announced;   /* the promise last stated */
    uint64_t number;       /* of the last share given */
    uint64_t acknowledged; /* of the last that the peer says it accepted; 0: none yet */
    uint32_t left_out;     /* turns in a row without a share, for want of a credit */
    bool answer_due;       /* the peer gave us a share that asks for one of ours */
    bool declined;         /* on this connection the peer would not have our bequest */
    uint32_t handed;       /* accounts sent before our bequest */
    sgp_time unreachable; /* since when it has been so, while something is owed; NEVER: it is not */
    uint64_t disputed; /* the lineage to which our bequest was owed, if the peer has another now */
    struct sgp_search search;
    struct sgp_owed owed;

    uint32_t staged; /* accounts that came on this connection; OUT: that the peer says have come */
    uint64_t
        told_on[2]; /* connections on which an heir was told of it, and of its former lineage */

    /* IN */
    sgp_round promise; /* frozen while a payload is under way */
    uint64_t accepted; /* number of the last accepted share of `lineage` */
    bool brought;      /* any of these had weight; true if that is not known */
    uint64_t former_lineage, former_accepted; /* the same of the last other one that brought any */
    uint32_t slot;                            /* granted, or being filled; NONE if neither */
    bool filling; /* `incoming` was announced and its payload is under way */
    sgp_time filling_since;
    sgp_time window_since; /* of the payload under way: then ... */
    uint64_t window_bytes; /* ... so much of it had come */
    bool trickles; /* IN: a payload came too slowly, and none has come whole since; OUT: what is
                              owed was not acknowledged in the time that it may take */
    struct sgp_share incoming;
    struct sgp_aside aside;
};

/* What goes to one neighbour in this turn. */
struct sgp_gift {
    struct sgp_core_link *link;
    double fraction; /* of this node's mass before the turn */
    bool asks;
    double bequest;
};

#define SGP_CORE_STAGED_MAX (2 * SGP_ACCOUNTS_MAX) /* by all neighbours together */
#define SGP_CORE_ACCOUNTS_MAX (SGP_ACCOUNTS_MAX + SGP_CORE_STAGED_MAX)

struct sgp_core_account {
    struct sgp_account account;
    uint32_t stager; /* who is about to leave it to us; SGP_SLOT_NONE: it is in force */
    double told;     /* staged alone: members, and no account; */
    double unknown;  /* the same: by how much the total may be off */
    uint32_t slot; /* of the share's snapshot; SGP_SLOT_NONE: it would come home by weight alone */
    double fraction;
    uint64_t told_on; /* the connection on which an heir was told of it */
    struct sgp_search search;
};

/* The one question under way. Its answer is for the debt or the link to which just that share is still owed. */
struct sgp_inquiry {
    bool asked;
    struct sgp_account about; /* number 0: whatever is said is void */
    uint32_t whom;            /* SGP_SLOT_NONE: gone meanwhile */
    sgp_time until, next;
};

enum sgp_receive_state {
    SGP_RECEIVE_FREE = 0,
    SGP_RECEIVE_GRANTED,
    SGP_RECEIVE_HELD,
    SGP_RECEIVE_ABSORBING
};

struct sgp_receive { /* a receive slot */
    enum sgp_receive_state state;
    uint32_t peer; /* node index of the source */
    struct sgp_share share;
};

/* The estimate that is being handed to a peer: one at a time. */
struct sgp_handing {
    uint32_t peer; /* SGP_SLOT_NONE: it went away meanwhile, or there is none */
    uint32_t slot; /* of the snapshot; SGP_SLOT_NONE: there is none */
    bool publishing;
    bool sent;
    struct sgp_estimate estimate;
};

/* The estimate that this node looks for while it is joining. */
struct sgp_seeking {
    bool wants;
    uint32_t asked;       /* the source that was asked, SGP_SLOT_NONE: nobody */
    uint32_t slot;        /* receive slot set aside, or SGP_SLOT_NONE */
    bool filling;         /* `incoming` was announced and its payload is under way */
    sgp_time until;       /* SGP_TIME_NEVER before it may start */
    sgp_time asked_until; /* then it is another one's turn */
    uint32_t turn;        /* of the in-links, the one to begin with when the next is chosen */
    uint32_t turns;       /* how often one that was asked gave way to another */
    struct sgp_estimate incoming;
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
    uint64_t
        told_on[2]; /* the connection on which an heir was told of what is not covered, not known */
    sgp_time since; /* it drains */
    sgp_time until; /* what comes is answered till then at least */
    sgp_time patience; /* once it has left: payloads under way are waited for till then */
};

/* The end of this node's rounds. */
struct sgp_ending {
    sgp_round
        mixes; /* the greatest last round that was asked for, since estimates differed; 0: none */
    uint32_t asked; /* how often in a row by this node, */
    double apart;   /* and how far the furthest was then, relative */
    bool sketching; /* the SKETCH job is under way, */
    bool spoiled;   /* and one behind it changes the estimate */
    bool fresh;     /* `sketch` is that of the estimate at the end of the queue of jobs, */
    bool empty;     /* but says nothing */
    bool judges;    /* something that was said is not judged yet */
    struct sgp_sketch sketch;
};

enum sgp_set {       /* of links; `touched` ones count as members of all */
    SGP_SET_TOUCHED, /* in this step */
    SGP_SET_OWING,
    SGP_SET_ASKING,
    SGP_SET_TO_ANSWER,
    SGP_SET_NEAR,           /* IN: promised for the next round or before */
    SGP_SET_WITHOUT_BUFFER, /* IN: up, and its share may come before it has one */
    SGP_SET_ENDING,         /* connected, and no edge of the file any more */
    SGP_SET_COUNT,
};

/* What all links depend on. */
struct sgp_facts {
    enum sgp_node_state state;
    bool drained, leaving, left, chooses, pledges;
    uint32_t heir;
    sgp_round bequest_round, last;
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

/* The arrays of a node. */
struct sgp_layout {
    uint32_t link_count, out_count;
    struct sgp_core_link *links;
    struct sgp_roster roster;
    uint32_t snapshot_count, receive_count;
    uint32_t *snapshot_users;
    struct sgp_receive *receives;
    struct sgp_gift *gifts; /* room for every out-link */
};

/* What a handler thinks of the sender of a message. The dispatcher carries it out (message.c). */
struct sgp_verdict {
    int code; /* SGP_E_*, with which its connection ends; 0: all is well */
    enum sgp_reason reason;
    bool refuses; /* nothing is to do with it at all */
};

static inline struct sgp_verdict sgp_fine(void)
{
    return (struct sgp_verdict){.code = 0};
}

static inline struct sgp_verdict sgp_hangs_up(int code, enum sgp_reason reason)
{
    return (struct sgp_verdict){.code = code, .reason = reason};
}

static inline struct sgp_verdict sgp_refuses(int code, enum sgp_reason reason)
{
    return (struct sgp_verdict){.code = code, .reason = reason, .refuses = true};
}

struct sgp_node {
    struct sgp_node_config config;
    struct sgp_random random;
    sgp_time now;
    struct sgp_effects *effects; /* during a step only */

    enum sgp_node_state state; /* JOINING, TRAINING, SETTLING, FINISHED or DRAINING */
    bool paused;               /* over any of the first three */
    bool changed;              /* tell all peers by a beat at the end of this step */
    bool again;                /* more can be done at once: ask for a tick now */
    bool starving;
    sgp_time starving_quiet; /* until then it is not told again */
    bool drained;
    enum sgp_stage stage;
    sgp_time drain_until;
    sgp_time stage_since;

    sgp_round round;
    sgp_time round_since;
    bool thin;       /* the share that came last took more than half of the round to come */
    bool gave;       /* in this round already */
    sgp_round ends;  /* greatest count of training rounds heard of */
    sgp_round stop;  /* least early stop heard of, or NONE */
    sgp_round heard; /* no round heard of is beyond this one */
    uint64_t jumps;

    sgp_round pace_round; /* when its own pace began to be measured */
    sgp_time pace_since;

    double weight;       /* w of z = x / w, at the end of the queue of jobs */
    double surplus;      /* members that left their mass to this node, not dissolved yet */
    double unknown;      /* by which the total may be off at most, since records were outdated */
    bool outdated;       /* that of this process was */
    double covered;      /* of these, those whose mass has come: it may be dissolved */
    double members_most; /* the most that a file of this node has named */
    struct sgp_leaving leaving;
    struct sgp_ending ending;

    uint32_t link_count, out_count;
    struct sgp_core_link *links; /* out-links by peer, then in-links by peer */
    struct sgp_roster roster;
    uint32_t snapshot_count, receive_count;
    uint32_t *snapshot_users; /* shares and jobs that need the snapshot */
    struct sgp_receive *receives;
    uint32_t account_count;            /* in force and staged; the oldest first */
    uint32_t staged_count, debt_count; /* of these; debts in force */
    struct sgp_core_account *accounts; /* SGP_CORE_ACCOUNTS_MAX */
    struct sgp_inquiry inquiry;
    uint32_t gift_count;
    struct sgp_gift *gifts; /* of this turn */
    uint32_t publish_slot;  /* of the PUBLISH job under way */

    bool recorded;   /* made from a record */
    bool restored;   /* comes to a fleet under way, back or new, and has not begun a round there */
    bool trained;    /* in this round already */
    bool unrecorded; /* this step changed what a record holds */
    struct sgp_handing handing;
    struct sgp_seeking seeking;
};

/* roster.c */
int sgp_core_roster_init(struct sgp_roster *roster, uint32_t link_count); /* 0 or -ENOMEM */
void sgp_core_roster_finish(struct sgp_roster *roster);
/* The first link from `from` on that is in the set, or link_count. What is touched on the way is seen. */
uint32_t sgp_core_next(const struct sgp_node *node, enum sgp_set set, uint32_t from);
void sgp_core_touch(struct sgp_node *node, const struct sgp_core_link *link);
void sgp_core_touch_all(struct sgp_node *node);
void sgp_core_touch_due(struct sgp_node *node);     /* those on which something is due */
sgp_time sgp_core_due(const struct sgp_node *node); /* the earliest of all links */

/* facts.c: the node */
enum sgp_node_state sgp_core_state(const struct sgp_node *node); /* with PAUSED */
bool sgp_core_state_is_active(enum sgp_node_state state);
bool sgp_core_active(const struct sgp_node *node);      /* takes part in rounds, or is about to */
bool sgp_core_at_own_pace(const struct sgp_node *node); /* never waits for a share */
bool sgp_core_has_own_buffers(const struct sgp_node *node); /* one for each in-link */
sgp_round sgp_core_overlap(const struct sgp_node *node);    /* how old a promise may be, now */
sgp_round sgp_core_train_end(const struct sgp_node *node);  /* the fleet's; one past */
sgp_round sgp_core_last(const struct sgp_node *node);       /* one past the last round of mixing */
#define SGP_MIXING_CYCLES_MAX 1000 /* after the last training round that anybody knows of */
/* Whatever the file: of the longest cycle, after final_cycles as many again. */
#define SGP_MIXING_ROUNDS_MAX                                                                      \
    ((sgp_round)2 * SGP_MIXING_CYCLES_MAX * SGP_PHASES_MAX * SGP_PHASE_ROUNDS_MAX)
sgp_round sgp_core_mixing_end(const struct sgp_node *node); /* by its own file; not beyond that */
sgp_round sgp_core_far_ahead(const struct sgp_node *node);  /* rounds that cannot be chance */
bool sgp_core_computes(const struct sgp_node *node);        /* a job of the round is under way */
bool sgp_core_chooses(const struct sgp_node *node, sgp_round round); /* itself, not the file */
bool sgp_core_says_ended(const struct sgp_node *node);
/* a link */
struct sgp_core_link *sgp_core_find(
    struct sgp_node *node, uint32_t peer, enum sgp_direction direction);
bool sgp_core_rejoining(const struct sgp_core_link *link);
bool sgp_core_peer_active(const struct sgp_core_link *link); /* heard, present, takes part */
bool sgp_core_living(const struct sgp_core_link *link);      /* up, and past joining */
sgp_time sgp_core_silence(const struct sgp_core_link *link); /* its bound */
bool sgp_core_is_late(const struct sgp_core_link *link);     /* heard, and not waited for */
bool sgp_core_is_waited_for(const struct sgp_core_link *link);
/* leaving for good */
bool sgp_core_gathers(const struct sgp_node *node);  /* keeps what it has, to leave with more */
bool sgp_core_has_gone(const struct sgp_node *node); /* takes no mass any more */
bool sgp_core_is_heir(const struct sgp_node *node, const struct sgp_core_link *link);
struct sgp_core_link *sgp_core_bequest(const struct sgp_node *node);
bool sgp_core_is_pledged(const struct sgp_node *node, const struct sgp_core_link *link);
/* shares */
bool sgp_core_covers(const struct sgp_node *node, sgp_round granted, sgp_round round);
bool sgp_core_credit_holds(const struct sgp_node *node, sgp_round old, sgp_round new);
sgp_round sgp_core_promise(struct sgp_node *node, struct sgp_core_link *link);
bool sgp_core_answer_due(struct sgp_node *node, uint32_t peer);
bool sgp_core_is_kept(
    struct sgp_node *node, const struct sgp_receive *receive); /* for its answer */
const struct sgp_core_link *sgp_core_awaited(const struct sgp_node *node);
void sgp_core_notice(struct sgp_node *node); /* touch those whom a change of the facts concerns */

/* emit.c */
struct sgp_effect *sgp_core_emit(struct sgp_node *node, enum sgp_effect_type type);
struct sgp_effect *sgp_core_note(struct sgp_node *node, enum sgp_note note, uint32_t peer);
struct sgp_message *sgp_core_send(
    struct sgp_node *node, struct sgp_core_link *link, enum sgp_message_type type);
void sgp_core_say_goodbye(
    struct sgp_node *node, const struct sgp_link *id, int code, enum sgp_reason reason);
void sgp_core_enter(struct sgp_node *node, enum sgp_stage stage);
void sgp_core_become(struct sgp_node *node, enum sgp_node_state state);

/* layout.c */
enum {                /* of a peer */
    SGP_MARK_OUT = 1, /* an edge of the file leads to it */
    SGP_MARK_IN = 2,
    SGP_MARK_KEPT_OUT = 4, /* a link of a former file did */
    SGP_MARK_KEPT_IN = 8,
    SGP_MARK_OWES = 16, /* on that, a snapshot is owed */
};
/* Make the arrays of node `self`: links for the edges of the file and for what `marks` (one for each
 * node, by peer) keeps, all of them down, and no fewer snapshots and receives than `least`. 0 or
 * -ENOMEM. */
int sgp_core_lay_out(const struct sgp_topology *topology, uint32_t self,
    const struct sgp_method *method, unsigned char *marks, const struct sgp_node_needs *least,
    struct sgp_layout *ret_layout);
void sgp_core_layout_finish(struct sgp_layout *layout);
void sgp_core_layout_needs(const struct sgp_layout *layout, struct sgp_node_needs *ret_needs);
void sgp_core_swap_layout(struct sgp_node *node, struct sgp_layout *layout);

/* pace.c */
void sgp_core_pace_begin(struct sgp_node *node);
void sgp_core_pace_hear(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_pulse *pulse);
double sgp_core_pace(const struct sgp_node *node); /* by which the learning rate is multiplied */

/* patience.c */
void sgp_core_payload_begins(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_payload_came(struct sgp_node *node, struct sgp_core_link *link, uint64_t bytes);
sgp_time sgp_core_payload_end(const struct sgp_core_link *link); /* unless more of it comes */
void sgp_core_payload_trickles(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_round_hear(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_pulse *pulse);
bool sgp_core_is_slow(const struct sgp_node *node, const struct sgp_core_link *link);
sgp_time sgp_core_overdue_at(const struct sgp_node *node, const struct sgp_core_link *link);
sgp_time sgp_core_acknowledged_by(const struct sgp_core_link *link);
void sgp_core_lose_patience(struct sgp_node *node, struct sgp_core_link *link); /* if it is time */

/* outdated.c */
#define SGP_NUMBER_MAX ((uint64_t)1 << 62) /* of a share; more were never given */
/* The number after the last accepted, and so many that came home: one a millisecond for 34 years. */
#define SGP_NUMBER_GAP_MAX ((uint64_t)1 << 40)
/* The source greets. */
void sgp_core_know_source(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_hello *hello);
/* The target has accepted so many. False: it cannot have. Before settling. */
bool sgp_core_know_target(struct sgp_node *node, struct sgp_core_link *link, uint64_t accepted);

/* receive.c */
void sgp_core_unreserve(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_take_promise(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_set_aside(struct sgp_node *node); /* a buffer for an estimate, if one is free */
void sgp_core_want(struct sgp_node *node);
double sgp_core_held(const struct sgp_node *node);
void sgp_core_absorb_until(struct sgp_node *node, sgp_round round);
void sgp_core_absorb_from(struct sgp_node *node, uint32_t peer);

/* agree.c */
bool sgp_core_agrees(struct sgp_node *node); /* at its last round; true: it may finish, or has */
void sgp_core_sketched(struct sgp_node *node, const struct sgp_sketch *sketch);
void sgp_core_met(struct sgp_node *node, struct sgp_core_link *link); /* both have greeted */
struct sgp_verdict sgp_core_beat(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_beat *beat);
/* Whom the end waits for, or NULL. */
const struct sgp_core_link *sgp_core_not_ended(const struct sgp_node *node);
/* |z - z'|, and that by the longer of the two; both NaN if not known. */
double sgp_core_distance(
    const struct sgp_node *node, const struct sgp_core_link *link, double *ret_relative);
bool sgp_core_disagrees(const struct sgp_node *node, const struct sgp_core_link *link);

/* mass.c */
bool sgp_core_is_debt(const struct sgp_core_account *entry); /* in force */
double sgp_core_debts(const struct sgp_node *node);
double sgp_core_owed(const struct sgp_node *node); /* these, and what links owe */
double sgp_core_weight_most(
    const struct sgp_node *node); /* what any node can have, as far as known */
void sgp_core_grow(struct sgp_node *node, double weight);
void sgp_core_take_back(struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason);

/* accounts.c */
double sgp_core_staged_debts(const struct sgp_node *node, uint32_t stager);
struct sgp_verdict sgp_core_stage(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_bequeath *bequeath);
bool sgp_core_has_places(struct sgp_node *node, uint32_t stager); /* for all that it staged */
void sgp_core_unstage(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_inherit(struct sgp_node *node, struct sgp_core_link *link);
bool sgp_core_has_handed(struct sgp_node *node, const struct sgp_core_link *heir);
void sgp_core_hand_accounts(struct sgp_node *node);
struct sgp_verdict sgp_core_staged(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_answer *answer);
void sgp_core_bequest_accepted(struct sgp_node *node, const struct sgp_core_link *link);
void sgp_core_copy_name(char to[SGP_NAME_BYTES], const char *from); /* into zeroes */
bool sgp_core_let_go(struct sgp_node *node); /* of the snapshot of a debt; false: of none */
bool sgp_core_dispute(struct sgp_node *node, struct sgp_core_link *link);
bool sgp_core_keep_pledged(struct sgp_node *node, struct sgp_core_link *link); /* its link goes */
void sgp_core_drop_account(struct sgp_node *node, uint32_t index);
void sgp_core_take_home(struct sgp_node *node, uint32_t index);
void sgp_core_move_accounts(struct sgp_node *node, const struct sgp_topology *topology,
    const uint32_t *index); /* a reload */
void sgp_core_restore_accounts(struct sgp_node *node, const struct sgp_record *record);
/* Whether this node itself knows what it accepted last from a source of that name and lineage. */
bool sgp_node_accepted(const struct sgp_node *node, const char *source, uint64_t lineage,
    uint64_t number, bool *ret_open, uint64_t *ret_accepted);

/* gift.c */
bool sgp_core_give(struct sgp_node *node); /* false: must wait */
const struct sgp_core_link *sgp_core_cannot_give(
    struct sgp_node *node, enum sgp_waiting *ret_waiting);
void sgp_core_forget_answers(struct sgp_node *node);
bool sgp_core_give_all(struct sgp_node *node, struct sgp_core_link *heir, sgp_round round);

/* share.c */
struct sgp_verdict sgp_core_share(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_share *share);
struct sgp_verdict sgp_core_payload(struct sgp_node *node, struct sgp_core_link *link, int code);
void sgp_core_credit(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_credit *credit);
struct sgp_verdict sgp_core_ack(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_ack *ack);
void sgp_core_settle(
    struct sgp_node *node, struct sgp_core_link *link, uint64_t accepted, bool forgot);
void sgp_core_accepted_by_peer(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_send_owed(struct sgp_node *node);

/* estimate.c */
struct sgp_verdict sgp_core_estimate(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_estimate *estimate);
struct sgp_verdict sgp_core_estimate_payload(
    struct sgp_node *node, struct sgp_core_link *link, int code);
void sgp_core_ask(struct sgp_node *node, struct sgp_core_link *link, const struct sgp_ask *ask);
void sgp_core_copied(struct sgp_node *node);
void sgp_core_hand_out(struct sgp_node *node);
void sgp_core_estimate_down(struct sgp_node *node, struct sgp_core_link *link);

/* inquiry.c */
void sgp_core_inquire(struct sgp_node *node);
void sgp_core_answered(struct sgp_node *node, const struct sgp_message *message);
sgp_time sgp_core_inquiry_deadline(const struct sgp_node *node);

/* record.c */
void sgp_core_restore(struct sgp_node *node, const struct sgp_record *record);

/* greet.c */
/* What is wrong with a pulse: NONE, RANGE or ROUNDS. */
enum sgp_reason sgp_core_judge_pulse(const struct sgp_node *node, const struct sgp_pulse *pulse);
/* What is wrong with a greeting; NONE: nothing. */
enum sgp_reason sgp_core_judge(
    const struct sgp_node *node, const struct sgp_pulse *pulse, const struct sgp_hello *hello);
void sgp_core_believe(struct sgp_node *node, struct sgp_core_link *link);
struct sgp_verdict sgp_core_hello(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_hello *hello);
struct sgp_verdict sgp_core_welcome(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_welcome *welcome);

/* link.c */
struct sgp_verdict sgp_core_hear(struct sgp_node *node, struct sgp_core_link *link,
    const struct sgp_pulse *pulse); /* NULL: part of a payload */
void sgp_core_hang_up(
    struct sgp_node *node, struct sgp_core_link *link, int code, enum sgp_reason reason);
/* Have nothing to do with a peer, which then counts as never heard. */
void sgp_core_refuse(
    struct sgp_node *node, struct sgp_core_link *link, int code, enum sgp_reason reason);
void sgp_core_up(struct sgp_node *node, const struct sgp_link *id);
void sgp_core_down(struct sgp_node *node, struct sgp_core_link *link, int code);
void sgp_core_goodbye(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_goodbye *goodbye);

/* message.c */
void sgp_core_message(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_message *message);
void sgp_core_came(struct sgp_node *node, struct sgp_core_link *link, int code); /* a payload */

/* grant.c */
void sgp_core_grant(struct sgp_node *node);

/* seek.c */
bool sgp_core_seeks(struct sgp_node *node); /* true: do not start yet */
void sgp_core_seek(struct sgp_node *node);

/* aside.c */
void sgp_core_aside(struct sgp_node *node, const struct sgp_event *event); /* of no link's own */
void sgp_core_let_in(struct sgp_node *node, struct sgp_core_link *link);   /* if it is time */
void sgp_core_end_aside(struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason);
sgp_time sgp_core_aside_deadline(const struct sgp_core_link *link);

/* leave.c */
void sgp_core_leave(struct sgp_node *node);
/* From now on; after `notice` its sources know of it, and one to whom they promise nothing gets nothing. */
void sgp_core_gather(struct sgp_node *node, sgp_time notice);
bool sgp_core_leaves_now(struct sgp_node *node); /* true: its state has changed */
bool sgp_core_awaits_owed(const struct sgp_node *node, const struct sgp_core_link *link);
void sgp_core_stay(struct sgp_node *node);
sgp_time sgp_core_leave_deadline(const struct sgp_node *node);
void sgp_core_hand_over(struct sgp_node *node);
void sgp_core_reconsider(struct sgp_node *node, const uint32_t *index); /* a reload: the bequest */
void sgp_core_dissolve(struct sgp_node *node);
void sgp_core_depart(struct sgp_node *node, enum sgp_reason reason); /* hang up, and be drained */

/* round.c */
void sgp_core_advance(struct sgp_node *node);
void sgp_core_trained(struct sgp_node *node, int code);
void sgp_core_published(struct sgp_node *node);
void sgp_core_enough(struct sgp_node *node);
void sgp_core_pause(struct sgp_node *node, bool paused);
void sgp_core_drain(struct sgp_node *node);
bool sgp_core_may_start(struct sgp_node *node, uint32_t *ret_missing);

/* watch.c */
void sgp_core_watch(struct sgp_node *node);    /* absence, dialling */
void sgp_core_announce(struct sgp_node *node); /* beats and changed promises */
void sgp_core_enrol(struct sgp_node *node);    /* what was touched; the end of a step */
/* Whether the roster is what looking at all links gives, between two steps. For tests. */
bool sgp_core_is_enrolled(const struct sgp_node *node);

#endif
