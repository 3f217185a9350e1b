/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics: the status and the peers in Prometheus' text format; see render.h.
 *
 * One table of the node's figures and one of a link's. A figure that is not known is left out, as
 * Prometheus would have it. */
#include "render.h"

#include "sgp/version.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

struct metric {
    const char *name;
    const char *type; /* gauge or counter */
    const char *help;
};

struct node_metric {
    struct metric metric;
    double (*value)(const struct view_status *status);
};

struct link_metric {
    struct metric metric;
    double (*value)(const struct view_peer *peer);
};

#define NODE_METRICS(X)                                                                            \
    X(round, "gauge", "Round the node is in.", (double)view->round)                                \
    X(epoch, "gauge", "Epochs trained so far.", view->epoch)                                       \
    X(uptime_seconds, "gauge", "Seconds since the daemon started.", view->uptime_seconds)          \
    X(samples_total, "counter", "Rows trained on.", (double)view->samples)                         \
    X(samples_per_second, "gauge", "Rows trained on per second.", view->samples_per_second)        \
    X(loss, "gauge", "Training loss of the latest round.", view->loss)                             \
    X(test_loss, "gauge", "Loss of the latest evaluation.", view->test_loss)                       \
    X(test_accuracy, "gauge", "Accuracy of the latest evaluation, 0 to 1.", view->test_accuracy)   \
    X(learning_rate, "gauge", "Learning rate of the latest step.", view->learning_rate)            \
    X(weight, "gauge", "Push-sum weight held.", view->weight)                                      \
    X(weight_in_flight, "gauge", "Weight given and not yet acknowledged.", view->weight_in_flight) \
    X(weight_minted, "gauge", "Weight created by restarts without a ledger.", view->weight_minted) \
    X(lost_rounds, "gauge", "Rounds that the ledger counts and of which no parameters were left.", \
        (double)view->lost_rounds)                                                                 \
    X(weight_unknown, "gauge",                                                                     \
        "By which the total weight may be off at most: an old ledger, a lie.",                     \
        view->weight_unknown)                                                                      \
    X(disagreement, "gauge", "Largest relative distance to a received model in the latest cycle.", \
        view->disagreement)                                                                        \
    X(parameters, "gauge", "Parameters of the model.", (double)view->parameters)                   \
    X(memory_bytes, "gauge", "Memory set aside at start.", (double)view->memory_bytes)             \
    X(round_jumps_total, "counter", "Times the node took a round far ahead.", (double)view->jumps) \
    X(cycles_renewed_total, "counter", "Times the node began an exact cycle again.",               \
        (double)view->cycles_renewed)                                                              \
    X(statements_refused_total, "counter",                                                         \
        "Words on the end of training refused: wrongly signed.", (double)view->statements_refused) \
    X(starving, "gauge",                                                                           \
        "1 while the node gives less than the file says because it holds too little.",             \
        (double)view->starving)                                                                    \
    X(diverging, "gauge", "1 while a loss is far above its early level, or not finite.",           \
        (double)(view->diverging != NULL))                                                         \
    X(model_unwritten, "gauge", "1 while the latest try to write model.safetensors has failed.",   \
        (double)(view->model_file != NULL && strcmp(view->model_file, "failed") == 0))             \
    X(waiting_seconds, "gauge", "Seconds the node has been waiting for a neighbour.",              \
        view->waiting_for[0] ? view->waiting_seconds : 0)

#define LINK_METRICS(X)                                                                            \
    X(link_up, "gauge", "1 if the link stands.", view->state == SGP_LINK_UP)                       \
    X(link_absent, "gauge", "1 if the peer is no longer waited for.", (double)view->absent)        \
    X(link_lag_rounds, "gauge", "Rounds that the peer is behind.",                                 \
        view->round == SGP_ROUND_NONE ? (double)NAN : (double)view->lag_rounds)                    \
    X(link_last_heard_seconds, "gauge", "Seconds since the peer was last heard.",                  \
        view->last_heard_seconds)                                                                  \
    X(link_rtt_seconds, "gauge", "Round trip time.", view->rtt_ms / 1000)                          \
    X(link_shares_sent_total, "counter", "Shares sent.", (double)view->shares_sent)                \
    X(link_shares_received_total, "counter", "Shares accepted.", (double)view->shares_received)    \
    X(link_shares_returned_total, "counter", "Shares that came back, or were refused.",            \
        (double)view->shares_returned)                                                             \
    X(link_weight_owed, "gauge", "Weight given to the peer and not acknowledged.",                 \
        view->weight_owed)                                                                         \
    X(link_bytes_sent_total, "counter", "Bytes sent.", (double)view->bytes_sent)                   \
    X(link_bytes_received_total, "counter", "Bytes received.", (double)view->bytes_received)

