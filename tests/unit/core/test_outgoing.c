/* SPDX-License-Identifier: Apache-2.0 */
/* Gifts by hand: whom a node that chooses for itself gives to, what it answers, and in which order. */
#include "core_desk.h"

/* n0 in the middle of n1, n2 and n3; every edge has its reverse. */
static void open_star(struct desk *desk, const char *method, sgp_round rounds)
{
    static const struct sgp_edge star[] = {
        {0, 1, 0.25}, {0, 2, 0.25}, {0, 3, 0.25}, {1, 0, 0.5}, {2, 0, 0.5}, {3, 0, 0.5}};
    const struct sgp_edge *edges[] = {star};
    const uint32_t counts[] = {6};
    struct sgp_topology *topology = topology_of(4, 1, edges, counts);
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find(method);
    config.rounds = rounds;
    open_desk(desk, topology, config);
    desk->peers.method = config.method->number;
    post_type(desk, SGP_EVENT_START);
    for (uint32_t i = 1; i < 4; i++) {
        greet_out(desk, i, pulse_at(0, SGP_ROUND_NONE), 80 + i, 0);
        greet_in(desk, i, pulse_at(0, 0), 80 + i);
    }
    cr_assert_not_null(find(desk, SGP_EFFECT_TRAIN));
}

static void grant_all(struct desk *desk)
{
    for (uint32_t i = 1; i < 4; i++)
        grant(desk, i, 0);
}

/* A share of n`peer` with half of the mass of one who had 1. */
static void hear_share(struct desk *desk, uint32_t peer, uint64_t number, bool asks)
{
    struct sgp_message message = share_of(number, 0, 1);
    message.share.asks = asks;
    say(desk, peer, SGP_IN, message);
    deliver(desk, peer, 0);
}

static uint32_t count(const struct desk *desk, enum sgp_effect_type type)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < desk->effects.count; i++)
        found += desk->items[i].type == type;
    return found;
}

static const struct sgp_share *share_to(const struct desk *desk, uint32_t peer)
{
    const struct sgp_effect *sent = find_sent(desk, SGP_SHARE, peer);
    return sent != NULL ? &sent->send.message.share : NULL;
}

static void publish(struct desk *desk, double keep)
{
    const struct sgp_effect *effect = find(desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(effect);
    cr_assert(eq(dbl, effect->publish.keep, keep));
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
}

Test(outgoing, one_by_lot_is_given_half_and_asked)
{
    uint32_t drawn[4] = {0};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct desk desk;
        open_star(&desk, "adpsgd", 100);
        sgp_node_destroy(desk.node); /* again, with another seed */
        struct sgp_node_config config = config_of(desk.topology);
        config.method = sgp_method_find("adpsgd");
        config.seed = seed;
        struct sgp_topology *topology = desk.topology;
        open_desk(&desk, topology, config);
        desk.peers.method = config.method->number;
        post_type(&desk, SGP_EVENT_START);
        for (uint32_t i = 1; i < 4; i++) {
            greet_out(&desk, i, pulse_at(0, SGP_ROUND_NONE), 80 + i, 0);
            greet_in(&desk, i, pulse_at(0, 0), 80 + i);
        }
        grant_all(&desk);
        post_type(&desk, SGP_EVENT_TRAINED);
        publish(&desk, 0.5);
        for (uint32_t i = 1; i < 4; i++) {
            const struct sgp_share *share = share_to(&desk, i);
            if (share == NULL)
                continue;
            drawn[i]++;
            cr_assert(share->asks);
            cr_assert(eq(dbl, share->fraction, 0.5));
            cr_assert(eq(dbl, share->weight, 0.5));
        }
        cr_assert(eq(i64, status_of(&desk).round, 1), "nobody is waited for");
        close_desk(&desk);
    }
    cr_assert(eq(u32, drawn[1] + drawn[2] + drawn[3], 60));
    for (int i = 1; i < 4; i++)
        cr_assert(ge(u32, drawn[i], 10), "n%d was drawn %u times of 60", i, drawn[i]);
}

