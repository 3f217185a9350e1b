/* SPDX-License-Identifier: Apache-2.0 */
/* What survives a node, and a node made from it. */
#include "sgp/driver.h"
#include "sgp/generate.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define NAME(i) (pair_topology->nodes[i].name)

static struct sgp_topology *pair_topology;
static struct sgp_effects effects;

static void setup(void)
{
    struct sgp_error error = {0};
    struct sgp_generate_options options = {.family = "complete", .nodes = 2};
    cr_assert(zero(int, sgp_generate(&options, &error, &pair_topology)), "%s", error.text);
    effects.capacity = 256;
    effects.items = calloc(effects.capacity, sizeof *effects.items);
}

static void teardown(void)
{
    sgp_topology_destroy(pair_topology);
    free(effects.items);
}

TestSuite(record, .init = setup, .fini = teardown);

static struct sgp_node_config config_of(const struct sgp_record *record, bool seeks)
{
    return (struct sgp_node_config){.topology = pair_topology,
        .method = sgp_method_find("sgp"),
        .incarnation = record ? record->incarnation : 7,
        .parameters = 4,
        .rounds = 100,
        .local_steps = 1,
        .start = SGP_START_ALL,
        .weight_least = 0.5,
        .record = record,
        .seeks = seeks,
        .fresh = seeks};
}

/* A record of node 0 in round 9, which owes node 1 share 5 of weight 0.25. */
static struct sgp_record owing(struct sgp_record_link links[2])
{
    links[0] = (struct sgp_record_link){.peer = 1,
        .out = true,
        .incarnation = 11,
        .number = 5,
        .owes = true,
        .owed_round = 8,
        .owed_fraction = 0.5,
        .owed_weight = 0.25};
    links[1] = (struct sgp_record_link){.peer = 1, .incarnation = 11, .number = 3};
    return (struct sgp_record){.incarnation = 7,
        .round = 9,
        .gave = true,
        .weight = 0.75,
        .link_count = 2,
        .link_capacity = 2,
        .links = links};
}

static const struct sgp_effect *find(enum sgp_effect_type type)
{
    for (uint32_t i = 0; i < effects.count; i++)
        if (effects.items[i].type == type)
            return &effects.items[i];
    return NULL;
}

static void post(struct sgp_node *node, enum sgp_event_type type, enum sgp_direction direction,
    const struct sgp_message *message)
{
    struct sgp_event event = {.type = type,
        .now = 1,
        .link = {1, direction, direction == SGP_OUT ? 1 : 2},
        .message = message};
    sgp_node_step(node, &event, &effects);
}

static struct sgp_pulse pulse_at(sgp_round round)
{
    return (struct sgp_pulse){.state = SGP_NODE_TRAINING,
        .round = round,
        .next_round = SGP_ROUND_NONE,
        .ends = 100,
        .stop = SGP_ROUND_NONE};
}

/* Node 1 greets on our in-link. */
static void greet_in(struct sgp_node *node, sgp_round round)
{
    struct sgp_message hello = {.type = SGP_HELLO,
        .pulse = pulse_at(round),
        .hello = {.fingerprint.method = 1,
            .source = NAME(1),
            .target = NAME(0),
            .incarnation = 11,
            .parameters = 4}};
    post(node, SGP_EVENT_UP, SGP_IN, NULL);
    post(node, SGP_EVENT_MESSAGE, SGP_IN, &hello);
}

/* ... and on our out-link; it has accepted up to `accepted`. */
static void greet(struct sgp_node *node, uint64_t incarnation, uint64_t accepted)
{
    struct sgp_message welcome = {.type = SGP_WELCOME,
        .pulse = pulse_at(9),
        .welcome = {.fingerprint.method = 1,
            .target = NAME(1),
            .incarnation = incarnation,
            .accepted = accepted}};
    post(node, SGP_EVENT_UP, SGP_OUT, NULL);
    post(node, SGP_EVENT_MESSAGE, SGP_OUT, &welcome);
}

