/* SPDX-License-Identifier: Apache-2.0 */
/* Owns an optimiser's state from step to step. Thread: the trainer's. */
#include "sgp/optimizer.h"

#include "rule.h"
#include "sgp/buffer.h"

#include <math.h>
#include <string.h>

/* ---- rules ---- */

static const char steps_name[] = "optimizer steps", noise_name[] = "noise";

#define RULE(constant, word) [SGP_OPTIMIZER_##constant] = &sgp_rule_##word,
static const struct sgp_rule *const rules[] = {SGP_OPTIMIZERS(RULE)};
#define NAME(constant, word) [SGP_OPTIMIZER_##constant] = #word,
static const char *const names[] = {SGP_OPTIMIZERS(NAME)};

const char *sgp_optimizer_name(enum sgp_optimizer_kind kind)
{
    return names[kind];
}

unsigned sgp_optimizer_uses(enum sgp_optimizer_kind kind)
{
    return rules[kind]->uses;
}

bool sgp_optimizer_needs_deviation(const struct sgp_optimizer_settings *settings)
{
    return rules[settings->kind]->uses & SGP_USES_NOISE && settings->noise_fraction < 1;
}

static uint32_t vectors_of(const struct sgp_rule *rule)
{
    uint32_t count = 0;
    while (count < SGP_OPTIMIZER_VECTORS_MAX && rule->vectors[count])
        count++;
    return count;
}

static bool keeps_noise(const struct sgp_optimizer_settings *settings)
{
    return sgp_optimizer_needs_deviation(settings) && rules[settings->kind]->divides;
}

uint32_t sgp_optimizer_vectors(const struct sgp_optimizer_settings *settings)
{
    return vectors_of(rules[settings->kind]) + keeps_noise(settings);
}

static const char *vector_name(const struct sgp_rule *rule, uint32_t index)
{
    return index < vectors_of(rule) ? rule->vectors[index] : noise_name;
}

/* ---- settings ---- */

static int check_part(const char *what, double value, const char *usual, struct sgp_error *error)
{
    return value >= 0 && value < 1
               ? 0
               : sgp_fail(error, SGP_E_CONFIG,
                     "%s of %g is not at least 0 and below 1; %s is usual", what, value, usual);
}

static int check_range(const char *what, double value, double least, double most, const char *usual,
    struct sgp_error *error)
{
    return value >= least && value <= most
               ? 0
               : sgp_fail(error, SGP_E_CONFIG, "%s of %g is not from %g to %g; %s is usual", what,
                     value, least, most, usual);
}

static int check_clip(const char *what, double value, struct sgp_error *error)
{
    return value == 0 ? 0 : check_range(what, value, SGP_CLIP_MIN, SGP_CLIP_MAX, "0, none,", error);
}

int sgp_optimizer_check(const struct sgp_optimizer_settings *settings, struct sgp_error *error)
{
    if (settings->kind < SGP_OPTIMIZER_SGD || settings->kind > SGP_OPTIMIZER_MOST)
        return sgp_fail(error, SGP_E_CONFIG, "unknown optimizer kind %d", (int)settings->kind);
    unsigned uses = rules[settings->kind]->uses;
    int code = check_part("a momentum", settings->momentum, "0.9", error);
    if (code == 0 && !(isfinite(settings->weight_decay) && settings->weight_decay >= 0.0))
        code = sgp_fail(error, SGP_E_CONFIG,
            "a weight decay of %g is not finite and at least 0; 1e-4 is usual",
            settings->weight_decay);
    if (code == 0 && uses & SGP_USES_BETAS)
        code = check_part("a beta1", settings->beta1, "0.9", error);
    if (code == 0 && uses & SGP_USES_BETAS)
        code = check_part("a beta2", settings->beta2, "0.999", error);
    if (code == 0 && uses & SGP_USES_ALPHA)
        code = check_part("an alpha", settings->alpha, "0.99", error);
    if (code == 0 && uses & SGP_USES_EPSILON)
        code = check_range("an epsilon", settings->epsilon, SGP_EPSILON_MIN, 1, "1e-8", error);
    if (code == 0 && uses & SGP_USES_TRUST)
        code = check_range("a trust", settings->trust, SGP_TRUST_MIN, SGP_TRUST_MAX, "1e-3", error);
    if (code == 0 && uses & SGP_USES_NOISE)
        code = check_range(
            "a noise_fraction", settings->noise_fraction, SGP_NOISE_MIN, 1, "1 / nodes", error);
    if (code == 0)
        code = check_clip("a clip_norm", settings->clip_norm, error);
    if (code == 0)
        code = check_clip("a clip_value", settings->clip_value, error);
    return code;
}

