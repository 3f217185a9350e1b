/* SPDX-License-Identifier: Apache-2.0 */
/* Questions and answers; see pulls.h. What is sent waits for room in the ring of its link, so a
 * tick sends more. */
#include "pulls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct question {
    LIST_ENTRY(question) next;
    struct pulls *pulls;
    enum sgp_subject subject;
    uint32_t peer;
    char target[SGP_NAME_BYTES];
    struct link *link; /* NULL: being dialled */
    bool calls;        /* the peer is to ask in its turn; */
    bool called;       /* it was told so */
    sgp_time began, heard;
    struct sgp_arriving arriving;
    uint32_t sent, count;
    struct sgp_bulletin *heads; /* as they were when the question began */
};

struct answer {
    LIST_ENTRY(answer) next;
    struct pulls *pulls;
    enum sgp_subject subject;
    struct link *link;
    sgp_time began, heard;
    uint32_t peer;
    char source[SGP_NAME_BYTES];
    uint32_t heads; /* that must still come */
    bool ahead;     /* one of them names what this node lacks */
    struct sgp_answering *answering;
    bool said; /* all of it */
};

static const struct sgp_pulse pulse = {
    .state = SGP_NODE_JOINING, .next_round = SGP_ROUND_NONE, .stop = SGP_ROUND_NONE};

static void send_bulletin(struct link *link, const struct sgp_bulletin *bulletin)
{
    const struct sgp_message message = {
        .type = SGP_BULLETIN, .pulse = pulse, .bulletin = *bulletin};
    link_send(link, &message);
}

static void send_question(const struct question *question)
{
    const struct pulls *pulls = question->pulls;
    struct sgp_message message = {.type = SGP_PULL,
        .pulse = pulse,
        .pull = {.source = pulls->name,
            .target = question->target,
            .heads = question->count,
            .subject = question->subject}};
    if (question->subject == SGP_SUBJECT_MEASURES && pulls->events.wish != NULL)
        pulls->events.wish(pulls->events.context, &message.pull);
    link_send(question->link, &message);
}

/* The answer is complete. */
static void send_end(const struct answer *answer)
{
    const struct sgp_message message = {.type = SGP_PULL,
        .pulse = pulse,
        .pull = {
            .source = answer->pulls->name, .target = answer->source, .subject = answer->subject}};
    link_send(answer->link, &message);
}

static void on_tick(uv_timer_t *timer);

static void arm(struct pulls *pulls)
{
    if (!uv_is_active((uv_handle_t *)&pulls->timer))
        (void)uv_timer_start(&pulls->timer, on_tick, 0, PULLS_TICK_MS);
}

/* ---- questions ---- */

static enum sgp_tls dial_tls(void *context, uint32_t peer, struct sgp_cipher_settings *ret_settings)
{
    struct pulls *pulls = context;
    return pulls->events.tls(pulls->events.context, peer, ret_settings);
}

static void free_question(struct question *question)
{
    LIST_REMOVE(question, next);
    sgp_arriving_drop(&question->arriving);
    free(question->heads);
    free(question);
}

static void end_question(struct question *question, const char *why)
{
    struct pulls *pulls = question->pulls;
    const enum sgp_subject subject = question->subject;
    const uint32_t peer = question->peer;
    struct link *link = question->link;
    free_question(question);
    if (link != NULL && link_stands(link))
        link_close(link, NULL);
    pulls->events.ended(pulls->events.context, subject, peer, why);
}

static void on_question_failed(struct link *link, int code, const char *text)
{
    (void)code;
    end_question(link->context, text);
}

/* The peer has said all, or asks in its turn. */
static void on_pull(struct question *question, const struct sgp_message *message)
{
    struct pulls *pulls = question->pulls;
    struct link *link = question->link;
    const struct sgp_message call = {.type = SGP_CALL,
        .pulse = pulse,
        .call = {.source = question->target, .target = pulls->name}};
    if (question->calls && !question->called) {
        question->called = true;
        link_send(link, &call);
    } else if (question->called) {
        question->link = NULL;
        end_question(question, NULL);
        pulls_answer(pulls, link, message);
    } else {
        end_question(question, NULL);
    }
}

