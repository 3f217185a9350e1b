/* The invariants. After every event the running sums must show the mass of all nodes, to rounding;
 * every round everything is counted again from the cores' and the buffers' own state.
 *
 * Weight under way is seen from above: a share that its target has accepted is the target's, though
 * the source still owes it until the acknowledgement comes. */
#include "sim/world.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLOAT_ROUNDING 0x1p-22 /* of one multiplication and one addition, with room */
#define COUNT_SLACK 1e-9       /* of the full count of x, relative to the sum of absolute values */

/* ---- sums ---- */

void sgp_sim_add(struct sgp_sim_sum *sum, double value)
{
    double next = sum->value + value;
    if (fabs(sum->value) >= fabs(value))
        sum->rest += (sum->value - next) + value;
    else
        sum->rest += (value - next) + sum->value;
    sum->value = next;
}

double sgp_sim_total(const struct sgp_sim_sum *sum)
{
    return sum->value + sum->rest;
}

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
    double error = fabs(total - sim->expected);
    if (error > sim->summary.mass_error)
        sim->summary.mass_error = error;
    if (!(error <= SGP_SIM_MASS_SLACK * (double)sim->host_count))
        sgp_sim_fail(sim, SGP_E_STATE, "the total weight of %u nodes is %.17g (%s)",
            sim->host_count, total, how);
}

/* By which the ends of a link differ in what has passed, because one of them came back with an outdated
 * record: weight that is there twice, or below 0 nowhere, until they greet. */
static double untold(
    const struct sgp_sim *sim, const struct sgp_sim_host *source, const struct sgp_sim_link *out)
{
    const struct sgp_sim_host *target = &sim->hosts[out->peer];
    struct sgp_peer_status here, there;
    if ((!source->doubtful && !target->doubtful) || !sgp_sim_link_status(source, out, &here) ||
        !sgp_sim_link_status(target, &sim->links[out->other], &there) ||
        (!here.doubtful && !there.doubtful))
        return 0;
    double given = here.lineage == target->lineage ? here.passed : 0;
    double taken = there.lineage == source->lineage ? there.passed : 0;
    return taken - given - out->weight_unseen;
}

/* Weight that the target of a link has accepted while the source still owes it. */
static void see_link(struct sgp_sim *sim, struct sgp_sim_host *source, struct sgp_sim_link *out)
{
    uint64_t number;
    double owed;
    (void)sgp_sim_link_account(source, out, &number, &owed);
    double unseen = sim->links[out->other].accepted < number ? 0 : owed;
    sgp_sim_add(&sim->weight_unseen, unseen - out->weight_unseen);
    out->weight_unseen = unseen;
    double differs = untold(sim, source, out);
    sgp_sim_add(&sim->weight_untold, differs - out->weight_untold);
    out->weight_untold = differs;
}

/* Of a share's mass that its target has accepted, and lost: part of it is owed again, or not any more. */
static void owe(struct sgp_sim *sim, struct sgp_sim_link *out, bool again)
{
    struct sgp_sim_host *source = &sim->hosts[sim->links[out->other].peer];
    out->again = false;
    if (source->dead || source->life != out->life)
        return; /* its snapshot died with it */
    struct sgp_peer_status status;
    (void)sgp_sim_link_status(source, out, &status);
    out->again = again;
    out->returned = status.shares_returned;
    double fraction = again ? out->fraction : -out->fraction;
    source->outstanding[out->snapshot] += fraction;
    const float *snapshot = source->snapshots + out->snapshot * sim->options.dimension;
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        sim->moved[c] += fraction * (double)snapshot[c];
}

/* A source may yet read of an acceptance that its target has forgotten meanwhile. */
static void see_late_acknowledgement(
    struct sgp_sim *sim, const struct sgp_sim_host *source, struct sgp_sim_link *out)
{
    struct sgp_peer_status status;
    if (!out->again || !sgp_sim_link_status(source, out, &status) || status.weight_owed > 0)
        return;
    out->again = false;
    if (status.shares_returned == out->returned)
        owe(sim, out, false);
}

/* The target has accepted a share: it must be the one announced last, and none before it. From now
 * on its mass is in the target's buffer. */
