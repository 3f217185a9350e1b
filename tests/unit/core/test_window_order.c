/* SPDX-License-Identifier: Apache-2.0 */
/* Exact cycles whose rounds overlap: the order in which shares are added, and buffers when some come late. */
#include "window_desk.h"

/* ---- of two pieces: rounds that wait for what their next one touches ---- */

Test(window_order, a_round_waits_for_what_its_next_one_touches)
{
    struct desk desk;
    open_cut(&desk, 2);
    const struct sgp_core_link *out = sgp_core_find(desk.node, 1, SGP_OUT);
    grant_round(&desk, 0);
    grant_round(&desk, 1);
    post_type(&desk, SGP_EVENT_TRAINED);
    run_jobs(&desk);
    cr_assert(eq(i64, desk.node->round, 1), "piece 1 goes out before anything of piece 0 has come");
    cr_assert(out->owed[0].sent && out->owed[1].sent);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_SHARE), "for that of round 0");
    receive_of(&desk, 1, 0);
    run_jobs(&desk);
    cr_assert(eq(i64, desk.node->round, 2), "piece 0 goes on before that of round 1 has come");
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ACK));
    answer(&desk, 1, SGP_REASON_NONE);
    grant_round(&desk, 2);
    run_jobs(&desk);
    cr_assert(eq(i64, out->owed[1].share.round, 2));
    cr_assert(eq(i64, desk.node->round, 2), "which round 3 gives on");
    receive_of(&desk, 1, 1);
    answer(&desk, 2, SGP_REASON_NONE);
    grant_round(&desk, 3);
    run_jobs(&desk);
    cr_assert(eq(i64, desk.node->round, 3));
    receive_of(&desk, 1, 2);
    run_jobs(&desk);
    cr_assert(eq(i64, desk.node->round, 3), "the last round of the cycle waits for all");
    receive_of(&desk, 1, 3);
    run_jobs(&desk);
    cr_assert(eq(i64, desk.node->round, 4));
    close_desk(&desk);
}

/* n0 of three that average directly in two pieces: credits of two rounds have come, its steps are under way. */
static void open_three(struct desk *desk)
{
    struct sgp_generate_options options = {.family = "all-reduce-direct", .nodes = 3, .pieces = 2};
    struct sgp_topology *topology = NULL;
    cr_assert(zero(int, sgp_generate(&options, NULL, &topology)));
    open_desk(desk, topology, config_of(topology));
    post_type(desk, SGP_EVENT_START);
    for (uint32_t p = 1; p < 3; p++) {
        greet_out(desk, p, pulse_of(desk, 0, SGP_ROUND_NONE, 0), 87 + p, 0);
        greet_in(desk, p, pulse_of(desk, 0, 0, 1), 87 + p);
        for (sgp_round r = 0; r < 2; r++)
            say(desk, p, SGP_OUT,
                (struct sgp_message){.type = SGP_CREDIT,
                    .pulse = pulse_of(desk, 0, SGP_ROUND_NONE, 0),
                    .credit = {.round = r}});
    }
}

/* Also of a round that goes on into the next one shares are added in the order of their sources, whichever comes first. */
Test(window_order, a_late_round_is_added_up_in_its_order)
{
    struct desk desk;
    open_three(&desk);
    post_type(&desk, SGP_EVENT_TRAINED);
    run_jobs(&desk);
    cr_assert(eq(i64, desk.node->round, 1));
    receive_of(&desk, 2, 0);
    cr_assert(zero(ptr, (void *)find(&desk, SGP_EFFECT_ABSORB)));
    receive_of(&desk, 1, 0);
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_ABSORB)->absorb.peer, 1));
    uint32_t peers[2] = {0}, count = 0;
    for (uint32_t i = 0; i < desk.effects.count; i++)
        if (desk.items[i].type == SGP_EFFECT_ABSORB && count < 2)
            peers[count++] = desk.items[i].absorb.peer;
    cr_assert(count == 2 && peers[0] == 1 && peers[1] == 2);
    close_desk(&desk);
}

/* ---- patience ---- */

/* The third comes back with its shares to give. The free buffers are for these, since the cycle
 * ends for nobody without them. */
Test(window_order, patience_keeps_no_buffer_from_a_share_of_the_cycle)
{
    struct desk desk;
    open_impatient(&desk);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 3, SGP_IN);
    lose(&desk, 3, SGP_IN);
    greet_in(&desk, 3, pulse_of(&desk, 0, 0, 1), 83);
    cr_assert(in->patience.overdue, "it is in round 0 still");
    cr_assert(ne(u32, in->receiving.slot[0], SGP_SLOT_NONE));
    cr_assert(eq(i64, desk.node->layout.receives[in->receiving.slot[0]].share.round, 0));
    close_desk(&desk);
}

