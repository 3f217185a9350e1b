/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the daemon: status, peers, topology. */
#include "ctl.h"

#include "../daemon/util/view.h"

#include <stdlib.h>
#include <string.h>

static enum ctl_exit get(struct ctl *ctl, const char *path, json_t **ret_json)
{
    const struct ctl_request request = {.method = "GET", .path = path};
    return ctl_ask_json(ctl, &request, ret_json);
}

/* ---- status ---- */

/* The fields in the order for a person, with gaps. Fields that a later daemon adds come
 * after them. */
static const struct {
    const char *key;
    enum { ALL, KNOWN, NOTABLE } shown;
} fields[] = {
#define FIELD(key, kind, value, place, shown) [place] = {#key, shown},
#define METRIC(key, kind, value, place, shown, ...) FIELD(key, kind, value, place, shown)
    STATUS_FIELDS(FIELD, METRIC, METRIC) NEIGHBOUR_FIELDS(FIELD)
#undef FIELD
#undef METRIC
};
#define FIELDS (sizeof fields / sizeof *fields)

json_t *ctl_status_in_order(const json_t *status)
{
    json_t *ordered = json_object();
    for (size_t i = 0; i < FIELDS; i++) {
        json_t *value = fields[i].key ? json_object_get(status, fields[i].key) : NULL;
        if (value)
            (void)json_object_set(ordered, fields[i].key, value);
    }
    (void)json_object_update_missing(ordered, (json_t *)status);
    return ordered;
}

static bool model_file_is(const json_t *status, const char *what)
{
    const char *file = json_string_value(json_object_get(status, "model_file"));
    return file != NULL && strcmp(file, what) == 0;
}

bool ctl_model_is_written_now(const json_t *status)
{
    return model_file_is(status, "writing");
}

void ctl_model_failure(const json_t *status, char text[SGP_TEXT_BYTES])
{
    const char *why = json_string_value(json_object_get(status, "last_error"));
    const char *state = ctl_text_of(status, "state", "?");
    long long lost = json_integer_value(json_object_get(status, "lost_rounds"));
    bool finished = strcmp(state, "finished") == 0;
    /* in another state the node may be given a model */
    bool sure = finished || strcmp(state, "training") == 0 || strcmp(state, "settling") == 0;
    bool stays = finished && json_is_null(json_object_get(status, "model_file"));
    text[0] = '\0';
    if (model_file_is(status, "failed"))
        (void)snprintf(text, SGP_TEXT_BYTES,
            "its model is not on the disk (%.300s); it is in the daemon's memory: make room, and "
            "sgpctl checkpoint writes it",
            why ? why : "see its journal");
    else if (lost > 0 && sure)
        (void)snprintf(text, SGP_TEXT_BYTES,
            "it has lost the training of the first %lld rounds: no checkpoint was left here, and "
            "no neighbour had a model%s; if one exists elsewhere, stop all nodes and bring it "
            "back; sgpctl reset begins a new run",
            lost, stays ? "; model.safetensors stays as it was" : "");
}

void ctl_privacy_failure(const json_t *status, char text[SGP_TEXT_BYTES])
{
    const bool none = json_number_value(json_object_get(status, "samples")) == 0;
    text[0] = '\0';
    if (json_is_true(json_object_get(status, "privacy_spent")))
        (void)snprintf(text, SGP_TEXT_BYTES,
            "its epsilon is spent (%.4g so far), so it takes no more steps on its rows%s; a larger "
            "[privacy] epsilon allows more",
            json_number_value(json_object_get(status, "privacy_epsilon")),
            none ? ", and has taken none since it started" : "");
}

static bool says_something(const json_t *value)
{
    return json_is_true(value) || json_is_string(value) || json_is_object(value) ||
           json_array_size(value) > 0 || (json_is_number(value) && json_number_value(value) != 0);
}

/* The few fields of a status that are shown unless all are requested. The caller releases them. */
static json_t *shorten(const json_t *status)
{
    json_t *few = json_object();
    for (size_t i = 0; i < FIELDS; i++) {
        json_t *value = fields[i].key ? json_object_get(status, fields[i].key) : NULL;
        bool known = fields[i].shown == KNOWN && value && !json_is_null(value);
        if (known || (fields[i].shown == NOTABLE && says_something(value)))
            (void)json_object_set(few, fields[i].key, value);
    }
    return few;
}