/* ---- an optimiser ---- */

int sgp_optimizer_init(struct sgp_optimizer *optimizer,
    const struct sgp_optimizer_settings *settings, uint64_t parameters,
    const struct sgp_tensors *tensors)
{
    *optimizer = (struct sgp_optimizer){0};
    if (parameters == 0 || parameters > SGP_PARAMETERS_MAX)
        return SGP_E_LIMIT;
    sgp_assert(tensors->count == 0 || tensors->ends[tensors->count - 1].end == parameters);
    for (uint32_t i = 0; i < sgp_optimizer_vectors(settings); i++) {
        int status = sgp_vector_create(parameters, &optimizer->vectors[i]);
        if (status < 0) {
            sgp_optimizer_finish(optimizer);
            return status;
        }
    }
    optimizer->settings = *settings;
    optimizer->tensors = *tensors;
    optimizer->parameters = parameters;
    return 0;
}

void sgp_optimizer_finish(struct sgp_optimizer *optimizer)
{
    for (uint32_t i = 0; i < SGP_OPTIMIZER_VECTORS_MAX; i++)
        sgp_vector_destroy(optimizer->vectors[i]);
    *optimizer = (struct sgp_optimizer){0};
}

static void clip(const struct sgp_optimizer *optimizer, float *gradient, float *deviation)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    double norm_most = optimizer->settings.clip_norm;
    if (optimizer->settings.clip_value > 0)
        kernels->clip(gradient, (float)optimizer->settings.clip_value, optimizer->parameters);
    if (norm_most == 0)
        return;
    double norm = sgp_rule_norm(optimizer, gradient, deviation, optimizer->parameters);
    if (norm <= norm_most)
        return;
    float factor = (float)(norm_most / norm);
    kernels->scale(gradient, gradient, factor, optimizer->parameters);
    if (deviation != NULL)
        kernels->scale(deviation, deviation, factor, optimizer->parameters);
}

void sgp_optimizer_step(struct sgp_optimizer *optimizer, float *x, float *gradient,
    float *deviation, double weight, double rate)
{
    const struct sgp_rule *rule = rules[optimizer->settings.kind];
    if (!sgp_optimizer_needs_deviation(&optimizer->settings))
        deviation = NULL;
    clip(optimizer, gradient, deviation);
    optimizer->steps += rule->counts;
    rule->step(optimizer, x, gradient, deviation, weight, rate);
}

void sgp_optimizer_state(const struct sgp_optimizer *optimizer, struct sgp_trainer_state *state)
{
    const struct sgp_rule *rule = rules[optimizer->settings.kind];
    for (uint32_t i = 0; i < sgp_optimizer_vectors(&optimizer->settings); i++)
        sgp_state_add_vector(
            state, vector_name(rule, i), optimizer->vectors[i], optimizer->parameters);
    if (rule->counts)
        sgp_state_add_counter(state, steps_name, optimizer->steps);
}

void sgp_optimizer_resume(struct sgp_optimizer *optimizer, const struct sgp_trainer_state *state)
{
    const struct sgp_rule *rule = rules[optimizer->settings.kind];
    uint32_t count = sgp_optimizer_vectors(&optimizer->settings), found = 0;
    while (
        found < count && sgp_state_vector(state, vector_name(rule, found), optimizer->parameters))
        found++;
    optimizer->steps = rule->counts && found == count ? sgp_state_counter(state, steps_name) : 0;
    size_t bytes = optimizer->parameters * sizeof(float);
    for (uint32_t i = 0; i < count; i++)
        if (found == count)
            memcpy(optimizer->vectors[i],
                sgp_state_vector(state, vector_name(rule, i), optimizer->parameters), bytes);
        else
            memset(optimizer->vectors[i], 0, bytes);
}