/* n1 and n3 ask while n0 trains: they get 1/2 and 1/4 of what n0 had before them, and only then are
 * their shares taken in. n2's, which asks for nothing, was taken in at once. */
Test(outgoing, all_who_asked_are_answered_before_their_shares_are_absorbed)
{
    struct desk desk;
    open_star(&desk, "adpsgd", 100);
    grant_all(&desk);
    hear_share(&desk, 3, 1, true);
    cr_assert_null(find(&desk, SGP_EFFECT_ABSORB));
    cr_assert_null(find_sent(&desk, SGP_CREDIT, 3), "its buffer is in use until it is answered");
    hear_share(&desk, 1, 1, true);
    cr_assert_null(find(&desk, SGP_EFFECT_ABSORB));
    cr_assert(eq(dbl, status_of(&desk).weight, 2), "accepted");
    cr_assert(eq(dbl, status_of(&desk).weight_estimate, 1));

    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(u32, count(&desk, SGP_EFFECT_ABSORB), 0));
    publish(&desk, 0.25);
    cr_assert(eq(dbl, share_to(&desk, 1)->weight, 0.5));
    cr_assert(eq(dbl, share_to(&desk, 3)->weight, 0.25));
    cr_assert(eq(dbl, share_to(&desk, 3)->fraction, 0.25));
    cr_assert(not(share_to(&desk, 1)->asks), "an answer asks for nothing");
    cr_assert_null(share_to(&desk, 2));
    cr_assert(eq(u32, count(&desk, SGP_EFFECT_ABSORB), 2));
    cr_assert(eq(dbl, status_of(&desk).weight_estimate, 1.25));
    cr_assert(eq(dbl, find(&desk, SGP_EFFECT_TRAIN)->weight, 1.25), "no step without them");
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.75));
    cr_assert(not(status_of(&desk).starving));
    close_desk(&desk);
}

Test(outgoing, a_share_that_asks_for_nothing_is_absorbed_at_once)
{
    struct desk desk;
    open_star(&desk, "adpsgd", 100);
    hear_share(&desk, 2, 1, false);
    cr_assert_not_null(find(&desk, SGP_EFFECT_ABSORB));
    cr_assert(eq(dbl, status_of(&desk).weight_estimate, 1.5));
    close_desk(&desk);
}

/* The link back is without credit, down, or its end is absent: the answer is dropped and nothing is
 * kept. */
Test(outgoing, an_answer_that_cannot_be_given_is_dropped)
{
    for (int obstacle = 0; obstacle < 3; obstacle++) {
        struct desk desk;
        open_star(&desk, "adpsgd", 100);
        if (obstacle > 0)
            grant(&desk, 1, 0);
        hear_share(&desk, 1, 1, true);
        if (obstacle == 1)
            post(&desk, (struct sgp_event){.type = SGP_EVENT_DOWN,
                            .link = link_to(&desk, 1, SGP_OUT),
                            .code = SGP_E_CLOSED});
        desk.now += obstacle == 2 ? SGP_SILENCE_MAX_NS : 0;
        post_type(&desk, SGP_EVENT_TRAINED);
        cr_assert_null(share_to(&desk, 1), "case %d", obstacle);
        if (find(&desk, SGP_EFFECT_ABSORB) == NULL)
            post_type(&desk, SGP_EVENT_TICK);
        cr_assert_not_null(find(&desk, SGP_EFFECT_ABSORB), "case %d", obstacle);
        cr_assert(eq(dbl, status_of(&desk).weight_estimate, 1.5), "case %d", obstacle);
        cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0), "case %d", obstacle);
        close_desk(&desk);
    }
}

