/* SPDX-License-Identifier: Apache-2.0 */
/* The program's part in decisions of all programs (facts.h); see program_inside.h. */
#include "program_inside.h"

#include <errno.h>
#include <string.h>

static void send_words(struct program *program, uint32_t count)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_TOLD, .size = count};
    memcpy(frame.text, program->words, sizeof frame.text);
    program->words[0] = '\0';
    program_say(program, &frame);
}

/* A restarted member may need the round of a node whose program waits in a decision, for its own
 * first turn and word. So that node pauses after this time. Its turn is not lost. */
#define DECISION_PATIENCE_MS 5000
/* Before the first step all nodes may need each other's rounds, and none has work to lose. */
#define FIRST_PATIENCE_MS 500

static void on_undecided(uv_timer_t *timer)
{
    struct program *program = timer->data;
    if (!program->daemon->facts.asks || program->holds || program->daemon->programless)
        return;
    program->undecided = true;
    program_post(program, SGP_EVENT_PAUSE, 0);
}

void decision_end(struct program *program)
{
    (void)uv_timer_stop(&program->decision);
    bool resumes = program->undecided && !program->holds && !program->daemon->programless;
    program->undecided = false;
    if (resumes && !program->daemon->ending && !program_is_over(program_state(program)))
        program_post(program, SGP_EVENT_RESUME, 0);
}

/* Send the program as many words as one frame can carry. */
static void decided(
    struct daemon *daemon, const char *author, const char *text, uint32_t index, uint32_t count)
{
    struct program *program = daemon->program;
    size_t used = strlen(program->words), more = strlen(author) + strlen(text) + 2;
    if (used + more + 1 > sizeof program->words) {
        send_words(program, count);
        used = 0;
    }
    (void)snprintf(program->words + used, sizeof program->words - used, "%s %s\n", author, text);
    if (index + 1 < count)
        return;
    send_words(program, count);
    decision_end(program);
}

static void missed(struct daemon *daemon)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_TOLD, .code = -EALREADY};
    program_say(daemon->program, &frame);
    decision_end(daemon->program);
}

void decision_on_tell(struct program *program, const struct sgp_attach_frame *frame)
{
    struct sgp_error error = {0};
    struct sgp_attach_frame answer = {.type = SGP_ATTACH_TOLD};
    bool first = (frame->flags & SGP_ATTACH_FIRST) != 0;
    program->daemon->facts.decided = decided;
    program->daemon->facts.missed = missed;
    if (frame->code != 0) {
        answer.code = -EAGAIN;
        if (!facts_missing(program->daemon, answer.text, sizeof answer.text))
            return; /* all words were sent meanwhile */
        program->daemon->facts.asks = false;
        decision_end(program);
        program_say(program, &answer);
        return;
    }
    size_t length = strlen(frame->text), printable = 0;
    while (printable < length && frame->text[printable] >= ' ' && frame->text[printable] <= '~')
        printable++;
    if (length == 0 || length >= SGP_FACT_BYTES || printable < length) {
        program->lose(program, "its word in a decision is not 1 to 199 printable characters");
        return;
    }
    uint64_t patience = first ? FIRST_PATIENCE_MS : DECISION_PATIENCE_MS;
    (void)uv_timer_start(&program->decision, on_undecided, patience, 0);
    answer.code = facts_tell(program->daemon, frame->text, first, &error);
    (void)snprintf(answer.text, sizeof answer.text, "%.370s", error.text);
    if (answer.code < 0) {
        decision_end(program);
        program_say(program, &answer);
    }
}
