/* SPDX-License-Identifier: Apache-2.0 */
/* Files with one owner of the vector, or with several owners of parts. Such a file has one digraph
 * with a star around each owner. With a token it has edges from each node to the next instead.
 * Options about mixing mass are refused.
 *
 * The rules: docs/rules/owner.md, docs/rules/token.md */
#include "topology/owner.h"

/* A node's name in the file. */
static const char *said(const struct sgp_topology *topology, uint32_t node)
{
    return topology->nodes[sgp_topology_machine(topology, node)].name;
}

/* ---- ownership ---- */

static int check_parts(const struct sgp_topology *topology, uint32_t i, struct sgp_error *error)
{
    const struct sgp_topology_node *node = &topology->nodes[i];
    const struct sgp_topology_node *first = &topology->nodes[topology->owner];
    const char *name = said(topology, i);
    uint32_t last = node->own_part + node->own_part_count - 1u;
    if (node->own_part_count == 0 && node != first)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            first->own_part_count == 0
                ? "nodes %s and %s both say owns=all; the vector has one owner, or write slices=N "
                  "and owns=Q"
                : "node %s owns a part, and node %s says owns=all; each part has one owner",
            said(topology, topology->owner), name);
    if (node->own_part_count == 0 || last < topology->slices)
        return 0;
    return topology->slices > 1
               ? sgp_fail(error, SGP_E_TOPOLOGY,
                     "node %s owns part %u; with slices=%u parts are 0 to %u", name, last,
                     topology->slices, topology->slices - 1)
               : sgp_fail(error, SGP_E_TOPOLOGY,
                     "node %s owns part %u, but the digraph does not say how many parts there are; "
                     "write slices=N in it, or owns=all",
                     name, last);
}

static int find_owners(
    struct sgp_topology *topology, struct sgp_error *error, struct sgp_edge_place *ret_where)
{
    uint32_t of_part[SGP_SLICES_MAX];
    for (uint32_t q = 0; q < SGP_SLICES_MAX; q++)
        of_part[q] = SGP_NODE_NONE;
    for (uint32_t i = 0; i < topology->node_count; i++) {
        const struct sgp_topology_node *node = &topology->nodes[i];
        if (!node->owns)
            continue;
        ret_where->source = i;
        topology->owner = topology->owners++ == 0 ? i : topology->owner;
        int code = check_parts(topology, i, error);
        if (code)
            return code;
        uint32_t end = node->own_part_count > 0 ? (uint32_t)node->own_part + node->own_part_count
                                                : topology->slices;
        for (uint32_t q = node->own_part; q < end; q++) {
            if (of_part[q] != SGP_NODE_NONE)
                return sgp_fail(error, SGP_E_TOPOLOGY,
                    "nodes %s and %s both own part %u; each part has one owner",
                    said(topology, of_part[q]), said(topology, i), q);
            of_part[q] = i;
        }
    }
    ret_where->source = SGP_NODE_NONE;
    for (uint32_t q = 0; q < topology->slices && topology->owners > 0; q++)
        if (of_part[q] == SGP_NODE_NONE)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "nobody owns part %u of %u; write owns=%u at a node", q, topology->slices, q);
    return 0;
}

/* An edge carries the values of its owner. */
static void divide_edges(
    const struct sgp_topology *topology, struct sgp_edge *edges, uint32_t count)
{
    for (uint32_t e = 0; e < count; e++) {
        const struct sgp_topology_node *owner = &topology->nodes[edges[e].source];
        owner = owner->owns ? owner : &topology->nodes[edges[e].target];
        edges[e].part = owner->own_part;
        edges[e].part_count = owner->own_part_count;
    }
}

/* ---- checks ---- */

