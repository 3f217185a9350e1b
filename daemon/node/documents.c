/* SPDX-License-Identifier: Apache-2.0 */
/* Signed topology files: kept, shown and exchanged; see documents.h. Each slot of the rollout has a
 * survey without members, whose result is the stored document. */
#include "documents.h"

#include "edges.h"
#include "events.h"
#include "notes.h"
#include "store/versions.h"

#include "sgp/survey.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE_ERROR "rollout:"
#define STORE_RETRY_NS SGP_SECOND
#define LOOK_MS 1000u /* at most between two looks */
#define ROW_MS 20u    /* between a row and the look that it causes, and a part for each node */
#define HURRY_MS 250u /* between two looks while a version is proposed */
#define POLL_NS (5 * SGP_SECOND) /* between questions to a neighbour without a link */
#define PAUSES 6u                /* SGP_SECOND << this is the longest pause */

struct document_slot {
    struct documents *documents;
    enum sgp_rollout_slot slot;
    struct sgp_survey *survey;
};

struct document_peer {
    sgp_time next;     /* no question before this */
    uint32_t failures; /* answers in a row that were of no use */
    bool away;         /* no link to it was up when it was asked last */
};

struct documents {
    struct daemon *daemon;
    uv_timer_t timer;
    uv_timer_cb look;
    uint64_t due; /* of the timer, by its clock */
    struct document_slot slots[SGP_ROLLOUT_SLOTS];
    struct sgp_rollout_view shown;
    uint64_t shows;
    uint64_t changes;              /* of the rollout, by documents */
    bool unstored;                 /* the rollout has changed since it was stored */
    char obstacle[SGP_TEXT_BYTES]; /* why it cannot be stored; "": it can, as far as is known */
    sgp_time store_next;           /* it is not tried before this */
    bool learned;                  /* a document has changed it since a question ended */
    bool closing;
    struct document_peer *peers; /* for each node of the file */
    uint32_t peer_count;
    char judged[SGP_TEXT_BYTES]; /* why the document that has just come is refused; "": it is not */
    char refused[SGP_TEXT_BYTES]; /* the latest, with its neighbour */
    uint64_t refusals;
};

enum sgp_subject documents_subject(enum sgp_rollout_slot slot)
{
    return slot == SGP_ROLLOUT_ACTIVE ? SGP_SUBJECT_ACTIVE : SGP_SUBJECT_PROPOSED;
}

static struct sgp_rollout *rollout_of(const struct documents *documents)
{
    return documents->daemon->prepared->rollout;
}

/* ---- the timer ---- */

void documents_listen(struct daemon *daemon, uv_timer_cb look)
{
    if (daemon->documents == NULL)
        return;
    daemon->documents->look = look;
    documents_wake(daemon, 0);
}

void documents_wake(struct daemon *daemon, uint64_t milliseconds)
{
    struct documents *documents = daemon->documents;
    if (documents == NULL || documents->closing || documents->look == NULL)
        return;
    const uint64_t due = uv_now(&daemon->loop) + milliseconds;
    if (uv_is_active((uv_handle_t *)&documents->timer) && documents->due <= due)
        return;
    documents->due = due;
    (void)uv_timer_start(&documents->timer, documents->look, milliseconds, 0);
}

void documents_row(struct daemon *daemon)
{
    documents_wake(daemon, ROW_MS + daemon->prepared->topology->node_count / 16);
}

/* ---- documents that come ---- */

/* The rollout judges the text; the survey has it once it is stored. */
static int judge(void *context, const struct sgp_bulletin *bulletin)
{
    const struct document_slot *slot = context;
    struct documents *documents = slot->documents;
    struct sgp_error error = {0};
    const int code = sgp_rollout_take(rollout_of(documents), slot->slot, bulletin->text, &error);
    if (code > 0) {
        documents->learned = true;
        documents_changed(documents->daemon);
    }
    if (code >= 0 || code == -ENOMEM)
        return 0;
    (void)snprintf(documents->judged, sizeof documents->judged, "%s", error.text);
    return code;
}

static void refuse(struct documents *documents, uint32_t peer)
{
    const struct sgp_topology *topology = documents->daemon->prepared->topology;
    documents->refusals++;
    (void)snprintf(documents->refused, sizeof documents->refused, "%s: %.400s",
        topology->nodes[peer].name, documents->judged);
    sgp_log(&documents->daemon->log->sink, SGP_LEVEL_WARNING,
        "event=rollout_refused peer=%s reason=\"%s\"", topology->nodes[peer].name,
        documents->judged);
    documents->judged[0] = '\0';
}

bool documents_may_ask(const struct daemon *daemon, uint32_t peer)
{
    const struct documents *documents = daemon->documents;
    return documents != NULL && peer < documents->peer_count &&
           events_now() >= documents->peers[peer].next;
}

