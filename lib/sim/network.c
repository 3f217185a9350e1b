/* The virtual network: one connection per directed edge, bytes that take their time, and faults.
 *
 * A connection behaves as TCP does: what is sent arrives in order or, when the connection breaks, not
 * at all; a cut only delays; a stopped process leaves its bytes in the kernel. How it fails: both
 * ends learn of a reset by DOWN, the other end learns of a hang-up after what was sent before. */
#include "sim/world.h"

#include "sgp/kernels.h"
#include "sgp/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- faults ---- */

sgp_time sgp_sim_ready(const struct sgp_sim *sim, uint32_t host)
{
    sgp_time ready = sim->now;
    for (uint32_t i = 0; i < sim->options.absence_count; i++) {
        const struct sgp_sim_absence *absence = &sim->options.absences[i];
        bool away = absence->node == host && absence->from <= sim->now && sim->now < absence->to;
        if (away && absence->to > ready)
            ready = absence->to;
    }
    return ready;
}

/* Now, or when the network between two hosts is whole again. */
static sgp_time passable(const struct sgp_sim *sim, uint32_t a, uint32_t b)
{
    sgp_time time = sim->now;
    for (uint32_t i = 0; i < sim->options.cut_count; i++) {
        const struct sgp_sim_cut *cut = &sim->options.cuts[i];
        bool cuts = sim->cut_sides[i][a] != sim->cut_sides[i][b];
        if (cuts && cut->from <= sim->now && sim->now < cut->to && cut->to > time)
            time = cut->to;
    }
    return time;
}

static sgp_time transfer_time(const struct sgp_sim *sim, uint64_t bytes)
{
    double bandwidth = sim->options.bandwidth;
    return bandwidth > 0 ? (sgp_time)((double)bytes / bandwidth * (double)SGP_SECOND) : 0;
}

/* ---- connections ---- */

struct sgp_sim_link *sgp_sim_link_of(
    struct sgp_sim_host *host, uint32_t peer, enum sgp_direction direction)
{
    struct sgp_sim_link *links = host->sim->links + host->link_first;
    uint32_t low = direction == SGP_OUT ? 0 : host->out_count;
    uint32_t high = direction == SGP_OUT ? host->out_count : host->link_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (links[middle].peer < peer)
            low = middle + 1;
        else
            high = middle;
    }
    sgp_assert(low < host->link_count && links[low].peer == peer);
    return &links[low];
}

static int reserve_connection(struct sgp_sim *sim)
{
    if (sim->connection_free_count > 0 || sim->connection_count < sim->connection_capacity)
        return 0;
    uint32_t capacity = sim->connection_capacity ? 2 * sim->connection_capacity : 64;
    void *connections = realloc(sim->connections, capacity * sizeof(void *));
    if (!connections)
        return -ENOMEM;
    sim->connections = connections;
    uint32_t *free_list = realloc(sim->connections_free, capacity * sizeof *free_list);
    if (!free_list)
        return -ENOMEM;
    sim->connections_free = free_list;
    sim->connection_capacity = capacity;
    return 0;
}

static void push(struct sgp_sim *sim, sgp_time time, enum sgp_sim_kind kind, uint32_t side,
    struct sgp_sim_connection *connection)
{
    connection->references++;
    sgp_sim_push(sim, time, kind, side, (uint32_t)connection->id);
}

void sgp_sim_dial(void *context, uint32_t peer)
{
    struct sgp_sim_host *host = context;
    struct sgp_sim *sim = host->sim;
    struct sgp_sim_connection *connection = calloc(1, sizeof *connection);
    if (!connection || reserve_connection(sim) < 0) {
        free(connection);
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
        return;
    }
    uint32_t index = sim->connection_free_count > 0
                         ? sim->connections_free[--sim->connection_free_count]
                         : sim->connection_count++;
    sim->connections[index] = connection;
    connection->id = ++sim->serial << 32 | index;
    connection->hosts[SGP_SIM_SOURCE] = host->index;
    connection->hosts[SGP_SIM_TARGET] = peer;
    const struct sgp_sim_link *link = sgp_sim_link_of(host, peer, SGP_OUT);
    connection->links[SGP_SIM_SOURCE] = (uint32_t)(link - sim->links);
    connection->links[SGP_SIM_TARGET] = link->other;
    connection->give_up = sim->now + SGP_SIM_CONNECT_NS + 2 * sim->options.latency_ns;
    connection->slot = SGP_SLOT_NONE;
    connection->credit = SGP_ROUND_NONE;
    sim->summary.connections++;
    push(sim, sim->now + 2 * sim->options.latency_ns, SGP_SIM_DIALLED, 0, connection);
}

