/* The node by hand: one real core, its peers played by the test, every rule of a link's life. */
#include "test_core_desk.h"

/* The pair, greeted both ways, its first TRAIN under way. */
static void open_pair_that_mixes(struct desk *desk, uint32_t final_cycles)
{
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.final_cycles = final_cycles;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
    const struct sgp_effect *dial = find(desk, SGP_EFFECT_DIAL);
    cr_assert_not_null(dial);
    cr_assert(eq(u32, dial->link.peer, 1));
    greet_out(desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    cr_assert_null(find(desk, SGP_EFFECT_TRAIN), "round 0 must wait for the other hello");
    greet_in(desk, 1, pulse_at(0, 0), 88);
    cr_assert_not_null(find(desk, SGP_EFFECT_TRAIN));
}

static void open_pair(struct desk *desk)
{
    open_pair_that_mixes(desk, 2);
}

/* ... and its share for round 0 sent, number 1. */
static void give_first(struct desk *desk)
{
    grant(desk, 1, 0);
    post_type(desk, SGP_EVENT_TRAINED);
    const struct sgp_effect *publish = find(desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(publish);
    cr_assert(eq(dbl, publish->factor, 0.5));
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    const struct sgp_effect *sent = find_sent(desk, SGP_SHARE, 1);
    cr_assert_not_null(sent);
    cr_assert(eq(u64, sent->message.share.number, 1));
    cr_assert(eq(dbl, sent->message.share.weight, 0.5));
    cr_assert(eq(i64, sent->message.pulse.next_round, 1));
    cr_assert(eq(dbl, status_of(desk).weight_in_flight, 0.5));
}

Test(core, a_round_of_two)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_SHARE));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 1));
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));

    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert_not_null(find(&desk, SGP_EFFECT_RECEIVE));
    cr_assert_null(find(&desk, SGP_EFFECT_ABSORB), "a share counts when it is whole");
    deliver(&desk, 1, 0);
    const struct sgp_effect *ack = find_sent(&desk, SGP_ACK, 1);
    cr_assert_not_null(ack);
    cr_assert(eq(int, ack->message.ack.reason, SGP_REASON_NONE));
    const struct sgp_effect *absorb = find(&desk, SGP_EFFECT_ABSORB);
    cr_assert_not_null(absorb);
    cr_assert(eq(dbl, absorb->factor, 0.5));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(eq(i64, status_of(&desk).round, 1));
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN), "the next round begins at once");
    close_desk(&desk);
}

Test(core, a_share_that_comes_early_is_held)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0);
    cr_assert_null(find(&desk, SGP_EFFECT_ABSORB));
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5), "accepted, though not absorbed");
    cr_assert(eq(dbl, status_of(&desk).weight_estimate, 1));
    const struct sgp_effect *credit = find_sent(&desk, SGP_CREDIT, 1);
    cr_assert_not_null(credit, "the next round's buffer is granted ahead");
    cr_assert(eq(i64, credit->message.credit.round, 1));
    close_desk(&desk);
}

Test(core, no_share_without_credit)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 2));
    deliver(&desk, 1, 0);
    say(&desk, 1, SGP_IN, share_of(2, 0, 2)); /* promised 2, which is too far to be granted */
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert_not_null(end);
    cr_assert(eq(int, end->code, SGP_E_CREDIT));
    cr_assert(eq(int, end->message.goodbye.reason, SGP_REASON_CREDIT));
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5), "what was accepted stays");
    close_desk(&desk);
}

Test(core, a_share_out_of_range_ends_the_connection)
{
    struct sgp_message bad[8];
    for (size_t i = 0; i < 8; i++)
        bad[i] = share_of(1, 0, 1);
    bad[0].share.weight = (double)NAN;
    bad[1].share.weight = 2 * SGP_WEIGHT_PER_NODE + 0.5;
    bad[2].share.fraction = 1.5;
    bad[3].share.slice.count = PARAMETERS + 1;
    bad[4].share.slice.first = 1;
    bad[5].share.payload_bytes = 4;
    bad[6].share.number = 0;
    bad[7].share.bequest = 2.5;
    for (size_t i = 0; i < 8; i++) {
        struct desk desk;
        open_pair(&desk);
        say(&desk, 1, SGP_IN, bad[i]);
        const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
        cr_assert_not_null(end, "case %zu", i);
        cr_assert(eq(int, end->message.goodbye.reason, SGP_REASON_RANGE));
        cr_assert(eq(dbl, status_of(&desk).weight, 1));
        close_desk(&desk);
    }
}