void documents_answered(struct daemon *daemon, uint32_t peer, const char *why)
{
    struct documents *documents = daemon->documents;
    if (documents == NULL || peer >= documents->peer_count)
        return;
    struct document_peer *it = &documents->peers[peer];
    if (documents->judged[0] != '\0')
        refuse(documents, peer);
    const bool useful = why == NULL && documents->learned;
    documents->learned = false;
    it->failures = useful ? 0 : it->failures < PAUSES ? it->failures + 1 : PAUSES;
    it->next = useful ? 0 : events_now() + ((SGP_SECOND / 2) << it->failures);
    documents_wake(daemon, useful ? 0 : HURRY_MS);
}

/* ---- stored, then shown ---- */

void documents_changed(struct daemon *daemon)
{
    daemon->documents->changes++;
    daemon->documents->unstored = true;
    daemon->documents->store_next = 0;
    documents_wake(daemon, 0);
}

static void tell(const struct documents *documents, const struct sgp_rollout_view *former)
{
    const struct sgp_sink *sink = &documents->daemon->log->sink;
    const struct sgp_rollout_view *now = &documents->shown;
    const bool proposes =
        now->proposed != 0 && (now->proposed != former->proposed || now->mark != former->mark);
    if (proposes && now->vote != SGP_VOTE_FORKED)
        sgp_log(sink, SGP_LEVEL_INFO, "event=rollout_proposed version=%" PRIu64 " mark=%016" PRIx64,
            now->proposed, now->mark);
    if (now->proposed == 0 || (!proposes && now->vote == former->vote))
        return;
    if (now->vote == SGP_VOTE_FORKED)
        sgp_log(sink, SGP_LEVEL_WARNING, "event=rollout_fork version=%" PRIu64 " reason=\"%s\"",
            now->proposed, now->why);
    else if (now->vote != SGP_VOTE_NONE)
        sgp_log(sink, now->vote == SGP_VOTE_REFUSED ? SGP_LEVEL_WARNING : SGP_LEVEL_INFO,
            "event=rollout_vote version=%" PRIu64 " vote=%s%s%s%s", now->proposed,
            sgp_vote_name(now->vote), now->why[0] != '\0' ? " reason=\"" : "", now->why,
            now->why[0] != '\0' ? "\"" : "");
}

/* Give neighbours what is stored. Without memory the former document is given for a while. */
static void give(struct documents *documents)
{
    for (uint32_t i = 0; i < SGP_ROLLOUT_SLOTS; i++) {
        struct sgp_survey *survey = documents->slots[i].survey;
        uint64_t stamp, present;
        const char *text = sgp_rollout_text(rollout_of(documents), i, &stamp);
        const char *former = sgp_survey_result(survey, &present);
        if ((text == NULL) != (former == NULL) || (text != NULL && strcmp(text, former) != 0))
            (void)sgp_survey_freeze(survey, stamp, text);
    }
}

static bool is_same(const struct sgp_rollout_view *a, const struct sgp_rollout_view *b)
{
    return a->active == b->active && a->proposed == b->proposed && a->mark == b->mark &&
           a->vote == b->vote && strcmp(a->why, b->why) == 0;
}

/* Another version is in use. */
static void keep_version(const struct documents *documents, bool begins)
{
    const struct daemon *daemon = documents->daemon;
    const struct sgp_manifest *manifest =
        &sgp_rollout_document(rollout_of(documents), SGP_ROLLOUT_ACTIVE)->manifest;
    struct sgp_error error = {0};
    uint64_t ignored;
    const char *text = sgp_rollout_text(rollout_of(documents), SGP_ROLLOUT_ACTIVE, &ignored);
    if (!begins)
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO,
            "event=rollout_activated version=%" PRIu64 " file=%.16s", manifest->version,
            manifest->file);
    if (versions_keep(daemon->config->state_directory, manifest->version, text,
            pulls_stamp() / 1000, &error) < 0)
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=warning text=\"%s; sgpctl topology log lacks version %" PRIu64 "\"", error.text,
            manifest->version);
}

/* A node that cannot store what is proposed must not accept it, and says why. */
static void look(const struct documents *documents, struct sgp_rollout_view *ret_view)
{
    sgp_rollout_look(rollout_of(documents), ret_view);
    if (!documents->unstored || ret_view->proposed == 0 || ret_view->vote == SGP_VOTE_FORKED)
        return;
    ret_view->vote = SGP_VOTE_REFUSED;
    memcpy(ret_view->why, documents->obstacle, sizeof ret_view->why);
}

