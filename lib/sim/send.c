/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves a host: messages, the snapshots that follow them, and the end of a connection. */
#include "sim/world.h"

#include "sgp/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static sgp_time transfer_time(
    struct sgp_sim *sim, const struct sgp_sim_connection *connection, uint64_t bytes)
{
    double bandwidth = sgp_sim_is_within(sim, connection) ? 0 : sim->options.bandwidth;
    return bandwidth > 0 ? sgp_sim_span((double)bytes / bandwidth * (double)SGP_SECOND) : 0;
}

void sgp_sim_pipe_schedule(
    struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side)
{
    struct sgp_sim_pipe *pipe = &connection->pipes[side];
    if (pipe->scheduled || !pipe->first)
        return;
    pipe->scheduled = true;
    sgp_time due = pipe->first->due > sim->now ? pipe->first->due : sim->now;
    sgp_sim_network_push(sim, due, SGP_SIM_ARRIVAL, side, connection);
}

static void enqueue(struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side,
    struct sgp_sim_flight *flight, sgp_time due)
{
    struct sgp_sim_pipe *pipe = &connection->pipes[side];
    flight->due = due > pipe->last_due ? due : pipe->last_due;
    pipe->last_due = flight->due;
    if (pipe->last)
        pipe->last->next = flight;
    else
        pipe->first = flight;
    pipe->last = flight;
    sgp_sim_pipe_schedule(sim, connection, side);
}

static void copy_name(char to[SGP_NAME_BYTES], const char *from)
{
    memcpy(to, from, strlen(from) + 1);
}

/* A copy of the message that outlives the call: its frame, or the message with its text. */
static struct sgp_sim_flight *pack(struct sgp_sim *sim, const struct sgp_message *message)
{
    char names[2][SGP_NAME_BYTES] = {{0}};
    const void *tail = NULL;
    size_t bytes = 0;
    if (sim->options.through_wire) {
        int status = sgp_wire_encode(message, sim->frame, SGP_WIRE_FRAME_MAX, &bytes);
        if (status < 0)
            sgp_sim_fail(sim, SGP_E_FRAME, "a %s cannot be encoded: %s",
                sgp_message_type_name(message->type), sgp_strerror(status));
        tail = sim->frame;
    } else if (message->type == SGP_GOODBYE) {
        tail = message->goodbye.text;
        bytes = strlen(message->goodbye.text) + 1;
    } else if (message->type == SGP_BEQUEATH) {
        copy_name(names[0], message->bequeath.source);
        copy_name(names[1], message->bequeath.target);
        tail = names;
        bytes = sizeof names;
    }
    struct sgp_sim_flight *flight = malloc(sizeof *flight + bytes);
    if (!flight) {
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
        return NULL;
    }
    flight->next = NULL;
    flight->due = 0;
    flight->last = false;
    flight->message = *message;
    flight->tail_bytes = bytes;
    if (bytes > 0)
        memcpy(flight->tail, tail, bytes);
    return flight;
}

/* A share was sent, and its snapshot follows: queue it on the source's network card. Returns when
 * it has arrived, which is not before it was announced. */
static sgp_time send_payload(struct sgp_sim *sim, struct sgp_sim_connection *connection,
    const struct sgp_share *share, uint32_t snapshot, sgp_time announced)
{
    struct sgp_sim_host *card = sgp_sim_machine(&sim->hosts[connection->hosts[SGP_SIM_SOURCE]]);
    if (connection->payload_count == sizeof connection->payloads / sizeof *connection->payloads) {
        sgp_sim_fail(sim, SGP_E_STATE, "%s sends share %llu behind two that are still under way",
            sgp_sim_name(sim, connection->hosts[SGP_SIM_SOURCE]),
            (unsigned long long)share->number);
        return announced;
    }
    uint64_t chunks = (share->payload_bytes + SGP_WIRE_CHUNK_MAX - 1) / SGP_WIRE_CHUNK_MAX;
    uint64_t bytes = share->payload_bytes + chunks * SGP_WIRE_HEADER_BYTES;
    sim->summary.bytes += bytes;
    sim->hosts[connection->hosts[SGP_SIM_SOURCE]].bytes += bytes;
    bool waits = card->busy_until > sim->now && !sgp_sim_is_within(sim, connection);
    sgp_time begin = waits ? card->busy_until : sim->now;
    sgp_time end = begin + transfer_time(sim, connection, SGP_SIM_MESSAGE_BYTES + bytes);
    end = end < SGP_SIM_TIME_MAX ? end : SGP_SIM_TIME_MAX;
    card->busy_until = card->busy_until > end ? card->busy_until : end;
    sgp_time due = end + sgp_sim_latency(sim, connection);
    due = due > announced ? due : announced;
    connection->payloads[connection->payload_count++] = (struct sgp_sim_payload){
        .snapshot = snapshot, .from = begin, .sent = end, .announced = announced, .due = due};
    return due;
}

