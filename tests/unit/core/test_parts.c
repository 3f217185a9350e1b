/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of parts, message by message: what a worker says to each, whom it asks and passes over, and what is not taken for a
 * part that it is not. */
#include "core_desk.h"

#define HALF (PARAMETERS / 2)

static const struct sgp_slice halves[] = {{0, HALF}, {HALF, HALF}};

/* n1 and n2 own a half each, n0 and n3 work. */
static struct sgp_topology *two_owners(void)
{
    static const struct sgp_topology_node nodes[] = {{.name = "n0"},
        {.name = "n1", .relay = true, .owns = true, .own_part = 0, .own_part_count = 1},
        {.name = "n2", .relay = true, .owns = true, .own_part = 1, .own_part_count = 1},
        {.name = "n3"}};
    struct sgp_edge edges[8];
    uint32_t count = 0;
    for (uint32_t owner = 1; owner < 3; owner++)
        for (uint32_t worker = 0; worker < 4; worker += 3) {
            edges[count++] = (struct sgp_edge){owner, worker, .fraction = SGP_FRACTION_DEFAULT};
            edges[count++] = (struct sgp_edge){worker, owner, .fraction = SGP_FRACTION_DEFAULT};
        }
    const struct sgp_phase_options options = {.name = "owners", .rounds = 1, .slices = 2};
    struct sgp_topology *topology = NULL;
    cr_assert(zero(int, sgp_topology_create(nodes, 4, NULL, &topology)));
    cr_assert(zero(int, sgp_topology_add(topology, &options, edges, count, NULL)));
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    return topology;
}

static void open_with(struct desk *desk, uint32_t self, enum sgp_compressor compressor)
{
    struct sgp_topology *topology = two_owners();
    struct sgp_node_config config = config_of(topology);
    config.self = self;
    config.compressor = compressor;
    config.method = sgp_method_find("backup");
    config.fingerprint.method = config.method->number;
    open_desk(desk, topology, config);
    desk->peers = config.fingerprint;
    post_type(desk, SGP_EVENT_START);
}

static void open_as(struct desk *desk, uint32_t self)
{
    open_with(desk, self, SGP_COMPRESSOR_NONE);
}

static struct sgp_message estimate_of(sgp_round label, struct sgp_slice slice)
{
    return (struct sgp_message){.type = SGP_ESTIMATE,
        .pulse = pulse_at(label, SGP_ROUND_NONE),
        .estimate = {
            .round = label, .weight = 1, .payload_bytes = 4 * slice.count, .slice = slice}};
}

/* The copy of a label comes from an owner, whole. */
static void take_copy(struct desk *desk, uint32_t owner, sgp_round label, bool untrained)
{
    struct sgp_message copy = estimate_of(label, halves[owner - 1]);
    copy.estimate.untrained = untrained;
    say(desk, owner, SGP_IN, copy);
    deliver(desk, owner, 0);
    const struct sgp_effect *follow = find(desk, SGP_EFFECT_FOLLOW);
    cr_assert_not_null(follow);
    cr_assert(eq(u32, follow->follow.peer, owner));
    cr_assert(eq(u64, follow->follow.slice.first, halves[owner - 1].first));
    cr_assert(eq(u64, follow->follow.slice.count, HALF));
}

static void take(struct desk *desk, uint32_t owner, sgp_round label)
{
    take_copy(desk, owner, label, false);
}

static sgp_round asked(const struct desk *desk, uint32_t owner)
{
    const struct sgp_effect *sent = find_sent(desk, SGP_ASK, owner);
    return sent != NULL && sent->send.message.ask.wants ? sent->send.message.ask.newer
                                                        : SGP_ROUND_NONE;
}

