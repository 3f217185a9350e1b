/* SPDX-License-Identifier: Apache-2.0 */
/* The links and the number of buffers of a node under a topology. Each edge of the file is a link.
 * So is each edge of a previous file whose peer the new file still names (`retired`). Nothing is
 * given on a retired link, but its owed share is settled, and its numbers continue if the edge
 * returns.
 *
 * The rule: docs/rules/reload.md */
#include "core/core.h"

#include <errno.h>
#include <stdlib.h>

/* Mark every node that shares an edge with `self` in any phase, and count the links in each
 * direction. */
static void mark_edges(const struct sgp_topology *topology, uint32_t self, unsigned char *marks,
    uint32_t *ret_out, uint32_t *ret_in)
{
    *ret_out = *ret_in = 0;
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        uint32_t count;
        const struct sgp_edge *edges = sgp_phase_out(phase, self, &count);
        for (uint32_t e = 0; e < count; e++) {
            *ret_out += (marks[edges[e].target] & SGP_MARK_OUT) == 0;
            marks[edges[e].target] |= SGP_MARK_OUT;
        }
        edges = sgp_phase_in(phase, self, &count);
        for (uint32_t e = 0; e < count; e++) {
            *ret_in += (marks[edges[e].source] & SGP_MARK_IN) == 0;
            marks[edges[e].source] |= SGP_MARK_IN;
        }
    }
}

/* The maximum of shares awaited in two successive rounds, including the last and the first round of
 * a cycle. */
static uint32_t awaited_in_two_rounds(const struct sgp_topology *topology, uint32_t self)
{
    uint32_t most = 0;
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        uint32_t after = p + 1 < topology->phase_count
                             ? p + 1
                             : sgp_topology_phase_index(topology, topology->prelude_rounds);
        uint32_t here, next, again = 0;
        (void)sgp_phase_in(phase, self, &here);
        (void)sgp_phase_in(&topology->phases[after], self, &next);
        if (phase->once && !topology->phases[after].once && topology->repeat > 1)
            (void)sgp_phase_in(&topology->phases[0], self, &again);
        next = again > next ? again : next;
        if (phase->rounds > 1 && here > next)
            next = here;
        if (here + next > most)
            most = here + next;
    }
    return most;
}

/* The maximum number of effects of one step, as a sum of what can occur together. */
enum {
    /* its jobs (TRAIN, OUTER, three times PUBLISH, SKETCH, SCALE, COMPENSATE, FOLLOW), twice
     * FOLD, and notes (twice STATE, ROUND, JUMP, ADDED, twice TOKEN_RECEIVED) */
    OF_ROUND = 18,
    /* dissolving, adopting, disputing, scaling, and healing of the total, each with its note */
    OF_MASS = 18,
    /* a question, starving, agreement, the end, a differing file, and the response to an
     * event */
    OF_REST = 13,
    OF_AN_END = 2,   /* HANG_UP and its note */
    OF_A_RETURN = 2, /* RESTORE and its note */
    OF_MESSAGES = 2, /* messages on one link */
};

static uint32_t effects_most(uint32_t links, uint32_t receives, uint32_t slices)
{
    uint32_t parts = slices > 1 ? 2 * slices : 0; /* PUBLISH and SCALE for each part */
    uint32_t node = OF_ROUND + OF_MASS + OF_REST + SGP_CORE_WINDOW + parts;
    /* three times, because a link may have two pending connections */
    uint32_t link = 3 * OF_AN_END + OF_A_RETURN + OF_MESSAGES;
    uint32_t receive = 2; /* ABSORB, and a new CREDIT */
    return node + link * links + receive * receives;
}

/* Snapshots: the vector that entered the cycle, this round, the previous round, which may be
 * unacknowledged, and one spare. */
#define SNAPSHOTS_OF_CYCLE 4u