static void on_reply(struct link *link, const struct sgp_message *message)
{
    struct question *question = link->context;
    struct pulls *pulls = question->pulls;
    const enum sgp_subject subject = question->subject;
    struct sgp_survey *survey = pulls->surveys[subject];
    question->heard = (sgp_time)uv_hrtime();
    if (message->type == SGP_PULL) {
        on_pull(question, message);
        return;
    }
    const int code = message->type == SGP_BULLETIN
                         ? sgp_survey_piece(survey, &question->arriving, &message->bulletin)
                         : SGP_E_PROTOCOL;
    if (message->type == SGP_GOODBYE)
        end_question(question, message->goodbye.text);
    else if (code < 0)
        end_question(question, sgp_strerror(code));
    if (code > 0)
        pulls->events.changed(pulls->events.context, subject);
}

static const struct link_events question_events = {
    .message = on_reply,
    .failed = on_question_failed,
};

static struct question *find_question(const struct pulls *pulls, uint32_t peer)
{
    struct question *question;
    LIST_FOREACH (question, &pulls->questions, next)
        if (question->peer == peer)
            return question;
    return NULL;
}

static bool has_place(const struct pulls *pulls, enum sgp_subject subject)
{
    const struct question *question;
    uint32_t count = 0;
    LIST_FOREACH (question, &pulls->questions, next)
        count += question->subject == subject;
    return pulls->questions_max[subject] == 0 || count < pulls->questions_max[subject];
}

/* What this node holds now. */
static bool list_heads(struct question *question)
{
    const struct sgp_survey *survey = question->pulls->surveys[question->subject];
    struct sgp_survey_cursor cursor = {0};
    uint32_t most = sgp_survey_heads(survey);
    most = most < SGP_PULL_HEADS_MAX ? most : SGP_PULL_HEADS_MAX;
    question->heads = calloc(most > 0 ? most : 1, sizeof *question->heads);
    if (question->heads == NULL)
        return false;
    while (question->count < most &&
           sgp_survey_next_head(survey, &cursor, &question->heads[question->count]))
        question->count++;
    return true;
}

/* Ask on this link. */
static void begin_question(struct question *question, struct link *link)
{
    struct pulls *pulls = question->pulls;
    link->events = &question_events;
    link->context = question;
    question->link = link;
    question->began = question->heard = (sgp_time)uv_hrtime();
    if (!list_heads(question)) {
        end_question(question, "out of memory");
        return;
    }
    arm(pulls);
    send_question(question);
}

static void on_dialled(void *context, uint32_t peer, struct link *link, int code, const char *text)
{
    struct question *question = find_question(context, peer);
    (void)code;
    if (link == NULL)
        end_question(question, text);
    else
        begin_question(question, link);
}

static void add_question(struct pulls *pulls, struct question *question, enum sgp_subject subject,
    uint32_t peer, const char *target)
{
    question->pulls = pulls;
    question->subject = subject;
    question->peer = peer;
    (void)snprintf(question->target, sizeof question->target, "%s", target);
    LIST_INSERT_HEAD(&pulls->questions, question, next);
}

bool pulls_ask(struct pulls *pulls, enum sgp_subject subject, uint32_t peer,
    const struct sgp_topology_node *node, bool calls)
{
    sgp_assert(pulls->surveys[subject] != NULL);
    if (find_question(pulls, peer) != NULL || !has_place(pulls, subject))
        return false;
    struct question *question = calloc(1, sizeof *question);
    if (question == NULL || !dialer_dial(&pulls->dialer, peer, node)) {
        free(question);
        return false;
    }
    question->calls = calls;
    add_question(pulls, question, subject, peer, node->name);
    return true;
}

/* ---- answers ---- */

static void free_answer(struct answer *answer)
{
    LIST_REMOVE(answer, next);
    answer->pulls->answer_count--;
    sgp_answering_destroy(answer->answering);
    free(answer);
}

static void end_answer(struct answer *answer)
{
    struct link *link = answer->link;
    free_answer(answer);
    if (link_stands(link))
        link_close(link, NULL);
}

static void on_answer_failed(struct link *link, int code, const char *text)
{
    (void)code;
    (void)text; /* the asker closes when it has all */
    free_answer(link->context);
}

/* Ask a node that cannot be dialled on its own connection, unless a question is under way. */
static void ask_back(struct pulls *pulls, enum sgp_subject subject, uint32_t peer,
    const char *target, struct link *link)
{
    const struct pulls_events *events = &pulls->events;
    const bool asks = pulls->surveys[subject] != NULL && peer < pulls->topology->node_count &&
                      !sgp_topology_is_dialled(pulls->topology, peer) &&
                      find_question(pulls, peer) == NULL && has_place(pulls, subject) &&
                      (events->asks == NULL || events->asks(events->context, subject, peer));
    struct question *question = asks ? calloc(1, sizeof *question) : NULL;
    if (question == NULL) {
        link_close(link, NULL);
        return;
    }
    add_question(pulls, question, subject, peer, target);
    begin_question(question, link);
}

