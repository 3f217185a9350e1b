/* SPDX-License-Identifier: Apache-2.0 */
/* Votes, their count and what follows; see rollouts.h. All of it is done from the timer of
 * documents.c, since a reload must not happen within a message. */
#include "rollouts.h"

#include "calls.h"
#include "documents.h"
#include "events.h"
#include "fleet_own.h"
#include "guests.h"
#include "inquiry.h"
#include "notes.h"
#include "reload.h"
#include "store/versions.h"

#include "sgp/dot.h"
#include "sgp/key.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAREWELL_NS SGP_SECOND /* from the use of a version that strikes this node */
#define FAREWELL_TICK_MS 50u
#define PAUSES 9u /* SGP_SECOND << this is the longest pause */

_Static_assert(VIEW_HASH_BYTES == SGP_HASH_BYTES, "a hash as sgp/manifest.h writes it");
_Static_assert(VIEW_SIGNERS_MAX == SGP_MANIFEST_SIGNERS_MAX, "signers likewise");
_Static_assert(VIEW_SIGNERS_MAX == SGP_MANIFEST_DESPITE_MAX, "nodes that are passed over likewise");
_Static_assert(VIEW_VERSIONS_MAX == VERSIONS_MAX, "as store/versions.h keeps");

struct rollouts {
    sgp_time retry;     /* a version that could not be used is tried again then */
    uint32_t failures;  /* in a row */
    uint64_t changes;   /* by documents, of which the rollout knows */
    bool stored;        /* at the latest look */
    sgp_time silent_at; /* this node is struck, and falls silent then; 0: it is not */
    /* which nodes of the present file the proposed one has, too; NULL: not known */
    bool *stays;
    uint64_t stays_mark, stays_digest; /* of the proposed and of the present file */
};

/* ---- votes ---- */

/* A file that cannot be read keeps all nodes. False: no memory. */
static bool find_who_stays(struct daemon *daemon, const struct sgp_document *document)
{
    struct rollouts *rollouts = daemon->rollouts;
    const struct sgp_topology *present = daemon->prepared->topology;
    const uint64_t mark = documents_shown(daemon)->mark;
    struct sgp_topology *next = NULL;
    struct sgp_error ignored = {0};
    if (rollouts->stays != NULL && rollouts->stays_mark == mark &&
        rollouts->stays_digest == present->digest)
        return true;
    free(rollouts->stays);
    rollouts->stays = calloc(present->node_count, sizeof *rollouts->stays);
    if (rollouts->stays == NULL)
        return false;
    rollouts->stays_mark = mark;
    rollouts->stays_digest = present->digest;
    (void)sgp_dot_parse(document->file, document->manifest.file_bytes, "proposed", &ignored, &next);
    for (uint32_t i = 0; i < present->node_count; i++)
        rollouts->stays[i] = next == NULL || sgp_topology_find(next, present->nodes[i].name) >= 0;
    sgp_topology_destroy(next);
    return true;
}

/* The vote of a node of the present file: its own, or what its row shows. */
static struct sgp_rollout_voter voter_of(const struct daemon *daemon, uint32_t node)
{
    const struct prepared *prepared = daemon->prepared;
    const struct sgp_rollout_view *own = documents_shown(daemon);
    struct sgp_rollout_voter voter = {.name = prepared->topology->nodes[node].name,
        .stays = daemon->rollouts->stays[node],
        .vote = SGP_VOTE_NONE};
    struct sgp_fleet_row row;
    if (node == prepared->self) {
        voter.mark = own->mark;
        voter.vote = own->vote;
    } else if (documents_row_of(daemon, node, &row) && row.rollout_proposed == own->proposed) {
        voter.mark = row.rollout_mark;
        voter.vote = sgp_vote_name(row.rollout_vote) != NULL ? row.rollout_vote : SGP_VOTE_NONE;
    }
    return voter;
}

