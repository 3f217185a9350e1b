/* SPDX-License-Identifier: Apache-2.0 */
/* The internal interfaces of the node: what its files call of each other. The state of a node is in
 * state.h.
 *
 * The files form layers, listed from the highest to the lowest, with a blank line between two
 * layers. A file calls only files of lower layers (tests/walls/walls.py):
 *
 *   driver.c       performs the effects of a node in the order in which they were emitted
 *
 *   trace.c        formats a step as a line, and shows which node waits for which
 *   restart.c      what the next process can rely on, from the record and the checkpoint
 *
 *   node.c         create, step (an event to its handler), deadline
 *   reload.c       replaces the topology while rounds and connections go on
 *   inspect.c      what status shows
 *
 *   role.c         which role a node has
 *
 *   round.c        the stages of a round, start, pause, end
 *   watch.c        failure detection, dialling, and due heartbeats
 *
 *   leave.c        leaving for good, and the end of a process
 *
 *   pending_connection.c
 *                  a second connection of a source whose first one still exists
 *
 *   message.c      calls the file that handles each message
 *   grant.c        which source gets a receive buffer
 *   seek.c         asking sources for their estimate
 *
 *   link.c         heartbeats heard on a link; begin and end of connections
 *
 *   greet.c        the node at the other end, and whether its training settings match
 *   inquiry.c      asking other nodes about a share that is owed to an unreachable node
 *   record.c       the state that survives the process, and a node made from it
 *   outgoing.c     the targets of this turn's mass, and the part for each
 *   estimate.c     received estimates
 *
 *   agree.c        whether neighbours hold the same model at the end
 *   outdated.c     what both ends of a link remember, and where one end remembers less
 *   share.c        accepting, sending and settling shares
 *
 *   publish.c      the snapshots of outgoing shares
 *   handing.c      estimates that are handed out, and an owner's copies
 *   role_token.c   the role of a node that trains with a token: publishing updates, receiving and
 *                  passing on
 *
 *   cycle.c        exact cycles: begin, end and renewal
 *
 *   accounts.c     what an heir answers for, and how it is handed over
 *   check.c        invariants that hold between two steps
 *   fold.c         a share that is added to x while it arrives
 *   wrong_total.c  weight that a member created or lost
 *
 *   owed.c         the shares that a link owes: how they return, or are forgotten
 *
 *   epoch.c        epochs of exact cycles: what is known of them, what ends one
 *   role_cycle.c   the role of a node within an exact cycle
 *   role_gossip.c  the role of a node that mixes
 *   role_owner.c   the role of an owner: its steps, and which worker gets a copy
 *   role_worker.c  the role of a worker: its copies
 *
 *   receive.c      receive buffers, and absorbing
 *   patience.c     how long a live neighbour may keep the node waiting
 *
 *   likeness.c     which nodes train on the same rows, or at another learning rate
 *
 *   emit.c         effects, notes, messages, states
 *   pace.c         how fast the node is compared with its neighbours
 *   notice.c       which links a change of the node concerns, and which peers must show that they
 *                  are alive
 *
 *   facts.c        what follows from the state of a node and its links
 *   layout.c       the links and the number of buffers under a topology
 *
 *   mass.c         the account of mass, and each posting to it
 *   link_index.c   index of the links that have something to do, to avoid scanning all links
 *   words.c        names
 *   method.c       the table of methods, and what follows from a row
 *   cargo.c        which values a message carries
 *   payload_judge.c  whether received values can belong to a model */
#ifndef SGP_CORE_H
#define SGP_CORE_H

#include "core/role.h"
#include "core/state.h"

