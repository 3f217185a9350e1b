/* SPDX-License-Identifier: Apache-2.0 */
/* How one vector spreads from a node to all: from which source each node takes it. Any thread; the
 * working memory is freed at the end. */
#include "sgp/topology.h"

#include <errno.h>
#include <stdlib.h>

/* A node that has the vector, and how far it has looked for targets among its edges. */
struct holder {
    uint32_t node, phase, edge;
    uint32_t sent; /* how many targets it has so far */
    uint32_t next; /* the holder after this one in its queue; SGP_NODE_NONE: none */
};

struct queue {
    uint32_t first, last; /* holders; SGP_NODE_NONE: the queue is empty */
};

struct spread {
    const struct sgp_topology *topology;
    uint32_t root;
    uint32_t *sources;
    struct holder *holders; /* in the order in which they get the vector */
    uint32_t count;
    /* Holders that may send; and those that have sent as many times as all may. */
    struct queue ready, done;
};

static void push(struct spread *spread, struct queue *queue, uint32_t holder)
{
    spread->holders[holder].next = SGP_NODE_NONE;
    if (queue->first == SGP_NODE_NONE)
        queue->first = holder;
    else
        spread->holders[queue->last].next = holder;
    queue->last = holder;
}

static uint32_t pop(struct spread *spread, struct queue *queue)
{
    uint32_t holder = queue->first;
    queue->first = spread->holders[holder].next;
    return holder;
}

/* A relay may have nothing that it could send. */
static void give(struct spread *spread, uint32_t node, uint32_t source)
{
    spread->sources[node] = source;
    if (node != spread->root && spread->topology->nodes[node].relay)
        return;
    spread->holders[spread->count] = (struct holder){.node = node};
    push(spread, &spread->ready, spread->count++);
}

/* The next target that has no source yet, or SGP_NODE_NONE. No edge is looked at twice. */
static uint32_t next_target(const struct spread *spread, struct holder *holder)
{
    const struct sgp_topology *topology = spread->topology;
    for (; holder->phase < topology->phase_count; holder->phase++, holder->edge = 0) {
        uint32_t degree;
        const struct sgp_phase *phase = &topology->phases[holder->phase];
        const struct sgp_edge *edges = sgp_phase_out(phase, holder->node, &degree);
        while (holder->edge < degree) {
            uint32_t target = edges[holder->edge++].target;
            if (target != spread->root && spread->sources[target] == SGP_NODE_NONE)
                return target;
        }
    }
    return SGP_NODE_NONE;
}

/* Holders send in turn, as they would at equal speeds. While some node can still send its first
 * SGP_SPREAD_USUAL vectors, no other node sends more. */
static void run(struct spread *spread)
{
    uint32_t most = SGP_SPREAD_USUAL;
    while (spread->ready.first != SGP_NODE_NONE || spread->done.first != SGP_NODE_NONE) {
        if (spread->ready.first == SGP_NODE_NONE) {
            spread->ready = spread->done;
            spread->done.first = SGP_NODE_NONE;
            most++;
        }
        uint32_t first = pop(spread, &spread->ready);
        struct holder *holder = &spread->holders[first];
        uint32_t target = next_target(spread, holder);
        if (target == SGP_NODE_NONE)
            continue;
        push(spread, ++holder->sent < most ? &spread->ready : &spread->done, first);
        give(spread, target, holder->node);
    }
}

int sgp_topology_spread(const struct sgp_topology *topology, uint32_t root, uint32_t *ret_sources)
{
    struct spread spread = {.topology = topology,
        .root = root,
        .sources = ret_sources,
        .holders = calloc(topology->node_count, sizeof *spread.holders),
        .ready = {.first = SGP_NODE_NONE},
        .done = {.first = SGP_NODE_NONE}};
    if (spread.holders == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < topology->node_count; i++)
        ret_sources[i] = SGP_NODE_NONE;
    give(&spread, root, SGP_NODE_NONE);
    run(&spread);
    free(spread.holders);
    return 0;
}
