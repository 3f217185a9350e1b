/* SPDX-License-Identifier: Apache-2.0 */
/* Greetings by hand: who is refused and why, what only warns, and whose word on the end counts. */
#include "core_desk.h"

Test(greeting, another_model_is_refused_by_name)
{
    const enum sgp_reason reasons[] = {
        SGP_REASON_SHAPE, SGP_REASON_LOSS, SGP_REASON_CLASSES, SGP_REASON_SCALING};
    for (size_t i = 0; i < 4; i++) {
        struct desk desk;
        struct sgp_topology *topology = pair();
        struct sgp_node_config config = config_of(topology);
        uint64_t *fields[] = {&config.fingerprint.shape, &config.fingerprint.loss,
            &config.fingerprint.classes, &config.fingerprint.scaling};
        *fields[i] ^= 1;
        open_desk(&desk, topology, config);
        post_type(&desk, SGP_EVENT_START);
        greet_in(&desk, 1, pulse_at(0, 0), 88);
        const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
        cr_assert_not_null(end);
        cr_assert(eq(int, end->hang_up.message.goodbye.reason, reasons[i]));
        cr_assert_null(find(&desk, SGP_EFFECT_TRAIN));
        close_desk(&desk);
    }
}

static void prove(struct desk *desk, sgp_round ends, sgp_round stop)
{
    struct sgp_message message = {.type = SGP_BEAT, .pulse = pulse_at(0, SGP_ROUND_NONE)};
    message.pulse.ends = ends;
    message.pulse.stop = stop;
    post(desk, (struct sgp_event){.type = SGP_EVENT_PROVEN, .message = &message});
}

Test(greeting, where_words_on_the_end_are_signed_a_mere_word_proves_nothing)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    topology->tls = SGP_TLS_REQUIRE;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    struct sgp_pulse other = pulse_at(7, SGP_ROUND_NONE);
    other.ends = 300;
    other.stop = 5;
    greet_out(&desk, 1, other, 88, 0);
    const struct sgp_effect *up = find_note(&desk, SGP_NOTE_UP);
    cr_assert_not_null(up);
    cr_assert(eq(i64, status_of(&desk).rounds, 100));
    post_type(
        &desk, SGP_EVENT_ENOUGH); /* its own is not enough either, but is told, to be signed */
    const struct sgp_effect *asks = find_note(&desk, SGP_NOTE_ENOUGH);
    cr_assert_not_null(asks);
    cr_assert(gt(i64, asks->note.until, 0));
    post_type(&desk, SGP_EVENT_ENOUGH);
    cr_assert_null(find_note(&desk, SGP_NOTE_ENOUGH), "it has asked already");
    cr_assert(eq(i64, status_of(&desk).rounds, 100));
    cr_assert(eq(i64, sgp_node_own_end(desk.node), 100));
    prove(&desk, 300, SGP_ROUND_NONE);
    cr_assert(eq(i64, status_of(&desk).rounds, 300));
    prove(&desk, 0, 50);
    cr_assert(eq(i64, status_of(&desk).rounds, 50));
    prove(&desk, (sgp_round)1 << 40, SGP_ROUND_NONE); /* beyond all measure, and the stop stays */
    cr_assert(eq(i64, status_of(&desk).rounds, 50));
    close_desk(&desk);
}

Test(greeting, of_the_end_only_those_are_believed_who_have_greeted)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    struct sgp_pulse other =
        pulse_at(7, SGP_ROUND_NONE); /* of another fleet, which stopped early */
    other.state = SGP_NODE_FINISHED;
    other.ends = 300;
    other.stop = 5;
    desk.peers.shape ^= 1;
    greet_in(&desk, 1, other, 88);
    cr_assert(
        eq(int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.message.goodbye.reason, SGP_REASON_SHAPE));
    cr_assert(eq(i64, status_of(&desk).rounds, 100));
    greet_out(&desk, 1, other, 88, 0);
    cr_assert(eq(i64, status_of(&desk).rounds, 100));
    come_up(&desk, 1, SGP_OUT);
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = other,
            .goodbye = {.reason = SGP_REASON_SHAPE, .text = "another shape"}});
    cr_assert(eq(i64, status_of(&desk).rounds, 100));
    desk.peers.shape ^= 1;
    greet_in(&desk, 1, other, 88);
    cr_assert(eq(i64, status_of(&desk).rounds, 5));
    close_desk(&desk);
}

