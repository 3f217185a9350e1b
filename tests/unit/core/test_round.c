/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds by hand: alone, diverging, at their own pace, stopped early, and the end. */
#include "core_desk.h"

Test(round, a_node_alone_trains_and_finishes)
{
    struct sgp_topology_node name = {.name = "n0"};
    struct sgp_topology *topology;
    cr_assert(eq(int, sgp_topology_create(&name, 1, NULL, &topology), 0));
    cr_assert(eq(int, sgp_topology_add_phase(topology, "alone", 1, false, NULL, 0, NULL), 0));
    cr_assert(eq(int, sgp_topology_seal(topology, NULL), 0));
    struct sgp_node_config config = config_of(topology);
    config.rounds = 3;
    struct desk desk;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    uint32_t trained = 0;
    for (int i = 0; i < 20 && status_of(&desk).state != SGP_NODE_FINISHED; i++) {
        bool train = find(&desk, SGP_EFFECT_TRAIN) != NULL;
        trained += train;
        post_type(&desk, train ? SGP_EVENT_TRAINED : SGP_EVENT_TICK);
    }
    cr_assert(eq(u32, trained, 3));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    cr_assert(eq(i64, status_of(&desk).round, 3), "it has nobody to mix with");
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

/* Alone, so that rounds need nobody: two that train with an outer step after both, one that only exchanges without. */
static struct sgp_topology *alone_with_outer(bool relay)
{
    struct sgp_topology_node names[] = {{.name = "n0", .relay = relay}, {.name = "n1"}};
    const struct sgp_phase_options steps = {.name = "steps", .rounds = 2, .outer = true},
                                   rests = {.name = "rests", .rounds = 1, .exchanges = true};
    struct sgp_topology *topology;
    cr_assert(zero(int, sgp_topology_create(names, relay ? 2 : 1, NULL, &topology)));
    cr_assert(zero(int, sgp_topology_add(topology, &steps, NULL, 0, NULL)));
    cr_assert(zero(int, sgp_topology_add(topology, &rests, NULL, 0, NULL)));
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    return topology;
}

/* The rounds after which n0 takes one, until it has finished. */
static uint32_t rounds_with_outer(bool relay, sgp_round rounds[8])
{
    struct desk desk;
    struct sgp_topology *topology = alone_with_outer(relay);
    struct sgp_node_config config = config_of(topology);
    uint32_t count = 0;
    config.rounds = 4;
    config.final_cycles = 2;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    for (int i = 0; i < 40 && status_of(&desk).state != SGP_NODE_FINISHED; i++) {
        const struct sgp_effect *outer = find(&desk, SGP_EFFECT_OUTER);
        if (outer != NULL) {
            cr_assert(eq(dbl, outer->weight, 1));
            rounds[count++] = outer->round;
        }
        bool train = find(&desk, SGP_EFFECT_TRAIN) != NULL;
        post_type(&desk, train ? SGP_EVENT_TRAINED : SGP_EVENT_TICK);
    }
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    close_desk(&desk);
    return count;
}

Test(round, an_outer_step_follows_the_digraph_that_asks_for_it_as_long_as_steps_are_taken)
{
    sgp_round rounds[8];
    cr_assert(eq(u32, rounds_with_outer(false, rounds), 2), "four rounds of training, in twos");
    cr_assert(eq(i64, rounds[0], 1));
    cr_assert(eq(i64, rounds[1], 4));
    cr_assert(zero(u32, rounds_with_outer(true, rounds)), "a relay took none of the steps before");
}

/* Two digraphs, of which the second only exchanges. */
static struct sgp_topology *pair_that_exchanges(void)
{
    static const struct sgp_topology_node names[] = {{.name = "n0"}, {.name = "n1"}};
    static const struct sgp_edge both[] = {
        {0, 1, SGP_FRACTION_DEFAULT}, {1, 0, SGP_FRACTION_DEFAULT}};
    struct sgp_topology *topology;
    cr_assert(zero(int, sgp_topology_create(names, 2, NULL, &topology)));
    for (int exchanges = 0; exchanges < 2; exchanges++)
        cr_assert(zero(
            int, sgp_topology_add(topology,
                     &(struct sgp_phase_options){.name = "p", .rounds = 1, .exchanges = exchanges},
                     both, 2, NULL)));
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    return topology;
}

/* Its neighbour may be in such a round, too, and wait for this node. */
Test(round, at_its_own_pace_a_round_that_only_exchanges_waits_for_mass_as_long_as_steps_take)
{
    struct desk desk;
    struct sgp_topology *topology = pair_that_exchanges();
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find("agp");
    open_desk(&desk, topology, config);
    desk.peers.method = config.method->number;
    greet_pair(&desk);
    desk.now += 40 * SGP_MILLISECOND;
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(i64, status_of(&desk).round, 1));
    cr_assert(eq(i64, sgp_node_deadline(desk.node), desk.now + 40 * SGP_MILLISECOND));
    desk.now += 39 * SGP_MILLISECOND;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert(eq(i64, status_of(&desk).round, 1));
    desk.now += SGP_MILLISECOND;
    for (int i = 0; i < 3; i++)
        post_type(&desk, SGP_EVENT_TICK);
    cr_assert(eq(i64, status_of(&desk).round, 2));
    close_desk(&desk);
}

