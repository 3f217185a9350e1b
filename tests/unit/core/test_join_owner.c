/* SPDX-License-Identifier: Apache-2.0 */
/* An owner joins a fleet that has trained: it takes the newest copy that a worker has, and if all
 * workers join, a checkpoint of one. */
#include "core_desk.h"

#include "sgp/generate.h"

/* Node `self` of an owner, n0, and three workers. */
static void open_owned(struct desk *desk, const char *method, uint32_t self,
    const struct sgp_record *record, bool seeks)
{
    struct sgp_topology *topology;
    struct sgp_generate_options options = {.family = "owner", .nodes = 4};
    cr_assert(zero(int, sgp_generate(&options, NULL, &topology)));
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find(method);
    config.self = self;
    config.record = record;
    config.seeks = seeks;
    config.fresh = record == NULL;
    open_desk(desk, topology, config);
    desk->peers.method = config.method->number;
    post_type(desk, SGP_EVENT_START);
}

static struct sgp_pulse in_state(enum sgp_node_state state, sgp_round label)
{
    struct sgp_pulse pulse = pulse_at(label, SGP_ROUND_NONE);
    pulse.state = state;
    return pulse;
}

/* Workers in these states and at these labels connect with n0. It asks one of them, which answers. */
static void takes_copy_of(struct desk *desk, uint32_t asked, const enum sgp_node_state states[3],
    const sgp_round labels[3])
{
    for (uint32_t i = 0; i < 3; i++)
        greet_in(desk, i + 1, in_state(states[i], labels[i]), 88 + i);
    for (uint32_t i = 0; i < 3; i++)
        greet_out(desk, i + 1, in_state(states[i], labels[i]), 88 + i, 0);
    cr_assert(eq(int, status_of(desk).state, SGP_NODE_JOINING));
    post_type(desk, SGP_EVENT_TICK);
    desk->now += SGP_SECOND;
    cr_assert(eq(int, status_of(desk).waiting, SGP_WAITING_ESTIMATE));
    cr_assert(eq(u32, sgp_core_asked(desk->node)->peer, asked));
    say(desk, asked, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = in_state(states[asked - 1], labels[asked - 1]),
            .estimate = {.round = labels[asked - 1], .weight = 1, .payload_bytes = PAYLOAD}});
    post(desk, (struct sgp_event){.type = SGP_EVENT_PAYLOAD, .link = link_to(desk, asked, SGP_IN)});
    cr_assert_not_null(find(desk, SGP_EFFECT_ADOPT));
    cr_assert(eq(int, status_of(desk).state, SGP_NODE_TRAINING));
}

/* At its own pace one worker may have made nearly all updates. */
Test(join_owner, takes_the_newest_copy_however_far_ahead_its_worker_is)
{
    static const enum sgp_node_state trains[] = {
        SGP_NODE_TRAINING, SGP_NODE_TRAINING, SGP_NODE_TRAINING};
    struct desk desk;
    open_owned(&desk, "downpour", 0, NULL, false);
    takes_copy_of(&desk, 2, trains, (const sgp_round[]){0, 70, 0});
    cr_assert(eq(i64, status_of(&desk).round, 71));
    close_desk(&desk);
}

/* All nodes were stopped, and the machine of the owner was lost. */
Test(join_owner, takes_a_checkpoint_of_a_worker_if_all_join)
{
    static const enum sgp_node_state joins[] = {
        SGP_NODE_JOINING, SGP_NODE_JOINING, SGP_NODE_JOINING};
    struct desk desk;
    for (uint32_t own_pace = 0; own_pace < 2; own_pace++) {
        open_owned(&desk, own_pace ? "downpour" : "backup", 0, NULL, false);
        takes_copy_of(&desk, 3, joins, (const sgp_round[]){40, 60, 70});
        cr_assert(eq(i64, status_of(&desk).round, 71));
        close_desk(&desk);
    }
}

/* It continues from its own checkpoint, which may be newer than those of its workers. */
Test(join_owner, keeps_its_own_checkpoint_if_all_join)
{
    struct sgp_record record = {.incarnation = 77, .round = 60, .weight = 1, .rounds = 100};
    struct desk desk;
    open_owned(&desk, "backup", 0, &record, true);
    for (uint32_t peer = 1; peer <= 3; peer++) {
        greet_in(&desk, peer, in_state(SGP_NODE_JOINING, 50 + peer), 87 + peer);
        greet_out(&desk, peer, in_state(SGP_NODE_JOINING, 50 + peer), 87 + peer, 0);
    }
    for (uint32_t second = 0; second < 30; second++) {
        desk.now += SGP_SECOND;
        for (uint32_t peer = 1; peer <= 3; peer++) {
            say_pulses(&desk, peer, in_state(SGP_NODE_JOINING, 50 + peer));
            cr_assert_null(find_sent(&desk, SGP_ASK, peer));
        }
        post_type(&desk, SGP_EVENT_TICK);
    }
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_TRAINING));
    cr_assert(eq(i64, status_of(&desk).round, 61));
    close_desk(&desk);
}

