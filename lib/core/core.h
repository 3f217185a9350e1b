/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the node: what its files ask of each other. What it is made of is in state.h.
 *
 * Its files stand on floors, the highest first, with a blank line between two. Each calls downward alone
 * (tests/walls/walls.py):
 *
 *   driver.c   performs the effects of a node in the order in which they come
 *
 *   trace.c    a step as a line, and who waits for whom
 *   restart.c  what the next process relies on, of the record and of a checkpoint
 *
 *   node.c     create, step (an event to its handler), deadline
 *   reload.c   another topology, in the middle of everything
 *   inspect.c  what status shows
 *
 *   role.c     which role a node has
 *
 *   round.c    the stages of a round, start, pause, end
 *   watch.c    who is silent, who is dialled, to whom a beat is due, and when
 *
 *   leave.c    leaving for good, and the end of a process
 *
 *   aside.c    a connection that comes while another of its source stands
 *
 *   message.c  each message to its file
 *   grant.c    who gets a receive buffer
 *   seek.c     asking sources for their estimate
 *
 *   link.c     hearing a neighbour; connections that begin and end
 *
 *   greet.c    who is at the other end, and whether it trains the same
 *   inquiry.c  who is asked about what is owed to one that cannot be reached
 *   record.c   what survives the process, and a node made from it
 *   outgoing.c to whom this turn's mass goes, and how much
 *   estimate.c estimates that come
 *
 *   agree.c    whether neighbours hold one model at the end
 *   outdated.c what both ends of a link remember, and where one of them remembers less
 *   share.c    accepting, sending, settling
 *
 *   publish.c  the snapshots of what is given
 *   handing.c  estimates that are handed out, and an owner's copies
 *   role_token.c   the role of a node that trains with a token: what is told, a visit, who is next
 *
 *   cycle.c    exact cycles: how one begins, ends, and is renewed
 *
 *   accounts.c what an heir answers for, and how it is handed over
 *   check.c    what must hold between two steps
 *   fold.c     a share that is added to x while it comes
 *   total.c    weight that a member made or lost
 *
 *   owed.c     what a link owes: how it comes home, or is forgotten
 *
 *   epoch.c    epochs of exact cycles: what is known of them, what ends one
 *   role_cycle.c   the role of a node within an exact cycle
 *   role_gossip.c  the role of a node that mixes
 *   role_owner.c   the role of an owner: its steps, and who gets a copy
 *   role_worker.c  the role of a worker: its copies
 *
 *   receive.c  receive buffers, and absorbing
 *   patience.c how long one that is heard may keep the node waiting
 *
 *   likeness.c who trains on the same rows, or at another learning rate
 *
 *   emit.c     effects, notes, messages, states
 *   pace.c     how fast the node is beside its neighbours
 *   notice.c   which links a change of the node concerns
 *
 *   facts.c    what follows from how a node and its links stand
 *   layout.c   which links and how many buffers under a topology
 *
 *   mass.c     the account of mass, and each posting to it
 *   roster.c   which links have something to do, so that nobody looks at all of them
 *   words.c    names
 *   method.c   the table of methods, and what follows from a row
 *   payload.c  which payloads are nonsense
 */
#ifndef SGP_CORE_H
#define SGP_CORE_H

#include "core/role.h"
#include "core/state.h"

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

