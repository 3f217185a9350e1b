/* SPDX-License-Identifier: Apache-2.0 */
/* The lies of sgp/sim.h, a function for each. The table at the end names them. */
#include "sim/lies.h"

#include "sgp/kernels.h"

#include <math.h>

#define SCALE 10       /* of SGP_SIM_LIE_SCALE */
#define DEVIATIONS 1.5 /* of SGP_SIM_LIE_ALIE: few enough to be among the honest models */
#define BACKWARDS 10   /* of SGP_SIM_LIE_IPM: times the latest move of the mean */
#define APART 10       /* of SGP_SIM_LIE_DISSENSUS: times the target's distance from the mean */
#define WITHIN 0.9 /* of SGP_SIM_LIE_DRIFT: this part of the reach, so that nothing is clipped */

static void flip(const struct sgp_sim_telling *telling, float *values)
{
    for (uint64_t i = 0; i < telling->slice.count; i++)
        values[i] = -values[i];
}

static void scale(const struct sgp_sim_telling *telling, float *values)
{
    for (uint64_t i = 0; i < telling->slice.count; i++)
        values[i] *= SCALE;
}

static void add_noise(const struct sgp_sim_telling *telling, float *values)
{
    double squares;
    (void)sgp_kernels_best()->measure(&squares, values, telling->slice.count);
    double deviation = sqrt(squares / (double)telling->slice.count);
    for (uint64_t i = 0; i < telling->slice.count; i++)
        values[i] += (float)(deviation * sgp_random_normal(telling->random));
}

/* A little is enough (Baruch, Baruch, Goldberg 2019). */
static void alie(const struct sgp_sim_telling *telling, float *values)
{
    const struct sgp_sim_knowledge *knowledge = telling->knowledge;
    const double *mean = knowledge->mean + telling->slice.first;
    const double *deviation = knowledge->deviation + telling->slice.first;
    for (uint64_t i = 0; i < telling->slice.count; i++)
        values[i] = (float)(telling->scale * (mean[i] - DEVIATIONS * deviation[i]));
}

/* Inner product manipulation (Xie, Koyejo, Gupta 2020). */
static void ipm(const struct sgp_sim_telling *telling, float *values)
{
    const struct sgp_sim_knowledge *knowledge = telling->knowledge;
    const double *mean = knowledge->mean + telling->slice.first;
    const double *moved = knowledge->moved + telling->slice.first;
    for (uint64_t i = 0; i < telling->slice.count; i++)
        values[i] = (float)(telling->scale * (mean[i] - BACKWARDS * moved[i]));
}

static const float *target_model(const struct sgp_sim_telling *telling)
{
    const struct sgp_sim_knowledge *knowledge = telling->knowledge;
    return knowledge->models + telling->target * knowledge->dimension + telling->slice.first;
}

static void drift(const struct sgp_sim_telling *telling, float *values)
{
    const double *ascent = telling->knowledge->ascent + telling->slice.first;
    const float *model = target_model(telling);
    for (uint64_t i = 0; i < telling->slice.count; i++)
        values[i] =
            (float)(telling->scale * ((double)model[i] + WITHIN * telling->reach * ascent[i]));
}

/* He, Karimireddy, Jaggi 2022. */
static void dissensus(const struct sgp_sim_telling *telling, float *values)
{
    const double *mean = telling->knowledge->mean + telling->slice.first;
    const float *model = target_model(telling);
    for (uint64_t i = 0; i < telling->slice.count; i++) {
        const double own = (double)model[i];
        values[i] = (float)(telling->scale * (own + APART * (own - mean[i])));
    }
}

static const struct {
    void (*tell)(const struct sgp_sim_telling *telling, float *values); /* NULL: of no share */
    bool needs_knowledge;
} lies[SGP_SIM_LIE_MOST + 1] = {
    [SGP_SIM_LIE_FLIP] = {flip, false},
    [SGP_SIM_LIE_SCALE] = {scale, false},
    [SGP_SIM_LIE_NOISE] = {add_noise, false},
    [SGP_SIM_LIE_ALIE] = {alie, true},
    [SGP_SIM_LIE_IPM] = {ipm, true},
    [SGP_SIM_LIE_DRIFT] = {drift, true},
    [SGP_SIM_LIE_DISSENSUS] = {dissensus, true},
};

bool sgp_sim_needs_knowledge(enum sgp_sim_lie lie)
{
    return lies[lie].needs_knowledge;
}

void sgp_sim_tell(enum sgp_sim_lie lie, const struct sgp_sim_telling *telling, float *values)
{
    if (lies[lie].tell != NULL)
        lies[lie].tell(telling, values);
}
