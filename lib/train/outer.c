/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the two vectors of outer steps. Thread: the trainer's. */
#include "sgp/outer.h"

#include "sgp/buffer.h"

#include <math.h>
#include <string.h>

int sgp_outer_kind_parse(const char *text, struct sgp_error *error, enum sgp_outer_kind *ret_kind)
{
    static const char *const names[] = {"none", "slowmo", "nesterov"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *ret_kind = (enum sgp_outer_kind)i;
            return 0;
        }
    return sgp_fail(
        error, SGP_E_CONFIG, "unknown outer step '%s'; it is one of none, slowmo, nesterov", text);
}

int sgp_outer_check(const struct sgp_outer_settings *settings, struct sgp_error *error)
{
    if (settings->kind == SGP_OUTER_NONE)
        return 0;
    if (settings->kind > SGP_OUTER_NESTEROV)
        return sgp_fail(error, SGP_E_CONFIG, "unknown kind of outer step %d", (int)settings->kind);
    if (!(settings->learning_rate > 0 && settings->learning_rate <= SGP_OUTER_RATE_MAX))
        return sgp_fail(error, SGP_E_CONFIG,
            "an outer learning rate of %g is not above 0 and at most %g; 1 is usual",
            settings->learning_rate, SGP_OUTER_RATE_MAX);
    if (!(settings->momentum >= 0 && settings->momentum < 1))
        return sgp_fail(error, SGP_E_CONFIG,
            "an outer momentum of %g is not at least 0 and below 1; 0.5 is usual",
            settings->momentum);
    return 0;
}

int sgp_outer_init(
    struct sgp_outer *outer, const struct sgp_outer_settings *settings, uint64_t parameters)
{
    *outer = (struct sgp_outer){0};
    if (parameters == 0 || parameters > SGP_PARAMETERS_MAX)
        return SGP_E_LIMIT;
    if (settings->kind == SGP_OUTER_NONE)
        return 0;
    int status = sgp_vector_create(parameters, &outer->anchor);
    if (status == 0)
        status = sgp_vector_create(parameters, &outer->velocity);
    if (status < 0) {
        sgp_outer_finish(outer);
        return status;
    }
    outer->settings = *settings;
    outer->parameters = parameters;
    return 0;
}

void sgp_outer_finish(struct sgp_outer *outer)
{
    sgp_vector_destroy(outer->anchor);
    sgp_vector_destroy(outer->velocity);
    *outer = (struct sgp_outer){0};
}

void sgp_outer_begin(struct sgp_outer *outer, const float *x, double weight)
{
    sgp_assert(weight > 0);
    if (outer->settings.kind == SGP_OUTER_NONE)
        return;
    for (uint64_t i = 0; i < outer->parameters; i++)
        outer->anchor[i] = (float)((double)x[i] / weight);
    memset(outer->velocity, 0, outer->parameters * sizeof *outer->velocity);
    outer->begun = true;
}

void sgp_outer_forget(struct sgp_outer *outer)
{
    outer->begun = false;
}

static const char anchor_name[] = "outer anchor", velocity_name[] = "outer velocity";

void sgp_outer_state(const struct sgp_outer *outer, struct sgp_trainer_state *state)
{
    if (!outer->begun)
        return;
    sgp_state_add_vector(state, anchor_name, outer->anchor, outer->parameters);
    sgp_state_add_vector(state, velocity_name, outer->velocity, outer->parameters);
}

void sgp_outer_resume(struct sgp_outer *outer, const struct sgp_trainer_state *state)
{
    const float *anchor = sgp_state_vector(state, anchor_name, outer->parameters);
    const float *velocity = sgp_state_vector(state, velocity_name, outer->parameters);
    outer->begun = anchor && velocity && outer->settings.kind != SGP_OUTER_NONE;
    if (!outer->begun)
        return;
    memcpy(outer->anchor, anchor, outer->parameters * sizeof *anchor);
    memcpy(outer->velocity, velocity, outer->parameters * sizeof *velocity);
}

void sgp_outer_step(struct sgp_outer *outer, float *x, double weight)
{
    sgp_assert(weight > 0 && outer->settings.kind != SGP_OUTER_NONE);
    if (!outer->begun) {
        sgp_outer_begin(outer, x, weight);
        return;
    }
    const double alpha = outer->settings.learning_rate, beta = outer->settings.momentum;
    const bool ahead = outer->settings.kind == SGP_OUTER_NESTEROV;
    float *b = outer->anchor, *v = outer->velocity;
    for (uint64_t i = 0; i < outer->parameters; i++) {
        double way = (double)b[i] - (double)x[i] / weight;
        double speed = beta * (double)v[i] + way;
        double z = (double)b[i] - alpha * (ahead ? way + beta * speed : speed);
        v[i] = (float)speed;
        b[i] = (float)z;
        x[i] = (float)(weight * z);
    }
}