Test(core, a_share_that_is_not_finite_returns)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, SGP_E_NOT_FINITE);
    const struct sgp_effect *ack = find_sent(&desk, SGP_ACK, 1);
    cr_assert(eq(int, ack->message.ack.reason, SGP_REASON_NOT_FINITE));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_REFUSED));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));

    /* ... and our own, refused by the peer, comes home with its weight */
    give_first(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NOT_FINITE);
    const struct sgp_effect *restore = find(&desk, SGP_EFFECT_RESTORE);
    cr_assert_not_null(restore);
    cr_assert(eq(dbl, restore->factor, 0.5));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_RETURNED));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    close_desk(&desk);
}

Test(core, a_damaged_share_is_neither_accepted_nor_lost)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, SGP_E_CHECKSUM);
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->code, SGP_E_CHECKSUM));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    greet_in(&desk, 1, pulse_at(0, 0), 88); /* it dials again and is told what we have */
    cr_assert(eq(u64, find_sent(&desk, SGP_WELCOME, 1)->message.welcome.accepted, 0));
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 1));
    close_desk(&desk);
}

/* The connection breaks with a share under way; the target says what it had accepted. */
static void reconnect_after_break(struct desk *desk, uint64_t lineage, uint64_t accepted)
{
    open_pair(desk);
    give_first(desk);
    post(
        desk, (struct sgp_event){
                  .type = SGP_EVENT_DOWN, .link = link_to(desk, 1, SGP_OUT), .code = SGP_E_CLOSED});
    cr_assert(eq(dbl, status_of(desk).weight_in_flight, 0.5), "owed, not lost");
    desk->now += 100 * SGP_MILLISECOND;
    post_type(desk, SGP_EVENT_TICK);
    cr_assert_not_null(find(desk, SGP_EFFECT_DIAL));
    greet_out(desk, 1, pulse_at(0, SGP_ROUND_NONE), lineage, accepted);
}

Test(core, what_was_accepted_before_a_break_is_settled)
{
    struct desk desk;
    reconnect_after_break(&desk, 88, 1);
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.5));
    cr_assert_null(find(&desk, SGP_EFFECT_RESTORE));
    close_desk(&desk);
}

Test(core, what_was_lost_in_a_break_is_sent_again)
{
    struct desk desk;
    reconnect_after_break(&desk, 88, 0);
    cr_assert_null(find_sent(&desk, SGP_SHARE, 1), "not without a new credit");
    grant(&desk, 1, 0);
    const struct sgp_effect *again = find_sent(&desk, SGP_SHARE, 1);
    cr_assert_not_null(again);
    cr_assert(eq(u64, again->message.share.number, 1));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.5));
    close_desk(&desk);
}

Test(core, a_target_without_memory_gives_the_share_back)
{
    struct desk desk;
    reconnect_after_break(&desk, 99, 0);
    cr_assert_not_null(find(&desk, SGP_EFFECT_RESTORE));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    close_desk(&desk);
}

Test(core, a_new_connection_replaces_the_old)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1)); /* half read ... */
    uint64_t old = desk.link_of[1][SGP_IN];
    come_up(&desk, 1, SGP_IN);
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert(eq(u64, end->link.connection, old));
    cr_assert(eq(int, end->code, SGP_E_REPLACED));
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PAYLOAD, .link = {1, SGP_IN, old}});
    cr_assert(eq(dbl, status_of(&desk).weight, 1), "events of the old connection are ignored");
    close_desk(&desk);
}

Test(core, a_target_that_refuses_us_is_not_waited_for)
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

Test(core, another_model_is_refused_by_name)
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
        cr_assert(eq(int, end->message.goodbye.reason, reasons[i]));
        cr_assert_null(find(&desk, SGP_EFFECT_TRAIN));
        close_desk(&desk);
    }
}

Test(core, another_algorithm_is_refused)
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
    cr_assert(eq(int, end->message.goodbye.reason, SGP_REASON_METHOD));
    close_desk(&desk);
}

