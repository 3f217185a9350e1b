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

    uint32_t slot;
    uint32_t steps;
    bool computes;      /* visit */
    atomic_bool enough; /* train: set by the loop thread, it takes no further step */
    double weight;
    double factor;
    struct sgp_slice slice;
    sgp_round round;
    sgp_round turn; /* train: rounds that train, before this one */
    float *vector;  /* an estimate */
    /* Where the vectors lie, to be looked at when the job is done: one before it may exchange them. */
    float **place;   /* of the snapshot or share */
    float **entered; /* chores: of the snapshot that is the estimate, or NULL: x is */
    float **
        own; /* absorb: of the snapshot to compare with, or NULL; compensate: of the copy; visit: of the token */
    struct sgp_comparison comparison; /* absorb: with it, */
    bool compared;                    /* if it is */

    int code;
    enum sgp_publish purpose; /* publish, */
    bool looks;               /* publish: the snapshot is measured, too */
    struct sgp_measure own_measure;
    struct sgp_training training;
    struct sgp_evaluation evaluation;
    struct sgp_sketch sketch;

    /* chores */
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
