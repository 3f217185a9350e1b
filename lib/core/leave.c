/* SPDX-License-Identifier: Apache-2.0 */
/* Leaving for good: the node that leaves, and its heir.
 *
 * The leaver first accumulates mass: it gives empty shares and continues to absorb. It stops when
 * it has the mass of one member, and of the members that left their mass to it. Then it ends its
 * round, announces that it drains, and refuses shares that still arrive, so that they return to
 * their sources. When none of its own shares is in transit, it gives all its mass to one live
 * out-neighbour, marked as a bequest. When the bequest is acknowledged, the node has left. A
 * bequest that was not sent, or was refused, goes to another heir. A bequest that was sent but not
 * acknowledged may have been accepted. Only its heir knows, so that heir is awaited.
 *
 * The heir then has the mass of two members. At the begin of each round it subtracts some of the
 * surplus from its (x, w), which leaves its estimate unchanged. It continues until the total equals
 * the number of members again. It never subtracts so much that it would starve, and never more than
 * the mass that arrived with the bequest, so a message without mass dissolves nothing.
 *
 * The rule: docs/rules/leave.md */
#include "core/core.h"

#include <math.h>

/* shares that sources sent before they heard of it are still answered */
#define SGP_LINGER_NS SGP_SECOND

/* ---- the leaver ---- */

static bool has_neighbour(const struct sgp_node *node)
{
    SGP_EACH_OUT (link, node)
        if (!link->retired)
            return true;
    return false;
}

const char *sgp_node_leave_obstacle(const struct sgp_node *node)
{
    if (node->leaving.wanted)
        return "it is leaving already";
    if (node->state == SGP_NODE_JOINING)
        return "it is joining and has no part in the training yet; stop it instead";
    if (node->state == SGP_NODE_FINISHED)
        return "training is over; stop it instead";
    if (node->state == SGP_NODE_DRAINING)
        return "it is stopping";
    if (node->role->leave_obstacle != NULL)
        return node->role->leave_obstacle;
    if (!has_neighbour(node))
        return "the topology names nobody to whom it gives, so nobody can take its mass; stop it "
               "instead";
    return NULL;
}

void sgp_core_leave(struct sgp_node *node)
{
    if (sgp_node_leave_obstacle(node) != NULL)
        return;
    node->leaving.wanted = true;
    sgp_core_accumulate(node, 0);
    node->unrecorded = true;
}

void sgp_core_accumulate(struct sgp_node *node, sgp_time notice)
{
    node->leaving.accumulate_from = node->now + notice;
    node->leaving.accumulate_until = node->now + SGP_SILENCE_MAX_NS;
}

/* Whether a live source has promised this node a share. */
static bool is_given_to(const struct sgp_node *node)
{
    SGP_EACH_IN (link, node)
        if (sgp_core_peer_active(link) && link->receiving.promise[0] != SGP_ROUND_NONE)
            return true;
    return false;
}

/* Whether the node leaves now: it has its mass, or no more arrives. A node without mass waits for
 * some. */
static bool has_accumulated(const struct sgp_node *node)
{
    double weight = node->mass.weight + sgp_core_held(node);
    bool in_vain = node->now >= node->leaving.accumulate_from && !is_given_to(node);
    bool over = node->paused || node->stage == SGP_STAGE_END ||
                (node->state != SGP_NODE_JOINING &&
                    (in_vain || node->now >= node->leaving.accumulate_until));
    if (node->role->unique) /* it hands on the token first */
        return weight <= 0 && sgp_core_in_flight(node) <= 0;
    return weight >= 1 + node->mass.covered || (over && weight > 0) || sgp_core_follows(node);
}

/* Leave at the end of a round or in a pause. Leave at once if the bequest is given, or was
 * received. */
bool sgp_core_leaves_now(struct sgp_node *node)
{
    if (!node->leaving.wanted || node->state == SGP_NODE_DRAINING || node->exact.begun)
        return false;
    if (!has_accumulated(node) && !node->leaving.left && sgp_core_bequest(node) == NULL)
        return false;
    node->leaving.since = node->now;
    node->leaving.until = node->now + SGP_LINGER_NS;
    node->again = true;
    sgp_core_enter(node, SGP_STAGE_IDLE);
    sgp_core_become(node, SGP_NODE_DRAINING);
    return true;
}

/* STOP while leaving. The node stays a member, unless it has begun to hand over. Then that is
 * recorded. */
void sgp_core_stay(struct sgp_node *node)
{
    if (node->leaving.left || sgp_core_bequest(node) != NULL)
        node->leaving.stopped = true;
    else
        node->leaving.wanted = false;
    node->unrecorded = true;
}

/* End payloads that are arriving: they would be refused, and may take very long. Their sources dial
 * again. On the new connection they learn reliably that their shares return. */
