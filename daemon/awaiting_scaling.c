/* SPDX-License-Identifier: Apache-2.0 */
/* The survey of a scaling, on a loop of its own; see awaiting_scaling.h. Thread: the loop thread,
 * which is the only thread. */
#include "awaiting_scaling.h"

#include "awaiting.h"
#include "net/callers.h"
#include "net/listener.h"
#include "net/pulls.h"
#include "node/changes.h"
#include "setup/keys.h"
#include "setup/scaling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer {
    bool asked;      /* it is a neighbour that can be dialled */
    bool unanswered; /* the latest question to it failed, and that was told */
};

struct awaiting_scaling {
    struct awaiting wait;  /* first */
    struct prepared place; /* of the topology file alone */
    struct sgp_survey *survey;
    char *figures; /* NULL: no file has named this node as a member */
    struct listener listener;
    struct callers callers;
    struct pulls pulls;
    uv_timer_t asking;
    enum sgp_survey_stage stage; /* that was told last; 0: none */
    uint64_t combined;           /* the set that was combined last, without a scaling */
    struct sgp_error why;        /* why it was not */
    struct peer *peers;          /* for each node of the file */
};

/* ---- the end ---- */

static void close_all(struct awaiting *wait)
{
    struct awaiting_scaling *awaiting = (struct awaiting_scaling *)wait;
    listener_close(&awaiting->listener);
    callers_close(&awaiting->callers);
    pulls_close(&awaiting->pulls);
    uv_close((uv_handle_t *)&awaiting->asking, NULL);
}

/* ---- what the survey says ---- */

/* The nodes that it waits for, separated by commas: the first, or all that fit. */
static void list_awaited(
    const struct awaiting_scaling *awaiting, char *text, size_t bytes, bool all)
{
    const struct sgp_topology *topology = awaiting->place.topology;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0, member = 0; i < topology->node_count && used < bytes; i++) {
        if (topology->nodes[i].relay || !sgp_survey_waits(awaiting->survey, member++))
            continue;
        if (!all && used > 0)
            return;
        used += (size_t)snprintf(
            text + used, bytes - used, "%s%s", used > 0 ? "," : "", topology->nodes[i].name);
    }
}

/* What members have still to send; NULL: nothing. */
static const char *word_of(enum sgp_survey_stage stage)
{
    return stage == SGP_SURVEY_TELLING ? "report" : stage == SGP_SURVEY_VOTING ? "vote" : NULL;
}

static void tell_stage(struct awaiting_scaling *awaiting)
{
    const enum sgp_survey_stage stage = sgp_survey_stage(awaiting->survey);
    char names[SGP_TEXT_BYTES / 2], line[SGP_TEXT_BYTES];
    if (stage == awaiting->stage)
        return;
    awaiting->stage = stage;
    if (word_of(stage) == NULL)
        return;
    list_awaited(awaiting, names, sizeof names, true);
    sgp_log(&awaiting->wait.log->sink, SGP_LEVEL_INFO, "event=survey waits_for=\"%s\" nodes=\"%s\"",
        word_of(stage), names);
    (void)snprintf(
        line, sizeof line, "agrees on a scaling; waits for %s of %s", word_of(stage), names);
    notify_status(&awaiting->wait.notify, line);
}

/* Keep the result, and end. A result that cannot be kept ends the process. */
static void keep(struct awaiting_scaling *awaiting, bool adopted)
{
    struct sgp_error error = {0};
    uint64_t version;
    const char *text = sgp_survey_result(awaiting->survey, &version);
    const int code = scaling_keep(awaiting->wait.config, text, &error);
    if (code < 0)
        awaiting->why = error;
    else
        sgp_log(&awaiting->wait.log->sink, SGP_LEVEL_INFO,
            "event=scaling agreed=%s bytes=%zu version=%llu digest=%016llx",
            adopted ? "before" : "now", strlen(text), (unsigned long long)version,
            (unsigned long long)sgp_bulletin_digest(text, (uint32_t)strlen(text)));
    awaiting_end(&awaiting->wait, code);
}

/* Compute the scaling of a complete set, once. */
static void combine(struct awaiting_scaling *awaiting)
{
    const uint64_t set = sgp_survey_set(awaiting->survey);
    struct sgp_error error = {0};
    char *text = NULL;
    if (set == awaiting->combined)
        return;
    awaiting->combined = set;
    awaiting->why = error;
    int code = scaling_combine(awaiting->survey, awaiting->place.topology, &error, &text);
    if (code == 0)
        code = sgp_survey_freeze(awaiting->survey, awaiting->place.topology->version, text);
    free(text);
    if (code == 0) {
        keep(awaiting, false);
        return;
    }
    (void)sgp_fail(&error, code, "%s", sgp_strerror(code));
    awaiting->why = error;
    sgp_log(&awaiting->wait.log->sink, SGP_LEVEL_ERROR, "event=survey error=\"%s\"", error.text);
}