static struct sgp_node *restored_with(bool seeks, bool kept)
{
    struct sgp_record_link links[2];
    struct sgp_record record = owing(links);
    links[0].owed_kept = kept;
    links[0].owed_slot = 1;
    struct sgp_node_config config = config_of(&record, seeks);
    struct sgp_node *node;
    cr_assert(zero(int, sgp_node_create(&config, &node)));
    struct sgp_event start = {.type = SGP_EVENT_START};
    sgp_node_step(node, &start, &effects);
    return node;
}

static struct sgp_node *restored(bool seeks)
{
    return restored_with(seeks, false);
}

static struct sgp_node_status status_of(const struct sgp_node *node)
{
    struct sgp_node_status status;
    sgp_node_status(node, &status);
    return status;
}

Test(record, a_node_gives_back_the_record_it_was_made_from)
{
    struct sgp_node *node = restored(false);
    struct sgp_record_link links[2];
    struct sgp_record record = {.link_capacity = 2, .links = links};
    cr_assert(not(sgp_node_record_changed(node)));
    sgp_node_record(node, &record);
    cr_assert(eq(u64, record.incarnation, 7));
    cr_assert(eq(i64, record.round, 9));
    cr_assert(record.gave && !record.trained);
    cr_assert(eq(dbl, record.weight, 0.75));
    cr_assert(eq(u32, record.link_count, 2));
    cr_assert(links[0].out && links[0].owes && !links[1].out);
    cr_assert(eq(u64, links[0].number, 5));
    cr_assert(eq(u64, links[1].number, 3));
    cr_assert(eq(u64, links[1].incarnation, 11));
    cr_assert(eq(dbl, links[0].owed_weight, 0.25));
    cr_assert(eq(i64, links[0].owed_round, 8));
    sgp_node_destroy(node);
}

Test(record, a_fresh_node_is_on_record_from_its_first_step)
{
    struct sgp_node_config config = config_of(NULL, false);
    struct sgp_node *node;
    cr_assert(zero(int, sgp_node_create(&config, &node)));
    struct sgp_event start = {.type = SGP_EVENT_START};
    sgp_node_step(node, &start, &effects);
    cr_assert(sgp_node_record_changed(node));
    sgp_node_destroy(node);
}

Test(record, what_the_target_accepted_is_settled)
{
    struct sgp_node *node = restored(false);
    greet(node, 11, 5);
    cr_assert(sgp_node_record_changed(node));
    cr_assert(eq(dbl, status_of(node).weight, 0.75));
    cr_assert(eq(dbl, status_of(node).weight_in_flight, 0));
    cr_assert(find(SGP_EFFECT_SCALE) == NULL);
    sgp_node_destroy(node);
}

Test(record, what_the_target_never_saw_comes_home_and_x_follows_w)
{
    struct sgp_node *node = restored(false);
    greet(node, 11, 4);
    cr_assert(sgp_node_record_changed(node));
    cr_assert(eq(dbl, status_of(node).weight, 1));
    cr_assert(eq(dbl, status_of(node).weight_in_flight, 0));
    cr_assert(find(SGP_EFFECT_SCALE) != NULL);
    cr_assert(epsilon_eq(dbl, find(SGP_EFFECT_SCALE)->scale.factor, 1 / 0.75, 1e-15));
    sgp_node_destroy(node);
}

Test(record, what_the_target_never_saw_comes_home_to_the_bit_if_its_snapshot_was_kept)
{
    struct sgp_node *node = restored_with(false, true);
    greet(node, 11, 4);
    cr_assert(eq(dbl, status_of(node).weight, 1));
    cr_assert(find(SGP_EFFECT_SCALE) == NULL);
    const struct sgp_effect *effect = find(SGP_EFFECT_RESTORE);
    cr_assert(effect != NULL);
    cr_assert(eq(u32, effect->restore.slot, 1));
    cr_assert(eq(dbl, effect->restore.fraction, 0.5));
    cr_assert(eq(u64, effect->restore.slice.count, 4));
    struct sgp_event done = {.type = SGP_EVENT_RESTORED, .now = 1, .slot = 1};
    sgp_node_step(node, &done, &effects);
    sgp_node_destroy(node);

    node = restored_with(false, true);
    greet(node, 11, 5);
    cr_assert(find(SGP_EFFECT_RESTORE) == NULL, "it was accepted");
    cr_assert(eq(dbl, status_of(node).weight, 0.75));
    sgp_node_destroy(node);
}

