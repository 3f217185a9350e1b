/* SPDX-License-Identifier: Apache-2.0 */
/* A job of the compute thread with its arguments and results. They are made beforehand: as many as
 * the core can have under way, and TASK_CHORES_MAX for onlookers.
 *
 * Thread: take and give on the loop thread; in between the fields belong to whoever has the job. */
#ifndef SGPD_TASK_H
#define SGPD_TASK_H

#include "state.h"

#include <stdatomic.h>

#define TASK_CHORES_MAX 16u /* jobs for onlookers at one time: -EBUSY beyond */

struct task {
    struct job job; /* first, so that either pointer is the other */
    struct task *next;
    struct daemon *daemon;
    struct sgp_trainer *trainer;

    struct sgp_work work; /* of the core */
    atomic_bool enough;   /* of TRAIN: set by the loop thread, it takes no further step */

    /* chores, and those of a program */
    double weight;
    sgp_round round;
    float *vector;   /* an estimate */
    float **entered; /* where the snapshot lies that is the estimate, or NULL: x is */
    bool jumped;     /* hand_out: x is no continuation of what was handed out before */
    uint64_t update; /* take_back: its digest */
    int code;
    struct sgp_evaluation evaluation;
    view_evaluated evaluated;
    view_estimated estimated;
    view_predicted predicted;
    void *argument;
    const float *features;
    uint64_t rows;
    struct save *save;
    struct sgp_checkpoint checkpoint;
    float **kept[SGP_KEPT_MAX]; /* its snapshots */
    struct sgp_error error;
};

/* Make as many as a node of these needs can have under way. Returns 0 or -ENOMEM. */
int tasks_reserve(struct daemon *daemon, const struct sgp_node_needs *needs);
void tasks_finish(struct daemon *daemon);

/* A clean task, or NULL if all are in use. */
struct task *task_take(
    struct daemon *daemon, void (*run)(struct job *), void (*done)(struct job *, bool));
void task_give(struct task *task);

#endif
