/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the parameters of local layers, and the state of their optimiser; see local_part.h. */
#include "local_part.h"

#include "sgp/buffer.h"

#include <stdio.h>
#include <string.h>

/* What the optimiser keeps has its own name behind the prefix. */
static const char prefix[] = SGP_STATE_LOCAL " ";

int sgp_local_part_init(struct sgp_local_part *part, const struct sgp_model *model,
    const struct sgp_optimizer_settings *settings, bool deviates)
{
    *part = (struct sgp_local_part){.count = model->local_parameters};
    if (part->count == 0)
        return 0;
    struct sgp_optimizer_settings own = *settings;
    own.noise_fraction = 1;
    const struct sgp_tensors tensors = {
        .ends = part->ends, .count = sgp_model_ends(model, true, part->ends)};
    int status = sgp_vector_create(part->count, &part->values);
    if (status == 0)
        status = sgp_vector_create(part->count, &part->gradient);
    if (status == 0 && deviates)
        status = sgp_vector_create(part->count, &part->deviation);
    if (status == 0)
        status = sgp_optimizer_init(&part->optimizer, &own, part->count, &tensors);
    return status;
}

void sgp_local_part_finish(struct sgp_local_part *part)
{
    sgp_vector_destroy(part->values);
    sgp_vector_destroy(part->gradient);
    sgp_vector_destroy(part->deviation);
    sgp_optimizer_finish(&part->optimizer);
    *part = (struct sgp_local_part){0};
}

void sgp_local_part_step(struct sgp_local_part *part, double rate)
{
    if (part->count > 0)
        sgp_optimizer_step(&part->optimizer, part->values, part->gradient, NULL, 1, rate);
}

void sgp_local_part_forget(struct sgp_local_part *part)
{
    static const struct sgp_trainer_state nothing;
    if (part->count > 0)
        sgp_optimizer_resume(&part->optimizer, &nothing);
}

/* The name behind the prefix; NULL: it is not of local layers. */
static const char *inner_name(const char *name)
{
    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : NULL;
}

static void outer_name(const char *name, char ret_name[SGP_STATE_NAME_BYTES])
{
    int length = snprintf(ret_name, SGP_STATE_NAME_BYTES, "%s%s", prefix, name);
    sgp_assert(length > 0 && (unsigned)length < SGP_STATE_NAME_BYTES);
}

void sgp_local_part_state(const struct sgp_local_part *part, struct sgp_trainer_state *state)
{
    struct sgp_trainer_state own = {.x = NULL};
    char name[SGP_STATE_NAME_BYTES];
    if (part->count == 0)
        return;
    sgp_state_add_vector(state, SGP_STATE_LOCAL, part->values, part->count);
    sgp_optimizer_state(&part->optimizer, &own);
    for (uint32_t i = 0; i < own.vector_count; i++) {
        outer_name(own.vectors[i].name, name);
        sgp_state_add_vector(state, name, own.vectors[i].values, own.vectors[i].count);
    }
    for (uint32_t i = 0; i < own.counter_count; i++) {
        outer_name(own.counters[i].name, name);
        sgp_state_add_counter(state, name, own.counters[i].value);
    }
}

void sgp_local_part_resume(struct sgp_local_part *part, const struct sgp_trainer_state *state)
{
    struct sgp_trainer_state own = {.x = NULL};
    const float *values = sgp_state_vector(state, SGP_STATE_LOCAL, part->count);
    if (part->count == 0)
        return;
    if (values != NULL)
        memcpy(part->values, values, part->count * sizeof *values);
    for (uint32_t i = 0; i < state->vector_count; i++) {
        const struct sgp_state_vector *vector = &state->vectors[i];
        if (inner_name(vector->name) != NULL)
            sgp_state_add_vector(&own, inner_name(vector->name), vector->values, vector->count);
    }
    for (uint32_t i = 0; i < state->counter_count; i++) {
        const struct sgp_state_counter *counter = &state->counters[i];
        if (inner_name(counter->name) != NULL)
            sgp_state_add_counter(&own, inner_name(counter->name), counter->value);
    }
    sgp_optimizer_resume(&part->optimizer, &own);
}