Test(record, what_is_owed_to_a_target_that_forgot_comes_home)
{
    struct sgp_node *node = restored(false);
    greet(node, 12, 5);
    cr_assert(eq(dbl, status_of(node).weight_debts, 0.25), "somebody may know");
    struct sgp_message none = {.type = SGP_ANSWER, .answer = {.incarnation = 12}};
    for (int i = 0; i < 10 && status_of(node).weight_debts > 0; i++) {
        struct sgp_event answer = {
            .type = SGP_EVENT_ANSWER, .now = sgp_node_deadline(node), .message = &none};
        sgp_node_step(node, &answer, &effects);
    }
    cr_assert(eq(dbl, status_of(node).weight, 1));
    sgp_node_destroy(node);
}

Test(record, a_clean_restart_goes_on_in_its_round_and_does_not_give_twice)
{
    struct sgp_node *node = restored(false);
    greet(node, 11, 5);
    cr_assert(eq(int, (int)status_of(node).state, SGP_NODE_TRAINING));
    cr_assert(find(SGP_EFFECT_NOTE) != NULL);
    cr_assert(find(SGP_EFFECT_PUBLISH) == NULL);
    cr_assert(eq(i64, status_of(node).round, 10)); /* gave in 9, and nobody has promised anything */
    sgp_node_destroy(node);
}

Test(record, a_node_that_seeks_asks_a_source_and_adopts)
{
    struct sgp_node *node = restored(true);
    cr_assert(find(SGP_EFFECT_SCALE) != NULL); /* its guess, at weight 1 */
    cr_assert(eq(dbl, find(SGP_EFFECT_SCALE)->scale.factor, 0.75));
    greet(node, 11, 5);
    cr_assert(eq(int, (int)status_of(node).state, SGP_NODE_JOINING));
    cr_assert(status_of(node).seeks);
    cr_assert(eq(int, (int)status_of(node).waiting, SGP_WAITING_ESTIMATE));

    greet_in(node, 20);
    bool asked = false;
    for (uint32_t i = 0; i < effects.count; i++)
        asked = asked || (effects.items[i].type == SGP_EFFECT_SEND &&
                             effects.items[i].send.message.type == SGP_ASK &&
                             effects.items[i].send.message.ask.wants);
    cr_assert(asked);

    struct sgp_message estimate = {.type = SGP_ESTIMATE,
        .pulse = pulse_at(20),
        .estimate = {.round = 20, .weight = 1.5, .payload_bytes = 16}};
    post(node, SGP_EVENT_MESSAGE, SGP_IN, &estimate);
    cr_assert(find(SGP_EFFECT_RECEIVE) != NULL);
    uint32_t slot = find(SGP_EFFECT_RECEIVE)->receive.slot;
    post(node, SGP_EVENT_PAYLOAD, SGP_IN, NULL);
    cr_assert(find(SGP_EFFECT_ADOPT) != NULL);
    cr_assert(eq(u32, find(SGP_EFFECT_ADOPT)->adopt.candidates[0].slot, slot));
    cr_assert(eq(dbl, find(SGP_EFFECT_ADOPT)->adopt.weight, 0.75));
    cr_assert(eq(int, (int)status_of(node).state, SGP_NODE_TRAINING));
    cr_assert(eq(i64, status_of(node).round, 20));
    cr_assert(eq(dbl, status_of(node).weight, 0.75));
    sgp_node_destroy(node);
}

