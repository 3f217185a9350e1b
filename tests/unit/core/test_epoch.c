/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs where the topology file has no exact cycle: whose word begins the node again, and how often. */
#include "core_desk.h"

/* A neighbour's pulse with an epoch, as one with this file says it. */
static struct sgp_pulse pulse_of(const struct desk *desk, sgp_round round, uint64_t number)
{
    struct sgp_pulse pulse = pulse_at(round, round);
    pulse.epoch =
        (struct sgp_epoch){.number = number, .start = round, .topology = desk->topology->digest};
    return pulse;
}

/* An epoch that no file explains. The share that names it is added all the same. */
Test(epoch, one_neighbour_begins_nothing_again_where_no_file_has_exact_cycles)
{
    struct desk desk;
    open_pair(&desk);
    for (uint64_t number = 1; number <= 5; number++)
        say_pulses(&desk, 1, pulse_of(&desk, 0, number));
    struct sgp_message share = share_of(1, 0, 1);
    share.pulse.epoch = pulse_of(&desk, 0, 6).epoch;
    say(&desk, 1, SGP_IN, share);
    deliver(&desk, 1, 0);
    grant(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert_null(find_note(&desk, SGP_NOTE_RENEWED));
    cr_assert(eq(i64, status_of(&desk).round, 1));
    cr_assert(zero(u64, status_of(&desk).cycles_renewed));
    cr_assert(zero(u64, status_of(&desk).epoch.number));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    const struct sgp_effect *beat = find_sent(&desk, SGP_SHARE, 1);
    cr_assert_not_null(beat);
    cr_assert(zero(u64, beat->send.message.pulse.epoch.number));
    cr_assert(zero(u64, beat->send.message.pulse.epoch.topology));
    close_desk(&desk);
}

/* The fleet had exact cycles while this node missed two reloads. */
Test(epoch, two_neighbours_that_name_one_begin_a_node_again_once)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    post_type(&desk, SGP_EVENT_TRAINED);
    say_pulses(&desk, 1, pulse_of(&desk, 0, 4));
    cr_assert(zero(u64, status_of(&desk).cycles_renewed));
    say_pulses(&desk, 2, pulse_of(&desk, 0, 3));
    cr_assert(eq(u64, status_of(&desk).epoch.number, 3), "the higher one is one's alone");
    say_pulses(&desk, 2, pulse_of(&desk, 0, 3));
    cr_assert(eq(u64, status_of(&desk).cycles_renewed, 1));
    close_desk(&desk);
}

/* A share of n1 and n2 each, of round 0 and epoch 4. */
static void give_in_epoch(struct desk *desk, uint32_t peer)
{
    struct sgp_message share = share_of(1, 0, 1);
    share.pulse.epoch = pulse_of(desk, 0, 4).epoch;
    say(desk, peer, SGP_IN, share);
    deliver(desk, peer, 0);
    const struct sgp_effect *ack = find_sent(desk, SGP_ACK, peer);
    cr_assert_not_null(ack);
    cr_assert(eq(int, ack->send.message.ack.reason, SGP_REASON_NONE));
}

/* The node's step ends, the epoch is in force, and the accepted share of n1 still counts: of the weight 1, n0 gives a
 * quarter to each neighbour, and each brings a half. */
static void expect_kept(struct desk *desk)
{
    post_type(desk, SGP_EVENT_TRAINED);
    const struct sgp_effect *renewed = find_note(desk, SGP_NOTE_RENEWED);
    cr_assert_not_null(renewed);
    cr_assert(eq(u64, status_of(desk).epoch.number, 4));
    cr_assert(eq(dbl, renewed->note.amount, 0), "%g", renewed->note.amount);
    cr_assert_null(find(desk, SGP_EFFECT_ABSORB));
    cr_assert(eq(dbl, status_of(desk).weight, 1.5));
    give_to_two(desk);
    give_in_epoch(desk, 2);
    const struct sgp_effect *absorb = find(desk, SGP_EFFECT_ABSORB);
    cr_assert_not_null(absorb);
    cr_assert(eq(u32, absorb->absorb.peer, 1));
    cr_assert(eq(dbl, status_of(desk).weight, 1.5));
    cr_assert(eq(i64, status_of(desk).round, 1));
}