static void show(struct documents *documents)
{
    const struct sgp_rollout_view former = documents->shown;
    give(documents);
    look(documents, &documents->shown);
    if (is_same(&former, &documents->shown))
        return;
    documents->shows++;
    tell(documents, &former);
    if (documents->shown.active != former.active)
        keep_version(documents, former.active == 0);
}

static bool store(struct documents *documents)
{
    struct daemon *daemon = documents->daemon;
    struct sgp_error error = {0};
    if (events_now() < documents->store_next)
        return false;
    if (signed_file_keep(daemon->config, rollout_of(documents), &error) == 0) {
        documents->unstored = false;
        documents->obstacle[0] = '\0';
        notes_mended(daemon, STORE_ERROR);
        return true;
    }
    documents->store_next = events_now() + STORE_RETRY_NS;
    if (strcmp(documents->obstacle, error.text) != 0)
        notes_error(daemon, STORE_ERROR " %s; no version is accepted or used before it is stored",
            error.text);
    memcpy(documents->obstacle, error.text, sizeof documents->obstacle);
    return false;
}

bool documents_settle(struct daemon *daemon)
{
    struct documents *documents = daemon->documents;
    const bool stored = !documents->unstored || store(documents);
    show(documents);
    return stored;
}

const struct sgp_rollout_view *documents_shown(const struct daemon *daemon)
{
    return daemon->documents != NULL ? &daemon->documents->shown : NULL;
}

uint64_t documents_changes(const struct daemon *daemon)
{
    return daemon->documents->changes;
}

uint64_t documents_shows(const struct daemon *daemon)
{
    return daemon->documents != NULL ? daemon->documents->shows : 0;
}

const char *documents_refused(const struct daemon *daemon, uint64_t *ret_count)
{
    *ret_count = daemon->documents->refusals;
    return daemon->documents->refused;
}

/* ---- questions ---- */

bool documents_row_of(const struct daemon *daemon, uint32_t node, struct sgp_fleet_row *ret_row)
{
    if (node >= sgp_fleet_count(daemon->fleet))
        return false;
    const struct sgp_fleet_view view = sgp_fleet_look(daemon->fleet, node, events_now());
    return view.text != NULL && sgp_fleet_row_read(view.text, ret_row) == 0 &&
           ret_row->rollout_active != 0;
}

/* The mark of what is in use, as a row has that of what is proposed. */
static uint64_t active_mark(const struct documents *documents)
{
    const struct sgp_document *active =
        sgp_rollout_document(rollout_of(documents), SGP_ROLLOUT_ACTIVE);
    char high[17];
    (void)snprintf(high, sizeof high, "%.16s", active != NULL ? active->identity : "0");
    return strtoull(high, NULL, 16);
}

/* The peer uses a later version than this node, or another file of the same one. */
static bool lacks_active(const struct documents *documents, const struct sgp_fleet_row *row)
{
    const uint64_t active = documents->shown.active;
    return row->rollout_active > active ||
           (row->rollout_active == active &&
               row->topology_digest != documents->daemon->prepared->topology->digest);
}

/* The peer votes on a version above all of this node, on another file of it, or knows of a fork. */
static bool lacks_proposed(const struct documents *documents, const struct sgp_fleet_row *row)
{
    const struct sgp_rollout_view *own = &documents->shown;
    const bool proposes = own->proposed >= own->active && own->proposed != 0;
    const uint64_t top = proposes ? own->proposed : own->active;
    const uint64_t mark = proposes ? own->mark : active_mark(documents);
    const bool forks = row->rollout_vote == SGP_VOTE_FORKED;
    if (row->rollout_proposed != top || row->rollout_proposed == 0)
        return row->rollout_proposed > top;
    return own->vote == SGP_VOTE_FORKED ? forks && row->rollout_mark != mark
                                        : forks || row->rollout_mark != mark;
}

static bool is_up(struct daemon *daemon, uint32_t peer)
{
    for (enum sgp_direction direction = SGP_OUT; direction <= SGP_IN; direction++) {
        const struct edge *edge = edges_find(daemon, peer, direction);
        if (edge != NULL && edge != &daemon->gone &&
            daemon_peer(daemon, (uint32_t)(edge - daemon->edges)).state == SGP_LINK_UP)
            return true;
    }
    return false;
}

/* What a neighbour is to be asked for; SLOTS: nothing. */
static enum sgp_rollout_slot wanted_of(const struct documents *documents, uint32_t peer, bool calls)
{
    const struct sgp_rollout_view *own = &documents->shown;
    struct sgp_fleet_row row;
    if (!documents_row_of(documents->daemon, peer, &row))
        return SGP_ROLLOUT_SLOTS;
    if (lacks_active(documents, &row) || (calls && row.rollout_active < own->active))
        return SGP_ROLLOUT_ACTIVE;
    if (lacks_proposed(documents, &row) ||
        (calls && own->proposed > row.rollout_active && row.rollout_mark != own->mark))
        return SGP_ROLLOUT_PROPOSED;
    return SGP_ROLLOUT_SLOTS;
}