static void take_estimate(struct sgp_node *node, sgp_round label, bool untrained)
{
    struct sgp_message estimate = {.type = SGP_ESTIMATE,
        .pulse = pulse_at(20),
        .estimate = {.round = label, .weight = 1, .payload_bytes = 16, .untrained = untrained}};
    greet(node, 11, 5);
    greet_in(node, 20);
    post(node, SGP_EVENT_MESSAGE, SGP_IN, &estimate);
    post(node, SGP_EVENT_PAYLOAD, SGP_IN, NULL);
    cr_assert(eq(i64, status_of(node).round, 20));
    cr_assert(eq(int, status_of(node).state, SGP_NODE_TRAINING));
}

/* A source that lost its own model says so. A source that has just begun need not say it. */
Test(record, an_estimate_without_training_does_not_make_a_node_trained)
{
    static const struct {
        sgp_round label;
        bool untrained;
    } cases[] = {{0, false}, {20, true}, {20, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sgp_node *node = restored(true);
        cr_assert(status_of(node).fresh);
        take_estimate(node, cases[i].label, cases[i].untrained);
        cr_assert_not_null(find(SGP_EFFECT_ADOPT));
        cr_assert(eq(int, status_of(node).fresh, i < 2));
        post(node, SGP_EVENT_TRAINED, 0, NULL);
        cr_assert_not(status_of(node).fresh);
        sgp_node_destroy(node);
    }
}

/* It has a checkpoint. Its source had none. */
Test(record, a_node_that_has_trained_knows_that_what_it_adopts_is_untrained)
{
    struct sgp_record_link links[2];
    const struct sgp_record record = owing(links);
    struct sgp_node_config config = config_of(&record, true);
    struct sgp_node *node;
    config.fresh = false;
    cr_assert(zero(int, sgp_node_create(&config, &node)));
    sgp_node_step(node, &(struct sgp_event){.type = SGP_EVENT_START}, &effects);
    cr_assert_not(status_of(node).fresh);
    take_estimate(node, 20, true);
    cr_assert(status_of(node).fresh);
    sgp_node_destroy(node);
}

Test(record, an_estimate_that_nobody_asked_for_ends_the_connection)
{
    struct sgp_node *node = restored(false);
    struct sgp_message estimate = {.type = SGP_ESTIMATE,
        .pulse = pulse_at(9),
        .estimate = {.round = 9, .weight = 1, .payload_bytes = 16}};
    greet_in(node, 9);
    post(node, SGP_EVENT_MESSAGE, SGP_IN, &estimate);
    cr_assert(find(SGP_EFFECT_HANG_UP) != NULL);
    cr_assert(find(SGP_EFFECT_RECEIVE) == NULL);
    sgp_node_destroy(node);
}

Test(record, what_is_out_of_range_is_no_record)
{
    struct sgp_record_link links[2];
    struct sgp_record record = owing(links);
    cr_assert(sgp_record_is_sound(&record, 2));
    struct sgp_node_config config = config_of(&record, false);
    struct sgp_node *node;
#define BAD(change)                                                                                \
    do {                                                                                           \
        record = owing(links);                                                                     \
        change;                                                                                    \
        cr_assert(not(sgp_record_is_sound(&record, 2)), #change);                                  \
        cr_assert(eq(int, sgp_node_create(&config, &node), -EINVAL), #change);                     \
    } while (0)
    BAD(record.weight = NAN);
    BAD(record.weight = -1);
    BAD(record.weight = SGP_NODES_MAX * 4.0 + 0.5);
    BAD(record.surplus = SGP_NODES_MAX + 0.5);
    BAD(record.round = -1);
    BAD(record.round = SGP_ROUND_MAX);
    BAD(links[0].peer = 2);
    BAD(links[0].owed_weight = INFINITY);
    BAD(links[0].owed_fraction = 1.5);
    BAD(links[0].owed_round = -2);
    BAD(links[0].number = 0);
    BAD(links[1].owes = true);
    BAD(links[1].owed_weight = 1);
    BAD(links[1].out = true);
#undef BAD
}
