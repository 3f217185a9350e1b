/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing shares: which targets a node gives to in this turn, how much of its mass, and what
 * remains.
 *
 * If the file gives the targets, the outgoing shares of a turn follow the edges of its round. With
 * a method that chooses its targets (AD-PSGD: Lian, Zhang, Zhang and Liu, ICML 2018), a node first
 * answers the neighbours that have asked since its last turn. Each gets half of what is left. If
 * none has asked, the node gives half to one random neighbour, and asks it. The mass of an asking
 * share is absorbed after its answer was published, so that both ends give half of what they had
 * before. If no answer can be given, it is absorbed at once. An answer that is never given costs
 * nothing. No mass is lost, and only the exchange was one-sided.
 *
 * The rule: docs/rules/outgoing.md */
#include "core/core.h"

#include <math.h>

/* of the sum of fractions; a smaller share is not worth its payload */
#define SGP_GIVE_LEAST 0x1p-6
#define SGP_STARVES_NS (3 * SGP_SECOND) /* time after which a starving node reports it */

/* ---- asking and answering ---- */

/* Only a node that trains has turns in which it answers. No share is kept waiting for the turn of
 * another node. */
void sgp_core_forget_answers(struct sgp_node *node)
{
    if (node->state == SGP_NODE_TRAINING && !node->paused && node->mass.weight > 0 &&
        sgp_core_chooses(node, node->round))
        return;
    SGP_EACH_OF (link, node, SGP_SET_TO_ANSWER)
        link->giving.answer_due = false;
}

/* ---- targets ---- */

static const struct sgp_edge *edges_of_round(const struct sgp_node *node, uint32_t *ret_count)
{
    const struct sgp_phase *phase =
        sgp_topology_phase(node->config.topology, node->round + node->passes);
    const struct sgp_edge *edges = sgp_phase_out(phase, node->config.self, ret_count);
    *ret_count = node->role->gives_nothing ? 0 : *ret_count;
    return edges;
}

static bool is_ready(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return sgp_core_may_owe(node, link) && link->connection.state == SGP_LINK_UP &&
           sgp_core_covers(node, link->giving.credit[0], sgp_core_label(node, link));
}

/* Whether this round's share may be left out because a credit is missing. Its fraction then
 * stays. */
static bool may_leave_out(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool own_pace = sgp_core_at_own_pace(node) && node->state == SGP_NODE_TRAINING;
    return own_pace || node->passes > 0 || sgp_core_is_late(link) ||
           (sgp_round)link->giving.left_out < sgp_core_overlap(node);
}

/* Whether a neighbour took rounds alone, and is too far ahead for any node to jump to its round. It
 * waits for the others, and would only accumulate the mass that it is given. A node that has just
 * begun does not know yet how far the others are. */
static bool has_hurried_ahead(const struct sgp_node *node, const struct sgp_core_link *link)
{
    sgp_round far = sgp_core_far_ahead(node), there = link->pulse.round;
    bool knows = node->state == SGP_NODE_TRAINING && node->round > node->pace.round + far;
    if (!knows || there <= node->round + far || sgp_core_at_own_pace(node))
        return false;
    sgp_round most = sgp_core_mixing_end(node); /* no node is followed beyond the end of mixing */
    there = there < most ? there : most;
    return there > sgp_core_followed(node, node->round, sgp_core_living) + far;
}

static bool takes_part(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return sgp_core_peer_active(link) && !has_hurried_ahead(node, link);
}

/* Whether a worker has no update for this owner. */
static bool is_passed_over(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return node->role->gives_updates && !sgp_core_owes_update(node, link);
}