static int check_nodes(
    const struct sgp_topology *topology, struct sgp_error *error, struct sgp_edge_place *ret_where)
{
    const struct sgp_topology_node *owner = &topology->nodes[topology->owner];
    bool token = sgp_topology_has_token(topology);
    ret_where->source = topology->owner;
    if (token && owner->relay)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "node %s does not train, but where owning is a token every node does; drop its "
            "train=false",
            owner->name);
    if (token && owner->own_part_count > 0)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "node %s owns a part, but a token is of the whole vector; write owns=all", owner->name);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        const struct sgp_topology_node *node = &topology->nodes[i];
        ret_where->source = i;
        if (node->starts != SGP_STARTS_USUAL)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "node %s says starts, but weight is with who owns; leave it out", node->name);
        if (node->relay && !node->owns)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "node %s neither trains nor owns anything; leave it out, or drop its train=false",
                node->name);
    }
    ret_where->source = SGP_NODE_NONE;
    return 0;
}

/* In the order of the file, so that the token reaches all nodes. */
static int check_ring(const struct sgp_topology *topology, const struct sgp_phase *phase,
    struct sgp_error *error, struct sgp_edge_place *ret_where)
{
    for (uint32_t i = 0; i < topology->node_count && topology->node_count > 1; i++) {
        uint32_t next = (i + 1) % topology->node_count;
        ret_where->source = i;
        if (!sgp_phase_gives(phase, i, next))
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "node %s has no edge to %s, the next in the order of the file, to which it hands "
                "the token; write %s -> %s",
                topology->nodes[i].name, topology->nodes[next].name, topology->nodes[i].name,
                topology->nodes[next].name);
    }
    ret_where->source = SGP_NODE_NONE;
    return 0;
}

/* A star around each owner. */
static int check_stars(const struct sgp_topology *topology, const struct sgp_phase *phase,
    struct sgp_error *error, struct sgp_edge_place *ret_where)
{
    for (uint32_t j = 0; j < topology->node_count; j++)
        for (uint32_t i = 0; i < topology->node_count && topology->nodes[j].owns; i++) {
            bool both = sgp_phase_gives(phase, i, j) && sgp_phase_gives(phase, j, i);
            if (topology->nodes[i].owns || both)
                continue;
            ret_where->source = i;
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "node %s needs an edge to the owner %s, for updates, and one from it, for copies",
                said(topology, i), said(topology, j));
        }
    return 0;
}

static int check_edges(const struct sgp_topology *topology, const struct sgp_phase *phase,
    struct sgp_error *error, struct sgp_edge_place *ret_where)
{
    for (uint32_t e = 0; e < phase->edge_count; e++) {
        const struct sgp_edge *edge = &phase->out[e];
        ret_where->source = edge->source;
        ret_where->target = edge->target;
        const char *source = said(topology, edge->source);
        const char *target = said(topology, edge->target);
        bool from = topology->nodes[edge->source].owns, to = topology->nodes[edge->target].owns;
        if (!from && !to && !sgp_topology_has_token(topology))
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "edge %s -> %s touches no owner, so nothing would go over it; leave it out", source,
                target);
        if (from && to)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "edge %s -> %s joins two owners, so nothing would go over it; leave it out", source,
                target);
        if (!edge->usual || edge->part_count > 0)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "edge %s -> %s says fraction or slice, but what goes over it is what its owner "
                "owns; "
                "leave it out",
                source, target);
    }
    ret_where->source = ret_where->target = SGP_NODE_NONE;
    if (sgp_topology_has_token(topology))
        return check_ring(topology, phase, error, ret_where);
    return check_stars(topology, phase, error, ret_where);
}

static int check_staleness(const struct sgp_phase *phase, struct sgp_error *error)
{
    const struct sgp_staleness *staleness = &phase->staleness;
    bool compensates = staleness->damping == SGP_DAMPING_COMPENSATE;
    if (phase->backup > 0 && sgp_staleness_is_said(staleness))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s says backup, for steps that wait, and staleness, for updates that do not; "
            "leave one of them out",
            phase->name);
    if (compensates == (staleness->compensation > 0))
        return 0;
    return sgp_fail(error, SGP_E_TOPOLOGY,
        compensates
            ? "digraph %s compensates by how much; write compensation=C, lambda over the "
              "learning rate"
            : "digraph %s says compensation, and does not compensate; write staleness=compensate",
        phase->name);
}

