/* SPDX-License-Identifier: Apache-2.0 */
/* Views as JSON; see render.h. Metrics are in metrics.c. */
#include "render.h"

#include "train/measures_json.h"
#include "train/names.h"

#include "sgp/report.h"
#include "sgp/rollout.h"
#include "sgp/version.h"
#include "sgp/wire.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- kinds of values ---- */

static json_t *as_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *as_exact(double value)
{
    return as_real(value);
}

static json_t *as_seconds(double value)
{
    return as_real(value);
}

static json_t *as_round(sgp_round round)
{
    return round == SGP_ROUND_NONE ? json_null() : json_integer(round);
}

static json_t *as_count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* A number from 1 on; 0 means none. */
static json_t *as_ordinal(uint64_t value)
{
    return value > 0 ? as_count(value) : json_null();
}

static json_t *as_flag(bool value)
{
    return json_boolean(value);
}

/* Text from outside. Bytes that are not UTF-8 are not valid JSON, so they become '?'. */
static json_t *as_name(const char *text)
{
    json_t *string = json_string(text);
    if (string)
        return string;
    char plain[SGP_TEXT_BYTES];
    (void)snprintf(plain, sizeof plain, "%.511s", text);
    for (unsigned char *c = (unsigned char *)plain; *c; c++)
        if (*c >= 0x80)
            *c = '?';
    return json_string(plain);
}

json_t *render_text(const char *text)
{
    return as_name(text);
}

/* The same; NULL or "" means none. */
static json_t *as_text(const char *text)
{
    return text != NULL && text[0] ? as_name(text) : json_null();
}

static json_t *as_identity(uint64_t value)
{
    char text[17];
    (void)snprintf(text, sizeof text, "%016" PRIx64, value);
    return json_string(text);
}

#define as_json(value) (value)

/* Adds a member and takes ownership of value. If memory is out, *object becomes NULL and stays
 * NULL. */
static void put(json_t **object, const char *key, json_t *value)
{
    if (json_object_set_new(*object, key, value) == 0)
        return;
    json_decref(*object);
    *object = NULL;
}

/* ---- the status and the peers ---- */

static const char *link_state_name(const struct view_peer *peer)
{
    switch (peer->core.state) {
    case SGP_LINK_UP:
        return "up";
    case SGP_LINK_CONNECTING:
        return "connecting";
    default:
        return peer->core.retired ? "retired" : "down"; /* no connection of this peer is expected */
    }
}

static json_t *render_waiting(const struct view_status *status)
{
    if (status->waiting == NULL)
        return json_null();
    return json_pack("{s:s, s:o, s:o}", "for", status->waiting, "peer",
        as_text(status->waiting_for), "seconds", as_real(status->waiting_seconds));
}

static json_t *render_program(const struct view_program *program)
{
    if (!program->wanted)
        return json_null();
    return json_pack("{s:o, s:b, s:o, s:o, s:b, s:o, s:I}", "socket", as_name(program->socket),
        "attached", (int)program->attached, "name", as_text(program->name), "pid",
        program->pid > 0 ? json_integer(program->pid) : json_null(), "turn", (int)program->turn,
        "seconds", as_real(program->seconds), "overflows", (json_int_t)program->overflows);
}

static json_t *render_claim(const struct view_status *status)
{
    const struct sgp_claim *claim = &status->claim;
    if (!status->claimed)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "epsilon", as_real(claim->epsilon), "delta",
        as_real(claim->delta), "noise", as_real(claim->noise), "chance", as_real(claim->chance),
        "clip", as_real(claim->clip));
}

static json_t *render_rollout(const struct view_rollout *view)
{
    if (view->vote == NULL)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "active", as_count(view->active), "proposed",
        as_ordinal(view->proposed), "vote", as_name(view->vote), "why", as_text(view->why),
        "waits_for", as_text(view->waits_for), "refused_last", as_text(view->refused_last));
}

/* For a worker: from which step of its owner it trains, and for how long. */
static json_t *render_copy(const struct view_status *status)
{
    if (status->core.copy_label == SGP_ROUND_NONE)
        return json_null();
    return json_pack("{s:I, s:o}", "label", (json_int_t)status->core.copy_label, "seconds",
        as_real(status->copy_seconds));
}