/* n0 works, and has a copy of step 9 of n1, and of step 7 of n2. */
static void open_worker_with(struct desk *desk, enum sgp_compressor compressor)
{
    open_with(desk, 0, compressor);
    desk->codings = compressor == SGP_COMPRESSOR_NONE ? 0 : SGP_CODINGS;
    for (uint32_t owner = 1; owner < 3; owner++) {
        greet_out(desk, owner, pulse_at(7, SGP_ROUND_NONE), 80 + owner, 0);
        greet_in(desk, owner, pulse_at(7, SGP_ROUND_NONE), 80 + owner);
        cr_assert(eq(i64, asked(desk, owner), 0), "each is asked when it is there");
    }
    take(desk, 1, 9);
    cr_assert_null(find(desk, SGP_EFFECT_TRAIN), "a part is no model");
    take(desk, 2, 7);
    cr_assert_not_null(find(desk, SGP_EFFECT_TRAIN));
    cr_assert(eq(i64, status_of(desk).round, 7));
    cr_assert(eq(i64, status_of(desk).copy_label, 7));
    say_pulses(desk, 1, pulse_at(9, SGP_ROUND_NONE));
}

/* n0, n1 and n2 lost their parameters. n1 began again with its first ones at its old label. */
Test(parts, one_copy_does_not_make_the_other_part_trained)
{
    const struct sgp_record record = {.incarnation = 77, .round = 70};
    struct sgp_topology *topology = two_owners();
    struct sgp_node_config config = config_of(topology);
    struct desk desk;
    config.method = sgp_method_find("backup");
    config.fingerprint.method = config.method->number;
    config.record = &record;
    config.seeks = config.fresh = true;
    open_desk(&desk, topology, config);
    desk.peers = config.fingerprint;
    post_type(&desk, SGP_EVENT_START);
    struct sgp_pulse joins = pulse_at(70, SGP_ROUND_NONE);
    joins.state = SGP_NODE_JOINING;
    for (uint32_t owner = 1; owner < 3; owner++) {
        struct sgp_pulse pulse = owner == 1 ? pulse_at(71, SGP_ROUND_NONE) : joins;
        greet_out(&desk, owner, pulse, 80 + owner, 0);
        greet_in(&desk, owner, pulse, 80 + owner);
    }
    take(&desk, 1, 71);
    say(&desk, 2, SGP_OUT,
        (struct sgp_message){.type = SGP_ASK, .pulse = joins, .ask = {.wants = true}});
    cr_assert(status_of(&desk).fresh);
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH), "it has no checkpoint");
    close_desk(&desk);
}

/* Owner n1 was started again, and asks n0 for its copy. */
static const struct sgp_estimate *handed_out(struct desk *desk)
{
    struct sgp_pulse joins = pulse_at(71, SGP_ROUND_NONE);
    joins.state = SGP_NODE_JOINING;
    say(desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_ASK, .pulse = joins, .ask = {.wants = true}});
    const struct sgp_effect *publish = find(desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(publish);
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED, .slot = publish->publish.slot});
    const struct sgp_effect *sent = find_sent(desk, SGP_ESTIMATE, 1);
    cr_assert_not_null(sent);
    return &sent->send.message.estimate;
}

/* Each owner may have lost its part. A worker that had trained takes the copies all the same. Its
 * own steps train its model, and not the copy. */
Test(parts, a_copy_of_any_part_that_lost_its_training_makes_the_model_untrained)
{
    for (uint32_t lost = 0; lost < 8; lost++) {
        struct desk desk;
        struct sgp_topology *topology = two_owners();
        struct sgp_node_config config = config_of(topology);
        config.method = sgp_method_find("backup");
        config.fingerprint.method = config.method->number;
        config.fresh = (lost & 4) != 0;
        open_desk(&desk, topology, config);
        desk.peers = config.fingerprint;
        post_type(&desk, SGP_EVENT_START);
        for (uint32_t owner = 1; owner < 3; owner++) {
            greet_out(&desk, owner, pulse_at(71, SGP_ROUND_NONE), 80 + owner, 0);
            greet_in(&desk, owner, pulse_at(71, SGP_ROUND_NONE), 80 + owner);
        }
        take_copy(&desk, 1, 71, (lost & 1) != 0);
        take_copy(&desk, 2, 71, (lost & 2) != 0);
        cr_assert(eq(int, status_of(&desk).fresh, (lost & 3) != 0));
        post_type(&desk, SGP_EVENT_TRAINED);
        cr_assert_not(status_of(&desk).fresh);
        cr_assert(eq(int, handed_out(&desk)->untrained, (lost & 3) != 0));
        close_desk(&desk);
    }
}

static void open_worker(struct desk *desk)
{
    open_worker_with(desk, SGP_COMPRESSOR_NONE);
}