/* A credit covers the round that it was granted for: one who jumps must wait for another. */
Test(core, a_jump_leaves_the_old_credit_behind)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find("dpsgd"); /* publishes as soon as a round begins */
    config.fingerprint.method = 4;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    struct sgp_fingerprint other = prints;
    other.method = 4;
    come_up(&desk, 1, SGP_OUT);
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_WELCOME,
            .pulse = pulse_at(0, SGP_ROUND_NONE),
            .welcome = {.target = "n1", .lineage = 88, .fingerprint = other}});
    come_up(&desk, 1, SGP_IN);
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_HELLO,
            .pulse = pulse_at(0, 0),
            .hello = {.source = "n1",
                .target = "n0",
                .lineage = 88,
                .parameters = PARAMETERS,
                .fingerprint = other}});
    grant(&desk, 1, 0);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    grant(&desk, 1, 1);
    post_type(&desk, SGP_EVENT_TRAINED);
    say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(50, 60)});
    cr_assert_not_null(find_note(&desk, SGP_NOTE_JUMP));
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    grant(&desk, 1, 50);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    close_desk(&desk);
}

Test(core, another_learning_rate_only_warns)
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

Test(core, silence_becomes_absence_at_the_least_bound)
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

Test(core, silence_is_judged_by_the_peers_own_pace)
{
    const sgp_time interval[] = {SGP_SECOND / 10, SGP_SECOND, 2 * SGP_SECOND, 10 * SGP_SECOND};
    const sgp_time bound[] = {3 * SGP_SECOND, 8 * SGP_SECOND, 16 * SGP_SECOND, 30 * SGP_SECOND};
    for (size_t i = 0; i < 3; i++) {
        struct desk desk;
        open_pair(&desk);
        give_first(&desk);
        for (int n = 0; n < 80; n++) {
            desk.now += interval[i];
            say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(0, 0)});
            say(&desk, 1, SGP_OUT,
                (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(0, SGP_ROUND_NONE)});
        }
        uint32_t beats;
        cr_assert(eq(i64, wait_until_absent(&desk, &beats), bound[i]), "case %zu", i);
        close_desk(&desk);
    }
}

Test(core, the_nodes_own_standstill_is_not_the_pace_of_its_peers)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    for (int n = 0; n < 80; n++) {
        desk.now += n == 70 ? 30 * SGP_SECOND : SGP_SECOND / 10;
        say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(0, 0)});
        say(&desk, 1, SGP_OUT,
            (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(0, SGP_ROUND_NONE)});
    }
    uint32_t beats;
    cr_assert(eq(i64, wait_until_absent(&desk, &beats), 3 * SGP_SECOND));
    close_desk(&desk);
}

Test(core, one_that_beats_is_waited_for)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    for (int n = 0; n < 600; n++) {
        desk.now += SGP_BEAT_NS;
        say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(0, 0)});
    }
    cr_assert(eq(i64, status_of(&desk).round, 0));
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_SHARE));
    close_desk(&desk);
}

/* A half-open link to a node that drained, and whose next process has never heard of it. */
Test(core, the_silence_of_one_that_drains_is_missed_and_its_link_dialled_anew)
{
    struct desk desk;
    open_pair(&desk);
    struct sgp_pulse draining = pulse_at(0, SGP_ROUND_NONE);
    draining.state = SGP_NODE_DRAINING;
    say(&desk, 1, SGP_OUT, (struct sgp_message){.type = SGP_BEAT, .pulse = draining});
    desk.now += SGP_SILENCE_MIN_NS;
    post_type(&desk, SGP_EVENT_TICK);
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert_not_null(end);
    cr_assert(eq(int, end->code, SGP_E_ABSENT));
    bool dialled = false;
    for (int i = 0; i < 100 && !dialled; i++) {
        desk.now = sgp_node_deadline(desk.node);
        post_type(&desk, SGP_EVENT_TICK);
        dialled = find(&desk, SGP_EFFECT_DIAL) != NULL;
    }
    cr_assert(dialled);
    close_desk(&desk);
}

Test(core, a_paused_or_finished_peer_is_not_waited_for)
{
    const enum sgp_node_state states[] = {SGP_NODE_PAUSED, SGP_NODE_FINISHED, SGP_NODE_DRAINING};
    for (size_t i = 0; i < 3; i++) {
        struct desk desk;
        open_pair(&desk);
        give_first(&desk);
        struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
        pulse.state = states[i];
        say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse});
        cr_assert(eq(i64, status_of(&desk).round, 1));
        close_desk(&desk);
    }
}