/* Snapshots: published updates, a token that was handed on and may be unacknowledged, an estimate,
 * and one spare. Receive buffers: a token that arrives, one granted to a previous holder that does
 * not give it, and an estimate. */
#define SNAPSHOTS_OF_TOKEN 4u
#define RECEIVES_OF_TOKEN 3u

/* The largest share that the node receives, in parts of the vector. */
static uint32_t largest_share(const struct sgp_topology *topology, uint32_t self)
{
    uint32_t most = 1;
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        uint32_t count;
        const struct sgp_edge *edges = sgp_phase_in(&topology->phases[p], self, &count);
        for (uint32_t e = 0; e < count; e++) {
            uint32_t parts = edges[e].part_count > 0 ? edges[e].part_count : topology->slices;
            most = parts > most ? parts : most;
        }
    }
    return most;
}

/* What the edges of the file need. */
static void needs_of(const struct sgp_topology *topology, uint32_t self,
    const struct sgp_method *method, uint32_t out, uint32_t in, struct sgp_node_needs *ret_needs)
{
    uint32_t awaited = awaited_in_two_rounds(topology, self);
    bool one_each = sgp_method_has_own_buffers(method) && in > awaited;
    /* the prelude is exact, too; no node gives again while a share is owed */
    bool stands = topology->cycle.exact;
    ret_needs->snapshots = stands ? SNAPSHOTS_OF_CYCLE : 2 + out;
    ret_needs->snapshots += topology->prelude.exact && !stands;
    ret_needs->slices = topology->slices;
    ret_needs->share_parts = largest_share(topology, self);
    ret_needs->receives = (one_each ? in : awaited) + 1;
    if (sgp_topology_has_token(topology)) { /* there is one token */
        ret_needs->snapshots = SNAPSHOTS_OF_TOKEN;
        ret_needs->receives = RECEIVES_OF_TOKEN;
    }
    ret_needs->links = out + in;
    ret_needs->effects = effects_most(ret_needs->links, ret_needs->receives, topology->slices);
}

int sgp_node_needs(const struct sgp_topology *topology, uint32_t self,
    const struct sgp_method *method, struct sgp_node_needs *ret_needs)
{
    unsigned char *marks = calloc(topology->node_count, 1);
    if (marks == NULL)
        return -ENOMEM;
    uint32_t out, in;
    mark_edges(topology, self, marks, &out, &in);
    free(marks);
    needs_of(topology, self, method, out, in, ret_needs);
    return 0;
}

static void init_link(struct sgp_core_link *link, uint32_t peer, enum sgp_direction direction)
{
    link->peer = peer;
    link->direction = direction;
    link->connection.state = SGP_LINK_DOWN;
    link->connection.redial = SGP_TIME_NEVER;
    link->connection.backoff = SGP_DIAL_MIN_NS;
    link->liveness.heard = link->liveness.probed = SGP_TIME_NEVER;
    link->pace.since = link->inquiry.unreachable = SGP_TIME_NEVER;
    for (uint32_t k = 0; k < 2; k++) {
        link->giving.credit[k] = link->giving.announced[k] = SGP_ROUND_NONE;
        link->receiving.promise[k] = SGP_ROUND_NONE;
        link->receiving.slot[k] = SGP_SLOT_NONE;
    }
    link->giving.plan = link->giving.plan_from = SGP_ROUND_NONE;
    link->estimate.slot = link->question.slot = SGP_SLOT_NONE;
    link->receiving.latest = link->work.staleness = link->news.round = SGP_ROUND_NONE;
    link->work.base = SGP_SLOT_NONE;
    link->work.copy = link->work.held = link->work.given = SGP_ROUND_NONE;
    link->estimate.holds = SGP_ROUND_NONE;
}

