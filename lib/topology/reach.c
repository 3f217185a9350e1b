/* SPDX-License-Identifier: Apache-2.0 */
/* Searches over the union of phases, without building the union. Any thread; the working memory is
 * in the struct. */
#include "topology/reach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SGP_REACH_ROOTS_MAX 16

int sgp_reach_init(struct sgp_reach *reach, const struct sgp_topology *topology)
{
    size_t n = topology->node_count;
    *reach = (struct sgp_reach){.topology = topology};
    while (topology->phases[reach->cycle_first].once)
        reach->cycle_first++;
    reach->cycle_count = topology->phase_count - reach->cycle_first;
    reach->forward = calloc(n, sizeof *reach->forward);
    reach->backward = calloc(n, sizeof *reach->backward);
    reach->queue = calloc(n, sizeof *reach->queue);
    if (reach->forward && reach->backward && reach->queue)
        return 0;
    sgp_reach_finish(reach);
    return -ENOMEM;
}

void sgp_reach_finish(struct sgp_reach *reach)
{
    free(reach->forward);
    free(reach->backward);
    free(reach->queue);
}

/* Mark the nodes that are reached from the root along edges, or against them. Returns their
 * number. */
static uint32_t search(struct sgp_reach *reach, uint32_t root, uint32_t first, uint32_t count,
    bool against, bool *seen)
{
    const struct sgp_topology *topology = reach->topology;
    uint32_t head = 0, tail = 0;
    memset(seen, 0, topology->node_count * sizeof *seen);
    seen[root] = true;
    reach->queue[tail++] = root;
    while (head < tail) {
        uint32_t node = reach->queue[head++];
        for (uint32_t p = 0; p < count; p++) {
            uint32_t degree, index = (first - reach->cycle_first + p) % reach->cycle_count;
            const struct sgp_phase *phase = &topology->phases[reach->cycle_first + index];
            const struct sgp_edge *edge =
                against ? sgp_phase_in(phase, node, &degree) : sgp_phase_out(phase, node, &degree);
            reach->work += 1u + degree;
            for (uint32_t e = 0; e < degree; e++) {
                uint32_t other = against ? edge[e].source : edge[e].target;
                if (!seen[other]) {
                    seen[other] = true;
                    reach->queue[tail++] = other;
                }
            }
        }
    }
    return tail;
}

bool sgp_reach_window(struct sgp_reach *reach, uint32_t first, uint32_t count)
{
    uint32_t n = reach->topology->node_count;
    return search(reach, 0, first, count, false, reach->forward) == n &&
           search(reach, 0, first, count, true, reach->backward) == n;
}

static uint32_t search_both(struct sgp_reach *reach, uint32_t root)
{
    uint32_t both = 0;
    (void)search(reach, root, reach->cycle_first, reach->cycle_count, false, reach->forward);
    (void)search(reach, root, reach->cycle_first, reach->cycle_count, true, reach->backward);
    for (uint32_t i = 0; i < reach->topology->node_count; i++)
        both += reach->forward[i] && reach->backward[i];
    return both;
}

uint32_t sgp_reach_core(struct sgp_reach *reach)
{
    uint32_t best = 0, most = 0;
    for (uint32_t root = 0; root < reach->topology->node_count && root < SGP_REACH_ROOTS_MAX;
         root++) {
        uint32_t size = search_both(reach, root);
        if (size > most) {
            most = size;
            best = root;
        }
    }
    (void)search_both(reach, best);
    return best;
}

/* The widest window begins with the first round of a phase. It ends with the first round of the
 * phase that completes it. Between them are whole phases. As the beginning moves forward, the end
 * moves only forward, too. */
bool sgp_reach_least_window(struct sgp_reach *reach, uint64_t work_max, sgp_round *ret_rounds)
{
    const struct sgp_phase *cycle = reach->topology->phases + reach->cycle_first;
    uint32_t count = 1;
    sgp_round widest = 1;
    for (uint32_t first = 0; first < reach->cycle_count; first++) {
        while (!sgp_reach_window(reach, reach->cycle_first + first, count)) {
            if (reach->work > work_max)
                return false;
            count++;
        }
        sgp_round rounds = 1;
        for (uint32_t p = 0; p + 1 < count; p++)
            rounds += cycle[(first + p) % reach->cycle_count].rounds;
        widest = rounds > widest ? rounds : widest;
        count -= count > 1;
    }
    *ret_rounds = widest;
    return true;
}