/* Else it would be through with the rounds of the end, thousands of them, before its late neighbour can come. */
Test(round, at_its_own_pace_the_end_beside_a_late_neighbour_is_not_spun_through)
{
    const sgp_time each = 40 * SGP_MILLISECOND;
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find("agp");
    config.patience = SGP_SECOND;
    config.rounds = 4;
    config.final_cycles = 50;
    open_desk(&desk, topology, config);
    desk.peers.method = config.method->number;
    greet_pair(&desk);
    for (int i = 0; i < 4; i++) {
        desk.now += each;
        post_type(&desk, SGP_EVENT_TRAINED);
    }
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_SETTLING));
    struct sgp_pulse late = pulse_at(0, 4);
    late.computing = true;
    for (sgp_time end = desk.now + 2 * SGP_SECOND; desk.now < end; desk.now += SGP_BEAT_NS) {
        say_pulse(&desk, 1, SGP_IN, late);
        say_pulse(&desk, 1, SGP_OUT, late);
    }
    sgp_round first = status_of(&desk).round;
    for (int i = 0; i < 20; i++)
        post_type(&desk, SGP_EVENT_TICK);
    cr_assert(status_of(&desk).round <= first + 1, "%" PRId64, status_of(&desk).round);
    first = status_of(&desk).round;
    cr_assert(sgp_node_deadline(desk.node) <= desk.now + 10 * SGP_MILLISECOND);
    desk.now += 10 * SGP_MILLISECOND;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert(eq(i64, status_of(&desk).round, first + 1));
    close_desk(&desk);
}

Test(round, divergence_pauses_the_node)
{
    struct desk desk;
    open_pair(&desk);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_TRAINED, .code = SGP_E_DIVERGED});
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DIVERGED));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_PAUSED));
    close_desk(&desk);
}

/* The next 20 rounds of n0 and n1, ten a second; returns the factor of the last steps. */
static double factor_after_rounds(struct desk *desk, sgp_round *peer_round)
{
    double factor = 0;
    for (int i = 0; i < 20; i++) {
        desk->now += 100 * SGP_MILLISECOND;
        ++*peer_round;
        say_pulse(desk, 1, SGP_IN, pulse_at(*peer_round, *peer_round));
        say_pulse(desk, 1, SGP_OUT, pulse_at(*peer_round, SGP_ROUND_NONE));
        post_type(desk, SGP_EVENT_TRAINED);
        const struct sgp_effect *train = find(desk, SGP_EFFECT_TRAIN);
        cr_assert_not_null(train);
        factor = train->train.pace;
    }
    return factor;
}

static void pause_for(struct desk *desk, sgp_round peer_round, bool both)
{
    struct sgp_pulse pulse = pulse_at(peer_round, SGP_ROUND_NONE);
    pulse.state = both ? SGP_NODE_PAUSED : SGP_NODE_TRAINING;
    post_type(desk, SGP_EVENT_PAUSE);
    say_pulse(desk, 1, SGP_IN, pulse);
    desk->now += 2 * SGP_SECOND;
    post_type(desk, SGP_EVENT_RESUME);
}

/* Whoever stood still, alone or with all: the rate is that of training. */
Test(round, a_pause_is_no_slowness)
{
    for (int both = 0; both < 2; both++) {
        struct desk desk;
        struct sgp_topology *topology = pair();
        struct sgp_node_config config = config_of(topology);
        config.method = sgp_method_find("agp");
        config.step_by_rate = true;
        open_desk(&desk, topology, config);
        desk.peers.method = config.method->number;
        greet_pair(&desk);
        sgp_round peer_round = 0;
        cr_assert(epsilon_eq(dbl, factor_after_rounds(&desk, &peer_round), 1, 0.1));
        peer_round += both ? 0 : 20;
        pause_for(&desk, peer_round, both);
        double factor = factor_after_rounds(&desk, &peer_round);
        cr_assert(epsilon_eq(dbl, factor, 1, 0.1), "%d: %g", both, factor);
        close_desk(&desk);
    }
}

Test(round, stopping_waits_for_acknowledgements_but_not_for_ever)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    post_type(&desk, SGP_EVENT_STOP);
    cr_assert_null(find_note(&desk, SGP_NOTE_DRAINED));
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DRAINED));
    cr_assert(eq(
        int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.message.goodbye.reason, SGP_REASON_LEAVING));
    close_desk(&desk);

    open_pair(&desk);
    give_first(&desk);
    post_type(&desk, SGP_EVENT_STOP);
    desk.now += SGP_DRAIN_NS;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DRAINED));
    close_desk(&desk);
}

Test(round, stopping_waits_for_its_own_steps_however_long_they_take)
{
    struct desk desk;
    open_pair(&desk);
    grant(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_STOP);
    desk.now += 2 * SGP_DRAIN_NS;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_null(find_note(&desk, SGP_NOTE_DRAINED));
    cr_assert(
        sgp_node_deadline(desk.node) > desk.now, "there is nothing to do before the job ends");
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DRAINED));
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH), "it gives nothing more");
    close_desk(&desk);
}

