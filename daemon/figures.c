/* Figures of training; see figures.h. */
#include "figures.h"

#include <math.h>

void figures_init(struct figures *figures, const struct sgp_topology *topology, sgp_time now)
{
    *figures = (struct figures){
        .topology = topology,
        .training = {.loss = NAN, .learning_rate = NAN},
        .test = {.loss = NAN, .accuracy = NAN},
        .then = now,
        .rate = NAN,
        .distance = NAN,
        .distance_before = NAN,
    };
}

bool figures_trained(struct figures *figures, const struct sgp_training *training, sgp_time now)
{
    bool epoch = floor(training->epoch) > floor(figures->training.epoch);
    figures->training = *training;
    figures->samples += training->samples;
    if (now - figures->then >= FIGURES_RATE_NS) {
        double seconds = (double)(now - figures->then) / (double)SGP_SECOND;
        figures->rate = (double)(figures->samples - figures->samples_then) / seconds;
        figures->samples_then = figures->samples;
        figures->then = now;
    }
    return epoch;
}

void figures_distance(struct figures *figures, sgp_round round, double distance)
{
    sgp_round rounds = figures->topology->rounds_per_cycle;
    sgp_round since = round - figures->topology->prelude_rounds;
    sgp_round cycle = since < 0 ? -1 : since / rounds;
    if (cycle != figures->cycle) {
        figures->cycle = cycle;
        figures->distance_before = figures->distance;
        figures->distance = NAN;
    }
    figures->distance = fmax(figures->distance, distance);
}

double figures_disagreement(const struct figures *figures, bool ended)
{
    bool present = ended || isnan(figures->distance_before);
    return present ? figures->distance : figures->distance_before;
}

double figures_rate(const struct figures *figures, sgp_time now)
{
    sgp_time silence = now - figures->then;
    if (silence > 5 * FIGURES_RATE_NS) /* rounds longer than that are rated when they end */
        return 0;
    if (!isnan(figures->rate) || silence <= 0)
        return figures->rate;
    return (double)figures->samples * (double)SGP_SECOND / (double)silence;
}
