/* SPDX-License-Identifier: Apache-2.0 */
/* Another topology file for a running node. Steps that can fail come first. The file is read and
 * checked as at the start, and additional memory is allocated. The rest cannot fail. The core
 * changes, its effects are performed with the former indices of its peers, and everything kept by
 * peer moves.
 *
 * The loop thread reads, checks and analyses the file. Meanwhile (milliseconds for hundreds of
 * nodes) nothing is sent or accepted, but the compute thread continues.
 *
 * Fails: the file is not valid, or not for this node; or there is no memory. Then the former
 * topology is kept, and some buffers may be larger than needed. Thread: the loop thread. */
#include "reload.h"

#include "colocated_owner.h"
#include "calls.h"
#include "changes.h"
#include "documents.h"
#include "formers.h"
#include "edges.h"
#include "events.h"
#include "notes.h"
#include "facts.h"
#include "fleet_rows.h"
#include "guests.h"
#include "kept.h"
#include "reports.h"
#include "statements.h"
#include "task.h"
#include "trust.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RELOAD_ERROR "reload:"

struct reload {            /* prepared before the point of no return */
    struct prepared place; /* after that point, the former one */
    struct sgp_node_needs needs;
    struct sgp_reload *core;
    struct edge *edges;
};

static void discard(struct reload *reload)
{
    prepared_finish(&reload->place);
    sgp_reload_cancel(reload->core);
    free(reload->edges);
}

/* ---- steps that can fail ---- */

static bool extend_effects(struct daemon *daemon, uint32_t capacity)
{
    if (capacity <= daemon->effects.capacity)
        return true;
    void *items = realloc(daemon->effects.items, capacity * sizeof *daemon->effects.items);
    if (items == NULL)
        return false;
    daemon->effects.items = items;
    daemon->effects.capacity = capacity;
    return true;
}

static int take_memory(struct daemon *daemon, struct reload *reload, struct sgp_error *error)
{
    const struct sgp_node_needs *needs = &reload->needs;
    reload->edges = calloc(needs->links + 1u, sizeof *reload->edges);
    int code = reload->edges != NULL ? 0 : -ENOMEM;
    if (code == 0 && !extend_effects(daemon, needs->effects))
        code = -ENOMEM;
    if (code == 0)
        code = tasks_reserve(daemon, needs);
    if (code == 0)
        code =
            sgp_performer_reserve(&daemon->performer, needs, daemon->prepared->parameters, false);
    if (code < 0)
        return sgp_fail(
            error, code, "the buffers of the new topology cannot be made: %s", sgp_strerror(code));
    return ledger_grow(&daemon->ledger, needs->links, error);
}

static int read_place(struct daemon *daemon, enum signed_file_from from, struct reload *reload,
    struct sgp_error *error)
{
    const struct signed_file_wish wish = {.present = daemon->prepared->rollout, .from = from};
    int code = prepare_place(daemon->config, &wish, error, &reload->place);
    if (code != SGP_E_UNKNOWN_NODE)
        return code;
    const struct sgp_error why = *error;
    *error = (struct sgp_error){0}; /* the first error is kept */
    return sgp_fail(error, code,
        daemon->config->colocated
            ? "%.400s; stop the service of which it is a part, and start it again"
            : "%.430s; to retire this node, use sgpctl leave",
        why.text);
}

static struct sgp_node_change change_of(const struct reload *reload)
{
    return (struct sgp_node_change){.topology = reload->place.topology,
        .self = reload->place.self,
        .weight_least = reload->place.weight_least,
        .weight_most = reload->place.weight_most};
}

static struct sgp_slice colocated_part(
    const struct sgp_topology *topology, uint32_t node, uint64_t parameters)
{
    uint32_t owner = sgp_topology_colocated_owner(topology, node);
    return owner == SGP_NODE_NONE ? (struct sgp_slice){.count = 0}
                                  : sgp_topology_owned(topology, owner, parameters);
}

