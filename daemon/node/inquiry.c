/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about what a lost node has accepted. This node asks one question at a time, each on its
 * own connection. Questions of other nodes are answered on the connection on which they arrive.
 *
 * Fails: a node that is unreachable, or sends another message, gives no answer. The core determines
 * the timeout: its next question replaces the previous one. Thread: the loop thread. */
#include "inquiry.h"

#include "events.h"
#include "trust.h"

#include <stdio.h>

static void hang_up(struct daemon *daemon)
{
    struct link *link = daemon->inquiry;
    daemon->inquiry = NULL;
    if (link != NULL)
        link_close(link, NULL);
}

static void post(struct daemon *daemon, const struct sgp_message *answer)
{
    events_post(daemon, (struct sgp_event){.type = SGP_EVENT_ANSWER, .message = answer});
}

void inquiry_pulse(void *context, struct sgp_pulse *ret_pulse)
{
    const struct daemon *daemon = context;
    const struct sgp_node_status status = daemon_status(daemon);
    *ret_pulse = (struct sgp_pulse){.state = status.state,
        .round = status.round,
        .next_round = SGP_ROUND_NONE,
        .ends = status.rounds,
        .stop = SGP_ROUND_NONE};
}

/* ---- questions of this node ---- */

static void on_message(struct link *link, const struct sgp_message *message)
{
    struct daemon *daemon = link->context;
    struct sgp_message answer = *message;
    if (link != daemon->inquiry)
        return;
    hang_up(daemon);
    post(daemon, answer.type == SGP_ANSWER ? &answer : NULL);
}

static void on_failed(struct link *link, int code, const char *text)
{
    struct daemon *daemon = link->context;
    (void)code;
    (void)text;
    if (link != daemon->inquiry)
        return;
    daemon->inquiry = NULL; /* the link closes by itself */
    post(daemon, NULL);
}

static const struct link_events inquiry_events = {
    .message = on_message,
    .failed = on_failed,
};

static void on_dialled(void *context, uint32_t peer, struct link *link, int code, const char *text)
{
    struct daemon *daemon = context;
    (void)peer;
    (void)code;
    (void)text;
    if (link == NULL) {
        post(daemon, NULL);
        return;
    }
    link->events = &inquiry_events;
    link->context = daemon;
    daemon->inquiry = link;
    struct sgp_message message = {.type = SGP_INQUIRE, .inquire = daemon->question};
    inquiry_pulse(daemon, &message.pulse);
    link_send(link, &message);
}

void inquiry_init(struct daemon *daemon)
{
    const struct dialer_events events = {
        .context = daemon, .tls = trust_dialling, .dialled = on_dialled};
    dialer_init(&daemon->inquirer, &daemon->loop, &events);
}

void inquiry_ask(struct daemon *daemon, uint32_t peer, const struct sgp_inquire *question)
{
    inquiry_close(daemon);
    daemon->question = *question;
    (void)snprintf(daemon->question_source, SGP_NAME_BYTES, "%s", question->source);
    (void)snprintf(daemon->question_target, SGP_NAME_BYTES, "%s", question->target);
    daemon->question.source = daemon->question_source;
    daemon->question.target = daemon->question_target;
    daemon->unasked =
        !dialer_dial(&daemon->inquirer, peer, &daemon->prepared->topology->nodes[peer]);
}

void inquiry_close(struct daemon *daemon)
{
    dialer_give_up(&daemon->inquirer);
    hang_up(daemon);
}

/* ---- questions of other nodes ---- */

void inquiry_answer(void *context, struct link *link, const struct sgp_message *message)
{
    const struct daemon *daemon = context;
    struct sgp_message answer = {.type = SGP_ANSWER};
    inquiry_pulse(context, &answer.pulse);
    bool answers = trust_answers(daemon, link) &&
                   sgp_node_answer(daemon->node, &message->inquire, &answer.answer);
    link_close(link, answers ? &answer : NULL);
}