/* roster.c */
int sgp_core_roster_init(struct sgp_roster *roster, uint32_t link_count); /* 0 or -ENOMEM */
void sgp_core_roster_finish(struct sgp_roster *roster);
/* The first link of the set from `from` on, or link_count. Inline: a step asks dozens of times. */
static inline uint32_t sgp_core_next(const struct sgp_node *node, enum sgp_set set, uint32_t from)
{
    const struct sgp_roster *roster = &node->layout.roster;
    const uint64_t *touched = roster->sets + (size_t)SGP_SET_TOUCHED * roster->words;
    const uint64_t *members = roster->sets + (size_t)set * roster->words;
    uint64_t ahead = ~(uint64_t)0 << from % 64;
    for (uint32_t word = from / 64; word < roster->words; word++, ahead = ~(uint64_t)0) {
        uint64_t found = (touched[word] | members[word]) & ahead;
        if (found != 0)
            return word * 64 + (uint32_t)__builtin_ctzll(found);
    }
    return node->layout.link_count;
}
/* The link of a set behind that one, or the first if it is NULL; NULL: there is none. */
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
void sgp_core_touch(struct sgp_node *node, const struct sgp_core_link *link);
void sgp_core_touch_all(struct sgp_node *node);
void sgp_core_touch_due(struct sgp_node *node);     /* those on which something is due */
sgp_time sgp_core_due(const struct sgp_node *node); /* the earliest of all links */

/* mass.c: from which account weight goes to which, and when */
enum sgp_posting {
    SGP_MASS_ACCEPT,      /* outside to held: a share has come whole */
    SGP_MASS_ABSORB,      /* held to here */
    SGP_MASS_GIVE,        /* here to owed */
    SGP_MASS_ACKNOWLEDGE, /* owed to outside: its target has it, or whoever answers for that */
    SGP_MASS_RETURN,      /* owed to here: it was not accepted */
    SGP_MASS_DISPUTE,   /* owed to debt: its target is gone, or another, and may have accepted it */
    SGP_MASS_PAY,       /* debt to outside: it was accepted, or goes to an heir */
    SGP_MASS_TAKE_HOME, /* debt to here: it was not accepted */
    SGP_MASS_TAKE_DEBT, /* outside to debt: of a leaver, or a former process */
    SGP_MASS_OWE_STILL, /* outside to owed: of a former process */
    SGP_MASS_DISSOLVE,  /* here to outside: what a leaver bequeathed */
    SGP_MASS_DROP,      /* held to outside: it is of no use any more */
    SGP_MASS_VOID_OWED, /* owed to outside: its epoch is over */
    SGP_MASS_VOID_DEBT, /* debt to outside: likewise */
};
void sgp_mass_post(struct sgp_node *node, enum sgp_posting what, double weight);
/* This is here, whatever was: the rest is made, or lost. A start, a renewal, healing, and a token that is made or forgone. */
void sgp_mass_set(struct sgp_node *node, double weight);
void sgp_mass_know_members(struct sgp_node *node, double members); /* a file names so many */
void sgp_mass_set_members(struct sgp_node *node, double surplus, double covered);
void sgp_mass_inherit(struct sgp_node *node, double members, double covered);
void sgp_mass_doubt(struct sgp_node *node, double more); /* the total may be off by so much more */
/* By the shares themselves. */
double sgp_core_held(const struct sgp_node *node);
bool sgp_core_is_debt(const struct sgp_core_account *entry); /* in force */
double sgp_core_debts(const struct sgp_node *node);
double sgp_core_owed(const struct sgp_node *node);        /* these, and what links owe */
double sgp_core_weight_most(const struct sgp_node *node); /* a node can have, as far as known */

/* facts.c: numbers of shares */
#define SGP_NUMBER_MAX ((uint64_t)1 << 62) /* of a share; more were never given */
/* The number after the last accepted, and so many that came home: one a millisecond for 34 years. */
#define SGP_NUMBER_GAP_MAX ((uint64_t)1 << 40)
/* Whether a share that comes over this link may have that number. A source counts what it gives, also what comes home
 * again. */
bool sgp_core_number_is_sound(const struct sgp_core_link *link, uint64_t number);

