/* SPDX-License-Identifier: Apache-2.0 */
/* Signing, keeping, relaying and proving statements; see statements.h. */
#include "statements.h"

#include "edges.h"
#include "events.h"
#include "inquiry.h"
#include "notes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CHANGES_MAX 16u /* changes of an author's statement; further ones are not relayed */
#define TEXT_BYTES 256u

static bool are_wanted(const struct daemon *daemon)
{
    return daemon->prepared->topology->tls == SGP_TLS_REQUIRE;
}

static const char *name_of_kind(uint32_t kind)
{
    return kind == SGP_STATEMENT_ENDS ? "ends" : "stop";
}

/* The signed text; docs/PROTOCOL.md. Returns its length. */
static size_t text_of(const struct daemon *daemon, uint32_t kind, sgp_round round,
    const char *author, char text[TEXT_BYTES])
{
    int bytes = snprintf(text, TEXT_BYTES,
        "sgpd statement\n%s\n%016" PRIx64 "\n%016" PRIx64 "\n%" PRId64 "\n%s\n", name_of_kind(kind),
        daemon->prepared->topology->digest, daemon->prepared->fingerprint.shape, round, author);
    sgp_assert(bytes > 0 && (size_t)bytes < TEXT_BYTES);
    return (size_t)bytes;
}

static bool is_named(const struct daemon *daemon, const char *author, const char *hash)
{
    const struct sgp_topology *topology = daemon->prepared->topology;
    int64_t node = sgp_topology_find(topology, author);
    return node >= 0 && sgp_topology_find_key(topology, hash) == node; /* a key of the file */
}

/* ---- stored statements ---- */

static bool goes_before(const struct statement *a, uint32_t kind, sgp_round round)
{
    return kind == SGP_STATEMENT_ENDS ? a->round >= round : a->round <= round;
}

/* The statement that matters least. There must be at least one. */
static struct statement *last(struct statements *all, uint32_t kind)
{
    struct statement *held = all->held[kind - 1], *last = held;
    for (uint32_t i = 1; i < all->count[kind - 1]; i++)
        if (!goes_before(&held[i], kind, last->round))
            last = &held[i];
    return last;
}

/* Where such a statement is stored; NULL: it does not matter, or not any more. */
static struct statement *place_for(
    struct daemon *daemon, uint32_t kind, sgp_round round, const char *author)
{
    struct statements *all = &daemon->statements;
    struct statement *held = all->held[kind - 1];
    uint32_t count = all->count[kind - 1];
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(held[i].author, author) == 0)
            return goes_before(&held[i], kind, round) || held[i].changes >= CHANGES_MAX ? NULL
                                                                                        : &held[i];
    if (count < daemon->prepared->topology->stops)
        return &held[count];
    struct statement *least = last(all, kind);
    return goes_before(least, kind, round) ? NULL : least;
}

static void drop(struct statements *all, uint32_t kind, struct statement *statement)
{
    *statement = all->held[kind - 1][--all->count[kind - 1]];
}

/* ---- sending ---- */

static void send_to(struct daemon *daemon, struct link *link, const struct statement *statement)
{
    struct sgp_message message = {.type = SGP_STATEMENT,
        .statement = {.kind = statement->kind,
            .round = statement->round,
            .author = statement->author,
            .key = statement->key,
            .signature = statement->signature}};
    inquiry_pulse(daemon, &message.pulse);
    edges_will_flush(daemon, link);
    link_send(link, &message);
}

static void relay(struct daemon *daemon, const struct link *from, const struct statement *statement)
{
    for (uint32_t i = 0; i < daemon->edge_count; i++) {
        struct link *link = edges_present(&daemon->edges[i]);
        if (link != NULL && link != from && daemon_peer(daemon, i).state == SGP_LINK_UP)
            send_to(daemon, link, statement);
    }
}

void statements_tell(struct daemon *daemon, struct link *link)
{
    const struct statements *all = &daemon->statements;
    for (uint32_t k = 0; are_wanted(daemon) && k < SGP_STATEMENT_KINDS; k++)
        for (uint32_t i = 0; i < all->count[k]; i++)
            send_to(daemon, link, &all->held[k][i]);
}

/* ---- proof ---- */

/* What enough nodes have signed: the word of the last of the statements that matter. */
static void prove(struct daemon *daemon)
{
    struct statements *all = &daemon->statements;
    uint32_t enough = daemon->prepared->topology->stops;
    struct sgp_message message = {.type = SGP_BEAT};
    inquiry_pulse(daemon, &message.pulse);
    message.pulse.ends = 0;
    if (all->count[SGP_STATEMENT_ENDS - 1] >= enough)
        message.pulse.ends = last(all, SGP_STATEMENT_ENDS)->round;
    if (all->count[SGP_STATEMENT_STOP - 1] >= enough)
        message.pulse.stop = last(all, SGP_STATEMENT_STOP)->round;
    events_post(daemon, (struct sgp_event){.type = SGP_EVENT_PROVEN, .message = &message});
}