/* The owner comes back with exact parameters. Its workers train in round 60. */
static void open_returning(struct desk *desk, const char *method)
{
    const struct sgp_record record = {.incarnation = 77, .round = 60, .weight = 1, .rounds = 100};
    open_owned(desk, method, 0, &record, false);
}

static enum sgp_node_state state_after_greeting(struct desk *desk, uint32_t peer)
{
    const struct sgp_pulse pulse = in_state(SGP_NODE_TRAINING, 60);
    greet_in(desk, peer, pulse, 87 + peer);
    greet_out(desk, peer, pulse, 87 + peer, 0);
    return status_of(desk).state;
}

static enum sgp_node_state state_after(struct desk *desk, sgp_time time)
{
    for (sgp_time until = desk->now + time; desk->now < until;) {
        desk->now += SGP_SECOND / 10;
        post_type(desk, SGP_EVENT_TICK);
    }
    return status_of(desk).state;
}

/* The workers connect one after the other. If the owner began with the first of them, it would close
 * a step without the updates of the others. */
Test(join_owner, begins_when_its_workers_have_greeted)
{
    struct desk desk;
    open_returning(&desk, "backup");
    for (uint32_t peer = 1; peer <= 2; peer++) {
        cr_assert(eq(int, state_after_greeting(&desk, peer), SGP_NODE_JOINING));
        cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_HELLO));
        cr_assert(eq(u32, status_of(&desk).waiting_peer, peer + 1));
    }
    cr_assert(eq(int, state_after_greeting(&desk, 3), SGP_NODE_TRAINING));
    cr_assert(eq(i64, status_of(&desk).round, 61));
    close_desk(&desk);
}

/* The owner waits 3 s for workers that are away. */
Test(join_owner, begins_without_a_worker_that_does_not_greet)
{
    struct desk desk;
    open_returning(&desk, "backup");
    cr_assert(eq(int, state_after_greeting(&desk, 1), SGP_NODE_JOINING));
    cr_assert(eq(int, state_after(&desk, SGP_SILENCE_MIN_NS - SGP_SECOND), SGP_NODE_JOINING));
    say_pulses(&desk, 1, in_state(SGP_NODE_TRAINING, 60));
    cr_assert(eq(int, state_after(&desk, 2 * SGP_SECOND), SGP_NODE_TRAINING));
    close_desk(&desk);
}

/* At its own pace the owner closes a step for each update, so no worker misses one. */
Test(join_owner, begins_with_the_first_worker_at_its_own_pace)
{
    struct desk desk;
    open_returning(&desk, "downpour");
    cr_assert(eq(int, state_after_greeting(&desk, 1), SGP_NODE_TRAINING));
    close_desk(&desk);
}

/* A worker has weight 0 on record, and a node that gossiped has x = weight * estimate. */
Test(join_owner, has_weight_1_whatever_it_was)
{
    static const double weights[] = {0, 0.25, 1};
    for (uint32_t i = 0; i < 3; i++) {
        struct sgp_record record = {.incarnation = 77, .round = 60, .weight = weights[i]};
        struct desk desk;
        open_owned(&desk, "backup", 0, &record, weights[i] <= 0);
        cr_assert(eq(dbl, status_of(&desk).weight, 1));
        const struct sgp_effect *scale = find(&desk, SGP_EFFECT_SCALE);
        double factor = scale != NULL ? scale->scale.factor : 1;
        cr_assert(eq(dbl, factor, weights[i] > 0 ? 1 / weights[i] : 1));
        close_desk(&desk);
    }
}

/* A checkpoint may be older than its label, so a copy is preferred; the labels go beyond both. */
Test(join_owner, prefers_a_worker_that_trains)
{
    static const enum sgp_node_state states[] = {
        SGP_NODE_JOINING, SGP_NODE_TRAINING, SGP_NODE_TRAINING};
    struct desk desk;
    open_owned(&desk, "backup", 0, NULL, false);
    takes_copy_of(&desk, 3, states, (const sgp_round[]){70, 60, 65});
    cr_assert(eq(i64, status_of(&desk).round, 71));
    close_desk(&desk);
}

static void count_asked(const struct desk *desk, uint32_t asked[4])
{
    for (uint32_t peer = 1; peer <= 3; peer++) {
        const struct sgp_effect *ask = find_sent(desk, SGP_ASK, peer);
        asked[peer] += ask != NULL && ask->send.message.ask.wants;
    }
}