/* The asker has its answer, and is to be asked. */
static void turn(struct answer *answer)
{
    struct pulls *pulls = answer->pulls;
    struct link *link = answer->link;
    const enum sgp_subject subject = answer->subject;
    const uint32_t peer = answer->peer;
    char source[SGP_NAME_BYTES];
    (void)snprintf(source, sizeof source, "%s", answer->source);
    free_answer(answer);
    ask_back(pulls, subject, peer, source, link);
}

static void on_head(struct link *link, const struct sgp_message *message)
{
    struct answer *answer = link->context;
    answer->heard = (sgp_time)uv_hrtime();
    if (message->type == SGP_CALL && answer->said) {
        turn(answer);
        return;
    }
    if (message->type != SGP_BULLETIN || answer->heads == 0) {
        end_answer(answer);
        return;
    }
    answer->ahead |= sgp_answering_holds(answer->answering, &message->bulletin);
    if (--answer->heads > 0)
        return;
    arm(answer->pulls);
    if (answer->ahead && answer->pulls->events.ahead != NULL)
        answer->pulls->events.ahead(answer->pulls->events.context, answer->subject, answer->peer);
}

static const struct link_events answer_events = {
    .message = on_head,
    .failed = on_answer_failed,
};

static void refuse(struct pulls *pulls, struct link *link, const char *text)
{
    const struct sgp_message goodbye = {.type = SGP_GOODBYE,
        .pulse = pulse,
        .goodbye = {.reason = SGP_REASON_PROTOCOL, .text = sgp_reason_text(SGP_REASON_PROTOCOL)}};
    listener_log(pulls->listener, link, text);
    link_close(link, &goodbye);
}

static bool is_late(sgp_time since)
{
    return (sgp_time)uv_hrtime() - since > PULLS_PATIENCE_NS;
}

/* Make room for an answer to this peer, whose earlier one it replaces. */
static bool make_room(struct pulls *pulls, uint32_t peer)
{
    struct answer *answer, *oldest = NULL, *earlier = NULL;
    LIST_FOREACH (answer, &pulls->answers, next) {
        if (answer->peer == peer)
            earlier = answer;
        if (answer->said || answer->heads > 0 || is_late(answer->began))
            oldest = answer;
    }
    if (earlier != NULL || pulls->answer_count < PULLS_ANSWERS)
        oldest = earlier;
    else if (oldest == NULL)
        return false;
    if (oldest != NULL)
        end_answer(oldest);
    return true;
}

void pulls_answer(struct pulls *pulls, struct link *link, const struct sgp_message *message)
{
    const struct sgp_pull *pull = &message->pull;
    struct sgp_survey *survey = pull->subject < SGP_SUBJECTS ? pulls->surveys[pull->subject] : NULL;
    char text[SGP_TEXT_BYTES];
    const int64_t peer =
        pulls->events.admits(pulls->events.context, pull->subject, link, pull->source, text);
    if (peer < 0 || survey == NULL) {
        refuse(pulls, link,
            peer < 0 ? text : "it asks for bulletins that this node does not collect now");
        return;
    }
    if (pull->subject == SGP_SUBJECT_MEASURES && pull->wish > 0 && pulls->events.wished != NULL)
        pulls->events.wished(pulls->events.context, (uint32_t)peer, pull);
    if (!make_room(pulls, (uint32_t)peer)) {
        link_close(link, NULL);
        return;
    }
    struct answer *answer = calloc(1, sizeof *answer);
    struct sgp_answering *answering = sgp_answering_create(survey);
    if (answer == NULL || answering == NULL) {
        free(answer);
        sgp_answering_destroy(answering);
        refuse(pulls, link, "out of memory");
        return;
    }
    *answer = (struct answer){.pulls = pulls,
        .subject = (enum sgp_subject)pull->subject,
        .link = link,
        .began = (sgp_time)uv_hrtime(),
        .heard = (sgp_time)uv_hrtime(),
        .peer = (uint32_t)peer,
        .heads = pull->heads,
        .answering = answering};
    (void)snprintf(answer->source, sizeof answer->source, "%s", pull->source);
    LIST_INSERT_HEAD(&pulls->answers, answer, next);
    pulls->answer_count++;
    link->events = &answer_events;
    link->context = answer;
    arm(pulls);
}

