/* SPDX-License-Identifier: Apache-2.0 */
/* Owning: the steps of the node that owns the vector, and the copies of those that work for it.
 *
 * The owner alone has weight. Its round is the number of steps that it has closed, and the label of its estimate. A
 * worker trains from a copy, gives what that has moved by as a share without weight, its update, and waits for a copy of a
 * later step. The owner adds the mean of the updates that came while their step was open. Whatever comes later, or a second
 * time from one worker, is dropped and counted.
 * The rule: docs/rules/owner.md */
#include "core/core.h"

/* ---- the owner ---- */

/* Also one that is refused was the answer of its worker, which waits for a copy now. */
bool sgp_core_counts(struct sgp_node *node, struct sgp_core_link *link, bool accepted)
{
    if (!sgp_core_is_owner(node))
        return true;
    bool open = node->state != SGP_NODE_JOINING; /* else another label is to come */
    bool present = open && link->receiving.incoming.round == node->round;
    bool first = present && link->receiving.latest != node->round;
    if (present)
        link->receiving.latest = node->round;
    if (first || !accepted)
        return first;
    link->count.late++;
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_LATE, link->peer);
    note->link.direction = link->direction;
    note->slot = link->receiving.slot;
    return false;
}

/* Each of so many updates counts for as much. */
uint32_t sgp_core_close_step(struct sgp_node *node)
{
    uint32_t came = 0;
    if (!sgp_core_is_owner(node))
        return 0;
    for (uint32_t i = 0; i < node->layout.receive_count; i++)
        came += node->layout.receives[i].state == SGP_RECEIVE_HELD;
    for (uint32_t i = 0; i < node->layout.receive_count; i++) {
        struct sgp_receive *receive = &node->layout.receives[i];
        if (receive->state != SGP_RECEIVE_HELD)
            continue;
        receive->share.fraction = 1.0 / came;
        receive->counts = true;
    }
    return came;
}

/* ---- a worker ---- */

void sgp_core_want_copy(struct sgp_node *node)
{
    if (!sgp_core_is_worker(node))
        return;
    sgp_core_want(node);
    node->again = true; /* to ask */
}

void sgp_core_take_copy(struct sgp_node *node, uint32_t peer, uint32_t slot, sgp_round label)
{
    node->copy = (struct sgp_copy){.exists = true, .label = label, .since = node->now};
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_FOLLOW);
    effect->follow.peer = peer;
    effect->follow.slot = slot;
    node->unrecorded = true;
}

sgp_round sgp_core_next_label(const struct sgp_node *node)
{
    sgp_round latest = node->round;
    if (sgp_core_is_worker(node) && node->copy.label > latest)
        return node->copy.label;
    if (sgp_core_is_owner(node)) /* a label never comes twice */
        latest = sgp_core_furthest(node, latest, sgp_core_living);
    return latest + 1;
}
