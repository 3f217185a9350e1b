/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are received, kept and relayed; see fleet_rows.h. */
#include "fleet_rows.h"

#include "documents.h"
#include "edges.h"
#include "events.h"
#include "inquiry.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t clock_seconds(void)
{
    return pulls_stamp() / 1000;
}

/* ---- signatures ---- */

_Static_assert(SGP_ROW_KEY_BYTES == SGP_PUBLIC_BYTES, "a key as sgp/key.h writes it");
_Static_assert(SGP_ROW_SIGNATURE_BYTES == SGP_SIGNATURE_BYTES, "a signature likewise");

static bool sign(void *context, const char *bytes, size_t count, char ret_key[SGP_ROW_KEY_BYTES],
    char ret_signature[SGP_ROW_SIGNATURE_BYTES])
{
    const struct prepared *prepared = ((const struct daemon *)context)->prepared;
    ret_key[0] = ret_signature[0] = '\0';
    return prepared->key == NULL || prepared->topology->tls == SGP_TLS_OFF ||
           (sgp_key_public(prepared->key, ret_key) == 0 &&
               sgp_key_sign(prepared->key, bytes, count, ret_signature) == 0);
}

static bool has_key(void *context, const struct sgp_row *row)
{
    const struct sgp_topology *topology = ((const struct daemon *)context)->prepared->topology;
    const int64_t author = sgp_topology_find(topology, row->author);
    char hash[SGP_KEY_BYTES];
    return author >= 0 && sgp_key_hash_public(row->key, hash) &&
           sgp_topology_has_key(topology, (uint32_t)author, hash);
}

static bool verify(void *context, const struct sgp_row *row, const char *bytes, size_t count)
{
    char hash[SGP_KEY_BYTES];
    (void)context;
    return sgp_key_verify(row->key, row->signature, bytes, count, hash);
}

/* ---- the nodes of the file ---- */

static int use(struct daemon *daemon)
{
    const struct sgp_topology *topology = daemon->prepared->topology;
    const char **names = calloc(topology->node_count, sizeof *names);
    sgp_fleet_prove(daemon->fleet, topology->tls == SGP_TLS_REQUIRE);
    if (names == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < topology->node_count; i++)
        names[i] = topology->nodes[i].name;
    const int code = sgp_fleet_use(daemon->fleet, names, topology->node_count);
    free((void *)names);
    return code;
}

int fleet_rows_open(struct daemon *daemon)
{
    const struct sgp_fleet_settings settings = {.self = daemon->config->name,
        .incarnation = (uint32_t)clock_seconds(),
        .rows_max = SGP_FLEET_ROWS_MAX,
        .model = daemon->prepared->fingerprint.shape,
        .context = daemon,
        .sign = sign,
        .has_key = has_key,
        .verify = verify};
    daemon->fleet = sgp_fleet_create(&settings);
    return daemon->fleet != NULL ? use(daemon) : -ENOMEM;
}

void fleet_rows_reloaded(struct daemon *daemon)
{
    if (use(daemon) < 0)
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=warning text=\"out of memory: the rows of the fleet are of the former file\"");
}

void fleet_rows_finish(struct daemon *daemon)
{
    sgp_fleet_destroy(daemon->fleet);
    daemon->fleet = NULL;
}

/* ---- links ---- */

static void pump(struct daemon *daemon, struct link *link)
{
    struct sgp_message message = {.type = SGP_SUMMARY};
    struct sgp_summary summary;
    inquiry_pulse(daemon, &message.pulse);
    while (link->rows != NULL && link->takes_rows && link_stands(link) &&
           link_room(link) >= LINK_ROOM_LEAST) {
        const enum sgp_fleet_message next =
            sgp_fleet_next(link->rows, events_now(), &summary, &message.row);
        if (next == SGP_FLEET_NOTHING)
            return;
        message.type = next == SGP_FLEET_ROW ? SGP_ROW : SGP_SUMMARY;
        if (message.type == SGP_SUMMARY)
            message.summary = &summary;
        edges_will_flush(daemon, link); /* so the queue grows by the message */
        const size_t room = link_room(link);
        link_send(link, &message);
        sgp_fleet_sent(link->rows, room - link_room(link));
    }
}

void fleet_rows_send(struct daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->edge_count; i++) {
        struct link *link = edges_present(&daemon->edges[i]);
        if (link != NULL)
            pump(daemon, link);
    }
}

void fleet_rows_greet(struct daemon *daemon, struct link *link)
{
    if (link->rows == NULL)
        link->rows = sgp_fleet_open(daemon->fleet, events_now());
}

void fleet_rows_part(struct link *link)
{
    sgp_fleet_close(link->rows);
    link->rows = NULL;
}

/* Whether the core has accepted the greeting of the peer. */
static bool is_up(struct daemon *daemon, const struct link *link)
{
    const struct edge *edge = edges_find(daemon, link->id.peer, link->id.direction);
    if (edge == NULL || edge == &daemon->gone || edges_present(edge) != link)
        return false;
    return daemon_peer(daemon, (uint32_t)(edge - daemon->edges)).state == SGP_LINK_UP;
}

void fleet_rows_take(struct daemon *daemon, struct link *link, const struct sgp_message *message)
{
    int code = 0;
    if (!is_up(daemon, link)) {
        link_end(link, SGP_E_PROTOCOL, "it sends a row of the fleet out of turn");
        return;
    }
    link->takes_rows = true;
    if (link->rows == NULL)
        return;
    if (message->type == SGP_SUMMARY)
        sgp_fleet_hear(link->rows, message->summary);
    else
        code = sgp_fleet_take(link->rows, &message->row, events_now(), clock_seconds());
    if (message->type == SGP_ROW)
        documents_row(daemon);
    if (code == SGP_E_PROTOCOL)
        link_end(link, code, "it relays what is not a row of the fleet, or too many rows");
}

/* ---- for users ---- */

static bool read_row(const struct daemon *daemon, uint32_t node, struct sgp_fleet_row *ret_row)
{
    if (node >= sgp_fleet_count(daemon->fleet))
        return false;
    const struct sgp_fleet_view view = sgp_fleet_look(daemon->fleet, node, events_now());
    return view.text != NULL && sgp_fleet_row_read(view.text, ret_row) == 0;
}

bool fleet_rows_unlike(const struct daemon *daemon, uint32_t peer)
{
    struct sgp_fleet_row own, other;
    return read_row(daemon, daemon->prepared->self, &own) && read_row(daemon, peer, &other) &&
           sgp_fleet_promises_differ(&own, &other);
}

static uint32_t count(void *context)
{
    return sgp_fleet_count(((const struct daemon *)context)->fleet);
}

static void look(void *context, uint32_t index, struct view_node *ret_node)
{
    const struct sgp_fleet_view view =
        sgp_fleet_look(((const struct daemon *)context)->fleet, index, events_now());
    *ret_node = (struct view_node){.stale = view.stale, .age = (double)NAN};
    (void)snprintf(ret_node->name, sizeof ret_node->name, "%s", view.name);
    if (view.text == NULL)
        return;
    ret_node->age = (double)view.age / (double)SGP_SECOND;
    (void)snprintf(ret_node->text, sizeof ret_node->text, "%s", view.text);
}

static struct sgp_fleet_counts counts(void *context)
{
    return sgp_fleet_counts(((const struct daemon *)context)->fleet);
}

void fleet_rows_offer(struct view_actions *actions)
{
    actions->node_count = count;
    actions->node = look;
    actions->rows_refused = counts;
}
