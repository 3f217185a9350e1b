/* SPDX-License-Identifier: Apache-2.0 */
/* The difference of two topologies: what is counted, and what is written. */
#include "node/changes.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdio.h>
#include <string.h>

static char lines[100][SGP_TEXT_BYTES];
static uint32_t line_count;

static void take_line(void *context, enum sgp_level level, const char *text)
{
    (void)context;
    (void)level;
    (void)snprintf(lines[line_count++], SGP_TEXT_BYTES, "%s", text);
}

static const struct sgp_sink sink = {.line = take_line, .level = SGP_LEVEL_INFO};

static bool told(const char *text)
{
    for (uint32_t i = 0; i < line_count; i++)
        if (strcmp(lines[i], text) == 0)
            return true;
    return false;
}

static struct sgp_topology *topology_of(const struct sgp_topology_node *nodes, uint32_t node_count)
{
    struct sgp_topology *topology;
    cr_assert(zero(int, sgp_topology_create(nodes, node_count, NULL, &topology)));
    return topology;
}

static void add_phase(struct sgp_topology *topology, const char *name, uint32_t rounds,
    const struct sgp_edge *edges, uint32_t count)
{
    cr_assert(zero(int, sgp_topology_add_phase(topology, name, rounds, false, edges, count, NULL)));
}

Test(changes, every_kind_is_told_and_counted)
{
    const struct sgp_topology_node before[] = {{"a", "h:1"}, {"b", "h:2"}, {"c", "h:3"}};
    const struct sgp_topology_node after[] = {{"d", "h:4"}, {"b", "h:9"}, {"a", "h:1"}};
    struct sgp_topology *former = topology_of(before, 3), *topology = topology_of(after, 3);
    add_phase(
        former, "ring", 1, (const struct sgp_edge[]){{0, 1, 0.5}, {1, 2, 0.5}, {2, 0, 0.5}}, 3);
    add_phase(topology, "ring", 2, (const struct sgp_edge[]){{2, 1, 0.25}, {1, 0, 0.5}}, 2);
    add_phase(topology, "back", 1, (const struct sgp_edge[]){{0, 2, 0.5}}, 1);
    cr_assert(zero(int, sgp_topology_seal(former, NULL)));
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    struct view_reload reload;
    changes_tell(former, topology, &sink, &reload);
    cr_assert(eq(u64, reload.digest, topology->digest));
    cr_assert(eq(u32, reload.nodes, 3));
    cr_assert(eq(u32, reload.phases, 2));
    cr_assert(eq(u32, reload.nodes_added, 1));
    cr_assert(eq(u32, reload.nodes_removed, 1));
    cr_assert(eq(u32, reload.addresses_changed, 1));
    cr_assert(eq(u32, reload.phases_changed, 2));
    cr_assert(eq(u64, reload.edges_added, 2));
    cr_assert(eq(u64, reload.edges_removed, 2));
    cr_assert(eq(u64, reload.fractions_changed, 1));
    cr_assert(told("event=topology change=node_added name=d address=h:4"));
    cr_assert(told("event=topology change=node_removed name=c"));
    cr_assert(told("event=topology change=address name=b from=h:2 to=h:9"));
    cr_assert(told("event=topology change=phase phase=ring rounds=2"));
    cr_assert(told("event=topology change=phase_added phase=back rounds=1"));
    cr_assert(told("event=topology change=edge_removed phase=ring source=b target=c fraction=0.5"));
    cr_assert(told("event=topology change=edge_added phase=ring source=b target=d fraction=0.5"));
    cr_assert(told("event=topology change=edge_added phase=back source=d target=a fraction=0.5"));
    cr_assert(told("event=topology change=fraction phase=ring source=a target=b fraction=0.25"));
    cr_assert(eq(u32, line_count, 10));
    sgp_topology_destroy(former);
    sgp_topology_destroy(topology);
}