/* The out-neighbour of this round that must be waited for. NULL: the node may give. */
const struct sgp_core_link *sgp_core_cannot_give(
    struct sgp_node *node, enum sgp_waiting *ret_waiting)
{
    uint32_t count;
    const struct sgp_edge *edges = edges_of_round(node, &count);
    bool all = node->role->gives_always;
    for (uint32_t e = 0; e < count && !sgp_core_chooses(node, node->round); e++) {
        struct sgp_core_link *link = sgp_core_find(node, edges[e].target, SGP_OUT);
        bool may_pass = !takes_part(node, link) || may_leave_out(node, link);
        if (is_ready(node, link) || (may_pass && !all) || is_passed_over(node, link))
            continue;
        *ret_waiting = sgp_core_may_owe(node, link) ? SGP_WAITING_CREDIT : SGP_WAITING_ACK;
        return link;
    }
    return NULL;
}

static bool can_get(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return takes_part(node, link) && !link->retired && is_ready(node, link);
}

static struct sgp_outgoing *add(
    struct sgp_node *node, struct sgp_core_link *link, double fraction, bool asks)
{
    struct sgp_outgoing *outgoing = &node->layout.outgoing[node->giving.count++];
    *outgoing = (struct sgp_outgoing){.link = link, .fraction = fraction, .asks = asks};
    return outgoing;
}

/* Take the edges of the round whose targets are present and ready. The fractions of the others
 * stay. */
static void take_edges(struct sgp_node *node)
{
    uint32_t count;
    const struct sgp_edge *edges = edges_of_round(node, &count);
    bool all = node->role->gives_always, whole = node->role->gives_updates;
    for (uint32_t e = 0; e < count; e++) {
        struct sgp_core_link *link = sgp_core_find(node, edges[e].target, SGP_OUT);
        bool present = (all && !is_passed_over(node, link)) || (!all && can_get(node, link));
        link->giving.left_out = present ? 0 : link->giving.left_out + 1;
        if (present)
            add(node, link, whole ? 1 : edges[e].fraction, false)->edge = &edges[e];
    }
}

/* Each answer gets half of what the previous ones left. */
static void take_answers(struct sgp_node *node)
{
    double fraction = 1;
    SGP_EACH_OF (link, node, SGP_SET_TO_ANSWER) {
        if (link->giving.answer_due && can_get(node, link))
            (void)add(node, link, fraction *= SGP_HALF, false);
    }
}

/* Only a node that trains has a next turn in which to answer. */
static bool can_be_asked(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->pulse.state == SGP_NODE_TRAINING && can_get(node, link);
}

static void draw_one(struct sgp_node *node)
{
    uint64_t count = 0;
    SGP_EACH_OUT (link, node)
        count += can_be_asked(node, link);
    if (count == 0)
        return;
    uint64_t drawn = sgp_random_below(&node->random, count);
    SGP_EACH_OUT (link, node)
        if (can_be_asked(node, link) && drawn-- == 0)
            (void)add(node, link, SGP_HALF, true);
}

/* All questions are answered now, or cannot be. Returns the weight of the shares that waited for
 * that. */
static double answer_all(struct sgp_node *node)
{
    double coming = 0;
    for (uint32_t i = 0; i < node->layout.receive_count; i++) {
        const struct sgp_receive *receive = &node->layout.receives[i];
        coming += sgp_core_is_kept(node, receive) ? receive->share.weight : 0;
    }
    SGP_EACH_OF (link, node, SGP_SET_TO_ANSWER)
        link->giving.answer_due = false;
    return coming;
}

/* List the outgoing shares of this turn. Returns the weight that is absorbed before the next
 * step. */
static double choose(struct sgp_node *node)
{
    node->giving.count = 0;
    if (!sgp_core_chooses(node, node->round)) {
        take_edges(node);
        return 0;
    }
    take_answers(node);
    if (node->giving.count == 0)
        draw_one(node);
    return answer_all(node);
}

/* ---- amounts ---- */

/* A neighbour's restart starves a node for a moment, so starving is reported only once it has
 * lasted. */