/* A share needs a credit of its own round, and uses it up. If the link has its own buffer, the
 * round of the credit does not matter. */
static void spend_credit(
    struct sgp_sim *sim, struct sgp_sim_connection *connection, const struct sgp_share *share)
{
    bool strict = !sgp_method_has_own_buffers(sim->options.method);
    sgp_round *credit = connection->credits;
    credit += strict && credit[0] != share->round;
    if (*credit == SGP_ROUND_NONE || (strict && *credit != share->round))
        sgp_sim_fail(sim, SGP_E_STATE, "%s sends %s share %llu of round %lld without a credit",
            sgp_sim_name(sim, connection->hosts[SGP_SIM_SOURCE]),
            sgp_sim_name(sim, connection->hosts[SGP_SIM_TARGET]), (unsigned long long)share->number,
            (long long)share->round);
    *credit = SGP_ROUND_NONE;
}

/* A message may break its connection at random, at any moment until it has arrived completely. */
static void maybe_break(struct sgp_sim *sim, struct sgp_sim_connection *connection, sgp_time until)
{
    if (sim->options.loss <= 0 || sgp_random_double(&sim->random) >= sim->options.loss)
        return;
    double span = (double)(until - sim->now);
    sgp_time time = sim->now + (sgp_time)(span * sgp_random_double(&sim->random));
    sgp_sim_network_push(sim, time, SGP_SIM_RESET, 0, connection);
}

struct sgp_share sgp_sim_cargo(const struct sgp_sim *sim, const struct sgp_message *message)
{
    const struct sgp_estimate *estimate = &message->estimate;
    if (message->type == SGP_SHARE)
        return message->share;
    if (message->type != SGP_ESTIMATE)
        return (struct sgp_share){.number = 0};
    return (struct sgp_share){.round = estimate->round,
        .weight = estimate->weight, /* no fraction, because an estimate is no mass */
        .slice = estimate->slice.count > 0 ? estimate->slice
                                           : (struct sgp_slice){0, sim->options.dimension},
        .payload_bytes = estimate->payload_bytes,
        .coding = estimate->coding};
}

/* An estimate in transit does not change with its snapshot, which the source may use again once it
 * has hung up. */
static void keep_estimate(const struct sgp_sim_host *source, struct sgp_sim_connection *connection,
    const struct sgp_estimate *announced, uint32_t snapshot)
{
    connection->estimate_compressor = announced->compressor;
    uint64_t dimension = source->sim->options.dimension;
    if (!connection->estimate)
        connection->estimate = malloc(dimension * sizeof *connection->estimate);
    if (connection->estimate)
        memcpy(connection->estimate, sgp_sim_snapshot(source, snapshot),
            dimension * sizeof *connection->estimate);
    else
        sgp_sim_fail(source->sim, -ENOMEM, "out of memory");
}

void sgp_sim_send(
    void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot)
{
    struct sgp_sim_host *host = context;
    struct sgp_sim *sim = host->sim;
    struct sgp_sim_connection *connection = sgp_sim_connection_of(sim, link.connection);
    uint32_t side = link.direction == SGP_OUT ? SGP_SIM_SOURCE : SGP_SIM_TARGET;
    if (!connection || connection->ends[side] != SGP_SIM_END_OPEN) {
        sgp_sim_fail(sim, SGP_E_STATE, "%s sends a %s on a connection that is closed",
            sgp_sim_name(sim, host->index), sgp_message_type_name(message->type));
        return;
    }
    if (connection->broken) /* the other end will learn of that soon */
        return;
    /* The target may end in this step, and then everything is counted. */
    if (message->type == SGP_ACK && message->ack.reason != SGP_REASON_NONE && sim->arriving &&
        sim->arriving->share.number == message->ack.number)
        sim->arriving->state = SGP_SIM_RECEIVE_FREE;
    if (snapshot != SGP_SLOT_NONE) {
        sim->message = *message;
        (void)sgp_perform_send(&host->performer, &sim->message, snapshot);
        if (message->type == SGP_SHARE)
            sgp_sim_lie_of_weight(sim, host->index, &sim->message.share);
        message = &sim->message;
    }
    struct sgp_sim_flight *flight = pack(sim, message);
    if (!flight)
        return;
    sgp_time due = sim->now + transfer_time(sim, connection, SGP_SIM_MESSAGE_BYTES) +
                   sgp_sim_latency(sim, connection);
    bool announces = message->type == SGP_SHARE || message->type == SGP_ESTIMATE;
    uint32_t before = announces ? connection->payload_count : 0;
    if (before > 0 && connection->payloads[before - 1].due >= due)
        due = connection->payloads[before - 1].due + 1;
    sim->summary.messages++;
    sim->summary.bytes += SGP_SIM_MESSAGE_BYTES;
    host->bytes += SGP_SIM_MESSAGE_BYTES;
    enqueue(sim, connection, !side, flight, due);
    due = flight->due;
    if (message->type == SGP_SHARE)
        spend_credit(sim, connection, &message->share);
    struct sgp_share cargo = sgp_sim_cargo(sim, message);
    if (message->type == SGP_ESTIMATE && !message->estimate.same) {
        keep_estimate(host, connection, &message->estimate, snapshot);
        sgp_sim_copy_sent(host, snapshot, &sim->hosts[connection->hosts[SGP_SIM_TARGET]]);
    }
    if (cargo.payload_bytes > 0)
        due = send_payload(sim, connection, &cargo, snapshot, due);
    maybe_break(sim, connection, due);
}