static void expect_share(
    const struct desk *desk, uint32_t owner, sgp_round label, struct sgp_slice slice)
{
    const struct sgp_effect *sent = find_sent(desk, SGP_SHARE, owner);
    cr_assert_not_null(sent, "to n%u", owner);
    const struct sgp_share *share = &sent->send.message.share;
    cr_assert(eq(i64, share->round, label));
    cr_assert(eq(u64, share->slice.first, slice.first));
    cr_assert(eq(u64, share->slice.count, slice.count));
    cr_assert(eq(u64, share->payload_bytes, 4 * slice.count));
    cr_assert(eq(dbl, share->fraction, 1));
    cr_assert(zero(dbl, share->weight));
    cr_assert(eq(i64, sent->send.message.pulse.round, label));
    cr_assert(eq(i64, sent->send.message.pulse.next_round, label + 1));
}

/* ... and has given the update of these to both. */
static void give(struct desk *desk)
{
    grant(desk, 1, 9);
    grant(desk, 2, 7);
    say_pulse(desk, 1, SGP_IN, pulse_at(9, SGP_ROUND_NONE));
    post_type(desk, SGP_EVENT_TRAINED);
    const struct sgp_effect *publish = find(desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(publish);
    cr_assert(eq(u64, publish->publish.slice.count, PARAMETERS), "of one snapshot");
    cr_assert(eq(int, (int)publish->publish.purpose, SGP_PUBLISH_UPDATE));
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED, .slot = publish->publish.slot});
}

Test(parts, each_owner_is_told_the_label_of_its_part_and_gets_its_range)
{
    struct desk desk;
    open_worker(&desk);
    give(&desk);
    expect_share(&desk, 1, 9, halves[0]);
    expect_share(&desk, 2, 7, halves[1]);
    close_desk(&desk);
}

/* The least label is that of n2. When it has grown to 8, n1 has nothing to wait for: it has the update of 9. */
Test(parts, an_owner_that_has_the_update_of_a_label_is_passed_over)
{
    struct desk desk;
    open_worker(&desk);
    give(&desk);
    cr_assert(eq(i64, asked(&desk, 1), SGP_ROUND_NONE), "what it has of n1 is further");
    for (uint32_t owner = 1; owner < 3; owner++)
        acknowledge(&desk, owner, 1, SGP_REASON_NONE);
    take(&desk, 2, 8);
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN));
    cr_assert(eq(i64, status_of(&desk).round, 8));
    grant(&desk, 2, 8);
    say_pulse(&desk, 1, SGP_OUT, pulse_at(9, SGP_ROUND_NONE));
    post_type(&desk, SGP_EVENT_TRAINED);
    const struct sgp_effect *publish = find(&desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(publish);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED, .slot = publish->publish.slot});
    cr_assert_null(find_sent(&desk, SGP_SHARE, 1));
    expect_share(&desk, 2, 8, halves[1]);
    close_desk(&desk);
}

/* Both have closed these steps: nothing goes, but what was moved is forgotten, and both are asked if both copies are old. */
Test(parts, what_comes_too_late_for_all_is_not_given)
{
    struct desk desk;
    open_worker(&desk);
    for (uint32_t owner = 1; owner < 3; owner++)
        say_pulses(&desk, owner, pulse_at(12, SGP_ROUND_NONE));
    post_type(&desk, SGP_EVENT_TRAINED);
    const struct sgp_effect *publish = find(&desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(publish);
    cr_assert(zero(dbl, publish->publish.keep), "x is the copy again");
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED, .slot = publish->publish.slot});
    for (uint32_t owner = 1; owner < 3; owner++)
        cr_assert_null(find_sent(&desk, SGP_SHARE, owner));
    close_desk(&desk);
}

/* ---- coded updates ---- */

static uint32_t count_of(const struct desk *desk, enum sgp_effect_type type)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < desk->effects.count; i++)
        count += desk->items[i].type == type;
    return count;
}

