/* SPDX-License-Identifier: Apache-2.0 */
/* What the suites about leaving share: n0 with two neighbours, on its way out. */
#ifndef LEAVE_DESK_H
#define LEAVE_DESK_H

#include "core_desk.h"

/* n0 has ended round 0 and is on its way out; n1 is the heir that it promises its mass to. */
static __attribute__((unused)) void leave_in_round_one(struct desk *desk)
{
    open_beside_two(desk, 3);
    grant(desk, 1, 0);
    grant(desk, 2, 0);
    post_type(desk, SGP_EVENT_TRAINED);
    post_type(desk, SGP_EVENT_LEAVE);
    cr_assert(eq(int, status_of(desk).state, SGP_NODE_TRAINING), "the round is not over");
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(desk, 1, 1, SGP_REASON_NONE);
    acknowledge(desk, 2, 1, SGP_REASON_NONE);
    for (uint32_t i = 1; i < 3; i++) {
        say(desk, i, SGP_IN, share_of(1, 0, 1));
        deliver(desk, i, 0);
        const struct sgp_effect *absorb = find(desk, SGP_EFFECT_ABSORB);
        if (absorb != NULL)
            post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
    }
    cr_assert(eq(int, status_of(desk).state, SGP_NODE_DRAINING));
    cr_assert(status_of(desk).leaving);
    cr_assert(eq(dbl, status_of(desk).weight, 1.5));
    post_type(desk, SGP_EVENT_TICK);
}

static __attribute__((unused)) const struct sgp_share *bequest_to(
    const struct desk *desk, uint32_t peer)
{
    const struct sgp_effect *sent = find_sent(desk, SGP_SHARE, peer);
    return sent != NULL && sent->send.message.share.bequest > 0 ? &sent->send.message.share : NULL;
}

static __attribute__((unused)) void answer(
    struct desk *desk, uint32_t heir, bool known, uint64_t staged)
{
    say(desk, heir, SGP_OUT,
        (struct sgp_message){.type = SGP_ANSWER,
            .pulse = pulse_at(0, SGP_ROUND_NONE),
            .answer = {.known = known, .number = staged}});
}

/* The heir has room for all accounts of which the latest step told it; returns how many these are. */
static __attribute__((unused)) uint64_t stage(struct desk *desk, uint32_t heir)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < desk->effects.count; i++)
        count += desk->items[i].type == SGP_EFFECT_SEND &&
                 desk->items[i].send.message.type == SGP_BEQUEATH &&
                 desk->items[i].send.link.peer == heir;
    for (uint64_t staged = 1; staged <= count; staged++)
        answer(desk, heir, true, staged);
    return count;
}

static __attribute__((unused)) void hand_over_to(struct desk *desk, uint32_t heir)
{
    grant(desk, heir, 0);
    const struct sgp_effect *found = find(desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(found);
    cr_assert(eq(dbl, found->publish.keep, 0));
    const struct sgp_effect effect = *found, *publish = &effect;
    cr_assert(ge(u64, stage(desk, heir), 2), "of n1 and n2");
    cr_assert_null(bequest_to(desk, heir));
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED, .slot = publish->publish.slot});
    cr_assert_not_null(bequest_to(desk, heir));
    cr_assert(eq(dbl, bequest_to(desk, heir)->weight, 1.5));
    cr_assert(eq(dbl, bequest_to(desk, heir)->fraction, 1));
    cr_assert(eq(dbl, bequest_to(desk, heir)->bequest, 1));
    cr_assert(eq(dbl, status_of(desk).weight, 0));
}

static __attribute__((unused)) void record_of(const struct desk *desk, struct sgp_record *record)
{
    static struct sgp_record_link links[16];
    *record = (struct sgp_record){.link_capacity = 16, .links = links};
    sgp_node_record(desk->node, record);
    cr_assert(sgp_record_is_sound(record, desk->topology->node_count));
}

#endif