/* A node that cannot be dialled asks with `calls`, and is then asked for what it has. */
static void ask(struct documents *documents, uint32_t peer, bool calls)
{
    struct daemon *daemon = documents->daemon;
    struct document_peer *it = &documents->peers[peer];
    const sgp_time now = events_now();
    const bool up = is_up(daemon, peer);
    if (up && it->away)
        *it = (struct document_peer){.away = false};
    const enum sgp_rollout_slot slot = up ? wanted_of(documents, peer, calls) : SGP_ROLLOUT_ACTIVE;
    if (now < it->next || slot == SGP_ROLLOUT_SLOTS)
        return;
    it->away = !up;
    it->next = now + (up ? SGP_SECOND / 4 : POLL_NS);
    (void)pulls_ask(&daemon->pulls, documents_subject(slot), peer,
        &daemon->prepared->topology->nodes[peer], calls);
}

void documents_ask(struct daemon *daemon)
{
    struct documents *documents = daemon->documents;
    const struct sgp_topology *topology = daemon->prepared->topology;
    const bool calls = !sgp_topology_is_dialled(topology, daemon->prepared->self);
    for (uint32_t i = 0; i < daemon->edge_count; i++) {
        const uint32_t peer = daemon->edges[i].peer;
        if (peer < documents->peer_count && sgp_topology_is_dialled(topology, peer))
            ask(documents, peer, calls);
    }
    documents_wake(daemon, documents->shown.proposed != 0 ? HURRY_MS : LOOK_MS);
}

/* ---- the life of it ---- */

static int use_file(struct documents *documents)
{
    const uint32_t count = documents->daemon->prepared->topology->node_count;
    struct document_peer *peers = calloc(count, sizeof *peers);
    if (peers == NULL)
        return -ENOMEM;
    free(documents->peers);
    documents->peers = peers;
    documents->peer_count = count;
    return 0;
}

void documents_reloaded(struct daemon *daemon)
{
    struct documents *documents = daemon->documents;
    if (documents == NULL)
        return;
    if (use_file(documents) < 0) {
        documents->peer_count = 0; /* no node is asked */
        notes_error(daemon, STORE_ERROR " no memory for the nodes of the new file");
    }
    documents->unstored = false;
    documents->obstacle[0] = '\0';
    show(documents);
    documents_wake(daemon, 0);
}

static int open_slot(struct documents *documents, enum sgp_rollout_slot slot)
{
    struct document_slot *it = &documents->slots[slot];
    *it = (struct document_slot){.documents = documents, .slot = slot};
    it->survey = sgp_survey_create(documents->daemon->config->name, documents_subject(slot));
    if (it->survey == NULL)
        return -ENOMEM;
    const struct sgp_survey_judge judges = {
        .context = it, .bytes_max = SGP_DOCUMENT_BYTES_MAX, .judge = judge};
    sgp_survey_judge(it->survey, &judges);
    return 0;
}

int documents_open(struct daemon *daemon)
{
    if (daemon->prepared->rollout == NULL)
        return 0;
    struct documents *documents = calloc(1, sizeof *documents);
    if (documents == NULL)
        return -ENOMEM;
    documents->daemon = daemon;
    daemon->documents = documents;
    (void)uv_timer_init(&daemon->loop, &documents->timer);
    int code = use_file(documents);
    for (uint32_t i = 0; i < SGP_ROLLOUT_SLOTS && code == 0; i++)
        code = open_slot(documents, i);
    documents->timer.data = daemon;
    for (uint32_t i = 0; i < documents->peer_count; i++)
        documents->peers[i].next = events_now() + SGP_SECOND; /* links are not up yet */
    if (code == 0)
        show(documents);
    return code;
}

struct sgp_survey *documents_survey(const struct daemon *daemon, enum sgp_rollout_slot slot)
{
    return daemon->documents != NULL ? daemon->documents->slots[slot].survey : NULL;
}

void documents_close(struct daemon *daemon)
{
    struct documents *documents = daemon->documents;
    if (documents == NULL || documents->closing)
        return;
    documents->closing = true;
    uv_close((uv_handle_t *)&documents->timer, NULL);
}

void documents_finish(struct daemon *daemon)
{
    struct documents *documents = daemon->documents;
    if (documents == NULL)
        return;
    for (uint32_t i = 0; i < SGP_ROLLOUT_SLOTS; i++)
        sgp_survey_destroy(documents->slots[i].survey);
    free(documents->peers);
    free(documents);
    daemon->documents = NULL;
}
