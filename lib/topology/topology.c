/* SPDX-License-Identifier: Apache-2.0 */
/* The sealed topology: rounds to phases, edges of a node, weights without a model.
 *
 * Any thread: a sealed topology never changes. */
#include "sgp/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SGP_WEIGHT_CYCLES 10

double sgp_topology_starts(const struct sgp_topology *topology, uint32_t node)
{
    const struct sgp_topology_node *it = &topology->nodes[node];
    if (topology->owner != SGP_NODE_NONE)
        return it->owns;
    bool whole = it->starts == SGP_STARTS_USUAL ? !it->relay : it->starts == SGP_STARTS_WHOLE;
    return whole ? 1 : 0;
}

bool sgp_topology_is_dialled(const struct sgp_topology *topology, uint32_t node)
{
    const char *address = topology->nodes[node].address;
    return address[0] != '\0' && strcmp(address, SGP_ADDRESS_NONE) != 0;
}

static const char *const dampings[] = {[SGP_DAMPING_NONE] = "none",
    [SGP_DAMPING_DIVIDE] = "divide",
    [SGP_DAMPING_COMPENSATE] = "compensate"};

const char *sgp_damping_name(enum sgp_damping damping)
{
    return dampings[damping];
}

bool sgp_damping_find(const char *name, enum sgp_damping *ret_damping)
{
    for (unsigned i = 0; i < sizeof dampings / sizeof dampings[0]; i++) {
        if (strcmp(dampings[i], name) != 0)
            continue;
        *ret_damping = (enum sgp_damping)i;
        return true;
    }
    return false;
}

bool sgp_staleness_is_said(const struct sgp_staleness *staleness)
{
    return staleness->damping != SGP_DAMPING_NONE || staleness->most > 0 ||
           staleness->compensation != 0;
}

static const char *const tokens[] = {
    [SGP_TOKEN_NONE] = "none", [SGP_TOKEN_DYNAMIC] = "dynamic", [SGP_TOKEN_FIXED] = "fixed"};

const char *sgp_token_name(enum sgp_token token)
{
    return tokens[token];
}

bool sgp_token_find(const char *name, enum sgp_token *ret_token)
{
    for (unsigned i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        if (strcmp(tokens[i], name) != 0)
            continue;
        *ret_token = (enum sgp_token)i;
        return true;
    }
    return false;
}

bool sgp_topology_has_token(const struct sgp_topology *topology)
{
    return topology->phase_count > 0 && topology->phases[0].delay.token != SGP_TOKEN_NONE;
}

uint32_t sgp_topology_delay_most(const struct sgp_topology *topology)
{
    const struct sgp_delay *delay = &topology->phases[0].delay;
    if (delay->token == SGP_TOKEN_FIXED)
        return 1;
    return delay->most > 0 ? delay->most : SGP_DELAY_USUAL;
}

bool sgp_topology_has_copy(const struct sgp_topology *topology, uint32_t node)
{
    bool owned = topology->owner != SGP_NODE_NONE;
    return owned && (sgp_topology_has_token(topology) || !topology->nodes[node].owns);
}

uint32_t sgp_topology_trainers(const struct sgp_topology *topology)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < topology->node_count; i++)
        count += !topology->nodes[i].relay;
    return count;
}

/* The same round in the first pass of the prelude and of the cycle, one after the other. */
static sgp_round within_passes(const struct sgp_topology *topology, sgp_round round)
{
    sgp_assert(round >= 0 && topology->rounds_per_cycle > 0);
    if (round < topology->prelude_rounds)
        return round % topology->prelude.rounds;
    return topology->prelude.rounds +
           (round - topology->prelude_rounds) % topology->rounds_per_cycle;
}

uint32_t sgp_topology_phase_index(const struct sgp_topology *topology, sgp_round round)
{
    round = within_passes(topology, round);
    uint32_t low = 0,
             high = topology->phase_count; /* phase_first[low] <= round < phase_first[high] */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (topology->phase_first[middle] <= round)
            low = middle;
        else
            high = middle;
    }
    return low;
}

const struct sgp_phase *sgp_topology_phase(const struct sgp_topology *topology, sgp_round round)
{
    return &topology->phases[sgp_topology_phase_index(topology, round)];
}

const struct sgp_edge *sgp_phase_out(
    const struct sgp_phase *phase, uint32_t node, uint32_t *ret_count)
{
    *ret_count = phase->out_first[node + 1] - phase->out_first[node];
    return phase->out + phase->out_first[node];
}

const struct sgp_edge *sgp_phase_in(
    const struct sgp_phase *phase, uint32_t node, uint32_t *ret_count)
{
    *ret_count = phase->in_first[node + 1] - phase->in_first[node];
    return phase->in + phase->in_first[node];
}

double sgp_phase_keep(const struct sgp_phase *phase, uint32_t node)
{
    double given = 0.0;
    for (uint32_t e = phase->out_first[node]; e < phase->out_first[node + 1]; e++)
        given += phase->out[e].fraction;
    return given < 1.0 ? 1.0 - given : 0.0;
}

void sgp_phase_mix(double *next, const double *mass, const struct sgp_phase *phase,
    uint32_t node_count, uint32_t columns)
{
    for (uint32_t i = 0; i < node_count; i++) {
        double *row = next + (size_t)i * columns;
        const double *own = mass + (size_t)i * columns;
        double keep = sgp_phase_keep(phase, i);
        for (uint32_t c = 0; c < columns; c++)
            row[c] = keep * own[c];
        for (uint32_t e = phase->in_first[i]; e < phase->in_first[i + 1]; e++) {
            const double *come = mass + (size_t)phase->in[e].source * columns;
            double fraction = phase->in[e].fraction;
            for (uint32_t c = 0; c < columns; c++)
                row[c] += fraction * come[c];
        }
    }
}