/* The jobs of an update: the whole of it, plainly; then each of these ranges. */
static void expect_jobs(struct desk *desk, const struct sgp_slice *ranges, uint32_t count,
    enum sgp_compressor compressor)
{
    const struct sgp_effect *job = find(desk, SGP_EFFECT_PUBLISH);
    cr_assert(eq(u32, count_of(desk, SGP_EFFECT_PUBLISH), 1 + count));
    cr_assert(eq(int, (int)job->publish.purpose, SGP_PUBLISH_UPDATE));
    cr_assert(eq(int, (int)job->publish.compressor, SGP_COMPRESSOR_NONE));
    cr_assert(eq(u64, job->publish.slice.count, PARAMETERS));
    struct sgp_event done = {.type = SGP_EVENT_PUBLISHED, .slot = job->publish.slot};
    for (uint32_t i = 0; i < count; i++) {
        job++;
        cr_assert(eq(int, (int)job->type, SGP_EFFECT_PUBLISH));
        cr_assert(eq(int, (int)job->publish.purpose, SGP_PUBLISH_CHOSEN));
        cr_assert(eq(int, (int)job->publish.compressor, (int)compressor));
        cr_assert(eq(u32, job->publish.slot, done.slot));
        cr_assert(eq(u64, job->publish.slice.first, ranges[i].first));
        cr_assert(eq(u64, job->publish.slice.count, ranges[i].count));
    }
    for (uint32_t i = 0; i < count; i++) {
        post(desk, done);
        cr_assert_null(find_sent(desk, SGP_SHARE, 1), "not before all of it is chosen");
        cr_assert_null(find_sent(desk, SGP_SHARE, 2));
    }
    post(desk, done);
}

static void expect_coded(const struct desk *desk, uint32_t owner, enum sgp_compressor compressor)
{
    const struct sgp_effect *sent = find_sent(desk, SGP_SHARE, owner);
    cr_assert_not_null(sent, "to n%u", owner);
    const struct sgp_share *share = &sent->send.message.share;
    cr_assert(eq(int, (int)share->compressor, (int)compressor));
    cr_assert(eq(int, (int)share->coding, (int)sgp_coding_of(compressor)));
    cr_assert(eq(u64, share->slice.first, halves[owner - 1].first));
    cr_assert(eq(u64, share->slice.count, HALF));
}

static void train(struct desk *desk)
{
    grant(desk, 1, 9);
    grant(desk, 2, 7);
    say_pulse(desk, 1, SGP_IN, pulse_at(9, SGP_ROUND_NONE));
    post_type(desk, SGP_EVENT_TRAINED);
}

Test(parts, each_range_of_a_coded_update_is_chosen_by_itself)
{
    struct desk desk;
    open_worker_with(&desk, SGP_COMPRESSOR_SPARSE);
    train(&desk);
    expect_jobs(&desk, halves, 2, SGP_COMPRESSOR_SPARSE);
    expect_coded(&desk, 1, SGP_COMPRESSOR_SPARSE);
    expect_coded(&desk, 2, SGP_COMPRESSOR_SPARSE);
    close_desk(&desk);
}

/* What the part of n1 has left out stays. */
Test(parts, for_an_owner_that_is_passed_over_nothing_is_chosen)
{
    struct desk desk;
    open_worker_with(&desk, SGP_COMPRESSOR_INT4);
    train(&desk);
    expect_jobs(&desk, halves, 2, SGP_COMPRESSOR_INT4);
    for (uint32_t owner = 1; owner < 3; owner++)
        acknowledge(&desk, owner, 1, SGP_REASON_NONE);
    take(&desk, 2, 8);
    grant(&desk, 2, 8);
    say_pulse(&desk, 1, SGP_OUT, pulse_at(9, SGP_ROUND_NONE));
    post_type(&desk, SGP_EVENT_TRAINED);
    expect_jobs(&desk, &halves[1], 1, SGP_COMPRESSOR_INT4);
    cr_assert_null(find_sent(&desk, SGP_SHARE, 1));
    expect_coded(&desk, 2, SGP_COMPRESSOR_INT4);
    close_desk(&desk);
}

