/* Owns the run: one entry of the queue after another, until everybody has finished or an invariant
 * breaks; and what may be looked at from outside. One thread. */
#include "sim/world.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <xxhash.h>

#define STALL_HOPS_MAX 6u                  /* of a chain of those who wait, told */
#define STALL_BYTES (SGP_TEXT_BYTES - 96u) /* of that chain; time and seed stand before it */
#define TICKS_MAX 10000u                   /* in a row, without time passing */

/* ---- small things ---- */

const char *sgp_sim_name(const struct sgp_sim *sim, uint32_t host)
{
    return sim->topology->nodes[host].name;
}

double sgp_sim_weight(const struct sgp_sim *sim)
{
    return sgp_sim_total(&sim->weight) + sgp_sim_total(&sim->weight_in_flight) -
           sgp_sim_total(&sim->weight_unseen);
}

void sgp_sim_fail(struct sgp_sim *sim, int code, const char *format, ...)
{
    char text[SGP_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)sgp_fail(&sim->error, code, "at %.6f s of virtual time, seed %llu: %s",
        (double)sim->now / (double)SGP_SECOND, (unsigned long long)sim->options.seed, text);
}

sgp_time sgp_sim_span(double nanoseconds)
{
    return (sgp_time)fmin(nanoseconds, (double)SGP_SIM_TIME_MAX);
}

void sgp_sim_push(
    struct sgp_sim *sim, sgp_time time, enum sgp_sim_kind kind, uint32_t detail, uint32_t index)
{
    uint64_t item = (uint64_t)kind | (uint64_t)detail << 8 | (uint64_t)index << 16;
    if (time > SGP_SIM_TIME_MAX) {
        sgp_sim_fail(sim, SGP_E_STATE, "virtual time is over before what was asked for is done");
        return;
    }
    if (sgp_queue_push(&sim->queue, time, item) < 0)
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
}

/* ---- the run ---- */

static void digest_event(struct sgp_sim *sim, const struct sgp_sim_host *host,
    const struct sgp_event *event, const struct sgp_node_status *status)
{
    struct {
        sgp_time now;
        uint32_t host, type, peer, direction;
        int64_t code;
        double weight, weight_in_flight;
    } trace = {
        .now = sim->now,
        .host = host->index,
        .type = (uint32_t)event->type,
        .peer = event->link.peer,
        .direction = (uint32_t)event->link.direction,
        .code = event->code,
        .weight = status->weight,
        .weight_in_flight = status->weight_in_flight,
    };
    sim->digest = XXH3_64bits_withSeed(&trace, sizeof trace, sim->digest);
}

static void count_done(struct sgp_sim *sim, struct sgp_sim_host *host, enum sgp_node_state state)
{
    bool done = host->gone || host->diverged || host->drained || state == SGP_NODE_FINISHED;
    if (done == host->done)
        return;
    host->done = done;
    sim->done_count += done ? 1u : UINT32_MAX; /* one more or one less */
    sim->done_at = sim->done_count == sim->host_count ? sim->now : SGP_TIME_NEVER;
}

static void schedule_tick(struct sgp_sim *sim, struct sgp_sim_host *host, sgp_time time)
{
    if (time >= host->tick_at)
        return;
    host->tick_at = time > sim->now ? time : sim->now;
    sgp_sim_push(sim, host->tick_at, SGP_SIM_TICK, 0, host->index);
}

/* When the core's deadline comes, if the host's clock keeps time until then. */
static sgp_time when_due(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    sgp_time deadline = sgp_node_deadline(host->node);
    return deadline == SGP_TIME_NEVER ? deadline : deadline - sgp_sim_clock(sim, host) + sim->now;
}

void sgp_sim_post(struct sgp_sim *sim, struct sgp_sim_host *host, struct sgp_event *event)
{
    sgp_assert(!host->dead);
    bool left_before = host->diverged || host->drained;
    event->now = sgp_sim_clock(sim, host);
    sim->summary.events++;
    sgp_driver_post(&host->driver, event);
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    sgp_sim_check_event(sim, host, event, &status);
    digest_event(sim, host, event, &status);
    count_done(sim, host, status.state);
    if ((host->diverged || host->drained) && !left_before)
        sgp_sim_rows_recount(sim);
    schedule_tick(sim, host, when_due(sim, host));
}