static void interrupt(struct sgp_node *node)
{
    SGP_EACH_IN (link, node) {
        if (!link->receiving.filling)
            continue;
        sgp_core_hang_up(node, link, SGP_E_CREDIT, SGP_REASON_CREDIT);
        node->leaving.until = node->now + SGP_DRAIN_NS;
    }
}

/* As far as is known, no payload is on its way to this node. */
static bool is_quiet(const struct sgp_node *node)
{
    SGP_EACH_IN (link, node)
        if (link->receiving.filling)
            return false;
    return node->now >= node->leaving.until;
}

/* When the share that a link owes is left to the heir. The first case: the target is unreachable,
 * and has been silent for too long. The second: the target is heard, but did not accept the share
 * in the time that this may take. */
static sgp_time gives_up_at(const struct sgp_node *node, const struct sgp_core_link *link)
{
    const struct sgp_owed *owed = &link->owed[0];
    if (owed->publishing)
        return SGP_TIME_NEVER;
    if (link->connection.state == SGP_LINK_UP) {
        uint64_t bytes = owed->sent ? owed->share.payload_bytes : 0;
        sgp_time seconds = (sgp_time)(bytes / SGP_PAYLOAD_LEAST);
        return node->leaving.since + SGP_SILENCE_MAX_NS + seconds * SGP_SECOND;
    }
    sgp_time heard =
        link->liveness.heard != SGP_TIME_NEVER ? link->liveness.heard : node->leaving.since;
    return heard + sgp_core_silence(link);
}

bool sgp_core_awaits_owed(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->owed[0].exists &&
           (link->owed[0].share.bequest > 0 || gives_up_at(node, link) > node->now);
}

static bool awaits_any(const struct sgp_node *node)
{
    SGP_EACH_OUT (link, node)
        if (sgp_core_awaits_owed(node, link))
            return true;
    return false;
}

/* The next time at which a target is given up, or the heir is replaced. */
static sgp_time next_given_up(const struct sgp_node *node)
{
    bool waits = node->leaving.heir != SGP_SLOT_NONE && !node->leaving.sent;
    sgp_time first =
        waits && node->leaving.heir_until > node->now ? node->leaving.heir_until : SGP_TIME_NEVER;
    SGP_EACH_OUT (link, node) {
        sgp_time at = link->owed[0].exists ? gives_up_at(node, link) : SGP_TIME_NEVER;
        if (at > node->now && at < first)
            first = at;
    }
    return first;
}

sgp_time sgp_core_leave_deadline(const struct sgp_node *node)
{
    if (sgp_core_accumulates(node) && node->leaving.accumulate_until > node->now)
        return node->leaving.accumulate_from > node->now ? node->leaving.accumulate_from
                                                         : node->leaving.accumulate_until;
    if (sgp_core_has_gone(node) && !node->leaving.left && !node->drained)
        return next_given_up(node);
    if (!node->leaving.left || node->drained)
        return SGP_TIME_NEVER;
    sgp_time at = node->leaving.until > node->now ? node->leaving.until : node->leaving.patience;
    return at > node->now ? at : SGP_TIME_NEVER;
}

static bool may_inherit(const struct sgp_core_link *link)
{
    return sgp_core_living(link) && !link->retired && !link->bequest.declined;
}

/* A neighbour whose own share was given up does not become the heir. */
static bool is_free(const struct sgp_core_link *link)
{
    return may_inherit(link) && (!link->owed[0].exists || link->owed[0].share.bequest > 0);
}

/* The successor of the present heir: the next candidate in order, or NULL. */
static struct sgp_core_link *other_heir(const struct sgp_node *node)
{
    struct sgp_core_link *first = NULL, *next = NULL;
    for (uint32_t i = node->layout.out_count; i-- > 0;) {
        struct sgp_core_link *link = &node->layout.links[i];
        if (!is_free(link) || link->peer == node->leaving.heir)
            continue;
        first = link;
        next = link->peer > node->leaving.heir ? link : next;
    }
    return next != NULL ? next : first;
}

/* The present heir had its time, and there is another candidate. */
static bool gives_way(const struct sgp_node *node)
{
    return node->now >= node->leaving.heir_until && other_heir(node) != NULL;
}

/* The present heir, if it still qualifies and is not replaced, otherwise the first candidate. The
 * promise to it is for the round in which it is, so that its buffer is not delayed. */
static struct sgp_core_link *choose_heir(struct sgp_node *node)
{
    uint32_t present = node->leaving.heir;
    struct sgp_core_link *heir =
        present != SGP_SLOT_NONE ? sgp_core_find(node, present, SGP_OUT) : NULL;
    if (heir == NULL || !is_free(heir) || gives_way(node))
        heir = other_heir(node);
    uint32_t peer = heir != NULL ? heir->peer : SGP_SLOT_NONE;
    if (peer == present)
        return heir;
    node->leaving.heir = peer;
    node->leaving.heir_until = node->now + SGP_SILENCE_MAX_NS;
    node->stage_since = node->now;
    if (heir != NULL)
        node->leaving.round = heir->pulse.round < node->round ? heir->pulse.round : node->round;
    return heir;
}