/* facts.c: the node */
enum sgp_node_state sgp_core_state(const struct sgp_node *node); /* with PAUSED */
bool sgp_core_state_is_active(enum sgp_node_state state);
bool sgp_core_active(const struct sgp_node *node);      /* takes part in rounds, or is about to */
bool sgp_core_at_own_pace(const struct sgp_node *node); /* while it trains it waits for nobody */
bool sgp_core_has_own_buffers(const struct sgp_node *node); /* one for each in-link */
bool sgp_core_grants_all(const struct sgp_node *node);      /* buffers for shares of any round */
sgp_round sgp_core_overlap(const struct sgp_node *node);    /* how old a promise may be, now */
sgp_round sgp_core_train_end(const struct sgp_node *node);  /* the fleet's; one past */
sgp_round sgp_core_last(const struct sgp_node *node);       /* one past the last round of mixing */
sgp_round sgp_core_last_named(const struct sgp_node *node); /* to neighbours; 0: none yet */
#define SGP_MIXING_CYCLES_MAX 1000 /* after the last training round that anybody knows of */
/* Whatever the file: of the longest cycle, after final_cycles as many again. */
#define SGP_MIXING_ROUNDS_MAX                                                                      \
    ((sgp_round)2 * SGP_MIXING_CYCLES_MAX * SGP_PHASES_MAX * SGP_PHASE_ROUNDS_MAX)
sgp_round sgp_core_mixing_end(const struct sgp_node *node); /* by its own file; not beyond that */
sgp_round sgp_core_far_ahead(const struct sgp_node *node);  /* rounds that cannot be chance */
uint32_t sgp_core_unused(const struct sgp_node *node);      /* the first unused snapshot, or NONE */
bool sgp_core_computes(const struct sgp_node *node);        /* a job of the round is under way */
bool sgp_core_chooses(const struct sgp_node *node, sgp_round round); /* itself, not the file */
bool sgp_core_says_ended(const struct sgp_node *node);
bool sgp_core_proves(const struct sgp_node *node); /* a word on the fleet's end is to be signed */
/* a link */
struct sgp_core_link *sgp_core_find(
    struct sgp_node *node, uint32_t peer, enum sgp_direction direction);
/* The in-link from that peer, or NULL; for those who read only. */
const struct sgp_core_link *sgp_core_from(const struct sgp_node *node, uint32_t peer);
bool sgp_core_rejoining(const struct sgp_core_link *link);
bool sgp_core_peer_active(const struct sgp_core_link *link); /* heard, present, takes part */
bool sgp_core_is_up(const struct sgp_core_link *link);
bool sgp_core_decodes(const struct sgp_core_link *link, enum sgp_coding coding); /* its target */
sgp_round sgp_core_furthest(
    const struct sgp_node *node, sgp_round least, bool (*counts)(const struct sgp_core_link *));
/* As far as two neighbours say, or the only one that counts: the greatest round, unless that is one's alone and far
 * ahead of the second; then the second. At least `least`. */
sgp_round sgp_core_followed(
    const struct sgp_node *node, sgp_round least, bool (*counts)(const struct sgp_core_link *));
/* Up, not absent, past joining and not draining. */
bool sgp_core_living(const struct sgp_core_link *link);
sgp_time sgp_core_silence(const struct sgp_core_link *link); /* its bound */
bool sgp_core_is_late(const struct sgp_core_link *link); /* heard, perhaps, and not waited for */
bool sgp_core_is_waited_for(const struct sgp_core_link *link);
/* leaving for good */
bool sgp_core_gathers(const struct sgp_node *node);  /* keeps what it has, to leave with more */
bool sgp_core_has_gone(const struct sgp_node *node); /* takes no mass any more */
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
/* The first round promised on an in-link for which it has no buffer yet, or NONE. */
sgp_round sgp_core_lacks_buffer(const struct sgp_core_link *link);
bool sgp_core_may_owe(const struct sgp_node *node, const struct sgp_core_link *link);
/* Within an exact cycle: of those who give to this node in a round, the first whose share has not come, or NULL. */
const struct sgp_core_link *sgp_core_missing_of(const struct sgp_node *node, sgp_round round);
/* It waits at the end, at its own pace, and may give more than once in its round meanwhile (role_gossip.c). Not where a neighbour
 * is chosen by lot, for that one gives back as much. */
