/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions of all programs; see facts.h and docs/rules/decide.md. */
#include "facts.h"

#include "edges.h"
#include "inquiry.h"

#include "sgp/topology.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- members ---- */

static bool trains(const struct sgp_topology *topology, uint32_t node)
{
    return !topology->nodes[node].relay;
}

static const char *self_name(const struct daemon *daemon)
{
    return daemon->prepared->topology->nodes[daemon->prepared->self].name;
}

/* Words travel in both directions along edges of any round. Returns a member that no word can
 * reach; SGP_NODE_NONE: all are reached. */
static uint32_t unreached(const struct sgp_topology *topology, uint32_t from, bool *reached)
{
    bool more = true;
    reached[from] = true;
    while (more) {
        more = false;
        for (uint32_t p = 0; p < topology->phase_count; p++)
            for (uint32_t e = 0; e < topology->phases[p].edge_count; e++) {
                const struct sgp_edge *edge = &topology->phases[p].out[e];
                bool joins = reached[edge->source] != reached[edge->target];
                reached[edge->source] = reached[edge->target] =
                    reached[edge->source] || reached[edge->target];
                more = more || joins;
            }
    }
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (trains(topology, i) && !reached[i])
            return i;
    return SGP_NODE_NONE;
}

/* ---- sending ---- */

static void send_to(struct daemon *daemon, struct link *link, const struct sgp_fact *fact)
{
    struct sgp_message message = {.type = SGP_FACT, .fact = *fact};
    inquiry_pulse(daemon, &message.pulse);
    edges_will_flush(daemon, link);
    link_send(link, &message);
}

static bool has_room(const struct link *link)
{
    return link_stands(link) && link_room(link) >= LINK_ROOM_LEAST;
}

static void send_agreed(struct daemon *daemon, struct link *link)
{
    const struct facts *facts = &daemon->facts;
    const struct sgp_fact agreed = {.kind = SGP_FACT_AGREED,
        .number = facts->agreed,
        .members = facts->agreed_members,
        .count = facts->agreed_count,
        .author = self_name(daemon),
        .text = ""};
    link->facts_agreed = facts->agreed;
    send_to(daemon, link, &agreed);
}

/* The agreement first: with it the words count at a node that comes late. */
static void pump(struct daemon *daemon, struct link *link)
{
    const struct facts *facts = &daemon->facts;
    const struct fact *fact = NULL;
    if (facts->agreed > link->facts_agreed && has_room(link))
        send_agreed(daemon, link);
    while (has_room(link) && (fact = fact_table_after(&facts->table, link->facts_sent)) != NULL) {
        const struct sgp_fact told = {.kind = SGP_FACT_TOLD,
            .number = fact->number,
            .members = fact->members,
            .author = fact->author,
            .text = fact->text};
        link->facts_sent = fact->order;
        if (fact->from != link->id.connection)
            send_to(daemon, link, &told);
    }
}

void facts_send(struct daemon *daemon)
{
    const struct facts *facts = &daemon->facts;
    for (uint32_t i = 0; i < daemon->edge_count; i++) {
        struct link *link = edges_present(&daemon->edges[i]);
        if (link != NULL &&
            (link->facts_sent < facts->table.last || link->facts_agreed < facts->agreed) &&
            daemon_peer(daemon, i).state == SGP_LINK_UP)
            pump(daemon, link);
    }
}

/* ---- agreement ---- */

/* Send the words of the agreed decision to the program, in the order of names, which is the same on
 * all nodes. */
static void deliver(struct daemon *daemon)
{
    struct facts *facts = &daemon->facts;
    uint32_t index = 0;
    facts->asks = facts->unfetched = false;
    fact_table_by_author(&facts->table);
    /* of words that are no member's there may be more */
    for (uint32_t i = 0; i < facts->table.count && index < facts->agreed_count; i++) {
        const struct fact *fact = &facts->table.held[i];
        if (fact->number == facts->agreed && fact->members == facts->agreed_members)
            facts->decided(daemon, fact->author, fact->text, index++, facts->agreed_count);
    }
    fact_table_by_arrival(&facts->table);
}

static void miss(struct daemon *daemon)
{
    daemon->facts.asks = false;
    daemon->facts.missed(daemon);
}

static int tell_own(struct daemon *daemon, const char *text)
{
    struct facts *facts = &daemon->facts;
    const struct sgp_fact own = {.kind = SGP_FACT_TOLD,
        .number = facts->agreed + 1,
        .members = fact_members(daemon->prepared->topology),
        .author = self_name(daemon),
        .text = text};
    if (!fact_is_near(facts->agreed, own.number))
        return -ERANGE;
    if (fact_table_find(&facts->table, own.author, own.number, own.members) != NULL)
        return 0;
    bool added = fact_table_add(&facts->table, daemon->prepared->topology, &own, 0);
    return added ? 0 : -ENOMEM;
}

