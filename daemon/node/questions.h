/* SPDX-License-Identifier: Apache-2.0 */
/* What onlookers ask of the program that has the model: to measure its estimate, or to apply it to
 * rows. One question is out at a time; rows travel in files of float32, as descriptors
 * (docs/ATTACH.md).
 *
 * Each asker is told exactly once, on the loop thread, as view.h says. Nothing from the program is
 * trusted: a file that is too short, or no memory, is a failed answer. Thread: the loop thread. */
#ifndef SGPD_QUESTIONS_H
#define SGPD_QUESTIONS_H

#include "control/control.h"
#include "util/figures.h"

#include "sgp/attach.h"

struct question {
    view_evaluated evaluated; /* or */
    view_predicted predicted;
    void *argument;
    const float *features; /* rows x columns, of whoever asked */
    uint64_t rows;
    uint32_t columns;
};

struct questions {
    struct waiting *first;
    struct figures *figures; /* what is measured goes there too */
    uint64_t number;         /* of the last that was asked, in this connection, */
    sgp_round round;         /* of the estimate that it was asked of, */
    bool out;                /* and it is not answered yet */
};

/* At the end of the line. Returns 0 or -ENOMEM. */
int questions_add(struct questions *questions, const struct question *question);

/* Whether one is to be asked. */
bool questions_wait(const struct questions *questions);

/* The first question, and its descriptor or -1. Returns 0, or -errno: no memory, it was failed. */
int questions_ask(struct questions *questions, sgp_round round, struct sgp_attach_frame *ret_frame,
    int *ret_descriptor);

/* An answer, and its descriptor or -1. A late one is ignored. 0, or SGP_E_PROTOCOL: not asked. */
int questions_take(
    struct questions *questions, const struct sgp_attach_frame *frame, int descriptor);

/* Nobody will answer: all are told so. The next program is asked from 1 again. */
void questions_fail(struct questions *questions, int code, const char *why);

#endif
