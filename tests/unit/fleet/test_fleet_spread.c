/* SPDX-License-Identifier: Apache-2.0 */
/* How rows spread over many nodes, in virtual time: how soon, in how many bytes, and over a cut. */
#include "fleet_net.h"

#include <criterion/criterion.h>
#include <assertions.h>

/* The time until all nodes know a new round of this author, in steps of the simulation. */
static sgp_time spread(struct net *net, uint32_t author, sgp_time most)
{
    const sgp_time began = net->now;
    net->rounds[author] += 1000;
    net_tell(net, author);
    while (!net_all_know(net, author, net->rounds[author]) && net->now - began < most)
        net_step(net);
    return net->now - began;
}

static struct net exponential(uint32_t count, uint32_t authors)
{
    struct net net;
    uint32_t edge_count, *edges = net_exponential(count, &edge_count);
    net_init(&net, count, authors, edges, edge_count);
    free(edges);
    return net;
}

static uint64_t greatest_second(const struct net *net)
{
    uint64_t most = 0;
    for (uint32_t e = 0; e < net->end_count; e++)
        most = net->ends[e].second_most > most ? net->ends[e].second_most : most;
    return most;
}

Test(fleet_spread, in_a_ring_of_twelve_a_change_is_everywhere_within_five_seconds)
{
    struct net net;
    uint32_t edges[24];
    for (uint32_t i = 0; i < 12; i++) {
        edges[2 * i] = i;
        edges[2 * i + 1] = (i + 1) % 12;
    }
    net_init(&net, 12, 12, edges, 12);
    net_run(&net, 10 * SGP_SECOND);
    for (uint32_t author = 0; author < 12; author++)
        cr_assert(le(i64, spread(&net, author, 20 * SGP_SECOND), 4 * SGP_SECOND));
    net_finish(&net);
}

Test(fleet_spread, a_hundred_nodes_send_at_most_16_kib_a_second_over_a_link)
{
    struct net net = exponential(100, 100);
    net_run(&net, 20 * SGP_SECOND);
    for (uint32_t author = 0; author < 100; author += 33)
        cr_assert(le(i64, spread(&net, author, 20 * SGP_SECOND), 5 * SGP_SECOND));
    cr_assert(le(u64, greatest_second(&net), 16384));
    net_finish(&net);
}

/* One offer a turn, an answer to it, and the rows, in more than one turn if they are many. */
Test(fleet_spread, sends_of_a_node_do_not_grow_with_its_links)
{
    enum { COUNT = 24, SECONDS = 10 };
    struct net net;
    uint32_t edges[2 * COUNT * (COUNT - 1)], used = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t hop = 1; hop < COUNT; hop++) {
            edges[used++] = i;
            edges[used++] = (i + hop) % COUNT;
        }
    net_init(&net, COUNT, COUNT, edges, used / 2);
    net_run(&net, 10 * SGP_SECOND);
    net.bursts = 0;
    net_run(&net, SECONDS * SGP_SECOND);
    cr_assert(le(u64, net.bursts, 5 * SECONDS * SGP_SECOND / NET_TICK * COUNT));
    cr_assert(ge(u64, net.bursts, SECONDS * COUNT));
    for (uint32_t author = 0; author < COUNT; author += 7)
        cr_assert(le(i64, spread(&net, author, 20 * SGP_SECOND), 3 * SGP_SECOND));
    net_finish(&net);
}

/* Two halves of a star of stars, joined by one link. */
Test(fleet_spread, a_cut_shows_ages_and_all_agree_soon_after_it_has_healed)
{
    enum { COUNT = 12, BRIDGE = COUNT - 2 };
    struct net net;
    uint32_t edges[2 * (BRIDGE + 1)], used = 0;
    for (uint32_t i = 1; i < COUNT / 2; i++) {
        edges[used++] = 0;
        edges[used++] = i;
        edges[used++] = COUNT / 2;
        edges[used++] = COUNT / 2 + i;
    }
    edges[used++] = 0;
    edges[used++] = COUNT / 2;
    net_init(&net, COUNT, COUNT, edges, BRIDGE + 1);
    net_run(&net, 10 * SGP_SECOND);
    struct net_end *near = NULL, *far = NULL;
    for (uint32_t e = net.first_end[0]; e < net.first_end[1]; e++)
        if (net.ends[net.ends[e].peer_end].node == COUNT / 2)
            near = &net.ends[e];
    far = &net.ends[near->peer_end];
    near->cut = far->cut = true;
    net_run(&net, 30 * SGP_SECOND);
    const struct sgp_fleet_view far_off = sgp_fleet_look(net.fleets[1], COUNT - 1, net.now);
    cr_assert(far_off.stale && far_off.age > 28 * SGP_SECOND && far_off.age < 33 * SGP_SECOND);
    cr_assert(not(sgp_fleet_look(net.fleets[1], 2, net.now).stale));
    near->cut = far->cut = false; /* a new connection, whose ends know nothing of the former one */
    sgp_fleet_close(near->link);
    sgp_fleet_close(far->link);
    near->link = sgp_fleet_open(net.fleets[near->node], net.now);
    far->link = sgp_fleet_open(net.fleets[far->node], net.now);
    net_run(&net, 4 * SGP_SECOND);
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t author = 0; author < COUNT; author++)
            cr_assert(le(i64, sgp_fleet_look(net.fleets[i], author, net.now).age, 4 * SGP_SECOND));
    net_finish(&net);
}

/* All rows come to a node that comes last, over one link, and no more bytes than it takes. */
Test(fleet_spread, a_node_that_comes_late_gets_all_rows)
{
    struct net net = exponential(64, 64);
    for (uint32_t e = net.first_end[63]; e < net.first_end[64]; e++)
        net.ends[e].cut = net.ends[net.ends[e].peer_end].cut = true;
    net_run(&net, 20 * SGP_SECOND);
    sgp_fleet_destroy(net.fleets[63]);
    net.fleets[63] = net_fleet(&net, 63, NET_SECONDS + 20);
    for (uint32_t e = net.first_end[63]; e < net.first_end[64]; e++) {
        struct net_end *end = &net.ends[e], *peer = &net.ends[end->peer_end];
        sgp_fleet_close(peer->link);
        end->link = sgp_fleet_open(net.fleets[63], net.now);
        peer->link = sgp_fleet_open(net.fleets[peer->node], net.now);
        end->cut = peer->cut = false;
    }
    const sgp_time began = net.now;
    struct sgp_fleet_row row;
    uint32_t known = 0;
    while (known < 64 && net.now - began < 30 * SGP_SECOND) {
        net_step(&net);
        for (known = 0; known < 64 && net_knows(&net, 63, known, &row);)
            known++;
    }
    cr_assert(le(i64, net.now - began, 5 * SGP_SECOND));
    net_finish(&net);
}
