/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the node for its users; see inspect.h. */
#include "inspect.h"

#include "edges.h"
#include "events.h"
#include "fleet_rows.h"
#include "guests.h"
#include "kept.h"
#include "privacy.h"
#include "program.h"
#include "reload.h"
#include "rollouts.h"
#include "survive.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double seconds_since(sgp_time then, sgp_time now)
{
    return (double)(now - then) / (double)SGP_SECOND;
}

static void fill_training(const struct daemon *daemon, struct view_status *view, sgp_time now)
{
    const struct figures *figures = &daemon->figures;
    view->training = figures->training;
    view->test = figures->test;
    view->epochs = daemon->config->epochs > 0 ? (double)daemon->config->epochs : NAN;
    view->samples = figures->samples;
    view->samples_per_second =
        view->core.state == SGP_NODE_TRAINING ? figures_rate(figures, now) : 0;
    view->diverging = figures_diverging(figures);
    static const char *const words[] = {[MODEL_NONE] = NULL,
        [MODEL_WRITING] = "writing",
        [MODEL_WRITTEN] = "written",
        [MODEL_FAILED] = "failed"};
    view->model_file = words[daemon->model_file];
    bool ended = view->core.state == SGP_NODE_FINISHED;
    view->disagreement = figures_disagreement(figures, ended, ended ? edges_distance(daemon) : NAN);
}

static void inspect_status(void *context, struct view_status *ret_status)
{
    struct daemon *daemon = context;
    const struct sgp_node_status status = daemon_status(daemon);
    sgp_time now = events_now();
    *ret_status = (struct view_status){
        .name = daemon->config->name,
        .algorithm = daemon->prepared->method->name,
        .topology_file = prepared_file(daemon->prepared),
        .tls_before = reload_tls_before(daemon),
        .core = status,
        .incarnation = daemon->incarnation,
        .run = daemon->run.number,
        .uptime_seconds = seconds_since(daemon->started, now),
        .guard = daemon->config->guard > 0 ? daemon->config->guard : NAN,
        .compression = prepared_codes_copies(daemon->prepared) ? daemon->config->copies.word
                                                               : daemon->config->compression.word,
        .compression_error = daemon->performer.lost,
        .bytes_spared = daemon->performer.spared_bytes,
        .parameters = daemon->prepared->parameters,
        .memory_bytes = daemon->prepared->memory_bytes,
        .weight_minted = daemon->ledger.minted,
        .lost_rounds = survive_lost_rounds(&daemon->found, &status),
        .copy_seconds = status.copy_label == SGP_ROUND_NONE
                            ? NAN
                            : seconds_since(status.copy_since, events_now()),
        .statements_refused = daemon->statements_refused,
        .hears_nobody = edges_hear_nobody(daemon),
        .phase = sgp_topology_phase_index(daemon->prepared->topology, status.round),
    };
    if (daemon->config->kind != CONFIG_ATTACHED)
        sgp_model_local_text(&daemon->prepared->model, ret_status->local);
    if (status.waiting != SGP_WAITING_NOTHING) {
        ret_status->waiting = sgp_waiting_name(status.waiting);
        ret_status->waiting_seconds = seconds_since(status.waiting_since, now);
    }
    if (status.waiting_peer != SGP_SLOT_NONE)
        (void)snprintf(ret_status->waiting_for, sizeof ret_status->waiting_for, "%s",
            daemon->prepared->topology->nodes[status.waiting_peer].name);
    sgp_blas_text(&daemon->prepared->blas, ret_status->blas);
    program_view(daemon, &ret_status->program);
    kept_view(daemon, &ret_status->best);
    privacy_view(daemon, ret_status);
    guests_status(daemon, ret_status);
    rollouts_view(daemon, &ret_status->rollout);
    ret_status->best_exported = daemon->kept_model.ready;
    memcpy(ret_status->last_error, daemon->last_error, sizeof ret_status->last_error);
    ret_status->last_error_seconds =
        daemon->last_error[0] != '\0' ? seconds_since(daemon->last_error_at, now) : NAN;
    fill_training(daemon, ret_status, now);
}

static uint32_t inspect_peer_count(void *context)
{
    const struct daemon *daemon = context;
    return daemon->edge_count;
}

static void inspect_peer(void *context, uint32_t index, struct view_peer *ret_peer)
{
    struct daemon *daemon = context;
    const struct sgp_peer_status peer = daemon_peer(daemon, index);
    const struct edge *edge = &daemon->edges[index];
    const struct link *present = edges_present(edge);
    const struct sgp_topology_node *node = &daemon->prepared->topology->nodes[peer.peer];
    *ret_peer = (struct view_peer){
        .core = peer,
        .unheard = edges_unheard(&peer),
        .lag_rounds = sgp_node_round(daemon->node) - peer.round,
        .last_heard_seconds =
            peer.last_heard == SGP_TIME_NEVER ? NAN : seconds_since(peer.last_heard, events_now()),
        .rtt_ms = present != NULL ? link_rtt_ms(present) : NAN,
        .shares_outsized = edges_outsized(edge, &peer),
        .shares_clipped = edge->clips.clipped,
        .clipped_share = edge->clips.judged > 0 ? edge->clips.recent : NAN,
        .clipped = edges_is_clipped(edge),
        .unlike_privacy = fleet_rows_unlike(daemon, peer.peer),
    };
    memcpy(ret_peer->name, node->name, sizeof ret_peer->name);
    memcpy(ret_peer->address, node->address, sizeof ret_peer->address);
    if (present != NULL && present->cipher != NULL) {
        (void)snprintf(
            ret_peer->cipher, sizeof ret_peer->cipher, "%s", sgp_cipher_name(present->cipher));
        (void)snprintf(ret_peer->key, sizeof ret_peer->key, "%s", sgp_cipher_peer(present->cipher));
    }
    memcpy(ret_peer->last_error, edge->error, sizeof ret_peer->last_error);
    memcpy(ret_peer->previous_error, edge->previous, sizeof ret_peer->previous_error);
    edges_bytes(edge, &ret_peer->bytes_sent, &ret_peer->bytes_received);
}

static uint64_t inspect_history_total(void *context)
{
    const struct daemon *daemon = context;
    return daemon->history.added;
}

static void inspect_history(void *context, uint64_t number, struct view_history_row *ret_row)
{
    const struct history *history = &((const struct daemon *)context)->history;
    *ret_row = *history_row(history, (uint32_t)(number - (history->added - history->count)));
}

static const struct sgp_topology *inspect_topology(void *context)
{
    const struct daemon *daemon = context;
    return daemon->prepared->topology;
}

void inspect_offer(struct view_actions *actions)
{
    actions->status = inspect_status;
    actions->peer_count = inspect_peer_count;
    actions->peer = inspect_peer;
    actions->history_total = inspect_history_total;
    actions->history = inspect_history;
    actions->topology = inspect_topology;
}
