/* SPDX-License-Identifier: Apache-2.0 */
/* Handing out estimates: a neighbour that asks gets a snapshot of this node's estimate, and a
 * worker gets its owner's copy.
 *
 * A neighbour that has the same first parameters is told so, and gets no snapshot.
 *
 * A node that has joined can answer. A worker that joins answers an owner that joins too, with its
 * checkpoint: all workers may have been stopped, and the owner's machine lost. The snapshot is kept
 * until the neighbour says that it has arrived, or until the neighbour is gone. A node that leaves
 * for good answers until it has handed over its mass, because its only heir may be waiting for an
 * estimate.
 *
 * An owner whose copies are coded sends its workers differences. Its performer keeps the copy that
 * the workers have. A difference is x minus that copy, coded, and both ends add it. A worker with
 * another copy, or with none, gets the complete new copy.
 *
 * The rules: docs/rules/estimate.md, docs/rules/owner.md */
#include "core/core.h"

static void release(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->estimate.slot != SGP_SLOT_NONE)
        node->layout.snapshot_users[link->estimate.slot]--;
    link->estimate.slot = SGP_SLOT_NONE;
    link->estimate.sent = false;
}

void sgp_core_ask(struct sgp_node *node, struct sgp_core_link *link, const struct sgp_ask *ask)
{
    link->estimate.asks = ask->wants;
    link->estimate.newer = ask->newer;
    link->estimate.digest = ask->digest;
    link->estimate.holds = ask->holds ? ask->newer - 1 : SGP_ROUND_NONE;
    if (!ask->wants)
        release(node, link);
}

void sgp_core_copied(struct sgp_node *node)
{
    node->handing.publishing = false;
    node->layout.snapshot_users[node->handing.slot]--;
}

/* The last free snapshot, because rounds use the first ones. */
static uint32_t last_unused(const struct sgp_node *node)
{
    for (uint32_t i = node->layout.snapshot_count; i-- > 0;)
        if (node->layout.snapshot_users[i] == 0)
            return i;
    return SGP_SLOT_NONE;
}

/* The label of the estimate. For a copy it is the owner's label. A worker waits for a label of its
 * own. */
static sgp_round label_of(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return node->role->unique ? node->copy.label : sgp_core_label(node, link);
}

/* Whether a worker waits for its owner, the only node that can ask it, with the parameters of a
 * checkpoint at weight 1 (node.c). They are no copy that another worker may have. */
static bool has_checkpoint(const struct sgp_node *node)
{
    bool has = node->past.recorded && !node->past.fresh &&
               (node->config.seeks || node->past.weight > 0); /* not exact, or not zero */
    return node->state == SGP_NODE_JOINING && node->role->gives_updates && has &&
           !node->copy.exists;
}

/* ---- differences ---- */

/* An owner at its own pace answers each worker from another x, so no two workers have the same
 * copy. */
static bool codes_copies(const struct sgp_node *node)
{
    return node->config.copies != SGP_COMPRESSOR_NONE && node->role->part == SGP_PART_LEADS &&
           !sgp_core_at_own_pace(node);
}

/* Release links that were to get the difference but did not. They are served again, because the
 * content of the snapshot would no longer be known. */
void sgp_core_drop_change(struct sgp_node *node)
{
    uint32_t change = node->handing.change;
    if (change == SGP_SLOT_NONE)
        return;
    SGP_EACH_OUT (link, node)
        if (link->estimate.slot == change && !link->estimate.sent)
            release(node, link);
    node->layout.snapshot_users[change]--;
    node->handing.change = SGP_SLOT_NONE;
}

/* All copies of a label are equal. So after a reload the performer's copy stays the copy of its
 * label, if this node still codes the copies of the same values. */
void sgp_core_keep_label(struct sgp_node *node)
{
    struct sgp_handing *handing = &node->handing;
    struct sgp_slice values = {0};
    if (codes_copies(node))
        values =
            sgp_topology_owned(node->config.topology, node->config.self, node->config.parameters);
    if (values.count != handing->values.count || values.first != handing->values.first)
        handing->label = SGP_ROUND_NONE;
}

/* After an early stop, the copy of this label may be a coded one, and the workers have that
 * copy. */
void sgp_core_end_with_copy(struct sgp_node *node)
{
    if (node->handing.change == SGP_SLOT_NONE || node->handing.label != node->round)
        return;
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_FOLLOW);
    effect->follow.peer = node->config.self;
    effect->follow.slot = SGP_SLOT_NONE;
    effect->follow.slice = node->handing.changed.slice;
}