/* The parts that the node owns, if these are not all. */
static json_t *render_parts(const struct sgp_topology_node *node)
{
    if (node->own_part_count == 0)
        return json_null();
    return json_pack("[i, i]", node->own_part, node->own_part + node->own_part_count - 1);
}

/* The node of the file with which this owner is colocated. */
static json_t *render_colocated(const struct sgp_topology *topology, uint32_t node)
{
    const struct sgp_topology_node *it = &topology->nodes[node];
    return it->colocated ? json_string(topology->nodes[it->trainer].name) : json_null();
}

/* Whether the node owns the vector or parts of it, permanently. */
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

static json_t *render_place(const struct view_status *status, const struct sgp_topology *topology)
{
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:s, s:o}", "file", as_name(status->topology_file),
        "digest", as_identity(topology->digest), "nodes", (json_int_t)topology->node_count, "phase",
        (json_int_t)status->phase, "phases", (json_int_t)topology->phase_count, "tls",
        sgp_tls_name(topology->tls), "tls_before", tls_or_null(status->tls_before));
}

json_t *render_status(const struct view_status *view, const struct sgp_topology *topology)
{
    json_t *object = json_object();
#define X(key, kind, value, ...) put(&object, #key, as_##kind(value));
    STATUS_FIELDS(X, X, X)
#undef X
    return object;
}

json_t *render_peer(const struct view_peer *view)
{
    json_t *object = json_object();
#define X(key, kind, value, ...) put(&object, #key, as_##kind(value));
    PEER_FIELDS(X, X, X)
#undef X
    return object;
}

json_t *render_reload(const struct view_reload *reload)
{
    json_t *warnings = json_array();
    for (uint32_t i = 0; i < reload->warning_count; i++)
        (void)json_array_append_new(warnings, as_name(reload->warnings[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "digest", as_identity(reload->digest), "nodes", as_count(reload->nodes), "phases",
        as_count(reload->phases), "nodes_added", as_count(reload->nodes_added), "nodes_removed",
        as_count(reload->nodes_removed), "addresses_changed", as_count(reload->addresses_changed),
        "keys_changed", as_count(reload->keys_changed), "phases_changed",
        as_count(reload->phases_changed), "edges_added", as_count(reload->edges_added),
        "edges_removed", as_count(reload->edges_removed), "fractions_changed",
        as_count(reload->fractions_changed), "tls", tls_or_null(reload->tls), "tls_before",
        tls_or_null(reload->tls_before), "warnings", warnings);
}

/* ---- the whole fleet ---- */

static json_t *render_node_waiting(const struct sgp_fleet_row *row)
{
    if (row->waiting[0] == '\0')
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "for", as_name(row->waiting), "peer",
        as_text(row->waiting_peer), "seconds", as_real(row->waiting_seconds));
}

static json_t *render_node_topology(const struct sgp_fleet_row *row)
{
    return json_pack("{s:o, s:o}", "digest", as_identity(row->topology_digest), "version",
        as_count(row->topology_version));
}

static json_t *render_node_rollout(const struct sgp_fleet_row *row)
{
    if (row->rollout_active == 0)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "active", as_count(row->rollout_active),
        "proposed", as_ordinal(row->rollout_proposed), "mark",
        row->rollout_mark != 0 ? as_identity(row->rollout_mark) : json_null(), "vote",
        as_text(sgp_vote_name(row->rollout_vote)), "why", as_text(row->rollout_why));
}

static json_t *render_node(const struct view_node *node)
{
    json_t *object = json_object();
    struct sgp_fleet_row row, *view = &row;
    const bool known = node->text[0] != '\0' && sgp_fleet_row_read(node->text, &row) == 0;
    put(&object, "name", as_name(node->name));
    put(&object, "age", as_real(node->age));
    put(&object, "stale", as_flag(node->stale));
#define X(key, kind, value) put(&object, #key, known ? as_##kind(value) : json_null());
    NODE_FIELDS(X)
#undef X
    return object;
}

