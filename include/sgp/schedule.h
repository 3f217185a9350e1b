/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rate and batch as functions of the epoch.
 *
 * A schedule is a pure function of the epoch: no state is saved or resumed. Epochs are fractional
 * and counted from the start of training, warm-up included. With r the learning rate, e the epoch
 * and E the last epoch:
 *
 *   constant       r
 *   step           r * factor^(milestones at or before e)
 *   cosine         r * (1 + cos(pi * e / E)) / 2; 0 from E on
 *                  Loshchilov, Hutter 2017
 *   inverse-sqrt   r * sqrt(warmup / max(e, warmup))
 *                  Vaswani et al. 2017, section 5.3
 *   linear         r * (1 - (1 - final) * e / E); r * final from E on
 *   cyclic         r * (low + (1 - low) * t(e)), the triangle t of that period
 *                  Smith 2017, section 3.1
 *   one-cycle      one period of cyclic, then from r * low to r * final at E
 *                  Smith, Topin 2018, section 3
 *   growing-batch  r. The batch is multiplied by 1 / factor at each of the first `growths`
 *                  milestones, and r by factor at each later milestone.
 *                  Smith et al. 2018, section 5
 *
 * t(e) rises from 0 to 1 over the first half of each period, and falls back over the second half.
 *
 * Every schedule is multiplied by a warm-up, which rises from `warmup_fraction` to 1 over
 * `warmup_epochs` (Goyal et al. 2017, section 2.2).
 *
 * Any thread. */
#ifndef SGP_SCHEDULE_H
#define SGP_SCHEDULE_H

#include "sgp/status.h"

#define SGP_MILESTONES_MAX 32u
#define SGP_EPOCHS_MAX 1e9

enum sgp_schedule_kind {
    SGP_SCHEDULE_CONSTANT = 1,
    SGP_SCHEDULE_STEP,
    SGP_SCHEDULE_COSINE,
    SGP_SCHEDULE_INVERSE_SQRT,
    SGP_SCHEDULE_LINEAR,
    SGP_SCHEDULE_CYCLIC,
    SGP_SCHEDULE_ONE_CYCLE,
    SGP_SCHEDULE_GROWING_BATCH,
    SGP_SCHEDULE_KINDS = SGP_SCHEDULE_GROWING_BATCH,
};
/* The names of the schedules, in the order of the enum. */
#define SGP_SCHEDULE_WORDS "constant|step|cosine|inverse-sqrt|linear|cyclic|one-cycle|growing-batch"
#define SGP_SCHEDULE_WORDS_BYTES 96u

/* The parameters that a schedule can use beside learning rate and warm-up, as bits. */
enum sgp_schedule_parameter {
    SGP_SCHEDULE_MILESTONES = 1,
    SGP_SCHEDULE_FACTOR = 2,
    SGP_SCHEDULE_GROWTHS = 4,
    SGP_SCHEDULE_FINAL = 8,
    SGP_SCHEDULE_LOW = 16,
    SGP_SCHEDULE_PERIOD = 32,
    SGP_SCHEDULE_END = 64,     /* the last epoch */
    SGP_SCHEDULE_WARMUP = 128, /* a warm-up above 0 */
};

struct sgp_schedule {
    enum sgp_schedule_kind kind;
    double learning_rate;   /* finite, >= 0 */
    double warmup_epochs;   /* 0 = none; at most SGP_EPOCHS_MAX */
    double warmup_fraction; /* factor of the rate at the beginning of the warm-up: 0 to 1 */
    double epochs;          /* END: of training, > 0 and above warmup_epochs */
    double factor;          /* 0 < factor <= 1 */
    double final_fraction;  /* of learning_rate: 0 to 1; one-cycle: at most low_fraction */
    double low_fraction;    /* of learning_rate: 0 to 1 */
    double period_epochs;   /* > 0; one-cycle: at most epochs */
    uint32_t growths;       /* milestones at which the batch grows */
    uint32_t milestone_count;
    double milestones[SGP_MILESTONES_MAX]; /* epochs, above 0, rising; GROWTHS: whole */
};

/* The name of a schedule; static. */
const char *sgp_schedule_word(enum sgp_schedule_kind kind);
/* Whether a schedule uses a parameter. */
bool sgp_schedule_uses(enum sgp_schedule_kind kind, enum sgp_schedule_parameter parameter);
/* The names of all schedules that use a parameter: "step, growing-batch". */
void sgp_schedule_users(enum sgp_schedule_parameter parameter, char text[SGP_SCHEDULE_WORDS_BYTES]);

/* Parse epochs separated by blanks or commas, as in "30 60 80", into milestones and
 * milestone_count. Returns 0 or SGP_E_CONFIG. On failure the schedule is unchanged. */
int sgp_schedule_milestones_parse(
    struct sgp_schedule *schedule, const char *text, struct sgp_error *error);

/* Check that every field that the kind uses is in its range: 0, or SGP_E_CONFIG with *error
 * filled. */
int sgp_schedule_check(const struct sgp_schedule *schedule, struct sgp_error *error);

/* The learning rate at an epoch >= 0 of a checked schedule. */
double sgp_schedule_rate(const struct sgp_schedule *schedule, double epoch);

/* Rows of a step at an epoch >= 0, if training begins with `batch`; at most UINT32_MAX. At
 * SGP_EPOCHS_MAX this is the largest batch of the run. */
uint32_t sgp_schedule_batch(const struct sgp_schedule *schedule, uint32_t batch, double epoch);

/* The position in training after a number of steps. An epoch takes every row once: a step takes
 * `batch` rows, and the last step of an epoch takes the rest. */
struct sgp_schedule_place {
    uint64_t epoch;           /* whole epochs done */
    uint64_t step;            /* steps done in the epoch that follows, from 0 */
    uint64_t steps_per_epoch; /* of that epoch */
    uint32_t batch;           /* of that epoch, at most the rows */
    double done;              /* epochs done, fractional */
    double middle;            /* the epoch in the middle of the next step */
};

/* The position after `steps` steps of a node with rows >= 1, which begins with batch >= 1. */
struct sgp_schedule_place sgp_schedule_find(
    const struct sgp_schedule *schedule, uint64_t rows, uint32_t batch, uint64_t steps);

/* How many steps such a node takes in the first `epochs` epochs, at most SGP_EPOCHS_MAX. */
uint64_t sgp_schedule_steps(
    const struct sgp_schedule *schedule, uint64_t rows, uint32_t batch, uint64_t epochs);

#endif