Test(core, a_paused_node_says_so_and_falls_quiet)
{
    struct desk desk;
    open_pair(&desk);
    post_type(&desk, SGP_EVENT_PAUSE);
    const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(beat);
    cr_assert(eq(int, beat->message.pulse.state, SGP_NODE_PAUSED));
    cr_assert(eq(i64, beat->message.pulse.next_round, SGP_ROUND_NONE));
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_PAUSED;
    say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse});
    say(&desk, 1, SGP_OUT, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse});
    cr_assert(eq(i64, sgp_node_deadline(desk.node), SGP_TIME_NEVER), "no timer when idle");
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(0, SGP_ROUND_NONE)});
    post_type(&desk, SGP_EVENT_RESUME);
    cr_assert(eq(i64, find_sent(&desk, SGP_BEAT, 1)->message.pulse.next_round, 0));
    close_desk(&desk);
}

/* The other end of a connection may be gone without a word: only a beat that is missed tells. */
Test(core, a_paused_peer_beats_and_is_hung_up_on_when_it_does_not)
{
    struct desk desk;
    open_pair(&desk);
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_PAUSED;
    say(&desk, 1, SGP_OUT, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse});
    desk.now += SGP_SILENCE_MIN_NS + SGP_SECOND;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_ABSENT));
    cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP));
    close_desk(&desk);
}

/* Its own first parameters, mixed into a model that has trained, would set the fleet back. */
Test(core, a_new_node_takes_the_model_and_the_round_of_a_fleet_under_way)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_at(50, SGP_ROUND_NONE), 88, 0);
    desk.now += 60 * SGP_SECOND; /* whoever could hand over a model has not dialled yet: it waits */
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(70, SGP_ROUND_NONE)});
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_JOINING));
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ESTIMATE));
    greet_in(&desk, 1, pulse_at(70, 70), 88);
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 1));
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = pulse_at(70, 70),
            .estimate = {.round = 70, .weight = 0.5, .payload_bytes = PAYLOAD}});
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PAYLOAD, .link = link_to(&desk, 1, SGP_IN)});
    const struct sgp_effect *adopt = find(&desk, SGP_EFFECT_ADOPT);
    cr_assert_not_null(adopt);
    cr_assert(eq(dbl, adopt->factor, 2));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_JUMP));
    cr_assert(eq(i64, status_of(&desk).round, 70));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN));
    close_desk(&desk);
}

Test(core, a_new_node_waits_for_a_fleet_that_comes_back_to_begin)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_HELLO));
    struct sgp_pulse elder = pulse_at(50, SGP_ROUND_NONE);
    elder.state = SGP_NODE_JOINING;
    greet_out(&desk, 1, elder, 88, 0);
    greet_in(&desk, 1, elder, 88);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_JOINING), "all have greeted");
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ESTIMATE));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 1));
    cr_assert_null(find(&desk, SGP_EFFECT_TRAIN));
    say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(50, 50)});
    cr_assert(eq(i64, sgp_node_deadline(desk.node), desk.now), "there is more to do at once");
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 1));
    close_desk(&desk);
}

/* The other side: n2 joins so late that n0 does not wait for it. */
Test(core, nobody_waits_for_one_that_joins_far_behind)
{
    struct desk desk;
    static const struct sgp_edge all[] = {{0, 1, SGP_FRACTION_DEFAULT},
        {0, 2, SGP_FRACTION_DEFAULT}, {1, 0, SGP_FRACTION_DEFAULT}, {2, 0, SGP_FRACTION_DEFAULT}};
    const struct sgp_edge *edges[] = {all};
    struct sgp_topology *topology = topology_of(3, 1, edges, (const uint32_t[]){4});
    struct sgp_node_config config = config_of(topology);
    config.start = 1;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_at(50, SGP_ROUND_NONE), 88, 0);
    grant(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(50, SGP_ROUND_NONE)});
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    sgp_round round = status_of(&desk).round;
    cr_assert(eq(i64, round, 50));
    struct sgp_pulse fresh = pulse_at(0, 0);
    fresh.state = SGP_NODE_JOINING;
    greet_in(&desk, 2, fresh, 99); /* which promises round 0 */
    fresh.next_round = SGP_ROUND_NONE;
    greet_out(&desk, 2, fresh, 99, 0); /* and has granted nothing */
    grant(&desk, 1, round);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert(eq(i64, status_of(&desk).round, round + 1));
    close_desk(&desk);
}

