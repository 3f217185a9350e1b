/* SPDX-License-Identifier: Apache-2.0 */
/* Links by hand: greeting, refusing, replacing, and what silence means. */
#include "test_core_desk.h"

/* Of a connection that stands, however loudly others greet in its name. */
static void assert_stands(struct desk *desk, uint64_t connection)
{
    for (uint32_t i = 0; i < desk->effects.count; i++)
        if (desk->items[i].type == SGP_EFFECT_HANG_UP && desk->items[i].hang_up.link.peer == 1)
            cr_assert(ne(u64, desk->items[i].hang_up.link.connection, connection));
}

/* The hang-up of a connection in this step, or NULL. */
static const struct sgp_effect *find_end(const struct desk *desk, uint64_t connection)
{
    for (uint32_t i = 0; i < desk->effects.count; i++)
        if (desk->items[i].type == SGP_EFFECT_HANG_UP &&
            desk->items[i].hang_up.link.connection == connection)
            return &desk->items[i];
    return NULL;
}

static void beat_in(struct desk *desk, uint64_t connection)
{
    struct sgp_message beat = {.type = SGP_BEAT, .pulse = pulse_at(0, 1)};
    post(desk, (struct sgp_event){
                   .type = SGP_EVENT_MESSAGE, .link = {1, SGP_IN, connection}, .message = &beat});
}

Test(link, a_new_connection_is_pending_until_the_old_one_is_silent)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1)); /* half read ... */
    uint64_t old = desk.link_of[1][SGP_IN];
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    assert_stands(&desk, old);
    cr_assert_null(find_sent(&desk, SGP_WELCOME, 1));
    desk.now += 2 * SGP_BEAT_NS - 1;
    beat_in(&desk, old);
    assert_stands(&desk, old);
    desk.now += 2 * SGP_BEAT_NS - 1;
    post_type(&desk, SGP_EVENT_TICK);
    assert_stands(&desk, old);
    cr_assert(le(i64, sgp_node_deadline(desk.node), desk.now + 1));
    desk.now += 1;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert(eq(int, find_end(&desk, old)->hang_up.code, SGP_E_REPLACED));
    const struct sgp_effect *welcome = find_sent(&desk, SGP_WELCOME, 1);
    cr_assert_not_null(welcome);
    cr_assert(eq(u64, welcome->send.link.connection, desk.link_of[1][SGP_IN]));
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PAYLOAD, .link = {1, SGP_IN, old}});
    cr_assert(eq(dbl, status_of(&desk).weight, 1), "events of the old connection are ignored");
    close_desk(&desk);
}

Test(link, a_new_connection_beside_one_that_speaks_is_refused_in_time)
{
    struct desk desk;
    open_pair(&desk);
    uint64_t old = desk.link_of[1][SGP_IN];
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    uint64_t new = desk.link_of[1][SGP_IN];
    for (sgp_time end = desk.now + SGP_SILENCE_MIN_NS; desk.now < end;) {
        cr_assert_null(find_end(&desk, new));
        desk.now += SGP_BEAT_NS;
        beat_in(&desk, old);
        assert_stands(&desk, old);
    }
    cr_assert(eq(int, find_end(&desk, new)->hang_up.reason, SGP_REASON_REPLACED));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_TURNED_AWAY));
    close_desk(&desk);
}

Test(link, another_incarnation_gets_in_only_when_the_old_connection_has_ended)
{
    struct desk desk;
    open_pair(&desk);
    uint64_t old = desk.link_of[1][SGP_IN];
    desk.now += SGP_SILENCE_MIN_NS - 1; /* silent, and not yet absent */
    greet_in(&desk, 1, pulse_at(0, 0), 89);
    assert_stands(&desk, old);
    desk.now += 1;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert(eq(int, find_end(&desk, old)->hang_up.reason, SGP_REASON_ABSENT));
    cr_assert_not_null(find_sent(&desk, SGP_WELCOME, 1));
    close_desk(&desk);

    open_pair(&desk);
    old = desk.link_of[1][SGP_IN];
    greet_in(&desk, 1, pulse_at(0, 0), 89);
    cr_assert_null(find_sent(&desk, SGP_WELCOME, 1));
    post(&desk, (struct sgp_event){.type = SGP_EVENT_DOWN, .link = {1, SGP_IN, old}, .code = -1});
    cr_assert_not_null(find_sent(&desk, SGP_WELCOME, 1));
    close_desk(&desk);
}

