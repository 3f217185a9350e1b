/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that the core knows nothing of. Thread: the loop thread. */
#ifndef SGPD_BACKGROUND_JOBS_H
#define SGPD_BACKGROUND_JOBS_H

#include "state.h"

/* Evaluate x / weight as it is at this place in the queue, then add a row to the history. */
void background_jobs_measure(struct daemon *daemon, sgp_round round, double weight);
/* What a program found of its estimate; the rest likewise. */
void background_jobs_reported(struct daemon *daemon, const struct sgp_evaluation *evaluation);
/* Where the estimate of now lies, for a job that is queued now; NULL: x / weight is it. The slot is
 * that of the node's status. */
float **background_jobs_entered(struct daemon *daemon, uint32_t estimate_slot);
/* Call a function while the estimate, for which the task was given, is the trainer's x. On the
 * compute thread. */
void background_jobs_look(struct task *task, void (*at)(struct task *));
/* A row of the history for what was measured of the estimate of a round. */
void background_jobs_measured(struct daemon *daemon, int code,
    const struct sgp_evaluation *evaluation, sgp_round round, double weight);
/* Read the values of a model file, on any thread. Returns 0, or negative with *error. */
int background_jobs_read(const char *path, float *values, uint64_t count, struct sgp_error *error);
/* Write x / weight, or the kept model that takes its place, to STATE/model.safetensors. */
void background_jobs_save(struct daemon *daemon, sgp_round round, double weight);

/* As `evaluate` of struct view_actions: of the kept model, if that is in the place of the last. */
int background_jobs_evaluate(
    struct daemon *daemon, view_evaluated done, void *argument, struct sgp_error *error);

/* Fill in evaluate, estimate and predict. They may refuse: -EBUSY, -ENOMEM or SGP_E_STATE. */
void background_jobs_offer(struct view_actions *actions);

#endif
