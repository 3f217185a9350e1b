/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of owners: which updates arrived while their step was open, that only these are added, and
 * that their mean is added. Also, every update that a worker gave must have been added, been late
 * or returned, or be in transit. */
#include "sim/world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* of one addition and one product, relative to the magnitudes that went in */
#define ROUNDING 0x1p-22

int sgp_sim_create_step(struct sgp_sim_host *host)
{
    uint64_t dimension = host->sim->options.dimension;
    struct sgp_sim_step *step = &host->step;
    step->sum = calloc(3 * dimension, sizeof *step->sum);
    step->from = calloc(host->sim->host_count, sizeof *step->from);
    host->stand.from = calloc(dimension, sizeof *host->stand.from);
    host->stand.views = calloc(host->sim->host_count, sizeof *host->stand.views);
    if (!step->sum || !step->from || !host->stand.from || !host->stand.views)
        return -ENOMEM;
    step->size = step->sum + dimension;
    step->before = step->size + dimension;
    return 0;
}

void sgp_sim_free_step(struct sgp_sim_host *host)
{
    free(host->step.sum);
    free(host->step.from);
    free(host->stand.from);
    free(host->stand.views);
}

/* An owner that joins has no open step. */
static sgp_round open_label(const struct sgp_sim_host *owner)
{
    struct sgp_node_status status;
    sgp_node_status(owner->node, &status);
    return status.state == SGP_NODE_JOINING ? SGP_ROUND_NONE : status.round;
}

static void open_step(struct sgp_sim_host *owner, sgp_round label)
{
    struct sgp_sim_step *step = &owner->step;
    step->label = label;
    step->came = 0;
    step->closed = false;
}

static void begin_sum(struct sgp_sim_host *owner)
{
    struct sgp_sim_step *step = &owner->step;
    uint64_t dimension = owner->sim->options.dimension;
    memset(step->sum, 0, 2 * dimension * sizeof *step->sum);
    step->counted = 0;
    owner->trainer->methods->estimate(owner->trainer, 1.0, owner->sim->after);
    for (uint64_t c = 0; c < dimension; c++)
        step->before[c] = (double)owner->sim->after[c];
}

void sgp_sim_begin_step(struct sgp_sim_host *host)
{
    if (!sgp_sim_is_owner(host) || sgp_sim_adds_each(host))
        return;
    begin_sum(host);
}

/* ---- updates that arrive ---- */

void sgp_sim_forget_updates(struct sgp_sim_host *host)
{
    if (host->step.from)
        memset(host->step.from, 0, host->sim->host_count * sizeof *host->step.from);
}

void sgp_sim_update_came(
    struct sgp_sim *sim, struct sgp_sim_host *owner, const struct sgp_sim_link *in, sgp_round round)
{
    struct sgp_sim_step *step = &owner->step;
    uint32_t source = (uint32_t)(&sim->hosts[in->peer] - sim->hosts);
    bool present = round == step->label, first = step->from[source] != (uint32_t)(round + 1);
    step->received++;
    if (sgp_sim_adds_each(owner))
        return;
    if (present && first) {
        step->from[source] = (uint32_t)(round + 1);
        step->came++;
    } else {
        step->late++;
    }
}

struct sgp_slice sgp_sim_owned(const struct sgp_sim_host *owner)
{
    return sgp_topology_owned(
        owner->file->topology, owner->file->nodes[owner->index], owner->sim->options.dimension);
}

void sgp_sim_update_taken(struct sgp_sim_host *owner, double fraction, struct sgp_slice slice)
{
    struct sgp_sim_step *step = &owner->step;
    struct sgp_slice owned = sgp_sim_owned(owner);
    if (slice.first != owned.first || slice.count != owned.count)
        sgp_sim_fail(owner->sim, SGP_E_STATE, "%s adds an update of what it does not own",
            sgp_sim_name(owner->sim, owner->index));
    if (step->taken > 0 && step->fraction != fraction)
        sgp_sim_fail(owner->sim, SGP_E_STATE, "%s adds updates of one step by %.17g and %.17g",
            sgp_sim_name(owner->sim, owner->index), step->fraction, fraction);
    step->taken++;
    step->fraction = fraction;
}

/* A dropped update leaves the sums. */
void sgp_sim_update_late(struct sgp_sim_host *owner, uint32_t slot)
{
    struct sgp_sim *sim = owner->sim;
    const float *update = sgp_sim_received(owner, slot);
    owner->receives[slot].state = SGP_SIM_RECEIVE_FREE;
    if (sgp_sim_adds_each(owner))
        sgp_sim_check_late(owner);
    struct sgp_slice owned = sgp_sim_owned(owner);
    for (uint64_t c = 0; c < owned.count; c++)
        sim->moved[owned.first + c] -= (double)update[c];
}

void sgp_sim_step_told(struct sgp_sim_host *owner, double added)
{
    struct sgp_sim_step *step = &owner->step;
    step->told = (uint32_t)added;
    step->closed = true;
    step->version++;
    bool equal = sgp_sim_adds_each(owner) ? step->told <= 1 : step->fraction == 1.0 / step->told;
    if (step->taken != step->told || (step->told > 0 && !equal))
        sgp_sim_fail(owner->sim, SGP_E_STATE,
            "%s adds %u updates, each by %.17g, and says that it has added %u",
            sgp_sim_name(owner->sim, owner->index), step->taken, step->fraction, step->told);
    step->added += step->taken;
    step->taken = 0;
}