Test(round, what_was_published_while_stopping_has_time_to_leave)
{
    struct desk desk;
    open_pair(&desk);
    grant(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    post_type(&desk, SGP_EVENT_STOP);
    for (int half = 0; half < 12;
         half++) { /* a job before it takes twice as long as SGP_DRAIN_NS */
        desk.now += SGP_DRAIN_NS / 6;
        say_pulse(&desk, 1, SGP_OUT, pulse_at(0, SGP_ROUND_NONE));
    }
    post_type(&desk, SGP_EVENT_PUBLISHED);
    cr_assert_not_null(find_sent(&desk, SGP_SHARE, 1));
    cr_assert_null(find_note(&desk, SGP_NOTE_DRAINED));
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DRAINED));
    close_desk(&desk);
}

Test(round, stopping_does_not_wait_for_one_that_has_left)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    post_type(&desk, SGP_EVENT_STOP);
    struct sgp_pulse leaving = pulse_at(0, SGP_ROUND_NONE);
    leaving.state = SGP_NODE_DRAINING;
    say_pulse(&desk, 1, SGP_OUT, leaving);
    cr_assert_null(find_note(&desk, SGP_NOTE_DRAINED), "it is there, and may acknowledge");
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = leaving,
            .goodbye = {.reason = SGP_REASON_LEAVING, .text = ""}});
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DRAINED));
    cr_assert(gt(dbl, status_of(&desk).weight_in_flight, 0), "owed, and on record");
    close_desk(&desk);
}

Test(round, an_early_stop_reaches_everybody)
{
    struct desk desk;
    open_pair(&desk);
    post_type(&desk, SGP_EVENT_ENOUGH);
    desk.now += SGP_BEAT_NS;
    post_type(&desk, SGP_EVENT_TICK);
    const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(beat);
    cr_assert(eq(i64, beat->send.message.pulse.stop, 3), "nodes and one cycle from now");
    cr_assert(eq(i64, status_of(&desk).last_round, 3), "a pair agrees after each exchange");
    close_desk(&desk);
}

/* n1 says on both links that it is through with its rounds too. */
static void say_ended(struct desk *desk)
{
    struct sgp_pulse pulse = pulse_at(status_of(desk).round, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_SETTLING;
    struct sgp_message beat = {.type = SGP_BEAT, .pulse = pulse, .beat = {.ended = true}};
    say(desk, 1, SGP_IN, beat);
    say(desk, 1, SGP_OUT, beat);
}

static void tell_to_stop(struct desk *desk, sgp_round round, sgp_round stop)
{
    struct sgp_pulse pulse = pulse_at(round, round);
    pulse.stop = stop;
    say_pulse(desk, 1, SGP_IN, pulse);
}

Test(round, a_stop_heard_of_too_late_ends_the_round_without_giving)
{
    struct desk desk;
    open_pair_that_mixes(&desk, 0);
    tell_to_stop(&desk, 0, 0);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_TRAINING), "the job is under way");
    post_type(&desk, SGP_EVENT_TRAINED);
    sketch(&desk);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_END));
    say_ended(&desk);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED), "no credit would ever come");
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

Test(round, one_who_is_behind_asks_for_a_stop_that_nobody_has_passed)
{
    struct desk desk;
    open_pair(&desk);
    say_pulse(&desk, 1, SGP_OUT, pulse_at(50, -1));
    post_type(&desk, SGP_EVENT_ENOUGH);
    cr_assert(eq(i64, status_of(&desk).rounds, 53));
    close_desk(&desk);
}

/* n0 is through with its rounds and owes n1 a share, when n1 leaves. */
Test(round, the_end_does_not_wait_for_one_who_left)
{
    struct desk desk;
    open_pair_that_mixes(&desk, 0);
    give_first(&desk);
    tell_to_stop(&desk, 0, 1);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ACK));
    struct sgp_pulse leaving = pulse_at(1, SGP_ROUND_NONE);
    leaving.state = SGP_NODE_DRAINING;
    struct sgp_message goodbye = {.type = SGP_GOODBYE,
        .pulse = leaving,
        .goodbye = {.reason = SGP_REASON_LEAVING, .text = "leaving"}};
    say(&desk, 1, SGP_IN, goodbye);
    say(&desk, 1, SGP_OUT, goodbye);
    sketch(&desk);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.5));
    desk.now += SGP_DIAL_MAX_NS;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find(&desk, SGP_EFFECT_DIAL), "it still owes");
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 99, 0);
    cr_assert_null(find_sent(&desk, SGP_SHARE, 1), "a new incarnation must not get old mass");
    struct sgp_message none = {.type = SGP_ANSWER, .answer = {.incarnation = 99}};
    for (int i = 0; i < 5; i++) {
        post(&desk, (struct sgp_event){.type = SGP_EVENT_ANSWER, .message = &none});
        desk.now += SGP_SECOND;
        post_type(&desk, SGP_EVENT_TICK);
    }
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5), "nobody knows of it");
    close_desk(&desk);
}