static int check_delay(
    const struct sgp_topology *topology, const struct sgp_phase *phase, struct sgp_error *error)
{
    const struct sgp_delay *delay = &phase->delay;
    bool said = delay->mean || delay->most > 0;
    if (delay->token == SGP_TOKEN_NONE && said)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s says %s, which is for a token; write token=dynamic, or leave it out",
            phase->name, delay->mean ? "delay_mean" : "delay_max");
    if (delay->token == SGP_TOKEN_FIXED && said)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s says %s, but with token=fixed each takes one step between two arrivals of "
            "the token; "
            "leave it out, or write token=dynamic",
            phase->name, delay->mean ? "delay_mean" : "delay_max");
    if (delay->token != SGP_TOKEN_NONE &&
        (phase->backup > 0 || sgp_staleness_is_said(&phase->staleness)))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s says %s, for an owner that stays, and token, for one that does not; leave "
            "one of them out",
            phase->name, phase->backup > 0 ? "backup" : "staleness");
    if (delay->token != SGP_TOKEN_NONE && topology->owner == SGP_NODE_NONE)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s says token=%s, but nobody has it to begin with; write owns=all at a node",
            phase->name, sgp_token_name(delay->token));
    return 0;
}

static int check_phase(const struct sgp_topology *topology, const struct sgp_phase *phase,
    struct sgp_error *error, struct sgp_edge_place *ret_where)
{
    ret_where->phase = topology->phase_count > 1;
    if (topology->phase_count > 1)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "%u digraphs, but updates and copies go over the same edges in every round; write one",
            topology->phase_count);
    uint32_t workers = sgp_topology_trainers(topology);
    bool whole = topology->nodes[topology->owner].own_part_count == 0;
    if (phase->outer && sgp_topology_has_token(topology))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s says outer, and a token has no step that all wait for; leave it out",
            phase->name);
    if (topology->slices > 1 && whole)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s says slices, and an owner of all parts; leave it out, or write owns=Q at "
            "each of several",
            phase->name);
    if (phase->backup >= workers)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s: backup=%u of %u workers leaves none to wait for; take at most %u",
            phase->name, phase->backup, workers, workers - 1);
    int code = check_staleness(phase, error);
    return code ? code : check_edges(topology, phase, error, ret_where);
}

/* Refuse options that mean nothing in a file without an owner. */
static int check_unowned(const struct sgp_phase *phase, struct sgp_error *error)
{
    if (phase->backup > 0)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s: backup=%u is for a file in which a node owns the vector; write "
            "owns=all at one",
            phase->name, phase->backup);
    if (sgp_staleness_is_said(&phase->staleness))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s speaks of staleness, in a file in which no node owns the vector; write "
            "owns=all at one",
            phase->name);
    return 0;
}

int sgp_owner_check(
    struct sgp_topology *topology, struct sgp_error *error, struct sgp_edge_place *ret_where)
{
    int code = find_owners(topology, error, ret_where);
    for (uint32_t p = 0; p < topology->phase_count && !code; p++) {
        ret_where->phase = p;
        if (topology->owner == SGP_NODE_NONE)
            code = check_unowned(&topology->phases[p], error);
        if (!code)
            code = check_delay(topology, &topology->phases[p], error);
    }
    if (code || topology->owner == SGP_NODE_NONE)
        return code;
    ret_where->phase = 0;
    code = check_nodes(topology, error, ret_where);
    if (!code)
        code = check_phase(topology, &topology->phases[0], error, ret_where);
    for (uint32_t p = 0; p < topology->phase_count && !code; p++) {
        divide_edges(topology, topology->phases[p].out, topology->phases[p].edge_count);
        divide_edges(topology, topology->phases[p].in, topology->phases[p].edge_count);
    }
    return code;
}