Test(link, a_greeting_with_any_fault_touches_no_connection_that_stands)
{
    for (int fault = 0; fault < 8; fault++) {
        struct desk desk;
        open_pair(&desk);
        uint64_t old = desk.link_of[1][SGP_IN];
        desk.now += 2 * SGP_BEAT_NS;
        struct sgp_message hello = {.type = SGP_HELLO,
            .pulse = pulse_at(0, 0),
            .hello = {.source = "n1",
                .target = fault == 0 ? "n2" : "n0",
                .incarnation = 88,
                .parameters = PARAMETERS + (fault == 1),
                .fingerprint = prints}};
        uint64_t *const fields[] = {&hello.hello.fingerprint.shape, &hello.hello.fingerprint.loss,
            &hello.hello.fingerprint.classes, &hello.hello.fingerprint.scaling};
        if (fault >= 2 && fault < 6)
            *fields[fault - 2] ^= 1;
        hello.pulse.ends = fault == 6 ? (sgp_round)1 << 47 : hello.pulse.ends;
        hello.pulse.round = fault == 7 ? (sgp_round)1 << 47 : hello.pulse.round;
        come_up(&desk, 1, SGP_IN);
        cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
        say(&desk, 1, SGP_IN, hello);
        assert_stands(&desk, old);
        const struct sgp_effect *end = find_end(&desk, desk.link_of[1][SGP_IN]);
        cr_assert_not_null(end);
        cr_assert(ne(int, end->hang_up.reason, SGP_REASON_REPLACED));
        beat_in(&desk, old);
        cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP), "fault %d", fault);
        close_desk(&desk);
    }
}

/* One at a time: the last, but not a stranger in the place of one that is known. */
Test(link, no_more_than_one_is_pending)
{
    struct desk desk;
    open_pair(&desk);
    uint64_t old = desk.link_of[1][SGP_IN], pending[4];
    const uint64_t incarnations[] = {100, 101, 88, 102};
    for (int i = 0; i < 4; i++) {
        greet_in(&desk, 1, pulse_at(0, 0), incarnations[i]);
        pending[i] = desk.link_of[1][SGP_IN];
        assert_stands(&desk, old);
        cr_assert(eq(int,
            find_end(&desk, i == 3   ? pending[3]
                            : i == 0 ? 0
                                     : pending[i - 1]) != NULL,
            i > 0));
    }
    desk.now += 2 * SGP_BEAT_NS;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_end(&desk, old));
    cr_assert(eq(u64, find_sent(&desk, SGP_WELCOME, 1)->send.link.connection, pending[2]));
    close_desk(&desk);
}

/* It goes, or says what it may not: nobody misses it. */
Test(link, a_pending_one_may_go)
{
    for (int i = 0; i < 3; i++) {
        struct desk desk;
        open_pair(&desk);
        uint64_t old = desk.link_of[1][SGP_IN];
        greet_in(&desk, 1, pulse_at(0, 0), 88);
        if (i == 0)
            lose(&desk, 1, SGP_IN);
        else
            say(&desk, 1, SGP_IN,
                (struct sgp_message){.type = i == 1 ? SGP_BEAT : SGP_GOODBYE,
                    .pulse = pulse_at(0, 0),
                    .goodbye = {.reason = SGP_REASON_LEAVING, .text = ""}});
        cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP) != NULL, i > 0));
        assert_stands(&desk, old);
        desk.now += 2 * SGP_BEAT_NS;
        post_type(&desk, SGP_EVENT_TICK);
        assert_stands(&desk, old);
        cr_assert_null(find_sent(&desk, SGP_WELCOME, 1));
        close_desk(&desk);
    }
}