/* Whether the share is known not to have arrived, and will not be sent. Either its heir is gone,
 * and there may be others, or its target drains. Two leavers would wait for each other. */
static bool is_owed_in_vain(const struct sgp_node *node, const struct sgp_core_link *link)
{
    const struct sgp_owed *owed = &link->owed[0];
    bool is_not_there =
        link->connection.state == SGP_LINK_UP && !owed->sent; /* its greeting said so */
    if (!owed->exists || owed->publishing || owed->lost || link->inquiry.disputed != 0)
        return false;
    if (owed->share.bequest > 0)
        return !may_inherit(link) ? is_not_there || !node->leaving.sent
                                  : !owed->told && gives_way(node);
    return is_not_there && link->pulse.state == SGP_NODE_DRAINING;
}

static void take_back_in_vain(struct sgp_node *node)
{
    SGP_EACH_OUT (link, node) {
        if (!is_owed_in_vain(node, link))
            continue;
        bool bequest = link->owed[0].share.bequest > 0;
        sgp_core_take_back(node, link, SGP_REASON_LEAVING);
        if (bequest && link->connection.id != 0) /* the former heir then forgets the accounts */
            sgp_core_hang_up(node, link, SGP_E_CLOSED, SGP_REASON_LEAVING);
        node->again = true;
    }
}

void sgp_core_hand_over(struct sgp_node *node)
{
    if (node->drained || node->stage == SGP_STAGE_PUBLISHING)
        return;
    if (node->leaving.left) {
        if (node->now >= node->leaving.patience)
            interrupt(node);
        if (is_quiet(node))
            sgp_core_depart(node, SGP_REASON_LEFT);
        return;
    }
    take_back_in_vain(node);
    if (awaits_any(node))
        return;
    if (sgp_core_follows(node)) { /* a follower has nothing to bequeath */
        node->leaving.left = node->unrecorded = true;
        node->leaving.patience = node->now + SGP_DRAIN_NS;
        return;
    }
    if (sgp_core_seeks(node))
        return;
    struct sgp_core_link *heir = choose_heir(node);
    if (heir == NULL || !sgp_core_covers(node, heir->giving.credit[0], node->leaving.round))
        return;
    node->leaving.sent = false;
    if (!sgp_core_give_all(node, heir, node->leaving.round))
        return;
    sgp_core_enter(node, SGP_STAGE_PUBLISHING);
    node->leaving.heir_until = node->now + SGP_SILENCE_MAX_NS;
    SGP_EACH_OUT (link, node)
        if (link->connection.id != 0 && sgp_core_is_pledged(node, link))
            sgp_core_hang_up(node, link, SGP_E_CLOSED, SGP_REASON_LEAVING);
}

/* The file changes: shares that are owed to nodes which it no longer names return. So a bequest
 * that its heir cannot have accepted returns first. So does a bequest whose heir the file no longer
 * names. */
void sgp_core_reconsider(struct sgp_node *node, const uint32_t *index)
{
    struct sgp_core_link *heir = sgp_core_has_gone(node) ? sgp_core_bequest(node) : NULL;
    bool may_have_it = heir != NULL && (heir->owed[0].told || heir->owed[0].lost);
    if (heir == NULL || (may_have_it && index[heir->peer] != SGP_SLOT_NONE))
        return;
    sgp_core_take_back(node, heir, SGP_REASON_TOPOLOGY);
    if (heir->connection.id != 0) /* the heir then forgets the accounts */
        sgp_core_hang_up(node, heir, SGP_E_CLOSED, SGP_REASON_LEAVING);
}

/* ---- the heir ---- */

void sgp_core_dissolve(struct sgp_node *node)
{
    double spare = node->mass.weight - SGP_STARVING * node->config.weight_least;
    double off = fmin(node->mass.covered, fmin(node->mass.weight / 2, spare));
    if (!(off > 0) || node->exact.begun)
        return;
    sgp_core_scale(node, (node->mass.weight - off) / node->mass.weight, sgp_core_all(node));
    sgp_mass_post(node, SGP_MASS_DISSOLVE, off);
    sgp_mass_set_members(node, node->mass.surplus - off, node->mass.covered - off);
    node->unrecorded = true;
    sgp_core_note(node, SGP_NOTE_DISSOLVED, node->config.self)->amount = off;
}

void sgp_core_depart(struct sgp_node *node, enum sgp_reason reason)
{
    SGP_EACH_LINK (link, node) {
        if (link->connection.id != 0)
            sgp_core_hang_up(node, link, SGP_E_CLOSED, reason);
        sgp_core_end_pending(node, link, reason);
    }
    node->drained = true;
    (void)sgp_core_note(node, SGP_NOTE_DRAINED, node->config.self);
}
