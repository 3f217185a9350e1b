/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate as a function of the epoch.
 *
 * Warm-up first (Goyal et al. 2017): over `warmup_epochs` the rate grows from 0 in proportion to the
 * epoch, times what the schedule itself says there. A pure function of the epoch: nothing to save,
 * nothing to resume. Epochs are fractional and counted from the start of training, warm-up included.
 *
 * Any thread. */
#ifndef SGP_SCHEDULE_H
#define SGP_SCHEDULE_H

#include "sgp/status.h"

#define SGP_MILESTONES_MAX 32u
#define SGP_EPOCHS_MAX 1e9

enum sgp_schedule_kind {
    SGP_SCHEDULE_CONSTANT = 1, /* learning_rate */
    SGP_SCHEDULE_STEP,         /* learning_rate * factor^(milestones at or before the epoch) */
    SGP_SCHEDULE_COSINE /* learning_rate * (1 + cos(pi * epoch / epochs)) / 2; 0 from there on */
};

struct sgp_schedule {
    enum sgp_schedule_kind kind;
    double learning_rate; /* finite, >= 0 */
    double warmup_epochs; /* 0 = none; at most SGP_EPOCHS_MAX */
    double epochs;        /* cosine: the end of training, > 0 and above warmup_epochs */
    double factor;        /* step: 0 < factor <= 1 */
    uint32_t milestone_count;
    double milestones[SGP_MILESTONES_MAX]; /* step: epochs, above 0, strictly rising */
};

/* Epochs separated by blanks or commas, as in "30 60 80", into milestones and milestone_count.
 * Returns 0 or SGP_E_CONFIG; on failure the schedule is unchanged. */
SGP_API int sgp_schedule_milestones_parse(
    struct sgp_schedule *schedule, const char *text, struct sgp_error *error);

/* Whether every field that the kind uses is in its range: 0, or SGP_E_CONFIG with *error filled. */
SGP_API int sgp_schedule_check(const struct sgp_schedule *schedule, struct sgp_error *error);

/* The learning rate at an epoch >= 0 of a checked schedule. */
SGP_API double sgp_schedule_rate(const struct sgp_schedule *schedule, double epoch);

#endif