static void accept(struct sgp_sim *sim, struct sgp_sim_host *target, struct sgp_sim_link *in,
    uint64_t number, uint64_t id)
{
    struct sgp_sim_host *source = &sim->hosts[in->peer];
    const struct sgp_sim_connection *connection = sgp_sim_connection_of(sim, id);
    sgp_assert(connection);
    const struct sgp_share *share = &connection->share;
    if (number <= in->accepted || number != share->number)
        sgp_sim_fail(sim, SGP_E_STATE, "%s accepts share %llu of %s after %llu; %llu was announced",
            sgp_sim_name(sim, target->index), (unsigned long long)number,
            sgp_sim_name(sim, source->index), (unsigned long long)in->accepted,
            (unsigned long long)share->number);
    in->accepted = number;
    struct sgp_sim_link *out = &sim->links[in->other];
    out->again = false;
    out->snapshot = connection->snapshot;
    out->fraction = (double)(float)share->fraction;
    out->life = source->life;
    sim->summary.shares++;
    if (share->payload_bytes == 0) {
        sim->summary.shares_empty++;
        return;
    }
    double *outstanding = &source->outstanding[connection->snapshot];
    *outstanding -= (double)(float)share->fraction;
    if (*outstanding < -SGP_SIM_MASS_SLACK)
        sgp_sim_fail(sim, SGP_E_STATE, "of snapshot %u of %s more was accepted than was given",
            connection->snapshot, sgp_sim_name(sim, source->index));
}

/* The end of an edge of which an event speaks: the connection knows, unless it is gone. */
static struct sgp_sim_link *find_link(
    struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_link *event)
{
    const struct sgp_sim_connection *connection = sgp_sim_connection_of(sim, event->connection);
    uint32_t side = event->direction == SGP_OUT ? SGP_SIM_SOURCE : SGP_SIM_TARGET;
    return connection ? &sim->links[connection->links[side]]
                      : sgp_sim_link_of(host, host->file->hosts[event->peer], event->direction);
}

static bool is_greeting(const struct sgp_event *event)
{
    return event->type == SGP_EVENT_MESSAGE &&
           (event->message->type == SGP_HELLO || event->message->type == SGP_WELCOME);
}

static bool is_doubtful(const struct sgp_sim_host *host)
{
    for (uint32_t i = 0; i < sgp_node_link_count(host->node); i++) {
        struct sgp_peer_status status;
        sgp_node_link_status(host->node, i, &status);
        if (status.doubtful)
            return true;
    }
    return false;
}

static void check_link(
    struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_event *event)
{
    struct sgp_sim_link *link = find_link(sim, host, &event->link);
    if (event->link.direction == SGP_OUT) {
        see_link(sim, host, link);
        see_late_acknowledgement(sim, host, link);
    } else {
        uint64_t number;
        double owed;
        (void)sgp_sim_link_account(host, link, &number, &owed);
        if (number != link->accepted && !is_greeting(event))
            accept(sim, host, link, number, event->link.connection);
        else if (number == link->accepted && !is_greeting(event))
            return;
        link->accepted = number; /* a greeting: of this lineage, or what an old record had lost */
        see_link(sim, &sim->hosts[link->peer], &sim->links[link->other]);
    }
    if (host->doubtful && is_greeting(event))
        host->doubtful = is_doubtful(host);
}

void sgp_sim_check_event(struct sgp_sim *sim, struct sgp_sim_host *host,
    const struct sgp_event *event, const struct sgp_node_status *status)
{
    sgp_sim_add(&sim->weight, status->weight - host->weight);
    sgp_sim_add(&sim->weight_in_flight, status->weight_in_flight - host->weight_in_flight);
    sgp_sim_add(&sim->weight_unsettled, status->unsettled - host->weight_unsettled);
    host->weight = status->weight;
    host->weight_in_flight = status->weight_in_flight;
    host->weight_unsettled = status->unsettled;
    if (event->type >= SGP_EVENT_UP && event->type <= SGP_EVENT_HEARD)
        check_link(sim, host, event);
    if (!(status->weight >= 0 && status->weight_in_flight >= 0))
        sgp_sim_fail(sim, SGP_E_STATE, "%s has weight %.17g and %.17g in flight",
            sgp_sim_name(sim, host->index), status->weight, status->weight_in_flight);
    check_total(sim, sgp_sim_weight_known(sim), "running sum");
}

/* ---- after every job ---- */

void sgp_sim_check_job(
    struct sgp_sim_host *host, const float *share, double fraction, struct sgp_slice slice)
{
    struct sgp_sim *sim = host->sim;
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    for (uint64_t i = 0; i < slice.count && !sim->overflown; i++) {
        uint64_t c = slice.first + i;
        double before = (double)sim->before[c], after = (double)sim->after[c];
        double moved = after - before;
        double meant = share ? fraction * (double)share[i] : 0;
        double bound = FLOAT_ROUNDING * (fabs(before) + fabs(after) + fabs(meant)) + FLT_MIN;
        sim->overflown = !isfinite(after) || !isfinite(meant);
        if (sim->overflown)
            return;
        if (!share) {
            sim->moved[c] += moved;
            continue;
        }
        sim->rounding[c] += moved - meant;
        if (fabs(moved - meant) > bound)
            sgp_sim_fail(sim, SGP_E_STATE, "x[%llu] of %s moved by %.9g instead of %.9g",
                (unsigned long long)c, sgp_sim_name(sim, host->index), moved, meant);
    }
}

/* ---- everything again ---- */