/* How the copy is made. The copy of a label is made once. The copy of the last label is x itself,
 * so that all nodes that train end with the same values. */
static enum sgp_publish purpose_of(const struct sgp_node *node, sgp_round label)
{
    if (node->role->keeps_copy && !has_checkpoint(node))
        return SGP_PUBLISH_COPY;
    if (!codes_copies(node))
        return SGP_PUBLISH_ESTIMATE;
    return node->handing.label == label ? SGP_PUBLISH_COPY : SGP_PUBLISH_CHANGE;
}

static enum sgp_compressor compressor_of_copy(const struct sgp_node *node, uint64_t count)
{
    enum sgp_coding coding = sgp_coding_of(node->config.copies);
    bool changes = node->handing.label != SGP_ROUND_NONE && !sgp_core_is_over(node, node->round);
    return changes && sgp_coding_is_shorter(coding, count) ? node->config.copies
                                                           : SGP_COMPRESSOR_NONE;
}

/* A snapshot is being made. It holds a coded change to the previous copy, or x itself. Both give
 * the copy of this label. The node keeps a change until the next label: a worker that has the
 * previous copy may ask for it later. */
static void begin_change(struct sgp_node *node, struct sgp_effect *effect)
{
    struct sgp_handing *handing = &node->handing;
    enum sgp_compressor compressor = compressor_of_copy(node, effect->publish.slice.count);
    sgp_core_drop_change(node);
    if (compressor != SGP_COMPRESSOR_NONE) {
        enum sgp_coding coding = sgp_coding_of(compressor);
        handing->changed = handing->estimate;
        handing->changed.slice = effect->publish.slice;
        handing->changed.payload_bytes = sgp_coding_bytes_most(coding, effect->publish.slice.count);
        handing->changed.coding = coding;
        handing->changed.compressor = compressor;
        handing->changed.since = handing->label;
        handing->change = handing->slot;
        node->layout.snapshot_users[handing->slot]++;
    }
    handing->label = handing->estimate.round;
    handing->values = effect->publish.slice;
    effect->publish.compressor = compressor;
}

/* ---- snapshots ---- */

/* Make a snapshot of the estimate. Within an exact cycle one exists already, and x is no
 * estimate. */
static void copy_out(struct sgp_node *node, const struct sgp_core_link *link, uint32_t slot)
{
    struct sgp_slice values = sgp_core_values(node, link), all = {0, node->config.parameters};
    bool entered = node->exact.input != SGP_SLOT_NONE, copy = node->role->keeps_copy;
    struct sgp_handing *handing = &node->handing;
    handing->slot = slot;
    handing->publishing = !entered;
    handing->estimate = (struct sgp_estimate){.round = label_of(node, link),
        .weight = has_checkpoint(node) ? 1 : sgp_core_weight_of_estimate(node),
        .payload_bytes = sgp_coding_bytes_most(SGP_CODING_NONE, values.count),
        .former = node->role->unique && node->copy.former,
        .untrained = node->copy.exists ? node->copy.untrained : node->past.fresh};
    handing->epoch = node->exact.epoch;
    if (values.count < all.count)
        handing->estimate.slice = values;
    if (entered)
        return;
    node->layout.snapshot_users[slot]++; /* until the PUBLISH job is done */
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_PUBLISH);
    effect->publish.slot = slot;
    effect->publish.keep = 1;
    effect->publish.purpose = purpose_of(node, handing->estimate.round);
    effect->publish.slice = copy ? all : values; /* for a copy, all parts are published */
    if (effect->publish.purpose == SGP_PUBLISH_CHANGE)
        begin_change(node, effect);
}

static bool wants_ours(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->estimate.asks && link->estimate.slot == SGP_SLOT_NONE &&
           link->estimate.newer <= label_of(node, link) && sgp_core_may_have_copy(node, link);
}

static struct sgp_core_link *next_asking(struct sgp_node *node, struct sgp_core_link *from)
{
    uint32_t i = sgp_core_next(node, SGP_SET_ASKING, (uint32_t)(from - node->layout.links));
    return &node->layout.links[i < node->layout.out_count ? i : node->layout.out_count];
}

/* Whether the difference turns the peer's copy into the copy of this label. */
static bool takes_change(const struct sgp_node *node, const struct sgp_core_link *link)
{
    const struct sgp_handing *handing = &node->handing;
    return handing->change != SGP_SLOT_NONE && handing->label == label_of(node, link) &&
           link->estimate.holds == handing->changed.since &&
           sgp_core_decodes(link, handing->changed.coding);
}

