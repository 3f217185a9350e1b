/* SPDX-License-Identifier: Apache-2.0 */
/* The survey of a scaling, for the files that make it:
 *
 *   awaiting_scaling.c           the wait from its beginning to its end, and what onlookers see
 *   awaiting_scaling_file.c      the topology file, and another one
 *   awaiting_scaling_questions.c questions to neighbours, and answers to theirs
 *   awaiting_scaling_survey.c    what has been told, and the scaling that follows
 *
 * Each calls those below it. Thread: the loop thread, which is the only thread. */
#ifndef SGPD_AWAITING_SCALING_INSIDE_H
#define SGPD_AWAITING_SCALING_INSIDE_H

#include "awaiting.h"
#include "net/callers.h"
#include "net/listener.h"
#include "net/pulls.h"
#include "setup/prepare.h"

struct survey_peer {
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
    struct survey_peer *peers;   /* for each node of the file */
};

/* ---- what has been told (awaiting_scaling_survey.c) ---- */

/* What members have still to send; NULL: nothing. */
const char *awaiting_scaling_word(const struct awaiting_scaling *awaiting);

/* The nodes that it waits for, separated by commas: the first, or all that fit. */
void awaiting_scaling_list(
    const struct awaiting_scaling *awaiting, char *text, size_t bytes, bool all);

/* The survey has changed: tell its stage, compute the scaling, keep it, end the wait. */
void awaiting_scaling_changed(struct awaiting_scaling *awaiting);

/* ---- questions and answers (awaiting_scaling_questions.c) ---- */

/* Listen, and ask from now on. 0, or negative with *error; then nothing is open. */
int awaiting_scaling_open(struct awaiting_scaling *awaiting, struct sgp_error *error);
/* The loop must run until the handles are closed. */
void awaiting_scaling_close(struct awaiting_scaling *awaiting);

/* ---- the topology file (awaiting_scaling_file.c) ---- */

/* Tell by the file of the survey's place at the start; the rows are read. 0, or negative with
 * *error. */
int awaiting_scaling_begin(struct awaiting_scaling *awaiting, struct sgp_error *error);

/* Read the file again, and go on with it. As `reload` of struct view_actions. */
int awaiting_scaling_reload(void *context, struct view_reload *ret_reload, struct sgp_error *error);

#endif
