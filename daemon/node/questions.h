/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of users to the program that has the model: measure its estimate, or apply it to rows.
 * One question is pending at a time. Rows are passed as descriptors of files of float32
 * (docs/ATTACH-PROTOCOL.md).
 *
 * Each asker is answered exactly once, on the loop thread, as view.h says. Nothing from the program
 * is trusted: a short file, or no memory, is a failed answer. Thread: the loop thread. */
#ifndef SGPD_QUESTIONS_H
#define SGPD_QUESTIONS_H

#include "control/control.h"
#include "util/figures.h"

#include "sgp/attach.h"

struct question {
    view_evaluated evaluated; /* either this one or the next */
    view_predicted predicted;
    void *argument;
    const float *features; /* rows x columns, owned by the asker */
    uint64_t rows;
    uint32_t columns;
};

struct questions {
    struct waiting *first;
    struct figures *figures; /* also stores the result of a measurement */
    uint64_t number;         /* number of the last question on this connection */
    sgp_round round;         /* round of the estimate that it is about */
    bool out;                /* it is not answered yet */
};

/* Add a question to the end of the queue. Returns 0 or -ENOMEM. */
int questions_add(struct questions *questions, const struct question *question);

/* Whether a question waits to be asked. */
bool questions_wait(const struct questions *questions);

/* The first question, and its descriptor or -1. Returns 0 or -errno. Without memory the question
 * has failed. */
int questions_ask(struct questions *questions, sgp_round round, struct sgp_attach_frame *ret_frame,
    int *ret_descriptor);

/* An answer, and its descriptor or -1. A late answer is ignored. Returns 0, or SGP_E_PROTOCOL:
 * there was no question. */
int questions_take(
    struct questions *questions, const struct sgp_attach_frame *frame, int descriptor);

/* No answer will come: report that to all askers. The next program is asked from number 1 again. */
void questions_fail(struct questions *questions, int code, const char *why);

#endif
