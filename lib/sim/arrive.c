/* SPDX-License-Identifier: Apache-2.0 */
/* What arrives at a host: messages in order, payloads in pieces, and events of its connections. */
#include "sim/world.h"

#include "sgp/kernels.h"
#include "sgp/payload.h"
#include "sgp/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static struct sgp_link link_at(
    const struct sgp_sim *sim, const struct sgp_sim_connection *connection, uint32_t side)
{
    const struct sgp_sim_host *host = &sim->hosts[connection->hosts[side]];
    return (struct sgp_link){
        .peer = host->file->nodes[connection->hosts[!side]],
        .direction = side == SGP_SIM_SOURCE ? SGP_OUT : SGP_IN,
        .connection = connection->id,
    };
}

/* Whether the side can receive now. If the peer's process is stopped, or the network is cut, try
 * again when that is over. A machine that is gone never receives anything. Behind a cut that never
 * ends all messages are stuck until one side hangs up. */
static bool can_hear(struct sgp_sim *sim, struct sgp_sim_connection *connection,
    enum sgp_sim_kind kind, uint32_t side)
{
    uint32_t host = connection->hosts[side];
    sgp_time ready = sgp_sim_ready(sim, host);
    if (ready == SGP_TIME_NEVER) {
        connection->ends[side] = SGP_SIM_END_CLOSED;
        return false;
    }
    if (kind == SGP_SIM_ARRIVAL || kind == SGP_SIM_PAYLOAD) {
        sgp_time open = sgp_sim_passable(sim, connection->hosts[!side], host);
        ready = open > ready ? open : ready;
    }
    if (ready > sim->now && ready != SGP_TIME_NEVER)
        sgp_sim_network_push(sim, ready, kind, side, connection);
    return ready <= sim->now;
}

static void down(
    struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side, int code)
{
    connection->ends[side] = SGP_SIM_END_CLOSED;
    if (side == SGP_SIM_TARGET)
        sgp_sim_drop_payloads(sim, connection, 0);
    struct sgp_event event = {
        .type = SGP_EVENT_DOWN, .link = link_at(sim, connection, side), .code = code};
    sgp_sim_post(sim, &sim->hosts[connection->hosts[side]], &event);
}

static void dialled(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    uint32_t source = connection->hosts[SGP_SIM_SOURCE], target = connection->hosts[SGP_SIM_TARGET];
    if (connection->broken || !can_hear(sim, connection, SGP_SIM_DIALLED, SGP_SIM_SOURCE))
        return;
    sgp_time open = sgp_sim_passable(sim, source, target);
    sgp_time answer = sgp_sim_passable(sim, target, source);
    open = answer > open ? answer : open;
    /* the kernel of a stopped process would accept the connection */
    if (sgp_sim_ready(sim, target) == SGP_TIME_NEVER)
        open = SGP_TIME_NEVER;
    struct sgp_event event = {
        .type = SGP_EVENT_UP, .link = link_at(sim, connection, SGP_SIM_SOURCE)};
    if (open <= sim->now && (sim->hosts[target].dead || sim->hosts[target].drained)) {
        event.type = SGP_EVENT_DOWN;
        event.link.connection = 0;
        event.code = -ECONNREFUSED;
    } else if (open <= sim->now) {
        connection->ends[SGP_SIM_SOURCE] = SGP_SIM_END_OPEN;
    } else if (connection->give_up <= sim->now) {
        event.type = SGP_EVENT_DOWN;
        event.link.connection = 0;
        event.code = -ETIMEDOUT;
    } else {
        sgp_time again = open < connection->give_up ? open : connection->give_up;
        sgp_sim_network_push(sim, again, SGP_SIM_DIALLED, 0, connection);
        return;
    }
    sgp_sim_post(sim, &sim->hosts[source], &event);
}

/* Most names are the strings of the topology. The text of a goodbye and the names of accounts point
 * to their copies. */
