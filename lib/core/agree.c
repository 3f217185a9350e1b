/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement: a node has finished when its neighbours hold the same model.
 *
 * When its rounds are over, those of mixing too (sgp_core_last), a node makes a sketch of its
 * estimate (sgp/sketch.h) and sends it to all neighbours, who do the same. When all participants
 * have sent theirs, each node compares. If no neighbour is further away than SGP_AGREED, the node
 * has finished. Otherwise it asks for more mixing, by a greater last round, and all nodes follow
 * the greatest last round heard of. Each request doubles the mixing, so that slow topologies agree
 * too. A node without a model, such as a relay, compares its neighbours with each other.
 *
 * A finished node does the same if a node that was cut off reports another estimate. Both halves
 * then mix once more, according to their weights. Mixing is bounded (SGP_MIXING_CYCLES_MAX). Beyond
 * the bound a node finishes, and reports the neighbour with which it disagrees.
 *
 * Topology files may differ between nodes. Therefore each node names its own last round from the
 * end of training on, and the greatest that is heard counts.
 *
 * The rule: docs/rules/agree.md */
#include "core/core.h"

#include <math.h>
#include <string.h>

#define ASKS_MAX 16u /* number of doublings */
/* cycles of mixing in one request; from then on each request must halve the distance */
#define PATIENCE_CYCLES 64
/* a beat may have been on its way when the peer was told of a last round, and the next replies */
#define BEATS_OF_REPLY 2

/* ---- what is said ---- */

void sgp_core_sketched(struct sgp_node *node, const struct sgp_sketch *sketch)
{
    struct sgp_ending *ending = &node->ending;
    ending->sketching = false;
    if (ending->spoiled) /* a later job changed the estimate */
        return;
    ending->fresh = true;
    ending->empty = false;
    for (uint32_t k = 0; k < SGP_SKETCH_VALUES; k++)
        ending->empty = ending->empty || !isfinite(sketch->values[k]);
    ending->sketch = ending->empty ? (struct sgp_sketch){.values = {0}} : *sketch;
    ending->judges = true;
    node->changed = true;
}

/* True: the sketch is of the present estimate. */
static bool has_sketch(struct sgp_node *node)
{
    struct sgp_ending *ending = &node->ending;
    if (ending->fresh || ending->sketching)
        return ending->fresh;
    ending->spoiled = false;
    if (sgp_core_weight_of_estimate(node) > 0 && sgp_core_has_model(node)) {
        (void)sgp_core_emit(node, SGP_EFFECT_SKETCH);
        ending->sketching = true;
        return false;
    }
    ending->fresh = ending->empty = ending->judges = true; /* it has no model */
    node->changed = true;
    return true;
}

void sgp_core_met(struct sgp_node *node, struct sgp_core_link *link)
{
    link->end.ended.ended = false; /* the peer will say it again */
    node->ending.judges = true;
    if (node->state == SGP_NODE_FINISHED)
        node->ending.asked = 0;
}

static bool says_the_same(const struct sgp_beat *a, const struct sgp_beat *b)
{
    return a->ended == b->ended && a->empty == b->empty &&
           memcmp(&a->sketch, &b->sketch, sizeof a->sketch) == 0;
}

struct sgp_verdict sgp_core_beat(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_beat *beat)
{
    if (beat->mixes < 0 || beat->mixes > link->pulse.ends + SGP_MIXING_ROUNDS_MAX)
        return sgp_hangs_up(SGP_E_PROTOCOL, SGP_REASON_RANGE);
    sgp_round most = sgp_core_mixing_end(node), mixes = beat->mixes < most ? beat->mixes : most;
    if (mixes > node->ending.mixes) {
        node->ending.mixes = mixes;
        node->unrecorded = true;
    }
    enum sgp_direction back = link->direction == SGP_IN ? SGP_OUT : SGP_IN;
    struct sgp_core_link *other = sgp_core_find(node, link->peer, back);
    if (node->state != SGP_NODE_FINISHED || !says_the_same(&link->end.ended, beat))
        node->ending.judges = true;
    if (link->end.replies < BEATS_OF_REPLY)
        link->end.replies++;
    link->end.ended = *beat;
    if (other != NULL) /* the beat describes the peer, not one link */
        other->end.ended = *beat;
    return sgp_fine();
}

/* ---- distance ---- */

static double length(const struct sgp_sketch *sketch)
{
    double sum = 0;
    for (uint32_t k = 0; k < SGP_SKETCH_VALUES; k++)
        sum += (double)sketch->values[k] * (double)sketch->values[k];
    return sqrt(sum);
}

static bool has_said_sketch(const struct sgp_core_link *link)
{
    return !link->retired && link->end.ended.ended && !link->end.ended.empty;
}

/* What neighbours are compared with: the node's own sketch; at a node without a model, which may
 * be all that its neighbours have in common, that of the first one. NULL: nothing. */
static const struct sgp_sketch *reference(const struct sgp_node *node)
{
    if (!sgp_core_says_ended(node))
        return NULL;
    if (!node->ending.empty)
        return &node->ending.sketch;
    SGP_EACH_LINK (link, node) {
        if (has_said_sketch(link) && sgp_core_has_ended(node, link) && sgp_core_is_up(link))
            return &link->end.ended.sketch;
    }
    return NULL;
}