/* The share comes after the node has heard of the epoch, and before a step under way lets the node begin that. Its source has begun
 * the epoch already, and gives nothing again. */
Test(epoch, a_share_of_an_epoch_that_a_step_holds_up_is_kept)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    say_pulses(&desk, 1, pulse_of(&desk, 0, 4));
    say_pulses(&desk, 2, pulse_of(&desk, 0, 4));
    cr_assert(zero(u64, status_of(&desk).cycles_renewed), "a step is under way");
    give_in_epoch(&desk, 1);
    expect_kept(&desk);
    close_desk(&desk);
}

/* The share comes when one neighbour alone has named the epoch. A second one names it before the share is absorbed. */
Test(epoch, a_share_of_an_epoch_that_is_seconded_later_is_kept)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    give_in_epoch(&desk, 1);
    say_pulses(&desk, 2, pulse_of(&desk, 0, 4));
    expect_kept(&desk);
    close_desk(&desk);
}

/* ---- an order to begin again ---- */

static void order(struct desk *desk, sgp_round start)
{
    post(desk, (struct sgp_event){.type = SGP_EVENT_RENEW, .bytes = (uint64_t)start});
}

/* n0 has weight 1/2 and owes as much. The order comes with the end of its step. */
Test(epoch, an_order_begins_gossip_again_with_weight_1)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1)); /* so n0 comes to its next step */
    deliver(&desk, 1, 0);
    cr_assert(eq(i64, status_of(&desk).round, 1));
    desk.now += SGP_MILLISECOND;
    order(&desk, 10);
    cr_assert(eq(i64, status_of(&desk).round, 1), "a step is under way");
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_RENEWED));
    cr_assert(eq(i64, status_of(&desk).round, 10));
    cr_assert(eq(u64, status_of(&desk).epoch.number, 1));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(zero(dbl, status_of(&desk).weight_in_flight));
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN));
    order(&desk, 10); /* once more */
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(u64, status_of(&desk).cycles_renewed, 1));
    close_desk(&desk);
}

/* n1 gets the order later, and states no epoch. Its share of before is not added to the weights that begin; it returns. */
Test(epoch, what_was_given_before_an_order_returns)
{
    struct desk desk;
    open_pair(&desk);
    order(&desk, 10);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(i64, status_of(&desk).round, 10));
    const enum sgp_reason reasons[] = {SGP_REASON_CHANGED, SGP_REASON_NONE};
    for (uint64_t k = 0; k < 2; k++) {
        const sgp_round round = k == 0 ? 0 : 10;
        say_pulses(&desk, 1, pulse_at(round, round));
        say(&desk, 1, SGP_IN, share_of(k + 1, round, round + 1));
        deliver(&desk, 1, 0);
        const struct sgp_effect *ack = find_sent(&desk, SGP_ACK, 1);
        cr_assert(ack != NULL, "share %u has no credit", (unsigned)k);
        cr_assert(eq(int, ack->send.message.ack.reason, reasons[k]), "share %u", (unsigned)k);
    }
    close_desk(&desk);
}

/* The rounds of nodes have nothing in common, or a node gives before its step; or cycles begin with weight 1 anyway. */
Test(epoch, under_other_methods_an_order_changes_nothing)
{
    static const char *const methods[] = {"osgp", "agp", "dpsgd", "adpsgd"};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        struct desk desk;
        struct sgp_topology *topology = pair();
        struct sgp_node_config config = config_of(topology);
        config.method = sgp_method_find(methods[m]);
        open_desk(&desk, topology, config);
        greet_pair(&desk);
        order(&desk, 10);
        post_type(&desk, SGP_EVENT_TICK);
        cr_assert(zero(u64, desk.node->exact.heard.number), "%s", methods[m]);
        cr_assert(zero(u32, desk.node->exact.heeds), "%s", methods[m]);
        close_desk(&desk);
    }
}