static bool unpack(struct sgp_sim *sim, struct sgp_sim_flight *flight, struct sgp_wire_text *text)
{
    if (!sim->options.through_wire) {
        if (flight->message.type == SGP_GOODBYE)
            flight->message.goodbye.text = (const char *)flight->tail;
        if (flight->message.type == SGP_BEQUEATH) {
            flight->message.bequeath.source = (const char *)flight->tail;
            flight->message.bequeath.target = (const char *)flight->tail + SGP_NAME_BYTES;
        }
        return true;
    }
    struct sgp_wire_header header;
    struct sgp_error error = {0};
    int status = sgp_wire_header_decode(flight->tail, &header, &error);
    if (status == 0)
        status = sgp_wire_body_decode(
            &header, flight->tail + SGP_WIRE_HEADER_BYTES, text, &flight->message, &error);
    if (status < 0)
        sgp_sim_fail(sim, SGP_E_FRAME, "a frame cannot be decoded: %s", error.text);
    return status == 0;
}

/* Whether the target's file has the edge, or had it. Otherwise the caller is refused, as in
 * daemon/node/edges.c. */
static bool is_known(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    struct sgp_sim_host *host = &sim->hosts[connection->hosts[SGP_SIM_TARGET]];
    struct sgp_node_status status;
    uint64_t number;
    double owed;
    const struct sgp_sim_link *link = &sim->links[connection->links[SGP_SIM_TARGET]];
    if (sgp_sim_link_account(host, link, &number, &owed))
        return true;
    sgp_node_status(host->node, &status);
    struct sgp_message goodbye = {.type = SGP_GOODBYE,
        .pulse = {.state = status.state,
            .round = status.round,
            .next_round = SGP_ROUND_NONE,
            .ends = status.rounds,
            .stop = SGP_ROUND_NONE},
        .goodbye = {.reason = SGP_REASON_UNKNOWN, .text = sgp_reason_text(SGP_REASON_UNKNOWN)}};
    connection->ends[SGP_SIM_TARGET] = SGP_SIM_END_OPEN;
    sgp_sim_hang_up(host, link_at(sim, connection, SGP_SIM_TARGET), SGP_E_UNKNOWN_NODE, &goodbye);
    return false;
}

static void take_credit(struct sgp_sim_connection *connection, sgp_round round)
{
    connection->credits[1] = connection->credits[0];
    connection->credits[0] = round;
}

static void deliver(struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side,
    struct sgp_sim_flight *flight)
{
    struct sgp_sim_host *host = &sim->hosts[connection->hosts[side]];
    struct sgp_wire_text text;
    if (flight->last) {
        if (connection->ends[side] == SGP_SIM_END_OPEN)
            down(sim, connection, side, SGP_E_CLOSED);
        return;
    }
    if (!unpack(sim, flight, &text))
        return;
    const struct sgp_message *message = &flight->message;
    struct sgp_event event = {.link = link_at(sim, connection, side), .message = message};
    if (message->type == SGP_HELLO && connection->ends[side] == SGP_SIM_END_NONE) {
        if (host->drained) { /* the kernel accepted the connection while it ran */
            sgp_sim_tear(sim, connection);
            return;
        }
        if (!is_known(sim, connection))
            return;
        connection->ends[side] = SGP_SIM_END_OPEN;
        event.type = SGP_EVENT_UP;
        sgp_sim_post(sim, host, &event);
    }
    if (connection->ends[side] != SGP_SIM_END_OPEN)
        return;
    if (message->type == SGP_CREDIT)
        take_credit(connection, message->credit.round);
    struct sgp_share cargo = sgp_sim_cargo(sim, message);
    if (message->type == SGP_SHARE || message->type == SGP_ESTIMATE) {
        connection->share = cargo;
        connection->epoch = message->pulse.epoch;
    }
    event.type = SGP_EVENT_MESSAGE;
    if (cargo.payload_bytes > 0)
        connection->payloads[0].begun = sim->now;
    sgp_sim_post(sim, host, &event);
    if (cargo.payload_bytes > 0 && connection->payload_count > 0) {
        sgp_time first = sim->now + SGP_SIM_HEARD_NS, due = connection->payloads[0].due;
        sgp_time next = due < first ? due : first;
        sgp_sim_network_push(
            sim, next > sim->now ? next : sim->now, SGP_SIM_PAYLOAD, side, connection);
    }
}

