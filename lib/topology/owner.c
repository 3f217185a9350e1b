/* SPDX-License-Identifier: Apache-2.0 */
/* Files with an owner: one digraph, a star around it, or where owning is a token edges from each node to the next; and
 * nothing that is about mixing mass.
 * The rules: docs/rules/owner.md, docs/rules/token.md */
#include "topology/owner.h"

static int find_owner(struct sgp_topology *topology, struct sgp_error *error)
{
    for (uint32_t i = 0; i < topology->node_count; i++) {
        if (!topology->nodes[i].owns)
            continue;
        if (topology->owner != SGP_NODE_NONE)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "nodes %s and %s both say owns=all; the vector has one owner",
                topology->nodes[topology->owner].name, topology->nodes[i].name);
        topology->owner = i;
    }
    return 0;
}

static int check_nodes(const struct sgp_topology *topology, struct sgp_error *error)
{
    const struct sgp_topology_node *owner = &topology->nodes[topology->owner];
    bool token = sgp_topology_has_token(topology);
    if (token && owner->relay)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "node %s does not train, but where owning is a token every node does; drop its "
            "train=false",
            owner->name);
    if (!token && !owner->relay)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "node %s owns the vector, and trains; write train=false beside owns=all", owner->name);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        const struct sgp_topology_node *node = &topology->nodes[i];
        if (node->starts != SGP_STARTS_USUAL)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "node %s says starts, but weight is with the owner %s alone; leave it out",
                node->name, owner->name);
        if (node->relay && node != owner)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "node %s neither trains nor owns anything; leave it out, or drop its train=false",
                node->name);
    }
    return 0;
}

/* In the order of the file, so that the token comes to all. */
static int check_ring(
    const struct sgp_topology *topology, const struct sgp_phase *phase, struct sgp_error *error)
{
    for (uint32_t i = 0; i < topology->node_count && topology->node_count > 1; i++) {
        uint32_t next = (i + 1) % topology->node_count, count;
        const struct sgp_edge *edges = sgp_phase_out(phase, i, &count);
        bool there = false;
        for (uint32_t e = 0; e < count; e++)
            there = there || edges[e].target == next;
        if (!there)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "node %s has no edge to %s, the next in the order of the file, to which it hands "
                "the token; write %s -> %s",
                topology->nodes[i].name, topology->nodes[next].name, topology->nodes[i].name,
                topology->nodes[next].name);
    }
    return 0;
}

static int check_edges(
    const struct sgp_topology *topology, const struct sgp_phase *phase, struct sgp_error *error)
{
    const char *owner = topology->nodes[topology->owner].name;
    for (uint32_t e = 0; e < phase->edge_count; e++) {
        const struct sgp_edge *edge = &phase->out[e];
        const char *source = topology->nodes[edge->source].name;
        const char *target = topology->nodes[edge->target].name;
        bool touches = edge->source == topology->owner || edge->target == topology->owner;
        if (!touches && !sgp_topology_has_token(topology))
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "edge %s -> %s does not touch the owner %s, so nothing would go over it; leave it "
                "out",
                source, target, owner);
        if (!edge->usual || edge->part_count > 0)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "edge %s -> %s says fraction or slice, but updates and copies are whole; leave it "
                "out",
                source, target);
    }
    if (sgp_topology_has_token(topology))
        return check_ring(topology, phase, error);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        uint32_t out, in;
        (void)sgp_phase_out(phase, i, &out);
        (void)sgp_phase_in(phase, i, &in);
        if (i != topology->owner && (out == 0 || in == 0))
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "node %s needs an edge to the owner %s, for updates, and one from it, for copies",
                topology->nodes[i].name, owner);
    }
    return 0;
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
            "digraph %s says %s, but with token=fixed each takes one step between two visits; "
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

static int check_phase(
    const struct sgp_topology *topology, const struct sgp_phase *phase, struct sgp_error *error)
{
    if (topology->phase_count > 1)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "%u digraphs, but updates and copies go over the same edges in every round; write one",
            topology->phase_count);
    if (phase->outer || topology->slices > 1)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s says %s, which is for nodes that average; leave it out beside an owner",
            phase->name, phase->outer ? "outer" : "slices");
    if (phase->backup + 1 >= topology->node_count)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s: backup=%u of %u workers leaves none to wait for; take at most %u",
            phase->name, phase->backup, topology->node_count - 1, topology->node_count - 2);
    int code = check_staleness(phase, error);
    return code ? code : check_edges(topology, phase, error);
}

/* What means nothing in a file without an owner. */
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

int sgp_owner_check(struct sgp_topology *topology, struct sgp_error *error, uint32_t *ret_phase)
{
    int code = find_owner(topology, error);
    *ret_phase = 0;
    for (uint32_t p = 0; p < topology->phase_count && !code; p++) {
        *ret_phase = p;
        if (topology->owner == SGP_NODE_NONE)
            code = check_unowned(&topology->phases[p], error);
        if (!code)
            code = check_delay(topology, &topology->phases[p], error);
    }
    if (code || topology->owner == SGP_NODE_NONE)
        return code;
    code = check_nodes(topology, error);
    return code ? code : check_phase(topology, &topology->phases[0], error);
}