static void count(struct daemon *daemon, struct sgp_rollout_tally *ret_tally)
{
    const uint32_t nodes = daemon->prepared->topology->node_count;
    const struct sgp_rollout *rollout = daemon->prepared->rollout;
    const struct sgp_document *document = sgp_rollout_document(rollout, SGP_ROLLOUT_PROPOSED);
    *ret_tally = (struct sgp_rollout_tally){.ready = false};
    if (document == NULL || !find_who_stays(daemon, document))
        return;
    struct sgp_rollout_voter *voters = calloc(nodes, sizeof *voters);
    for (uint32_t i = 0; voters != NULL && i < nodes; i++)
        voters[i] = voter_of(daemon, i);
    if (voters != NULL)
        sgp_rollout_count(rollout, voters, nodes, ret_tally);
    free(voters);
}

/* ---- what follows ---- */

/* A node that the file strikes has nothing to try. */
static void vote(struct daemon *daemon)
{
    struct sgp_error error = {0};
    int code = reload_try(daemon, &error);
    code = code == SGP_E_UNKNOWN_NODE ? 0 : code;
    if (code < 0 && error.text[0] == '\0')
        (void)sgp_fail(&error, code, "%s", sgp_strerror(code));
    sgp_rollout_vote(daemon->prepared->rollout, code < 0 ? error.text : NULL);
}

/* The node sends nothing more, and reads nothing. */
static void fall_silent(struct daemon *daemon)
{
    listener_close(&daemon->listener);
    dialer_silence(&daemon->dialer);
    calls_silence(daemon);
    guests_silence(daemon);
    dialer_silence(&daemon->inquirer);
    dialer_silence(&daemon->pulls.dialer);
    inquiry_close(daemon);
    pulls_use(&daemon->pulls, daemon->prepared->topology);
    for (uint32_t i = 0; i < daemon->edge_count; i++)
        for (struct link *link = daemon->edges[i].links; link != NULL; link = link->next)
            if (link_stands(link))
                link_end(link, SGP_E_CLOSED, "the file in use does not name this node");
}

/* The version that is to be used does not name this node. The node shows it as in use for a moment,
 * because its neighbours may hear of the votes, or of this version, through this node alone. */
static void strike(struct daemon *daemon, enum sgp_rollout_slot slot)
{
    struct sgp_rollout *rollout = daemon->prepared->rollout;
    sgp_rollout_activate(rollout, slot);
    daemon->rollouts->silent_at = events_now() + FAREWELL_NS;
    sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
        "event=rollout_struck version=%" PRIu64
        " reason=\"this version does not name this node, which falls silent\"",
        sgp_rollout_document(rollout, SGP_ROLLOUT_ACTIVE)->manifest.version);
    documents_changed(daemon);
}

/* Whether a link is up to a neighbour that does not show the version yet. */
static bool is_awaited(struct daemon *daemon)
{
    const uint64_t active = documents_shown(daemon)->active;
    struct sgp_fleet_row row;
    for (uint32_t i = 0; i < daemon->edge_count; i++)
        if (daemon_peer(daemon, i).state == SGP_LINK_UP &&
            (!documents_row_of(daemon, daemon->edges[i].peer, &row) || row.rollout_active < active))
            return true;
    return false;
}

/* The version is stored, so that a restart does not bring the node back. If it cannot be, the
 * neighbours tell the next process. */
static void part(struct daemon *daemon)
{
    (void)documents_settle(daemon);
    fleet_own_publish(daemon);
    if (events_now() < daemon->rollouts->silent_at && is_awaited(daemon)) {
        documents_wake(daemon, FAREWELL_TICK_MS);
        return;
    }
    daemon->struck = true;
    fall_silent(daemon);
    events_settle(daemon);
}

/* Whether it was used. */
static bool use(struct daemon *daemon, enum signed_file_from from, const char *file)
{
    struct rollouts *rollouts = daemon->rollouts;
    if (signed_file_strikes(daemon->config, file)) {
        strike(daemon, from == SIGNED_FILE_NEIGHBOUR ? SGP_ROLLOUT_ACTIVE : SGP_ROLLOUT_PROPOSED);
        return false;
    }
    struct view_reload reload;
    struct sgp_error error = {0};
    const int code = reload_topology(daemon, from, &reload, &error);
    if (code == 0) {
        rollouts->failures = 0;
        return true;
    }
    rollouts->failures += rollouts->failures < PAUSES;
    rollouts->retry = events_now() + (SGP_SECOND << rollouts->failures);
    return false;
}

