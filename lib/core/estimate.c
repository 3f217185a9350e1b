/* Estimates: a node whose parameters did not survive asks a source for a copy of its x, and hands
 * its own to a target that asks. No weight moves.
 *
 * Asking sets a receive buffer aside, one for the whole node, so only one source is asked at a time.
 * One that does not answer gives way to the next, and its connection ends with that, so that a late
 * answer is never taken for one to a later question. Whoever is past joining can answer; the answer is
 * one more snapshot, held until the target says that it has come, or is gone. So can one that leaves for
 * good until it has handed its mass over: its only heir may be waiting for just that. */
#include "core/core.h"

#include <math.h>

#define TURNS_MAX 8 /* doublings of the time that a source has to answer: up to 43 minutes */

/* ---- looking for one ---- */

static void reserve(struct sgp_node *node)
{
    for (uint32_t i = node->receive_count; node->seeking.slot == SGP_SLOT_NONE && i-- > 0;) {
        if (node->receives[i].state != SGP_RECEIVE_FREE)
            continue;
        node->receives[i].state = SGP_RECEIVE_GRANTED;
        node->seeking.slot = i;
    }
}

/* From now on the node's parameters are a guess; sgp_core_seek does the rest. An estimate that is asked
 * for already serves. */
void sgp_core_want(struct sgp_node *node)
{
    if (node->seeking.wants)
        return;
    node->seeking = (struct sgp_seeking){
        .wants = true, .asked = SGP_SLOT_NONE, .slot = SGP_SLOT_NONE, .until = SGP_TIME_NEVER};
    reserve(node);
}

static void say(struct sgp_node *node, struct sgp_core_link *link, bool wants)
{
    struct sgp_message *message = sgp_core_send(node, link, SGP_ASK);
    message->ask.wants = wants;
}

static void stop_seeking(struct sgp_node *node)
{
    if (node->seeking.slot != SGP_SLOT_NONE)
        node->receives[node->seeking.slot].state = SGP_RECEIVE_FREE;
    node->seeking.slot = SGP_SLOT_NONE;
    node->seeking.wants = false;
}

/* One that drains may be about to leave for good, with this node for its only heir. */
static bool drains(const struct sgp_core_link *link)
{
    return link->state == SGP_LINK_UP && !link->absent && link->pulse.state == SGP_NODE_DRAINING;
}

static struct sgp_core_link *next_of(
    const struct sgp_node *node, bool (*serves)(const struct sgp_core_link *))
{
    uint32_t count = node->link_count - node->out_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t turn = (node->seeking.turn + i) % count;
        struct sgp_core_link *link = &node->links[node->out_count + turn];
        if (!link->barren && link->peer != node->seeking.asked && serves(link))
            return link;
    }
    return NULL;
}

/* The next in turn that could be asked, and is not; or NULL. One that stays is better. */
static struct sgp_core_link *next_source(const struct sgp_node *node)
{
    struct sgp_core_link *next = next_of(node, sgp_core_living);
    return next != NULL ? next : next_of(node, drains);
}

/* One that was asked may be unable to answer, which it need not show (it was paused before its own
 * parameters had come), or be busy with a job or with another's estimate. So if there is `other`, it is
 * that one's turn; and each turn is twice as long as the one before, so that the slow ones come to
 * answer too. What joins again or drains has nothing to hand out. */
static void give_way(struct sgp_node *node, const struct sgp_core_link *other)
{
    if (node->seeking.asked == SGP_SLOT_NONE || node->seeking.filling)
        return;
    struct sgp_core_link *link = sgp_core_find(node, node->seeking.asked, SGP_IN);
    bool late = other != NULL && node->now >= node->seeking.asked_until;
    bool serves = sgp_core_living(link) || drains(link);
    if (link->filling || (serves && !late)) /* a share comes first on its line */
        return;
    if (node->seeking.turns < TURNS_MAX)
        node->seeking.turns++;
    sgp_core_hang_up(node, link, SGP_E_CREDIT, SGP_REASON_CREDIT); /* nobody is asked now */
}