/* Find another host as a peer of this one, over an edge of its file. */
static bool find_peer(const struct sgp_sim_host *host, uint32_t other, enum sgp_direction direction,
    struct sgp_peer_status *ret_peer)
{
    uint32_t peer = host->file->nodes[other];
    uint32_t place =
        peer != SGP_SLOT_NONE ? sgp_node_find_link(host->node, peer, direction) : SGP_SLOT_NONE;
    if (place != SGP_SLOT_NONE)
        sgp_node_link_status(host->node, place, ret_peer);
    return place != SGP_SLOT_NONE;
}

/* An update of a worker is at the owner, has returned, or is in transit: at most one. Only for
 * processes that have not been restarted. */
static void check_given(struct sgp_sim *sim, const struct sgp_sim_host *owner)
{
    for (uint32_t i = owner->out_count; i < owner->link_count; i++) {
        const struct sgp_sim_host *worker = &sim->hosts[sim->links[owner->link_first + i].peer];
        struct sgp_peer_status given, taken;
        if (worker->life > 0 || owner->life > 0 || worker->dead ||
            !find_peer(worker, owner->index, SGP_OUT, &given) ||
            !find_peer(owner, worker->index, SGP_IN, &taken))
            continue;
        uint64_t settled = taken.shares_received + given.shares_returned;
        if (given.shares_sent < settled || given.shares_sent > settled + given.owes)
            sgp_sim_fail(sim, SGP_E_STATE,
                "%s has given %llu updates; %llu were accepted, %llu returned, %u under way",
                sgp_sim_name(sim, worker->index), (unsigned long long)given.shares_sent,
                (unsigned long long)taken.shares_received,
                (unsigned long long)given.shares_returned, given.owes);
    }
}

void sgp_sim_check_step(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    if (!sgp_sim_is_owner(host))
        return;
    struct sgp_sim_step *step = &host->step;
    if (sgp_sim_adds_each(host)) {
        sgp_sim_check_taken(host);
        return;
    }
    if (step->closed && step->told != step->came)
        sgp_sim_fail(sim, SGP_E_STATE, "%s closes step %lld with %u updates; %u came in time",
            sgp_sim_name(sim, host->index), (long long)step->label, step->told, step->came);
    sgp_round label = open_label(host);
    uint32_t waits = step->closed || label != step->label ? 0 : step->came;
    if (host->life == 0 && step->received != step->added + step->late + waits)
        sgp_sim_fail(sim, SGP_E_STATE,
            "of %llu updates %s has added %llu, %llu came late and %u wait",
            (unsigned long long)step->received, sgp_sim_name(sim, host->index),
            (unsigned long long)step->added, (unsigned long long)step->late, waits);
    if (step->closed)
        check_given(sim, host);
    if (step->closed || label != step->label)
        open_step(host, label);
}

/* ---- labels ---- */

/* All copies of a label must equal the owner's estimate of that label, which is unique. */
void sgp_sim_check_label(struct sgp_sim_host *host, sgp_round label, const float *estimate,
    struct sgp_slice values, bool taken)
{
    struct sgp_sim *sim = host->sim;
    struct sgp_sim_step *step = &sgp_sim_owner_of(host, values.first)->step;
    uint64_t digest = XXH3_64bits(estimate + values.first, values.count * sizeof *estimate);
    uint64_t place = (uint64_t)label % SGP_SIM_LABELS;
    bool known = step->labels[place] == label + 1;
    if (!known && !taken) {
        step->labels[place] = label + 1;
        step->digests[place] = digest;
    }
    if (known && step->digests[place] != digest && !step->forgot)
        sgp_sim_fail(sim, SGP_E_STATE, "%s %s another estimate of label %lld than the one known",
            sgp_sim_name(sim, host->index), taken ? "takes" : "hands out", (long long)label);
}

/* ---- updates that are added ---- */

/* The part of an update that does not count leaves the sums. */
void sgp_sim_update_added(
    struct sgp_sim_host *owner, const struct sgp_sim_job *job, const float *update)
{
    struct sgp_sim *sim = owner->sim;
    bool sums = !sgp_sim_adds_each(owner);
    for (uint64_t i = 0; i < job->work.slice.count; i++) {
        uint64_t c = job->work.slice.first + i;
        owner->step.sum[c] += sums ? (double)update[i] : 0;
        owner->step.size[c] += sums ? fabs((double)update[i]) : 0;
        sim->moved[c] -= (1 - (double)(float)job->work.factor) * (double)update[i];
    }
    owner->step.counted++;
}

void sgp_sim_check_mean(struct sgp_sim_host *owner)
{
    struct sgp_sim *sim = owner->sim;
    struct sgp_sim_step *step = &owner->step;
    double count = fmax(1, step->counted);
    if (sgp_sim_adds_each(owner))
        return;
    owner->trainer->methods->estimate(owner->trainer, 1.0, sim->after);
    for (uint64_t c = 0; c < sim->options.dimension; c++) {
        double expected = step->before[c] + step->sum[c] / count;
        double size = fabs(step->before[c]) + step->size[c];
        double error = fabs((double)sim->after[c] - expected);
        if (!(error <= ROUNDING * (count + 1) * size) && isfinite(expected)) {
            sgp_sim_fail(sim, SGP_E_STATE,
                "%s ends a step with %.9g in x[%llu]; with the mean of %.0f updates it is %.9g",
                sgp_sim_name(sim, owner->index), (double)sim->after[c], (unsigned long long)c,
                count, expected);
            break;
        }
    }
    begin_sum(owner);
}
