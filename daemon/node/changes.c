/* SPDX-License-Identifier: Apache-2.0 */
/* The difference of two topologies; see changes.h. */
#include "changes.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct teller {
    const struct sgp_sink *sink;
    uint32_t lines; /* number of lines so far, logged or not */
    struct view_reload *reload;
};

static void SGP_PRINTF(2, 3) tell(struct teller *teller, const char *format, ...)
{
    char text[SGP_TEXT_BYTES];
    if (teller->lines++ >= CHANGES_LINES_MAX)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sgp_log(teller->sink, SGP_LEVEL_INFO, "event=topology change=%s", text);
}

static void compare_nodes(
    struct teller *teller, const struct sgp_topology *former, const struct sgp_topology *topology)
{
    for (uint32_t i = 0; i < former->node_count; i++) {
        const struct sgp_topology_node *node = &former->nodes[i];
        int64_t now = sgp_topology_find(topology, node->name);
        if (now < 0) {
            teller->reload->nodes_removed++;
            tell(teller, "node_removed name=%s", node->name);
            continue;
        }
        if (strcmp(node->address, topology->nodes[now].address) != 0) {
            teller->reload->addresses_changed++;
            tell(teller, "address name=%s from=%s to=%s", node->name, node->address,
                topology->nodes[now].address);
        }
        if (memcmp(node->keys, topology->nodes[now].keys, sizeof node->keys) != 0) {
            char from[SGP_KEYS_BYTES], to[SGP_KEYS_BYTES];
            sgp_topology_keys_text(former, i, from);
            sgp_topology_keys_text(topology, (uint32_t)now, to);
            teller->reload->keys_changed++;
            tell(teller, "key name=%s from=\"%s\" to=\"%s\"", node->name, from, to);
        }
    }
    for (uint32_t i = 0; i < topology->node_count; i++) {
        const struct sgp_topology_node *node = &topology->nodes[i];
        if (sgp_topology_find(former, node->name) >= 0)
            continue;
        teller->reload->nodes_added++;
        tell(teller, "node_added name=%s address=%s", node->name, node->address);
    }
}

/* The edge of `phase` between the nodes that have the same names as those of `edge` in another
 * topology. */
static const struct sgp_edge *find_edge(const struct sgp_topology *topology,
    const struct sgp_phase *phase, const struct sgp_topology *other, const struct sgp_edge *edge)
{
    int64_t source = sgp_topology_find(topology, other->nodes[edge->source].name);
    int64_t target = sgp_topology_find(topology, other->nodes[edge->target].name);
    uint32_t count = 0;
    const struct sgp_edge *edges =
        source >= 0 && target >= 0 ? sgp_phase_out(phase, (uint32_t)source, &count) : NULL;
    for (uint32_t low = 0, high = count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (edges[middle].target == (uint32_t)target)
            return &edges[middle];
        if (edges[middle].target < (uint32_t)target)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void tell_edge(struct teller *teller, const char *change,
    const struct sgp_topology *topology, const struct sgp_phase *phase, const struct sgp_edge *edge)
{
    char parts[32] = "";
    if (edge->part_count > 0)
        (void)snprintf(
            parts, sizeof parts, " slice=%u-%u", edge->part, edge->part + edge->part_count - 1u);
    tell(teller, "%s phase=%s source=%s target=%s fraction=%.17g%s", change, phase->name,
        topology->nodes[edge->source].name, topology->nodes[edge->target].name, edge->fraction,
        parts);
}

/* Either phase may be missing. */
static void compare_edges(struct teller *teller, const struct sgp_topology *former,
    const struct sgp_phase *before, const struct sgp_topology *topology,
    const struct sgp_phase *after)
{
    bool mixes = topology->owner == SGP_NODE_NONE; /* with an owner, fractions mean nothing */
    for (uint32_t i = 0; before != NULL && i < before->edge_count; i++) {
        const struct sgp_edge *edge = &before->out[i];
        const struct sgp_edge *now =
            after != NULL ? find_edge(topology, after, former, edge) : NULL;
        if (now == NULL) {
            teller->reload->edges_removed++;
            tell_edge(teller, "edge_removed", former, before, edge);
        } else if ((mixes && fabs(now->fraction - edge->fraction) > 0) || now->part != edge->part ||
                   now->part_count != edge->part_count) {
            teller->reload->fractions_changed++;
            tell_edge(teller, "fraction", topology, after, now);
        }
    }
    for (uint32_t i = 0; after != NULL && i < after->edge_count; i++) {
        const struct sgp_edge *edge = &after->out[i];
        if (before != NULL && find_edge(former, before, topology, edge) != NULL)
            continue;
        teller->reload->edges_added++;
        tell_edge(teller, "edge_added", topology, after, edge);
    }
}

static void compare_phases(
    struct teller *teller, const struct sgp_topology *former, const struct sgp_topology *topology)
{
    for (uint32_t p = 0; p < former->phase_count || p < topology->phase_count; p++) {
        const struct sgp_phase *before = p < former->phase_count ? &former->phases[p] : NULL;
        const struct sgp_phase *after = p < topology->phase_count ? &topology->phases[p] : NULL;
        sgp_assert(before != NULL || after != NULL);
        bool same = before != NULL && after != NULL && before->rounds == after->rounds &&
                    before->once == after->once && before->exchanges == after->exchanges &&
                    before->outer == after->outer &&
                    (!before->once || former->repeat == topology->repeat);
        if (!same) {
            teller->reload->phases_changed++;
            tell(teller, "%s phase=%s rounds=%u",
                before == NULL  ? "phase_added"
                : after == NULL ? "phase_removed"
                                : "phase",
                after != NULL ? after->name : before->name,
                after != NULL ? after->rounds : before->rounds);
        }
        compare_edges(teller, former, before, topology, after);
    }
}

void changes_tell(const struct sgp_topology *former, const struct sgp_topology *topology,
    const struct sgp_sink *sink, struct view_reload *ret_reload)
{
    *ret_reload = (struct view_reload){
        .digest = topology->digest, .nodes = topology->node_count, .phases = topology->phase_count};
    struct teller teller = {.sink = sink, .reload = ret_reload};
    compare_nodes(&teller, former, topology);
    if (former->tls != topology->tls)
        tell(&teller, "tls from=%s to=%s", sgp_tls_name(former->tls), sgp_tls_name(topology->tls));
    if (former->version != topology->version)
        tell(&teller, "version from=%" PRIu64 " to=%" PRIu64, former->version, topology->version);
    compare_phases(&teller, former, topology);
    if (teller.lines > CHANGES_LINES_MAX)
        sgp_log(sink, SGP_LEVEL_INFO, "event=topology more_changes=%u",
            teller.lines - CHANGES_LINES_MAX);
}