static void tell_starving(struct sgp_node *node)
{
    sgp_time now = node->now;
    if (now >= node->giving.starves_until)
        node->giving.starves_since = now;
    node->giving.starves_until = now + SGP_STARVES_NS;
    if (now - node->giving.starves_since < SGP_STARVES_NS || now < node->giving.quiet_until)
        return;
    (void)sgp_core_note(node, SGP_NOTE_STARVING, node->config.self);
    node->giving.quiet_until = now + SGP_QUIET_NS;
}

/* How much of its fractions a node gives. Usually it gives all. If w became so small that eta / w
 * grew too large, it gives only down to the floor of the file. A tiny part becomes an empty share,
 * so that no target waits. A jump at that threshold would leave a healed fleet in a cycle of
 * unequal weights for ever. */
static double part_to_give(struct sgp_node *node, double fractions, double coming)
{
    if (node->role->gives_always)
        return 1;
    bool halves = sgp_core_chooses(node, node->round); /* whatever the answers add up to */
    double keep = halves ? SGP_HALF : fractions < 1 ? 1 - fractions : 0;
    double spare = node->mass.weight + coming - SGP_STARVING * node->config.weight_least * keep;
    double wanted = node->mass.weight * fractions;
    if (wanted <= 0 || sgp_core_accumulates(node))
        return 0;
    double part = spare >= wanted ? 1 : spare / wanted;
    part = part < SGP_GIVE_LEAST ? 0 : part;
    node->giving.starving = part < 1;
    if (node->giving.starving)
        tell_starving(node);
    node->giving.nothing = part <= 0;
    node->total.kept = 1 - part * fractions;
    return part;
}

static uint32_t unused_snapshot(struct sgp_node *node)
{
    uint32_t slot = sgp_core_unused(node);
    while (slot == SGP_SLOT_NONE && sgp_core_let_go(node))
        slot = sgp_core_unused(node);
    return slot;
}

/* Rounds of settling are not coded, because coded estimates agree only to the precision of their
 * coding. In an exact cycle two cases are not coded either. One is a relay: it ends with nothing,
 * and would lose what coding leaves out. The other is a vector whose parts are not whole blocks.
 * All shares of a turn have the same coding. */
static enum sgp_compressor compressor_of_turn(const struct sgp_node *node)
{
    enum sgp_compressor compressor = node->config.compressor;
    enum sgp_coding coding = sgp_coding_of(compressor);
    bool trains = node->state == SGP_NODE_TRAINING && node->round < sgp_core_train_end(node);
    uint64_t count = node->config.parameters;
    bool loses =
        node->role->collective &&
        (sgp_core_is_relay(node) || !sgp_topology_is_blocked(node->config.topology, count));
    if (!trains || loses || !sgp_coding_is_shorter(coding, count))
        return SGP_COMPRESSOR_NONE;
    for (uint32_t i = 0; i < node->giving.count; i++)
        if (!sgp_core_decodes(node->layout.outgoing[i].link, coding))
            return SGP_COMPRESSOR_NONE;
    return compressor;
}

/* Choose the values of an outgoing share, and their compressor. A part has no values if there are
 * fewer values than parts. */
static void choose_values(const struct sgp_node *node, struct sgp_outgoing *outgoing)
{
    outgoing->slice = sgp_core_all(node);
    if (outgoing->edge != NULL)
        outgoing->slice =
            sgp_topology_values(node->config.topology, outgoing->edge, node->config.parameters);
    enum sgp_coding coding = sgp_coding_of(node->giving.compressor);
    bool shorter = sgp_coding_is_shorter(coding, outgoing->slice.count);
    outgoing->compressor = shorter ? node->giving.compressor : SGP_COMPRESSOR_NONE;
}

