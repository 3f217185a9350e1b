/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics: the status and the peers in Prometheus' text format; see render.h.
 *
 * view.h lists the metrics. An unknown value is left out, as Prometheus expects. */
#include "render.h"

#include "sgp/version.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

struct metric {
    const char *name;
    const char *type; /* gauge or counter */
    const char *help;
    double (*of_node)(const struct view_status *status);
    double (*of_link)(const struct view_peer *peer);
};

#define FIELD(...)
#define METRIC(key, kind, value, place, shown, ...)                                                \
    DERIVED(key, kind, , place, shown, __VA_ARGS__, value)
#define LINK_METRIC(key, kind, value, shown, ...)                                                  \
    LINK_DERIVED(key, kind, , shown, __VA_ARGS__, value)

/* A function for each value, */
#define DERIVED(key, kind, value, place, shown, at, type, name, help, other)                       \
    static double node_##name(const struct view_status *view)                                      \
    {                                                                                              \
        return (double)(other);                                                                    \
    }
#define LINK_DERIVED(key, kind, value, shown, type, name, help, other)                             \
    static double link_##name(const struct view_peer *view)                                        \
    {                                                                                              \
        return (double)(other);                                                                    \
    }
STATUS_FIELDS(FIELD, METRIC, DERIVED)
PEER_FIELDS(FIELD, LINK_METRIC, LINK_DERIVED)
#undef DERIVED
#undef LINK_DERIVED

/* and the tables of these functions: the node's table is indexed by place, with gaps. */
#define DERIVED(key, kind, value, place, shown, at, type, name, help, other)                       \
    [at] = {"sgpd_" #name, #type, help, node_##name, NULL},
#define LINK_DERIVED(key, kind, value, shown, type, name, help, other)                             \
    {"sgpd_link_" #name, #type, help, NULL, link_##name},
static const struct metric node_metrics[] = {STATUS_FIELDS(FIELD, METRIC, DERIVED)};
static const struct metric link_metrics[] = {PEER_FIELDS(FIELD, LINK_METRIC, LINK_DERIVED)};

static void print_head(FILE *stream, const struct metric *metric)
{
    (void)fprintf(stream, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
        metric->type);
}

/* Node names come from a file. The format requires that \ and " are escaped. */
static void print_label(FILE *stream, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\\' || *c == '"')
            (void)fputc('\\', stream);
        (void)fputc(*c == '\n' ? ' ' : *c, stream);
    }
}

/* Which node this is. The other lines do not name the node; the collector adds its name. */
static void print_info(FILE *stream, const struct view_status *status)
{
    static const struct metric metric = {"sgpd_info", "gauge",
        "1: which node this is, of which version, by which algorithm.", NULL, NULL};
    print_head(stream, &metric);
    (void)fprintf(stream, "%s{node=\"", metric.name);
    print_label(stream, status->name);
    (void)fprintf(
        stream, "\",version=\"%s\",algorithm=\"%s\"} 1\n", sgp_version(), status->algorithm);
}

static void print_state(FILE *stream, const struct view_status *status)
{
    static const struct metric metric = {"sgpd_state", "gauge",
        "1 for the state that the node is in, 0 for the others.", NULL, NULL};
    print_head(stream, &metric);
    for (int state = SGP_NODE_JOINING; state <= SGP_NODE_DRAINING; state++)
        (void)fprintf(stream, "sgpd_state{state=\"%s\"} %d\n",
            sgp_node_state_name((enum sgp_node_state)state),
            (enum sgp_node_state)state == status->core.state);
}

static void print_value(
    FILE *stream, const char *name, const char *type, const char *help, uint64_t value)
{
    const struct metric metric = {name, type, help, NULL, NULL};
    print_head(stream, &metric);
    (void)fprintf(stream, "%s %" PRIu64 "\n", name, value);
}

/* Of signed topology files: nothing without administrators. */
static void print_rollout(FILE *stream, const struct view_rollout *view)
{
    static const struct metric votes = {"sgpd_rollout_votes", "gauge",
        "Votes on the proposed version; missing and refused: of nodes that must accept it.", NULL,
        NULL};
    if (view->vote == NULL)
        return;
    print_value(stream, "sgpd_rollout_version", "gauge",
        "Version of the signed topology file in use; 0: none.", view->active);
    print_value(stream, "sgpd_rollout_proposed_version", "gauge",
        "Version of the topology file that is proposed and not in use; 0: none.", view->proposed);
    print_value(stream, "sgpd_rollout_fork", "gauge",
        "1 while two files have the proposed version.", view->fork);
    print_value(stream, "sgpd_rollout_documents_refused_total", "counter",
        "Signed topology files of neighbours that were refused.", view->refusals);
    print_head(stream, &votes);
    (void)fprintf(stream,
        "%s{vote=\"accepted\"} %" PRIu32 "\n%s{vote=\"missing\"} %" PRIu32
        "\n%s{vote=\"refused\"} %" PRIu32 "\n",
        votes.name, view->accepted, votes.name, view->missing, votes.name, view->refused);
}

static void print_links(
    FILE *stream, const struct view_peer *peers, uint32_t peer_count, const struct metric *metric)
{
    print_head(stream, metric);
    for (uint32_t i = 0; i < peer_count; i++) {
        double value = metric->of_link(&peers[i]);
        if (!isfinite(value))
            continue;
        (void)fprintf(stream, "%s{peer=\"", metric->name);
        print_label(stream, peers[i].name);
        (void)fprintf(
            stream, "\",direction=\"%s\"} %.15g\n", view_direction(peers[i].core.direction), value);
    }
}

int render_metrics(const struct view_status *status, const struct view_peer *peers,
    uint32_t peer_count, const struct render_nodes *nodes, char **ret_text, size_t *ret_bytes)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream)
        return -ENOMEM;
    print_info(stream, status);
    print_state(stream, status);
    for (size_t i = 0; i < sizeof node_metrics / sizeof node_metrics[0]; i++) {
        double value = node_metrics[i].of_node ? node_metrics[i].of_node(status) : (double)NAN;
        if (!isfinite(value))
            continue;
        print_head(stream, &node_metrics[i]);
        (void)fprintf(stream, "%s %.15g\n", node_metrics[i].name, value);
    }
    print_rollout(stream, &status->rollout);
    for (size_t i = 0; i < sizeof link_metrics / sizeof link_metrics[0]; i++)
        print_links(stream, peers, peer_count, &link_metrics[i]);
    render_extremes(stream, nodes);
    if (fclose(stream) != 0) {
        free(text);
        return -ENOMEM;
    }
    *ret_text = text;
    *ret_bytes = bytes;
    return 0;
}
