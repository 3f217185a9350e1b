/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants. After every event the running sums must equal the mass of all nodes, up to
 * rounding. Every round everything is counted again from the state of the cores and the buffers. */
#include "sim/world.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLOAT_ROUNDING (2 * (double)FLT_EPSILON) /* of one multiplication and one addition */
#define LIES_SLACK                                                                                 \
    1e-9 /* Of a total that each share changes. The expected total is rounded as often. */
#define COUNT_SLACK 1e-9  /* of the full count of x, relative to the sum of absolute values */
#define COUNT_FLOOR 1e-12 /* for the rounding of earlier changes, where almost nothing is left */

int sgp_sim_check_init(struct sgp_sim *sim)
{
    uint64_t dimension = sim->options.dimension;
    sim->moved = calloc(dimension, sizeof *sim->moved);
    sim->rounding = calloc(dimension, sizeof *sim->rounding);
    sim->count = calloc(2 * dimension, sizeof *sim->count);
    sim->before = calloc(dimension, sizeof *sim->before);
    sim->after = calloc(dimension, sizeof *sim->after);
    if (!sim->moved || !sim->rounding || !sim->count || !sim->before || !sim->after)
        return -ENOMEM;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        struct sgp_trainer *trainer = sim->hosts[i].trainer;
        trainer->methods->estimate(trainer, 1.0, sim->after);
        for (uint64_t c = 0; c < dimension && !sim->hosts[i].dead; c++)
            sim->moved[c] += (double)sim->after[c];
        sgp_sim_add(&sim->weight, sim->hosts[i].weight);
        sgp_sim_begin_step(&sim->hosts[i]);
    }
    return 0;
}

void sgp_sim_check_finish(struct sgp_sim *sim)
{
    free(sim->moved);
    free(sim->rounding);
    free(sim->count);
    free(sim->before);
    free(sim->after);
}

/* ---- after every event ---- */

static void check_total(struct sgp_sim *sim, double total, const char *how)
{
    if (sim->mixed)
        return;
    if (sim->remade) {
        sgp_sim_check_one_token(sim);
        return;
    }
    double error = fabs(total - sim->expected);
    if (error > sim->summary.mass_error)
        sim->summary.mass_error = error;
    double slack = sim->lies ? LIES_SLACK : SGP_SIM_MASS_SLACK;
    if (!(error <= slack * (double)sim->host_count))
        sgp_sim_fail(sim, SGP_E_STATE, "the total weight of %u nodes is %.17g (%s)",
            sim->host_count, total, how);
}

/* An heir has accepted the bequest of the source, and answers for what the source had accepted. */
static void hand_over(
    struct sgp_sim *sim, struct sgp_sim_host *source, uint32_t heir, uint64_t number)
{
    source->handed = true;
    source->heir = heir;
    source->bequest = number;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        const struct sgp_sim_host *host = &sim->hosts[i];
        for (uint32_t j = host->out_count; j < host->link_count; j++) {
            struct sgp_sim_link *in = &sim->links[host->link_first + j];
            in->holder = in->holder == source->index ? heir : in->holder;
            in->before_holder = in->before_holder == source->index ? heir : in->before_holder;
        }
    }
    sgp_sim_see_links(sim, source);
}

/* The target has accepted a share. It must be the share announced last, with a number above those
 * its process had accepted. From now on its mass is in the target's buffer. */