/* The owner lost its parameters, and its workers, at label 70, do not answer. */
static void open_unanswered(struct desk *desk, uint32_t asked[4])
{
    const struct sgp_pulse pulse = in_state(SGP_NODE_JOINING, 70);
    open_owned(desk, "backup", 0, NULL, false);
    for (uint32_t peer = 1; peer <= 3; peer++)
        greet_out(desk, peer, pulse, 87 + peer, 0);
    for (uint32_t second = 0; second < 90 && status_of(desk).state == SGP_NODE_JOINING; second++) {
        desk->now += SGP_SECOND;
        for (uint32_t peer = 1; peer <= 3; peer++) {
            if (sgp_core_is_up(sgp_core_from(desk->node, peer)))
                say_pulse(desk, peer, SGP_IN, pulse);
            else
                greet_in(desk, peer, pulse, 87 + peer);
            count_asked(desk, asked);
            say_pulse(desk, peer, SGP_OUT, pulse);
            count_asked(desk, asked);
        }
        post_type(desk, SGP_EVENT_TICK);
        count_asked(desk, asked);
    }
}

/* None has a checkpoint. The owner asks each once, and begins with its first parameters at last. */
Test(join_owner, asks_each_worker_for_a_checkpoint_once)
{
    uint32_t asked[4] = {0};
    struct desk desk;
    open_unanswered(&desk, asked);
    for (uint32_t peer = 1; peer <= 3; peer++)
        cr_assert(eq(u32, asked[peer], 1));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_TRAINING));
    close_desk(&desk);
}

static const struct sgp_estimate *copy_for(struct desk *desk, uint32_t peer)
{
    struct sgp_pulse pulse = in_state(SGP_NODE_JOINING, 70);
    say(desk, peer, SGP_OUT,
        (struct sgp_message){.type = SGP_ASK, .pulse = pulse, .ask = {.wants = true}});
    const struct sgp_effect *publish = find(desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(publish);
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED, .slot = publish->publish.slot});
    const struct sgp_effect *sent = find_sent(desk, SGP_ESTIMATE, peer);
    cr_assert_not_null(sent);
    return &sent->send.message.estimate;
}

/* Its labels go on, so they do not show it. */
Test(join_owner, says_that_its_copies_contain_no_training)
{
    uint32_t asked[4] = {0};
    struct desk desk;
    open_unanswered(&desk, asked);
    const struct sgp_estimate *copy = copy_for(&desk, 2);
    cr_assert(copy->untrained);
    cr_assert(eq(i64, copy->round, 71));
    close_desk(&desk);
    open_owned(&desk, "backup", 0, NULL, false);
    takes_copy_of(&desk, 2,
        (const enum sgp_node_state[]){SGP_NODE_TRAINING, SGP_NODE_TRAINING, SGP_NODE_TRAINING},
        (const sgp_round[]){0, 70, 0});
    copy = copy_for(&desk, 2);
    cr_assert_not(copy->untrained);
    cr_assert(eq(i64, copy->round, 71));
    close_desk(&desk);
}

/* What worker n1 does with its past when its owner, which joins, asks for it. */
static void asks_for_checkpoint(struct desk *desk)
{
    greet_out(desk, 0, in_state(SGP_NODE_JOINING, 0), 88, 0);
    say(desk, 0, SGP_OUT,
        (struct sgp_message){
            .type = SGP_ASK, .pulse = in_state(SGP_NODE_JOINING, 0), .ask = {.wants = true}});
}

Test(join_owner, a_worker_that_joins_hands_out_its_checkpoint)
{
    struct sgp_record record = {.incarnation = 77, .round = 70};
    struct desk desk;
    open_owned(&desk, "backup", 1, &record, true);
    cr_assert_null(find(&desk, SGP_EFFECT_SCALE)); /* x is at weight 1 already */
    asks_for_checkpoint(&desk);
    const struct sgp_effect *publish = find(&desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(publish);
    cr_assert(eq(int, publish->publish.purpose, SGP_PUBLISH_ESTIMATE)); /* x; it has no copy */
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED, .slot = publish->publish.slot});
    const struct sgp_effect *sent = find_sent(&desk, SGP_ESTIMATE, 0);
    cr_assert_not_null(sent);
    cr_assert(eq(i64, sent->send.message.estimate.round, 70));
    cr_assert(eq(dbl, sent->send.message.estimate.weight, 1));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_JOINING));
    close_desk(&desk);
}

/* Its record is of gossip, and its parameters are exact: x = weight * estimate. */
Test(join_owner, a_worker_that_was_none_hands_out_its_estimate)
{
    struct sgp_record record = {.incarnation = 77, .round = 70, .weight = 0.25};
    struct desk desk;
    open_owned(&desk, "backup", 1, &record, false);
    const struct sgp_effect *scale = find(&desk, SGP_EFFECT_SCALE);
    cr_assert_not_null(scale);
    cr_assert(eq(dbl, scale->scale.factor, 4));
    asks_for_checkpoint(&desk);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    close_desk(&desk);
}

/* The second had given all its mass away: its exact x is zero. */
Test(join_owner, a_worker_without_a_checkpoint_hands_out_nothing)
{
    const struct sgp_record record = {.incarnation = 77, .round = 70};
    const struct sgp_record *records[] = {NULL, &record};
    struct desk desk;
    for (uint32_t i = 0; i < 2; i++) {
        open_owned(&desk, "backup", 1, records[i], false);
        asks_for_checkpoint(&desk);
        cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
        close_desk(&desk);
    }
}