/* If a node has waited this long for a neighbour, it is degraded. */
#define WAITING_SECONDS_MAX 5.0
/* A node is also degraded if so many of its shares in a row were refused as outsized, or if it
 * refused so many. A single outsized share may be an accident. */
#define OUTSIZED_SHARES 3

#define REMEDY                                                                                     \
    "try a smaller [optimizer] learning_rate, or bring the columns to one size with [data] scale"

static void add(json_t *reasons, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(json_t *reasons, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)json_array_append_new(reasons, json_vsprintf(format, arguments));
    va_end(arguments);
}

/* Divergence of training. It remains reported when the node has finished. */
static void add_divergence(json_t *reasons, const json_t *status)
{
    const json_t *what = json_object_get(status, "diverging");
    if (!json_is_string(what))
        return;
    const json_t *loss = json_object_get(status, json_string_value(what));
    if (json_is_number(loss))
        add(reasons, "training diverges: its %s is %.3g; " REMEDY, json_string_value(what),
            json_number_value(loss));
    else
        add(reasons, "training diverged: a loss was not finite; " REMEDY);
}

static void add_unwritten(json_t *reasons, const json_t *status)
{
    char text[SGP_TEXT_BYTES];
    ctl_model_failure(status, text);
    if (text[0] != '\0')
        add(reasons, "%s", text);
}

static void add_spent(json_t *reasons, const json_t *status)
{
    char text[SGP_TEXT_BYTES];
    ctl_privacy_failure(status, text);
    if (text[0] != '\0')
        add(reasons, "%s", text);
}

static void add_outsized(json_t *reasons, const json_t *peer)
{
    long long count = json_integer_value(json_object_get(peer, "shares_outsized"));
    const char *name = ctl_text_of(peer, "name", "?");
    if (count < OUTSIZED_SHARES)
        return;
    if (strcmp(ctl_text_of(peer, "direction", "?"), "out") == 0)
        add(reasons,
            "%s refused the latest %lld shares: their values are out of all proportion to its "
            "own; " REMEDY,
            name, count);
    else
        add(reasons,
            "the latest %lld shares of %s were refused: their values are out of all "
            "proportion to our own; " REMEDY,
            count, name);
}

/* Finished nodes should agree. This reports a node that has ended with another model than a
 * neighbour. */
static void add_disagreement(json_t *reasons, const json_t *status)
{
    size_t index;
    json_t *other;
    const bool models = ctl_real_of(status, "weight") > 0;
    json_array_foreach(json_object_get(status, "disagrees"), index, other)
    {
        add(reasons,
            "%s has ended with another model than %s: %.3g apart; start both again to mix once "
            "more, or give more [train] final_cycles",
            ctl_text_of(other, "peer", "?"), models ? "this node" : "another neighbour",
            json_number_value(json_object_get(other, "distance")));
    }
}

/* If all nodes make the same updates, the fleet trains no faster than a single node. */
static void add_same_updates(json_t *reasons, const json_t *status)
{
    size_t index;
    json_t *name;
    json_array_foreach(json_object_get(status, "same_updates"), index, name)
    {
        add(reasons,
            "%s makes the updates of another node, bit for bit: both train on the same rows; give "
            "each "
            "its own, and seed what a program draws by node.seed",
            json_string_value(name));
    }
}

/* A reload may have removed the ciphers by mistake. This is reported until the file changes or the
 * process restarts. */
static void add_plain_links(json_t *reasons, const json_t *status)
{
    const json_t *topology = json_object_get(status, "topology");
    if (json_is_string(json_object_get(topology, "tls_before")))
        add(reasons, "links may be plain: the topology file says tls=%s, and said tls=%s before",
            ctl_text_of(topology, "tls", "?"), ctl_text_of(topology, "tls_before", "?"));
}

