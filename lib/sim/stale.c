/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of an owner at its own pace. The staleness of each update is counted: the number of
 * updates added since the copy from which it was computed. What is added of it is computed in
 * double precision, from that copy as its worker kept it. Neither check uses labels or reads a
 * core. Only for processes that have not been restarted. */
#include "sim/world.h"

#include <math.h>
#include <string.h>

#define ROUNDING                                                                                   \
    0x1p-21 /* of some additions and products, relative to the magnitudes that went in */

bool sgp_sim_adds_each(const struct sgp_sim_host *host)
{
    return sgp_sim_is_owner(host) && !sgp_method_waits(host->sim->options.method);
}

static const struct sgp_staleness *staleness_of(const struct sgp_sim_host *owner)
{
    return &owner->file->topology->phases[0].staleness;
}

/* ---- copies ---- */

void sgp_sim_copy_made(struct sgp_sim_host *owner, uint32_t snapshot)
{
    owner->versions[snapshot] = owner->step.version;
}

void sgp_sim_copy_sent(
    const struct sgp_sim_host *owner, uint32_t snapshot, struct sgp_sim_host *worker)
{
    if (!sgp_sim_is_owner(owner))
        return;
    struct sgp_sim_view *view = &worker->stand.views[owner->index];
    view->coming = owner->versions[snapshot];
    view->fresh = false;
}

void sgp_sim_copy_taken(struct sgp_sim_host *worker, struct sgp_slice values)
{
    const struct sgp_sim_host *owner = sgp_sim_owner_of(worker, values.first);
    struct sgp_sim_view *view = &worker->stand.views[owner->index];
    view->has = view->coming;
    view->fresh = true;
}

/* A worker does not use the same rows twice in a row. */
void sgp_sim_check_turn(struct sgp_sim_host *host, sgp_round turn)
{
    struct sgp_sim_stand *stand = &host->stand;
    bool again = stand->life == host->life && stand->turn == turn + 1;
    if (again && host->performer.copy && !sgp_method_waits(host->sim->options.method))
        sgp_sim_fail(host->sim, SGP_E_STATE, "%s trains turn %lld twice in a row",
            sgp_sim_name(host->sim, host->index), (long long)turn);
    stand->turn = turn + 1;
    stand->life = host->life;
}

/* ---- updates ---- */

void sgp_sim_update_given(struct sgp_sim_host *worker)
{
    for (uint32_t i = 0; i < worker->sim->host_count; i++)
        worker->stand.views[i].gave = worker->stand.views[i].has;
}

void sgp_sim_update_leaves(struct sgp_sim_host *worker)
{
    memcpy(worker->stand.from, worker->performer.copy,
        worker->sim->options.dimension * sizeof *worker->stand.from);
}

void sgp_sim_update_chosen(struct sgp_sim_host *owner, struct sgp_sim_host *worker, double told)
{
    struct sgp_sim_step *step = &owner->step;
    struct sgp_sim_view *view = &worker->stand.views[owner->index];
    step->first = view->fresh;
    view->fresh = false;
    step->worker = worker->index;
    step->checks = owner->life == 0 && worker->life == 0 && !step->forgot;
    step->stale = step->version - view->gave;
    step->compensates = false;
    if (step->checks && told != (double)step->stale)
        sgp_sim_fail(owner->sim, SGP_E_STATE,
            "%s says that an update of %s is %.17g updates old; it is %llu",
            sgp_sim_name(owner->sim, owner->index), sgp_sim_name(owner->sim, worker->index), told,
            (unsigned long long)step->stale);
}

static double fraction_of(const struct sgp_sim_host *owner, uint64_t stale)
{
    bool divides = staleness_of(owner)->damping == SGP_DAMPING_DIVIDE && stale > 1;
    return divides ? 1 / (double)stale : 1;
}