static void arrive(struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side)
{
    struct sgp_sim_pipe *pipe = &connection->pipes[side];
    pipe->scheduled = false;
    if (!pipe->first || connection->broken)
        return;
    if (pipe->first->due > sim->now) {
        sgp_sim_pipe_schedule(sim, connection, side);
        return;
    }
    pipe->scheduled = true;
    if (!can_hear(sim, connection, SGP_SIM_ARRIVAL, side))
        return;
    struct sgp_sim_flight *flight = pipe->first;
    pipe->first = flight->next;
    if (!pipe->first)
        pipe->last = NULL;
    pipe->scheduled = false;
    sgp_sim_pipe_schedule(sim, connection, side);
    deliver(sim, connection, side, flight);
    free(flight);
}

/* As in the daemon, a payload is measured and folded while it arrives, whatever fault may be found
 * at its end. */
static struct sgp_measure take_in(struct sgp_sim_host *host, uint32_t slot)
{
    const struct sgp_sim_receive *receive = &host->receives[slot];
    float *values = *sgp_pool_place(&host->performer.receives, slot);
    uint64_t count = receive->share.slice.count, run = SGP_KERNELS_RUN;
    struct sgp_measure came = {0};
    if (!receive->folds) {
        came.largest = sgp_kernels_best()->measure(&came.squares, values, count);
        return came;
    }
    memcpy(host->came, values, count * sizeof *values);
    for (uint64_t first = 0; first < count; first += run) {
        double squares;
        run = count - first < run ? count - first : run;
        float most =
            sgp_fold_values(&host->performer.folding, &squares, values + first, first, run);
        came.squares += squares;
        came.largest = most > came.largest ? most : came.largest;
    }
    return came;
}

/* Convert `sent` through the wire format into values, in the place that the core chose. */
static void carry(
    struct sgp_sim *sim, const struct sgp_sim_connection *connection, const float *sent)
{
    const struct sgp_sim_host *source = &sim->hosts[connection->hosts[SGP_SIM_SOURCE]];
    const struct sgp_sim_host *target = &sim->hosts[connection->hosts[SGP_SIM_TARGET]];
    const struct sgp_share *share = &connection->share;
    float *into = *sgp_pool_place(&target->performer.receives, connection->slot);
    uint64_t first = share->slice.first, count = share->slice.count;
    if (share->coding == SGP_CODING_NONE) {
        memcpy(into, sent + first, count * sizeof *into);
        return;
    }
    bool estimate = share->number == 0; /* its snapshot may be in use for another one by now */
    struct sgp_codec codec = sgp_perform_codec(&source->performer,
        estimate ? connection->estimate_compressor : source->compressors[connection->snapshot]);
    struct sgp_decoding decoding;
    uint64_t bytes = sgp_codec_pack(&codec, sim->packed, sent + first, first, count);
    sgp_assert(share->payload_bytes == bytes);
    memcpy(sgp_decoding_begin(&decoding, share->coding, into, count, bytes), sim->packed, bytes);
    sgp_decoding_go_on(&decoding, bytes);
    sgp_assert(!decoding.malformed && decoding.decoded == count);
}

/* The payload is complete: copy it to the place that the core chose, and judge it. */
static int fill(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    struct sgp_sim_host *source = &sim->hosts[connection->hosts[SGP_SIM_SOURCE]];
    struct sgp_sim_host *target = &sim->hosts[connection->hosts[SGP_SIM_TARGET]];
    uint64_t dimension = sim->options.dimension;
    const struct sgp_share *share = &connection->share;
    bool estimate = share->number == 0;
    const float *sent =
        estimate ? connection->estimate : sgp_sim_snapshot(source, connection->snapshot);
    sgp_assert(
        share->slice.count <= dimension && share->slice.first <= dimension - share->slice.count);
    carry(sim, connection, sent);
    float *said = *sgp_pool_place(&target->performer.receives, connection->slot);
    if (estimate)
        sgp_sim_lie_of_estimate(sim, source->index, said, share->slice.count);
    else
        sgp_sim_lie(sim, source->index, target, share, said);
    if (!estimate &&
        XXH3_64bits(sent, dimension * sizeof *sent) != source->digests[connection->snapshot]) {
        sgp_sim_fail(sim, SGP_E_STATE,
            "%s changed snapshot %u while share %llu of it was under way",
            sgp_sim_name(sim, source->index), connection->snapshot,
            (unsigned long long)share->number);
        return SGP_E_CHECKSUM;
    }
    struct sgp_measure came = take_in(target, connection->slot);
    came.unit = sgp_payload_unit(share->weight, share->fraction, target->file->topology);
    int code = sgp_payload_judge(&target->performer.lengths, &came, dimension);
    sim->summary.outsized += code == SGP_E_OUTSIZED;
    return code;
}