bool sgp_topology_steps_after(const struct sgp_topology *topology, sgp_round round)
{
    uint32_t index = sgp_topology_phase_index(topology, round);
    return topology->phases[index].outer &&
           within_passes(topology, round) + 1 == topology->phase_first[index + 1];
}

const struct sgp_phase *sgp_topology_outer(const struct sgp_topology *topology)
{
    for (uint32_t p = 0; p < topology->phase_count; p++)
        if (topology->phases[p].outer)
            return &topology->phases[p];
    return NULL;
}

int sgp_topology_count_sources(const struct sgp_topology *topology, uint32_t *ret_counts)
{
    uint32_t *seen = calloc(topology->node_count, sizeof *seen); /* by which target, from 1 */
    if (seen == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < topology->node_count; i++) {
        ret_counts[i] = 0;
        for (uint32_t p = 0; p < topology->phase_count; p++) {
            uint32_t count;
            const struct sgp_edge *in = sgp_phase_in(&topology->phases[p], i, &count);
            for (uint32_t e = 0; e < count && !topology->phases[p].once; e++) {
                ret_counts[i] += seen[in[e].source] != i + 1;
                seen[in[e].source] = i + 1;
            }
        }
    }
    free(seen);
    return 0;
}

bool sgp_phase_gives(const struct sgp_phase *phase, uint32_t source, uint32_t target)
{
    uint32_t low = phase->out_first[source], high = phase->out_first[source + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (phase->out[middle].target < target)
            low = middle + 1;
        else
            high = middle;
    }
    return low < phase->out_first[source + 1] && phase->out[low].target == target;
}

sgp_round sgp_topology_next_round(
    const struct sgp_topology *topology, uint32_t source, uint32_t target, sgp_round from)
{
    sgp_assert(source < topology->node_count && target < topology->node_count);
    uint32_t looked = 0; /* number of phases examined, of the cycle that contains `round` */
    bool prelude = from < topology->prelude_rounds;
    for (sgp_round round = from; round <= SGP_ROUND_MAX;) {
        uint32_t phase = sgp_topology_phase_index(topology, round);
        if (sgp_phase_gives(&topology->phases[phase], source, target))
            return round;
        if (looked++ == topology->phase_count) {
            if (!prelude)
                break;
            round = topology->prelude_rounds; /* all passes of the prelude are the same */
        } else {
            round += topology->phase_first[phase + 1] - within_passes(topology, round);
        }
        if (prelude && round >= topology->prelude_rounds) {
            prelude = false;
            looked = 0;
        }
    }
    return SGP_ROUND_NONE;
}

int64_t sgp_topology_find(const struct sgp_topology *topology, const char *name)
{
    uint32_t low = 0, high = topology->node_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(topology->nodes[topology->by_name[middle]].name, name);
        if (order == 0)
            return topology->by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -ENOENT;
}

struct weight_run {
    double *now;
    double *next;
    double *least;    /* or NULL */
    double *greatest; /* or NULL */
    uint64_t work;
};

/* Note the weights before giving, then give. False if the round changed nothing, or the work limit
 * was reached. */
static bool run_weight_round(
    struct weight_run *run, const struct sgp_phase *phase, uint32_t node_count)
{
    for (uint32_t i = 0; i < node_count; i++) {
        if (run->least && run->now[i] < run->least[i])
            run->least[i] = run->now[i];
        if (run->greatest && run->now[i] > run->greatest[i])
            run->greatest[i] = run->now[i];
    }
    run->work += (uint64_t)phase->edge_count + node_count;
    if (run->work > SGP_WEIGHT_WORK_MAX)
        return false;
    sgp_phase_mix(run->next, run->now, phase, node_count, 1);
    double *before = run->now;
    run->now = run->next;
    run->next = before;
    return memcmp(run->now, run->next, node_count * sizeof *run->now) != 0;
}

int sgp_topology_weight_range(
    const struct sgp_topology *topology, double *ret_least, double *ret_greatest)
{
    uint32_t n = topology->node_count;
    struct weight_run run = {.least = ret_least, .greatest = ret_greatest};
    double *memory = calloc(2 * (size_t)n, sizeof *memory);
    if (!memory)
        return -ENOMEM;
    run.now = memory;
    run.next = memory + n;
    for (uint32_t i = 0; i < n; i++) {
        run.now[i] = sgp_topology_starts(topology, i);
        if (ret_least)
            ret_least[i] = run.now[i];
        if (ret_greatest)
            ret_greatest[i] = run.now[i];
    }
    for (int cycle = 0; cycle < SGP_WEIGHT_CYCLES; cycle++) {
        for (uint32_t p = 0; p < topology->phase_count; p++) {
            const struct sgp_phase *phase = &topology->phases[p];
            bool exact = phase->once ? topology->prelude.exact : topology->cycle.exact;
            /* its weights are valid only within the cycle */
            if ((phase->once && cycle > 0) || exact)
                continue;
            for (uint32_t r = 0; r < phase->rounds; r++)
                if (!run_weight_round(&run, phase, n))
                    break;
        }
    }
    free(memory);
    return 0;
}

int sgp_topology_weight_least(const struct sgp_topology *topology, double *ret_least)
{
    return sgp_topology_weight_range(topology, ret_least, NULL);
}