/* A handler's judgement of the sender of a message. The dispatcher acts on it (message.c). */
struct sgp_verdict {
    int code; /* SGP_E_*: the connection is closed with this code; 0: the message is fine */
    enum sgp_reason reason;
    bool refuses; /* reject the peer: close the connection and never wait for it */
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

/* link_index.c */
void *sgp_core_lines(size_t bytes); /* zeros from the start of a cache line on; NULL: no memory */
int sgp_core_link_index_init(
    struct sgp_link_index *link_index, uint32_t link_count); /* 0 or -ENOMEM */
void sgp_core_link_index_finish(struct sgp_link_index *link_index);
/* The first link of the set whose index is at least `from`, or link_count. Inline, because a step
 * calls it dozens of times. */
static inline uint32_t sgp_core_next(const struct sgp_node *node, enum sgp_set set, uint32_t from)
{
    const struct sgp_link_index *link_index = &node->layout.link_index;
    const uint64_t *dirty = link_index->sets + (size_t)SGP_SET_DIRTY * link_index->words;
    const uint64_t *members = link_index->sets + (size_t)set * link_index->words;
    uint64_t ahead = ~(uint64_t)0 << from % 64;
    for (uint32_t word = from / 64; word < link_index->words; word++, ahead = ~(uint64_t)0) {
        uint64_t found = (dirty[word] | members[word]) & ahead;
        if (found != 0)
            return word * 64 + (uint32_t)__builtin_ctzll(found);
    }
    return node->layout.link_count;
}
/* The link that follows `link` in the set, or the first one if `link` is NULL. NULL: there is
 * none. */
static inline struct sgp_core_link *sgp_core_behind(
    const struct sgp_node *node, enum sgp_set set, const struct sgp_core_link *link)
{
    const struct sgp_layout *layout = &node->layout;
    bool in = set == SGP_SET_NEAR || set == SGP_SET_WITHOUT_BUFFER;
    bool out = set == SGP_SET_OWING || set == SGP_SET_ASKING || set == SGP_SET_TO_ANSWER;
    uint32_t from = link != NULL ? (uint32_t)(link - layout->links) + 1 : 0;
    uint32_t next = sgp_core_next(node, set, in && link == NULL ? layout->out_count : from);
    return next < (out ? layout->out_count : layout->link_count) ? &layout->links[next] : NULL;
}
/* Loops over all links of a node, its out-links, its in-links, or those of a set. */
#define SGP_EACH(link, node, first, end)                                                           \
    for (struct sgp_core_link *link = (node)->layout.links + (first);                              \
         link < (node)->layout.links + (end); link++)
#define SGP_EACH_LINK(link, node) SGP_EACH (link, node, 0, (node)->layout.link_count)
#define SGP_EACH_OUT(link, node) SGP_EACH (link, node, 0, (node)->layout.out_count)
#define SGP_EACH_IN(link, node)                                                                    \
    SGP_EACH (link, node, (node)->layout.out_count, (node)->layout.link_count)
#define SGP_EACH_OF(link, node, set)                                                               \
    for (struct sgp_core_link *link = NULL; (link = sgp_core_behind(node, set, link)) != NULL;)
void sgp_core_mark_dirty(struct sgp_node *node, const struct sgp_core_link *link);
void sgp_core_mark_all_dirty(struct sgp_node *node);
void sgp_core_mark_due_dirty(struct sgp_node *node); /* the links on which something is due */
sgp_time sgp_core_due(const struct sgp_node *node);  /* the earliest due time of all links */

/* mass.c: between which accounts weight moves, and when */
enum sgp_posting {
    SGP_MASS_ACCEPT, /* outside to held: a whole share has arrived */
    SGP_MASS_ABSORB, /* held to here */
    SGP_MASS_GIVE,   /* here to owed */
    /* owed to outside: the target has it, or the node that answers for the target */
    SGP_MASS_ACKNOWLEDGE,
    SGP_MASS_RETURN, /* owed to here: the target did not accept it */
    /* owed to debt: the target is gone or has another incarnation, and may have accepted it */
    SGP_MASS_DISPUTE,
    SGP_MASS_PAY,         /* debt to outside: it was accepted, or is handed to an heir */
    SGP_MASS_RETURN_DEBT, /* debt to here: it was not accepted */
    SGP_MASS_TAKE_DEBT, /* outside to debt: taken over from a leaver, or from an earlier process */
    SGP_MASS_OWE_STILL, /* outside to owed: taken over from an earlier process */
    SGP_MASS_DISSOLVE,  /* here to outside: mass that a leaver bequeathed */
    SGP_MASS_DROP,      /* held to outside: the share is not needed any more */
    SGP_MASS_VOID_OWED, /* owed to outside: the epoch of the share is over */
    SGP_MASS_VOID_DEBT, /* debt to outside: the epoch of the share is over */
};
void sgp_mass_post(struct sgp_node *node, enum sgp_posting what, double weight);
/* Set the weight that is here, whatever it was. The difference is created or lost. The second table
 * of docs/rules/mass.md has every call and its reason. */
void sgp_mass_set(struct sgp_node *node, double weight);
/* a file names this number of members */
void sgp_mass_know_members(struct sgp_node *node, double members);
void sgp_mass_set_members(struct sgp_node *node, double surplus, double covered);
void sgp_mass_inherit(struct sgp_node *node, double members, double covered);
/* the bound for the error of the total rises by `more` */
void sgp_mass_doubt(struct sgp_node *node, double more);
/* Sums computed from the shares themselves. */
double sgp_core_held(const struct sgp_node *node);
bool sgp_core_is_debt(const struct sgp_core_account *entry); /* a debt that is in force */
double sgp_core_debts(const struct sgp_node *node);
/* weight_in_flight of the status: the accounts `owed` and `debt` together */
double sgp_core_in_flight(const struct sgp_node *node);
/* the most that one node can have, as far as this node knows */
double sgp_core_weight_most(const struct sgp_node *node);

/* facts.c: numbers of shares */
/* greatest number of a share; no source ever gives more */
#define SGP_NUMBER_MAX ((uint64_t)1 << 62)
/* A number may exceed the last accepted one by so many shares that returned to the source. The gap
 * allows one share a millisecond for 34 years. */
#define SGP_NUMBER_GAP_MAX ((uint64_t)1 << 40)
/* Whether a share may have this number after `last`, the last known one of its link. A source
 * counts every share that it gives, including those that return to it. */
bool sgp_core_number_is_sound(uint64_t last, uint64_t number);

/* facts.c: the node */
enum sgp_node_state sgp_core_state(const struct sgp_node *node); /* also PAUSED */
bool sgp_core_state_is_active(enum sgp_node_state state);
bool sgp_core_active(const struct sgp_node *node); /* takes part in rounds, or is about to */
/* while it trains it waits for no other node */
bool sgp_core_at_own_pace(const struct sgp_node *node);
bool sgp_core_has_own_buffers(const struct sgp_node *node); /* one buffer for each in-link */
bool sgp_core_grants_all(const struct sgp_node *node); /* grants buffers for shares of any round */
/* how many rounds late a promised share may be now */
sgp_round sgp_core_overlap(const struct sgp_node *node);
sgp_round sgp_core_train_end(const struct sgp_node *node); /* of the fleet; one past the last */
sgp_round sgp_core_last(const struct sgp_node *node);      /* one past the last round of mixing */
/* it is not before `last`: the node mixes in no such round */
bool sgp_core_is_over(const struct sgp_node *node, sgp_round round);
sgp_round sgp_core_last_named(const struct sgp_node *node); /* as told to neighbours; 0: none yet */
/* Whether a neighbour with the same file need not be told that round yet: it follows from the end
 * of training. */
bool sgp_core_last_follows(const struct sgp_node *node);
#define SGP_MIXING_CYCLES_MAX 1000 /* after the last training round that any node knows of */
/* Bound for every file: the longest cycle, and as many rounds again after final_cycles. */
#define SGP_MIXING_ROUNDS_MAX                                                                      \
    ((sgp_round)2 * SGP_MIXING_CYCLES_MAX * SGP_PHASES_MAX * SGP_PHASE_ROUNDS_MAX)
/* by the node's own file; at most the bound above */
sgp_round sgp_core_mixing_end(const struct sgp_node *node);
/* a lead in rounds that cannot be chance */
sgp_round sgp_core_far_ahead(const struct sgp_node *node);
uint32_t sgp_core_unused(const struct sgp_node *node); /* the first unused snapshot, or NONE */
bool sgp_core_computes(const struct sgp_node *node);   /* a job of the round is running */
/* by the node itself, not by the file */
bool sgp_core_chooses(const struct sgp_node *node, sgp_round round);
bool sgp_core_says_ended(const struct sgp_node *node);
/* its statement on the fleet's end must be signed */
bool sgp_core_proves(const struct sgp_node *node);
/* a link */
struct sgp_core_link *sgp_core_find(
    struct sgp_node *node, uint32_t peer, enum sgp_direction direction);
/* The in-link from that peer, or NULL. For callers that only read. */
const struct sgp_core_link *sgp_core_from(const struct sgp_node *node, uint32_t peer);
bool sgp_core_rejoining(const struct sgp_core_link *link);
bool sgp_core_peer_active(const struct sgp_core_link *link); /* heard, present, and takes part */
bool sgp_core_is_up(const struct sgp_core_link *link);
/* the target decodes this coding */
bool sgp_core_decodes(const struct sgp_core_link *link, enum sgp_coding coding);
sgp_round sgp_core_furthest(
    const struct sgp_node *node, sgp_round least, bool (*counts)(const struct sgp_core_link *));
/* The round to follow: the greatest round of the neighbours that count. If the first of them is far
 * ahead of the second, the round of the second. At least `least`. */
sgp_round sgp_core_followed(
    const struct sgp_node *node, sgp_round least, bool (*counts)(const struct sgp_core_link *));
/* The round that the fleet has reached, for a node that joins. An owner takes the greatest round:
 * its workers have continued with its copies, and one worker may have the newest. Any other node
 * takes the round to follow. At least `least`. */
sgp_round sgp_core_reached(const struct sgp_node *node, sgp_round least);
/* Up, present, past joining, and not draining. */
bool sgp_core_living(const struct sgp_core_link *link);
/* the silence after which the peer counts as absent */
sgp_time sgp_core_silence(const struct sgp_core_link *link);
/* the peer keeps its heartbeat but is too slow to be waited for */
bool sgp_core_is_late(const struct sgp_core_link *link);
bool sgp_core_is_waited_for(const struct sgp_core_link *link);
/* The stage of the node began so recently that neighbours may be about to greet it. */
bool sgp_core_may_be_greeted(const struct sgp_node *node);
/* a source that is waited for takes steps, or has not begun */
bool sgp_core_others_train(const struct sgp_node *node);
sgp_round sgp_core_round_of_others(const struct sgp_node *node); /* this node's, or a later one */
/* leaving for good */
bool sgp_core_accumulates(const struct sgp_node *node); /* keeps its mass, to leave with more */
bool sgp_core_has_gone(const struct sgp_node *node);    /* no longer accepts mass */
struct sgp_core_link *sgp_core_bequest(const struct sgp_node *node);
bool sgp_core_is_pledged(const struct sgp_node *node, const struct sgp_core_link *link);
/* shares */
bool sgp_core_covers(const struct sgp_node *node, sgp_round granted, sgp_round round);
bool sgp_core_credit_holds(const struct sgp_node *node, sgp_round old, sgp_round new);
sgp_round sgp_core_plan(struct sgp_node *node, struct sgp_core_link *link, sgp_round from);
/* The next round in which this node gives on an out-link, or NONE. */
sgp_round sgp_core_promise(struct sgp_node *node, struct sgp_core_link *link);
bool sgp_core_may_follow(const struct sgp_node *node, sgp_round promise, sgp_round then);
sgp_round sgp_core_promise_then(
    const struct sgp_node *node, const struct sgp_core_link *link, sgp_round promise);
/* The first promised round of an in-link without a granted buffer, or NONE. */
sgp_round sgp_core_lacks_buffer(const struct sgp_core_link *link);
bool sgp_core_may_owe(const struct sgp_node *node, const struct sgp_core_link *link);
/* Within an exact cycle: the first of this round's sources whose share has not arrived, or NULL. */
const struct sgp_core_link *sgp_core_missing_of(const struct sgp_node *node, sgp_round round);
/* Whether the node may give more than once in its round while it waits. It then waits at the end,
 * at its own pace (role_gossip.c). Not where neighbours are chosen at random, because the chosen
 * neighbour gives back as much. */
bool sgp_core_may_pass_on(const struct sgp_node *node);
bool sgp_core_answer_due(struct sgp_node *node, uint32_t peer);
/* Whether a held share waits until the share in return is given. */
bool sgp_core_is_kept(struct sgp_node *node, const struct sgp_receive *receive);

/* a share is being folded, and x has not changed */
bool sgp_core_folds(const struct sgp_node *node);
/* turns and exact cycles */
/* number of turns before the round */
sgp_round sgp_core_turn(const struct sgp_node *node, sgp_round round);
sgp_round sgp_core_own_end(const struct sgp_node *node); /* one past its last own turn */
/* the end of training that this node names if its steps so far are its last */
sgp_round sgp_core_open_end(const struct sgp_node *node);
bool sgp_core_is_relay(const struct sgp_node *node); /* it takes no steps */
/* a relay knows the end once it has heard of one */
bool sgp_core_knows_end(const struct sgp_node *node);
const struct sgp_role *sgp_core_role_at(const struct sgp_node *node, sgp_round round);
void sgp_core_set_round(struct sgp_node *node, sgp_round round); /* also sets the role */
/* The number of labels in which each worker takes one turn; otherwise 1. */
sgp_round sgp_core_rounds_of_turn(const struct sgp_node *node);
bool sgp_core_trains_in(const struct sgp_node *node, sgp_round round); /* before its own end */
/* states its own epoch, and follows those of others */
bool sgp_core_uses_epochs(const struct sgp_node *node);
/* Also compares with the epochs of neighbours that use none. */
bool sgp_core_compares_epochs(const struct sgp_node *node);
/* an owner and its workers */
bool sgp_core_leads(const struct sgp_node *node);   /* by its role and its weight (role.h) */
bool sgp_core_follows(const struct sgp_node *node); /* by its role and its weight (role.h) */
/* Labels count the steps of all workers, each of which runs at its own pace. */
bool sgp_core_shares_label(const struct sgp_node *node);
/* The w of z = x / w. It is 1 for a worker's copy together with its own updates since. 0: there is
 * no estimate. */
double sgp_core_weight_of_estimate(const struct sgp_node *node);
/* its estimate is a guess until another one has arrived */
bool sgp_core_is_guess(const struct sgp_node *node);
/* Values without weight: a part of an exact cycle, or an update of a worker. */
bool sgp_core_is_weightless(const struct sgp_share *share);
/* Whether this node's copy, or a part of it, is the peer's estimate according to the file. */
bool sgp_core_copies_from(const struct sgp_node *node, const struct sgp_core_link *link);
/* The values of the estimates on this link: those of the owner at one of its ends, or all
 * values. */
struct sgp_slice sgp_core_values(const struct sgp_node *node, const struct sgp_core_link *link);
/* The round that the peer is told. An owner of parts is told the label of the worker's copy of
 * these parts. */
sgp_round sgp_core_label(const struct sgp_node *node, const struct sgp_core_link *link);
/* the first link on which an estimate was asked for, or NULL */
const struct sgp_core_link *sgp_core_asked(const struct sgp_node *node);
/* x / w is a model: all parts exist, and no exact cycle is in progress */
bool sgp_core_has_model(const struct sgp_node *node);
/* The digest of x while x is as the node began, at weight 1, and round 0 has not begun; else 0. */
uint64_t sgp_core_x_digest(const struct sgp_node *node);
bool sgp_core_epoch_is_below(const struct sgp_epoch *a, const struct sgp_epoch *b);
bool sgp_core_is_in_force(const struct sgp_node *node, const struct sgp_epoch *epoch);
/* Whether a share of this epoch counts now: the epoch is in force, or this node ignores epochs. */
bool sgp_core_is_current(const struct sgp_node *node, const struct sgp_epoch *epoch);

/* emit.c */
struct sgp_effect *sgp_core_emit(struct sgp_node *node, enum sgp_effect_type type);
struct sgp_noted *sgp_core_note(struct sgp_node *node, enum sgp_note what, uint32_t peer);
struct sgp_noted *sgp_core_note_link(
    struct sgp_node *node, enum sgp_note what, const struct sgp_core_link *link);
struct sgp_message *sgp_core_send(
    struct sgp_node *node, struct sgp_core_link *link, enum sgp_message_type type);
struct sgp_message *sgp_core_send_payload(struct sgp_node *node, struct sgp_core_link *link,
    enum sgp_message_type type, uint32_t slot); /* `slot`: of the snapshot */
/* all values of the vector */
static inline struct sgp_slice sgp_core_all(const struct sgp_node *node)
{
    return (struct sgp_slice){0, node->config.parameters};
}
void sgp_core_scale(struct sgp_node *node, double factor, struct sgp_slice slice);
void sgp_core_say_goodbye(
    struct sgp_node *node, const struct sgp_link *id, int code, enum sgp_reason reason);
void sgp_core_enter(struct sgp_node *node, enum sgp_stage stage);
void sgp_core_become(struct sgp_node *node, enum sgp_node_state state);
/* A finished node with this number of links must compare again if its sketch is out of date, or if
 * the others mix on. */
void sgp_core_settle_to_compare(struct sgp_node *node, uint32_t link_count);

/* layout.c */
enum {                /* of a peer */
    SGP_MARK_OUT = 1, /* an edge of the file leads to the peer */
    SGP_MARK_IN = 2,
    SGP_MARK_KEPT_OUT = 4, /* a link of the previous file led to the peer */
    SGP_MARK_KEPT_IN = 8,
    SGP_MARK_OWES = 16, /* a snapshot is owed on that link */
};
/* Make the arrays of node `self`. The links are those of the file's edges and those that `marks`
 * (by peer) keeps, all down. There are at least as many slots as in `least`. Returns 0 or
 * -ENOMEM. */
int sgp_core_lay_out(const struct sgp_topology *topology, uint32_t self,
    const struct sgp_method *method, unsigned char *marks, const struct sgp_node_needs *least,
    struct sgp_layout *ret_layout);
void sgp_core_layout_finish(struct sgp_layout *layout);
void sgp_core_layout_needs(const struct sgp_layout *layout, struct sgp_node_needs *ret_needs);
void sgp_core_swap_layout(struct sgp_node *node, struct sgp_layout *layout);

/* notice.c */
/* Mark the links dirty that a change of the facts concerns. A node that has become active probes
 * its inactive peers. */
void sgp_core_notice(struct sgp_node *node);
/* From now on the peer must show that it is alive on this link, even if both nodes are inactive. */
void sgp_core_probe(struct sgp_node *node, struct sgp_core_link *link);

/* pace.c */
void sgp_core_pace_begin(struct sgp_node *node);
void sgp_core_pace_end(struct sgp_node *node);
void sgp_core_pace_hear(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_pulse *pulse);
void sgp_core_pace_round(struct sgp_node *node); /* a round has ended */
/* The length of a round at its own pace. If this process took no steps: the interval at which the
 * node is given mass. */
sgp_time sgp_core_own_round(const struct sgp_node *node);
/* Until when the node begins no round; 0: it may begin. A node without neighbours keeps slightly
 * below the pace that all had. If it returned ahead of all others, it could only wait for them; if
 * it returns behind, it jumps to their round. At its own pace, a node whose neighbours are all late
 * must not run through its last rounds at full speed. */
sgp_time sgp_core_rests_until(const struct sgp_node *node);
double sgp_core_pace(const struct sgp_node *node); /* the factor for the learning rate */

/* role_gossip.c */
sgp_time sgp_core_passes_on_at(const struct sgp_node *node); /* NEVER: it does not */

/* patience.c */
void sgp_core_payload_begins(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_payload_came(struct sgp_node *node, struct sgp_core_link *link, uint64_t bytes);
sgp_time sgp_core_payload_end(const struct sgp_core_link *link); /* unless more of it arrives */
void sgp_core_payload_trickles(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_round_hear(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_pulse *pulse);
bool sgp_core_is_slow(const struct sgp_node *node, const struct sgp_core_link *link);
sgp_time sgp_core_overdue_at(const struct sgp_node *node, const struct sgp_core_link *link);
/* When the owed share must have been acknowledged. */
sgp_time sgp_core_acknowledged_by(const struct sgp_core_link *link);
/* if the time has come */
void sgp_core_lose_patience(struct sgp_node *node, struct sgp_core_link *link);

/* outdated.c */
/* A neighbour has proved that this node's record is older than what the neighbour has seen. */
void sgp_core_find_outdated(struct sgp_node *node, struct sgp_core_link *link);
/* The source has greeted. */
void sgp_core_know_source(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_hello *hello);
/* The target says it accepted this number of shares. False: that is impossible. Called before
 * settling. */
bool sgp_core_know_target(struct sgp_node *node, struct sgp_core_link *link, uint64_t accepted);

/* likeness.c */
void sgp_core_has_trained(struct sgp_node *node, uint64_t update, double rate);
void sgp_core_compare_training(struct sgp_node *node, uint32_t peer, const struct sgp_share *share);
void sgp_core_forget_updates(struct sgp_node *node); /* node indices have changed */

/* receive.c */
void sgp_core_use_buffer(struct sgp_core_link *link); /* the next granted buffer moves up */
void sgp_core_unreserve(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_take_promise(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_set_aside(struct sgp_node *node); /* a buffer for an estimate, if one is free */
void sgp_core_want(struct sgp_node *node);
void sgp_core_end_question(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_stop_seeking(struct sgp_node *node);
/* Absorb all shares that can be absorbed, in any order, because buffers are scarce. */
void sgp_core_absorb_early(struct sgp_node *node);
/* unless a share is being folded */
void sgp_core_absorb_until(struct sgp_node *node, sgp_round round);
/* Whether the epoch of the share lets it be absorbed. */
bool sgp_core_may_absorb(const struct sgp_node *node, const struct sgp_receive *receive);
void sgp_core_absorb_folded(struct sgp_node *node, struct sgp_receive *receive);
void sgp_core_absorb_from(struct sgp_node *node, uint32_t peer);

/* role_owner.c */
/* A whole share has arrived. False: it is an update that is too late to be added. */
bool sgp_core_counts(struct sgp_node *node, struct sgp_core_link *link, bool accepted);
/* of an owner; returns the number of updates added */
uint32_t sgp_core_close_step(struct sgp_node *node);
void sgp_core_drop_held(struct sgp_node *node); /* updates that no step will add */
bool sgp_core_may_have_copy(const struct sgp_node *node, const struct sgp_core_link *link);
/* a copy is being sent */
void sgp_core_keep_base(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_forget_base(struct sgp_node *node, uint32_t *base);

/* role_worker.c */
/* Whether a worker has an update for that owner, made from its present copy. */
bool sgp_core_owes_update(const struct sgp_node *node, const struct sgp_core_link *out);
/* Whether a newer copy of the owner's part must arrive before the next round. */
bool sgp_core_lacks_copy(const struct sgp_node *node, const struct sgp_core_link *in);
void sgp_core_take_copy(
    struct sgp_node *node, struct sgp_core_link *in, uint32_t slot, sgp_round label);
void sgp_core_want_copy(struct sgp_node *node);      /* if it is a worker */
void sgp_core_pass_on_labels(struct sgp_node *node); /* of a worker that has new owners */
/* an update was made from the copies, or none is due */
void sgp_core_use_copies(struct sgp_node *node);
void sgp_core_curtail(struct sgp_node *node); /* end a worker's steps that are too late */

/* role_token.c; each function returns false, or does nothing, if there is no token */
/* the node must publish updates for the token, or the token itself */
bool sgp_core_must_offer(const struct sgp_node *node);
/* the time of the steps of a round */
void sgp_core_time_update(struct sgp_node *node, sgp_time took);
/* The greatest label that a token from that neighbour may have. */
sgp_round sgp_core_label_most(const struct sgp_node *node, uint32_t peer);
/* Whether a joining node creates the token. It does not if a fleet exists that has a token, or had
 * one. */
bool sgp_core_mints(const struct sgp_node *node);
/* The token is here only according to the record. Whether it may already be elsewhere
 * (may_have_passed), or is, as a received estimate shows (has_left). */
bool sgp_core_may_have_passed(const struct sgp_node *node);
bool sgp_core_has_left(const struct sgp_node *node, const struct sgp_core_link *link);
/* Whether a token that a link owes has been accepted, whatever the target says. */
bool sgp_core_went_on(const struct sgp_node *node, const struct sgp_share *share);
bool sgp_core_may_grant_token(const struct sgp_node *node, const struct sgp_core_link *link);
void sgp_core_hand_on(struct sgp_node *node); /* if the token is here and a target is ready */
bool sgp_core_could_hand_on(const struct sgp_node *node); /* soon, to a node that stays */
bool sgp_core_offers_last(
    struct sgp_node *node); /* the node stops, and publishes the token first */
void sgp_core_forgo_token(struct sgp_node *node);
void sgp_core_forgo_recorded(struct sgp_node *node);
void sgp_core_remake_token(struct sgp_node *node); /* under a higher epoch */
void sgp_core_circulate_again(struct sgp_node *node);

/* epoch.c */
void sgp_core_hear_epoch(struct sgp_node *node, const struct sgp_core_link *link);
/* The file has changed, and the old or the new one has exact cycles. Each node will begin the next
 * epoch when it reloads. */
void sgp_core_expect_epochs(struct sgp_node *node);
/* The present cycle cannot be completed. */
void sgp_core_raise_epoch(struct sgp_node *node);
/* The cycle of the epoch `lost` cannot be completed, unless a higher epoch is known already. */
void sgp_core_end_epoch(struct sgp_node *node, const struct sgp_epoch *lost);
/* SGP_EVENT_RENEW: gossip begins again at this round. */
void sgp_core_begin_anew(struct sgp_node *node, sgp_round start);

/* cycle.c */
void sgp_core_put_off_end(struct sgp_node *node);
/* if a higher epoch was heard of, and the node may renew */
void sgp_core_renew(struct sgp_node *node);
void sgp_core_void_former(struct sgp_node *node); /* all except bequests */
/* At the start of a cycle: the first neighbour that is missing, or NULL. */
const struct sgp_core_link *sgp_core_cannot_begin(const struct sgp_node *node);
/* all of x is published in `slot` */
void sgp_core_enter_cycle(struct sgp_node *node, uint32_t slot);
/* if the round that is complete is the last of the cycle */
void sgp_core_close_cycle(struct sgp_node *node);
bool sgp_core_rejoins_cycle(struct sgp_node *node, bool lost);

/* agree.c */
/* in its last round; true: it may finish, or has finished */
bool sgp_core_agrees(struct sgp_node *node);
void sgp_core_sketched(struct sgp_node *node, const struct sgp_sketch *sketch);
void sgp_core_met(struct sgp_node *node, struct sgp_core_link *link); /* both ends have greeted */
struct sgp_verdict sgp_core_beat(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_beat *beat);
/* Whether the peer has said that its rounds are over; then the first peer whose end is awaited, or
 * NULL. */
bool sgp_core_has_ended(const struct sgp_node *node, const struct sgp_core_link *link);
const struct sgp_core_link *sgp_core_not_ended(const struct sgp_node *node);
/* Before a round of mixing: the first finished neighbour that is yet to hear of this node's last
 * round, or to reply; or NULL. */
const struct sgp_core_link *sgp_core_not_following(const struct sgp_node *node);
/* |z - z'|, and the same relative to the longer of the two. Both NaN if not known. */
double sgp_core_distance(
    const struct sgp_node *node, const struct sgp_core_link *link, double *ret_relative);

/* owed.c */
void sgp_core_scale_for_return(struct sgp_node *node, double weight);
/* Add to x what a share took from the snapshot. */
void sgp_core_put_back(struct sgp_node *node, uint32_t slot, const struct sgp_share *share);
void sgp_core_restore_share(struct sgp_node *node, uint32_t slot, const struct sgp_share *share);
bool sgp_core_is_of_cycle(const struct sgp_node *node, const struct sgp_share *share);
/* owe_next: the share that is owed first is settled. forget_owed: it is forgotten, whatever becomes
 * of it. forget_unsent: all shares that have not been sent are forgotten. */
void sgp_core_owe_next(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_forget_owed(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_forget_unsent(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_take_back(struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason);

/* wrong_total.c */
void sgp_core_total_hears(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_shed(struct sgp_node *node); /* reduce the weight to the most that a node can have */
void sgp_core_keep_total(struct sgp_node *node); /* called before each round */

/* accounts.c */
double sgp_core_staged_debts(const struct sgp_node *node, uint32_t stager);
struct sgp_verdict sgp_core_stage(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_bequeath *bequeath);
/* for all accounts that it staged */
bool sgp_core_has_places(struct sgp_node *node, uint32_t stager);
void sgp_core_unstage(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_inherit(struct sgp_node *node, struct sgp_core_link *link);
bool sgp_core_has_handed(struct sgp_node *node, const struct sgp_core_link *heir);
void sgp_core_hand_accounts(struct sgp_node *node);
struct sgp_verdict sgp_core_staged(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_answer *answer);
void sgp_core_bequest_accepted(struct sgp_node *node, const struct sgp_core_link *link);
bool sgp_core_let_go(struct sgp_node *node); /* of the snapshot of a debt; false: there is none */
bool sgp_core_dispute(struct sgp_node *node, struct sgp_core_link *link);
/* its link is being removed */
bool sgp_core_keep_pledged(struct sgp_node *node, struct sgp_core_link *link);
/* A debt is paid, returns or is void. A debt that would return during an exact cycle is void. */
void sgp_core_end_debt(struct sgp_node *node, uint32_t index, enum sgp_posting end);
void sgp_core_void_debts(struct sgp_node *node);
void sgp_core_move_accounts(struct sgp_node *node, const struct sgp_topology *topology,
    const uint32_t *index); /* a reload */
void sgp_core_restore_accounts(struct sgp_node *node, const struct sgp_record *record);
/* Whether this node itself knows what it accepted last from the source of that name and
 * incarnation. */
bool sgp_node_accepted(const struct sgp_node *node, const char *source, uint64_t incarnation,
    uint64_t number, bool *ret_open, uint64_t *ret_accepted);

/* fold.c */
/* Begin to fold the share that is arriving on a link, if that is possible. */
void sgp_core_fold(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_end_fold(struct sgp_node *node, struct sgp_core_link *link); /* if there is one */
void sgp_core_give_up_fold(struct sgp_node *node);                         /* if x has changed */
/* The target refused a share. The share returns once no fold is in progress. */
void sgp_core_refuse_later(
    struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason);
void sgp_core_take_up_refusals(struct sgp_node *node);

/* outgoing.c */
#define SGP_QUIET_NS (60 * SGP_SECOND) /* interval at which a lasting condition is reported again */
#define SGP_HALF 0.5                   /* the fraction that a node gives to a target it chose */
bool sgp_core_give(struct sgp_node *node); /* false: it must wait */
const struct sgp_core_link *sgp_core_cannot_give(
    struct sgp_node *node, enum sgp_waiting *ret_waiting);
void sgp_core_forget_answers(struct sgp_node *node);
bool sgp_core_give_all(struct sgp_node *node, struct sgp_core_link *heir, sgp_round round);

/* publish.c */
/* Publish one snapshot, in an unused slot, for all outgoing shares of this turn. Subtract the mass
 * that they carry from this node's mass. Only `part` of each outgoing share goes. `fractions` is
 * the sum of their fractions. */
void sgp_core_publish(struct sgp_node *node, double part, double fractions, uint32_t slot);
/* The same in an exact cycle. The file says what remains of each part. */
void sgp_core_publish_parts(struct sgp_node *node, uint32_t slot);

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
void sgp_core_estimate_down(struct sgp_node *node, struct sgp_core_link *link);
/* the estimates that have come and are not adopted yet, because they are to be compared */
uint32_t sgp_core_candidates(const struct sgp_node *node);
void sgp_core_adopt(struct sgp_node *node); /* one of these, of which there is at least one */

/* handing.c */
void sgp_core_ask(struct sgp_node *node, struct sgp_core_link *link, const struct sgp_ask *ask);
void sgp_core_copied(struct sgp_node *node);
void sgp_core_hand_out(struct sgp_node *node);
/* No worker gets the difference any more that led to the owner's present copy. */
void sgp_core_drop_change(struct sgp_node *node);
/* After a reload. */
void sgp_core_keep_label(struct sgp_node *node);
/* Training has ended. An owner whose copies are coded takes the model that its workers have. */
void sgp_core_end_with_copy(struct sgp_node *node);

/* inquiry.c */
void sgp_core_inquire(struct sgp_node *node);
void sgp_core_answered(struct sgp_node *node, const struct sgp_message *message);
sgp_time sgp_core_inquiry_deadline(const struct sgp_node *node);

/* record.c */
void sgp_core_restore(struct sgp_node *node, const struct sgp_record *record);

/* greet.c */
/* The fault of a pulse: NONE, RANGE or ROUNDS. */
enum sgp_reason sgp_core_judge_pulse(const struct sgp_node *node, const struct sgp_pulse *pulse);
/* The fault of a greeting; NONE: it has none. */
enum sgp_reason sgp_core_judge(
    const struct sgp_node *node, const struct sgp_pulse *pulse, const struct sgp_hello *hello);
void sgp_core_accept_end(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_proven(struct sgp_node *node, const struct sgp_pulse *pulse);
/* The digest of the sender's topology file in a pulse; 0: none. */
void sgp_core_hear_topology(struct sgp_node *node, struct sgp_core_link *link, uint64_t digest);
/* This node's own file has changed: compare it with every peer's. No note is emitted, because the
 * person who reloads the file knows. */
void sgp_core_compare_topologies(struct sgp_node *node);
struct sgp_verdict sgp_core_hello(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_hello *hello);
struct sgp_verdict sgp_core_welcome(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_welcome *welcome);

/* link.c */
#define SGP_QUIET_BEATS 2 /* heartbeats that prove a silence: one may be late */
struct sgp_verdict sgp_core_hear(struct sgp_node *node, struct sgp_core_link *link,
    const struct sgp_pulse *pulse); /* NULL: a part of a payload arrived */
void sgp_core_hang_up(
    struct sgp_node *node, struct sgp_core_link *link, int code, enum sgp_reason reason);
/* Reject a peer, which then counts as never heard. */
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
bool sgp_core_seeks(struct sgp_node *node);                 /* true: do not start yet */
sgp_time sgp_core_answered_by(const struct sgp_node *node); /* when the next source is asked */
void sgp_core_seek(struct sgp_node *node);

/* pending_connection.c */
/* A connection of a link begins. True: it is a second one, and is pending. It must greet first. */
bool sgp_core_call(struct sgp_node *node, const struct sgp_link *id);
/* an event of a connection that no link has */
void sgp_core_pending(struct sgp_node *node, const struct sgp_event *event);
/* Whether a pending connection may replace the first one now, so that the peer is not absent. */
bool sgp_core_gives_way(const struct sgp_node *node, const struct sgp_core_link *link);
void sgp_core_let_in(struct sgp_node *node, struct sgp_core_link *link); /* if the time has come */
void sgp_core_end_pending(
    struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason);
sgp_time sgp_core_pending_deadline(const struct sgp_core_link *link);

/* leave.c */
void sgp_core_leave(struct sgp_node *node);
/* Keep incoming mass from now on. After `notice` its sources know that. A node whose sources
 * promise nothing receives nothing. */
void sgp_core_accumulate(struct sgp_node *node, sgp_time notice);
bool sgp_core_leaves_now(struct sgp_node *node); /* true: its state has changed */
bool sgp_core_awaits_owed(const struct sgp_node *node, const struct sgp_core_link *link);
void sgp_core_stay(struct sgp_node *node);
sgp_time sgp_core_leave_deadline(const struct sgp_node *node);
void sgp_core_hand_over(struct sgp_node *node);
/* a reload: reconsider the bequest */
void sgp_core_reconsider(struct sgp_node *node, const uint32_t *index);
void sgp_core_dissolve(struct sgp_node *node);
/* close all connections, and become drained */
void sgp_core_depart(struct sgp_node *node, enum sgp_reason reason);

/* round.c */
void sgp_core_advance(struct sgp_node *node);
void sgp_core_trained(struct sgp_node *node, int code);
void sgp_core_published(struct sgp_node *node);
void sgp_core_enough(struct sgp_node *node);
void sgp_core_end_steps(struct sgp_node *node);
void sgp_core_pause(struct sgp_node *node, bool paused);
void sgp_core_drain(struct sgp_node *node);
bool sgp_core_may_start(struct sgp_node *node, uint32_t *ret_missing);
sgp_time sgp_core_awaits_mass_until(const struct sgp_node *node); /* when its round begins */
/* Where all nodes begin with one model: the neighbour that round 0 waits for, or NULL. */
const struct sgp_core_link *sgp_core_not_begun(const struct sgp_node *node);

/* role.c */
/* from its file; called when another file comes into force */
void sgp_core_take_roles(struct sgp_node *node);

/* watch.c */
void sgp_core_watch(struct sgp_node *node);       /* failure detection, dialling */
void sgp_core_announce(struct sgp_node *node);    /* heartbeats and changed promises */
void sgp_core_index_links(struct sgp_node *node); /* the dirty links, at the end of a step */
/* Whether the link index equals a scan of all links, between two steps. For tests. */
bool sgp_core_is_indexed(const struct sgp_node *node);

#endif
