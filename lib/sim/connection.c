/* SPDX-License-Identifier: Apache-2.0 */
/* Connections, one for each directed edge: dialled, broken, freed.
 *
 * A connection behaves like TCP. Bytes arrive in order or, if the connection breaks, not at all. A
 * cut only delays them. A stopped process leaves its bytes in the kernel. Both ends learn of a
 * reset by DOWN. After a hang-up the other end first receives what was sent before. */
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>

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

void sgp_sim_network_push(struct sgp_sim *sim, sgp_time time, enum sgp_sim_kind kind, uint32_t side,
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
    connection->hosts[SGP_SIM_TARGET] = host->file->hosts[peer];
    const struct sgp_sim_link *link =
        sgp_sim_link_of(host, connection->hosts[SGP_SIM_TARGET], SGP_OUT);
    connection->links[SGP_SIM_SOURCE] = (uint32_t)(link - sim->links);
    connection->links[SGP_SIM_TARGET] = link->other;
    connection->give_up = sim->now + SGP_SIM_CONNECT_NS + 2 * sgp_sim_latency(sim, connection);
    connection->slot = SGP_SLOT_NONE;
    connection->credits[0] = connection->credits[1] = SGP_ROUND_NONE;
    sim->summary.connections++;
    sgp_sim_network_push(
        sim, sim->now + 2 * sgp_sim_latency(sim, connection), SGP_SIM_DIALLED, 0, connection);
}

struct sgp_sim_connection *sgp_sim_connection_of(struct sgp_sim *sim, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    if (index >= sim->connection_count || !sim->connections[index])
        return NULL;
    return sim->connections[index]->id == id ? sim->connections[index] : NULL;
}

void sgp_sim_pipe_clear(struct sgp_sim_pipe *pipe)
{
    while (pipe->first) {
        struct sgp_sim_flight *flight = pipe->first;
        pipe->first = flight->next;
        free(flight);
    }
    pipe->last = NULL;
}

static struct sgp_sim_host *card_of(
    struct sgp_sim *sim, const struct sgp_sim_connection *connection)
{
    return sgp_sim_machine(&sim->hosts[connection->hosts[SGP_SIM_SOURCE]]);
}

/* The payloads of a connection that leave the card at `after` or later leave it `spare` earlier. */
static void move_up(
    struct sgp_sim *sim, struct sgp_sim_connection *connection, sgp_time after, sgp_time spare)
{
    for (uint32_t i = 0; i < connection->payload_count; i++) {
        struct sgp_sim_payload *payload = &connection->payloads[i];
        if (payload->from < after)
            continue;
        payload->from -= spare;
        payload->sent -= spare;
        payload->due -= spare;
        if (payload->due < payload->announced)
            payload->due = payload->announced;
        if (i == 0 && payload->begun > 0) /* the target expects it later */
            sgp_sim_network_push(sim, payload->due > sim->now ? payload->due : sim->now,
                SGP_SIM_PAYLOAD, SGP_SIM_TARGET, connection);
    }
}

static void free_card(struct sgp_sim *sim, const struct sgp_sim_connection *connection,
    const struct sgp_sim_payload *dropped)
{
    struct sgp_sim_host *card = card_of(sim, connection);
    sgp_time spare = dropped->sent - (dropped->from > sim->now ? dropped->from : sim->now);
    if (spare <= 0)
        return;
    card->busy_until -= spare;
    for (uint32_t i = 0; i < sim->connection_count; i++) {
        struct sgp_sim_connection *other = sim->connections[i];
        if (other && !other->broken && card_of(sim, other) == card)
            move_up(sim, other, dropped->sent, spare);
    }
}

void sgp_sim_drop_payloads(
    struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t kept)
{
    while (connection->payload_count > kept) {
        connection->payload_count--;
        free_card(sim, connection, &connection->payloads[connection->payload_count]);
    }
    if (kept > 0)
        return;
    if (connection->slot != SGP_SLOT_NONE) {
        struct sgp_sim_host *target = &sim->hosts[connection->hosts[SGP_SIM_TARGET]];
        target->receives[connection->slot].state = SGP_SIM_RECEIVE_FREE;
    }
    connection->slot = SGP_SLOT_NONE;
}

static void destroy(struct sgp_sim_connection *connection)
{
    sgp_sim_pipe_clear(&connection->pipes[0]);
    sgp_sim_pipe_clear(&connection->pipes[1]);
    free(connection->estimate);
    free(connection);
}

/* Bytes in transit are lost, and so are all that are sent from now on. */
static void sever(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    connection->broken = true;
    sgp_sim_pipe_clear(&connection->pipes[0]);
    sgp_sim_pipe_clear(&connection->pipes[1]);
    sgp_sim_drop_payloads(sim, connection, 0);
}

void sgp_sim_tear(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    sever(sim, connection);
    for (uint32_t side = 0; side < 2; side++)
        if (connection->ends[side] == SGP_SIM_END_OPEN)
            sgp_sim_network_push(sim, sim->now, SGP_SIM_BROKEN, side, connection);
}

void sgp_sim_release(struct sgp_sim *sim, struct sgp_sim_connection *connection)
{
    bool open = connection->ends[0] == SGP_SIM_END_OPEN || connection->ends[1] == SGP_SIM_END_OPEN;
    if (open || connection->references > 0)
        return;
    uint32_t index = (uint32_t)connection->id;
    sim->connections[index] = NULL;
    sim->connections_free[sim->connection_free_count++] = index;
    destroy(connection);
}

void sgp_sim_half_open(struct sgp_sim *sim, const struct sgp_sim_half_open *half_open)
{
    for (uint32_t i = 0; i < sim->connection_count; i++) {
        struct sgp_sim_connection *connection = sim->connections[i];
        if (!connection || connection->broken)
            continue;
        uint32_t side =
            connection->hosts[SGP_SIM_SOURCE] == half_open->loser ? SGP_SIM_SOURCE : SGP_SIM_TARGET;
        bool between = connection->hosts[side] == half_open->loser &&
                       connection->hosts[!side] == half_open->keeper;
        if (!between || connection->ends[side] != SGP_SIM_END_OPEN)
            continue;
        sever(sim, connection);
        sgp_sim_network_push(sim, sim->now, SGP_SIM_BROKEN, side, connection);
        sim->summary.half_opened++;
    }
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
            sgp_sim_tear(sim, connection);
        sgp_sim_release(sim, connection);
    }
}

void sgp_sim_give_up_dials(struct sgp_sim *sim, uint32_t host)
{
    for (uint32_t i = 0; i < sim->connection_count; i++) {
        struct sgp_sim_connection *connection = sim->connections[i];
        if (connection && connection->hosts[SGP_SIM_SOURCE] == host &&
            connection->ends[SGP_SIM_SOURCE] == SGP_SIM_END_NONE)
            connection->broken = true;
    }
}