/* Another process of our name: taking turns in replacing each other at full pace helps nobody. */
Test(link, one_who_was_replaced_dials_again_slowly)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = pulse_at(0, SGP_ROUND_NONE),
            .goodbye = {.reason = SGP_REASON_REPLACED, .text = "replaced"}});
    desk.now += SGP_DIAL_MAX_NS / 2 - 1;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_null(find(&desk, SGP_EFFECT_DIAL));
    desk.now += SGP_DIAL_MAX_NS / 2 + 1;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find(&desk, SGP_EFFECT_DIAL));
    close_desk(&desk);
}

static void say_goodbye(struct desk *desk, enum sgp_reason reason)
{
    say(desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = pulse_at(0, SGP_ROUND_NONE),
            .goodbye = {.reason = reason, .text = "goodbye"}});
}

Test(link, one_that_stops_may_be_back_at_once_and_is_dialled_soon)
{
    struct desk desk;
    open_pair(&desk);
    say_goodbye(&desk, SGP_REASON_LEAVING);
    desk.now += SGP_DIAL_MIN_NS;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find(&desk, SGP_EFFECT_DIAL));
    close_desk(&desk);
}

Test(link, one_who_greets_us_is_there_to_be_dialled)
{
    struct desk desk;
    open_pair(&desk);
    say_goodbye(&desk, SGP_REASON_REPLACED); /* dialled again slowly, but for the greeting */
    desk.now += SGP_DIAL_MIN_NS;
    post(&desk,
        (struct sgp_event){
            .type = SGP_EVENT_DOWN, .link = link_to(&desk, 1, SGP_IN), .code = SGP_E_CLOSED});
    cr_assert_null(find(&desk, SGP_EFFECT_DIAL));
    greet_in(&desk, 1, pulse_at(0, 0), 77);
    cr_assert_not_null(find(&desk, SGP_EFFECT_DIAL));
    post(&desk, (struct sgp_event){.type = SGP_EVENT_DOWN,
                    .link = {.peer = 1, .direction = SGP_OUT},
                    .code = SGP_E_CLOSED});
    post(&desk,
        (struct sgp_event){
            .type = SGP_EVENT_DOWN, .link = link_to(&desk, 1, SGP_IN), .code = SGP_E_CLOSED});
    greet_in(&desk, 1, pulse_at(0, 0), 77);
    cr_assert_null(
        find(&desk, SGP_EFFECT_DIAL), "however often it greets, not more often than at first");
    close_desk(&desk);
}

Test(link, a_target_that_refuses_us_is_not_waited_for)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.start = 1;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN));
    come_up(&desk, 1, SGP_OUT);
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = pulse_at(0, SGP_ROUND_NONE),
            .goodbye = {.reason = SGP_REASON_LOSS, .text = "another loss"}});
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(i64, status_of(&desk).round, 1), "the round must end without the other");
    close_desk(&desk);
}

Test(link, another_model_is_refused_by_name)
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

Test(link, where_words_on_the_end_are_signed_a_mere_word_proves_nothing)
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

Test(link, of_the_end_only_those_are_believed_who_have_greeted)
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

Test(link, another_algorithm_is_refused)
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

Test(link, another_learning_rate_only_warns)
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
Test(link, parts_of_other_data_warn_once)
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
Test(link, one_that_trains_64_times_as_long_is_refused_when_it_greets)
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