#define X(name, type, help, expression)                                                            \
    static double node_##name(const struct view_status *view)                                      \
    {                                                                                              \
        return expression;                                                                         \
    }
NODE_METRICS(X)
#undef X

#define X(name, type, help, expression)                                                            \
    static double name(const struct view_peer *view)                                               \
    {                                                                                              \
        return expression;                                                                         \
    }
LINK_METRICS(X)
#undef X

#define X(name, type, help, expression) {{"sgpd_" #name, type, help}, node_##name},
static const struct node_metric node_metrics[] = {NODE_METRICS(X)};
#undef X

#define X(name, type, help, expression) {{"sgpd_" #name, type, help}, name},
static const struct link_metric link_metrics[] = {LINK_METRICS(X)};
#undef X

static void print_head(FILE *stream, const struct metric *metric)
{
    (void)fprintf(stream, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
        metric->type);
}

/* Node names come from a file: the format wants \ and " escaped. */
static void print_label(FILE *stream, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\\' || *c == '"')
            (void)fputc('\\', stream);
        (void)fputc(*c == '\n' ? ' ' : *c, stream);
    }
}

/* Which node this is: the others' lines leave that to whoever collects them. */
static void print_info(FILE *stream, const struct view_status *status)
{
    static const struct metric metric = {
        "sgpd_info", "gauge", "1: which node this is, of which version, by which algorithm."};
    print_head(stream, &metric);
    (void)fprintf(stream, "%s{node=\"", metric.name);
    print_label(stream, status->name);
    (void)fprintf(
        stream, "\",version=\"%s\",algorithm=\"%s\"} 1\n", sgp_version(), status->algorithm);
}

static void print_state(FILE *stream, const struct view_status *status)
{
    static const struct metric metric = {
        "sgpd_state", "gauge", "1 for the state that the node is in, 0 for the others."};
    print_head(stream, &metric);
    for (int state = SGP_NODE_JOINING; state <= SGP_NODE_DRAINING; state++)
        (void)fprintf(stream, "sgpd_state{state=\"%s\"} %d\n",
            sgp_node_state_name((enum sgp_node_state)state),
            (enum sgp_node_state)state == status->state);
}

static void print_links(FILE *stream, const struct view_peer *peers, uint32_t peer_count,
    const struct link_metric *metric)
{
    print_head(stream, &metric->metric);
    for (uint32_t i = 0; i < peer_count; i++) {
        double value = metric->value(&peers[i]);
        if (!isfinite(value))
            continue;
        (void)fprintf(stream, "%s{peer=\"", metric->metric.name);
        print_label(stream, peers[i].name);
        (void)fprintf(stream, "\",direction=\"%s\"} %.15g\n",
            peers[i].direction == SGP_OUT ? "out" : "in", value);
    }
}

int render_metrics(const struct view_status *status, const struct view_peer *peers,
    uint32_t peer_count, char **ret_text, size_t *ret_bytes)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream)
        return -ENOMEM;
    print_info(stream, status);
    print_state(stream, status);
    for (size_t i = 0; i < sizeof node_metrics / sizeof node_metrics[0]; i++) {
        double value = node_metrics[i].value(status);
        if (!isfinite(value))
            continue;
        print_head(stream, &node_metrics[i].metric);
        (void)fprintf(stream, "%s %.15g\n", node_metrics[i].metric.name, value);
    }
    for (size_t i = 0; i < sizeof link_metrics / sizeof link_metrics[0]; i++)
        print_links(stream, peers, peer_count, &link_metrics[i]);
    if (fclose(stream) != 0) {
        free(text);
        return -ENOMEM;
    }
    *ret_text = text;
    *ret_bytes = bytes;
    return 0;
}
