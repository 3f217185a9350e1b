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

/* The number of the last share that the process has accepted to which this one is owed. */
static uint64_t accepted_of(
    const struct sgp_sim *sim, const struct sgp_sim_link *out, uint64_t number)
{
    const struct sgp_sim_link *in = &sim->links[out->other];
    return number > 0 && number == out->owed_before ? in->before : in->accepted;
}

/* Weight that the target of a link has accepted, or the source's heir, while the source still owes it. */
static void see_link(struct sgp_sim *sim, struct sgp_sim_host *source, struct sgp_sim_link *out)
{
    uint64_t number;
    double owed;
    (void)sgp_sim_link_account(source, out, &number, &owed);
    bool seen = accepted_of(sim, out, number) < number && !source->handed;
    double unseen = seen ? 0 : owed;
    sgp_sim_add(&sim->weight_unseen, unseen - out->weight_unseen);
    out->weight_unseen = unseen;
}

static void see_links(struct sgp_sim *sim, struct sgp_sim_host *source)
{
    for (uint32_t i = 0; i < source->out_count; i++)
        see_link(sim, source, &sim->links[source->link_first + i]);
}

/* Whether the target of a debt has accepted the share. */
static bool is_paid(struct sgp_sim *sim, const struct sgp_account *debt)
{
    int64_t source = sgp_topology_find(sim->topology, debt->source);
    int64_t target = sgp_topology_find(sim->topology, debt->target);
    if (source < 0 || target < 0)
        return false;
    const struct sgp_sim_link *in = sgp_sim_link_of(&sim->hosts[target], (uint32_t)source, SGP_IN);
    bool present = debt->target_lineage == sim->hosts[target].lineage;
    if (debt->source_lineage == sim->hosts[source].lineage)
        return (present ? in->accepted : in->before) >= debt->number;
    return debt->source_lineage == in->former_lineage && in->former >= debt->number;
}

static double unseen_debts(struct sgp_sim *sim, const struct sgp_sim_host *host)
{
    double unseen = 0;
    for (uint32_t i = 0; i < sgp_node_debt_count(host->node); i++) {
        const struct sgp_account *debt = sgp_node_debt(host->node, i);
        unseen += host->handed || is_paid(sim, debt) ? debt->weight : 0;
    }
    return unseen;
}

/* The debts of all hosts, after something has happened to one: no other's come or go. Few hold any, and
 * mostly nobody does. */
static void see_debts(struct sgp_sim *sim, struct sgp_sim_host *changed)
{
    bool indebted = sgp_node_debt_count(changed->node) > 0 || changed->debts_unseen > 0;
    if (indebted != changed->indebted)
        sim->indebted += indebted ? 1u : UINT32_MAX; /* one more or one less */
    changed->indebted = indebted;
    if (sim->indebted == 0)
        return;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        struct sgp_sim_host *host = &sim->hosts[i];
        if (sgp_node_debt_count(host->node) == 0 && host->debts_unseen <= 0)
            continue;
        double unseen = unseen_debts(sim, host);
        sgp_sim_add(&sim->weight_unseen, unseen - host->debts_unseen);
        host->debts_unseen = unseen;
    }
}

/* An heir has accepted all that the source has, and answers for what that had accepted. */
static void hand_over(struct sgp_sim *sim, struct sgp_sim_host *source, uint32_t heir)
{
    source->handed = true;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        const struct sgp_sim_host *host = &sim->hosts[i];
        for (uint32_t j = host->out_count; j < host->link_count; j++) {
            struct sgp_sim_link *in = &sim->links[host->link_first + j];
            in->holder = in->holder == source->index ? heir : in->holder;
            in->before_holder = in->before_holder == source->index ? heir : in->before_holder;
        }
    }
    see_links(sim, source);
}

/* The target has accepted a share: it must be the one announced last, and beyond what its process had
 * accepted. From now on its mass is in the target's buffer. */