static void accept(struct sgp_sim *sim, struct sgp_sim_host *target, struct sgp_sim_link *in,
    uint64_t number, uint64_t id)
{
    struct sgp_sim_host *source = &sim->hosts[in->peer];
    const struct sgp_sim_connection *connection = sgp_sim_connection_of(sim, id);
    sgp_assert(connection);
    const struct sgp_share *share = &connection->share;
    if (number <= in->said || number != share->number) {
        sgp_sim_fail(sim, SGP_E_STATE, "%s accepts share %llu of %s after %llu; %llu was announced",
            sgp_sim_name(sim, target->index), (unsigned long long)number,
            sgp_sim_name(sim, source->index), (unsigned long long)in->said,
            (unsigned long long)share->number);
        return; /* no share of that number is arriving */
    }
    in->accepted = in->said = number;
    in->holder = target->index;
    struct sgp_sim_link *out = &sim->links[in->other];
    out->snapshot = connection->snapshot;
    out->fraction = (double)(float)share->fraction;
    out->life = source->life;
    sim->summary.shares++;
    if (sgp_sim_is_owner(target))
        sgp_sim_update_came(sim, target, in, share->round);
    if (share->bequest > 0) {
        sim->bequeathed += fmin(share->bequest, share->weight);
        hand_over(sim, source, target->index, number);
    }
    if (share->payload_bytes == 0) {
        sim->summary.shares_empty++;
        return;
    }
    double *outstanding = &source->outstanding[connection->snapshot];
    if (sim->apart)
        return;
    *outstanding -= (double)(float)share->fraction;
    sgp_sim_count_lie(
        sim, source, connection->snapshot, target, (uint32_t)(sim->arriving - target->receives));
    if (*outstanding < -SGP_SIM_MASS_SLACK)
        sgp_sim_fail(sim, SGP_E_STATE, "of snapshot %u of %s more was accepted than was given",
            connection->snapshot, sgp_sim_name(sim, source->index));
}

/* The link of an event. The connection has it, unless the connection is gone. */
static struct sgp_sim_link *find_link(
    struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_link *event)
{
    const struct sgp_sim_connection *connection = sgp_sim_connection_of(sim, event->connection);
    uint32_t side = event->direction == SGP_OUT ? SGP_SIM_SOURCE : SGP_SIM_TARGET;
    return connection ? &sim->links[connection->links[side]]
                      : sgp_sim_link_of(host, host->file->hosts[event->peer], event->direction);
}

/* Whether a target with a restored ledger takes over the number that its source knows, without a
 * share. The number said before may be greater: it may belong to an incarnation that the source has
 * lost since. */
static bool takes_number(struct sgp_sim *sim, const struct sgp_sim_link *in, uint64_t number,
    const struct sgp_link *event)
{
    const struct sgp_sim_connection *connection = sgp_sim_connection_of(sim, event->connection);
    if (!connection || number == in->said || number <= in->accepted ||
        number == connection->share.number)
        return false;
    uint64_t given;
    double owed;
    (void)sgp_sim_link_account(&sim->hosts[in->peer], &sim->links[in->other], &given, &owed);
    return number <= given;
}

static void check_link(struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_link *event)
{
    struct sgp_sim_link *link = find_link(sim, host, event);
    if (event->direction == SGP_OUT) {
        sgp_sim_see_link(sim, host, link);
        return;
    }
    uint64_t number;
    double owed;
    (void)sgp_sim_link_account(host, link, &number, &owed);
    if (number == 0 && link->said > 0) /* nothing from this incarnation of the source yet */
        link->said = link->accepted = 0;
    if (number < link->said &&
        number == link->taken_over) /* the target died before it recorded the number */
        link->accepted = link->said = number;
    if (takes_number(sim, link, number, event)) {
        link->taken_over = link->accepted;
        link->accepted = link->said = number;
    }
    if (number == link->said)
        return;
    accept(sim, host, link, number, event->connection);
    double unseen = sgp_sim_total(&sim->weight_unseen);
    sgp_sim_see_link(sim, &sim->hosts[link->peer], &sim->links[link->other]);
    const struct sgp_share *share = &sgp_sim_connection_of(sim, event->connection)->share;
    if (sgp_sim_lies_of_weight(sim, link->peer, share)) /* what the source owed is lost */
        sim->expected -= sgp_sim_total(&sim->weight_unseen) - unseen;
    if (!sgp_sim_take_unowed(sim, link, number))
        return;
    sgp_sim_see_debts(sim, host); /* the weight that nobody owes any more has come back */
    sim->expected += share->weight - (sgp_sim_total(&sim->weight_unseen) - unseen);
}