Test(core, one_to_whom_nobody_can_hand_a_model_goes_on_without)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    greet_in(&desk, 1, pulse_at(50, 50), 88);
    say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(50, 50)});
    desk.now += SGP_SEEK_NS; /* n1 has no model to hand over: patience ends */
    say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(50, 50)});
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = pulse_at(50, 50),
            .estimate = {.round = 50, .weight = 0.5, .payload_bytes = PAYLOAD}});
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PAYLOAD,
                    .link = link_to(&desk, 1, SGP_IN),
                    .code = SGP_E_NOT_FINITE});
    const struct sgp_effect *jump = find_note(&desk, SGP_NOTE_JUMP);
    cr_assert_not_null(jump);
    cr_assert(eq(i64, jump->round, 50));
    cr_assert(eq(u64, status_of(&desk).jumps, 1));
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN));
    close_desk(&desk);
}

/* It gives down to 0.75 w_min keep = 0.375 and no further: first 1/2, then the rest, then nothing. */
Test(core, a_starving_node_gives_down_to_its_floor_and_then_empty_shares)
{
    static const double given[] = {0.5, 0.125, 0};
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.weight_least = 1;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    for (uint64_t k = 0; k < 3; k++) {
        grant(&desk, 1, (sgp_round)k);
        double before = status_of(&desk).weight;
        post_type(&desk, SGP_EVENT_TRAINED);
        if (k < 2)
            post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
        const struct sgp_effect *sent = find_sent(&desk, SGP_SHARE, 1);
        cr_assert_not_null(sent);
        cr_assert(eq(dbl, sent->message.share.weight, given[k]));
        cr_assert(eq(dbl, sent->message.share.fraction, given[k] / before));
        cr_assert(eq(u64, sent->message.share.payload_bytes > 0, k < 2));
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
    post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->slot});
    return told;
}

/* With w_min 1 and 1/2 kept a node starves below 3/4. Above and below in turn: one line for people,
 * until it has had its whole due again. */
Test(core, a_node_that_starves_on_and_off_tells_of_it_once_in_a_while)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.weight_least = 1;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    double weight = 1;
    for (uint64_t k = 0; k < 40; k++) { /* odd rounds begin below the threshold, even ones above */
        desk.now += 2 * SGP_SECOND;
        bool starves = k % 2 == 1;
        double kept = starves ? 0.375 : weight / 2, next = starves ? 0.875 : 0.625;
        bool told = give_and_get(&desk, k, next - kept);
        cr_assert(eq(int, told, k == 1 || k == 31), "round %d", (int)k);
        cr_assert(eq(int, status_of(&desk).starving, starves), "status says how it is now");
        weight = status_of(&desk).weight;
        cr_assert(eq(dbl, weight, next));
    }
    close_desk(&desk);
}

Test(core, divergence_pauses_the_node)
{
    struct desk desk;
    open_pair(&desk);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_TRAINED, .code = SGP_E_DIVERGED});
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DIVERGED));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_PAUSED));
    close_desk(&desk);
}

Test(core, stopping_waits_for_acknowledgements_but_not_for_ever)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    post_type(&desk, SGP_EVENT_STOP);
    cr_assert_null(find_note(&desk, SGP_NOTE_DRAINED));
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DRAINED));
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->message.goodbye.reason, SGP_REASON_LEAVING));
    close_desk(&desk);

    open_pair(&desk);
    give_first(&desk);
    post_type(&desk, SGP_EVENT_STOP);
    desk.now += SGP_DRAIN_NS;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DRAINED));
    close_desk(&desk);
}

Test(core, stopping_does_not_wait_for_one_that_has_left)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    post_type(&desk, SGP_EVENT_STOP);
    struct sgp_pulse leaving = pulse_at(0, SGP_ROUND_NONE);
    leaving.state = SGP_NODE_DRAINING;
    say(&desk, 1, SGP_OUT, (struct sgp_message){.type = SGP_BEAT, .pulse = leaving});
    cr_assert_null(find_note(&desk, SGP_NOTE_DRAINED), "it is there, and may acknowledge");
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = leaving,
            .goodbye = {.reason = SGP_REASON_LEAVING, .text = ""}});
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DRAINED));
    cr_assert(gt(dbl, status_of(&desk).weight_in_flight, 0), "owed, and on record");
    close_desk(&desk);
}