static void tick(struct sgp_sim *sim, struct sgp_sim_host *host, sgp_time time)
{
    if (time != host->tick_at) /* an earlier one took its place */
        return;
    host->tick_at = SGP_TIME_NEVER;
    sgp_time deadline = when_due(sim, host);
    sgp_time ready = sgp_sim_ready(sim, host->index);
    deadline = deadline > ready ? deadline : ready;
    if (deadline > sim->now) {
        if (deadline != SGP_TIME_NEVER)
            schedule_tick(sim, host, deadline);
        return;
    }
    if (host->ticked_at != sim->now)
        host->ticks_here = 0;
    host->ticked_at = sim->now;
    if (++host->ticks_here > TICKS_MAX)
        sgp_sim_fail(
            sim, SGP_E_STATE, "%s asks for ticks without end", sgp_sim_name(sim, host->index));
    struct sgp_event event = {.type = SGP_EVENT_TICK};
    sgp_sim_post(sim, host, &event);
}

static void checkpoint(struct sgp_sim *sim, struct sgp_sim_host *host, sgp_time ready)
{
    if (ready == SGP_TIME_NEVER)
        return;
    if (!host->dead && ready <= sim->now)
        sgp_sim_checkpoint(host);
    sgp_time next = sim->now + sim->options.checkpoint_ns;
    if (next <= SGP_SIM_TIME_MAX)
        sgp_sim_push(sim, ready > next ? ready : next, SGP_SIM_CHECKPOINT, 0, host->index);
}

/* An entry that is about a host's own process waits until that runs. */
static void host_entry(struct sgp_sim *sim, const struct sgp_queue_entry *entry,
    enum sgp_sim_kind kind, uint32_t index)
{
    struct sgp_sim_host *host = &sim->hosts[index];
    uint32_t detail = (uint32_t)(entry->item >> 8 & 0xff);
    sgp_time ready = sgp_sim_ready(sim, index);
    if (kind == SGP_SIM_TICK) {
        tick(sim, host, entry->time);
    } else if (kind == SGP_SIM_LEAP) {
        if (!host->dead)
            schedule_tick(sim, host, sim->now);
    } else if (kind == SGP_SIM_CHECKPOINT) {
        checkpoint(sim, host, ready);
    } else if (kind == SGP_SIM_GONE) {
        host->gone = true;
        count_done(sim, host, SGP_NODE_FINISHED);
        sgp_sim_rows_recount(sim);
    } else if (ready > sim->now) {
        /* What a process is told dies with it, and where there is none, the next one does not hear of it. */
        bool heard = (kind != SGP_SIM_COMMAND && kind != SGP_SIM_INQUIRED) || !host->dead;
        if (ready != SGP_TIME_NEVER && heard)
            sgp_sim_push(sim, ready, kind, detail, index);
    } else if (kind == SGP_SIM_INQUIRED) {
        sgp_sim_inquired(sim, host, detail);
    } else if (kind == SGP_SIM_JOB) {
        if (detail == host->life)
            sgp_sim_job_done(host);
    } else if (!host->dead && (kind != SGP_SIM_START || detail == host->life)) {
        struct sgp_event event = {
            .type = kind == SGP_SIM_START ? SGP_EVENT_START : (enum sgp_event_type)detail};
        sgp_sim_post(sim, host, &event);
    }
}

/* A machine that is stopped starts nothing until it goes on, and one that is gone never does. */
static void rebirth(struct sgp_sim *sim, const struct sgp_sim_crash *crash, uint32_t index)
{
    sgp_time ready = sgp_sim_ready(sim, crash->node);
    if (ready > sim->now) {
        if (ready != SGP_TIME_NEVER)
            sgp_sim_push(sim, ready, SGP_SIM_REBIRTH, 0, index);
        return;
    }
    int status = sgp_sim_rebirth(sim, crash);
    if (status < 0)
        sgp_sim_fail(sim, status, "%s cannot be started again: %s", sgp_sim_name(sim, crash->node),
            sgp_strerror(status));
}