/* Changes that a running node cannot make. */
static int check_part(
    const struct daemon *daemon, const struct reload *reload, struct sgp_error *error)
{
    const struct prepared *now = daemon->prepared;
    const struct sgp_topology *next = reload->place.topology;
    struct sgp_slice had = sgp_topology_owned(now->topology, now->self, now->parameters);
    struct sgp_slice has = sgp_topology_owned(next, reload->place.self, now->parameters);
    struct sgp_error why = {0};
    int code = sgp_topology_check_owners(next, now->parameters, &why);
    if (code < 0)
        return sgp_fail(error, code, "%s: %.430s", prepared_file(&reload->place), why.text);
    bool owned = sgp_topology_colocated_owner(now->topology, now->self) != SGP_NODE_NONE;
    bool will = sgp_topology_colocated_owner(next, reload->place.self) != SGP_NODE_NONE;
    struct sgp_slice now_owned = colocated_part(now->topology, now->self, now->parameters);
    struct sgp_slice then = colocated_part(next, reload->place.self, now->parameters);
    if (owned != will)
        return sgp_fail(error, SGP_E_STATE,
            "%s: by the new file this node %s; stop it, and start it again for that",
            prepared_file(&reload->place), will ? "owns something, too" : "owns nothing any more");
    bool relay = now->topology->nodes[now->self].relay;
    bool moves = now_owned.first != then.first || now_owned.count != then.count;
    bool owns = has.count > 0 && !sgp_topology_has_token(next) &&
                (has.first != had.first || has.count != had.count);
    if (moves || (next->nodes[reload->place.self].relay == relay && owns))
        return sgp_fail(error, SGP_E_STATE,
            "%s: by the new file this node owns other values; stop it, and start it again for that",
            prepared_file(&reload->place));
    if (next->nodes[reload->place.self].relay == relay)
        return 0;
    return sgp_fail(error, SGP_E_STATE,
        "%s: this node %s, and by the new file it %s; stop it and start it again for that",
        prepared_file(&reload->place), relay ? "is a relay" : "trains",
        relay ? "trains" : "is a relay");
}

static int make_ready(struct daemon *daemon, enum signed_file_from from, struct reload *reload,
    struct sgp_error *error)
{
    int code = read_place(daemon, from, reload, error);
    if (code < 0)
        return code;
    const struct sgp_node_change change = change_of(reload);
    code = check_part(daemon, reload, error);
    if (code == 0)
        code = prepare_listen(&reload->place, error);
    if (code < 0)
        return code;
    code = sgp_reload_prepare(daemon->node, &change, &reload->needs, &reload->core);
    if (code < 0)
        return sgp_fail(error, code, "%s: %s", prepared_file(&reload->place), sgp_strerror(code));
    return take_memory(daemon, reload, error);
}

/* ---- steps that cannot fail ---- */

static void make_change(struct daemon *daemon, struct reload *reload)
{
    struct prepared *prepared = daemon->prepared;
    const struct sgp_topology *former = prepared->topology, *topology = reload->place.topology;
    dialer_give_up(&daemon->dialer);
    daemon->ledger.topology = topology; /* the record is committed with the new indices */
    sgp_time now = events_now();
    const struct sgp_node_change change = change_of(reload);
    recorder_reload(&daemon->recorder, now, &change);
    sgp_performer_renumber(&daemon->performer);
    sgp_driver_reload(&daemon->driver, now, reload->core);
    reload->core = NULL;
    edges_remap(daemon, former, topology, reload->edges);
    reload->edges = NULL;
    daemon->figures.topology = topology;
    prepared_swap_place(prepared, &reload->place, &reload->needs);
    callers_resolve(&daemon->callers, prepared->topology, prepared->self);
}

/* If a file requires less ciphering than an earlier one, that may be a mistake, and admits unknown
 * nodes. */