static void payload(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    if (connection->payload_count == 0 || connection->broken)
        return;
    if (!can_hear(sim, connection, SGP_SIM_PAYLOAD, SGP_SIM_TARGET))
        return;
    if (connection->ends[SGP_SIM_TARGET] != SGP_SIM_END_OPEN) {
        sgp_sim_drop_payloads(sim, connection, 0);
        return;
    }
    struct sgp_sim_host *target = &sim->hosts[connection->hosts[SGP_SIM_TARGET]];
    struct sgp_event event = {
        .type = SGP_EVENT_HEARD, .link = link_at(sim, connection, SGP_SIM_TARGET)};
    sgp_time due = connection->payloads[0].due;
    if (sim->now < due) {
        sgp_time next = sim->now + SGP_SIM_HEARD_NS;
        next = next < due ? next : due;
        sgp_sim_network_push(sim, next, SGP_SIM_PAYLOAD, SGP_SIM_TARGET, connection);
        event.bytes = sgp_sim_bytes_so_far(sim, connection);
        sgp_sim_post(sim, target, &event);
        return;
    }
    uint32_t slot = connection->slot;
    connection->snapshot = connection->payloads[0].snapshot;
    connection->payloads[0] = connection->payloads[1];
    connection->payload_count--;
    connection->slot = SGP_SLOT_NONE;
    /* the share was refused when announced, so its bytes are discarded */
    if (slot == SGP_SLOT_NONE)
        return;
    connection->slot = slot;
    event.type = SGP_EVENT_PAYLOAD;
    event.code = fill(sim, connection);
    connection->slot = SGP_SLOT_NONE;
    struct sgp_sim_receive *receive = &target->receives[slot];
    uint64_t said = sim->links[connection->links[SGP_SIM_TARGET]].said;
    receive->state = SGP_SIM_RECEIVE_HELD;
    sim->arriving = receive;
    sgp_sim_post(sim, target, &event);
    sim->arriving = NULL;
    /* the core may keep an estimate, to compare it with others */
    bool may_stay = receive->share.number == 0 && event.code == 0 && sim->options.guard > 0;
    if (!may_stay && sim->links[connection->links[SGP_SIM_TARGET]].said == said &&
        receive->state == SGP_SIM_RECEIVE_HELD)
        receive->state = SGP_SIM_RECEIVE_FREE;
}

static void reset(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    bool open = connection->ends[0] == SGP_SIM_END_OPEN || connection->ends[1] == SGP_SIM_END_OPEN;
    if (connection->broken || !open)
        return;
    sim->summary.resets++;
    sgp_sim_tear(sim, connection);
}

static void broken(struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side)
{
    if (connection->ends[side] == SGP_SIM_END_OPEN &&
        can_hear(sim, connection, SGP_SIM_BROKEN, side))
        down(sim, connection, side, -ECONNRESET);
}

void sgp_sim_network_entry(
    struct sgp_sim *sim, enum sgp_sim_kind kind, uint32_t detail, uint32_t index)
{
    struct sgp_sim_connection *connection = sim->connections[index];
    sgp_assert(connection && connection->references > 0);
    connection->references--;
    if (kind == SGP_SIM_DIALLED)
        dialled(sim, connection);
    else if (kind == SGP_SIM_ARRIVAL)
        arrive(sim, connection, detail);
    else if (kind == SGP_SIM_PAYLOAD)
        payload(sim, connection);
    else if (kind == SGP_SIM_RESET)
        reset(sim, connection);
    else
        broken(sim, connection, detail);
    sgp_sim_release(sim, connection);
}