static void accept(struct sgp_sim *sim, struct sgp_sim_host *target, struct sgp_sim_link *in,
    uint64_t number, uint64_t id)
{
    struct sgp_sim_host *source = &sim->hosts[in->peer];
    const struct sgp_sim_connection *connection = sgp_sim_connection_of(sim, id);
    sgp_assert(connection);
    const struct sgp_share *share = &connection->share;
    if (number <= in->said || number != share->number)
        sgp_sim_fail(sim, SGP_E_STATE, "%s accepts share %llu of %s after %llu; %llu was announced",
            sgp_sim_name(sim, target->index), (unsigned long long)number,
            sgp_sim_name(sim, source->index), (unsigned long long)in->said,
            (unsigned long long)share->number);
    in->accepted = in->said = number;
    in->holder = target->index;
    struct sgp_sim_link *out = &sim->links[in->other];
    out->snapshot = connection->snapshot;
    out->fraction = (double)(float)share->fraction;
    out->life = source->life;
    sim->summary.shares++;
    if (share->bequest > 0) {
        sim->bequeathed += fmin(share->bequest, share->weight);
        hand_over(sim, source, target->index);
    }
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

static void check_link(struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_link *event)
{
    struct sgp_sim_link *link = find_link(sim, host, event);
    if (event->direction == SGP_OUT) {
        see_link(sim, host, link);
        return;
    }
    uint64_t number;
    double owed;
    (void)sgp_sim_link_account(host, link, &number, &owed);
    if (number == 0 && link->said > 0) /* nothing yet from this lineage of the source */
        link->said = link->accepted = 0;
    if (number == link->said)
        return;
    accept(sim, host, link, number, event->connection);
    see_link(sim, &sim->hosts[link->peer], &sim->links[link->other]);
}

void sgp_sim_check_event(struct sgp_sim *sim, struct sgp_sim_host *host,
    const struct sgp_event *event, const struct sgp_node_status *status)
{
    bool of_link = event->type >= SGP_EVENT_UP && event->type <= SGP_EVENT_HEARD;
    bool settled =
        !of_link && status->weight_in_flight < host->weight_in_flight; /* by others' word */
    sgp_sim_add(&sim->weight, status->weight - host->weight);
    sgp_sim_add(&sim->weight_in_flight, status->weight_in_flight - host->weight_in_flight);
    host->weight = status->weight;
    host->weight_in_flight = status->weight_in_flight;
    if (of_link)
        check_link(sim, host, &event->link);
    if (host->handed || settled)
        see_links(sim, host);
    see_debts(sim, host);
    if (sim->bequeathed < -SGP_SIM_MASS_SLACK * (double)sim->host_count) /* what came now counts */
        sgp_sim_fail(sim, SGP_E_STATE, "%s takes off weight %.17g that nobody has left to it",
            sgp_sim_name(sim, host->index), -sim->bequeathed);
    if (!(status->weight >= 0 && status->weight_in_flight >= 0))
        sgp_sim_fail(sim, SGP_E_STATE, "%s has weight %.17g and %.17g in flight",
            sgp_sim_name(sim, host->index), status->weight, status->weight_in_flight);
    check_total(sim,
        sgp_sim_total(&sim->weight) + sgp_sim_total(&sim->weight_in_flight) -
            sgp_sim_total(&sim->weight_unseen),
        "running sum");
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

static double count_in_flight(struct sgp_sim *sim, struct sgp_sim_host *source)
{
    double sum = 0;
    for (uint32_t i = sgp_node_next_owing(source->node, 0); i < sgp_node_link_count(source->node);
         i = sgp_node_next_owing(source->node, i + 1)) {
        struct sgp_peer_status here;
        sgp_node_link_status(source->node, i, &here);
        const struct sgp_sim_link *out =
            sgp_sim_link_of(source, source->file->hosts[here.peer], SGP_OUT);
        if (accepted_of(sim, out, here.last_number) < here.last_number && !source->handed)
            sum += here.weight_owed;
    }
    struct sgp_node_status status;
    sgp_node_status(source->node, &status);
    return sum + status.weight_debts - unseen_debts(sim, source);
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

/* What it owes of snapshots that were kept. */
static void begin_kept(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    const struct sgp_record *record = &host->record;
    for (uint32_t i = 0; i < record->link_count && record->lineage == host->lineage; i++) {
        const struct sgp_record_link *link = &record->links[i];
        if (!link->owed_kept)
            continue;
        const struct sgp_sim_link *out =
            sgp_sim_link_of(host, host->file->hosts[link->peer], SGP_OUT);
        if (sim->links[out->other].accepted >= link->number)
            continue;
        double fraction = (double)(float)link->owed_fraction;
        const float *snapshot = host->snapshots + link->owed_slot * sim->options.dimension;
        host->outstanding[link->owed_slot] += fraction;
        for (uint64_t c = 0; c < sim->options.dimension; c++)
            sim->moved[c] += fraction * (double)snapshot[c];
        sim->summary.kept++;
    }
}

void sgp_sim_check_begin(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        sim->moved[c] += (double)sim->after[c];
    begin_kept(sim, host);
}

void sgp_sim_check_exact(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    if (memcmp(sim->after, host->checkpoint.x, sim->options.dimension * sizeof *sim->after) != 0)
        sgp_sim_fail(sim, SGP_E_STATE, "%s goes on from a checkpoint that is spent",
            sgp_sim_name(sim, host->index));
}

/* The next process of the target has accepted so many, whatever the late one had: what is beyond is still
 * owed, if its source does not know, and will be taken back or sent again. */
static void accept_instead(struct sgp_sim *sim, struct sgp_sim_link *in, uint64_t accepted)
{
    struct sgp_sim_link *out = &sim->links[in->other];
    struct sgp_sim_host *source = &sim->hosts[in->peer];
    bool was_unseen = out->weight_unseen > 0;
    in->accepted = accepted;
    see_link(sim, source, out);
    bool is_unseen = out->weight_unseen > 0;
    if (was_unseen == is_unseen || source->dead || source->life != out->life)
        return; /* or its snapshot died with it */
    double fraction = is_unseen ? -out->fraction : out->fraction;
    source->outstanding[out->snapshot] += fraction;
    const float *snapshot = source->snapshots + out->snapshot * sim->options.dimension;
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        sim->moved[c] += fraction * (double)snapshot[c];
}

void sgp_sim_check_forget(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    for (uint32_t i = 0; i < sim->host_count; i++) {
        const struct sgp_sim_host *target = &sim->hosts[i];
        for (uint32_t j = target->out_count; j < target->link_count; j++) {
            struct sgp_sim_link *in = &sim->links[target->link_first + j];
            in->before = in->before_holder == host->index ? 0 : in->before;
            if (in->holder == host->index) {
                accept_instead(sim, in, 0);
                in->former = 0;
            }
        }
    }
    for (uint32_t i = 0; i < host->link_count; i++) {
        struct sgp_sim_link *link = &sim->links[host->link_first + i];
        link->said = 0;
        sgp_sim_add(&sim->weight_unseen, -link->weight_unseen);
        link->weight_unseen = 0;
        if (i < host->out_count) /* its numbers start again */
            sim->links[link->other].accepted = sim->links[link->other].former = 0;
    }
    host->handed = false;
    see_debts(sim, host);
    sgp_sim_add(&sim->weight, 1 - host->weight);
    sgp_sim_add(&sim->weight_in_flight, -host->weight_in_flight);
    host->weight = 1;
    host->weight_in_flight = 0;
    sim->expected = sgp_sim_weight(sim);
}

/* The number of the last share that the record of a target says it accepted from this lineage. */
static uint64_t accepted_on_record(
    const struct sgp_sim_host *host, uint32_t source, uint64_t lineage)
{
    uint32_t peer = host->file->nodes[source];
    for (uint32_t i = 0; i < host->record.link_count; i++) {
        const struct sgp_record_link *link = &host->record.links[i];
        if (link->peer != peer || link->out)
            continue;
        return link->lineage == lineage          ? link->number
               : link->former_lineage == lineage ? link->former_number
                                                 : 0;
    }
    return 0;
}

/* A target that has begun anew since the record was saved does not have what it is owed by it. */
static void owe_before(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    for (uint32_t i = 0; i < host->record.link_count; i++) {
        const struct sgp_record_link *link = &host->record.links[i];
        uint32_t target = host->file->hosts[link->peer];
        if (link->owes && link->lineage != sim->hosts[target].lineage)
            sgp_sim_link_of(host, target, SGP_OUT)->owed_before = link->number;
    }
}

void sgp_sim_check_restore(struct sgp_sim *sim, struct sgp_sim_host *host, double covered)
{
    double owed;
    owe_before(sim, host);
    for (uint32_t i = host->out_count; i < host->link_count; i++) {
        struct sgp_sim_link *in = &sim->links[host->link_first + i];
        uint64_t lineage = sim->hosts[in->peer].lineage;
        accept_instead(sim, in, accepted_on_record(host, in->peer, lineage));
        in->former = accepted_on_record(host, in->peer, in->former_lineage);
        (void)sgp_sim_link_account(host, in, &in->said, &owed);
    }
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    sgp_sim_add(&sim->weight, status.weight - host->weight);
    sgp_sim_add(&sim->weight_in_flight, status.weight_in_flight - host->weight_in_flight);
    host->weight = status.weight;
    host->weight_in_flight = status.weight_in_flight;
    see_links(sim, host);
    see_debts(sim, host);
    sim->bequeathed += host->record.covered - covered;
    sim->expected = sgp_sim_weight(sim);
}

void sgp_sim_check_rejoin(struct sgp_sim *sim, struct sgp_sim_host *host, uint64_t former_lineage)
{
    for (uint32_t i = 0; i < host->link_count; i++) {
        struct sgp_sim_link *link = &sim->links[host->link_first + i];
        link->said = 0;
        if (i >= host->out_count) {
            link->before = link->accepted;
            link->before_holder = link->holder;
            continue;
        }
        struct sgp_sim_link *in = &sim->links[link->other];
        in->former = in->accepted;
        in->former_lineage = former_lineage;
        in->accepted = 0;
    }
    host->handed = false;
    see_links(sim, host);
    see_debts(sim, host);
    sgp_sim_add(&sim->weight, 1 - host->weight);
    sgp_sim_add(&sim->weight_in_flight, -host->weight_in_flight);
    host->weight = 1;
    host->weight_in_flight = 0;
    sim->expected += 1;
}

void sgp_sim_check_dispute(struct sgp_sim_host *host, const struct sgp_effect *note)
{
    struct sgp_sim *sim = host->sim;
    const struct sgp_inquire *share = &note->message.inquire;
    double fraction = (double)(float)note->factor;
    if (note->slot == SGP_SLOT_NONE)
        return; /* it is kept */
    struct sgp_account debt = {.number = share->number,
        .source_lineage = share->source_lineage,
        .target_lineage = share->target_lineage};
    memcpy(debt.source, share->source, strlen(share->source) + 1);
    memcpy(debt.target, share->target, strlen(share->target) + 1);
    if (is_paid(sim, &debt))
        return;
    host->outstanding[note->slot] -= fraction;
    const float *snapshot = host->snapshots + note->slot * sim->options.dimension;
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        sim->moved[c] -= fraction * (double)snapshot[c];
}

void sgp_sim_check_dissolve(struct sgp_sim_host *host, double weight)
{
    host->sim->expected -= weight;
    host->sim->bequeathed -= weight;
}