static void step(struct sgp_sim *sim)
{
    struct sgp_queue_entry entry = sgp_queue_pop(&sim->queue);
    enum sgp_sim_kind kind = (enum sgp_sim_kind)(entry.item & 0xff);
    uint32_t detail = (uint32_t)(entry.item >> 8 & 0xff);
    uint32_t index = (uint32_t)(entry.item >> 16);
    sim->now = entry.time;
    if (kind >= SGP_SIM_DIALLED)
        sgp_sim_network_entry(sim, kind, detail, index);
    else if (kind == SGP_SIM_HALF_OPEN)
        sgp_sim_half_open(sim, &sim->options.half_opens[index]);
    else if (kind == SGP_SIM_CRASH)
        sgp_sim_die(sim, &sim->options.crashes[index]);
    else if (kind == SGP_SIM_SAVE)
        sgp_sim_save(sim, &sim->options.crashes[index]);
    else if (kind == SGP_SIM_RELOAD)
        sgp_sim_reload(sim, &sim->options.reloads[index]);
    else if (kind == SGP_SIM_REBIRTH)
        rebirth(sim, &sim->options.crashes[index], index);
    else
        host_entry(sim, &entry, kind, index);
}

/* Who has waited longest of those who are not done; NONE if nobody is left. */
static uint32_t find_stalled(const struct sgp_sim *sim)
{
    sgp_time since = SGP_TIME_NEVER;
    uint32_t worst = SGP_SLOT_NONE;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        struct sgp_node_status status;
        sgp_node_status(sim->hosts[i].node, &status);
        if (sim->hosts[i].done || (worst != SGP_SLOT_NONE && status.waiting_since >= since))
            continue;
        since = status.waiting_since;
        worst = i;
    }
    return worst;
}

/* "NAME, STATE in round K, waits for WHAT": returns whom it waits for, NONE if that is nobody. */
static uint32_t tell_waiting(
    const struct sgp_sim *sim, uint32_t index, char *text, size_t size, size_t *used)
{
    const struct sgp_sim_host *host = &sim->hosts[index];
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    bool waits = !host->gone && !host->dead && status.waiting != SGP_WAITING_NOTHING;
    const char *state = host->gone   ? "gone"
                        : host->dead ? "killed"
                                     : sgp_node_state_name(status.state);
    int bytes = snprintf(text + *used, size - *used, "%s, %s in round %lld%s%s",
        sgp_sim_name(sim, index), state, (long long)status.round, waits ? ", waits for " : "",
        waits ? sgp_waiting_name(status.waiting) : "");
    *used = bytes < 0 || (size_t)bytes >= size - *used ? size - 1 : *used + (size_t)bytes;
    return waits && status.waiting_peer != SGP_SLOT_NONE ? host->file->hosts[status.waiting_peer]
                                                         : SGP_SLOT_NONE;
}

/* Blame whoever has waited longest, and follow whom it waits for: to one who waits for nobody, or
 * round a circle. */
static void fail_stalled(struct sgp_sim *sim)
{
    static const char of[] = " of ";
    char text[STALL_BYTES] = "";
    const size_t room = sizeof text - SGP_NAME_BYTES - sizeof of; /* the last name has the rest */
    size_t used = 0;
    uint32_t first = find_stalled(sim), at = first;
    for (uint32_t hop = 1; at != SGP_SLOT_NONE; hop++) {
        at = tell_waiting(sim, at, text, room, &used);
        bool last = at == first || hop == STALL_HOPS_MAX || room - used < SGP_NAME_BYTES;
        if (at != SGP_SLOT_NONE)
            used += (size_t)snprintf(
                text + used, sizeof text - used, "%s%s", of, last ? sgp_sim_name(sim, at) : "");
        if (last)
            break;
    }
    sgp_sim_fail(sim, SGP_E_STATE, "nobody advances any more: %s", text);
}

