/* SPDX-License-Identifier: Apache-2.0 */
/* Views as JSON; see render.h. Metrics are in metrics.c. */
#include "render.h"

#include "sgp/version.h"
#include "sgp/wire.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *round_or_null(sgp_round round)
{
    return round == SGP_ROUND_NONE ? json_null() : json_integer(round);
}

/* Text from outside: bytes that are not UTF-8 would make no JSON, so they become '?'. */
static json_t *foreign(const char *text)
{
    json_t *string = json_string(text);
    if (string)
        return string;
    char plain[SGP_TEXT_BYTES];
    (void)snprintf(plain, sizeof plain, "%s", text);
    for (unsigned char *c = (unsigned char *)plain; *c; c++)
        if (*c >= 0x80)
            *c = '?';
    return json_string(plain);
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? foreign(text) : json_null();
}

static json_t *identity(uint64_t value)
{
    char text[17];
    (void)snprintf(text, sizeof text, "%016" PRIx64, value);
    return json_string(text);
}

static json_t *count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static const char *direction_name(enum sgp_direction direction)
{
    return direction == SGP_OUT ? "out" : "in";
}

static const char *link_state_name(const struct view_peer *peer)
{
    switch (peer->state) {
    case SGP_LINK_UP:
        return "up";
    case SGP_LINK_CONNECTING:
        return "connecting";
    default:
        return peer->retired ? "retired" : "down"; /* nobody expects a connection of it */
    }
}

static json_t *render_waiting(const struct view_status *status)
{
    if (status->waiting == SGP_WAITING_NOTHING || status->waiting == 0)
        return json_null();
    return json_pack("{s:s, s:o, s:o}", "for", sgp_waiting_name(status->waiting), "peer",
        text_or_null(status->waiting_for), "seconds", real_or_null(status->waiting_seconds));
}

static json_t *render_program(const struct view_program *program)
{
    if (!program->wanted)
        return json_null();
    return json_pack("{s:o, s:b, s:o, s:o, s:b, s:o}", "socket", foreign(program->socket),
        "attached", (int)program->attached, "name", text_or_null(program->name), "pid",
        program->pid > 0 ? json_integer(program->pid) : json_null(), "turn", (int)program->turn,
        "seconds", real_or_null(program->seconds));
}

/* Of a worker: which step of its owner it trains from, and for how long. */
static json_t *render_copy(const struct view_status *status)
{
    if (status->copy_label == SGP_ROUND_NONE)
        return json_null();
    return json_pack("{s:I, s:o}", "label", (json_int_t)status->copy_label, "seconds",
        real_or_null(status->copy_seconds));
}

/* That it owns, if these are not all. */
static json_t *render_parts(const struct sgp_topology_node *node)
{
    if (node->own_part_count == 0)
        return json_null();
    return json_pack("[i, i]", node->own_part, node->own_part + node->own_part_count - 1);
}

/* The node of the file that it stands beside. */
static json_t *render_beside(const struct sgp_topology *topology, uint32_t node)
{
    const struct sgp_topology_node *it = &topology->nodes[node];
    return it->beside ? json_string(topology->nodes[it->trainer].name) : json_null();
}

/* The vector or parts of it, for as long as that stays. */
static json_t *render_owns(const struct sgp_topology *topology, const char *name)
{
    int64_t self = sgp_topology_find(topology, name);
    const struct sgp_topology_node *node = self >= 0 ? &topology->nodes[self] : NULL;
    if (node == NULL || !node->owns || sgp_topology_has_token(topology))
        return json_null();
    return node->own_part_count > 0 ? render_parts(node) : json_string("all");
}

static json_t *tls_or_null(enum sgp_tls tls)
{
    return tls == SGP_TLS_UNSAID ? json_null() : json_string(sgp_tls_name(tls));
}