void sgp_core_seek(struct sgp_node *node)
{
    if (!node->seeking.wants || node->drained)
        return;
    reserve(node);
    struct sgp_core_link *next = next_source(node);
    give_way(node, next);
    bool free = node->seeking.asked == SGP_SLOT_NONE && node->seeking.slot != SGP_SLOT_NONE;
    if (!free || next == NULL)
        return;
    node->seeking.asked = next->peer;
    node->seeking.asked_until = node->now + (SGP_SEEK_NS << node->seeking.turns);
    node->seeking.turn = (uint32_t)(next - node->links) - node->out_count + 1;
    say(node, next, true);
}

/* A node without a past has nothing worth mixing into a fleet that has trained: as long as an
 * in-neighbour may still come that could be asked, its patience does not begin to run. */
static bool may_yet_ask(const struct sgp_node *node)
{
    bool may = false;
    for (uint32_t i = node->out_count; i < node->link_count; i++) {
        if (sgp_core_living(&node->links[i]))
            return false;
        may = may || !node->links[i].retired;
    }
    return may && !node->recorded && !node->config.seeks;
}

/* Whether a node that could start waits for an estimate first. Parameters on record exactly are kept
 * unless the fleet is more than a cycle ahead. */
bool sgp_core_seeks(struct sgp_node *node)
{
    bool all = true, living = false, ahead = false;
    for (uint32_t i = 0; i < node->link_count; i++) {
        const struct sgp_core_link *link = &node->links[i];
        bool lives = sgp_core_living(link);
        all = all && (link->heard != SGP_TIME_NEVER || link->retired);
        living = living || lives;
        ahead = ahead || (lives && link->pulse.round >
                                       node->round + node->config.topology->rounds_per_cycle);
    }
    if (node->restored && ahead && !node->seeking.wants && node->seeking.until == SGP_TIME_NEVER) {
        sgp_core_want(node);
        node->again = true;
    }
    if (!node->seeking.wants)
        return false;
    if (node->seeking.until == SGP_TIME_NEVER && living && may_yet_ask(node))
        return true;
    if (node->seeking.until == SGP_TIME_NEVER)
        node->seeking.until = node->now + SGP_SEEK_NS;
    bool hopeless = (all && !living) || node->now >= node->seeking.until;
    if (node->seeking.asked != SGP_SLOT_NONE || !hopeless)
        return true;
    stop_seeking(node);
    return false;
}

void sgp_core_estimate(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_estimate *estimate)
{
    if (!node->seeking.wants || node->seeking.asked != link->peer || node->seeking.filling ||
        link->filling) {
        sgp_core_hang_up(node, link, SGP_E_CREDIT, SGP_REASON_CREDIT);
        return;
    }
    bool sound = isfinite(estimate->weight) && estimate->weight > 0 &&
                 estimate->weight <= sgp_core_weight_most(node) && estimate->round >= 0 &&
                 estimate->round <= link->pulse.round &&
                 estimate->payload_bytes == 4 * node->config.parameters;
    if (!sound) {
        sgp_core_hang_up(node, link, SGP_E_PROTOCOL, SGP_REASON_RANGE);
        return;
    }
    node->seeking.incoming = *estimate;
    node->seeking.filling = true;
    sgp_core_payload_begins(node, link);
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_RECEIVE);
    effect->link = (struct sgp_link){link->peer, link->direction, link->connection};
    effect->slot = node->seeking.slot;
}

static void adopt(struct sgp_node *node, uint32_t peer)
{
    uint32_t slot = node->seeking.slot;
    node->receives[slot].state = SGP_RECEIVE_ABSORBING;
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_ADOPT);
    effect->link.peer = peer;
    effect->slot = slot;
    effect->factor = node->weight / node->seeking.incoming.weight;
    node->seeking.slot = SGP_SLOT_NONE;
    node->seeking.wants = false;
    node->seeking.until = node->now; /* once is enough */
    node->unrecorded = true;
    (void)sgp_core_note(node, SGP_NOTE_ADOPTED, peer);
}