/* Why the node is degraded, as an array of sentences; empty if it is not. */
static json_t *degraded(const json_t *status, const json_t *peers)
{
    json_t *reasons = json_array();
    const char *state = ctl_text_of(status, "state", "?");
    if (strcmp(state, "paused") == 0 || strcmp(state, "draining") == 0)
        add(reasons, "the node is %s", state);
    if (json_is_true(json_object_get(status, "starving")))
        add(reasons, "its weight is so low that it gives less than the file says");
    if (json_is_true(json_object_get(status, "hears_nobody")))
        add(reasons, "it hears nobody any more, and learns from its own rows alone");
    const json_t *waiting = json_object_get(status, "waiting");
    double seconds = json_number_value(json_object_get(waiting, "seconds"));
    if (seconds > WAITING_SECONDS_MAX && json_is_string(json_object_get(waiting, "peer")))
        add(reasons, "it has waited %.0f s for %s %s of %s", seconds,
            strchr("ae", ctl_text_of(waiting, "for", "?")[0]) != NULL ? "an" : "a",
            ctl_text_of(waiting, "for", "?"), ctl_text_of(waiting, "peer", "?"));
    add_plain_links(reasons, status);
    add_disagreement(reasons, status);
    add_same_updates(reasons, status);
    add_divergence(reasons, status);
    add_unwritten(reasons, status);
    add_spent(reasons, status);
    bool finished = strcmp(state, "finished") == 0;
    size_t index;
    json_t *peer;
    json_array_foreach((json_t *)peers, index, peer)
    {
        const char *link = ctl_text_of(peer, "state", "?");
        add_outsized(reasons, peer);
        if (finished) /* its neighbours may have ended */
            continue;
        /* no connection of this peer is expected */
        if (json_is_true(json_object_get(peer, "retired")))
            continue;
        if (json_is_true(json_object_get(peer, "absent")))
            add(reasons, "%s (%s) is absent", ctl_text_of(peer, "name", "?"),
                ctl_text_of(peer, "direction", "?"));
        else if (json_is_true(json_object_get(peer, "overdue")))
            add(reasons, "%s (%s) is so late that nobody waits for it",
                ctl_text_of(peer, "name", "?"), ctl_text_of(peer, "direction", "?"));
        else if (json_is_true(json_object_get(peer, "slow")))
            add(reasons, "%s computes for far longer than its rounds took so far",
                ctl_text_of(peer, "name", "?"));
        else if (strcmp(link, "up") != 0)
            add(reasons, "the link %s %s is %s",
                strcmp(ctl_text_of(peer, "direction", "?"), "out") == 0 ? "to" : "from",
                ctl_text_of(peer, "name", "?"), link);
    }
    return reasons;
}

/* Differences that need not be wrong, but mostly are. */
static void print_differing(const struct ctl *ctl, const json_t *status)
{
    static const struct {
        const char *key, *what;
    } lists[] = {{"mismatch", "topology, learning rate, batch or data differ from those of"},
        {"unlike_privacy", "the privacy of its rows is promised unlike that of"}};
    char text[CTL_CELL_BYTES];
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const json_t *names = json_object_get(status, lists[i].key);
        if (json_array_size(names) == 0)
            continue;
        ctl_cell(ctl, lists[i].key, names, text);
        (void)printf("note: %s %s\n", lists[i].what, text);
    }
}

static void print_reasons(const json_t *reasons)
{
    size_t index;
    json_t *reason;
    json_array_foreach((json_t *)reasons, index, reason)(void)
        printf("degraded: %s\n", json_string_value(reason));
}

static const struct ctl_option status_options[] = {
    {"--check",
        .summary =
            "also look at the neighbours, and end with 7 if the node is degraded; the reasons are "
            "printed last, and settings that differ as a note"},
    {"--all", .summary = "print every field; --json always does"}, {0}};

static void print_status(const struct ctl *ctl, const json_t *status, bool all)
{
    json_t *few = all ? json_incref((json_t *)status) : shorten(status);
    ctl_print_object(ctl, few);
    json_decref(few);
}

static enum ctl_exit status(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given options[2] = {0};
    json_t *answer, *peers = NULL, *reasons = NULL;
    enum ctl_exit code = ctl_options_take(ctl, &argc, argv, options, 2, 0, 0);
    if (code == CTL_DONE)
        code = get(ctl, "/v1/status", &answer);
    if (code == CTL_DONE && options[0].given)
        code = get(ctl, "/v1/peers", &peers);
    if (code != CTL_DONE)
        return code;
    json_t *ordered = ctl_status_in_order(answer);
    json_decref(answer);
    if (options[0].given)
        reasons = degraded(ordered, peers);
    bool bad = json_array_size(reasons) > 0;
    json_decref(peers);
    if (ctl->json) {
        if (reasons)
            (void)json_object_set_new(ordered, "degraded", reasons);
        code = ctl_print_json(ordered);
    } else {
        print_status(ctl, ordered, options[1].given);
        if (reasons)
            print_differing(ctl, ordered);
        print_reasons(reasons);
        json_decref(ordered);
        json_decref(reasons);
    }
    return code == CTL_DONE && bad ? CTL_DEGRADED : code;
}