/* One that pauses, or is through with its steps, answers nobody, and keeps nothing. */
Test(outgoing, only_one_that_trains_answers)
{
    struct desk desk;
    open_star(&desk, "adpsgd", 100);
    grant_all(&desk);
    hear_share(&desk, 1, 1, true);
    post_type(&desk, SGP_EVENT_PAUSE);
    cr_assert_not_null(find(&desk, SGP_EFFECT_ABSORB));
    cr_assert(eq(dbl, status_of(&desk).weight_estimate, 1.5));
    post_type(&desk, SGP_EVENT_RESUME);
    post_type(&desk, SGP_EVENT_TRAINED);
    close_desk(&desk);

    open_star(&desk, "adpsgd", 1);
    post_type(&desk, SGP_EVENT_TRAINED); /* nobody has granted anything */
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_SETTLING));
    hear_share(&desk, 1, 1, true);
    cr_assert_not_null(find(&desk, SGP_EFFECT_ABSORB));
    close_desk(&desk);
}

/* Its steps done, a node gives along the edges of its round, by the fractions of the file. */
Test(outgoing, the_end_is_mixed_along_the_edges_of_the_file)
{
    struct desk desk;
    open_star(&desk, "adpsgd", 1);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_SETTLING));
    for (uint32_t i = 1; i < 4; i++)
        grant(&desk, i, 1);
    publish(&desk, 0.25);
    for (uint32_t i = 1; i < 4; i++) {
        cr_assert(eq(dbl, share_to(&desk, i)->fraction, 0.25));
        cr_assert(not(share_to(&desk, i)->asks));
    }
    close_desk(&desk);
}

/* A neighbour that does not train has no turn in which it could answer. */
Test(outgoing, only_those_who_train_are_asked)
{
    struct desk desk;
    open_star(&desk, "adpsgd", 100);
    grant_all(&desk);
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_SETTLING;
    say_pulse(&desk, 1, SGP_OUT, pulse);
    pulse.state = SGP_NODE_PAUSED;
    say_pulse(&desk, 2, SGP_OUT, pulse);
    post_type(&desk, SGP_EVENT_TRAINED);
    publish(&desk, 0.5);
    cr_assert_not_null(share_to(&desk, 3));
    close_desk(&desk);
}

Test(outgoing, whoever_draws_promises_the_next_turn_to_all)
{
    struct desk desk;
    open_star(&desk, "adpsgd", 100);
    grant_all(&desk);
    post_type(&desk, SGP_EVENT_TRAINED);
    uint32_t promised = 0;
    for (uint32_t i = 1; i < 4; i++) {
        const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, i);
        promised += beat != NULL && beat->send.message.pulse.next_round == 1;
    }
    cr_assert(eq(u32, promised, 2), "the third has its share coming first");
    publish(&desk, 0.5);
    for (uint32_t i = 1; i < 4; i++) {
        const struct sgp_effect *share = find_sent(&desk, SGP_SHARE, i);
        promised += share != NULL && share->send.message.pulse.next_round == 1;
    }
    cr_assert(eq(u32, promised, 3));
    close_desk(&desk);
}

/* Each of two has asked the other before it heard of the other's question: both answer with half of
 * what they have left, and all mass is there. */
Test(outgoing, two_who_ask_each_other_at_once_both_answer)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find("adpsgd");
    open_desk(&desk, topology, config);
    desk.peers.method = config.method->number;
    greet_pair(&desk);
    grant(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    publish(&desk, 0.5);
    cr_assert(share_to(&desk, 1)->asks);
    hear_share(&desk, 1, 1, true); /* sent before ours came */
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    grant(&desk, 1, 1);
    cr_assert(eq(dbl, status_of(&desk).weight_estimate, 0.5));
    post_type(&desk, SGP_EVENT_TRAINED);
    publish(&desk, 0.5);
    cr_assert(eq(dbl, share_to(&desk, 1)->weight, 0.25));
    cr_assert(not(share_to(&desk, 1)->asks));
    cr_assert(eq(dbl, status_of(&desk).weight_estimate, 0.75), "1/4 kept, and its 1/2");
    acknowledge(&desk, 1, 2, SGP_REASON_NONE);
    struct sgp_message answer = share_of(2, 1, 2);
    answer.share.weight = 0.25; /* the other's, by the same reckoning */
    say(&desk, 1, SGP_IN, answer);
    deliver(&desk, 1, 0);
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

/* The other methods do as the file says, whatever a peer asks for. */
Test(outgoing, a_method_that_does_not_choose_keeps_nothing_for_an_answer)
{
    struct desk desk;
    open_star(&desk, "agp", 100);
    hear_share(&desk, 1, 1, true);
    cr_assert_not_null(find(&desk, SGP_EFFECT_ABSORB));
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 1));
    close_desk(&desk);
}