static void serve(struct sgp_node *node, struct sgp_core_link *link, uint32_t slot)
{
    link->estimate.slot = slot;
    node->layout.snapshot_users[slot]++;
}

/* Whether the token was made again after the snapshot. */
static bool was_renewed(const struct sgp_node *node)
{
    return node->role->unique && sgp_core_epoch_is_below(&node->handing.epoch, &node->exact.epoch);
}

static void send(struct sgp_node *node)
{
    const struct sgp_handing *handing = &node->handing;
    struct sgp_core_link *end = &node->layout.links[node->layout.out_count], *link;
    for (link = next_asking(node, node->layout.links); link < end;
         link = next_asking(node, link + 1)) {
        uint32_t slot = link->estimate.slot;
        if (slot == SGP_SLOT_NONE || link->estimate.sent ||
            (link->owed[0].exists && link->owed[0].sent)) /* one payload at a time on each link */
            continue;
        link->estimate.sent = true;
        sgp_core_keep_base(node, link);
        struct sgp_message *message = sgp_core_send_payload(node, link, SGP_ESTIMATE, slot);
        message->estimate = slot == handing->change ? handing->changed : handing->estimate;
        message->estimate.former = message->estimate.former || was_renewed(node);
    }
}

/* Tell neighbours that have the same parameters. The link takes no such message within a
 * payload. */
static void tell_same(struct sgp_node *node)
{
    uint64_t digest = sgp_core_x_digest(node);
    struct sgp_core_link *end = &node->layout.links[node->layout.out_count], *link;
    for (link = next_asking(node, node->layout.links); link < end && digest != 0;
         link = next_asking(node, link + 1)) {
        bool same = wants_ours(node, link) && link->estimate.digest == digest;
        if (!same || (link->owed[0].exists && link->owed[0].sent))
            continue;
        link->estimate.asks = false;
        sgp_core_send(node, link, SGP_ESTIMATE)->estimate =
            (struct sgp_estimate){.round = label_of(node, link),
                .weight = sgp_core_weight_of_estimate(node),
                .same = true};
    }
}

static void serve_change(struct sgp_node *node)
{
    struct sgp_core_link *end = &node->layout.links[node->layout.out_count], *link;
    for (link = next_asking(node, node->layout.links); link < end;
         link = next_asking(node, link + 1))
        if (wants_ours(node, link) && takes_change(node, link))
            serve(node, link, node->handing.change);
}

/* One snapshot at a time, so that rounds have theirs. An owner serves all workers that wait for its
 * step with one snapshot, and has a snapshot for each of them. A difference is sent only when it is
 * made, because only then is it known which workers can use it. */
static void begin(struct sgp_node *node)
{
    struct sgp_core_link *end = &node->layout.links[node->layout.out_count], *link;
    struct sgp_core_link *wanted = NULL;
    bool owner = sgp_core_leads(node);
    for (link = next_asking(node, node->layout.links); link < end;
         link = next_asking(node, link + 1)) {
        if (!owner && link->estimate.slot != SGP_SLOT_NONE)
            return;
        wanted = wanted == NULL && wants_ours(node, link) ? link : wanted;
    }
    uint32_t slot = node->exact.input != SGP_SLOT_NONE ? node->exact.input : last_unused(node);
    if (wanted == NULL || slot == SGP_SLOT_NONE)
        return;
    copy_out(node, wanted, slot);
    for (link = next_asking(node, node->layout.links); link < end && slot != node->handing.change;
         link = next_asking(node, link + 1)) {
        if (!wants_ours(node, link))
            continue;
        serve(node, link, slot);
        if (!owner)
            return;
    }
}

/* A node whose parameters are a guess has no estimate to hand out. Nor has a node that gave away
 * all its mass. */
void sgp_core_hand_out(struct sgp_node *node)
{
    bool stays = node->state != SGP_NODE_JOINING && node->state != SGP_NODE_DRAINING;
    /* its heir may need an estimate */
    bool leaves = sgp_core_has_gone(node) && !node->leaving.left;
    bool copied = node->copy.exists || !node->role->keeps_copy;
    bool has = copied && !sgp_core_is_guess(node) && sgp_core_weight_of_estimate(node) > 0;
    bool able =
        (((stays || leaves) && has) || has_checkpoint(node)) && node->giving.slot == SGP_SLOT_NONE;
    if (able)
        tell_same(node);
    if (able && !node->handing.publishing)
        serve_change(node);
    if (!node->handing.publishing)
        send(node); /* send what exists before a newer label is made */
    if (able && !node->handing.publishing)
        begin(node);
    if (!node->handing.publishing)
        send(node);
}