static double count_untold(const struct sgp_sim *sim, const struct sgp_sim_host *source)
{
    double sum = 0;
    for (uint32_t i = 0; i < source->out_count; i++)
        sum += untold(sim, source, &sim->links[source->link_first + i]);
    return sum;
}

static double count_in_flight(struct sgp_sim *sim, struct sgp_sim_host *source)
{
    double sum = 0;
    for (uint32_t i = sgp_node_next_owing(source->node, 0); i < sgp_node_link_count(source->node);
         i = sgp_node_next_owing(source->node, i + 1)) {
        struct sgp_peer_status here;
        uint64_t accepted;
        double none;
        sgp_node_link_status(source->node, i, &here);
        const struct sgp_sim_link *out =
            sgp_sim_link_of(source, source->file->hosts[here.peer], SGP_OUT);
        (void)sgp_sim_link_account(
            &sim->hosts[out->peer], &sim->links[out->other], &accepted, &none);
        if (accepted < here.last_number)
            sum += here.weight_owed;
    }
    return sum;
}

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

/* x of this host, what is owed of its snapshots, and what its buffers hold for it. */
static void count_host(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    uint64_t dimension = sim->options.dimension;
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    count_vector(sim, sim->after, 1, 0, dimension);
    for (uint32_t i = 0; i < host->snapshot_count; i++)
        if (fabs(host->outstanding[i]) > SGP_SIM_MASS_SLACK)
            count_vector(sim, host->snapshots + i * dimension, host->outstanding[i], 0, dimension);
    for (uint32_t i = 0; i < host->receive_count; i++) {
        const struct sgp_sim_receive *receive = &host->receives[i];
        if (receive->state >= SGP_SIM_RECEIVE_HELD)
            count_vector(sim, host->received + i * dimension,
                (double)(float)receive->share.fraction, receive->share.slice.first,
                receive->share.slice.count);
    }
}

static void check_count(struct sgp_sim *sim)
{
    uint64_t dimension = sim->options.dimension;
    for (uint64_t c = 0; c < dimension; c++) {
        double expected = sim->moved[c] + sim->rounding[c];
        double size = sim->count[dimension + c] + fabs(sim->moved[c]);
        if (!(fabs(sim->count[c] - expected) <= COUNT_SLACK * size))
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
        sgp_sim_add(&total, count_in_flight(sim, &sim->hosts[i]));
        sgp_sim_add(&total, -status.unsettled - count_untold(sim, &sim->hosts[i]));
        if (!sim->overflown && !sim->hosts[i].dead)
            count_host(sim, &sim->hosts[i]);
    }
    check_total(sim, sgp_sim_total(&total), "full count");
    if (!sim->overflown)
        check_count(sim);
}

/* ---- crashes ---- */

void sgp_sim_check_strike(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    memset(sim->count, 0, 2 * sim->options.dimension * sizeof *sim->count);
    count_host(sim, host);
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        sim->moved[c] -= sim->count[c];
}

void sgp_sim_check_begin(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        sim->moved[c] += (double)sim->after[c];
}

/* Of this source the new process has accepted no more than up to `number`. What it still owes beyond that,
 * it owes again, though the late process had accepted it. */
static void owe_again(struct sgp_sim *sim, struct sgp_sim_link *in, uint64_t number)
{
    struct sgp_sim_link *out = &sim->links[in->other];
    struct sgp_sim_host *source = &sim->hosts[in->peer];
    bool accepted = out->weight_unseen > 0;
    in->accepted = number;
    see_link(sim, source, out);
    if (accepted && out->weight_unseen <= 0)
        owe(sim, out, true);
}

/* What the new process says of itself and its links takes the place of what the late one did. */
static void see_again(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    sgp_sim_add(&sim->weight, status.weight - host->weight);
    sgp_sim_add(&sim->weight_in_flight, status.weight_in_flight - host->weight_in_flight);
    sgp_sim_add(&sim->weight_unsettled, status.unsettled - host->weight_unsettled);
    host->weight = status.weight;
    host->weight_in_flight = status.weight_in_flight;
    host->weight_unsettled = status.unsettled;
    for (uint32_t i = 0; i < host->link_count; i++) {
        struct sgp_sim_link *link = &sim->links[host->link_first + i];
        uint64_t number;
        double owed;
        (void)sgp_sim_link_account(host, link, &number, &owed);
        if (i < host->out_count)
            see_link(sim, host, link);
        else
            owe_again(sim, link, number);
    }
}

void sgp_sim_check_forget(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    see_again(sim, host);
    sim->lossy = true;
    sim->expected = sgp_sim_weight_known(sim);
}

void sgp_sim_check_restore(struct sgp_sim *sim, struct sgp_sim_host *host, double surplus)
{
    see_again(sim, host);
    sim->expected += host->record.surplus - surplus; /* what was dissolved since is there again */
    if (sim->lossy)
        sim->expected = sgp_sim_weight_known(sim);
}