static void on_changed(void *context)
{
    struct awaiting_scaling *awaiting = context;
    if (awaiting->wait.ended)
        return;
    tell_stage(awaiting);
    if (awaiting->stage == SGP_SURVEY_FROZEN)
        keep(awaiting, true);
    else if (awaiting->stage == SGP_SURVEY_COMPLETE)
        combine(awaiting);
}

/* ---- questions and answers ---- */

static void on_asking(uv_timer_t *timer)
{
    struct awaiting_scaling *awaiting = timer->data;
    const struct sgp_topology *topology = awaiting->place.topology;
    const bool calls = !sgp_topology_is_dialled(topology, awaiting->place.self);
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (awaiting->peers[i].asked)
            pulls_ask(&awaiting->pulls, i, &topology->nodes[i], calls);
}

static enum sgp_tls tls_dialling(
    void *context, uint32_t peer, struct sgp_cipher_settings *ret_settings)
{
    const struct awaiting_scaling *awaiting = context;
    (void)peer;
    return keys_dialling(&awaiting->place, ret_settings);
}

static enum sgp_tls tls_listening(void *context, struct sgp_cipher_settings *ret_settings)
{
    struct awaiting_scaling *awaiting = context;
    return keys_listening(&awaiting->place, ret_settings);
}

static bool expects(void *context, const struct sockaddr *address)
{
    const struct awaiting_scaling *awaiting = context;
    return callers_expect(&awaiting->callers, address);
}

static int64_t admits(
    void *context, const struct link *link, const char *source, char text[SGP_TEXT_BYTES])
{
    const struct awaiting_scaling *awaiting = context;
    const int64_t node = sgp_topology_find(awaiting->place.topology, source);
    if (node >= 0)
        return keys_allow(&awaiting->place, link, (uint32_t)node, text) ? node : -1;
    (void)snprintf(text, SGP_TEXT_BYTES,
        "it is called %s, which is no node of the topology file; " LISTENER_REMEDY, source);
    return -1;
}

static bool asks_back(void *context, uint32_t peer)
{
    const struct awaiting_scaling *awaiting = context;
    return !sgp_topology_is_dialled(awaiting->place.topology, peer);
}

/* Told once, until that node has answered. */
static void on_ended(void *context, uint32_t peer, const char *why)
{
    struct awaiting_scaling *awaiting = context;
    if (why != NULL && !awaiting->peers[peer].unanswered)
        sgp_log(&awaiting->wait.log->sink, SGP_LEVEL_WARNING,
            "event=unanswered peer=%s reason=\"%s\"", awaiting->place.topology->nodes[peer].name,
            why);
    awaiting->peers[peer].unanswered = why != NULL;
}

static void on_refused(void *context, struct link *link, const char *text)
{
    struct awaiting_scaling *awaiting = context;
    listener_log(&awaiting->listener, link, text);
}

static void on_pull(void *context, struct link *link, const struct sgp_message *message)
{
    struct awaiting_scaling *awaiting = context;
    pulls_answer(&awaiting->pulls, link, message);
}

static void on_call(void *context, struct link *link, const struct sgp_message *message)
{
    struct awaiting_scaling *awaiting = context;
    pulls_called(&awaiting->pulls, link, message);
}

/* A neighbour that has the scaling begins to train. It dials again and again. */
static void on_early(void *context, struct link *link, const struct sgp_message *message)
{
    (void)context;
    (void)message;
    link_close(link, NULL);
}

static void pulse_of(void *context, struct sgp_pulse *ret_pulse)
{
    (void)context;
    *ret_pulse = (struct sgp_pulse){
        .state = SGP_NODE_JOINING, .next_round = SGP_ROUND_NONE, .stop = SGP_ROUND_NONE};
}

/* ---- onlookers ---- */

static void view_status(void *context, struct view_status *ret_status)
{
    const struct awaiting_scaling *awaiting = context;
    awaiting_status(&awaiting->wait, ret_status);
    ret_status->waiting = word_of(sgp_survey_stage(awaiting->survey));
    ret_status->waiting_seconds = awaiting_seconds(&awaiting->wait);
    list_awaited(awaiting, ret_status->waiting_for, sizeof ret_status->waiting_for, false);
    (void)snprintf(ret_status->last_error, sizeof ret_status->last_error, "%s", awaiting->why.text);
    if (awaiting->why.code != 0)
        ret_status->last_error_seconds = 0;
}