struct sgp_sim_connection *sgp_sim_connection_of(struct sgp_sim *sim, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    if (index >= sim->connection_count || !sim->connections[index])
        return NULL;
    return sim->connections[index]->id == id ? sim->connections[index] : NULL;
}

static struct sgp_link link_at(const struct sgp_sim_connection *connection, uint32_t side)
{
    return (struct sgp_link){
        .peer = connection->hosts[!side],
        .direction = side == SGP_SIM_SOURCE ? SGP_OUT : SGP_IN,
        .connection = connection->id,
    };
}

static void clear(struct sgp_sim_pipe *pipe)
{
    while (pipe->first) {
        struct sgp_sim_flight *flight = pipe->first;
        pipe->first = flight->next;
        free(flight);
    }
    pipe->last = NULL;
}

static void drop_payload(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    if (connection->slot != SGP_SLOT_NONE) {
        struct sgp_sim_host *target = &sim->hosts[connection->hosts[SGP_SIM_TARGET]];
        target->receives[connection->slot].state = SGP_SIM_RECEIVE_FREE;
    }
    connection->slot = SGP_SLOT_NONE;
    connection->payload = false;
}

static void destroy(struct sgp_sim_connection *connection)
{
    clear(&connection->pipes[0]);
    clear(&connection->pipes[1]);
    free(connection);
}

/* What is under way is lost; who still has an end of it learns that at once. */
static void tear(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    connection->broken = true;
    clear(&connection->pipes[0]);
    clear(&connection->pipes[1]);
    drop_payload(sim, connection);
    for (uint32_t side = 0; side < 2; side++)
        if (connection->ends[side] == SGP_SIM_END_OPEN)
            push(sim, sim->now, SGP_SIM_BROKEN, side, connection);
}

/* Forget a connection that no end and no entry of the heap knows any more. */
static void release(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    bool open = connection->ends[0] == SGP_SIM_END_OPEN || connection->ends[1] == SGP_SIM_END_OPEN;
    if (open || connection->references > 0)
        return;
    uint32_t index = (uint32_t)connection->id;
    sim->connections[index] = NULL;
    sim->connections_free[sim->connection_free_count++] = index;
    destroy(connection);
}

void sgp_sim_network_finish(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->connection_count; i++)
        if (sim->connections[i])
            destroy(sim->connections[i]);
    free(sim->connections);
    free(sim->connections_free);
}

void sgp_sim_network_die(struct sgp_sim *sim, uint32_t host)
{
    for (uint32_t i = 0; i < sim->connection_count; i++) {
        struct sgp_sim_connection *connection = sim->connections[i];
        if (!connection)
            continue;
        bool source = connection->hosts[SGP_SIM_SOURCE] == host;
        bool target = connection->hosts[SGP_SIM_TARGET] == host &&
                      connection->ends[SGP_SIM_SOURCE] != SGP_SIM_END_NONE;
        if (!source && !target)
            continue;
        connection->ends[source ? SGP_SIM_SOURCE : SGP_SIM_TARGET] = SGP_SIM_END_CLOSED;
        if (!connection->broken)
            tear(sim, connection);
        release(sim, connection);
    }
}

/* ---- sending ---- */

static void schedule(struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side)
{
    struct sgp_sim_pipe *pipe = &connection->pipes[side];
    if (pipe->scheduled || !pipe->first)
        return;
    pipe->scheduled = true;
    sgp_time due = pipe->first->due > sim->now ? pipe->first->due : sim->now;
    push(sim, due, SGP_SIM_ARRIVAL, side, connection);
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
    schedule(sim, connection, side);
}

/* A copy of the message that outlives the call: its frame, or itself with its text. */
static struct sgp_sim_flight *pack(struct sgp_sim *sim, const struct sgp_message *message)
{
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
    }
    struct sgp_sim_flight *flight = calloc(1, sizeof *flight + bytes);
    if (!flight) {
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
        return NULL;
    }
    flight->message = *message;
    flight->tail_bytes = bytes;
    if (bytes > 0)
        memcpy(flight->tail, tail, bytes);
    return flight;
}