Test(core, messages_that_cannot_come_now_end_the_connection)
{
    struct desk desk;
    open_pair(&desk);
    acknowledge(&desk, 1, 7, SGP_REASON_NONE);
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->code, SGP_E_PROTOCOL));
    say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_CREDIT, .pulse = pulse_at(0, 0)});
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->code, SGP_E_PROTOCOL));
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    struct sgp_pulse absurd = pulse_at(0, 0);
    absurd.ends = SGP_ROUND_MAX - 1;
    say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = absurd});
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->message.goodbye.reason, SGP_REASON_ROUNDS));
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    absurd = pulse_at(-1, 0);
    say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = absurd});
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->message.goodbye.reason, SGP_REASON_RANGE));
    close_desk(&desk);
}

/* By whole multiples; fewer rounds than 1024 count as 1024. */
Test(core, one_that_trains_64_times_as_long_is_refused_when_it_greets)
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
            cr_assert(eq(int, refused->reason, SGP_REASON_ROUNDS));
            cr_assert(eq(
                int, find(&desk, SGP_EFFECT_HANG_UP)->message.goodbye.reason, SGP_REASON_ROUNDS));
        }
        close_desk(&desk);
    }
}

Test(core, a_node_alone_trains_and_finishes)
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
    cr_assert(eq(i64, status_of(&desk).round, 5), "three of training, two of mixing");
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

Test(core, an_early_stop_reaches_everybody)
{
    struct desk desk;
    open_pair(&desk);
    post_type(&desk, SGP_EVENT_ENOUGH);
    desk.now += SGP_BEAT_NS;
    post_type(&desk, SGP_EVENT_TICK);
    const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(beat);
    cr_assert(eq(i64, beat->message.pulse.stop, 3), "nodes and one cycle from now");
    cr_assert(eq(i64, status_of(&desk).last_round, 5));
    close_desk(&desk);
}

static void tell_to_stop(struct desk *desk, sgp_round round, sgp_round stop)
{
    struct sgp_pulse pulse = pulse_at(round, round);
    pulse.stop = stop;
    say(desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse});
}

Test(core, a_stop_heard_of_too_late_ends_the_round_without_giving)
{
    struct desk desk;
    open_pair_that_mixes(&desk, 0);
    tell_to_stop(&desk, 0, 0);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_TRAINING), "the job is under way");
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED), "no credit would ever come");
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

Test(core, one_who_is_behind_asks_for_a_stop_that_nobody_has_passed)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_OUT, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(50, -1)});
    post_type(&desk, SGP_EVENT_ENOUGH);
    cr_assert(eq(i64, status_of(&desk).rounds, 53));
    close_desk(&desk);
}

/* n0 is through with its rounds and owes n1 a share, when n1 leaves. */
Test(core, the_end_does_not_wait_for_one_who_left)
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
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = leaving,
            .goodbye = {.reason = SGP_REASON_LEAVING, .text = "leaving"}});
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.5));
    desk.now += SGP_DIAL_MAX_NS;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find(&desk, SGP_EFFECT_DIAL), "it still owes");
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 99, 0);
    cr_assert_not_null(find(&desk, SGP_EFFECT_RESTORE), "a new lineage must not get old mass");
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5));
    close_desk(&desk);
}

/* n1, n2 and n3 give to n0 in turn: buffers are granted in the order of the promised rounds. */
Test(core, buffers_are_granted_in_round_order)
{
    static const struct sgp_edge one[] = {{1, 0, 0.5}}, two[] = {{2, 0, 0.5}},
                                 three[] = {{3, 0, 0.5}};
    const struct sgp_edge *edges[] = {one, two, three};
    const uint32_t counts[] = {1, 1, 1};
    struct desk desk;
    struct sgp_topology *topology = topology_of(4, 3, edges, counts);
    struct sgp_node_needs needs;
    cr_assert(eq(int, sgp_node_needs(topology, 0, sgp_method_find("sgp"), &needs), 0));
    cr_assert(eq(u32, needs.receives, 3));
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    greet_in(&desk, 3, pulse_at(0, 2), 13);
    cr_assert_null(find_sent(&desk, SGP_CREDIT, 3), "round 2 is too far ahead");
    greet_in(&desk, 2, pulse_at(0, 1), 12);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 2));
    greet_in(&desk, 1, pulse_at(0, 0), 11);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 1));
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 1));

    /* n2 changes its plan: its credit is void, and a new one follows the new promise */
    say(&desk, 2, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(0, 4)});
    cr_assert_null(find_sent(&desk, SGP_CREDIT, 2));
    say(&desk, 2, SGP_IN, share_of(1, 0, 4));
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->code, SGP_E_CREDIT));
    close_desk(&desk);
}

