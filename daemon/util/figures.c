/* SPDX-License-Identifier: Apache-2.0 */
/* Training statistics; see figures.h. */
#include "figures.h"

#include <math.h>

void figures_init(
    struct figures *figures, const struct sgp_topology *topology, double zero_loss, sgp_time now)
{
    *figures = (struct figures){
        .topology = topology,
        .training = {.loss = NAN, .learning_rate = NAN},
        .test = {.loss = NAN, .accuracy = NAN},
        .zero_loss = zero_loss,
        .early_loss = NAN,
        .epoch_loss = NAN,
        .then = now,
        .rate = NAN,
        .distance = NAN,
        .distance_before = NAN,
    };
}

double figures_zero_loss(const struct sgp_model *model, const struct sgp_dataset *rows)
{
    double loss;
    return sgp_loss_of_zeros(model->loss, &model->loss_settings, rows, &loss) == 0 ? loss : NAN;
}

/* The mean loss at the beginning of training, and the mean of every epoch. */
static void note_loss(struct figures *figures, const struct sgp_training *training, bool epoch)
{
    double sum = training->loss * (double)training->samples;
    figures->epoch_sum += sum;
    figures->epoch_samples += training->samples;
    if (figures->samples < FIGURES_EARLY_SAMPLES && training->epoch <= 1) {
        uint64_t samples = figures->samples + training->samples;
        double before = figures->samples > 0 ? figures->early_loss * (double)figures->samples : 0;
        figures->early_loss = (before + sum) / (double)samples;
    }
    if (epoch) {
        figures->epoch_loss = figures->epoch_sum / (double)figures->epoch_samples;
        figures->epoch_sum = 0;
        figures->epoch_samples = 0;
    }
}

bool figures_trained(struct figures *figures, const struct sgp_training *training, sgp_time now)
{
    bool epoch = floor(training->epoch) > floor(figures->training.epoch);
    note_loss(figures, training, epoch);
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

void figures_tested(struct figures *figures, int code, const struct sgp_evaluation *evaluation)
{
    if (code == SGP_E_DIVERGED)
        figures->test = (struct sgp_evaluation){.loss = HUGE_VAL, .accuracy = NAN};
    else if (code == 0 && evaluation->samples > 0)
        figures->test = *evaluation;
}

const char *figures_diverging(const struct figures *figures)
{
    bool tested = !isnan(figures->test.loss);
    double judged = tested ? figures->test.loss : figures->epoch_loss;
    double level = fmax(figures->zero_loss, figures->early_loss); /* the value that is not NaN */
    if (figures->failed || isinf(judged))
        return "not_finite";
    if (!(level > 0 && judged > FIGURES_DIVERGED * level))
        return NULL;
    return tested ? "test_loss" : "loss";
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

double figures_disagreement(const struct figures *figures, bool ended, double at_end)
{
    if (ended && !isnan(at_end))
        return at_end;
    bool present = ended || isnan(figures->distance_before);
    return present ? figures->distance : figures->distance_before;
}

double figures_rate(const struct figures *figures, sgp_time now)
{
    sgp_time silence = now - figures->then;
    if (silence > 5 * FIGURES_RATE_NS) /* longer rounds are rated when they end */
        return 0;
    if (!isnan(figures->rate) || silence <= 0)
        return figures->rate;
    return (double)figures->samples * (double)SGP_SECOND / (double)silence;
}
