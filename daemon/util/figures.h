/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of this node's training: loss, rows seen, their rate, test figures, the distance of
 * the neighbours' estimates, and whether it diverges. Pure arithmetic. Thread: the loop thread.
 *
 * A loss has no natural scale, so it is compared with two others: that with which training began,
 * and that of a model whose outputs are all zero. A loss far above both has gone wrong, however
 * noisy the rows are. Where training did not begin in this process only the second is known. */
#ifndef SGPD_FIGURES_H
#define SGPD_FIGURES_H

#include "sgp/dataset.h"
#include "sgp/model.h"
#include "sgp/topology.h"
#include "sgp/trainer.h"

#define FIGURES_RATE_NS (2 * SGP_SECOND) /* samples per second: over the latest window of this */
#define FIGURES_DIVERGED 100.0           /* times the greater of these two losses: it diverges */
#define FIGURES_EARLY_SAMPLES 32u /* whose mean loss, or that of the first round, it began with */

struct figures {
    const struct sgp_topology *topology;
    struct sgp_training training; /* the latest; loss NaN before the first */
    struct sgp_evaluation test;   /* the latest; NaN before; loss infinite if it was not finite */
    double zero_loss;             /* of a model whose outputs are all zero */
    double early_loss; /* that training began with; NaN: not yet, or in a former process */
    double epoch_loss; /* mean over the latest whole epoch; NaN before */
    double epoch_sum;  /* of the losses of the rows of the present one */
    uint64_t epoch_samples;
    bool failed; /* the latest steps did not succeed: a loss was not finite */
    uint64_t samples;
    uint64_t samples_then; /* at the beginning of the window */
    sgp_time then;
    double rate;            /* of the last full window; NaN before */
    sgp_round cycle;        /* the one being measured */
    double distance;        /* greatest of this cycle; NaN if none */
    double distance_before; /* of the cycle before */
};

void figures_init(
    struct figures *figures, const struct sgp_topology *topology, double zero_loss, sgp_time now);

/* The mean loss of outputs that are all zero over these rows; NaN without memory. */
double figures_zero_loss(const struct sgp_model *model, const struct sgp_dataset *rows);

/* A TRAIN job is done. Returns whether it ended an epoch. */
bool figures_trained(struct figures *figures, const struct sgp_training *training, sgp_time now);

/* An evaluation ended with `code`; without rows it changes nothing. */
void figures_tested(struct figures *figures, int code, const struct sgp_evaluation *evaluation);

/* "test_loss", or "loss" (the mean of the latest epoch, where nothing is tested): it is FIGURES_DIVERGED times
 * what it should be at most. "not_finite": a loss of the latest steps or test was not. NULL: all is well. */
const char *figures_diverging(const struct figures *figures);

/* A share of `round` came from an estimate at this relative distance of our own. */
void figures_distance(struct figures *figures, sgp_round round, double distance);

/* The largest distance in the latest cycle that is complete, or in the present one if there was none before.
 * If the rounds are over (`ended`), that `at_end`; while it is not known (NaN), in the present cycle: shares tell
 * of the rounds that they were given in, and where each node has its own pace these may be long past. NaN if
 * nothing was ever received. */
double figures_disagreement(const struct figures *figures, bool ended, double at_end);

/* Rows a second, of the last window; 0 when that is long ago. */
double figures_rate(const struct figures *figures, sgp_time now);

#endif