/* Bytes that have left the source completely still arrive. The rest is discarded. */
static void drop_unsent(struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side)
{
    uint32_t whole = 0;
    while (side == SGP_SIM_SOURCE && whole < connection->payload_count &&
           connection->payloads[whole].sent <= sim->now)
        whole++;
    sgp_sim_drop_payloads(sim, connection, whole);
}

void sgp_sim_hang_up(
    void *context, struct sgp_link link, int code, const struct sgp_message *goodbye)
{
    struct sgp_sim_host *host = context;
    struct sgp_sim *sim = host->sim;
    sim->summary.broken += code == SGP_E_PROTOCOL;
    struct sgp_sim_connection *connection = sgp_sim_connection_of(sim, link.connection);
    uint32_t side = link.direction == SGP_OUT ? SGP_SIM_SOURCE : SGP_SIM_TARGET;
    sgp_assert(connection && connection->ends[side] == SGP_SIM_END_OPEN);
    connection->ends[side] = SGP_SIM_END_CLOSED;
    sgp_sim_pipe_clear(&connection->pipes[side]);
    drop_unsent(sim, connection, side);
    /* no other entry refers to the connection any more, so free it here */
    if (connection->broken) {
        sgp_sim_network_push(sim, sim->now, SGP_SIM_RESET, 0, connection);
        return;
    }
    sgp_time due = sim->now + sgp_sim_latency(sim, connection);
    uint32_t last = connection->payload_count;
    if (last > 0 && connection->payloads[last - 1].due > due)
        due = connection->payloads[last - 1].due;
    struct sgp_sim_flight *words = pack(sim, goodbye), *end = pack(sim, goodbye);
    if (!words || !end) {
        free(words);
        free(end);
        return;
    }
    end->last = true;
    enqueue(sim, connection, !side, words, due);
    enqueue(sim, connection, !side, end, due);
}

void sgp_sim_receive(void *context, struct sgp_link link, uint32_t slot)
{
    struct sgp_sim_host *host = context;
    struct sgp_sim *sim = host->sim;
    struct sgp_sim_connection *connection = sgp_sim_connection_of(sim, link.connection);
    sgp_assert(connection);
    struct sgp_sim_receive *receive = &host->receives[slot];
    /* an estimate that the core has not adopted may be dropped at any time */
    bool dropped = receive->state == SGP_SIM_RECEIVE_HELD && receive->share.number == 0;
    if (receive->state != SGP_SIM_RECEIVE_FREE && !dropped)
        sgp_sim_fail(sim, SGP_E_STATE, "%s receives into slot %u, which is in use",
            sgp_sim_name(sim, host->index), slot);
    receive->state = SGP_SIM_RECEIVE_FILLING;
    receive->share = connection->share;
    receive->epoch = connection->epoch;
    receive->told = receive->folds = false;
    connection->slot = slot;
    (void)sgp_perform_receive(&host->performer, slot);
}

uint64_t sgp_sim_bytes_so_far(
    const struct sgp_sim *sim, const struct sgp_sim_connection *connection)
{
    const struct sgp_sim_payload *payload = &connection->payloads[0];
    double all = (double)(payload->due - payload->begun);
    double part = all > 0 ? (double)(sim->now - payload->begun) / all : 0;
    return (uint64_t)(part * (double)connection->share.payload_bytes);
}

void sgp_sim_fold(void *context, const struct sgp_effect *effect)
{
    struct sgp_sim_host *host = context;
    const struct sgp_sim_connection *connection =
        sgp_sim_connection_of(host->sim, effect->fold.link.connection);
    struct sgp_sim_receive *receive = &host->receives[effect->fold.slot];
    /* the payload is lost, and an event will say so */
    if (!connection || connection->slot != effect->fold.slot)
        return;
    bool changes = sgp_perform_fold(&host->performer, effect,
        sgp_sim_bytes_so_far(host->sim, connection), receive->share.payload_bytes);
    receive->told = effect->fold.how.snapshot != SGP_SLOT_NONE;
    receive->folds = receive->told && changes;
}