/* Whether something has changed, so that more may follow. Without a place to store, a version that
 * strikes this node is followed, and nothing else. */
static bool act(struct daemon *daemon, bool stored)
{
    struct sgp_rollout_tally tally;
    const char *file;
    const bool rests = events_now() < daemon->rollouts->retry;
    switch (sgp_rollout_due(daemon->prepared->rollout, &file)) {
    case SGP_ROLLOUT_FOLLOW:
        return !rests && use(daemon, SIGNED_FILE_NEIGHBOUR, file);
    case SGP_ROLLOUT_TRY:
        if (stored)
            vote(daemon);
        return stored;
    case SGP_ROLLOUT_NOTHING:
        break;
    }
    if (rests || !stored || documents_shown(daemon)->vote == SGP_VOTE_NONE)
        return false;
    count(daemon, &tally);
    if (!tally.ready)
        return false;
    file = sgp_rollout_document(daemon->prepared->rollout, SGP_ROLLOUT_PROPOSED)->file;
    return use(daemon, SIGNED_FILE_PROPOSAL, file);
}

/* Store and show what has changed. A pause ends with another document, and once there is a place to
 * store again. */
static bool settle(struct daemon *daemon)
{
    struct rollouts *rollouts = daemon->rollouts;
    const bool stored = documents_settle(daemon);
    if (rollouts->changes != documents_changes(daemon) || (stored && !rollouts->stored)) {
        rollouts->retry = 0;
        rollouts->failures = 0;
    }
    rollouts->changes = documents_changes(daemon);
    rollouts->stored = stored;
    return stored;
}

static void look(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    if (daemon->ending || daemon->stopping || daemon->struck)
        return;
    while (daemon->rollouts->silent_at == 0 && act(daemon, settle(daemon)))
        continue;
    if (daemon->rollouts->silent_at != 0) {
        part(daemon);
        return;
    }
    fleet_own_publish(daemon);
    documents_ask(daemon);
}

int rollouts_open(struct daemon *daemon)
{
    if (documents_shown(daemon) == NULL)
        return 0;
    daemon->rollouts = calloc(1, sizeof *daemon->rollouts);
    if (daemon->rollouts == NULL)
        return -ENOMEM;
    documents_listen(daemon, look);
    return 0;
}

void rollouts_finish(struct daemon *daemon)
{
    if (daemon->rollouts != NULL)
        free(daemon->rollouts->stays);
    free(daemon->rollouts);
    daemon->rollouts = NULL;
}

/* ---- for users ---- */

static int check_administrators(const struct daemon *daemon, struct sgp_error *error)
{
    return daemon->rollouts != NULL
               ? 0
               : sgp_fail(error, SGP_E_STATE,
                     "%s has no section [administrators], so this node takes no signed file; "
                     "name their keys there, on every node",
                     daemon->config->file);
}

static void view_identities(const struct daemon *daemon, struct view_rollout *view)
{
    const struct sgp_rollout_view *shown = documents_shown(daemon);
    const struct sgp_document *active =
        sgp_rollout_document(daemon->prepared->rollout, SGP_ROLLOUT_ACTIVE);
    const struct sgp_document *proposed =
        sgp_rollout_document(daemon->prepared->rollout, SGP_ROLLOUT_PROPOSED);
    if (active != NULL)
        memcpy(view->active_identity, active->identity, sizeof view->active_identity);
    if (proposed != NULL)
        memcpy(view->proposed_identity, proposed->identity, sizeof view->proposed_identity);
    else if (shown->proposed != 0)
        (void)snprintf(
            view->proposed_identity, sizeof view->proposed_identity, "%016" PRIx64, shown->mark);
}

