/* SPDX-License-Identifier: Apache-2.0 */
/* Replays a journal through the core.
 *
 * The core trusts its performer, and a journal may be hostile. So an event that no performer emits
 * is refused before the step. Jobs are done in the order in which they were requested, a connection
 * comes up only on an edge, and time does not go backward. */
#include "journal/read.h"

#include "sgp/driver.h"
#include "sgp/version.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MAX (INT64_MAX / 4)
/* bound of final_cycles, because this number times the rounds of a cycle becomes a label */
#define CYCLES_MAX 1000000u

struct job { /* a job that was requested, and is not answered yet */
    enum sgp_event_type type;
    uint32_t slot;
};

struct player {
    const char *name; /* name of the file */
    size_t at;        /* position of the present record */
    const struct sgp_sink *sink;
    struct sgp_error *error;
    struct sgp_topology *topology;
    struct sgp_node *node; /* NULL: no part has begun */
    struct sgp_driver driver;
    struct sgp_effects effects;
    sgp_time now;
    bool started;        /* START was stepped */
    uint64_t connection; /* the latest connection that came up */
    struct job *jobs;
    uint32_t job_first, job_count, job_capacity;
    bool starved; /* an operation had no memory */
};

SGP_PRINTF(2, 3) static int refuse(const struct player *player, const char *format, ...)
{
    char text[SGP_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sgp_fail(player->error, SGP_E_FILE, "%s: byte %zu: %s", player->name, player->at, text);
}

/* ---- the performer: it records which answers are due ---- */

static void expect(struct player *player, enum sgp_event_type type, uint32_t slot)
{
    if (player->job_first > 0 && player->job_count == player->job_capacity) {
        player->job_count -= player->job_first;
        memmove(player->jobs, player->jobs + player->job_first,
            player->job_count * sizeof *player->jobs);
        player->job_first = 0;
    }
    if (player->job_count == player->job_capacity) {
        uint32_t capacity = 2 * player->job_capacity + 16;
        struct job *jobs = realloc(player->jobs, capacity * sizeof *jobs);
        player->starved = player->starved || jobs == NULL;
        if (jobs == NULL)
            return;
        player->jobs = jobs;
        player->job_capacity = capacity;
    }
    player->jobs[player->job_count++] = (struct job){type, slot};
}

/* Whether this event answers the next due job. If so, the job is ended. */
static bool is_due(struct player *player, const struct sgp_event *event)
{
    if (player->job_first == player->job_count)
        return false;
    const struct job *job = &player->jobs[player->job_first];
    if (job->type != event->type || (job->slot != SGP_SLOT_NONE && job->slot != event->slot))
        return false;
    player->job_first++;
    return true;
}

static void work(void *context, const struct sgp_effect *job)
{
    uint32_t slot;
    enum sgp_event_type answer = sgp_effect_answer(job, &slot);
    if (answer != 0)
        expect(context, answer, slot);
}

static const struct sgp_driver_ops ops = {.work = work};

/* ---- one process ---- */

static void end_part(struct player *player)
{
    sgp_node_destroy(player->node);
    sgp_topology_destroy(player->topology);
    player->node = NULL;
    player->topology = NULL;
    player->started = false;
    player->connection = 0;
    player->job_first = player->job_count = 0;
}

static int extend_effects(struct player *player, uint32_t capacity)
{
    if (capacity <= player->effects.capacity)
        return 0;
    void *items = realloc(player->effects.items, capacity * sizeof *player->effects.items);
    if (items == NULL)
        return -ENOMEM;
    player->effects.items = items;
    player->effects.capacity = capacity;
    return 0;
}

/* A check that sgp_node_create does not make: snapshots that the record says are kept must
 * exist. */
static bool keeps_what_it_can(const struct sgp_node_config *config)
{
    struct sgp_node_needs needs;
    const struct sgp_record *record = config->record;
    if (record == NULL || config->self >= config->topology->node_count)
        return true;
    if (sgp_node_needs(config->topology, config->self, config->method, &needs) < 0)
        return false;
    for (uint32_t i = 0; i < record->link_count; i++) {
        const struct sgp_record_link *link = &record->links[i];
        if (link->owed_kept && !(link->owes && link->owed_slot < needs.snapshots))
            return false;
    }
    return true;
}

static int begin_node(struct player *player, struct sgp_journal_process *process)
{
    const struct sgp_node_config *config = &process->config;
    bool sound = config->final_cycles <= CYCLES_MAX && process->start.now >= 0 &&
                 process->start.now <= TIME_MAX && keeps_what_it_can(config);
    int code = sound ? sgp_node_create(config, &player->node) : -EINVAL;
    if (code == -EINVAL)
        return refuse(player, "no node can be made of these values");
    if (code < 0)
        return code;
    char line[SGP_TEXT_BYTES];
    sgp_journal_head(line, &process->start);
    sgp_log(player->sink, SGP_LEVEL_TRACE, "%s", line);
    player->topology = process->topology;
    process->topology = NULL;
    player->now = process->start.now;
    struct sgp_node_needs needs;
    sgp_node_counts(player->node, &needs);
    player->driver = (struct sgp_driver){.node = player->node,
        .ops = &ops,
        .context = player,
        .sink = player->sink,
        .name = player->topology->nodes[config->self].name,
        .effects = &player->effects};
    return extend_effects(player, needs.effects);
}

static int begin_part(struct player *player, struct sgp_unpacker *reader)
{
    struct sgp_error why = {0};
    struct sgp_journal_process process;
    end_part(player);
    int code = sgp_journal_get_start(reader, &process, &why);
    if (code == 0) {
        if (strcmp(process.version, sgp_version()) != 0)
            sgp_log(player->sink, SGP_LEVEL_WARNING,
                "%s: byte %zu: written by sgpd %s, and this is %s; where they differ so does the "
                "trace",
                player->name, player->at, process.version, sgp_version());
        code = begin_node(player, &process);
    } else if (code == SGP_E_FILE) {
        code = refuse(player, "%.400s", why.text);
    }
    sgp_journal_process_finish(&process);
    return code;
}

/* ---- one event ---- */

static bool has_link(const struct player *player, const struct sgp_link *id)
{
    uint32_t count = sgp_node_link_count(player->node);
    for (uint32_t i = 0; i < count; i++) {
        struct sgp_peer_status status;
        sgp_node_link_status(player->node, i, &status);
        if (status.peer == id->peer && status.direction == id->direction)
            return true;
    }
    return false;
}

/* The reason why no performer emits this event of a link; NULL: none. */
static const char *fault_of_link(const struct player *player, const struct sgp_event *event)
{
    const struct sgp_link *link = &event->link;
    bool in = link->direction == SGP_IN;
    if (link->peer >= player->topology->node_count || (!in && link->direction != SGP_OUT))
        return "the event's link is of no node of the topology";
    if (event->type == SGP_EVENT_UP &&
        (link->connection <= player->connection || !has_link(player, link)))
        return "a connection comes up twice, or on no edge";
    if (link->connection == 0 && (event->type != SGP_EVENT_DOWN || in))
        return "the event is of no connection";
    if (!in && (event->type == SGP_EVENT_PAYLOAD || event->type == SGP_EVENT_HEARD))
        return "a payload comes from a target";
    int code = event->code;
    if (event->type == SGP_EVENT_PAYLOAD && code != 0 && code != SGP_E_NOT_FINITE &&
        code != SGP_E_OUTSIZED && code != SGP_E_CHECKSUM)
        return "a payload ends with a code that none has";
    return NULL;
}

static const char *fault_of_message(const struct sgp_event *event)
{
    bool wants = event->type == SGP_EVENT_MESSAGE || event->type == SGP_EVENT_PROVEN;
    bool may = wants || event->type == SGP_EVENT_ANSWER;
    if (event->message == NULL ? wants : !may)
        return "a message is missing, or is one too many";
    if (event->type == SGP_EVENT_ANSWER && event->message != NULL &&
        event->message->type != SGP_ANSWER)
        return "the answer to a question is of another type";
    return NULL;
}

/* The reason why no performer emits this event now; NULL: none. If the event answers a job, the job
 * is ended. */
static const char *fault_of(struct player *player, const struct sgp_event *event)
{
    if (event->type < SGP_EVENT_START || event->type > SGP_EVENT_RENEW)
        return "the event is of no known type";
    if (event->type == SGP_EVENT_RENEW && event->bytes >= SGP_ROUND_MAX)
        return "an epoch begins in a round that there is not";
    if ((event->type == SGP_EVENT_START) == player->started)
        return "a process begins with START, once";
    if (event->now < player->now || event->now > TIME_MAX)
        return "time runs backwards, or is over";
    if (event->type == SGP_EVENT_TRAINED && event->code != 0 && event->code != SGP_E_DIVERGED &&
        event->code != -ECANCELED)
        return "training ends with a code that it does not have";
    bool of_job = event->type >= SGP_EVENT_TRAINED && event->type <= SGP_EVENT_SKETCHED;
    if (of_job && !is_due(player, event))
        return "a job ends that was not asked for, or before another that was";
    bool of_link = event->type >= SGP_EVENT_UP && event->type <= SGP_EVENT_HEARD;
    const char *fault = of_link ? fault_of_link(player, event) : NULL;
    return fault != NULL ? fault : fault_of_message(event);
}

static int play_event(struct player *player, struct sgp_unpacker *reader)
{
    struct sgp_error why = {0};
    struct sgp_journal_said said;
    struct sgp_event event;
    if (sgp_journal_get_event(reader, &said, &event, &why) < 0)
        return refuse(player, "%.400s", why.text);
    const char *fault = fault_of(player, &event);
    if (fault != NULL)
        return refuse(player, "%s", fault);
    player->started = true;
    player->now = event.now;
    if (event.type == SGP_EVENT_UP)
        player->connection = event.link.connection;
    sgp_driver_post(&player->driver, &event);
    return player->starved ? -ENOMEM : 0;
}

static int play_reload(struct player *player, struct sgp_unpacker *reader)
{
    struct sgp_error why = {0};
    struct sgp_node_change change;
    struct sgp_node_needs needs;
    struct sgp_reload *reload = NULL;
    struct sgp_topology *topology;
    sgp_time now;
    int code = sgp_journal_get_reload(reader, &now, &topology, &change, &why);
    if (code == SGP_E_FILE)
        code = refuse(player, "%.400s", why.text);
    else if (code == 0 && (!player->started || now < player->now || now > TIME_MAX))
        code = refuse(player, "a reload before the beginning, or back in time");
    if (code == 0 && (code = sgp_reload_prepare(player->node, &change, &needs, &reload)) == -EINVAL)
        code = refuse(player, "the reload is not this node's");
    if (code == 0 && (code = extend_effects(player, needs.effects)) < 0)
        sgp_reload_cancel(reload);
    if (code < 0) {
        sgp_topology_destroy(topology);
        return code;
    }
    player->now = now;
    player->driver.name = topology->nodes[change.self].name;
    sgp_driver_reload(&player->driver, now, reload);
    sgp_topology_destroy(player->topology);
    player->topology = topology;
    return player->starved ? -ENOMEM : 0;
}

/* ---- the whole journal ---- */

static int play(struct player *player, const struct sgp_journal_found *found)
{
    struct sgp_unpacker reader = {.bytes = found->body, .count = found->bytes, .wide = true};
    int kind = sgp_journal_kind_of(&reader);
    player->at = found->at;
    if ((kind == SGP_JOURNAL_START) != found->begins)
        return refuse(player, "what a process begins with is missing, or stands elsewhere");
    switch (kind) {
    case SGP_JOURNAL_START:
        return begin_part(player, &reader);
    case SGP_JOURNAL_EVENT:
        return play_event(player, &reader);
    case SGP_JOURNAL_RELOAD:
        return play_reload(player, &reader);
    default:
        return refuse(player, "the record is of no known kind");
    }
}

int sgp_journal_replay(const uint8_t *bytes, size_t count, const char *name,
    const struct sgp_sink *sink, struct sgp_error *error)
{
    struct player player = {.name = name, .sink = sink, .error = error};
    struct sgp_journal_scan scan = {.bytes = bytes, .count = count, .name = name};
    struct sgp_journal_found found = {.ended = false};
    int code = sgp_journal_check(bytes, count, name, error);
    while (code == 0 && !found.ended) {
        code = sgp_journal_next(&scan, &found, error);
        if (code == 0 && found.cut_at != SIZE_MAX)
            sgp_log(sink, SGP_LEVEL_WARNING,
                "%s: byte %zu: the record is cut off, as a killed process leaves it; it is left "
                "out",
                name, found.cut_at);
        if (code == 0 && !found.ended)
            code = play(&player, &found);
    }
    end_part(&player);
    free(player.effects.items);
    free(player.jobs);
    if (code == -ENOMEM)
        (void)sgp_fail(error, code, "%s: byte %zu: out of memory", name, player.at);
    return code;
}
