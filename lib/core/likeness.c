/* SPDX-License-Identifier: Apache-2.0 */
/* Likeness: whether two nodes train on the same rows, or at different learning rates.
 *
 * A share carries a digest of the change that its source's latest training made, and the learning
 * rate. Two nodes with the same digest took the same step, bit for bit: they trained on the same
 * rows from the same parameters. After SGP_LIKENESS_ROUNDS consecutive such trainings a note
 * reports it. A differing learning rate is reported in the same way. Both are warnings, and nothing
 * else depends on these values. So a lie costs one log line.
 *
 * An owner and a relay, which do not train, compare their sources with one another.
 *
 * The rule: docs/rules/likeness.md */
#include "core/core.h"

#include <math.h>

#define RATE_TOLERANCE 0.01 /* relative; schedules counted in steps may be a few steps apart */

/* ---- history ---- */

static void remember(struct sgp_node *node, uint32_t who, uint64_t update)
{
    struct sgp_likeness *own = &node->likeness;
    own->seen[own->next] = (struct sgp_seen_update){.peer = who, .update = update};
    own->next = (own->next + 1) % SGP_CORE_UPDATES;
}

void sgp_core_has_trained(struct sgp_node *node, uint64_t update, double rate)
{
    struct sgp_likeness *own = &node->likeness;
    own->update = update;
    if (update != 0)
        remember(node, node->config.self, update);
    if (rate <= 0)
        return;
    own->rate = rate;
    own->rates[own->next_rate] = rate;
    own->next_rate = (own->next_rate + 1) % SGP_LIKENESS_ROUNDS;
}

void sgp_core_forget_updates(struct sgp_node *node)
{
    for (uint32_t i = 0; i < SGP_CORE_UPDATES; i++)
        node->likeness.seen[i].update = 0;
}

/* ---- equal updates ---- */

static void match(struct sgp_node *node, struct sgp_core_link *link)
{
    link->likeness.matched = true;
    if (++link->likeness.same == SGP_LIKENESS_ROUNDS)
        sgp_core_note(node, SGP_NOTE_SAME_UPDATES, link->peer)->link.direction = SGP_IN;
}

/* The other node may have told its update first. Then nothing matched it at that time. */
static void match_other(struct sgp_node *node, uint32_t peer, uint64_t update)
{
    struct sgp_core_link *other =
        peer != node->config.self ? sgp_core_find(node, peer, SGP_IN) : NULL;
    if (other != NULL && other->likeness.update == update && !other->likeness.matched)
        match(node, other);
}

static void compare_update(struct sgp_node *node, struct sgp_core_link *link, uint64_t update)
{
    if (link->likeness.update != 0 && !link->likeness.matched)
        link->likeness.same = 0;
    link->likeness.update = update;
    link->likeness.matched = false;
    for (uint32_t i = 0; i < SGP_CORE_UPDATES; i++) {
        const struct sgp_seen_update *seen = &node->likeness.seen[i];
        if (seen->update != update || seen->peer == link->peer)
            continue;
        match_other(node, seen->peer, update);
        if (!link->likeness.matched)
            match(node, link);
    }
    remember(node, link->peer, update);
}

/* ---- learning rates ---- */

static bool had_rate(const struct sgp_node *node, double rate)
{
    for (uint32_t i = 0; i < SGP_LIKENESS_ROUNDS; i++)
        if (fabs(node->likeness.rates[i] - rate) <= RATE_TOLERANCE * rate)
            return true;
    return false;
}

static void compare_rate(struct sgp_node *node, struct sgp_core_link *link, double rate)
{
    if (rate <= 0)
        return;
    link->likeness.rate = rate;
    if (node->likeness.rate <= 0)
        return;
    link->likeness.unlike = had_rate(node, rate) ? 0 : link->likeness.unlike + 1;
    if (link->likeness.unlike != SGP_LIKENESS_ROUNDS)
        return;
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_OTHER_RATE, link->peer);
    note->link.direction = SGP_IN;
    note->amount = rate;
}

void sgp_core_compare_training(struct sgp_node *node, uint32_t peer, const struct sgp_share *share)
{
    struct sgp_core_link *link = sgp_core_find(node, peer, SGP_IN);
    bool again = link != NULL && share->update != 0 && share->update == link->likeness.update;
    if (link == NULL || again) /* several shares may tell the same training */
        return;
    if (share->update != 0)
        compare_update(node, link, share->update);
    compare_rate(node, link, share->rate);
}