static const struct sgp_topology *view_topology(void *context)
{
    return ((const struct awaiting_scaling *)context)->place.topology;
}

static const char *obstacle(void *context)
{
    (void)context;
    return "the nodes have not agreed on a scaling yet; stop it";
}

/* ---- another topology file ---- */

/* The neighbours of this node, in either direction, in any round. */
static void find_neighbours(const struct prepared *place, struct peer *peers)
{
    const struct sgp_topology *topology = place->topology;
    const uint32_t self = place->self;
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        for (uint32_t i = phase->out_first[self]; i < phase->out_first[self + 1]; i++)
            peers[phase->out[i].target].asked = true;
        for (uint32_t i = phase->in_first[self]; i < phase->in_first[self + 1]; i++)
            peers[phase->in[i].source].asked = true;
    }
    for (uint32_t i = 0; i < topology->node_count; i++)
        peers[i].asked = peers[i].asked && sgp_topology_is_dialled(topology, i);
}

/* Whether the node can agree by this file; its rows are read when a file names it as a member. */
static int read_figures(
    struct awaiting_scaling *awaiting, const struct prepared *place, struct sgp_error *error)
{
    const struct config *config = awaiting->wait.config;
    const bool relay = place->topology->nodes[place->self].relay;
    struct sgp_error note = {0};
    int code = scaling_check(config, place->topology, relay, error);
    if (code < 0 || relay || awaiting->figures != NULL)
        return code;
    code = scaling_tell(config, &note, error, &awaiting->figures);
    if (code == 0 && note.code != 0)
        sgp_log(
            &awaiting->wait.log->sink, SGP_LEVEL_WARNING, "event=warning text=\"%s\"", note.text);
    return code;
}

