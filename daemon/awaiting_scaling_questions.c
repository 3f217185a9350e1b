/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of a survey to neighbours, and answers to theirs; see awaiting_scaling_inside.h. */
#include "awaiting_scaling.h"

#include "awaiting_scaling_inside.h"
#include "setup/peer_keys.h"

static void on_asking(uv_timer_t *timer)
{
    struct awaiting_scaling *awaiting = timer->data;
    const struct sgp_topology *topology = awaiting->place.topology;
    const bool calls = !sgp_topology_is_dialled(topology, awaiting->place.self);
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (awaiting->peers[i].asked)
            (void)pulls_ask(&awaiting->pulls, SGP_SUBJECT_SCALING, i, &topology->nodes[i], calls);
}

static enum sgp_tls tls_dialling(
    void *context, uint32_t peer, struct sgp_cipher_settings *ret_settings)
{
    const struct awaiting_scaling *awaiting = context;
    (void)peer;
    return peer_keys_dialling(&awaiting->place, ret_settings);
}

static enum sgp_tls tls_listening(void *context, struct sgp_cipher_settings *ret_settings)
{
    struct awaiting_scaling *awaiting = context;
    return peer_keys_listening(&awaiting->place, ret_settings);
}

static bool expects(void *context, const struct sockaddr *address)
{
    const struct awaiting_scaling *awaiting = context;
    return callers_expect(&awaiting->callers, address);
}

static int64_t admits(void *context, uint32_t subject, const struct link *link, const char *source,
    char text[SGP_TEXT_BYTES])
{
    (void)subject;
    const struct awaiting_scaling *awaiting = context;
    const int64_t node = peer_keys_find(&awaiting->place, source, text);
    return node >= 0 && peer_keys_allow(&awaiting->place, link, (uint32_t)node, text) ? node : -1;
}

static void on_changed(void *context, enum sgp_subject subject)
{
    (void)subject;
    awaiting_scaling_changed(context);
}

/* Told once, until that node has answered. */
static void on_ended(void *context, enum sgp_subject subject, uint32_t peer, const char *why)
{
    struct awaiting_scaling *awaiting = context;
    (void)subject;
    if (why != NULL && !awaiting->peers[peer].unanswered)
        sgp_log(&awaiting->wait.log->sink, SGP_LEVEL_WARNING,
            "event=unanswered peer=%s reason=\"%s\"", awaiting->place.topology->nodes[peer].name,
            why);
    awaiting->peers[peer].unanswered = why != NULL;
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

int awaiting_scaling_open(struct awaiting_scaling *awaiting, struct sgp_error *error)
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
        .changed = on_changed,
        .ended = on_ended};
    struct awaiting *wait = &awaiting->wait;
    const int code = listener_open(
        &awaiting->listener, &wait->loop, wait->config->listen, &events, &wait->log->sink, error);
    if (code < 0)
        return code;
    callers_open(&awaiting->callers, &wait->loop);
    callers_resolve(&awaiting->callers, awaiting->place.topology, awaiting->place.self);
    pulls_open(&awaiting->pulls, &wait->loop, wait->config->name, &awaiting->listener, &pulls);
    pulls_use(&awaiting->pulls, awaiting->place.topology);
    awaiting->pulls.surveys[SGP_SUBJECT_SCALING] = awaiting->survey;
    (void)uv_timer_init(&wait->loop, &awaiting->asking);
    awaiting->asking.data = awaiting;
    (void)uv_timer_start(&awaiting->asking, on_asking, 0, AWAITING_SCALING_ASK_MS);
    return 0;
}

void awaiting_scaling_close(struct awaiting_scaling *awaiting)
{
    listener_close(&awaiting->listener);
    callers_close(&awaiting->callers);
    pulls_close(&awaiting->pulls);
    uv_close((uv_handle_t *)&awaiting->asking, NULL);
}