static void freeze(struct daemon *daemon, uint64_t number, uint64_t members, uint32_t count)
{
    struct facts *facts = &daemon->facts;
    char text[SGP_FACT_BYTES];
    const struct fact *before = NULL; /* of a decision in which this node took no part */
    for (uint32_t i = 0; i < facts->table.count; i++)
        if (strcmp(facts->table.held[i].author, self_name(daemon)) == 0 &&
            (before == NULL || facts->table.held[i].number >= before->number))
            before = &facts->table.held[i];
    bool part = fact_table_find(&facts->table, self_name(daemon), number, members) != NULL;
    (void)snprintf(text, sizeof text, "%s", before != NULL ? before->text : "");
    facts->unfetched = part && (facts->told == number || facts->heard.number < number);
    facts->agreed = number;
    facts->agreed_members = members;
    facts->agreed_count = count;
    fact_table_drop_before(&facts->table, number);
    const enum sgp_level level = facts->listens ? SGP_LEVEL_DEBUG : SGP_LEVEL_INFO;
    sgp_log(&daemon->log->sink, level, "event=decided number=%" PRIu64 " members=%" PRIu32, number,
        count);
    if ((facts->asks || facts->listens) && part)
        deliver(daemon);
    else if (facts->asks && facts->first)
        miss(daemon);
    else if (facts->asks)
        (void)tell_own(daemon, text);
}

static void settle(struct daemon *daemon)
{
    struct facts *facts = &daemon->facts;
    const struct sgp_topology *topology = daemon->prepared->topology;
    uint64_t members = fact_members(topology), next = facts->agreed + 1;
    const struct sgp_fact heard = facts->heard;
    if (heard.number > facts->agreed &&
        fact_table_count(&facts->table, heard.number, heard.members) >= heard.count)
        freeze(daemon, heard.number, heard.members, heard.count);
    else if (fact_table_count(&facts->table, next, members) >= sgp_topology_trainers(topology))
        freeze(daemon, next, members, sgp_topology_trainers(topology));
}

/* ---- receiving ---- */

void facts_take(struct daemon *daemon, const struct link *link, const struct sgp_fact *came)
{
    struct facts *facts = &daemon->facts;
    if (!fact_is_sound(daemon->prepared->topology, facts->agreed, came))
        return;
    if (came->kind == SGP_FACT_AGREED) {
        if (came->number <= facts->agreed || came->number <= facts->heard.number)
            return;
        facts->heard = *came;
        facts->heard.author = facts->heard.text = NULL; /* the strings were borrowed */
    } else {
        if (fact_table_find(&facts->table, came->author, came->number, came->members) != NULL ||
            !fact_table_add(&facts->table, daemon->prepared->topology, came, link->id.connection))
            return;
    }
    settle(daemon);
}

void facts_reloaded(struct daemon *daemon)
{
    struct facts *facts = &daemon->facts;
    const struct fact *own = NULL;
    char text[SGP_FACT_BYTES];
    for (uint32_t i = 0; i < facts->table.count; i++)
        if (facts->table.held[i].number == facts->agreed + 1 &&
            strcmp(facts->table.held[i].author, self_name(daemon)) == 0)
            own = &facts->table.held[i];
    if (own == NULL)
        return;
    (void)snprintf(text, sizeof text, "%s", own->text);
    (void)tell_own(daemon, text);
    settle(daemon);
}

/* ---- the program's word ---- */

int facts_tell(struct daemon *daemon, const char *text, bool first, struct sgp_error *error)
{
    const struct sgp_topology *topology = daemon->prepared->topology;
    bool *reached = calloc(topology->node_count, sizeof *reached);
    if (reached == NULL)
        return -ENOMEM;
    uint32_t apart = unreached(topology, daemon->prepared->self, reached);
    free(reached);
    if (apart != SGP_NODE_NONE)
        return sgp_fail(error, SGP_E_STATE,
            "no edges of the topology file join %s and %s, so they cannot decide together",
            self_name(daemon), topology->nodes[apart].name);
    daemon->facts.asks = true;
    daemon->facts.first = first;
    if (first && daemon->facts.agreed > 0) {
        miss(daemon);
        return 0;
    }
    if (daemon->facts.unfetched) {
        deliver(daemon);
        return 0;
    }
    int code = tell_own(daemon, text);
    daemon->facts.told = daemon->facts.agreed + 1;
    if (code == -ERANGE)
        return sgp_fail(error, SGP_E_STATE,
            "a node has said that decision %" PRIu64
            " is made, which no fleet can reach; stop all daemons, and start them again",
            daemon->facts.agreed);
    if (code < 0)
        return sgp_fail(error, code, "out of memory");
    settle(daemon);
    return 0;
}

bool facts_missing(const struct daemon *daemon, char *ret_names, size_t bytes)
{
    const struct sgp_topology *topology = daemon->prepared->topology;
    const struct facts *facts = &daemon->facts;
    uint64_t members = fact_members(topology);
    size_t used = 0;
    ret_names[0] = '\0';
    for (uint32_t i = 0; facts->asks && i < topology->node_count; i++) {
        const char *name = topology->nodes[i].name;
        if (!trains(topology, i) ||
            fact_table_find(&facts->table, name, facts->agreed + 1, members) != NULL ||
            used + strlen(name) + 3 > bytes)
            continue;
        used +=
            (size_t)snprintf(ret_names + used, bytes - used, "%s%s", used > 0 ? ", " : "", name);
    }
    return facts->asks;
}

void facts_finish(struct daemon *daemon)
{
    fact_table_finish(&daemon->facts.table);
    daemon->facts = (struct facts){.agreed = 0};
}