void sgp_core_estimate_payload(struct sgp_node *node, struct sgp_core_link *link, int code)
{
    if (code == SGP_E_CHECKSUM) {
        sgp_core_hang_up(node, link, code, SGP_REASON_CHECKSUM);
        return;
    }
    node->seeking.filling = false;
    node->seeking.asked = SGP_SLOT_NONE;
    link->barren = code != 0;
    link->trickles = false;
    if (code == 0)
        adopt(node, link->peer);
    say(node, link, false);
}

/* ---- handing ours out ---- */

static void release(struct sgp_node *node)
{
    node->handing.peer = SGP_SLOT_NONE;
    if (node->handing.publishing)
        return; /* the job still writes; sgp_core_copied comes back here */
    node->snapshot_users[node->handing.slot]--;
    node->handing.slot = SGP_SLOT_NONE;
}

void sgp_core_ask(struct sgp_node *node, struct sgp_core_link *link, const struct sgp_ask *ask)
{
    link->asks = ask->wants;
    if (!ask->wants && node->handing.peer == link->peer)
        release(node);
}

void sgp_core_copied(struct sgp_node *node)
{
    node->handing.publishing = false;
    if (node->handing.peer == SGP_SLOT_NONE)
        release(node);
}

/* The last free snapshot, so that rounds keep to the first ones. */
static uint32_t last_unused(const struct sgp_node *node)
{
    for (uint32_t i = node->snapshot_count; i-- > 0;)
        if (node->snapshot_users[i] == 0)
            return i;
    return SGP_SLOT_NONE;
}

static void begin(struct sgp_node *node, const struct sgp_core_link *link)
{
    uint32_t slot = last_unused(node);
    if (slot == SGP_SLOT_NONE)
        return;
    node->snapshot_users[slot]++;
    node->handing = (struct sgp_handing){
        .peer = link->peer,
        .slot = slot,
        .publishing = true,
        .estimate = {.round = node->round,
            .weight = node->weight,
            .payload_bytes = 4 * node->config.parameters},
    };
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_PUBLISH);
    effect->slot = slot;
    effect->factor = 1;
}

static void send(struct sgp_node *node)
{
    struct sgp_core_link *link = sgp_core_find(node, node->handing.peer, SGP_OUT);
    if (link->owed.exists && link->owed.sent) /* one payload at a time on a link */
        return;
    node->handing.sent = true;
    struct sgp_message *message = sgp_core_send(node, link, SGP_ESTIMATE);
    message->estimate = node->handing.estimate;
    node->effects->items[node->effects->count - 1].slot = node->handing.slot;
}

/* Whose parameters are a guess has none to hand out; nor has one that gave all its mass away. */
void sgp_core_hand_out(struct sgp_node *node)
{
    bool stays = node->state != SGP_NODE_JOINING && node->state != SGP_NODE_DRAINING;
    bool leaves = sgp_core_has_gone(node) && !node->leaving.left; /* its heir may need one */
    bool able = (stays || leaves) && !node->seeking.wants && node->weight > 0;
    for (uint32_t i = sgp_core_next(node, SGP_SET_ASKING, 0);
         able && node->handing.slot == SGP_SLOT_NONE && i < node->out_count;
         i = sgp_core_next(node, SGP_SET_ASKING, i + 1))
        if (node->links[i].asks)
            begin(node, &node->links[i]);
    bool ready = node->handing.peer != SGP_SLOT_NONE && !node->handing.publishing;
    if (ready && !node->handing.sent)
        send(node);
}

/* ---- both ---- */

/* A connection is gone: whoever was asked on it, or asked, must ask anew. */
void sgp_core_estimate_down(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->direction == SGP_IN && node->seeking.asked == link->peer) {
        node->seeking.asked = SGP_SLOT_NONE;
        node->seeking.filling = false;
    }
    if (link->direction == SGP_OUT) {
        link->asks = false;
        if (node->handing.peer == link->peer)
            release(node);
    }
}