/* The clock orders what one node tells in its lives; see sgp/survey.h. */
static uint64_t clock_stamp(void)
{
    uv_timeval64_t now;
    (void)uv_gettimeofday(&now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
}

/* Tell, unless that is done, or the file does not name this node as a member. */
static int tell_figures(struct awaiting_scaling *awaiting)
{
    const struct sgp_topology *topology = awaiting->place.topology;
    uint32_t member = 0;
    if (topology->nodes[awaiting->place.self].relay)
        return 0;
    for (uint32_t i = 0; i < awaiting->place.self; i++)
        member += !topology->nodes[i].relay;
    return sgp_survey_figures(awaiting->survey, member) != NULL
               ? 0
               : sgp_survey_tell(awaiting->survey, clock_stamp(), awaiting->figures);
}

static int use_file(struct awaiting_scaling *awaiting, struct sgp_error *error)
{
    struct peer *peers = calloc(awaiting->place.topology->node_count, sizeof *peers);
    int code = peers != NULL ? scaling_use(awaiting->survey, awaiting->place.topology) : -ENOMEM;
    if (code == 0)
        code = tell_figures(awaiting);
    if (code < 0) {
        free(peers);
        return sgp_fail(error, code, "out of memory");
    }
    find_neighbours(&awaiting->place, peers);
    free(awaiting->peers);
    awaiting->peers = peers;
    return 0;
}

static void tell_reload(const struct awaiting_scaling *awaiting, const struct sgp_topology *former,
    struct view_reload *ret_reload)
{
    const struct prepared *place = &awaiting->place;
    const enum sgp_tls now = place->topology->tls;
    changes_tell(former, place->topology, &awaiting->wait.log->sink, ret_reload);
    ret_reload->tls = now;
    ret_reload->tls_before = former->tls > now ? former->tls : SGP_TLS_UNSAID;
    ret_reload->warnings = place->warnings;
    ret_reload->warning_count = place->warning_count;
}

/* The place is swapped first, because the survey keeps names of its file alone. */
static int reload(void *context, struct view_reload *ret_reload, struct sgp_error *error)
{
    struct awaiting_scaling *awaiting = context;
    struct prepared place;
    int code = prepare_place(awaiting->wait.config, error, &place);
    if (code < 0)
        return code;
    code = read_figures(awaiting, &place, error);
    if (code < 0) {
        prepared_finish(&place);
        return code;
    }
    struct prepared former = awaiting->place;
    pulls_drop(&awaiting->pulls);
    awaiting->place = place;
    code = use_file(awaiting, error);
    if (code < 0) {
        awaiting->place = former;
        prepared_finish(&place);
        return code;
    }
    callers_resolve(&awaiting->callers, awaiting->place.topology, awaiting->place.self);
    tell_reload(awaiting, former.topology, ret_reload);
    prepared_finish(&former);
    awaiting->stage = 0;
    on_changed(awaiting);
    return 0;
}

static void hang_up(struct awaiting *wait)
{
    struct view_reload report;
    struct sgp_error error = {0};
    notify_reloading();
    if (reload(wait, &report, &error) < 0)
        sgp_log(&wait->log->sink, SGP_LEVEL_ERROR, "event=reload error=\"%s\"", error.text);
    notify_ready();
}

/* ---- the wait ---- */

static int open_net(struct awaiting_scaling *awaiting, struct sgp_error *error)
{
    const struct listener_events events = {.context = awaiting,
        .hello = on_early,
        .inquire = on_early,
        .call = on_call,
        .pull = on_pull,
        .tls = tls_listening,
        .expects = expects,
        .pulse = pulse_of};
    const struct pulls_events pulls = {.context = awaiting,
        .tls = tls_dialling,
        .admits = admits,
        .asks_back = asks_back,
        .changed = on_changed,
        .ended = on_ended,
        .refused = on_refused};
    struct awaiting *wait = &awaiting->wait;
    const int code = listener_open(
        &awaiting->listener, &wait->loop, wait->config->listen, &events, &wait->log->sink, error);
    if (code < 0)
        return code;
    callers_open(&awaiting->callers, &wait->loop);
    callers_resolve(&awaiting->callers, awaiting->place.topology, awaiting->place.self);
    pulls_open(&awaiting->pulls, &wait->loop, awaiting->survey, wait->config->name, &pulls);
    (void)uv_timer_init(&wait->loop, &awaiting->asking);
    awaiting->asking.data = awaiting;
    (void)uv_timer_start(&awaiting->asking, on_asking, 0, AWAITING_SCALING_ASK_MS);
    return 0;
}

static int open_all(struct awaiting_scaling *awaiting, struct sgp_error *error)
{
    const struct view_actions actions = {.context = awaiting,
        .no_model = "the nodes have not agreed on a scaling yet: there is no model",
        .status = view_status,
        .topology = view_topology,
        .stop = awaiting_stop,
        .leave_obstacle = obstacle,
        .token_obstacle = obstacle,
        .reload = reload};
    int code = awaiting_open(&awaiting->wait, &actions, error);
    if (code < 0)
        return code;
    code = open_net(awaiting, error);
    if (code == 0)
        return 0;
    control_close(awaiting->wait.control, NULL, NULL);
    (void)awaiting_run(&awaiting->wait);
    return code;
}

/* Everything before the loop: the survey with the figures of this node. 1: agreed before. */
static int begin(struct awaiting_scaling *awaiting, struct sgp_error *error)
{
    awaiting->survey = sgp_survey_create(awaiting->wait.config->name);
    if (awaiting->survey == NULL)
        return sgp_fail(error, -ENOMEM, "out of memory");
    sgp_survey_check(awaiting->survey, scaling_is_sound);
    int code = scaling_restore(awaiting->wait.config, awaiting->survey, error);
    if (code != 0)
        return code;
    code = read_figures(awaiting, &awaiting->place, error);
    return code < 0 ? code : use_file(awaiting, error);
}

static int run(struct awaiting_scaling *awaiting, struct sgp_error *error)
{
    int code = open_all(awaiting, error);
    if (code < 0)
        return code;
    awaiting_start(&awaiting->wait);
    on_changed(awaiting);
    code = awaiting_run(&awaiting->wait);
    callers_finish(&awaiting->callers);
    return code < 0 ? sgp_fail(error, code, "%s", awaiting->why.text) : code;
}

int awaiting_scaling_wait(
    const struct config *config, struct log *log, bool *ret_began, struct sgp_error *error)
{
    struct awaiting_scaling awaiting = {.wait = {.config = config,
                                            .log = log,
                                            .prepared = &awaiting.place,
                                            .state = "awaiting_scaling",
                                            .close = close_all,
                                            .hang_up = hang_up}};
    *ret_began = false;
    int code = prepare_place(config, error, &awaiting.place);
    if (code < 0)
        return code;
    const int begun = begin(&awaiting, error);
    *ret_began = begun == 0;
    code = begun == 0 ? run(&awaiting, error) : begun > 0 ? 0 : begun;
    sgp_survey_destroy(awaiting.survey);
    prepared_finish(&awaiting.place);
    free(awaiting.figures);
    free(awaiting.peers);
    return code;
}
