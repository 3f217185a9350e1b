/* SPDX-License-Identifier: Apache-2.0 */
/* A job of the compute thread with its arguments and results. Tasks are allocated in advance: as
 * many as the core can have pending, and TASK_BACKGROUND_MAX for users.
 *
 * Thread: taken and returned on the loop thread. In between the fields belong to the thread that
 * has the job. */
#ifndef SGPD_TASK_H
#define SGPD_TASK_H

#include "state.h"

#include <stdatomic.h>

#define TASK_BACKGROUND_MAX 16u /* simultaneous jobs for users; -EBUSY beyond */

struct task {
    struct job job; /* first, so that a pointer to one is a pointer to the other */
    struct task *next;
    struct daemon *daemon;
    struct sgp_trainer *trainer;

    struct sgp_work work; /* of the core */
    atomic_bool enough;   /* of TRAIN: set by the loop thread; no further step begins */

    /* Of background jobs and jobs of a program. task_take_work leaves these as they are. */
    double weight;
    sgp_round round;
    float *vector;   /* an estimate */
    char *file;      /* the file of a kept model, which is read in its place; owned; NULL: none */
    float **entered; /* the snapshot that is the estimate; NULL: x is */
    bool jumped;     /* hand_out: x does not continue what was handed out before */
    uint64_t update; /* take_back: its digest */
    int code;
    struct sgp_evaluation evaluation;
    struct sgp_measures measures; /* of a client's evaluation; zeros: none */
    bool measured;                /* fill the measures */
    view_evaluated evaluated;
    view_estimated estimated;
    view_predicted predicted;
    void *argument;
    const float *features;
    uint64_t rows;
    struct save *save;
    struct sgp_checkpoint checkpoint;
    float **kept[SGP_KEPT_MAX]; /* its snapshots */
    struct sgp_error error;     /* last: task_take does not clear its text */
};

/* Allocate as many tasks as a node of these needs can have pending. Returns 0 or -ENOMEM. */
int tasks_reserve(struct daemon *daemon, const struct sgp_node_needs *needs);
void tasks_finish(struct daemon *daemon);

/* A cleared task, or NULL if all are in use. */
struct task *task_take(
    struct daemon *daemon, void (*run)(struct job *), void (*done)(struct job *, bool));

/* A task for an effect of the core, or NULL. It costs less, for only `work` may be used beside the
 * first members, and the caller sets all of it. */
struct task *task_take_work(
    struct daemon *daemon, void (*run)(struct job *), void (*done)(struct job *, bool));

void task_give(struct task *task);

#endif