static bool is_stalled(const struct sgp_sim *sim, sgp_time next)
{
    sgp_time since = sim->progressed > sim->faults_end ? sim->progressed : sim->faults_end;
    return next > since && next - since > sim->stall_ns;
}

/* Done, and no job is queued and nothing is owed any more, or nobody will settle it. */
static bool is_settled(const struct sgp_sim *sim, sgp_time next)
{
    if (sim->done_at == SGP_TIME_NEVER)
        return false;
    bool open = false;
    for (uint32_t i = 0; i < sim->host_count && !open; i++) {
        const struct sgp_sim_host *host = &sim->hosts[i];
        open = !host->gone && (host->weight_in_flight > 0 || host->job_first);
    }
    return !open || next > sim->done_at + SGP_SIM_SETTLE_NS;
}

int sgp_sim_run(struct sgp_sim *sim, sgp_time until, struct sgp_error *error)
{
    while (sim->error.code == 0 && sim->queue.count > 0) {
        sgp_time next = sgp_queue_next(&sim->queue);
        if (next > until || is_settled(sim, next))
            break;
        if (sim->done_at == SGP_TIME_NEVER && is_stalled(sim, next)) {
            fail_stalled(sim);
            break;
        }
        step(sim);
    }
    if (sim->error.code == 0 && sim->queue.count == 0 && !sgp_sim_done(sim))
        fail_stalled(sim);
    if (sim->error.code == 0)
        sgp_sim_check_all(sim);
    if (sim->error.code == 0)
        return 0;
    return sgp_fail(error, sim->error.code, "%s", sim->error.text);
}

bool sgp_sim_done(const struct sgp_sim *sim)
{
    return sim->done_count == sim->host_count;
}

int sgp_sim_command(struct sgp_sim *sim, sgp_time time, uint32_t node, enum sgp_event_type type)
{
    sgp_assert(time >= sim->now && node < sim->host_count && type >= SGP_EVENT_ENOUGH &&
               type <= SGP_EVENT_LEAVE);
    sgp_sim_push(sim, time, SGP_SIM_COMMAND, (uint32_t)type, node);
    return sim->error.code;
}

/* ---- looking ---- */

const struct sgp_node *sgp_sim_node(const struct sgp_sim *sim, uint32_t node)
{
    sgp_assert(node < sim->host_count);
    return sim->hosts[node].node;
}

struct sgp_trainer *sgp_sim_trainer(const struct sgp_sim *sim, uint32_t node)
{
    sgp_assert(node < sim->host_count);
    return sim->hosts[node].trainer;
}

void sgp_sim_estimate(const struct sgp_sim *sim, uint32_t node, float *ret_estimate)
{
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(sim, node), &status);
    const struct sgp_trainer *trainer = sim->hosts[node].trainer;
    trainer->methods->estimate(trainer, status.weight_estimate, ret_estimate);
}

void sgp_sim_summary(const struct sgp_sim *sim, struct sgp_sim_summary *ret_summary)
{
    *ret_summary = sim->summary;
    ret_summary->time = sim->now;
    ret_summary->weight = sgp_sim_weight(sim);
    ret_summary->weight_in_flight =
        sgp_sim_total(&sim->weight_in_flight) - sgp_sim_total(&sim->weight_unseen);
    ret_summary->disagreement = sgp_sim_rows_disagreement(sim);
    ret_summary->digest = sim->digest;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        const struct sgp_sim_host *host = &sim->hosts[i];
        struct sgp_node_status status;
        sgp_node_status(host->node, &status);
        ret_summary->weight_unknown += status.unknown;
        ret_summary->finished += !host->gone && status.state == SGP_NODE_FINISHED;
        ret_summary->diverged += host->diverged;
        uint64_t digest = host->trainer->methods->digest(host->trainer);
        ret_summary->digest = XXH3_64bits_withSeed(&digest, sizeof digest, ret_summary->digest);
    }
}