/* n1 and n2 give to n0 in turn; the first share comes `took` after it was announced, in a round that is then
 * `lasted` old. Whether n1's next credit was sent before n2's share of round 1 is there, and after. */
static void share_that_took(sgp_time took, sgp_time lasted, bool *ret_before, bool *ret_after)
{
    static const struct sgp_edge one[] = {{1, 0, 0.5}}, two[] = {{2, 0, 0.5}};
    const struct sgp_edge *edges[] = {one, two};
    const uint32_t counts[] = {1, 1};
    struct desk desk;
    struct sgp_topology *topology = topology_of(3, 2, edges, counts);
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    greet_in(&desk, 1, pulse_at(0, 0), 11);
    greet_in(&desk, 2, pulse_at(0, 1), 12);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 2), "nothing is known of the links yet");
    post_type(&desk, SGP_EVENT_TRAINED);
    desk.now += lasted - took;
    say(&desk, 1, SGP_IN, share_of(1, 0, 2));
    desk.now += took;
    deliver(&desk, 1, 0);
    cr_assert(eq(i64, status_of(&desk).round, 1));
    post(&desk, (struct sgp_event){
                    .type = SGP_EVENT_ABSORBED, .slot = find(&desk, SGP_EFFECT_ABSORB)->slot});
    *ret_before = find_sent(&desk, SGP_CREDIT, 1) != NULL;
    post_type(&desk, SGP_EVENT_TRAINED);
    say(&desk, 2, SGP_IN, share_of(1, 1, 3));
    deliver(&desk, 2, 0);
    cr_assert(eq(i64, status_of(&desk).round, 2));
    *ret_after = find_sent(&desk, SGP_CREDIT, 1) != NULL;
    close_desk(&desk);
}

Test(core, on_a_thin_link_credits_wait_for_the_shares_of_their_round)
{
    bool before, after;
    share_that_took(SGP_SECOND, SGP_SECOND, &before, &after);
    cr_assert(not(before));
    cr_assert(after);
    share_that_took(SGP_SECOND, 2 * SGP_SECOND - 1, &before, &after);
    cr_assert(not(before), "more than half");
    share_that_took(SGP_SECOND, 2 * SGP_SECOND, &before, &after);
    cr_assert(before, "a round ahead");
    cr_assert(not(after));
}

/* n1, n2 and n3 give to n0 in rounds 0, 2 and 4 of six, all of them late; n0 has two buffers. */
static void open_desk_of_late_ones(struct desk *desk)
{
    static const struct sgp_edge one[] = {{1, 0, 0.5}}, two[] = {{2, 0, 0.5}},
                                 three[] = {{3, 0, 0.5}};
    const struct sgp_edge *edges[] = {one, NULL, two, NULL, three, NULL};
    const uint32_t counts[] = {1, 0, 1, 0, 1, 0};
    struct sgp_topology *topology = topology_of(4, 6, edges, counts);
    struct sgp_node_needs needs;
    cr_assert(eq(int, sgp_node_needs(topology, 0, sgp_method_find("sgp"), &needs), 0));
    cr_assert(eq(u32, needs.receives, 2));
    struct sgp_node_config config = config_of(topology);
    config.start = 1;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
    while (status_of(desk).round < 5)
        post_type(desk, SGP_EVENT_TRAINED);
}

Test(core, a_buffer_not_used_yet_gives_way_to_an_earlier_share)
{
    struct desk desk;
    open_desk_of_late_ones(&desk);
    greet_in(&desk, 3, pulse_at(0, 4), 13);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 3));
    greet_in(&desk, 2, pulse_at(0, 2), 12);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 2));
    greet_in(&desk, 1, pulse_at(0, 0), 11);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 1));
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert_not_null(end);
    cr_assert(eq(u32, end->link.peer, 3), "the last in order");
    cr_assert(eq(int, end->message.goodbye.reason, SGP_REASON_CREDIT));

    greet_in(&desk, 3, pulse_at(0, 4), 13);
    cr_assert_null(find_sent(&desk, SGP_CREDIT, 3));
    cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP), "nobody is behind it");
    say(&desk, 1, SGP_IN, share_of(1, 0, 6));
    deliver(&desk, 1, 0);
    const struct sgp_effect *absorb = find(&desk, SGP_EFFECT_ABSORB);
    cr_assert_not_null(absorb);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->slot});
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 3));
    close_desk(&desk);
}