/* Then all that was left out goes, too. */
Test(parts, an_owner_that_decodes_no_blocks_makes_the_update_plain)
{
    struct desk desk;
    open_with(&desk, 0, SGP_COMPRESSOR_SIGN);
    for (uint32_t owner = 1; owner < 3; owner++) {
        desk.codings = owner == 1 ? SGP_CODINGS : SGP_CODING_BIT(SGP_CODING_FP16);
        greet_out(&desk, owner, pulse_at(7, SGP_ROUND_NONE), 80 + owner, 0);
        greet_in(&desk, owner, pulse_at(7, SGP_ROUND_NONE), 80 + owner);
    }
    take(&desk, 1, 9);
    take(&desk, 2, 7);
    say_pulses(&desk, 1, pulse_at(9, SGP_ROUND_NONE));
    train(&desk);
    expect_jobs(&desk, halves, 2, SGP_COMPRESSOR_NONE);
    expect_share(&desk, 1, 9, halves[0]);
    expect_share(&desk, 2, 7, halves[1]);
    close_desk(&desk);
}

Test(parts, an_update_in_vain_leaves_what_was_left_out)
{
    struct desk desk;
    open_worker_with(&desk, SGP_COMPRESSOR_INT4);
    for (uint32_t owner = 1; owner < 3; owner++)
        say_pulses(&desk, owner, pulse_at(12, SGP_ROUND_NONE));
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(u32, count_of(&desk, SGP_EFFECT_PUBLISH), 1));
    const struct sgp_effect *job = find(&desk, SGP_EFFECT_PUBLISH);
    cr_assert(eq(int, (int)job->publish.purpose, SGP_PUBLISH_NOTHING));
    close_desk(&desk);
}

/* ---- what is not that part ---- */

Test(parts, an_estimate_of_other_values_ends_the_connection)
{
    const struct sgp_slice odd[] = {
        {HALF, HALF}, {0, HALF - 1}, {1, HALF}, {0, PARAMETERS}, {0, 0}};
    for (uint32_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct desk desk;
        open_as(&desk, 0);
        greet_out(&desk, 1, pulse_at(7, SGP_ROUND_NONE), 81, 0);
        greet_in(&desk, 1, pulse_at(7, SGP_ROUND_NONE), 81);
        cr_assert(eq(i64, asked(&desk, 1), 0));
        struct sgp_message message = estimate_of(7, odd[i]);
        if (odd[i].count == 0)
            message.estimate.payload_bytes = PAYLOAD;
        say(&desk, 1, SGP_IN, message);
        cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP), "case %u", i);
        cr_assert_null(find(&desk, SGP_EFFECT_RECEIVE), "case %u", i);
        close_desk(&desk);
    }
}

Test(parts, an_update_of_other_values_is_refused_and_not_added)
{
    const struct sgp_slice odd[] = {{HALF, HALF}, {0, HALF - 1}, {1, HALF}, {0, PARAMETERS}};
    for (uint32_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct desk desk;
        open_as(&desk, 1);
        const char *name = "n0";
        for (uint32_t direction = 0; direction < 2; direction++) {
            come_up(&desk, 0, direction == 0 ? SGP_OUT : SGP_IN);
            struct sgp_message message = {.type = direction == 0 ? SGP_WELCOME : SGP_HELLO,
                .pulse = pulse_at(0, direction == 0 ? SGP_ROUND_NONE : 0)};
            if (direction == 0)
                message.welcome = (struct sgp_welcome){
                    .target = name, .incarnation = 80, .fingerprint = desk.peers};
            else
                message.hello = (struct sgp_hello){.source = name,
                    .target = "n1",
                    .incarnation = 80,
                    .parameters = PARAMETERS,
                    .fingerprint = desk.peers};
            say(&desk, 0, direction == 0 ? SGP_OUT : SGP_IN, message);
        }
        cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 0));
        struct sgp_message update = share_of(1, 0, 0);
        update.share.fraction = 1;
        update.share.weight = 0;
        update.share.slice = odd[i];
        update.share.payload_bytes = 4 * odd[i].count;
        say(&desk, 0, SGP_IN, update);
        cr_assert_not_null(find(&desk, SGP_EFFECT_RECEIVE), "case %u", i);
        deliver(&desk, 0, 0);
        const struct sgp_effect *ack = find_sent(&desk, SGP_ACK, 0);
        cr_assert_not_null(ack);
        cr_assert(eq(int, (int)ack->send.message.ack.reason, SGP_REASON_CHANGED), "case %u", i);
        cr_assert_null(find(&desk, SGP_EFFECT_ABSORB));
        close_desk(&desk);
    }
}