void sgp_sim_check_event(
    struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_event *event)
{
    double in_flight, weight = sgp_node_weight(host->node, &in_flight);
    bool of_link = event->type >= SGP_EVENT_UP && event->type <= SGP_EVENT_HEARD;
    /* settled by the answer of another host */
    bool settled = !of_link && in_flight < host->weight_in_flight;
    sgp_sim_add(&sim->weight, weight - host->weight);
    sgp_sim_add(&sim->weight_in_flight, in_flight - host->weight_in_flight);
    host->weight = weight;
    host->weight_in_flight = in_flight;
    if (of_link)
        check_link(sim, host, &event->link);
    sgp_sim_check_step(sim, host);
    if (host->handed || settled)
        sgp_sim_see_links(sim, host);
    sgp_sim_see_debts(sim, host);
    /* what arrived now counts */
    if (sim->bequeathed < -SGP_SIM_MASS_SLACK * (double)sim->host_count)
        sgp_sim_fail(sim, SGP_E_STATE, "%s takes off weight %.17g that nobody has left to it",
            sgp_sim_name(sim, host->index), -sim->bequeathed);
    if (!(weight >= 0 && in_flight >= 0))
        sgp_sim_fail(sim, SGP_E_STATE, "%s has weight %.17g and %.17g in flight",
            sgp_sim_name(sim, host->index), weight, in_flight);
    check_total(sim,
        sgp_sim_total(&sim->weight) + sgp_sim_total(&sim->weight_in_flight) -
            sgp_sim_total(&sim->weight_unseen),
        "running sum");
}

/* ---- after every job ---- */

/* Add what a job without a share has moved. Returns 0, or NaN if a value is not finite. */
static double add_moved(struct sgp_sim *sim, struct sgp_slice slice)
{
    double *moved = sim->moved + slice.first, finite = 0;
    const float *before = sim->before + slice.first, *after = sim->after + slice.first;
    for (uint64_t i = 0; i < slice.count; i++) {
        finite += (double)(after[i] - after[i]);
        moved[i] += (double)after[i] - (double)before[i];
    }
    return finite;
}

/* Add what the rounding of a job with a share has moved, and find the values that moved further
 * than rounding explains. Returns 0, or NaN if a value is not finite. */
static double add_rounding(
    struct sgp_sim_host *host, const float *share, double fraction, struct sgp_slice slice)
{
    struct sgp_sim *sim = host->sim;
    double *rounding = sim->rounding + slice.first, finite = 0;
    const float *earlier = sim->before + slice.first, *later = sim->after + slice.first;
    for (uint64_t i = 0; i < slice.count; i++) {
        double before = (double)earlier[i], after = (double)later[i];
        double meant = fraction * (double)share[i], moved = after - before;
        double bound = FLOAT_ROUNDING * (fabs(before) + fabs(after) + fabs(meant)) + FLT_MIN;
        finite += (after - after) + (meant - meant);
        rounding[i] += moved - meant;
        if (fabs(moved - meant) > bound)
            sgp_sim_fail(sim, SGP_E_STATE, "x[%llu] of %s moved by %.9g instead of %.9g",
                (unsigned long long)(slice.first + i), sgp_sim_name(sim, host->index), moved,
                meant);
    }
    return finite;
}

void sgp_sim_check_job(
    struct sgp_sim_host *host, const float *share, double fraction, struct sgp_slice slice)
{
    struct sgp_sim *sim = host->sim;
    if (sim->overflown)
        return;
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    double finite = share ? add_rounding(host, share, fraction, slice) : add_moved(sim, slice);
    sim->overflown = isnan(finite);
}

/* ---- the full count ---- */

static void count_vector(
    struct sgp_sim *sim, const float *values, double fraction, uint64_t first, uint64_t count)
{
    double *sum = sim->count + first, *size = sum + sim->options.dimension;
    for (uint64_t c = 0; c < count; c++) {
        double value = fraction * (double)values[c];
        sum[c] += value;
        size[c] += fabs(value);
    }
}