json_t *render_nodes(const struct render_nodes *nodes)
{
    const struct sgp_fleet_counts *view = &nodes->refused;
    json_t *list = json_array(), *refused = json_object();
    for (uint32_t i = 0; i < nodes->count; i++)
        (void)json_array_append_new(list, render_node(&nodes->nodes[i]));
#define X(key) put(&refused, #key, as_count(view->key));
    ROWS_REFUSED_FIELDS(X)
#undef X
    return json_pack(
        "{s:o, s:o, s:o}", "name", as_name(nodes->name), "nodes", list, "refused", refused);
}

/* ---- the topology ---- */

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
                render_parts(&topology->nodes[i]), "beside", render_colocated(topology, i),
                "starts", sgp_topology_starts(topology, i)));
    json_t *phases = json_array();
    for (uint32_t i = 0; i < topology->phase_count; i++) {
        const struct sgp_phase *phase = &topology->phases[i];
        json_array_append_new(phases,
            json_pack("{s:o, s:I, s:b, s:b, s:b, s:I, s:s, s:f, s:I, s:I, s:o}", "name",
                as_name(phase->name), "rounds", (json_int_t)phase->rounds, "once", (int)phase->once,
                "train", (int)!phase->exchanges, "outer", (int)phase->outer, "backup",
                (json_int_t)phase->backup, "staleness", sgp_damping_name(phase->staleness.damping),
                "compensation", phase->staleness.compensation, "staleness_max",
                (json_int_t)phase->staleness.most, "edge_count", (json_int_t)phase->edge_count,
                "edges", whole ? render_edges(phase, topology) : json_null()));
    }
    return json_pack("{s:o, s:o, s:o, s:I, s:b, s:s, s:o, s:I, s:o, s:o}", "file",
        as_name(status->topology_file), "digest", as_identity(topology->digest), "version",
        as_count(topology->version), "slices", (json_int_t)topology->slices, "exact",
        (int)topology->cycle.exact, "tls", sgp_tls_name(topology->tls), "round",
        as_round(status->core.round), "phase", (json_int_t)status->phase, "nodes", nodes, "phases",
        phases);
}

static json_t *render_row(uint64_t number, const struct view_history_row *row)
{
    json_t *json = json_object();
    (void)json_object_set_new(json, "number", as_count(number));
#define SET(member, kind) (void)json_object_set_new(json, #member, as_##kind(row->member));
    VIEW_HISTORY_COLUMNS(SET)
#undef SET
    return json;
}