/* Names are the topology's own, so only a goodbye's text must be pointed to its copy. */
static bool unpack(struct sgp_sim *sim, struct sgp_sim_flight *flight, struct sgp_wire_text *text)
{
    if (!sim->options.through_wire) {
        if (flight->message.type == SGP_GOODBYE)
            flight->message.goodbye.text = (const char *)flight->tail;
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

/* A share was sent with its snapshot behind it: queue it on the source's network card. */
static void send_payload(struct sgp_sim *sim, struct sgp_sim_connection *connection,
    const struct sgp_share *share, uint32_t snapshot)
{
    struct sgp_sim_host *source = &sim->hosts[connection->hosts[SGP_SIM_SOURCE]];
    if (connection->payload)
        sgp_sim_fail(sim, SGP_E_STATE, "%s sends share %llu behind another that is still under way",
            sgp_sim_name(sim, source->index), (unsigned long long)share->number);
    uint64_t chunks = (share->payload_bytes + SGP_WIRE_CHUNK_MAX - 1) / SGP_WIRE_CHUNK_MAX;
    uint64_t bytes = share->payload_bytes + chunks * SGP_WIRE_HEADER_BYTES;
    sim->summary.bytes += bytes;
    sgp_time begin = source->busy_until > sim->now ? source->busy_until : sim->now;
    source->busy_until = begin + transfer_time(sim, SGP_SIM_MESSAGE_BYTES + bytes);
    connection->payload = true;
    connection->snapshot = snapshot;
    connection->payload_sent = source->busy_until;
    connection->payload_due = source->busy_until + sim->options.latency_ns;
}

/* A share needs a credit, which it uses up: one of its own round, unless the method leaves shares out
 * and so keeps a credit from one plan to the next. */
static void spend_credit(
    struct sgp_sim *sim, struct sgp_sim_connection *connection, const struct sgp_share *share)
{
    bool strict = sim->options.method->when == SGP_WHEN_ALL_PROMISED;
    if (connection->credit == SGP_ROUND_NONE || (strict && connection->credit != share->round))
        sgp_sim_fail(sim, SGP_E_STATE, "%s sends %s share %llu of round %lld without a credit",
            sgp_sim_name(sim, connection->hosts[SGP_SIM_SOURCE]),
            sgp_sim_name(sim, connection->hosts[SGP_SIM_TARGET]), (unsigned long long)share->number,
            (long long)share->round);
    connection->credit = SGP_ROUND_NONE;
}

/* Chance may let a message break its connection at any moment until all of it has arrived. */
static void maybe_break(struct sgp_sim *sim, struct sgp_sim_connection *connection, sgp_time until)
{
    if (sim->options.loss <= 0 || sgp_random_double(&sim->random) >= sim->options.loss)
        return;
    double span = (double)(until - sim->now);
    sgp_time time = sim->now + (sgp_time)(span * sgp_random_double(&sim->random));
    push(sim, time, SGP_SIM_RESET, 0, connection);
}

/* What follows a message: a share's payload; an estimate's, seen as a share of number 0 that gives
 * nothing. */
static struct sgp_share cargo_of(const struct sgp_sim *sim, const struct sgp_message *message)
{
    const struct sgp_estimate *estimate = &message->estimate;
    if (message->type == SGP_SHARE)
        return message->share;
    if (message->type != SGP_ESTIMATE)
        return (struct sgp_share){.number = 0};
    return (struct sgp_share){.round = estimate->round,
        .slice = {0, sim->options.dimension},
        .payload_bytes = estimate->payload_bytes,
        .checksum = estimate->checksum};
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
    if (connection->broken) /* it will learn of that in a moment */
        return;
    struct sgp_sim_flight *flight = pack(sim, message);
    if (!flight)
        return;
    sgp_time due = sim->now + transfer_time(sim, SGP_SIM_MESSAGE_BYTES) + sim->options.latency_ns;
    sim->summary.messages++;
    sim->summary.bytes += SGP_SIM_MESSAGE_BYTES;
    enqueue(sim, connection, !side, flight, due);
    if (message->type == SGP_SHARE)
        spend_credit(sim, connection, &message->share);
    struct sgp_share cargo = cargo_of(sim, message);
    if (cargo.payload_bytes > 0) {
        send_payload(sim, connection, &cargo, snapshot);
        due = connection->payload_due;
    }
    maybe_break(sim, connection, due);
}

void sgp_sim_hang_up(
    void *context, struct sgp_link link, int code, const struct sgp_message *goodbye)
{
    (void)code;
    struct sgp_sim_host *host = context;
    struct sgp_sim *sim = host->sim;
    struct sgp_sim_connection *connection = sgp_sim_connection_of(sim, link.connection);
    uint32_t side = link.direction == SGP_OUT ? SGP_SIM_SOURCE : SGP_SIM_TARGET;
    sgp_assert(connection && connection->ends[side] == SGP_SIM_END_OPEN);
    connection->ends[side] = SGP_SIM_END_CLOSED;
    clear(&connection->pipes[side]);
    bool whole = side == SGP_SIM_SOURCE && connection->payload_sent <= sim->now;
    if (!whole) /* what has left the source completely still arrives, the rest does not */
        drop_payload(sim, connection);
    if (connection->broken)
        return;
    sgp_time due = sim->now + sim->options.latency_ns;
    if (connection->payload && connection->payload_due > due)
        due = connection->payload_due;
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
    sgp_assert(connection && slot < host->receive_count);
    struct sgp_sim_receive *receive = &host->receives[slot];
    if (receive->state != SGP_SIM_RECEIVE_FREE)
        sgp_sim_fail(sim, SGP_E_STATE, "%s receives into slot %u, which is in use",
            sgp_sim_name(sim, host->index), slot);
    receive->state = SGP_SIM_RECEIVE_FILLING;
    receive->share = connection->share;
    connection->slot = slot;
}

/* ---- arriving ---- */

/* The peer's process is stopped, or the network is cut: try again when that is over. A machine that
 * is gone hears nothing ever again; behind a cut that never ends all is stuck until somebody hangs
 * up. Returns whether the side can hear now. */
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
        sgp_time open = passable(sim, host, connection->hosts[!side]);
        ready = open > ready ? open : ready;
    }
    if (ready > sim->now && ready != SGP_TIME_NEVER)
        push(sim, ready, kind, side, connection);
    return ready <= sim->now;
}