/* It gives down to 0.75 w_min keep = 0.375 and no further: first 1/2, then the rest, then nothing. */
Test(outgoing, a_starving_node_gives_down_to_its_floor_and_then_empty_shares)
{
    static const double given[] = {0.5, 0.125, 0};
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.weight_least = 1;
    open_desk(&desk, topology, config);
    greet_pair(&desk);
    for (uint64_t k = 0; k < 3; k++) {
        grant(&desk, 1, (sgp_round)k);
        double before = status_of(&desk).weight;
        post_type(&desk, SGP_EVENT_TRAINED);
        if (k < 2)
            post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
        const struct sgp_effect *sent = find_sent(&desk, SGP_SHARE, 1);
        cr_assert_not_null(sent);
        cr_assert(eq(dbl, sent->send.message.share.weight, given[k]));
        cr_assert(eq(dbl, sent->send.message.share.fraction, given[k] / before));
        cr_assert(eq(u64, sent->send.message.share.payload_bytes > 0, k < 2));
        cr_assert(eq(dbl, status_of(&desk).weight, before - given[k]));
        cr_assert(eq(int, status_of(&desk).starving, k > 0));
        acknowledge(&desk, 1, k + 1, SGP_REASON_NONE);
        struct sgp_message empty = share_of(k + 1, (sgp_round)k, (sgp_round)k + 1);
        empty.share.fraction = empty.share.weight = 0;
        empty.share.payload_bytes = 0;
        say(&desk, 1, SGP_IN, empty); /* heard, and nothing gained */
        cr_assert(eq(i64, status_of(&desk).round, (sgp_round)k + 1));
    }
    close_desk(&desk);
}

/* n0 gives 1/2 of what it has in round k and then gets `gain`; returns whether it told of starving. */
static bool give_and_get(struct desk *desk, uint64_t k, double gain)
{
    grant(desk, 1, (sgp_round)k);
    post_type(desk, SGP_EVENT_TRAINED);
    bool told = find_note(desk, SGP_NOTE_STARVING) != NULL;
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(desk, 1, k + 1, SGP_REASON_NONE);
    struct sgp_message share = share_of(k + 1, (sgp_round)k, (sgp_round)k + 1);
    share.share.weight = gain;
    say(desk, 1, SGP_IN, share);
    deliver(desk, 1, 0);
    const struct sgp_effect *absorb = find(desk, SGP_EFFECT_ABSORB);
    cr_assert_not_null(absorb);
    post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
    return told;
}

/* With w_min 1 and 1/2 kept a node starves below 3/4. Above and below in turn: one line for people once that has lasted
 * for 3 s, and again a minute later. */
Test(outgoing, a_node_that_starves_on_and_off_tells_of_it_once_in_a_while)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.weight_least = 1;
    open_desk(&desk, topology, config);
    greet_pair(&desk);
    double weight = 1;
    for (uint64_t k = 0; k < 80; k++) { /* odd rounds begin below the threshold, even ones above */
        desk.now += SGP_SECOND;
        bool starves = k % 2 == 1;
        double kept = starves ? 0.375 : weight / 2, next = starves ? 0.875 : 0.625;
        bool told = give_and_get(&desk, k, next - kept);
        cr_assert(eq(int, told, k == 5 || k == 65), "round %d", (int)k);
        cr_assert(eq(int, status_of(&desk).starving, starves), "status says how it is now");
        weight = status_of(&desk).weight;
        cr_assert(eq(dbl, weight, next));
    }
    close_desk(&desk);
}