double sgp_core_distance(
    const struct sgp_node *node, const struct sgp_core_link *link, double *ret_relative)
{
    const struct sgp_sketch *own = reference(node), *other = &link->end.ended.sketch;
    *ret_relative = NAN;
    if (own == NULL || !has_said_sketch(link))
        return NAN;
    double sum = 0;
    for (uint32_t k = 0; k < SGP_SKETCH_VALUES; k++) {
        double apart = (double)own->values[k] - (double)other->values[k];
        sum += apart * apart;
    }
    double longer = fmax(length(own), length(other));
    *ret_relative = longer > 0 ? sqrt(sum) / longer : 0;
    return sqrt(sum);
}

/* The neighbour that is furthest away among those that are connected and could mix with this node,
 * or NULL. Copies of a token that have different labels may differ, so they are not compared. */
static struct sgp_core_link *furthest(struct sgp_node *node)
{
    struct sgp_core_link *worst = NULL;
    double most = SGP_AGREED;
    SGP_EACH_LINK (other, node) {
        double relative;
        const struct sgp_core_link *link = other;
        (void)sgp_core_distance(node, link, &relative);
        if (!(relative > most) || !sgp_core_has_ended(node, link) || !sgp_core_is_up(link))
            continue;
        most = relative;
        worst = other;
    }
    return worst;
}

/* ---- the decision ---- */

/* Ask all nodes for more mixing, from the furthest round heard of on. False: the mixing was enough,
 * or does not help. For example, a directed ring that lacks a node cannot agree. */
static bool mix_on(struct sgp_node *node, double apart)
{
    struct sgp_ending *ending = &node->ending;
    sgp_round cycle = node->config.topology->rounds_per_cycle;
    sgp_round from = sgp_core_last(node);
    SGP_EACH_LINK (link, node)
        if (link->connection.state == SGP_LINK_UP && link->pulse.round > from)
            from = link->pulse.round;
    sgp_round cycles = (sgp_round)node->config.final_cycles << ending->asked;
    sgp_round mixes = from + cycles * cycle;
    bool helps = cycles < PATIENCE_CYCLES || ending->asked == 0 || apart < ending->apart / 2;
    if (node->role->one_model || cycles == 0 || !helps ||
        mixes > node->fleet.ends + SGP_MIXING_CYCLES_MAX * cycle)
        return false;
    ending->apart = apart;
    ending->asked += ending->asked < ASKS_MAX;
    ending->mixes = mixes;
    node->changed = node->unrecorded = true;
    return true;
}

static void tell(
    struct sgp_node *node, enum sgp_note what, const struct sgp_core_link *link, double distance)
{
    struct sgp_noted *note = sgp_core_note_link(node, what, link);
    note->amount = distance;
    note->until = sgp_core_last(node);
}

bool sgp_core_has_ended(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->end.ended.ended && (!node->role->unique || link->pulse.round == node->round);
}

const struct sgp_core_link *sgp_core_not_ended(const struct sgp_node *node)
{
    SGP_EACH_LINK (link, node) {
        if (!link->retired && sgp_core_is_waited_for(link) && !sgp_core_has_ended(node, link))
            return link;
    }
    return NULL;
}

/* A peer that is heard, and sends no beat in the longest silence, is not going to reply. */
static bool has_replied(
    const struct sgp_node *node, const struct sgp_core_link *link, sgp_round last)
{
    bool late = node->now - link->end.named_since >= SGP_SILENCE_MAX_NS;
    return link->end.named >= last && (link->end.replies >= BEATS_OF_REPLY || late);
}

const struct sgp_core_link *sgp_core_not_following(const struct sgp_node *node)
{
    sgp_round last = sgp_core_last(node);
    if (node->round < sgp_core_train_end(node) || node->round >= last)
        return NULL;
    SGP_EACH_LINK (link, node) {
        bool counts = sgp_core_is_up(link) && !link->liveness.absent && !link->retired;
        bool follows = link->pulse.state != SGP_NODE_FINISHED || link->end.ended.mixes >= last;
        if (counts && !follows && !has_replied(node, link, last))
            return link;
    }
    return NULL;
}

bool sgp_core_agrees(struct sgp_node *node)
{
    struct sgp_ending *ending = &node->ending;
    bool finished = node->state == SGP_NODE_FINISHED;
    if (node->layout.link_count == 0) /* no neighbours */
        return true;
    if (!has_sketch(node))
        return false;
    if (!ending->judges)
        return finished;
    if (!finished && sgp_core_not_ended(node) != NULL)
        return false;
    ending->judges = false;
    const struct sgp_core_link *far = furthest(node);
    if (far == NULL) { /* a neighbour that still mixes was not compared */
        ending->asked = sgp_core_not_ended(node) == NULL ? 0 : ending->asked;
        return true;
    }
    if (node->role->unique) {
        sgp_core_circulate_again(node);
        return finished;
    }
    double relative, distance = sgp_core_distance(node, far, &relative);
    bool mixes = mix_on(node, relative);
    tell(node, mixes ? SGP_NOTE_MIXES : SGP_NOTE_DISAGREES, far, distance);
    return !mixes;
}
