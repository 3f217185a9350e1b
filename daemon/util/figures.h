/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about this node's training: loss, rows seen and their rate, test results, the
 * distance to the neighbours' estimates, and whether training diverges. Pure arithmetic. Thread:
 * the loop thread.
 *
 * A loss has no natural scale, so it is compared with two others. One is the loss at the beginning
 * of training. The other is the loss of a model whose outputs are all zero. A loss far above both
 * shows divergence, however noisy the rows are. If training did not begin in this process, only the
 * second is known. */
#ifndef SGPD_FIGURES_H
#define SGPD_FIGURES_H

#include "sgp/dataset.h"
#include "sgp/model.h"
#include "sgp/topology.h"
#include "sgp/trainer.h"

/* samples per second are over the latest window of this length */
#define FIGURES_RATE_NS (2 * SGP_SECOND)
/* times the greater of these two losses: training diverges */
#define FIGURES_DIVERGED 100.0
/* mean loss over so many, or over the first round, is the initial loss */
#define FIGURES_EARLY_SAMPLES 32u

struct figures {
    const struct sgp_topology *topology;
    struct sgp_training training; /* the latest; loss NaN before the first */
    struct sgp_evaluation test;   /* the latest; NaN before; loss infinite if it was not finite */
    double zero_loss;             /* of a model whose outputs are all zero */
    double early_loss; /* at the beginning of training; NaN: not yet, or in a former process */
    double epoch_loss; /* mean over the latest whole epoch; NaN before */
    double epoch_sum;  /* of the losses of the rows of the present epoch */
    uint64_t epoch_samples;
    bool failed; /* the latest steps failed: a loss was not finite */
    uint64_t samples;
    uint64_t samples_then; /* at the beginning of the window */
    sgp_time then;
    double rate;            /* of the last full window; NaN before */
    sgp_round cycle;        /* the cycle being measured */
    double distance;        /* greatest distance of this cycle; NaN if none */
    double distance_before; /* of the cycle before */
};

void figures_init(
    struct figures *figures, const struct sgp_topology *topology, double zero_loss, sgp_time now);

/* The mean loss over these rows if all outputs are zero. NaN: no memory. */
double figures_zero_loss(const struct sgp_model *model, const struct sgp_dataset *rows);

/* A TRAIN job is done. Returns whether it ended an epoch. */
bool figures_trained(struct figures *figures, const struct sgp_training *training, sgp_time now);

/* An evaluation ended with `code`. An evaluation without rows changes nothing. */
void figures_tested(struct figures *figures, int code, const struct sgp_evaluation *evaluation);

/* Whether training diverges. "test_loss", or "loss" (the mean of the latest epoch, if nothing is
 * tested): it exceeds its limit by the factor FIGURES_DIVERGED. "not_finite": a loss of the latest
 * steps or test was not finite. NULL: training does not diverge. */
const char *figures_diverging(const struct figures *figures);

/* A share of `round` came from an estimate at this relative distance to our own. */
void figures_distance(struct figures *figures, sgp_round round, double distance);

/* The largest distance in the latest complete cycle, or in the present cycle if there was none
 * before. NaN if nothing was ever received.
 *
 * If the rounds are over (`ended`), the result is `at_end`. While `at_end` is unknown (NaN), it is
 * the distance in the present cycle. Shares describe the rounds in which they were sent. If each
 * node has its own pace, these rounds may be long past. */
double figures_disagreement(const struct figures *figures, bool ended, double at_end);

/* Rows per second, over the last window; 0 if that window is long past. */
double figures_rate(const struct figures *figures, sgp_time now);

#endif