json_t *render_history(const struct page *page, const struct view_history_row *rows)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < page->count; i++)
        (void)json_array_append_new(list, render_row(page_row(page, i), &rows[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "total", as_count(page->total), "oldest",
        as_count(page->oldest), "every", as_count(page->every), "next", as_count(page->next),
        "rows", list);
}

json_t *render_left(const char *heir, double weight, double owed)
{
    return json_pack("{s:b, s:o, s:o, s:o}", "left", 1, "heir", as_text(heir), "weight",
        as_real(weight), "owed", as_real(owed));
}

/* The names of the outputs are those of the classes, or else of the label columns. */
static json_t *measures_json(const struct view_model *model, const struct sgp_measures *measures)
{
    char **labels = NULL;
    uint32_t count = 0;
    if (!model->class_names && model->label &&
        sgp_names_split(model->label, SGP_NAMES_COLUMNS, NULL, &labels, &count) < 0)
        labels = NULL;
    const char *const *names = (const char *const *)model->class_names;
    if (!names && count == measures->outputs)
        names = (const char *const *)labels;
    json_t *json = sgp_measures_json(measures, names);
    sgp_names_free(labels, count);
    return json;
}

json_t *render_evaluation(const struct view_model *model, const struct sgp_evaluation *evaluation,
    const struct sgp_measures *measures, sgp_round round, bool best)
{
    return json_pack("{s:o, s:b, s:o, s:o, s:o, s:o}", "round", as_round(round), "best", best,
        "samples", as_count(evaluation->samples), "loss", as_real(evaluation->loss), "accuracy",
        as_real(evaluation->accuracy), "measures",
        measures ? measures_json(model, measures) : json_null());
}

/* The reports of a fleet as they are added up. */
struct sum {
    struct sgp_measures measures; /* zeros: none yet */
    uint32_t told;
    sgp_round least, most; /* labels */
    bool final;            /* all that was told */
    json_t *nodes, *silent;
};

static const char *report_word(enum sgp_report_state state)
{
    static const char *const words[] = {[SGP_REPORT_MEASURED] = "measured",
        [SGP_REPORT_NO_ROWS] = "no_rows",
        [SGP_REPORT_NOT_FINITE] = "not_finite",
        [SGP_REPORT_FEW_ROWS] = "few_rows"};
    return words[state];
}

/* The first report that has measures begins the sum. Returns whether the measures are like those
 * before. */
static bool add_measures(struct sum *sum, const struct sgp_measures *measures)
{
    if (measures->rows == 0)
        return true;
    if (sum->measures.rows == 0 &&
        sgp_measures_init(&sum->measures, measures->kind, measures->outputs) < 0)
        return false;
    if (measures->kind != sum->measures.kind || measures->outputs != sum->measures.outputs)
        return false;
    sgp_measures_add(&sum->measures, measures);
    return true;
}

static void add_report(struct sum *sum, const struct view_report *view)
{
    struct sgp_report report;
    if (view->text == NULL || sgp_report_read(view->text, &report) < 0) {
        (void)json_array_append_new(sum->silent, as_name(view->name));
        (void)json_array_append_new(
            sum->nodes, json_pack("{s:o, s:s, s:n, s:i}", "name", as_name(view->name), "state",
                            "silent", "round", "rows", 0));
        return;
    }
    const bool alike = add_measures(sum, &report.measures);
    (void)json_array_append_new(
        sum->nodes, json_pack("{s:o, s:s, s:o, s:o}", "name", as_name(view->name), "state",
                        alike ? report_word(report.state) : "unlike", "round",
                        as_round(report.label), "rows", as_count(report.measures.rows)));
    sum->least = sum->told == 0 || report.label < sum->least ? report.label : sum->least;
    sum->most = sum->told == 0 || report.label > sum->most ? report.label : sum->most;
    sum->final = sum->final && report.final;
    sum->told++;
    sgp_measures_finish(&report.measures);
}

json_t *render_fleet(const struct view_model *model, const struct view_reports *reports)
{
    struct sum sum = {.final = true, .nodes = json_array(), .silent = json_array()};
    for (uint32_t i = 0; i < reports->count; i++)
        add_report(&sum, &reports->reports[i]);
    const bool any = sum.told > 0, measured = sum.measures.rows > 0;
    json_t *rounds =
        any ? json_pack("[I, I]", (json_int_t)sum.least, (json_int_t)sum.most) : json_null();
    const bool best = any && sum.final && sum.least == sum.most && sum.least == reports->best;
    json_t *json = json_pack("{s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o}", "members",
        as_count(reports->count), "told", as_count(sum.told), "silent", sum.silent, "rounds",
        rounds, "final", any && sum.final, "best", best, "rows", as_count(sum.measures.rows),
        "nodes", sum.nodes, "measures",
        measured ? measures_json(model, &sum.measures) : json_null());
    sgp_measures_finish(&sum.measures);
    return json;
}

static json_t *greatest_class(const struct view_model *model, const float *outputs)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < model->model->outputs; i++)
        if (outputs[i] > outputs[best])
            best = i;
    return model->class_names ? as_name(model->class_names[best]) : json_integer(best);
}

json_t *render_prediction(
    const struct view_model *model, const float *outputs, uint64_t rows, uint64_t width)
{
    json_t *table = json_array();
    json_t *labels = model->classifies ? json_array() : json_null();
    for (uint64_t r = 0; r < rows; r++) {
        json_t *row = json_array();
        for (uint64_t i = 0; i < width; i++)
            json_array_append_new(row, as_real((double)outputs[r * width + i]));
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
        "{s:i, s:s, s:o}", "status", (int)status, "code", code, "message", as_name(message));
    if (error && hints)
        (void)json_object_update(error, hints);
    json_decref(hints);
    return json_pack("{s:o}", "error", error);
}