static void down(
    struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side, int code)
{
    connection->ends[side] = SGP_SIM_END_CLOSED;
    if (side == SGP_SIM_TARGET)
        drop_payload(sim, connection);
    struct sgp_event event = {
        .type = SGP_EVENT_DOWN, .link = link_at(connection, side), .code = code};
    sgp_sim_post(sim, &sim->hosts[connection->hosts[side]], &event);
}

static void dialled(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    uint32_t source = connection->hosts[SGP_SIM_SOURCE], target = connection->hosts[SGP_SIM_TARGET];
    if (connection->broken || !can_hear(sim, connection, SGP_SIM_DIALLED, SGP_SIM_SOURCE))
        return;
    sgp_time open = passable(sim, source, target);
    if (sgp_sim_ready(sim, target) == SGP_TIME_NEVER) /* a stopped process's kernel would accept */
        open = SGP_TIME_NEVER;
    struct sgp_event event = {.type = SGP_EVENT_UP, .link = link_at(connection, SGP_SIM_SOURCE)};
    if (open <= sim->now && sim->hosts[target].dead) {
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
        push(sim, again, SGP_SIM_DIALLED, 0, connection);
        return;
    }
    sgp_sim_post(sim, &sim->hosts[source], &event);
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
    struct sgp_event event = {.link = link_at(connection, side), .message = message};
    if (message->type == SGP_HELLO && connection->ends[side] == SGP_SIM_END_NONE) {
        connection->ends[side] = SGP_SIM_END_OPEN;
        event.type = SGP_EVENT_UP;
        sgp_sim_post(sim, host, &event);
    }
    if (connection->ends[side] != SGP_SIM_END_OPEN)
        return;
    if (message->type == SGP_CREDIT)
        connection->credit = message->credit.round;
    struct sgp_share cargo = cargo_of(sim, message);
    if (message->type == SGP_SHARE || message->type == SGP_ESTIMATE)
        connection->share = cargo;
    event.type = SGP_EVENT_MESSAGE;
    sgp_sim_post(sim, host, &event);
    if (cargo.payload_bytes > 0 && connection->payload) {
        sgp_time first = sim->now + SGP_SIM_HEARD_NS, due = connection->payload_due;
        sgp_time next = due < first ? due : first;
        push(sim, next > sim->now ? next : sim->now, SGP_SIM_PAYLOAD, side, connection);
    }
}

