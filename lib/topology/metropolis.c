/* SPDX-License-Identifier: Apache-2.0 */
/* Metropolis weights, with which an undirected graph averages without push-sum weights. */
#include "sgp/topology.h"
#include "topology/agreement.h"

#include <math.h>

#define FRACTION_SLACK 1e-9 /* tolerance between the two directions of an edge */

static uint32_t degree(const struct sgp_phase *phase, uint32_t node)
{
    return phase->out_first[node + 1] - phase->out_first[node];
}

static const struct sgp_edge *find_edge(
    const struct sgp_phase *phase, uint32_t source, uint32_t target)
{
    for (uint32_t e = phase->out_first[source]; e < phase->out_first[source + 1]; e++)
        if (phase->out[e].target == target)
            return &phase->out[e];
    return NULL;
}

static void weigh(const struct sgp_phase *phase, struct sgp_edge *edge)
{
    uint32_t own = degree(phase, edge->source), other = degree(phase, edge->target);
    edge->fraction = 1.0 / (1.0 + (double)(own > other ? own : other));
}

/* The edge without an equal reverse, or NULL. */
static const struct sgp_edge *find_asymmetry(const struct sgp_phase *phase)
{
    for (uint32_t e = 0; e < phase->edge_count; e++) {
        const struct sgp_edge *edge = &phase->out[e];
        const struct sgp_edge *back = find_edge(phase, edge->target, edge->source);
        if (back == NULL || fabs(back->fraction - edge->fraction) > FRACTION_SLACK)
            return edge;
    }
    return NULL;
}

/* A Metropolis weight is at most the default that it replaces, so no column exceeds 1. */
int sgp_topology_metropolis(
    struct sgp_topology *topology, struct sgp_error *error, struct sgp_edge_place *ret_culprit)
{
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        struct sgp_phase *phase = &topology->phases[p];
        for (uint32_t e = 0; e < phase->edge_count; e++) {
            if (phase->out[e].usual)
                weigh(phase, &phase->out[e]);
            if (phase->in[e].usual)
                weigh(phase, &phase->in[e]);
        }
        const struct sgp_edge *odd = find_asymmetry(phase);
        if (odd == NULL)
            continue;
        if (ret_culprit != NULL)
            *ret_culprit = (struct sgp_edge_place){p, odd->source, odd->target};
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s: edge %s -> %s has no reverse of the same fraction; this method "
            "wants a symmetric topology, such as bidirectional-ring, or choose sgp",
            phase->name, topology->nodes[odd->source].name, topology->nodes[odd->target].name);
    }
    int code = sgp_agreement_find(topology);
    return code < 0 ? sgp_fail(error, code, "no memory for %u nodes", topology->node_count) : 0;
}