static void warn_of_plain_links(struct daemon *daemon, enum sgp_tls former)
{
    struct prepared *prepared = daemon->prepared;
    daemon->tls_strictest = former > daemon->tls_strictest ? former : daemon->tls_strictest;
    if (prepared->topology->tls < daemon->tls_strictest)
        prepared_warn(prepared,
            "%s: the file said tls=%s and says tls=%s now: somebody who reaches this node's port "
            "may get in without a key; write tls=%s again unless that is meant",
            prepared_file(prepared), sgp_tls_name(daemon->tls_strictest),
            sgp_tls_name(prepared->topology->tls), sgp_tls_name(daemon->tls_strictest));
}

/* To go back to an earlier file may be meant. Often the later file was not copied. */
static void warn_of_earlier_file(struct daemon *daemon, uint64_t former)
{
    struct prepared *prepared = daemon->prepared;
    if (prepared->topology->version < former)
        prepared_warn(prepared,
            "%s: the file has version %" PRIu64 ", the former had %" PRIu64
            "; copy the later file and reload again unless that is meant",
            prepared_file(prepared), prepared->topology->version, former);
}

enum sgp_tls reload_tls_before(const struct daemon *daemon)
{
    enum sgp_tls now = daemon->prepared->topology->tls;
    return daemon->tls_strictest > now ? daemon->tls_strictest : SGP_TLS_UNSAID;
}

static void tell(struct daemon *daemon, const struct reload *reload, struct view_reload *ret_reload)
{
    const struct prepared *prepared = daemon->prepared;
    warn_of_plain_links(daemon, reload->place.topology->tls);
    warn_of_earlier_file(daemon, reload->place.topology->version);
    changes_tell(reload->place.topology, prepared->topology, &daemon->log->sink, ret_reload);
    ret_reload->tls = prepared->topology->tls;
    ret_reload->tls_before = reload_tls_before(daemon);
    ret_reload->warnings = prepared->warnings;
    ret_reload->warning_count = prepared->warning_count;
    for (uint32_t i = 0; i < prepared->warning_count; i++)
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING, "event=warning text=\"%s\"",
            prepared->warnings[i]);
    sgp_log(&daemon->log->sink, SGP_LEVEL_INFO,
        "event=reloaded digest=%016" PRIx64 " nodes=%" PRIu32 " phases=%" PRIu32,
        ret_reload->digest, ret_reload->nodes, ret_reload->phases);
}

int reload_try(struct daemon *daemon, struct sgp_error *error)
{
    struct reload reload = {.core = NULL};
    const int code = make_ready(daemon, SIGNED_FILE_PROPOSAL, &reload, error);
    discard(&reload);
    return code;
}

int reload_topology(struct daemon *daemon, enum signed_file_from from,
    struct view_reload *ret_reload, struct sgp_error *error)
{
    if (daemon->stopping || daemon->ending)
        return sgp_fail(error, SGP_E_STATE, "the node ends");
    struct reload reload = {.core = NULL};
    notify_reloading();
    int code = make_ready(daemon, from, &reload, error);
    if (code == 0)
        code = signed_file_keep(daemon->config, reload.place.rollout, error);
    if (code == 0) {
        make_change(daemon, &reload);
        notes_mended(daemon, RELOAD_ERROR);
        formers_reloaded(daemon, reload.place.topology);
        tell(daemon, &reload, ret_reload);
    } else {
        notes_error(daemon, RELOAD_ERROR " %s; the former topology is kept", error->text);
    }
    discard(&reload);
    notify_ready();
    if (code == 0) {
        trust_reloaded(daemon);
        statements_reloaded(daemon);
        facts_reloaded(daemon);
        fleet_rows_reloaded(daemon);
        guests_reloaded(daemon);
        calls_reload(daemon);
        reports_reload(daemon);
        kept_reload(daemon);
        colocated_owner_reload(daemon);
        documents_reloaded(daemon);
        events_post(daemon, (struct sgp_event){.type = SGP_EVENT_TICK});
    }
    return code;
}