static void arrive(struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side)
{
    struct sgp_sim_pipe *pipe = &connection->pipes[side];
    pipe->scheduled = false;
    if (!pipe->first || connection->broken)
        return;
    if (pipe->first->due > sim->now) {
        schedule(sim, connection, side);
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
    schedule(sim, connection, side);
    deliver(sim, connection, side, flight);
    free(flight);
}

/* The payload is whole: copy it to where the core wanted it, and judge it as the daemon does. */
static int fill(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    struct sgp_sim_host *source = &sim->hosts[connection->hosts[SGP_SIM_SOURCE]];
    struct sgp_sim_host *target = &sim->hosts[connection->hosts[SGP_SIM_TARGET]];
    uint64_t dimension = sim->options.dimension;
    const struct sgp_share *share = &connection->share;
    float *received = target->received + connection->slot * dimension;
    sgp_assert(connection->snapshot < source->snapshot_count &&
               share->payload_bytes == share->slice.count * sizeof *received &&
               share->slice.count <= dimension &&
               share->slice.first <= dimension - share->slice.count);
    memcpy(received, source->snapshots + connection->snapshot * dimension + share->slice.first,
        share->payload_bytes);
    if (XXH3_64bits(received, share->payload_bytes) != share->checksum) {
        sgp_sim_fail(sim, SGP_E_STATE,
            "%s changed snapshot %u while share %llu of it was under way",
            sgp_sim_name(sim, source->index), connection->snapshot,
            (unsigned long long)share->number);
        return SGP_E_CHECKSUM;
    }
    return sgp_kernels_best()->finite(received, share->slice.count) ? 0 : SGP_E_NOT_FINITE;
}

static void payload(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    if (!connection->payload || connection->broken)
        return;
    if (!can_hear(sim, connection, SGP_SIM_PAYLOAD, SGP_SIM_TARGET))
        return;
    if (connection->ends[SGP_SIM_TARGET] != SGP_SIM_END_OPEN) {
        drop_payload(sim, connection);
        return;
    }
    struct sgp_sim_host *target = &sim->hosts[connection->hosts[SGP_SIM_TARGET]];
    struct sgp_event event = {.type = SGP_EVENT_HEARD, .link = link_at(connection, SGP_SIM_TARGET)};
    if (sim->now < connection->payload_due) {
        sgp_time next = sim->now + SGP_SIM_HEARD_NS;
        next = next < connection->payload_due ? next : connection->payload_due;
        push(sim, next, SGP_SIM_PAYLOAD, SGP_SIM_TARGET, connection);
        sgp_sim_post(sim, target, &event);
        return;
    }
    uint32_t slot = connection->slot;
    connection->payload = false;
    connection->slot = SGP_SLOT_NONE;
    if (slot == SGP_SLOT_NONE) /* refused at its announcement: the bytes go nowhere */
        return;
    connection->slot = slot;
    event.type = SGP_EVENT_PAYLOAD;
    event.code = fill(sim, connection);
    connection->slot = SGP_SLOT_NONE;
    struct sgp_sim_receive *receive = &target->receives[slot];
    uint64_t accepted = sim->links[connection->links[SGP_SIM_TARGET]].accepted;
    receive->state = SGP_SIM_RECEIVE_HELD;
    sgp_sim_post(sim, target, &event);
    if (sim->links[connection->links[SGP_SIM_TARGET]].accepted == accepted &&
        receive->state == SGP_SIM_RECEIVE_HELD)
        receive->state = SGP_SIM_RECEIVE_FREE;
}

static void reset(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    bool open = connection->ends[0] == SGP_SIM_END_OPEN || connection->ends[1] == SGP_SIM_END_OPEN;
    if (connection->broken || !open)
        return;
    sim->summary.resets++;
    tear(sim, connection);
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
    release(sim, connection);
}