/* They travel on connections of their own, which begin with no greeting. */
Test(link, messages_of_other_connections_end_the_connection_of_an_edge)
{
    static const enum sgp_message_type types[] = {SGP_INQUIRE, SGP_CALL, SGP_BULLETIN, SGP_PULL};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct desk desk;
        open_pair(&desk);
        say(&desk, 1, SGP_IN, (struct sgp_message){.type = types[i], .pulse = pulse_at(0, 0)});
        const struct sgp_effect *ended = find(&desk, SGP_EFFECT_HANG_UP);
        cr_assert_not_null(ended);
        cr_assert(eq(int, ended->hang_up.code, SGP_E_PROTOCOL));
        cr_assert(eq(int, (int)ended->hang_up.message.goodbye.reason, SGP_REASON_PROTOCOL));
        close_desk(&desk);
    }
}

Test(link, messages_that_cannot_come_now_end_the_connection)
{
    struct desk desk;
    open_pair(&desk);
    acknowledge(&desk, 1, 7, SGP_REASON_NONE);
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.code, SGP_E_PROTOCOL));
    say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_CREDIT, .pulse = pulse_at(0, 0)});
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.code, SGP_E_PROTOCOL));
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    struct sgp_pulse absurd = pulse_at(0, 0);
    absurd.ends = SGP_ROUND_MAX - 1;
    say_pulse(&desk, 1, SGP_IN, absurd);
    cr_assert(eq(
        int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.message.goodbye.reason, SGP_REASON_ROUNDS));
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    absurd = pulse_at(-1, 0);
    say_pulse(&desk, 1, SGP_IN, absurd);
    cr_assert(
        eq(int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.message.goodbye.reason, SGP_REASON_RANGE));
    close_desk(&desk);
}

/* Nobody speaks: step from deadline to deadline, count beats, see when the peer is given up. */
static sgp_time wait_until_absent(struct desk *desk, uint32_t *ret_beats)
{
    sgp_time from = desk->now;
    *ret_beats = 0;
    for (int i = 0; i < 1000; i++) {
        desk->now = sgp_node_deadline(desk->node);
        post_type(desk, SGP_EVENT_TICK);
        *ret_beats += find_sent(desk, SGP_BEAT, 1) != NULL;
        if (find_note(desk, SGP_NOTE_ABSENT) != NULL)
            return desk->now - from;
    }
    return -1;
}

Test(link, silence_becomes_absence_at_the_least_bound)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    uint32_t beats;
    cr_assert(eq(i64, wait_until_absent(&desk, &beats), 3 * SGP_SECOND));
    cr_assert(eq(u32, beats, 5), "one every half second, and none to the absent");
    const struct sgp_node_status status = status_of(&desk);
    cr_assert(eq(i64, status.round, 1), "the round goes on without it");
    cr_assert(eq(dbl, status.weight + status.weight_in_flight, 1));
    close_desk(&desk);
}

Test(link, silence_is_judged_by_the_peers_own_pace)
{
    const sgp_time interval[] = {SGP_SECOND / 10, SGP_SECOND, 2 * SGP_SECOND, 10 * SGP_SECOND};
    const sgp_time bound[] = {3 * SGP_SECOND, 8 * SGP_SECOND, 16 * SGP_SECOND, 30 * SGP_SECOND};
    for (size_t i = 0; i < 3; i++) {
        struct desk desk;
        open_pair(&desk);
        give_first(&desk);
        for (int n = 0; n < 80; n++) {
            desk.now += interval[i];
            say_pulse(&desk, 1, SGP_IN, pulse_at(0, 0));
            say_pulse(&desk, 1, SGP_OUT, pulse_at(0, SGP_ROUND_NONE));
        }
        uint32_t beats;
        cr_assert(eq(i64, wait_until_absent(&desk, &beats), bound[i]), "case %zu", i);
        close_desk(&desk);
    }
}