static void init_links(struct sgp_layout *layout, const unsigned char *marks, uint32_t node_count)
{
    struct sgp_core_link *out = layout->links;
    struct sgp_core_link *into = layout->links + layout->out_count;
    for (uint32_t i = 0; i < node_count; i++) {
        if (marks[i] & (SGP_MARK_OUT | SGP_MARK_KEPT_OUT)) {
            layout->link_index.peers[out - layout->links] = i;
            init_link(out, i, SGP_OUT);
            (out++)->retired = (marks[i] & SGP_MARK_OUT) == 0;
        }
        if (marks[i] & (SGP_MARK_IN | SGP_MARK_KEPT_IN)) {
            layout->link_index.peers[into - layout->links] = i;
            init_link(into, i, SGP_IN);
            (into++)->retired = (marks[i] & SGP_MARK_IN) == 0;
        }
    }
}

int sgp_core_lay_out(const struct sgp_topology *topology, uint32_t self,
    const struct sgp_method *method, unsigned char *marks, const struct sgp_node_needs *least,
    struct sgp_layout *ret_layout)
{
    uint32_t out, in;
    mark_edges(topology, self, marks, &out, &in);
    struct sgp_node_needs needs;
    needs_of(topology, self, method, out, in, &needs);
    struct sgp_layout layout = {.slices = topology->slices,
        .share_parts = needs.share_parts,
        .receive_count = needs.receives > least->receives ? needs.receives : least->receives};
    for (uint32_t i = 0; i < topology->node_count; i++) {
        bool leaves = (marks[i] & (SGP_MARK_OUT | SGP_MARK_KEPT_OUT)) != 0;
        bool enters = (marks[i] & (SGP_MARK_IN | SGP_MARK_KEPT_IN)) != 0;
        layout.out_count += leaves;
        layout.link_count += (uint32_t)leaves + enters;
        needs.snapshots += (marks[i] & (SGP_MARK_OUT | SGP_MARK_OWES)) == SGP_MARK_OWES;
    }
    layout.snapshot_count = needs.snapshots > least->snapshots ? needs.snapshots : least->snapshots;
    layout.links = sgp_core_lines((layout.link_count + 1u) * sizeof *layout.links);
    layout.snapshot_users = calloc(layout.snapshot_count, sizeof *layout.snapshot_users);
    layout.receives = calloc(layout.receive_count, sizeof *layout.receives);
    layout.outgoing = calloc(layout.out_count + 1u, sizeof *layout.outgoing);
    for (uint32_t i = 0; layout.receives != NULL && i < layout.receive_count; i++)
        layout.receives[i].base = SGP_SLOT_NONE;
    bool filed = sgp_core_link_index_init(&layout.link_index, layout.link_count) == 0;
    if (!filed || layout.links == NULL || layout.snapshot_users == NULL ||
        layout.receives == NULL || layout.outgoing == NULL) {
        sgp_core_layout_finish(&layout);
        return -ENOMEM;
    }
    init_links(&layout, marks, topology->node_count);
    *ret_layout = layout;
    return 0;
}

void sgp_core_layout_finish(struct sgp_layout *layout)
{
    free(layout->links);
    sgp_core_link_index_finish(&layout->link_index);
    free(layout->snapshot_users);
    free(layout->receives);
    free(layout->outgoing);
}

void sgp_core_swap_layout(struct sgp_node *node, struct sgp_layout *layout)
{
    struct sgp_layout former = node->layout;
    node->layout = *layout;
    *layout = former;
}

void sgp_core_layout_needs(const struct sgp_layout *layout, struct sgp_node_needs *ret_needs)
{
    *ret_needs = (struct sgp_node_needs){.snapshots = layout->snapshot_count,
        .receives = layout->receive_count,
        .links = layout->link_count,
        .effects = effects_most(layout->link_count, layout->receive_count, layout->slices),
        .share_parts = layout->share_parts,
        .slices = layout->slices};
}

void sgp_node_counts(const struct sgp_node *node, struct sgp_node_needs *ret_needs)
{
    sgp_core_layout_needs(&node->layout, ret_needs);
}