static struct sgp_topology *pair_with_exact_cycles(void)
{
    static const struct sgp_topology_node names[] = {{.name = "n0"}, {.name = "n1"}};
    static const struct sgp_edge up[] = {{1, 0, 1}}, down[] = {{0, 1, 0.5}};
    struct sgp_topology *topology;
    cr_assert(zero(int, sgp_topology_create(names, 2, NULL, &topology)));
    cr_assert(zero(int, sgp_topology_add_phase(topology, "up", 1, false, up, 1, NULL)));
    cr_assert(
        zero(int, sgp_topology_add(topology,
                      &(struct sgp_phase_options){.name = "down", .rounds = 1, .exchanges = true},
                      down, 1, NULL)));
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    cr_assert(sgp_topology_has_exact(topology));
    return topology;
}

/* After exact cycles each node takes the next epoch when it reloads, and a node in between passes that on. That is twice as many
 * as there are nodes, and no more. */
Test(epoch, after_exact_cycles_a_neighbour_begins_a_node_again_so_often_and_no_more)
{
    struct desk desk;
    struct sgp_topology *exact = pair_with_exact_cycles(), *gossip = pair();
    open_desk(&desk, exact, config_of(exact));
    greet_pair(&desk);
    struct sgp_node_change change = {.topology = gossip, .self = 0, .weight_least = 0.5};
    struct sgp_node_needs needs;
    struct sgp_reload *reload;
    cr_assert(zero(int, sgp_reload_prepare(desk.node, &change, &needs, &reload)));
    sgp_node_reload(desk.node, desk.now, reload, &desk.effects);
    desk.topology = gossip;
    post_type(&desk, SGP_EVENT_TICK);
    for (uint64_t number = 2; number <= 20; number++) {
        say_pulses(&desk, 1, pulse_of(&desk, 0, number));
        if (desk.node->stage == SGP_STAGE_TRAIN)
            post_type(&desk, SGP_EVENT_TRAINED);
    }
    cr_assert(eq(u64, status_of(&desk).cycles_renewed, 4));
    sgp_topology_destroy(exact);
    close_desk(&desk);
}

static struct sgp_topology *pair_that_gives_less(void)
{
    static const struct sgp_edge both[] = {{0, 1, 0.25}, {1, 0, 0.25}};
    const struct sgp_edge *edges[] = {both};
    const uint32_t counts[] = {2};
    return topology_of(2, 1, edges, counts);
}

/* The epoch that n0 names. It had the file `former`, and comes back with another one, which has no
 * exact cycles. */
static struct sgp_epoch epoch_after(struct sgp_topology *former)
{
    struct desk desk;
    struct sgp_record_link links[2];
    struct sgp_record record = {.link_capacity = 2, .links = links};
    open_desk(&desk, former, config_of(former));
    greet_pair(&desk);
    sgp_node_record(desk.node, &record);
    cr_assert(sgp_record_is_sound(&record, 2));
    desk.topology = pair_that_gives_less();
    begin_again_from(&desk, &record);
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    const struct sgp_effect *welcome = find_sent(&desk, SGP_WELCOME, 1);
    cr_assert_not_null(welcome);
    struct sgp_epoch epoch = welcome->send.message.pulse.epoch;
    close_desk(&desk);
    sgp_topology_destroy(former);
    return epoch;
}

/* A restart under another file is as a reload. If neither file has exact cycles, there are no epochs,
 * and neighbours with the former file count the same rounds. */
Test(epoch, a_restart_under_another_file_follows_epochs_only_after_exact_cycles)
{
    cr_assert(zero(u64, epoch_after(pair()).topology));
    cr_assert(not(zero(u64, epoch_after(pair_with_exact_cycles()).topology)));
}