Test(link, the_nodes_own_standstill_is_not_the_pace_of_its_peers)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    for (int n = 0; n < 80; n++) {
        desk.now += n == 70 ? 30 * SGP_SECOND : SGP_SECOND / 10;
        say_pulse(&desk, 1, SGP_IN, pulse_at(0, 0));
        say_pulse(&desk, 1, SGP_OUT, pulse_at(0, SGP_ROUND_NONE));
    }
    uint32_t beats;
    cr_assert(eq(i64, wait_until_absent(&desk, &beats), 3 * SGP_SECOND));
    close_desk(&desk);
}

Test(link, one_that_beats_is_waited_for)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    for (int n = 0; n < 600; n++) {
        desk.now += SGP_BEAT_NS;
        say_pulse(&desk, 1, SGP_IN, pulse_at(0, 0));
    }
    cr_assert(eq(i64, status_of(&desk).round, 0));
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_SHARE));
    close_desk(&desk);
}

/* A half-open link to a node that drained, and whose next process has never heard of it. */
/* Its end of the connection may be dead: only this node can dial it again. */
Test(link, the_silence_of_one_that_rests_is_missed_and_its_link_dialled_anew)
{
    const enum sgp_node_state states[] = {SGP_NODE_PAUSED, SGP_NODE_FINISHED, SGP_NODE_DRAINING};
    for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
        struct desk desk;
        open_pair(&desk);
        struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE);
        rests.state = states[k];
        say_pulse(&desk, 1, SGP_OUT, rests);
        desk.now += SGP_SILENCE_MIN_NS;
        post_type(&desk, SGP_EVENT_TICK);
        const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
        cr_assert_not_null(end, "state %d", (int)states[k]);
        cr_assert(eq(int, end->hang_up.code, SGP_E_ABSENT));
        bool dialled = false;
        for (int i = 0; i < 100 && !dialled; i++) {
            desk.now = sgp_node_deadline(desk.node);
            post_type(&desk, SGP_EVENT_TICK);
            dialled = find(&desk, SGP_EFFECT_DIAL) != NULL;
        }
        cr_assert(dialled);
        close_desk(&desk);
    }
}

Test(link, a_paused_or_finished_peer_is_not_waited_for)
{
    const enum sgp_node_state states[] = {SGP_NODE_PAUSED, SGP_NODE_FINISHED, SGP_NODE_DRAINING};
    for (size_t i = 0; i < 3; i++) {
        struct desk desk;
        open_pair(&desk);
        give_first(&desk);
        struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
        pulse.state = states[i];
        say_pulse(&desk, 1, SGP_IN, pulse);
        cr_assert(eq(i64, status_of(&desk).round, 1));
        close_desk(&desk);
    }
}

Test(link, a_paused_node_says_so_and_falls_quiet)
{
    struct desk desk;
    open_pair(&desk);
    post_type(&desk, SGP_EVENT_PAUSE);
    const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(beat);
    cr_assert(eq(int, beat->send.message.pulse.state, SGP_NODE_PAUSED));
    cr_assert(eq(i64, beat->send.message.pulse.next_round, SGP_ROUND_NONE));
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_PAUSED;
    say_pulses(&desk, 1, pulse);
    cr_assert(eq(i64, sgp_node_deadline(desk.node), SGP_TIME_NEVER), "no timer when idle");
    say_pulse(&desk, 1, SGP_OUT, pulse_at(0, SGP_ROUND_NONE));
    post_type(&desk, SGP_EVENT_RESUME);
    cr_assert(eq(i64, find_sent(&desk, SGP_BEAT, 1)->send.message.pulse.next_round, 0));
    close_desk(&desk);
}

/* The other end of a connection may be gone without a word: only a beat that is missed tells. */
Test(link, a_paused_peer_beats_and_is_hung_up_on_when_it_does_not)
{
    struct desk desk;
    open_pair(&desk);
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_PAUSED;
    say_pulse(&desk, 1, SGP_OUT, pulse);
    desk.now += SGP_SILENCE_MIN_NS + SGP_SECOND;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_ABSENT));
    cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP));
    close_desk(&desk);
}

