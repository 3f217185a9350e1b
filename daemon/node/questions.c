/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a program, and its answers; see questions.h. */
#include "questions.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct waiting {
    struct question question;
    struct waiting *next;
};

/* ---- the queue ---- */

int questions_add(struct questions *questions, const struct question *question)
{
    struct waiting *waiting = calloc(1, sizeof *waiting), **end = &questions->first;
    if (waiting == NULL)
        return -ENOMEM;
    waiting->question = *question;
    while (*end != NULL)
        end = &(*end)->next;
    *end = waiting;
    return 0;
}

bool questions_wait(const struct questions *questions)
{
    return questions->first != NULL && !questions->out;
}

/* A copy of the first question, which is removed before any callback. */
static struct question take_first(struct questions *questions)
{
    struct waiting *first = questions->first;
    struct question question = first->question;
    questions->first = first->next;
    questions->out = false;
    free(first);
    return question;
}

static void fail(const struct question *question, const struct sgp_error *error)
{
    if (question->predicted != NULL)
        question->predicted(question->argument, error, NULL, 0, 0);
    else
        question->evaluated(question->argument, error, NULL, NULL, 0, false);
}

void questions_fail(struct questions *questions, int code, const char *why)
{
    struct sgp_error error = {.code = code};
    (void)snprintf(error.text, sizeof error.text, "%s", why);
    questions->number = 0;
    while (questions->first != NULL) {
        struct question question = take_first(questions);
        fail(&question, &error);
    }
}

/* ---- asking ---- */

/* Write the rows to a separate file, which no process can change. Returns a descriptor, or
 * -errno. */
static int write_rows(const struct question *question)
{
    size_t bytes = question->rows * question->columns * sizeof(float), done = 0;
    int descriptor = memfd_create("rows", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0)
        return -errno;
    while (done < bytes) {
        ssize_t written = write(descriptor, (const char *)question->features + done, bytes - done);
        if (written < 0) {
            int code = -errno;
            (void)close(descriptor);
            return code;
        }
        done += (size_t)written;
    }
    (void)fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    return descriptor;
}

int questions_ask(struct questions *questions, sgp_round round, struct sgp_attach_frame *ret_frame,
    int *ret_descriptor)
{
    const struct question *question = &questions->first->question;
    bool predicts = question->predicted != NULL;
    int descriptor = predicts ? write_rows(question) : -1;
    if (predicts && descriptor < 0) {
        struct question first = take_first(questions);
        fail(&first, &(struct sgp_error){.code = descriptor});
        return descriptor;
    }
    questions->out = true;
    questions->round = round;
    *ret_frame =
        (struct sgp_attach_frame){.type = predicts ? SGP_ATTACH_PREDICT : SGP_ATTACH_EVALUATE,
            .turn = ++questions->number,
            .rows = question->rows,
            .columns = question->columns};
    *ret_descriptor = descriptor;
    return 0;
}

/* ---- answers ---- */

static void take_evaluation(struct questions *questions, const struct question *question,
    const struct sgp_attach_frame *frame)
{
    struct sgp_error error = {0};
    const struct sgp_evaluation found = {
        .samples = frame->rows, .loss = frame->test_loss, .accuracy = frame->test_accuracy};
    if (isnan(found.loss) && isnan(found.accuracy)) {
        (void)sgp_fail(&error, SGP_E_STATE,
            "the program found neither loss nor accuracy; on_evaluate returns test_loss or "
            "test_accuracy");
        fail(question, &error);
        return;
    }
    struct sgp_evaluation kept = found; /* a program may omit the number of rows */
    kept.samples = kept.samples > 0 ? kept.samples : 1;
    figures_tested(questions->figures, 0, &kept);
    question->evaluated(question->argument, &error, &found, NULL, questions->round, false);
}

/* The file is read, not mapped, because a file that shrinks causes a short read. It must be in
 * memory: only memory has seals, and a disk could block. */
static int read_outputs(int descriptor, float *values, uint64_t count, struct sgp_error *error)
{
    size_t bytes = count * sizeof *values, done = 0;
    while (descriptor >= 0 && fcntl(descriptor, F_GET_SEALS) >= 0 && done < bytes) {
        ssize_t got = pread(descriptor, (char *)values + done, bytes - done, (off_t)done);
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done == bytes ? 0
                         : sgp_fail(error, SGP_E_STATE,
                               "the program's outputs are no memfd of %zu bytes", bytes);
}

static void take_prediction(
    const struct question *question, const struct sgp_attach_frame *frame, int descriptor)
{
    struct sgp_error error = {0};
    uint64_t count = frame->rows * frame->columns;
    float *outputs = NULL;
    if (frame->rows != question->rows || frame->columns == 0)
        (void)sgp_fail(&error, SGP_E_STATE,
            "the program answered with %llu rows of %u outputs; asked for were %llu rows",
            (unsigned long long)frame->rows, frame->columns, (unsigned long long)question->rows);
    else if (count > CONTROL_OUTPUTS_MAX)
        (void)sgp_fail(&error, SGP_E_STATE,
            "%llu rows of %u outputs are more than %u in all; send fewer at a time",
            (unsigned long long)frame->rows, frame->columns, CONTROL_OUTPUTS_MAX);
    else if ((outputs = malloc(count * sizeof *outputs)) == NULL)
        error.code = -ENOMEM;
    else
        (void)read_outputs(descriptor, outputs, count, &error);
    if (error.code < 0)
        fail(question, &error);
    else
        question->predicted(question->argument, &error, outputs, frame->rows, frame->columns);
    free(outputs);
}

int questions_take(
    struct questions *questions, const struct sgp_attach_frame *frame, int descriptor)
{
    bool predicts = frame->type == SGP_ATTACH_PREDICTED;
    if (frame->turn == 0 || frame->turn > questions->number)
        return SGP_E_PROTOCOL;
    if (!questions->out || frame->turn != questions->number)
        return 0; /* sent twice because of a signal */
    if (predicts != (questions->first->question.predicted != NULL))
        return SGP_E_PROTOCOL;
    struct question question = take_first(questions);
    if (frame->code < 0) {
        struct sgp_error error = {0};
        (void)sgp_fail(&error, SGP_E_STATE, "the program could not: %s", frame->text);
        fail(&question, &error);
    } else if (predicts) {
        take_prediction(&question, frame, descriptor);
    } else {
        take_evaluation(questions, &question, frame);
    }
    return 0;
}