const struct ctl_command ctl_status_command = {.words = "status",
    .operands = "",
    .options = status_options,
    .summary = "print what the daemon is doing",
    .help =
        "It prints what is known of state, progress, losses and weight, and whatever is "
        "unusual.\n\n"
        "A node is degraded when it is paused, draining, starving, hearing nobody, waiting for\n"
        "more than 5 s, diverging (a loss is more than 100 times what it was early on, or not\n"
        "finite), ended with another model than a neighbour or without room for its own on the\n"
        "disk, with lost training, without steps because its [privacy] epsilon is\n"
        "spent, or with a neighbour that is absent, far too slow or not connected, or whose\n"
        "shares are out of all proportion; or when a reload has left tls=require or tls=offer.\n",
    .run = status};

/* ---- peers ---- */

static const struct ctl_option peers_options[] = {
    {"--all", .summary = "print every field; --json always does"}, {0}};

/* `all`: every field in the daemon's answer, in its order, including those of a later daemon. */
void ctl_print_peers(const struct ctl *ctl, const json_t *peers, bool all)
{
    const char *columns[CTL_COLUMNS_MAX];
    size_t count = 0;
    const char *field;
    json_t *value;
    json_object_foreach(all ? json_array_get(peers, 0) : NULL, field, value)
    {
        if (count < CTL_COLUMNS_MAX)
            columns[count++] = field;
    }
    if (count == 0) { /* a terminal has 80 to 200 columns */
#define FIELD(key, kind, value, shown)                                                             \
    if (shown == KNOWN)                                                                            \
        columns[count++] = #key;
#define METRIC(key, kind, value, shown, ...) FIELD(key, kind, value, shown)
        PEER_FIELDS(FIELD, METRIC, METRIC)
#undef FIELD
#undef METRIC
    }
    ctl_print_aligned(ctl, peers, columns, count);
}

static enum ctl_exit peers(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given options[1] = {0};
    json_t *answer;
    enum ctl_exit code = ctl_options_take(ctl, &argc, argv, options, 1, 0, 0);
    if (code == CTL_DONE)
        code = get(ctl, "/v1/peers", &answer);
    if (code != CTL_DONE)
        return code;
    if (ctl->json)
        return ctl_print_json(answer);
    ctl_print_peers(ctl, answer, options[0].given);
    json_decref(answer);
    return CTL_DONE;
}

const struct ctl_command ctl_peers_command = {.words = "peers",
    .operands = "",
    .options = peers_options,
    .summary = "print the daemon's links: one line a neighbour and direction",
    .run = peers};

/* ---- topology ---- */

static enum ctl_exit topology(struct ctl *ctl, int argc, char **argv)
{
    static const char *const node_columns[] = {"name", "address"};
    static const char *const phase_columns[] = {"name", "rounds", "once", "edge_count"};
    json_t *answer;
    enum ctl_exit code = ctl_options_take(ctl, &argc, argv, NULL, 0, 0, 0);
    if (code == CTL_DONE)
        code = get(ctl, "/v1/topology", &answer);
    if (code != CTL_DONE)
        return code;
    if (ctl->json)
        return ctl_print_json(answer);
    json_t *nodes = json_incref(json_object_get(answer, "nodes"));
    json_t *phases = json_incref(json_object_get(answer, "phases"));
    (void)json_object_del(answer, "nodes");
    (void)json_object_del(answer, "phases");
    ctl_print_object(ctl, answer);
    ctl_print_table(ctl, nodes, node_columns, 2);
    ctl_print_table(ctl, phases, phase_columns, 4);
    json_decref(nodes);
    json_decref(phases);
    json_decref(answer);
    return CTL_DONE;
}

const struct ctl_command ctl_topology_command = {.words = "topology",
    .operands = "",
    .summary = "print the topology that the daemon uses; --json with every edge",
    .help = "For a file instead of a daemon: topology check, topology show.\n",
    .run = topology};