Test(greeting, another_algorithm_is_refused)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find("osgp");
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert_not_null(end);
    cr_assert(eq(int, end->hang_up.message.goodbye.reason, SGP_REASON_METHOD));
    close_desk(&desk);
}

Test(greeting, another_learning_rate_only_warns)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.fingerprint.learning_rate = 0.2;
    config.fingerprint.topology ^= 1;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_MISMATCH));
    cr_assert_not_null(find_sent(&desk, SGP_WELCOME, 1));
    close_desk(&desk);
}

static bool mismatch_of(const struct desk *desk, uint32_t index)
{
    struct sgp_peer_status status;
    sgp_node_link_status(desk->node, index, &status);
    return status.mismatch;
}

/* Both cut their part out of a file, and it is not the same file. 0 is not said, or nothing is cut. */
Test(greeting, parts_of_other_data_warn_once)
{
    const struct {
        uint64_t own, peers;
        bool told;
    } cases[] = {{7, 8, true}, {7, 7, false}, {7, 0, false}, {0, 8, false}};
    for (size_t i = 0; i < 4; i++) {
        struct desk desk;
        struct sgp_topology *topology = pair();
        struct sgp_node_config config = config_of(topology);
        config.fingerprint.data = cases[i].own;
        open_desk(&desk, topology, config);
        desk.peers.data = cases[i].peers;
        post_type(&desk, SGP_EVENT_START);
        greet_in(&desk, 1, pulse_at(0, 0), 88);
        const struct sgp_effect *note = find_note(&desk, SGP_NOTE_OTHER_DATA);
        cr_assert(eq(int, note != NULL, cases[i].told), "case %zu", i);
        cr_assert_not_null(find_sent(&desk, SGP_WELCOME, 1));
        cr_assert_null(find_note(&desk, SGP_NOTE_MISMATCH));
        cr_assert(eq(int, mismatch_of(&desk, 1), cases[i].told));
        post(&desk,
            (struct sgp_event){
                .type = SGP_EVENT_DOWN, .link = link_to(&desk, 1, SGP_IN), .code = SGP_E_CLOSED});
        greet_in(&desk, 1, pulse_at(0, 0), 88);
        cr_assert_null(find_note(&desk, SGP_NOTE_OTHER_DATA), "said once");
        cr_assert(eq(int, mismatch_of(&desk, 1), cases[i].told));
        close_desk(&desk);
    }
}

/* By whole multiples; fewer rounds than 1024 count as 1024. */
Test(greeting, one_that_trains_64_times_as_long_is_refused_when_it_greets)
{
    for (int most = 0; most < 2; most++) {
        struct desk desk;
        struct sgp_topology *topology = pair();
        open_desk(&desk, topology, config_of(topology));
        post_type(&desk, SGP_EVENT_START);
        struct sgp_pulse pulse = pulse_at(0, 0);
        pulse.ends = 64 * 1025 - most;
        greet_in(&desk, 1, pulse, 88);
        const struct sgp_effect *refused = find_note(&desk, SGP_NOTE_REFUSED);
        cr_assert(eq(int, refused != NULL, !most));
        cr_assert(eq(int, find_sent(&desk, SGP_WELCOME, 1) != NULL, most));
        if (refused != NULL) {
            cr_assert(eq(int, refused->note.reason, SGP_REASON_ROUNDS));
            cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.message.goodbye.reason,
                SGP_REASON_ROUNDS));
        }
        close_desk(&desk);
    }
}