void rollouts_view(struct daemon *daemon, struct view_rollout *ret_rollout)
{
    const struct sgp_rollout_view *shown = documents_shown(daemon);
    struct sgp_rollout_tally tally;
    *ret_rollout = (struct view_rollout){.vote = NULL};
    if (daemon->rollouts == NULL)
        return;
    count(daemon, &tally);
    *ret_rollout = (struct view_rollout){.vote = sgp_vote_name(shown->vote),
        .fleet = daemon->config->fleet,
        .active = shown->active,
        .proposed = shown->proposed,
        .fork = shown->vote == SGP_VOTE_FORKED,
        .ready = tally.ready,
        .accepted = tally.accepted,
        .missing = tally.missing,
        .refused = tally.refused};
    memcpy(ret_rollout->waits_for, tally.waits_for, sizeof ret_rollout->waits_for);
    memcpy(ret_rollout->why, shown->why, sizeof ret_rollout->why);
    (void)snprintf(ret_rollout->refused_last, sizeof ret_rollout->refused_last, "%s",
        documents_refused(daemon, &ret_rollout->refusals));
    view_identities(daemon, ret_rollout);
}

static int view(void *context, struct view_rollout *ret_rollout, struct sgp_error *error)
{
    const int code = check_administrators(context, error);
    if (code == 0)
        rollouts_view(context, ret_rollout);
    return code;
}

static void view_node(void *context, uint32_t index, struct view_rollout_node *ret_node)
{
    const struct daemon *daemon = context;
    const struct prepared *prepared = daemon->prepared;
    const struct sgp_rollout_view *shown = documents_shown(daemon);
    struct sgp_fleet_row row;
    *ret_node = (struct view_rollout_node){.vote = sgp_vote_name(SGP_VOTE_NONE)};
    (void)snprintf(
        ret_node->name, sizeof ret_node->name, "%s", prepared->topology->nodes[index].name);
    if (index == prepared->self) {
        ret_node->active = shown->active;
        ret_node->mark = shown->mark;
        ret_node->vote = sgp_vote_name(shown->vote);
        (void)snprintf(ret_node->why, sizeof ret_node->why, "%.63s", shown->why);
    } else if (documents_row_of(daemon, index, &row)) {
        ret_node->active = row.rollout_active;
        ret_node->mark = row.rollout_mark;
        ret_node->vote = sgp_vote_name(row.rollout_vote);
        memcpy(ret_node->why, row.rollout_why, sizeof ret_node->why);
    }
    if (ret_node->vote == NULL)
        ret_node->vote = sgp_vote_name(SGP_VOTE_NONE);
}

/* ---- documents that are pushed here ---- */

/* The rollout has not changed by a document that is sound. */
static int say_unchanged(const struct daemon *daemon, const struct sgp_document *document,
    struct view_rollout *view, struct sgp_error *error)
{
    const struct sgp_rollout_view *shown = documents_shown(daemon);
    const uint64_t version = document->manifest.version;
    const bool proposes = shown->proposed >= version;
    view->said = strcmp(document->identity, view->active_identity) == 0     ? "active"
                 : strcmp(document->identity, view->proposed_identity) == 0 ? "known"
                                                                            : NULL;
    if (view->said != NULL)
        return 0;
    if (shown->vote == SGP_VOTE_FORKED && shown->proposed == version)
        return sgp_fail(error, SGP_E_DATA, "%s", shown->why);
    return sgp_fail(error, SGP_E_DATA,
        "version %" PRIu64 " is not above version %" PRIu64
        ", which is %s; sign it with a higher version",
        version, proposes ? shown->proposed : shown->active, proposes ? "proposed" : "in use");
}

static int take(struct daemon *daemon, const char *text, const struct sgp_document *document,
    struct view_rollout *ret_rollout, struct sgp_error *error)
{
    const int code = sgp_rollout_take(daemon->prepared->rollout, SGP_ROLLOUT_PROPOSED, text, error);
    if (code < 0)
        return code;
    if (code > 0)
        documents_changed(daemon);
    (void)documents_settle(daemon); /* the vote tells of a failure */
    rollouts_view(daemon, ret_rollout);
    if (code == 0)
        return say_unchanged(daemon, document, ret_rollout, error);
    ret_rollout->said = "proposed";
    return ret_rollout->fork ? sgp_fail(error, SGP_E_DATA, "%s", ret_rollout->why) : 0;
}

