/* SPDX-License-Identifier: Apache-2.0 */
/* Links by hand: a new connection beside an old one, who is dialled when, and what ends a connection. */
#include "core_desk.h"

/* Of a connection that stands, however loudly others greet in its name. */
static void assert_stands(struct desk *desk, uint64_t connection)
{
    for (uint32_t i = 0; i < desk->effects.count; i++)
        if (desk->items[i].type == SGP_EFFECT_HANG_UP && desk->items[i].hang_up.link.peer == 1)
            cr_assert(ne(u64, desk->items[i].hang_up.link.connection, connection));
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

/* The bounds of silence, of the payload and of waiting have passed, too. */
Test(link, a_node_that_stood_still_lets_the_new_connection_replace_the_silent_one)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1)); /* half read */
    uint64_t old = desk.link_of[1][SGP_IN];
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    uint64_t new = desk.link_of[1][SGP_IN];
    desk.now += SGP_SILENCE_MAX_NS;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert(eq(int, find_end(&desk, old)->hang_up.reason, SGP_REASON_REPLACED));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_TRICKLES));
    cr_assert_null(find_end(&desk, new));
    cr_assert_not_null(find_sent(&desk, SGP_WELCOME, 1));
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

/* However many there are, and whatever becomes of the others, a connection that has not greeted is
 * turned away in time. */
Test(link, one_that_does_not_greet_is_turned_away)
{
    struct desk desk;
    open_pair(&desk);
    uint64_t old = desk.link_of[1][SGP_IN], callers[3];
    for (int i = 0; i < 3; i++) {
        come_up(&desk, 1, SGP_IN);
        callers[i] = desk.link_of[1][SGP_IN];
        if (i > 0) {
            const struct sgp_effect *end = find_end(&desk, callers[i - 1]);
            cr_assert_not_null(end, "%d", i);
            cr_assert(eq(int, end->hang_up.reason, SGP_REASON_REPLACED));
        }
        cr_assert_null(find_end(&desk, callers[i]));
        assert_stands(&desk, old);
    }
    for (sgp_time end = desk.now + SGP_SILENCE_MIN_NS; desk.now < end;) {
        cr_assert_null(find_end(&desk, callers[2]));
        cr_assert(le(i64, sgp_node_deadline(desk.node), end));
        desk.now += SGP_BEAT_NS;
        beat_in(&desk, old);
        assert_stands(&desk, old);
    }
    cr_assert(eq(int, find_end(&desk, callers[2])->hang_up.reason, SGP_REASON_ABSENT));
    close_desk(&desk);
}

/* The other one is let in, or has waited for too long. */
Test(link, one_that_has_not_greeted_may_greet_when_the_other_is_gone)
{
    for (int i = 0; i < 2; i++) {
        struct desk desk;
        open_pair(&desk);
        uint64_t old = desk.link_of[1][SGP_IN];
        greet_in(&desk, 1, pulse_at(0, 0), 88);
        uint64_t pending = desk.link_of[1][SGP_IN];
        for (uint32_t beats = 0; i == 1 && beats < SGP_SILENCE_MIN_NS / SGP_BEAT_NS - 1; beats++) {
            desk.now += SGP_BEAT_NS;
            beat_in(&desk, old);
        }
        come_up(&desk, 1, SGP_IN);
        uint64_t caller = desk.link_of[1][SGP_IN];
        if (i == 0)
            post(&desk,
                (struct sgp_event){.type = SGP_EVENT_DOWN, .link = {1, SGP_IN, old}, .code = -1});
        desk.now += i * SGP_BEAT_NS;
        beat_in(&desk, i == 0 ? pending : old);
        cr_assert(eq(int, find_end(&desk, pending) != NULL, i == 1));
        say(&desk, 1, SGP_IN,
            (struct sgp_message){.type = SGP_HELLO,
                .pulse = pulse_at(0, 0),
                .hello = {.source = "n1",
                    .target = "n2",
                    .incarnation = 88,
                    .parameters = PARAMETERS,
                    .fingerprint = prints}});
        cr_assert_not_null(find_end(&desk, caller), "it is judged");
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

/* They travel on connections of their own, which begin with no greeting. */
Test(link, messages_of_other_connections_end_the_connection_of_an_edge)
{
    static const enum sgp_message_type types[] = {
        SGP_INQUIRE, SGP_CALL, SGP_BULLETIN, SGP_PULL, SGP_SUMMARY, SGP_ROW, SGP_JOIN, SGP_JOINED};
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