/* Both rest, so nobody beats; then the peer goes on, over the one line that it has. */
Test(link, one_that_takes_part_again_is_expected_on_the_other_line_too)
{
    for (uint32_t both = 0; both < 2; both++) {
        struct desk desk;
        open_pair(&desk);
        struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE), goes_on = pulse_at(0, 0);
        rests.state = SGP_NODE_PAUSED;
        post_type(&desk, SGP_EVENT_PAUSE);
        post_type(&desk, SGP_EVENT_TRAINED);
        say_pulses(&desk, 1, rests);
        cr_assert(eq(i64, sgp_node_deadline(desk.node), SGP_TIME_NEVER));
        desk.now += 100 * SGP_SECOND;
        bool ends = false;
        for (int i = 0; i < 8; i++) {
            say_pulse(&desk, 1, SGP_IN, goes_on);
            if (both)
                say_pulse(&desk, 1, SGP_OUT, rests);
            desk.now += SGP_SECOND / 2;
            post_type(&desk, SGP_EVENT_TICK);
            const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
            ends = ends || (end != NULL && end->hang_up.link.direction == SGP_OUT);
        }
        cr_assert(eq(int, ends, !both));
        close_desk(&desk);
    }
}

/* Both are paused, so no heartbeats are due. */
static void open_pair_at_rest(struct desk *desk)
{
    open_pair(desk);
    post_type(desk, SGP_EVENT_PAUSE);
    post_type(desk, SGP_EVENT_TRAINED);
    struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE);
    rests.state = SGP_NODE_PAUSED;
    say_pulses(desk, 1, rests);
    cr_assert(eq(i64, sgp_node_deadline(desk->node), SGP_TIME_NEVER));
    desk->now += 100 * SGP_SECOND;
}

/* Whether the greeting of another incarnation is accepted. On the old connection heartbeats are answered, or not. */
static bool is_let_in_beside(struct desk *desk, bool answered)
{
    uint64_t old = desk->link_of[1][SGP_IN];
    struct sgp_message rests = {.type = SGP_BEAT, .pulse = pulse_at(0, SGP_ROUND_NONE)};
    rests.pulse.state = SGP_NODE_PAUSED;
    greet_in(desk, 1, pulse_at(0, 0), 89);
    uint64_t new = desk->link_of[1][SGP_IN];
    for (int i = 0; i < 100; i++) {
        const struct sgp_effect *asked = find_sent(desk, SGP_BEAT, 1);
        const struct sgp_effect *welcome = find_sent(desk, SGP_WELCOME, 1);
        if (welcome != NULL)
            cr_assert(eq(u64, welcome->send.link.connection, new));
        if (welcome != NULL || find_end(desk, new) != NULL)
            return welcome != NULL;
        if (asked != NULL && asked->send.link.connection == old && answered) {
            post(desk, (struct sgp_event){
                           .type = SGP_EVENT_MESSAGE, .link = {1, SGP_IN, old}, .message = &rests});
            continue;
        }
        desk->now = sgp_node_deadline(desk->node);
        cr_assert(ne(i64, desk->now, SGP_TIME_NEVER));
        post_type(desk, SGP_EVENT_TICK);
    }
    cr_assert(false, "neither accepted nor refused");
    return false;
}

/* The peer was killed while both rested, and its next process has lost its incarnation. */
Test(link, of_two_that_rest_one_that_greets_anew_gets_in_beside_a_dead_connection)
{
    struct desk desk;
    open_pair_at_rest(&desk);
    uint64_t old = desk.link_of[1][SGP_IN];
    sgp_time from = desk.now;
    cr_assert(is_let_in_beside(&desk, false));
    cr_assert(eq(int, find_end(&desk, old)->hang_up.reason, SGP_REASON_ABSENT));
    cr_assert(lt(i64, desk.now, from + SGP_SILENCE_MIN_NS));
    close_desk(&desk);
}