static int push(
    void *context, const char *text, struct view_rollout *ret_rollout, struct sgp_error *error)
{
    struct daemon *daemon = context;
    struct sgp_document document = {.file = NULL};
    int code = check_administrators(daemon, error);
    if (code == 0)
        code = sgp_document_read(text, error, &document);
    if (code == 0)
        code = take(daemon, text, &document, ret_rollout, error);
    sgp_document_finish(&document);
    if (code < 0 && code != SGP_E_STATE)
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING, "event=rollout_refused reason=\"%s\"",
            error->text[0] != '\0' ? error->text : sgp_strerror(code));
    return code;
}

/* ---- documents that are read here ---- */

static int document(void *context, enum view_document which, uint64_t version, char **ret_text,
    struct sgp_error *error)
{
    const struct daemon *daemon = context;
    uint64_t ignored;
    int code = check_administrators(daemon, error);
    if (code < 0)
        return code;
    if (which == VIEW_DOCUMENT_VERSION)
        code = versions_read(daemon->config->state_directory, version, &ignored, ret_text);
    if (code < 0)
        return sgp_fail(error, code,
            "this node has no version %" PRIu64 "; it keeps the latest %u that it has used",
            version, VERSIONS_MAX);
    if (which == VIEW_DOCUMENT_VERSION)
        return 0;
    const bool active = which == VIEW_DOCUMENT_ACTIVE;
    const char *text = sgp_rollout_text(
        daemon->prepared->rollout, active ? SGP_ROLLOUT_ACTIVE : SGP_ROLLOUT_PROPOSED, &ignored);
    if (text == NULL)
        return sgp_fail(error, -ENOENT, "no version is %s", active ? "in use" : "proposed");
    *ret_text = strdup(text);
    return *ret_text != NULL ? 0 : -ENOMEM;
}

static void describe(const struct daemon *daemon, const struct sgp_manifest *manifest,
    struct view_version *ret_version)
{
    ret_version->version = manifest->version;
    ret_version->bytes = manifest->file_bytes;
    sgp_manifest_identify(manifest, ret_version->identity);
    memcpy(ret_version->predecessor, manifest->predecessor, sizeof ret_version->predecessor);
    memcpy(ret_version->file, manifest->file, sizeof ret_version->file);
    for (uint32_t i = 0; i < manifest->signature_count; i++) {
        char *signer = ret_version->signers[ret_version->signer_count];
        if (!sgp_key_hash_public(manifest->signatures[i].key, signer))
            continue; /* of a file that was changed */
        ret_version->signer_count++;
        ret_version->recovered |= strcmp(signer, daemon->config->recovery) == 0;
    }
    ret_version->despite_count = manifest->despite_count;
    memcpy(ret_version->despite, manifest->despite, sizeof ret_version->despite);
}

/* Only manifests are read: to decode and hash 32 files of 1 MiB takes seconds of the loop. */
static int versions(void *context, struct view_version ret_versions[VIEW_VERSIONS_MAX],
    uint32_t *ret_count, struct sgp_error *error)
{
    const struct daemon *daemon = context;
    uint64_t numbers[VERSIONS_MAX];
    const int code = check_administrators(daemon, error);
    *ret_count = 0;
    if (code < 0)
        return code;
    const uint32_t many = versions_list(daemon->config->state_directory, numbers);
    for (uint32_t i = 0; i < many; i++) {
        struct view_version *it = &ret_versions[*ret_count];
        struct sgp_manifest manifest;
        struct sgp_error ignored = {0};
        char text[SGP_DOCUMENT_MANIFEST];
        *it = (struct view_version){.version = 0};
        if (versions_read_beginning(daemon->config->state_directory, numbers[i], &it->seconds, text,
                sizeof text) == 0 &&
            sgp_document_read_manifest(text, &ignored, &manifest) == 0) {
            describe(daemon, &manifest, it);
            ++*ret_count;
        }
    }
    return 0;
}

void rollouts_offer(struct view_actions *actions)
{
    actions->rollout = view;
    actions->rollout_node = view_node;
    actions->push = push;
    actions->document = document;
    actions->versions = versions;
}