json_t *render_status(const struct view_status *status, const struct sgp_topology *topology)
{
    json_t *figures = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch",
        real_or_null(status->epoch), "epochs", real_or_null(status->epochs), "samples_per_second",
        real_or_null(status->samples_per_second), "loss", real_or_null(status->loss), "test_loss",
        real_or_null(status->test_loss), "test_accuracy", real_or_null(status->test_accuracy),
        "learning_rate", real_or_null(status->learning_rate), "weight",
        real_or_null(status->weight), "weight_in_flight", real_or_null(status->weight_in_flight),
        "disagreement", real_or_null(status->disagreement), "weight_minted",
        real_or_null(status->weight_minted), "surplus", real_or_null(status->surplus),
        "weight_unknown", real_or_null(status->weight_unknown), "uptime_seconds",
        real_or_null(status->uptime_seconds), "last_error_seconds",
        real_or_null(status->last_error_seconds));
    json_t *place =
        json_pack("{s:o, s:o, s:I, s:I, s:I, s:s, s:o}", "file", foreign(status->topology_file),
            "digest", identity(topology->digest), "nodes", (json_int_t)topology->node_count,
            "phase", (json_int_t)status->phase, "phases", (json_int_t)topology->phase_count, "tls",
            sgp_tls_name(topology->tls), "tls_before", tls_or_null(status->tls_before));
    json_t *root =
        json_pack("{s:i, s:s, s:i, s:s, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
                  "s:o, s:o, s:b, s:s?, s:s?, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o}",
            "schema", 1, "version", sgp_version(), "protocol", (int)SGP_WIRE_VERSION, "name",
            status->name, "state", status->unlaid ? "unlaid" : sgp_node_state_name(status->state),
            "incarnation", identity(status->incarnation), "run",
            status->run > 0 ? count(status->run) : json_null(), "algorithm", status->algorithm,
            "round", round_or_null(status->round), "rounds", round_or_null(status->rounds),
            "samples", count(status->samples), "lost_rounds", count((uint64_t)status->lost_rounds),
            "parameters", count(status->parameters), "memory_bytes", count(status->memory_bytes),
            "jumps", count(status->jumps), "cycles_renewed", count(status->cycles_renewed),
            "statements_refused", count(status->statements_refused), "starving",
            (int)status->starving, "diverging", status->diverging, "model_file", status->model_file,
            "hears_nobody", (int)status->hears_nobody, "blas", status->blas, "topology", place,
            "copy", render_copy(status), "owns", render_owns(topology, status->name), "waiting",
            render_waiting(status), "last_error", text_or_null(status->last_error), "program",
            render_program(&status->program));
    if (!root || json_object_update(root, figures) < 0) {
        json_decref(root);
        root = NULL;
    }
    json_decref(figures);
    return root;
}

json_t *render_reload(const struct view_reload *reload)
{
    json_t *warnings = json_array();
    for (uint32_t i = 0; i < reload->warning_count; i++)
        (void)json_array_append_new(warnings, foreign(reload->warnings[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "digest", identity(reload->digest), "nodes", count(reload->nodes), "phases",
        count(reload->phases), "nodes_added", count(reload->nodes_added), "nodes_removed",
        count(reload->nodes_removed), "addresses_changed", count(reload->addresses_changed),
        "keys_changed", count(reload->keys_changed), "phases_changed",
        count(reload->phases_changed), "edges_added", count(reload->edges_added), "edges_removed",
        count(reload->edges_removed), "fractions_changed", count(reload->fractions_changed), "tls",
        tls_or_null(reload->tls), "tls_before", tls_or_null(reload->tls_before), "warnings",
        warnings);
}

json_t *render_peer(const struct view_peer *peer)
{
    bool heard = peer->round != SGP_ROUND_NONE;
    return json_pack(
        "{s:o, s:o, s:s, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:o, s:b, s:b, s:b, s:o, s:o, s:o, s:o}",
        "name", foreign(peer->name), "address", foreign(peer->address), "direction",
        direction_name(peer->direction), "state", link_state_name(peer), "node_state",
        peer->peer_state ? json_string(sgp_node_state_name(peer->peer_state)) : json_null(),
        "absent", (int)peer->absent, "round", round_or_null(peer->round), "lag_rounds",
        heard ? json_integer(peer->lag_rounds) : json_null(), "last_heard_seconds",
        real_or_null(peer->last_heard_seconds), "absent_after_seconds",
        real_or_null(peer->absent_after_seconds), "rtt_ms", real_or_null(peer->rtt_ms),
        "shares_sent", count(peer->shares_sent), "shares_received", count(peer->shares_received),
        "shares_returned", count(peer->shares_returned), "shares_late", count(peer->shares_late),
        "staleness", round_or_null(peer->staleness), "shares_outsized",
        count(peer->shares_outsized), "weight_owed", real_or_null(peer->weight_owed), "bytes_sent",
        count(peer->bytes_sent), "bytes_received", count(peer->bytes_received), "distance",
        real_or_null(peer->distance), "disagrees", (int)peer->disagrees, "mismatch",
        (int)peer->mismatch, "same_updates", (int)peer->same_updates, "learning_rate",
        real_or_null(peer->learning_rate), "retired", (int)peer->retired, "slow", (int)peer->slow,
        "overdue", (int)peer->overdue, "cipher", text_or_null(peer->cipher), "key",
        text_or_null(peer->key), "last_error", text_or_null(peer->last_error), "previous_error",
        text_or_null(peer->previous_error));
}

static json_t *render_edges(const struct sgp_phase *phase, const struct sgp_topology *topology)
{
    json_t *edges = json_array();
    for (uint32_t i = 0; i < phase->edge_count; i++) {
        const struct sgp_edge *edge = &phase->out[i];
        json_t *json = json_pack("{s:s, s:s, s:f}", "source", topology->nodes[edge->source].name,
            "target", topology->nodes[edge->target].name, "fraction", edge->fraction);
        if (edge->part_count > 0)
            (void)json_object_set_new(
                json, "slice", json_pack("[i, i]", edge->part, edge->part + edge->part_count - 1));
        json_array_append_new(edges, json);
    }
    return edges;
}

static json_t *render_keys(const struct sgp_topology *topology, uint32_t node)
{
    char text[SGP_KEYS_BYTES];
    sgp_topology_keys_text(topology, node, text);
    return topology->nodes[node].keys[0][0] ? json_string(text) : json_null();
}

bool render_has_edges(const struct sgp_topology *topology)
{
    uint64_t edge_count = 0;
    for (uint32_t i = 0; i < topology->phase_count; i++)
        edge_count += topology->phases[i].edge_count;
    return edge_count <= RENDER_EDGES_MAX;
}

json_t *render_topology(const struct view_status *status, const struct sgp_topology *topology)
{
    bool whole = render_has_edges(topology);
    json_t *nodes = json_array();
    for (uint32_t i = 0; i < topology->node_count; i++)
        json_array_append_new(nodes,
            json_pack("{s:s, s:s, s:o, s:b, s:b, s:o, s:o, s:f}", "name", topology->nodes[i].name,
                "address", topology->nodes[i].address, "key", render_keys(topology, i), "train",
                (int)!topology->nodes[i].relay, "owns", (int)topology->nodes[i].owns, "parts",
                render_parts(&topology->nodes[i]), "beside", render_beside(topology, i), "starts",
                sgp_topology_starts(topology, i)));
    json_t *phases = json_array();
    for (uint32_t i = 0; i < topology->phase_count; i++) {
        const struct sgp_phase *phase = &topology->phases[i];
        json_array_append_new(phases,
            json_pack("{s:o, s:I, s:b, s:b, s:b, s:I, s:s, s:f, s:I, s:I, s:o}", "name",
                foreign(phase->name), "rounds", (json_int_t)phase->rounds, "once", (int)phase->once,
                "train", (int)!phase->exchanges, "outer", (int)phase->outer, "backup",
                (json_int_t)phase->backup, "staleness", sgp_damping_name(phase->staleness.damping),
                "compensation", phase->staleness.compensation, "staleness_max",
                (json_int_t)phase->staleness.most, "edge_count", (json_int_t)phase->edge_count,
                "edges", whole ? render_edges(phase, topology) : json_null()));
    }
    return json_pack("{s:o, s:o, s:I, s:b, s:s, s:o, s:I, s:o, s:o}", "file",
        foreign(status->topology_file), "digest", identity(topology->digest), "slices",
        (json_int_t)topology->slices, "exact", (int)topology->cycle.exact, "tls",
        sgp_tls_name(topology->tls), "round", round_or_null(status->round), "phase",
        (json_int_t)status->phase, "nodes", nodes, "phases", phases);
}

static json_t *render_row(uint64_t number, const struct view_history_row *row)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "number",
        count(number), "round", round_or_null(row->round), "seconds", real_or_null(row->seconds),
        "epoch", real_or_null(row->epoch), "loss", real_or_null(row->loss), "test_loss",
        real_or_null(row->test_loss), "test_accuracy", real_or_null(row->test_accuracy),
        "disagreement", real_or_null(row->disagreement), "weight", real_or_null(row->weight),
        "bytes_sent", count(row->bytes_sent), "bytes_received", count(row->bytes_received));
}