bool sgp_core_may_pass_on(const struct sgp_node *node);
bool sgp_core_answer_due(struct sgp_node *node, uint32_t peer);
/* Whether a share is held until its answer is given. */
bool sgp_core_is_kept(struct sgp_node *node, const struct sgp_receive *receive);

bool sgp_core_folds(const struct sgp_node *node); /* a share is, and x is as it was */
/* turns and exact cycles */
sgp_round sgp_core_turn(const struct sgp_node *node, sgp_round round); /* turns before the round */
sgp_round sgp_core_own_end(const struct sgp_node *node); /* one past its own last turn */
bool sgp_core_is_relay(const struct sgp_node *node);     /* it takes no steps */
bool sgp_core_knows_end(const struct sgp_node *node);    /* a relay does when it has heard of one */
const struct sgp_role *sgp_core_role_at(const struct sgp_node *node, sgp_round round);
void sgp_core_set_round(struct sgp_node *node, sgp_round round); /* and the role with it */
/* Labels while each worker takes one turn; else 1. */
sgp_round sgp_core_rounds_of_turn(const struct sgp_node *node);
bool sgp_core_trains_in(const struct sgp_node *node, sgp_round round); /* before its end */
bool sgp_core_uses_epochs(const struct sgp_node *node); /* says its own, and heeds others' */
/* Also with those of neighbours that use none. */
bool sgp_core_compares_epochs(const struct sgp_node *node);
/* an owner and its workers */
bool sgp_core_leads(const struct sgp_node *node);   /* by its role, and its weight (role.h) */
bool sgp_core_follows(const struct sgp_node *node); /* likewise */
/* Labels count the steps of all, each at its own pace. */
bool sgp_core_shares_label(const struct sgp_node *node);
/* The w of z = x / w; 1 for a worker's copy, with what it has moved since. 0: no estimate. */
double sgp_core_weight_of_estimate(const struct sgp_node *node);
bool sgp_core_is_guess(const struct sgp_node *node); /* its estimate, until another has come */
/* Values without weight: a part of an exact cycle, or an update. */
bool sgp_core_is_weightless(const struct sgp_share *share);
/* Whether the copy of this node, or a part of it, is the peer's estimate by the file. */
bool sgp_core_copies_from(const struct sgp_node *node, const struct sgp_core_link *link);
/* The values of which estimates on this link are: those of the owner at one of its ends, or all. */
struct sgp_slice sgp_core_values(const struct sgp_node *node, const struct sgp_core_link *link);
/* The round that the peer is told: to an owner of parts a worker stands where its copy of these does. */
sgp_round sgp_core_label(const struct sgp_node *node, const struct sgp_core_link *link);
const struct sgp_core_link *sgp_core_asked(const struct sgp_node *node); /* the first, or NULL */
bool sgp_core_has_model(const struct sgp_node *node); /* x / w: of all parts, not amid a cycle */
bool sgp_core_epoch_is_below(const struct sgp_epoch *a, const struct sgp_epoch *b);
bool sgp_core_is_in_force(const struct sgp_node *node, const struct sgp_epoch *epoch);
/* Whether a share of this epoch counts now: the epoch is in force, or this node does not heed it. */
bool sgp_core_is_current(const struct sgp_node *node, const struct sgp_epoch *epoch);

/* emit.c */
struct sgp_effect *sgp_core_emit(struct sgp_node *node, enum sgp_effect_type type);
struct sgp_noted *sgp_core_note(struct sgp_node *node, enum sgp_note what, uint32_t peer);
struct sgp_noted *sgp_core_note_link(
    struct sgp_node *node, enum sgp_note what, const struct sgp_core_link *link);
struct sgp_message *sgp_core_send(
    struct sgp_node *node, struct sgp_core_link *link, enum sgp_message_type type);
struct sgp_message *sgp_core_send_payload(struct sgp_node *node, struct sgp_core_link *link,
    enum sgp_message_type type, uint32_t slot);                          /* of the snapshot */