void pulls_called(struct pulls *pulls, struct link *link, const struct sgp_message *message)
{
    const char *caller = message->call.target;
    char text[SGP_TEXT_BYTES];
    const int64_t peer =
        pulls->events.admits(pulls->events.context, SGP_SUBJECT_SCALING, link, caller, text);
    if (peer < 0)
        refuse(pulls, link, text);
    else
        ask_back(pulls, SGP_SUBJECT_SCALING, (uint32_t)peer, caller, link);
}

/* ---- sending, and the end of patience ---- */

static bool has_room(const struct link *link, uint32_t sent)
{
    return sent < PULLS_BURST && link_stands(link) && link_room(link) >= 2 * SGP_WIRE_FRAME_MAX;
}

/* Returns whether there is more to send. A failure of the link frees the question, and ends
 * `link_stands`. */
static bool send_heads(struct question *question)
{
    struct link *link = question->link;
    if (link == NULL)
        return false;
    for (uint32_t sent = 0; has_room(link, sent) && question->sent < question->count; sent++)
        send_bulletin(link, &question->heads[question->sent++]);
    return link_stands(link) && question->sent < question->count;
}

static bool send_pieces(struct answer *answer)
{
    struct link *link = answer->link;
    struct sgp_bulletin piece;
    char text[SGP_BULLETIN_PIECE_MAX + 1];
    if (answer->heads > 0 || answer->said)
        return false;
    for (uint32_t sent = 0; has_room(link, sent); sent++) {
        if (!sgp_answering_next(answer->answering, &piece, text)) {
            answer->said = true;
            send_end(answer);
            return false;
        }
        answer->heard = (sgp_time)uv_hrtime();
        send_bulletin(link, &piece);
    }
    return link_stands(link);
}

/* It keeps a place that another question may need. */
static bool is_slow(const struct question *question)
{
    const sgp_time granted =
        PULLS_PATIENCE_NS + question->arriving.received * (SGP_SECOND / PULLS_BYTES_PER_SECOND);
    return (sgp_time)uv_hrtime() - question->began > granted &&
           !has_place(question->pulls, question->subject);
}

static void on_tick(uv_timer_t *timer)
{
    struct pulls *pulls = timer->data;
    struct question *question = LIST_FIRST(&pulls->questions), *next_question;
    for (; question != NULL; question = next_question) {
        next_question = LIST_NEXT(question, next);
        if (question->link != NULL && is_late(question->heard))
            end_question(question, "it has not answered for 10 s");
        else if (question->link != NULL && is_slow(question))
            end_question(question, "it answers too slowly, and others wait to be asked");
        else
            (void)send_heads(question);
    }
    struct answer *answer = LIST_FIRST(&pulls->answers), *next_answer;
    for (; answer != NULL; answer = next_answer) {
        next_answer = LIST_NEXT(answer, next);
        if (is_late(answer->heard))
            end_answer(answer);
        else
            (void)send_pieces(answer);
    }
    if (LIST_EMPTY(&pulls->questions) && LIST_EMPTY(&pulls->answers))
        (void)uv_timer_stop(timer);
}

/* ---- the whole ---- */

uint64_t pulls_stamp(void)
{
    uv_timeval64_t now;
    (void)uv_gettimeofday(&now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
}

void pulls_open(struct pulls *pulls, uv_loop_t *loop, const char *name, struct listener *listener,
    const struct pulls_events *events)
{
    const struct dialer_events dials = {.context = pulls, .tls = dial_tls, .dialled = on_dialled};
    *pulls = (struct pulls){.events = *events, .name = name, .listener = listener};
    dialer_init(&pulls->dialer, loop, &dials);
    (void)uv_timer_init(loop, &pulls->timer);
    pulls->timer.data = pulls;
}

void pulls_use(struct pulls *pulls, const struct sgp_topology *topology)
{
    pulls->topology = topology;
    struct question *question = LIST_FIRST(&pulls->questions), *next_question;
    struct answer *answer = LIST_FIRST(&pulls->answers), *next_answer;
    dialer_give_up(&pulls->dialer);
    for (; question != NULL; question = next_question) {
        struct link *link = question->link;
        next_question = LIST_NEXT(question, next);
        free_question(question);
        if (link != NULL)
            link_close(link, NULL);
    }
    for (; answer != NULL; answer = next_answer) {
        next_answer = LIST_NEXT(answer, next);
        end_answer(answer);
    }
}

void pulls_close(struct pulls *pulls)
{
    pulls_use(pulls, NULL);
    uv_close((uv_handle_t *)&pulls->timer, NULL);
}