Test(link, of_two_that_rest_one_that_answers_keeps_its_connection)
{
    struct desk desk;
    open_pair_at_rest(&desk);
    cr_assert(not(is_let_in_beside(&desk, true)));
    close_desk(&desk);
}

/* While both rest no heartbeats are due, so the long silence proves nothing. */
Test(link, a_node_that_is_resumed_judges_a_resting_peer_by_its_answer_alone)
{
    for (uint32_t answers = 0; answers < 2; answers++) {
        struct desk desk;
        open_pair_at_rest(&desk);
        sgp_time from = desk.now;
        struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE);
        rests.state = SGP_NODE_PAUSED;
        post_type(&desk, SGP_EVENT_RESUME);
        cr_assert_null(find_note(&desk, SGP_NOTE_ABSENT));
        cr_assert_not_null(find_sent(&desk, SGP_BEAT, 1));
        cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
        if (answers)
            say_pulses(&desk, 1, rests);
        while (desk.now < from + SGP_SILENCE_MIN_NS - 1) {
            cr_assert_null(find_note(&desk, SGP_NOTE_ABSENT));
            sgp_time due = sgp_node_deadline(desk.node);
            cr_assert(gt(i64, due, desk.now));
            desk.now = due < from + SGP_SILENCE_MIN_NS ? due : from + SGP_SILENCE_MIN_NS - 1;
            post_type(&desk, SGP_EVENT_TICK);
            if (find_note(&desk, SGP_NOTE_ABSENT) != NULL)
                break;
        }
        cr_assert(eq(int, find_note(&desk, SGP_NOTE_ABSENT) != NULL, !answers));
        cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP) != NULL, !answers));
        close_desk(&desk);
    }
}

/* The other end of the same: two heartbeats are answered once, so that two at rest do not keep each other awake, however long an
 * answer is under way. */
Test(link, one_that_rests_answers_the_second_heartbeat_of_another)
{
    struct desk desk;
    open_pair_at_rest(&desk);
    struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE);
    rests.state = SGP_NODE_PAUSED;
    say_pulse(&desk, 1, SGP_OUT, rests);
    cr_assert_null(find_sent(&desk, SGP_BEAT, 1), "it may be an answer");
    desk.now += SGP_BEAT_IDLE_NS;
    say_pulse(&desk, 1, SGP_OUT, rests);
    const struct sgp_effect *answer = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(answer);
    cr_assert(eq(u64, answer->send.link.connection, desk.link_of[1][SGP_OUT]));
    desk.now += 10 * SGP_BEAT_IDLE_NS;
    say_pulse(&desk, 1, SGP_OUT, rests);
    cr_assert_null(find_sent(&desk, SGP_BEAT, 1));
    cr_assert(eq(i64, sgp_node_deadline(desk.node), SGP_TIME_NEVER));
    close_desk(&desk);
}

/* The peer's machine lost its power while both rested, and it greets over the one line that it has. */
Test(link, of_two_that_rest_one_that_greets_anew_is_expected_on_the_other_line_too)
{
    for (uint32_t both = 0; both < 2; both++) {
        struct desk desk;
        open_pair_at_rest(&desk);
        struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE);
        rests.state = SGP_NODE_PAUSED;
        lose(&desk, 1, SGP_IN);
        greet_in(&desk, 1, rests, 88);
        cr_assert_not_null(find_sent(&desk, SGP_WELCOME, 1));
        uint64_t line = desk.link_of[1][SGP_OUT];
        if (both)
            say_pulse(&desk, 1, SGP_OUT, rests);
        for (int i = 0; i < 100 && sgp_node_deadline(desk.node) != SGP_TIME_NEVER; i++) {
            desk.now = sgp_node_deadline(desk.node);
            post_type(&desk, SGP_EVENT_TICK);
            if (find_end(&desk, line) != NULL)
                break;
        }
        cr_assert(eq(int, find_end(&desk, line) != NULL, !both));
        close_desk(&desk);
    }
}