/* Whatever a peer says: one buffer a source, where the node's own file has no exact cycle. */
Test(window_order, a_second_round_is_not_believed_of_gossip)
{
    struct desk desk;
    static const struct sgp_edge pair[] = {
        {0, 1, SGP_FRACTION_DEFAULT}, {1, 0, SGP_FRACTION_DEFAULT}};
    const struct sgp_edge *edges[] = {pair};
    const uint32_t counts[] = {2};
    struct sgp_topology *topology = topology_of(2, 1, edges, counts);
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    struct sgp_pulse pulse = pulse_at(0, 0);
    pulse.then_round = 1;
    greet_in(&desk, 1, pulse, 88);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    cr_assert(ne(u32, in->receiving.slot[0], SGP_SLOT_NONE));
    cr_assert(eq(u32, in->receiving.slot[1], SGP_SLOT_NONE));
    close_desk(&desk);
}

/* ---- the order of a round, and buffers ---- */

static void settle_all(struct desk *desk)
{
    for (uint32_t k = 0; k < 8; k++) {
        settle_jobs(desk);
        for (uint32_t i = 0; i < desk->node->layout.receive_count; i++)
            if (desk->node->layout.receives[i].state == SGP_RECEIVE_ABSORBING)
                post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = i});
        post_type(desk, SGP_EVENT_TICK);
    }
}

/* Sources that are ahead have filled all buffers but one, and those who are behind come back one by one: what they bring is added
 * before all of it is there. */
Test(window_order, shares_that_wait_for_their_round_give_way_to_those_of_it)
{
    static struct desk desk;
    struct sgp_topology_node names[8] = {0};
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    for (uint32_t i = 0; i < 8; i++) {
        names[i].name[0] = 'n';
        names[i].name[1] = (char)('0' + i);
    }
    cr_assert(zero(int, sgp_topology_create(names, 8, NULL, &topology)));
    for (uint32_t r = 0; r < 5; r++) {
        struct sgp_edge edges[8];
        uint32_t count = 0;
        for (uint32_t i = 0; i < 8; i++) {
            struct sgp_edge edge = {
                .part = r == 1 || r == 4, .part_count = 1, .fraction = r < 3 ? 1 : 0.125};
            uint32_t root = r == 1 || r == 4;
            bool in = (r == 0 && i >= 1 && i <= 3) || (r == 1 && i != 1) || (r == 2 && i >= 4);
            bool out = r >= 3 && i != root;
            edge.source = out ? root : i;
            edge.target = out ? i : root;
            if (in || out)
                edges[count++] = edge;
        }
        char name[4] = {'r', (char)('0' + r)};
        struct sgp_phase_options options = {
            .name = name, .rounds = 1, .exchanges = r > 0, .slices = 2};
        cr_assert(zero(int, sgp_topology_add(topology, &options, edges, count, &error)), "%s",
            error.text);
    }
    cr_assert(zero(int, sgp_topology_seal(topology, &error)), "%s", error.text);
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    for (uint32_t p = 1; p < 8; p++) {
        greet_out(&desk, p, pulse_of(&desk, 0, SGP_ROUND_NONE, 0), 87 + p, 0);
        greet_in(&desk, p, pulse_of(&desk, 0, p < 4 ? 0 : 2, p == 1 ? 4 : p < 4 ? 5 : 7), 87 + p);
    }
    grant_round(&desk, 1);
    post_type(&desk, SGP_EVENT_TRAINED);
    settle_all(&desk);
    for (uint32_t p = 1; p < 4; p++)
        lose(&desk, p, SGP_IN);
    settle_all(&desk);
    for (uint32_t p = 4; p < 8; p++) {
        say_pulse(&desk, p, SGP_IN, pulse_of(&desk, 2, 2, 7));
        receive_as(&desk, p, 2, 7, 12);
        settle_all(&desk);
    }
    for (uint32_t p = 1; p < 4; p++) {
        greet_in(&desk, p, pulse_of(&desk, 1, 0, p == 1 ? 4 : 5), 87 + p);
        settle_all(&desk);
    }
    receive_as(&desk, 1, 0, 4, 5);
    settle_all(&desk);
    cr_assert(sgp_core_find(desk.node, 2, SGP_IN)->receiving.slot[0] != SGP_SLOT_NONE,
        "n2 is never granted");
    close_desk(&desk);
}

/* Also what came before this node had given. */
Test(window_order, what_came_early_waits_for_its_round)
{
    struct desk desk;
    open_three(&desk);
    receive_of(&desk, 2, 0); /* while this node takes its steps */
    post_type(&desk, SGP_EVENT_TRAINED);
    uint32_t absorbed = 9;
    for (uint32_t k = 0; k < 8; k++) {
        for (uint32_t i = 0; i < desk.effects.count; i++)
            if (desk.items[i].type == SGP_EFFECT_ABSORB)
                absorbed = desk.items[i].absorb.peer;
        if (find(&desk, SGP_EFFECT_PUBLISH))
            post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
        else
            post_type(&desk, SGP_EVENT_TICK);
    }
    cr_assert(eq(i64, desk.node->round, 1));
    cr_assert(eq(u32, absorbed, 9), "n2's was added although n1's has not come");
    close_desk(&desk);
}