void sgp_sim_count_host(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    uint64_t dimension = sim->options.dimension;
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    count_vector(sim, sim->after, 1, 0, dimension);
    for (uint32_t i = 0; i < host->performer.snapshots.count; i++)
        if (fabs(host->outstanding[i]) > SGP_SIM_MASS_SLACK)
            count_vector(sim, sgp_sim_given(host, i), host->outstanding[i], 0, dimension);
    for (uint32_t i = 0; i < host->performer.receives.count; i++) {
        const struct sgp_sim_receive *receive = &host->receives[i];
        if (receive->state >= SGP_SIM_RECEIVE_HELD)
            count_vector(sim, sgp_sim_received(host, i), (double)(float)receive->share.fraction,
                receive->share.slice.first, receive->share.slice.count);
    }
}

static void check_count(struct sgp_sim *sim)
{
    uint64_t dimension = sim->options.dimension;
    for (uint64_t c = 0; c < dimension; c++) {
        double expected = sim->moved[c] + sim->rounding[c];
        double size = sim->count[dimension + c] + fabs(sim->moved[c]);
        if (!(fabs(sim->count[c] - expected) <= COUNT_SLACK * size + COUNT_FLOOR))
            sgp_sim_fail(sim, SGP_E_STATE,
                "the sum of x[%llu] over all nodes is %.17g; training alone makes it %.17g",
                (unsigned long long)c, sim->count[c], expected);
    }
}

void sgp_sim_check_all(struct sgp_sim *sim)
{
    struct sgp_sim_sum total = {0};
    memset(sim->count, 0, 2 * sim->options.dimension * sizeof *sim->count);
    for (uint32_t i = 0; i < sim->host_count; i++) {
        struct sgp_node_status status;
        sgp_node_status(sim->hosts[i].node, &status);
        sgp_sim_add(&total, status.weight);
        sgp_sim_add(&total, sgp_sim_count_in_flight(sim, &sim->hosts[i]));
        if (!sim->overflown && !sim->hosts[i].dead)
            sgp_sim_count_host(sim, &sim->hosts[i]);
    }
    check_total(sim, sgp_sim_total(&total), "full count");
    if (!sim->overflown && !sim->apart)
        check_count(sim);
}

/* ---- after a note ---- */

void sgp_sim_check_dispute(struct sgp_sim_host *host, const struct sgp_effect *effect)
{
    struct sgp_sim *sim = host->sim;
    const struct sgp_inquire *share = &effect->note.question;
    double fraction = (double)(float)effect->note.fraction;
    if (effect->note.slot == SGP_SLOT_NONE)
        return; /* the snapshot is kept */
    struct sgp_account debt = {.number = share->number,
        .source_incarnation = share->source_incarnation,
        .target_incarnation = share->target_incarnation};
    memcpy(debt.source, share->source, strlen(share->source) + 1);
    memcpy(debt.target, share->target, strlen(share->target) + 1);
    if (sgp_sim_is_paid(sim, &debt))
        return;
    host->outstanding[effect->note.slot] -= fraction;
    const float *given = sgp_sim_given(host, effect->note.slot);
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        sim->moved[c] -= fraction * (double)given[c];
}

void sgp_sim_check_dissolve(struct sgp_sim_host *host, const struct sgp_effect *effect)
{
    if (effect->note.slot != SGP_SLOT_NONE)
        host->receives[effect->note.slot].state = SGP_SIM_RECEIVE_FREE;
    host->sim->expected -= effect->note.amount;
    host->sim->bequeathed -= effect->note.amount;
}

void sgp_sim_check_total(struct sgp_sim_host *host, const struct sgp_effect *effect)
{
    struct sgp_sim *sim = host->sim;
    bool off = effect->note.what == SGP_NOTE_EXCESS;
    double nodes = host->file->topology->node_count;
    bool is_so = off ? sim->expected > nodes + SGP_WEIGHT_SLACK : sim->expected < nodes;
    if (!is_so && !sim->heals && !sim->lies)
        sgp_sim_fail(sim, SGP_E_STATE, "%s %s weight %.17g, and the total is %.17g of %g nodes",
            sgp_sim_name(sim, host->index), off ? "takes off" : "adds", effect->note.amount,
            sim->expected, nodes);
    sim->heals = true;
    sim->expected += off ? -effect->note.amount : effect->note.amount;
}