void sgp_sim_update_next(
    struct sgp_sim_host *owner, double fraction, struct sgp_sim_job *ret_absorb)
{
    struct sgp_sim_step *step = &owner->step;
    bool compensates = staleness_of(owner)->damping == SGP_DAMPING_COMPENSATE && step->first;
    ret_absorb->worker = step->worker;
    ret_absorb->checks = step->checks;
    ret_absorb->compensated = step->compensates;
    if (step->checks &&
        (fraction != fraction_of(owner, step->stale) || compensates != step->compensates))
        sgp_sim_fail(owner->sim, SGP_E_STATE, "%s adds an update %llu updates old by %.17g%s",
            sgp_sim_name(owner->sim, owner->index), (unsigned long long)step->stale, fraction,
            step->compensates ? ", compensated" : "");
}

/* Keep the update that arrived, before it is changed in place. */
void sgp_sim_keep_update(struct sgp_sim_host *owner, const float *update, struct sgp_slice slice)
{
    for (uint64_t i = 0; i < slice.count; i++)
        owner->step.sum[slice.first + i] = (double)update[i];
}

/* The change by the compensation leaves the sums. */
void sgp_sim_count_compensated(
    struct sgp_sim_host *owner, const float *update, struct sgp_slice slice)
{
    for (uint64_t i = 0; i < slice.count; i++)
        owner->sim->moved[slice.first + i] += (double)update[i] - owner->step.sum[slice.first + i];
}

void sgp_sim_check_added(struct sgp_sim_host *owner, const struct sgp_sim_job *absorb)
{
    struct sgp_sim *sim = owner->sim;
    const float *from = sim->hosts[absorb->worker].stand.from;
    double factor = absorb->compensated ? staleness_of(owner)->compensation : 0;
    owner->trainer->methods->estimate(owner->trainer, 1.0, sim->after);
    uint64_t first = absorb->work.slice.first, end = first + absorb->work.slice.count;
    for (uint64_t c = first; c < end && absorb->checks; c++) {
        double before = (double)sim->before[c], then = (double)from[c];
        double update = owner->step.sum[c], bent = factor * update * update;
        double expected = before + absorb->work.factor * (update - bent * (before - then));
        double size = fabs(before) + fabs(update) + bent * (fabs(before) + fabs(then));
        if (fabs((double)sim->after[c] - expected) <= ROUNDING * size || !isfinite(expected))
            continue;
        sgp_sim_fail(sim, SGP_E_STATE,
            "%s adds an update of %s and has %.9g in x[%llu]; it should be %.9g",
            sgp_sim_name(sim, owner->index), sgp_sim_name(sim, absorb->worker),
            (double)sim->after[c], (unsigned long long)c, expected);
        return;
    }
}

/* ---- the end of an update ---- */

static bool is_over(const struct sgp_sim_host *owner)
{
    struct sgp_node_status status;
    sgp_node_status(owner->node, &status);
    return status.round >= status.last_round;
}

void sgp_sim_check_late(struct sgp_sim_host *owner)
{
    owner->step.late++;
    if (!is_over(owner))
        sgp_sim_fail(owner->sim, SGP_E_STATE, "%s drops an update while it takes steps",
            sgp_sim_name(owner->sim, owner->index));
}

void sgp_sim_check_taken(struct sgp_sim_host *owner)
{
    const struct sgp_sim_step *step = &owner->step;
    uint64_t held = 0;
    for (uint32_t i = 0; i < owner->performer.receives.count; i++)
        held +=
            owner->receives[i].state == SGP_SIM_RECEIVE_HELD && owner->receives[i].share.number > 0;
    if (owner->life == 0 && step->received != step->added + step->late + held)
        sgp_sim_fail(owner->sim, SGP_E_STATE,
            "of %llu updates %s has added %llu, %llu came late and %llu wait",
            (unsigned long long)step->received, sgp_sim_name(owner->sim, owner->index),
            (unsigned long long)step->added, (unsigned long long)step->late,
            (unsigned long long)held);
}