static inline struct sgp_slice sgp_core_all(const struct sgp_node *node) /* values of the vector */
{
    return (struct sgp_slice){0, node->config.parameters};
}
void sgp_core_scale(struct sgp_node *node, double factor, struct sgp_slice slice);
void sgp_core_say_goodbye(
    struct sgp_node *node, const struct sgp_link *id, int code, enum sgp_reason reason);
void sgp_core_enter(struct sgp_node *node, enum sgp_stage stage);
void sgp_core_become(struct sgp_node *node, enum sgp_node_state state);
/* A finished node with so many links must compare again if its sketch is not of its estimate. */
void sgp_core_settle_to_compare(struct sgp_node *node, uint32_t link_count);

/* layout.c */
enum {                /* of a peer */
    SGP_MARK_OUT = 1, /* an edge of the file leads to it */
    SGP_MARK_IN = 2,
    SGP_MARK_KEPT_OUT = 4, /* a link of a former file did */
    SGP_MARK_KEPT_IN = 8,
    SGP_MARK_OWES = 16, /* on that, a snapshot is owed */
};
/* Make the arrays of node `self`: links for the file's edges and for what `marks` (by peer) keeps,
 * all down, and no fewer slots than `least`. 0 or -ENOMEM. */
int sgp_core_lay_out(const struct sgp_topology *topology, uint32_t self,
    const struct sgp_method *method, unsigned char *marks, const struct sgp_node_needs *least,
    struct sgp_layout *ret_layout);
void sgp_core_layout_finish(struct sgp_layout *layout);
void sgp_core_layout_needs(const struct sgp_layout *layout, struct sgp_node_needs *ret_needs);
void sgp_core_swap_layout(struct sgp_node *node, struct sgp_layout *layout);

/* notice.c */
void sgp_core_notice(struct sgp_node *node); /* touch those whom a change of the facts concerns */

/* pace.c */
void sgp_core_pace_begin(struct sgp_node *node);
void sgp_core_pace_end(struct sgp_node *node);
void sgp_core_pace_hear(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_pulse *pulse);
void sgp_core_pace_round(struct sgp_node *node); /* one has ended */
/* How long a round lasts at its own pace. If this process took no steps: as often as it is given something. */
sgp_time sgp_core_own_round(const struct sgp_node *node);
/* Until when it begins no round; 0: it does not rest. Alone a node keeps to the pace that all had, a little below: who
 * comes back ahead of all others could only wait for them, and who comes back behind goes where they are. At its own
 * pace a node whose neighbours are all late does not spin through the rounds of the end. */
sgp_time sgp_core_rests_until(const struct sgp_node *node);
double sgp_core_pace(const struct sgp_node *node); /* by which the learning rate is multiplied */

/* role_gossip.c */
sgp_time sgp_core_passes_on_at(const struct sgp_node *node); /* NEVER: it does not */