/* A neighbour that is started again is away for a second or two; meanwhile others weigh less. Nobody need read that. */
Test(outgoing, a_node_that_starves_for_less_than_3_s_does_not_tell)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.weight_least = 1;
    open_desk(&desk, topology, config);
    greet_pair(&desk);
    uint64_t k = 0;
    (void)give_and_get(&desk, k++, 0.125); /* 0.625 from here on, which is too little */
    for (int restart = 0; restart < 3; restart++) {
        for (int round = 0; round < 6; round++) {
            desk.now += SGP_SECOND / 2;
            bool told = give_and_get(&desk, k++, round == 5 ? 0.625 : 0.25);
            cr_assert(not(told), "restart %d, round %d", restart, round);
            cr_assert(status_of(&desk).starving);
        }
        for (int round = 0; round < 4; round++) { /* from 1, so it does not starve */
            desk.now += SGP_SECOND;
            (void)give_and_get(&desk, k++, round == 3 ? 0.125 : 0.5);
        }
        cr_assert(not(status_of(&desk).starving));
    }
    close_desk(&desk);
}

/* n0 gives to n1 and n2 in round k, and is given as much. */
static void exchange(struct desk *desk, uint64_t k)
{
    for (uint32_t peer = 1; peer < 3; peer++)
        grant(desk, peer, (sgp_round)k);
    post_type(desk, SGP_EVENT_TRAINED);
    publish(desk, 0.5);
    for (uint32_t peer = 1; peer < 3; peer++) {
        acknowledge(desk, peer, k + 1, SGP_REASON_NONE);
        struct sgp_message share = share_of(k + 1, (sgp_round)k, (sgp_round)k + 1);
        share.share.weight = 0.25;
        say(desk, peer, SGP_IN, share);
        deliver(desk, peer, 0);
        const struct sgp_effect *absorb = find(desk, SGP_EFFECT_ABSORB);
        cr_assert_not_null(absorb);
        post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
    }
}

/* n1 is there, n2 here, when n0's steps of round 6 are taken, and n2 alone has a credit; what n1 is given. */
static const struct sgp_share *given_to_one_at(struct desk *desk, sgp_round there, sgp_round here)
{
    open_beside_two(desk, 3);
    for (uint64_t k = 0; k < 6; k++)
        exchange(desk, k);
    say_pulses(desk, 1, pulse_at(there, there));
    say_pulses(desk, 2, pulse_at(here, SGP_ROUND_NONE));
    grant(desk, 2, 6);
    post_type(desk, SGP_EVENT_TRAINED);
    if (find(desk, SGP_EFFECT_PUBLISH) == NULL)
        return NULL;
    publish(desk, 0.75);
    cr_assert_not_null(share_to(desk, 2));
    return share_to(desk, 1);
}

/* n1 was alone, and hurried on. It waits for the others before it gives, and would gather what it is given. */
Test(outgoing, one_that_hurried_ahead_alone_is_given_nothing_until_the_others_come_near)
{
    struct desk desk;
    cr_assert_null(given_to_one_at(&desk, 40, 6));
    cr_assert(eq(i64, status_of(&desk).round, 7), "it is not waited for");
    close_desk(&desk);
    cr_assert_null(
        given_to_one_at(&desk, 10, 6)); /* 4 ahead, by 3 nodes and a round: that may be chance */
    cr_assert(eq(i64, status_of(&desk).round, 6), "its credit is waited for");
    close_desk(&desk);
}

Test(outgoing, one_far_ahead_with_another_is_waited_for)
{
    struct desk desk;
    cr_assert_null(given_to_one_at(&desk, 40, 38));
    cr_assert(eq(i64, status_of(&desk).round, 6), "this node goes there itself, afterwards");
    close_desk(&desk);
}