/* If a part has no values, an empty share is sent instead. */
static void owe(struct sgp_node *node, struct sgp_outgoing *outgoing, double part, uint32_t slot)
{
    choose_values(node, outgoing);
    struct sgp_slice slice = outgoing->slice;
    double fraction = part * outgoing->fraction;
    if (slice.count == 0) {
        slice = sgp_core_all(node);
        fraction = 0;
        slot = SGP_SLOT_NONE;
    }
    enum sgp_compressor compressor =
        slot != SGP_SLOT_NONE ? outgoing->compressor : SGP_COMPRESSOR_NONE;
    enum sgp_coding coding = sgp_coding_of(compressor);
    bool weighs = outgoing->bequest > 0 || !node->role->collective;
    struct sgp_core_link *link = outgoing->link;
    struct sgp_owed owed = {
        .exists = true,
        .publishing = slot != SGP_SLOT_NONE,
        .slot = slot,
        .share =
            {
                .number = ++link->memory.number,
                .round = sgp_core_label(node, link),
                .fraction = fraction,
                .weight = weighs ? fraction * node->mass.weight : 0,
                .slice = slice,
                .payload_bytes =
                    slot != SGP_SLOT_NONE ? sgp_coding_bytes_most(coding, slice.count) : 0,
                .coding = coding,
                .compressor = compressor,
                .asks = outgoing->asks,
                .bequest = outgoing->bequest,
                .update = node->likeness.update,
                .rate = node->likeness.rate,
            },
    };
    link->owed[link->owed[0].exists] = owed;
    sgp_core_mark_dirty(node, link);
    link->count.sent++;
    node->unrecorded = true;
    if (slot != SGP_SLOT_NONE)
        node->layout.snapshot_users[slot]++;
}

/* Whether a worker changed x in vain. It restores x from its copy itself, because no later copy may
 * arrive. */
static bool is_to_forget(const struct sgp_node *node)
{
    return node->giving.count == 0 && node->trained && node->role->gives_updates;
}

/* Give the outgoing shares of this turn. False: a target, or a free snapshot, must be waited
 * for. */
bool sgp_core_give(struct sgp_node *node)
{
    if (node->role->give != NULL)
        return node->role->give(node);
    enum sgp_waiting waiting;
    uint32_t slot = unused_snapshot(node);
    if (slot == SGP_SLOT_NONE || sgp_core_cannot_give(node, &waiting) != NULL)
        return false;
    double coming = choose(node), fractions = 0;
    for (uint32_t i = 0; i < node->giving.count; i++)
        fractions += node->layout.outgoing[i].fraction;
    double part = part_to_give(node, fractions, coming);
    if (node->passes > 0 && part <= 0) /* no target waits for it */
        node->giving.count = 0;
    node->giving.compressor = compressor_of_turn(node);
    for (uint32_t i = 0; i < node->giving.count; i++)
        owe(node, &node->layout.outgoing[i], part, part > 0 ? slot : SGP_SLOT_NONE);
    node->unrecorded = node->unrecorded || !node->gave || node->giving.count > 0;
    node->gave = true;
    sgp_core_use_copies(node);
    if (node->role->collective)
        sgp_core_publish_parts(node, slot);
    else if ((node->giving.count > 0 && part > 0) || is_to_forget(node))
        sgp_core_publish(node, part, fractions, slot);
    node->total.left = node->mass.weight;
    return true;
}

/* Give all of this node's mass, which must not be 0, to one heir. False: no snapshot is free. */
bool sgp_core_give_all(struct sgp_node *node, struct sgp_core_link *heir, sgp_round round)
{
    uint32_t slot = unused_snapshot(node);
    if (slot == SGP_SLOT_NONE)
        return false;
    node->layout.outgoing[0] = (struct sgp_outgoing){.link = heir,
        .fraction = 1,
        .bequest = fmin(1 + node->mass.covered, node->config.topology->node_count)};
    node->giving.count = 1;
    node->giving.compressor = SGP_COMPRESSOR_NONE;
    owe(node, &node->layout.outgoing[0], 1, slot);
    heir->owed[0].share.round = round;
    sgp_core_publish(node, 1, 1, slot);
    return true;
}