/* patience.c */
void sgp_core_payload_begins(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_payload_came(struct sgp_node *node, struct sgp_core_link *link, uint64_t bytes);
sgp_time sgp_core_payload_end(const struct sgp_core_link *link); /* unless more of it comes */
void sgp_core_payload_trickles(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_round_hear(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_pulse *pulse);
bool sgp_core_is_slow(const struct sgp_node *node, const struct sgp_core_link *link);
sgp_time sgp_core_overdue_at(const struct sgp_node *node, const struct sgp_core_link *link);
/* When what it is owed must have been acknowledged. */
sgp_time sgp_core_acknowledged_by(const struct sgp_core_link *link);
void sgp_core_lose_patience(struct sgp_node *node, struct sgp_core_link *link); /* if it is time */

/* outdated.c */
/* A neighbour has shown that this node's record is older than what the neighbour has seen. */
void sgp_core_find_outdated(struct sgp_node *node, struct sgp_core_link *link);
/* The source greets. */
void sgp_core_know_source(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_hello *hello);
/* The target has accepted so many. False: it cannot have. Before settling. */
bool sgp_core_know_target(struct sgp_node *node, struct sgp_core_link *link, uint64_t accepted);

/* likeness.c */
void sgp_core_has_trained(struct sgp_node *node, uint64_t update, double rate);
void sgp_core_compare_training(struct sgp_node *node, uint32_t peer, const struct sgp_share *share);
void sgp_core_forget_updates(struct sgp_node *node); /* their nodes have other indices now */

/* receive.c */
void sgp_core_use_buffer(struct sgp_core_link *link); /* the one granted behind it comes first */
void sgp_core_unreserve(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_take_promise(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_set_aside(struct sgp_node *node); /* a buffer for an estimate, if one is free */
void sgp_core_want(struct sgp_node *node);
void sgp_core_end_question(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_stop_seeking(struct sgp_node *node);
/* All that can be, in whatever order: buffers are short. */
void sgp_core_absorb_early(struct sgp_node *node);
void sgp_core_absorb_until(struct sgp_node *node, sgp_round round); /* unless a share is folded */
/* Whether its epoch lets it be absorbed. */
bool sgp_core_may_absorb(const struct sgp_node *node, const struct sgp_receive *receive);
void sgp_core_absorb_folded(struct sgp_node *node, struct sgp_receive *receive);
void sgp_core_absorb_from(struct sgp_node *node, uint32_t peer);

/* role_owner.c */
/* A share has come whole. False: it is an update that came too late to be added. */
bool sgp_core_counts(struct sgp_node *node, struct sgp_core_link *link, bool accepted);
uint32_t sgp_core_close_step(struct sgp_node *node); /* of an owner: so many updates are added */
void sgp_core_drop_held(struct sgp_node *node);      /* updates that no step will add any more */
bool sgp_core_may_have_copy(const struct sgp_node *node, const struct sgp_core_link *link);
void sgp_core_keep_base(struct sgp_node *node, struct sgp_core_link *link); /* a copy is sent */
void sgp_core_forget_base(struct sgp_node *node, uint32_t *base);

/* role_worker.c */
/* Whether a worker has an update for that owner, of the copy that it trains from. */
bool sgp_core_owes_update(const struct sgp_node *node, const struct sgp_core_link *out);
/* Whether a later copy of the owner's part is to come before the next round. */
bool sgp_core_lacks_copy(const struct sgp_node *node, const struct sgp_core_link *in);
void sgp_core_take_copy(
    struct sgp_node *node, struct sgp_core_link *in, uint32_t slot, sgp_round label);
void sgp_core_want_copy(struct sgp_node *node);      /* if it is a worker */
void sgp_core_pass_on_labels(struct sgp_node *node); /* of a worker that has other owners now */
void sgp_core_use_copies(struct sgp_node *node); /* an update was made from them, or none is due */
void sgp_core_curtail(struct sgp_node *node);    /* steps of a worker that come too late */

/* role_token.c; all of them ask whether there is one */
bool sgp_core_is_untold(const struct sgp_node *node); /* something is to be published for a token */
void sgp_core_time_update(struct sgp_node *node, sgp_time took); /* the steps of a round */
/* The greatest label that a token of that neighbour may have. */
sgp_round sgp_core_label_most(const struct sgp_node *node, uint32_t peer);
/* It joins, and the token begins with it, unless a fleet is there that has it, or had. */
bool sgp_core_mints(const struct sgp_node *node);
/* Whether a token that is here by the record alone may be elsewhere, or is, by this estimate. */
bool sgp_core_may_have_passed(const struct sgp_node *node);
bool sgp_core_has_left(const struct sgp_node *node, const struct sgp_core_link *link);
bool sgp_core_may_grant_token(const struct sgp_node *node, const struct sgp_core_link *link);
void sgp_core_hand_on(struct sgp_node *node);             /* if it is here, and somebody is ready */
bool sgp_core_could_hand_on(const struct sgp_node *node); /* to a node that stays, soon */
bool sgp_core_tells_last(struct sgp_node *node); /* it stops, and publishes the token first */
void sgp_core_forgo_token(struct sgp_node *node);
void sgp_core_forgo_recorded(struct sgp_node *node);
void sgp_core_remake_token(struct sgp_node *node); /* under a higher epoch */
void sgp_core_visit_again(struct sgp_node *node);

/* epoch.c */
void sgp_core_hear_epoch(struct sgp_node *node, const struct sgp_core_link *link);
/* The file has changed, and the former or the new one has exact cycles: each node will take the next epoch when it reloads. */
void sgp_core_expect_epochs(struct sgp_node *node);
/* What there is of the cycle cannot come to its end. */
void sgp_core_raise_epoch(struct sgp_node *node);
/* The same of a cycle of the epoch `lost`, unless a higher one is heard of already. */
void sgp_core_end_epoch(struct sgp_node *node, const struct sgp_epoch *lost);

/* cycle.c */
void sgp_core_put_off_end(struct sgp_node *node);
void sgp_core_renew(struct sgp_node *node);       /* if a higher epoch was heard of, and it may */
void sgp_core_void_former(struct sgp_node *node); /* all but bequests */
/* At the start of a cycle: who is not there for it, or NULL. */
const struct sgp_core_link *sgp_core_cannot_begin(const struct sgp_node *node);
void sgp_core_enter_cycle(struct sgp_node *node, uint32_t slot); /* where all of x is published */
void sgp_core_close_cycle(struct sgp_node *node); /* if the round that is complete is its last */
bool sgp_core_rejoins_cycle(struct sgp_node *node, bool lost);

/* agree.c */
bool sgp_core_agrees(struct sgp_node *node); /* at its last round; true: it may finish, or has */
void sgp_core_sketched(struct sgp_node *node, const struct sgp_sketch *sketch);
void sgp_core_met(struct sgp_node *node, struct sgp_core_link *link); /* both have greeted */
struct sgp_verdict sgp_core_beat(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_beat *beat);
/* Whom the end waits for, or NULL. */
/* Whether the peer has said that its rounds are over. */
bool sgp_core_has_ended(const struct sgp_node *node, const struct sgp_core_link *link);
const struct sgp_core_link *sgp_core_not_ended(const struct sgp_node *node);
/* |z - z'|, and that by the longer of the two; both NaN if not known. */
double sgp_core_distance(
    const struct sgp_node *node, const struct sgp_core_link *link, double *ret_relative);

/* owed.c */
void sgp_core_grow(struct sgp_node *node, double weight);
/* To x: what such a share gave of the snapshot. */
void sgp_core_put_back(struct sgp_node *node, uint32_t slot, const struct sgp_share *share);
void sgp_core_come_home(struct sgp_node *node, uint32_t slot, const struct sgp_share *share);
bool sgp_core_is_of_cycle(const struct sgp_node *node, const struct sgp_share *share);
/* The share that is owed first is settled, or is forgotten, whatever becomes of it; or all that has not left is. */
void sgp_core_owe_next(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_forget_owed(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_forget_unsent(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_take_back(struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason);

/* total.c */
void sgp_core_total_hears(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_shed(struct sgp_node *node);       /* what is beyond the most that a node can have */
void sgp_core_keep_total(struct sgp_node *node); /* before each round */

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
bool sgp_core_let_go(struct sgp_node *node); /* of the snapshot of a debt; false: of none */
bool sgp_core_dispute(struct sgp_node *node, struct sgp_core_link *link);
bool sgp_core_keep_pledged(struct sgp_node *node, struct sgp_core_link *link); /* its link goes */
/* A debt is paid, comes home or is void. What would come home amid an exact cycle is void. */
void sgp_core_end_debt(struct sgp_node *node, uint32_t index, enum sgp_posting end);
void sgp_core_void_debts(struct sgp_node *node);
void sgp_core_move_accounts(struct sgp_node *node, const struct sgp_topology *topology,
    const uint32_t *index); /* a reload */
void sgp_core_restore_accounts(struct sgp_node *node, const struct sgp_record *record);
/* Whether this node itself knows what it accepted last from a source of that name and lineage. */
bool sgp_node_accepted(const struct sgp_node *node, const char *source, uint64_t lineage,
    uint64_t number, bool *ret_open, uint64_t *ret_accepted);

/* fold.c */
/* The share that comes on a link, if it may be folded. */
void sgp_core_fold(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_end_fold(struct sgp_node *node, struct sgp_core_link *link); /* if there is one */
void sgp_core_give_up_fold(struct sgp_node *node);                         /* if x has changed */
/* The target refuses what it was given; that comes home once nothing is folded. */
void sgp_core_refuse_later(
    struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason);
void sgp_core_take_up_refusals(struct sgp_node *node);

/* outgoing.c */
#define SGP_QUIET_NS (60 * SGP_SECOND)     /* what goes on for long is told once in so long */
#define SGP_HALF 0.5                       /* what one who chooses gives */
bool sgp_core_give(struct sgp_node *node); /* false: must wait */
const struct sgp_core_link *sgp_core_cannot_give(
    struct sgp_node *node, enum sgp_waiting *ret_waiting);
void sgp_core_forget_answers(struct sgp_node *node);
bool sgp_core_give_all(struct sgp_node *node, struct sgp_core_link *heir, sgp_round round);

/* publish.c */
/* Publish one snapshot, in a slot that is not in use, for all outgoing shares of this turn, and take what
 * they carry off this node's mass. `part` of each outgoing share goes; `fractions` is the sum of their
 * fractions. */
void sgp_core_publish(struct sgp_node *node, double part, double fractions, uint32_t slot);
/* The same in an exact cycle, whose file tells what is left of each part. */
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

/* handing.c */
void sgp_core_ask(struct sgp_node *node, struct sgp_core_link *link, const struct sgp_ask *ask);
void sgp_core_copied(struct sgp_node *node);
void sgp_core_hand_out(struct sgp_node *node);
void sgp_core_forget_change(struct sgp_node *node); /* the next copy of an owner is whole */
/* Training has ended, and an owner whose copies are coded has what its workers have. */
void sgp_core_end_with_copy(struct sgp_node *node);

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
void sgp_core_accept_end(struct sgp_node *node, struct sgp_core_link *link);
void sgp_core_proven(struct sgp_node *node, const struct sgp_pulse *pulse);
/* What a pulse says of its sender's topology file; 0: nothing. */
void sgp_core_hear_topology(struct sgp_node *node, struct sgp_core_link *link, uint64_t digest);
/* This node's own file is another: of every peer whether its file differs. Whoever reloads it knows, so nothing is noted. */
void sgp_core_compare_topologies(struct sgp_node *node);
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
bool sgp_core_seeks(struct sgp_node *node);                 /* true: do not start yet */
sgp_time sgp_core_answered_by(const struct sgp_node *node); /* the next turn of another */
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
void sgp_core_end_steps(struct sgp_node *node);
void sgp_core_pause(struct sgp_node *node, bool paused);
void sgp_core_drain(struct sgp_node *node);
bool sgp_core_may_start(struct sgp_node *node, uint32_t *ret_missing);
sgp_time sgp_core_awaits_mass_until(const struct sgp_node *node); /* its round begins then */
/* Where all have one beginning: the neighbour that round 0 waits for, or NULL. */
const struct sgp_core_link *sgp_core_not_begun(const struct sgp_node *node);

/* role.c */
void sgp_core_take_roles(struct sgp_node *node); /* by its file; another file is in force */

/* watch.c */
void sgp_core_watch(struct sgp_node *node);    /* absence, dialling */
void sgp_core_announce(struct sgp_node *node); /* beats and changed promises */
void sgp_core_enrol(struct sgp_node *node);    /* what was touched; the end of a step */
/* Whether the roster is what looking at all links gives, between two steps. For tests. */
bool sgp_core_is_enrolled(const struct sgp_node *node);

#endif
