/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics, the part about the whole fleet: nodes by state, and the extremes of some figures.
 * So a collector that reads one node of a fleet can warn of any node. */
#include "render.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static double round_of(const struct sgp_fleet_row *row)
{
    return row->round == SGP_ROUND_NONE ? (double)NAN : (double)row->round;
}

static double loss_of(const struct sgp_fleet_row *row)
{
    return row->loss;
}

static double weight_of(const struct sgp_fleet_row *row)
{
    return row->weight;
}

static double disagreement_of(const struct sgp_fleet_row *row)
{
    return row->disagreement;
}

static double rollout_version_of(const struct sgp_fleet_row *row)
{
    return row->rollout_active == 0 ? (double)NAN : (double)row->rollout_active;
}

static const struct {
    const char *name, *help;
    double (*of)(const struct sgp_fleet_row *row); /* NaN: the row does not say it */
} figures[] = {
    {"round", "round of a node of the fleet", round_of},
    {"loss", "training loss of a node of the fleet", loss_of},
    {"weight", "push-sum weight of a node of the fleet", weight_of},
    {"disagreement", "distance of a node of the fleet to its neighbours", disagreement_of},
    {"rollout_version", "version of the signed topology file that a node of the fleet uses",
        rollout_version_of},
};
enum { FIGURES = sizeof figures / sizeof *figures };

struct extremes {
    double least[FIGURES], greatest[FIGURES]; /* NaN: no fresh row has it */
    uint64_t in_state[SGP_NODE_DRAINING + 1];
    uint64_t stale, unknown;
    double age; /* the greatest; NaN: no row */
};

static void add(struct extremes *extremes, const struct view_node *node)
{
    struct sgp_fleet_row row;
    if (node->text[0] == '\0' || sgp_fleet_row_read(node->text, &row) < 0) {
        extremes->unknown++;
        return;
    }
    extremes->age = fmax(extremes->age, node->age);
    if (node->stale && !view_has_ended(&row)) {
        extremes->stale++;
        return;
    }
    for (int state = SGP_NODE_JOINING; state <= SGP_NODE_DRAINING; state++)
        extremes->in_state[state] +=
            strcmp(row.state, sgp_node_state_name((enum sgp_node_state)state)) == 0;
    if (node->stale)
        return;
    for (size_t i = 0; i < FIGURES; i++) { /* fmin and fmax leave out NaN */
        extremes->least[i] = fmin(extremes->least[i], figures[i].of(&row));
        extremes->greatest[i] = fmax(extremes->greatest[i], figures[i].of(&row));
    }
}

static void print_head(FILE *stream, const char *name, const char *type, const char *help)
{
    (void)fprintf(stream, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_value(
    FILE *stream, const char *bound, const char *name, const char *help, double value)
{
    if (!isfinite(value))
        return;
    (void)fprintf(stream, "# HELP sgpd_fleet_%s_%s The %s %s.\n# TYPE sgpd_fleet_%s_%s gauge\n",
        name, bound, bound, help, name, bound);
    (void)fprintf(stream, "sgpd_fleet_%s_%s %.15g\n", name, bound, value);
}

static void print_nodes(FILE *stream, const struct extremes *extremes)
{
    print_head(stream, "sgpd_fleet_nodes", "gauge",
        "Nodes of the topology file by state; stale: not ended, and their row is old; unknown: "
        "none "
        "has come.");
    for (int state = SGP_NODE_JOINING; state <= SGP_NODE_DRAINING; state++)
        (void)fprintf(stream, "sgpd_fleet_nodes{state=\"%s\"} %" PRIu64 "\n",
            sgp_node_state_name((enum sgp_node_state)state), extremes->in_state[state]);
    (void)fprintf(stream,
        "sgpd_fleet_nodes{state=\"stale\"} %" PRIu64
        "\nsgpd_fleet_nodes{state=\"unknown\"} %" PRIu64 "\n",
        extremes->stale, extremes->unknown);
}

static void print_refused(FILE *stream, const struct sgp_fleet_counts *view)
{
    print_head(stream, "sgpd_fleet_rows_refused_total", "counter",
        "Rows of the fleet that were refused, by reason.");
#define X(key)                                                                                     \
    (void)fprintf(                                                                                 \
        stream, "sgpd_fleet_rows_refused_total{reason=\"%s\"} %" PRIu64 "\n", #key, view->key);
    ROWS_REFUSED_FIELDS(X)
#undef X
}

void render_extremes(FILE *stream, const struct render_nodes *nodes)
{
    struct extremes extremes = {.age = (double)NAN};
    for (size_t i = 0; i < FIGURES; i++)
        extremes.least[i] = extremes.greatest[i] = (double)NAN;
    for (uint32_t i = 0; i < nodes->count; i++)
        add(&extremes, &nodes->nodes[i]);
    print_nodes(stream, &extremes);
    for (size_t i = 0; i < FIGURES; i++) {
        print_value(stream, "least", figures[i].name, figures[i].help, extremes.least[i]);
        print_value(stream, "greatest", figures[i].name, figures[i].help, extremes.greatest[i]);
    }
    print_value(
        stream, "greatest", "age_seconds", "age of a row of the fleet in seconds", extremes.age);
    print_refused(stream, &nodes->refused);
}