Test(changes, the_same_in_another_order_is_no_change)
{
    const struct sgp_topology_node before[] = {{"a", "h:1"}, {"b", "h:2"}};
    const struct sgp_topology_node after[] = {{"b", "h:2"}, {"a", "h:1"}};
    struct sgp_topology *former = topology_of(before, 2), *topology = topology_of(after, 2);
    add_phase(former, "p", 1, (const struct sgp_edge[]){{0, 1, 0.5}, {1, 0, 0.25}}, 2);
    add_phase(topology, "p", 1, (const struct sgp_edge[]){{0, 1, 0.25}, {1, 0, 0.5}}, 2);
    struct view_reload reload;
    changes_tell(former, topology, &sink, &reload);
    cr_assert(zero(u32, line_count));
    cr_assert(zero(u64, reload.edges_added + reload.edges_removed + reload.fractions_changed));
    sgp_topology_destroy(former);
    sgp_topology_destroy(topology);
}

Test(changes, many_are_counted_and_not_all_written)
{
    struct sgp_topology_node nodes[80] = {0};
    for (int i = 0; i < 80; i++)
        (void)snprintf(nodes[i].name, sizeof nodes[i].name, "n%d", i);
    struct sgp_topology *former = topology_of(nodes, 1), *topology = topology_of(nodes, 80);
    struct view_reload reload;
    changes_tell(former, topology, &sink, &reload);
    cr_assert(eq(u32, reload.nodes_added, 79));
    cr_assert(eq(u32, line_count, CHANGES_LINES_MAX + 1));
    cr_assert(told("event=topology more_changes=29"));
    sgp_topology_destroy(former);
    sgp_topology_destroy(topology);
}

Test(changes, keys_and_tls)
{
    struct sgp_topology_node nodes[] = {{"a", "h:1"}, {"b", "h:2"}};
    (void)snprintf(nodes[0].keys[0], SGP_KEY_BYTES, "SHA256:%043d", 0);
    (void)snprintf(nodes[1].keys[0], SGP_KEY_BYTES, "SHA256:%042d4", 0);
    struct sgp_topology *former = topology_of(nodes, 2);
    nodes[0].keys[0][SGP_KEY_BYTES - 2] = 'g';
    struct sgp_topology *topology = topology_of(nodes, 2);
    const struct sgp_phase_options options = {.name = "p", .rounds = 1, .tls = SGP_TLS_REQUIRE};
    add_phase(former, "p", 1, (const struct sgp_edge[]){{0, 1, 0.5}}, 1);
    cr_assert(zero(int,
        sgp_topology_add(topology, &options, (const struct sgp_edge[]){{0, 1, 0.5}}, 1, NULL)));
    cr_assert(zero(int, sgp_topology_seal(former, NULL)));
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    struct view_reload reload;
    changes_tell(former, topology, &sink, &reload);
    cr_assert(eq(u32, reload.keys_changed, 1));
    cr_assert(told("event=topology change=key name=a from=\"SHA256:"
                   "0000000000000000000000000000000000000000000\" to=\"SHA256:"
                   "000000000000000000000000000000000000000000g\""));
    cr_assert(told("event=topology change=tls from=off to=require"));
    cr_assert(eq(u32, line_count, 2));
    cr_assert(eq(u64, former->digest, topology->digest));
    sgp_topology_destroy(former);
    sgp_topology_destroy(topology);
}

Test(changes, a_version)
{
    static const struct sgp_topology_node nodes[] = {{"a", "h:1"}, {"b", "h:2"}};
    const struct sgp_phase_options later = {.name = "p", .rounds = 1, .version = 5},
                                   earlier = {.name = "p", .rounds = 1, .version = 3};
    const struct sgp_edge edge = {0, 1, 0.5};
    struct sgp_topology *former = topology_of(nodes, 2), *topology = topology_of(nodes, 2);
    cr_assert(zero(int, sgp_topology_add(former, &later, &edge, 1, NULL)));
    cr_assert(zero(int, sgp_topology_add(topology, &earlier, &edge, 1, NULL)));
    cr_assert(zero(int, sgp_topology_seal(former, NULL)));
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    struct view_reload reload;
    changes_tell(former, topology, &sink, &reload);
    cr_assert(told("event=topology change=version from=5 to=3"));
    cr_assert(eq(u32, line_count, 1));
    cr_assert(eq(u64, former->digest, topology->digest));
    sgp_topology_destroy(former);
    sgp_topology_destroy(topology);
}