json_t *render_history(const struct page *page, const struct view_history_row *rows)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < page->count; i++)
        (void)json_array_append_new(list, render_row(page_row(page, i), &rows[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "total", count(page->total), "oldest",
        count(page->oldest), "every", count(page->every), "next", count(page->next), "rows", list);
}

json_t *render_left(const char *heir, double weight, double owed)
{
    return json_pack("{s:b, s:o, s:o, s:o}", "left", 1, "heir", text_or_null(heir), "weight",
        real_or_null(weight), "owed", real_or_null(owed));
}

json_t *render_evaluation(const struct sgp_evaluation *evaluation, sgp_round round)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "round", round_or_null(round), "samples",
        count(evaluation->samples), "loss", real_or_null(evaluation->loss), "accuracy",
        real_or_null(evaluation->accuracy));
}

static json_t *greatest_class(const struct control_model *model, const float *outputs)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < model->model->outputs; i++)
        if (outputs[i] > outputs[best])
            best = i;
    return model->class_names ? foreign(model->class_names[best]) : json_integer(best);
}

json_t *render_prediction(
    const struct control_model *model, const float *outputs, uint64_t rows, uint64_t width)
{
    json_t *table = json_array();
    json_t *labels = model->classifies ? json_array() : json_null();
    for (uint64_t r = 0; r < rows; r++) {
        json_t *row = json_array();
        for (uint64_t i = 0; i < width; i++)
            json_array_append_new(row, real_or_null((double)outputs[r * width + i]));
        json_array_append_new(table, row);
        if (model->classifies)
            json_array_append_new(labels, greatest_class(model, outputs + r * width));
    }
    return json_pack(
        "{s:I, s:o, s:o}", "rows", (json_int_t)rows, "labels", labels, "outputs", table);
}

json_t *render_error(unsigned status, const char *code, const char *message, json_t *hints)
{
    json_t *error = json_pack(
        "{s:i, s:s, s:o}", "status", (int)status, "code", code, "message", foreign(message));
    if (error && hints)
        (void)json_object_update(error, hints);
    json_decref(hints);
    return json_pack("{s:o}", "error", error);
}
