/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds, turns and cycles: which round trains, and where exact cycles begin. Also the parts of the
 * vector: of an edge, of an owner. Any thread; pure. */
#include "sgp/topology.h"
#include "sgp/coding.h"

/* ---- turns ---- */

static bool in_prelude(const struct sgp_topology *topology, sgp_round round)
{
    return round < topology->prelude_rounds;
}

/* The number of turns in one pass before one of its rounds. */
static sgp_round turns_within(const struct sgp_topology *topology, sgp_round round)
{
    uint32_t p = sgp_topology_phase_index(topology, round);
    sgp_round into = in_prelude(topology, round)
                         ? round % topology->prelude.rounds
                         : topology->prelude.rounds +
                               (round - topology->prelude_rounds) % topology->rounds_per_cycle;
    sgp_round turns = topology->phase_turns[p];
    if (!topology->phases[p].exchanges)
        turns += into - topology->phase_first[p];
    return in_prelude(topology, round) ? turns : turns - topology->prelude.turns;
}

/* Whether rounds and turns are the same, because every round trains. */
static bool trains_always(const struct sgp_topology *topology)
{
    return topology->prelude.turns == topology->prelude.rounds &&
           topology->cycle.turns == topology->cycle.rounds;
}

sgp_round sgp_topology_turns(const struct sgp_topology *topology, sgp_round round)
{
    const struct sgp_cycle *prelude = &topology->prelude, *cycle = &topology->cycle;
    if (trains_always(topology))
        return round;
    if (in_prelude(topology, round))
        return round / prelude->rounds * prelude->turns + turns_within(topology, round);
    sgp_round passes = (round - topology->prelude_rounds) / cycle->rounds;
    return topology->repeat * prelude->turns + passes * cycle->turns +
           turns_within(topology, round);
}

/* Within one pass that begins at `start` with phase `phase`: one past its `turns`-th turn, where
 * turns > 0. */
static sgp_round after_within(
    const struct sgp_topology *topology, uint32_t phase, sgp_round start, sgp_round turns)
{
    for (;; phase++) {
        sgp_round rounds = topology->phases[phase].rounds;
        if (!topology->phases[phase].exchanges && turns <= rounds)
            return start + turns;
        turns -= topology->phases[phase].exchanges ? 0 : rounds;
        start += rounds;
    }
}

sgp_round sgp_topology_after_turns(const struct sgp_topology *topology, sgp_round turns)
{
    const struct sgp_cycle *prelude = &topology->prelude, *cycle = &topology->cycle;
    sgp_round of_prelude = topology->repeat * prelude->turns;
    if (turns <= 0)
        return 0;
    if (trains_always(topology))
        return turns < SGP_ROUND_MAX ? turns : SGP_ROUND_MAX;
    if (turns <= of_prelude) {
        sgp_round passes = (turns - 1) / prelude->turns;
        return after_within(topology, 0, passes * prelude->rounds, turns - passes * prelude->turns);
    }
    turns -= of_prelude;
    sgp_round passes = (turns - 1) / cycle->turns;
    if (passes > SGP_ROUND_MAX / cycle->rounds)
        return SGP_ROUND_MAX;
    return after_within(topology, sgp_topology_phase_index(topology, topology->prelude_rounds),
        topology->prelude_rounds + passes * cycle->rounds, turns - passes * cycle->turns);
}

/* ---- exact cycles ---- */

bool sgp_topology_is_exact(
    const struct sgp_topology *topology, sgp_round round, sgp_round *ret_start)
{
    bool before = in_prelude(topology, round);
    const struct sgp_cycle *cycle = before ? &topology->prelude : &topology->cycle;
    sgp_round from = before ? 0 : topology->prelude_rounds;
    if (cycle->exact && ret_start)
        *ret_start = round - (round - from) % cycle->rounds;
    return cycle->exact;
}

bool sgp_topology_opens(const struct sgp_topology *topology, sgp_round round)
{
    sgp_round start;
    const struct sgp_cycle *cycle =
        in_prelude(topology, round) ? &topology->prelude : &topology->cycle;
    return sgp_topology_is_exact(topology, round, &start) && round == start + cycle->opening;
}

sgp_round sgp_topology_start_from(const struct sgp_topology *topology, sgp_round round)
{
    sgp_round start;
    if (!sgp_topology_is_exact(topology, round, &start) || start == round)
        return round;
    return start +
           (in_prelude(topology, round) ? topology->prelude.rounds : topology->cycle.rounds);
}

bool sgp_topology_has_exact(const struct sgp_topology *topology)
{
    return topology->prelude.exact || topology->cycle.exact;
}

const double *sgp_topology_ends(const struct sgp_topology *topology, sgp_round round, uint32_t node)
{
    const struct sgp_cycle *cycle =
        in_prelude(topology, round) ? &topology->prelude : &topology->cycle;
    sgp_assert(cycle->exact);
    return cycle->ends + (size_t)node * topology->slices;
}

/* ---- parts ---- */

bool sgp_topology_is_blocked(const struct sgp_topology *topology, uint64_t parameters)
{
    return topology->slices == 1 || parameters / topology->slices >= SGP_PART_BLOCKED_LEAST;
}

static uint64_t first_of(const struct sgp_topology *topology, uint64_t part, uint64_t parameters)
{
    uint64_t unit = sgp_topology_is_blocked(topology, parameters) ? SGP_BLOCK_VALUES : 1;
    uint64_t units = (parameters + unit - 1) / unit, more = units % topology->slices;
    uint64_t first = unit * (part * (units / topology->slices) + (part < more ? part : more));
    return first < parameters ? first : parameters;
}

struct sgp_slice sgp_topology_parts(
    const struct sgp_topology *topology, uint32_t part, uint32_t count, uint64_t parameters)
{
    if (count == 0)
        return (struct sgp_slice){0, parameters};
    uint64_t first = first_of(topology, part, parameters);
    uint64_t end = first_of(topology, (uint64_t)part + count, parameters);
    return (struct sgp_slice){first, end - first};
}

struct sgp_slice sgp_topology_values(
    const struct sgp_topology *topology, const struct sgp_edge *edge, uint64_t parameters)
{
    return sgp_topology_parts(topology, edge->part, edge->part_count, parameters);
}

struct sgp_slice sgp_topology_owned(
    const struct sgp_topology *topology, uint32_t node, uint64_t parameters)
{
    const struct sgp_topology_node *it = &topology->nodes[node];
    if (!it->owns)
        return (struct sgp_slice){.count = 0};
    return sgp_topology_parts(topology, it->own_part, it->own_part_count, parameters);
}

bool sgp_topology_owns_parts(const struct sgp_topology *topology, uint32_t node)
{
    uint32_t count = topology->nodes[node].own_part_count;
    return topology->nodes[node].owns && count > 0 && count < topology->slices;
}

int sgp_topology_check_owners(
    const struct sgp_topology *topology, uint64_t parameters, struct sgp_error *error)
{
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].owns && sgp_topology_owned(topology, i, parameters).count == 0)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "node %s owns a part of %llu values in %u, which is empty; cut the vector into "
                "fewer",
                topology->nodes[sgp_topology_machine(topology, i)].name,
                (unsigned long long)parameters, topology->slices);
    return 0;
}
