/* SPDX-License-Identifier: Apache-2.0 */
/* A node at rest, paused or finished: how seldom it wakes up, and how seldom others wake it. */
#include "core_desk.h"

static struct sgp_pulse pulse_in(enum sgp_node_state state)
{
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.state = state;
    return pulse;
}

/* The peer's beat on both links; returns the beats with which that was answered. */
static uint32_t beat(struct desk *desk, enum sgp_node_state state)
{
    struct sgp_message message = {.type = SGP_BEAT, .pulse = pulse_in(state)};
    uint32_t answers = 0;
    say(desk, 1, SGP_IN, message);
    answers += find_sent(desk, SGP_BEAT, 1) != NULL;
    say(desk, 1, SGP_OUT, message);
    return answers + (find_sent(desk, SGP_BEAT, 1) != NULL);
}

/* Without its peer it goes through all its rounds: nothing is given and nobody is waited for. Returns
 * the beats that it sent meanwhile. */
static uint32_t go_on_to(struct desk *desk, sgp_round round)
{
    uint32_t beats = 0;
    bool train = true; /* one is under way */
    for (int i = 0; i < 1000 && status_of(desk).round < round; i++) {
        post_type(desk, train ? SGP_EVENT_TRAINED : SGP_EVENT_TICK);
        beats += find_sent(desk, SGP_BEAT, 1) != NULL;
        train = find(desk, SGP_EFFECT_TRAIN) != NULL;
    }
    cr_assert(eq(i64, status_of(desk).round, round));
    return beats;
}

static void come_to_rest(struct desk *desk, bool finished)
{
    if (finished) {
        (void)beat(desk, SGP_NODE_PAUSED);
        (void)go_on_to(desk, 100);
        sketch(desk);
        cr_assert(eq(int, status_of(desk).state, SGP_NODE_FINISHED));
        return;
    }
    post_type(desk, SGP_EVENT_TRAINED);
    post_type(desk, SGP_EVENT_PAUSE);
    cr_assert(eq(int, status_of(desk).state, SGP_NODE_PAUSED));
}

/* A minute in which the peer beats each second: how often the node asks to be woken. No two of its
 * timers may come within a second, whatever the peer does. */
static uint32_t wakes_in_a_minute(struct desk *desk, enum sgp_node_state peer)
{
    uint32_t wakes = 0;
    for (int second = 0; second < 60; second++) {
        (void)beat(desk, peer);
        sgp_time until = desk->now + SGP_SECOND;
        sgp_time first = sgp_node_deadline(desk->node);
        cr_assert(ge(i64, first, until), "second %d: woken after %lld ms", second,
            (long long)((first - desk->now) / SGP_MILLISECOND));
        desk->now = until;
        if (first > until)
            continue;
        wakes++;
        post_type(desk, SGP_EVENT_TICK);
        cr_assert_null(find(desk, SGP_EFFECT_HANG_UP));
    }
    return wakes;
}

Test(idle, no_timer_is_faster_than_a_second)
{
    const struct {
        enum sgp_node_state peer;
        uint32_t paused, finished; /* wakes of a node that is */
    } cases[] = {{SGP_NODE_TRAINING, 60, 60}, {SGP_NODE_PAUSED, 0, 0}, {SGP_NODE_FINISHED, 0, 0},
        {SGP_NODE_DRAINING, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int finished = 0; finished < 2; finished++) {
            struct desk desk;
            open_pair(&desk);
            come_to_rest(&desk, finished);
            uint32_t wanted = finished ? cases[i].finished : cases[i].paused;
            cr_assert(eq(u32, wakes_in_a_minute(&desk, cases[i].peer), wanted), "case %zu", i);
            close_desk(&desk);
        }
    }
}

/* Between two that both take part the beats keep the bound of silence with room to spare; where one
 * rests, three of them still come within the least bound. */
Test(idle, beats_are_slower_where_one_rests)
{
    struct desk desk;
    open_pair(&desk);
    cr_assert(eq(i64, sgp_node_deadline(desk.node), desk.now + SGP_BEAT_NS));
    (void)beat(&desk, SGP_NODE_PAUSED);
    cr_assert(eq(i64, sgp_node_deadline(desk.node), desk.now + SGP_BEAT_IDLE_NS));
    cr_assert(eq(i64, 3 * SGP_BEAT_IDLE_NS, SGP_SILENCE_MIN_NS));
    close_desk(&desk);
}

Test(idle, one_that_rests_is_not_told_of_each_round)
{
    struct desk desk;
    open_pair(&desk);
    (void)beat(&desk, SGP_NODE_PAUSED);
    cr_assert(eq(u32, go_on_to(&desk, 50), 0), "no time has passed, and it waits for nobody");
    desk.now += SGP_BEAT_IDLE_NS;
    post_type(&desk, SGP_EVENT_TICK);
    const struct sgp_effect *told = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(told);
    cr_assert(eq(i64, told->send.message.pulse.next_round, 50));
    (void)go_on_to(&desk, 60);
    struct sgp_pulse back = pulse_in(SGP_NODE_TRAINING);
    say_pulse(&desk, 1, SGP_OUT, back);
    told = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(told, "one that is back hears at once");
    cr_assert(eq(i64, told->send.message.pulse.next_round, 60));
    close_desk(&desk);
}

Test(idle, a_node_alone_has_no_timer)
{
    for (int finished = 0; finished < 2; finished++) {
        struct sgp_topology_node name = {.name = "n0"};
        struct sgp_topology *topology;
        cr_assert(eq(int, sgp_topology_create(&name, 1, NULL, &topology), 0));
        cr_assert(eq(int, sgp_topology_add_phase(topology, "alone", 1, false, NULL, 0, NULL), 0));
        cr_assert(eq(int, sgp_topology_seal(topology, NULL), 0));
        struct desk desk;
        open_desk(&desk, topology, config_of(topology));
        post_type(&desk, SGP_EVENT_START);
        if (finished)
            (void)go_on_to(&desk, 100);
        else
            post_type(&desk, SGP_EVENT_PAUSE);
        cr_assert(eq(i64, sgp_node_deadline(desk.node), SGP_TIME_NEVER));
        close_desk(&desk);
    }
}