Test(core, one_who_joins_again_gets_no_buffer_before_it_trains)
{
    struct desk desk;
    open_pair(&desk);
    struct sgp_pulse joining = pulse_at(0, 0);
    joining.state = SGP_NODE_JOINING;
    greet_in(&desk, 1, joining, 89);
    cr_assert_null(find_sent(&desk, SGP_CREDIT, 1));
    say(&desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(0, 0)});
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 1));
    close_desk(&desk);
}

Test(core, a_credit_is_good_for_its_round_alone)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 1, 2));
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->code, SGP_E_CREDIT), "granted was round 0");
    close_desk(&desk);

    /* n0 only mixes; it has the credit of round 1 when it finds the fleet in round 50 */
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.rounds = 0;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    grant(&desk, 1, 0);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    grant(&desk, 1, 1);
    say(&desk, 1, SGP_OUT, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(50, -1)});
    say(&desk, 1, SGP_IN, share_of(1, 0, 50));
    deliver(&desk, 1, 0);
    cr_assert(eq(i64, status_of(&desk).round, 50));
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    grant(&desk, 1, 50);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    close_desk(&desk);
}

/* n1 has finished and n0 begins anew: it goes to the end instead of training alone. */
Test(core, one_who_comes_back_after_the_end_finds_it_there)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    struct sgp_pulse ended = pulse_at(102, SGP_ROUND_NONE);
    ended.state = SGP_NODE_FINISHED;
    greet_out(&desk, 1, ended, 88, 0);
    greet_in(&desk, 1, ended, 88);
    cr_assert_not_null(
        find_sent(&desk, SGP_ASK, 1), "one that has finished has a model to hand over");
    desk.link_of[1][SGP_IN] = desk.connections;
    post(&desk, (struct sgp_event){.type = SGP_EVENT_DOWN, .link = link_to(&desk, 1, SGP_IN)});
    desk.now += SGP_SEEK_NS;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_null(find(&desk, SGP_EFFECT_TRAIN));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED), "it gave none in time");
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

/* Another process of our name: taking turns in replacing each other at full pace helps nobody. */
Test(core, one_who_was_replaced_dials_again_slowly)
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

/* ---- steps by rate ---- */

/* The next 20 rounds of n0 and n1, ten a second; returns the factor of the last steps. */
static double factor_after_rounds(struct desk *desk, sgp_round *peer_round)
{
    double factor = 0;
    for (int i = 0; i < 20; i++) {
        desk->now += 100 * SGP_MILLISECOND;
        ++*peer_round;
        say(desk, 1, SGP_IN,
            (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(*peer_round, *peer_round)});
        say(desk, 1, SGP_OUT,
            (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(*peer_round, SGP_ROUND_NONE)});
        post_type(desk, SGP_EVENT_TRAINED);
        const struct sgp_effect *train = find(desk, SGP_EFFECT_TRAIN);
        cr_assert_not_null(train);
        factor = train->factor;
    }
    return factor;
}

static void pause_for(struct desk *desk, sgp_round peer_round, bool both)
{
    struct sgp_pulse pulse = pulse_at(peer_round, SGP_ROUND_NONE);
    pulse.state = both ? SGP_NODE_PAUSED : SGP_NODE_TRAINING;
    post_type(desk, SGP_EVENT_PAUSE);
    say(desk, 1, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse});
    desk->now += 2 * SGP_SECOND;
    post_type(desk, SGP_EVENT_RESUME);
}

/* Whoever stood still, alone or with all: the rate is that of training. */
Test(core, a_pause_is_no_slowness)
{
    for (int both = 0; both < 2; both++) {
        struct desk desk;
        struct sgp_topology *topology = pair();
        struct sgp_node_config config = config_of(topology);
        config.method = sgp_method_find("agp");
        config.step_by_rate = true;
        open_desk(&desk, topology, config);
        desk.peers.method = config.method->number;
        post_type(&desk, SGP_EVENT_START);
        greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
        greet_in(&desk, 1, pulse_at(0, 0), 88);
        sgp_round peer_round = 0;
        cr_assert(epsilon_eq(dbl, factor_after_rounds(&desk, &peer_round), 1, 0.1));
        peer_round += both ? 0 : 20;
        pause_for(&desk, peer_round, both);
        double factor = factor_after_rounds(&desk, &peer_round);
        cr_assert(epsilon_eq(dbl, factor, 1, 0.1), "%d: %g", both, factor);
        close_desk(&desk);
    }
}
