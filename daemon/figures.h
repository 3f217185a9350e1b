/* What is known about the training of this node: loss, rows seen, their rate, test figures, and how
 * far the neighbours' estimates are from its own. Pure arithmetic. Thread: the loop thread. */
#ifndef SGPD_FIGURES_H
#define SGPD_FIGURES_H

#include "sgp/topology.h"
#include "sgp/trainer.h"

#define FIGURES_RATE_NS (2 * SGP_SECOND) /* samples per second: over the latest window of this */

struct figures {
    const struct sgp_topology *topology;
    struct sgp_training training; /* the latest; loss NaN before the first */
    struct sgp_evaluation test;   /* the latest; NaN before the first */
    uint64_t samples;
    uint64_t samples_then; /* at the beginning of the window */
    sgp_time then;
    double rate;            /* of the last full window; NaN before */
    sgp_round cycle;        /* the one being measured */
    double distance;        /* greatest of this cycle; NaN if none */
    double distance_before; /* of the cycle before */
};

void figures_init(struct figures *figures, const struct sgp_topology *topology, sgp_time now);

/* A TRAIN job is done. Returns whether it ended an epoch. */
bool figures_trained(struct figures *figures, const struct sgp_training *training, sgp_time now);

/* A share of `round` came from an estimate at this relative distance of our own. */
void figures_distance(struct figures *figures, sgp_round round, double distance);

/* The largest distance in the latest cycle that is complete, or in the present one if the rounds are
 * over (`ended`) or there was none before. NaN if nothing was ever received. */
double figures_disagreement(const struct figures *figures, bool ended);

/* Rows a second, of the last window; 0 when that is long ago. */
double figures_rate(const struct figures *figures, sgp_time now);

#endif