static void hold(struct daemon *daemon, const struct link *from, const struct statement *statement)
{
    uint32_t k = statement->kind - 1;
    struct statement *place =
        place_for(daemon, statement->kind, statement->round, statement->author);
    sgp_assert(place != NULL); /* the callers have asked */
    bool appends = place == &daemon->statements.held[k][daemon->statements.count[k]];
    bool again = !appends && strcmp(place->author, statement->author) == 0;
    uint32_t changes = again ? place->changes + 1 : 0;
    *place = *statement;
    place->changes = changes;
    daemon->statements.count[k] += appends;
    sgp_log(&daemon->log->sink, SGP_LEVEL_INFO,
        "event=statement author=%s kind=%s round=%" PRId64 " from=%s", statement->author,
        name_of_kind(statement->kind), statement->round,
        from != NULL ? daemon->prepared->topology->nodes[from->id.peer].name : "here");
    relay(daemon, from, place);
    prove(daemon);
}

/* ---- receiving ---- */

static void copy_text(char *to, size_t bytes, const char *from)
{
    (void)snprintf(to, bytes, "%s", from);
}

void statements_take(struct daemon *daemon, struct link *link, const struct sgp_statement *came)
{
    struct statement statement = {.kind = came->kind, .round = came->round};
    char text[TEXT_BYTES];
    if (!are_wanted(daemon) || place_for(daemon, came->kind, came->round, came->author) == NULL)
        return;
    /* Looking up the key is cheap, so it comes first. */
    if (sgp_key_hash_public(came->key, statement.hash) &&
        !is_named(daemon, came->author, statement.hash)) {
        daemon->statements_refused++;
        notes_statement_refused(daemon, link, came, name_of_kind(came->kind), statement.hash);
        return;
    }
    size_t bytes = text_of(daemon, came->kind, came->round, came->author, text);
    if (!sgp_key_verify(came->key, came->signature, text, bytes, statement.hash)) {
        daemon->statements_refused++;
        link_end(link, SGP_E_PROTOCOL,
            "it relays a word on the end of training whose signature is wrong, or is of another "
            "topology or model");
        return;
    }
    copy_text(statement.author, sizeof statement.author, came->author);
    copy_text(statement.key, sizeof statement.key, came->key);
    copy_text(statement.signature, sizeof statement.signature, came->signature);
    hold(daemon, link, &statement);
}

/* ---- statements of this node ---- */

static void say(struct daemon *daemon, uint32_t kind, sgp_round round)
{
    const struct prepared *prepared = daemon->prepared;
    struct statement statement = {.kind = kind, .round = round};
    const char *name = prepared->topology->nodes[prepared->self].name;
    char text[TEXT_BYTES];
    size_t bytes = text_of(daemon, kind, round, name, text);
    /* one key is one author, and the co-located owner has the same key */
    if (prepared->topology->nodes[prepared->self].colocated)
        return;
    daemon->statements.said[kind - 1] = round;
    daemon->statements.digest = prepared->topology->digest;
    if (prepared->key == NULL || place_for(daemon, kind, round, name) == NULL ||
        sgp_key_public(prepared->key, statement.key) < 0 ||
        sgp_key_sign(prepared->key, text, bytes, statement.signature) < 0)
        return;
    copy_text(statement.author, sizeof statement.author, name);
    copy_text(statement.hash, sizeof statement.hash, sgp_key_hash(prepared->key));
    hold(daemon, NULL, &statement);
}

void statements_hear(struct daemon *daemon, const struct sgp_pulse *pulse)
{
    if (!are_wanted(daemon))
        return;
    sgp_round own = sgp_node_own_end(daemon->node);
    if (pulse->ends < own && daemon->statements.said[SGP_STATEMENT_ENDS - 1] != own)
        say(daemon, SGP_STATEMENT_ENDS, own);
}

void statements_ask_stop(struct daemon *daemon, sgp_round round)
{
    if (are_wanted(daemon))
        say(daemon, SGP_STATEMENT_STOP, round);
}

void statements_reloaded(struct daemon *daemon)
{
    struct statements *all = &daemon->statements;
    const struct sgp_topology *topology = daemon->prepared->topology;
    sgp_round stop = all->said[SGP_STATEMENT_STOP - 1];
    if (all->digest != topology->digest)
        *all = (struct statements){.digest = topology->digest};
    else
        stop = 0;
    for (uint32_t kind = 1; kind <= SGP_STATEMENT_KINDS; kind++) {
        for (uint32_t i = all->count[kind - 1]; i-- > 0;)
            if (!is_named(daemon, all->held[kind - 1][i].author, all->held[kind - 1][i].hash))
                drop(all, kind, &all->held[kind - 1][i]);
        while (all->count[kind - 1] > topology->stops)
            drop(all, kind, last(all, kind));
    }
    if (stop > 0)
        statements_ask_stop(daemon, stop);
    else if (are_wanted(daemon))
        prove(daemon);
}
