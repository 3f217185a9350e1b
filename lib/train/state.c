/* SPDX-License-Identifier: Apache-2.0 */
/* Named vectors and counters of a trainer; see sgp/trainer.h. Owns nothing. Any thread. */
#include "sgp/trainer.h"

#include <string.h>

const float *sgp_state_vector(
    const struct sgp_trainer_state *state, const char *name, uint64_t count)
{
    for (uint32_t i = 0; i < state->vector_count; i++)
        if (strcmp(state->vectors[i].name, name) == 0 && state->vectors[i].count == count)
            return state->vectors[i].values;
    return NULL;
}

uint64_t sgp_state_counter(const struct sgp_trainer_state *state, const char *name)
{
    for (uint32_t i = 0; i < state->counter_count; i++)
        if (strcmp(state->counters[i].name, name) == 0)
            return state->counters[i].value;
    return 0;
}

void sgp_state_add_vector(
    struct sgp_trainer_state *state, const char *name, const float *values, uint64_t count)
{
    sgp_assert(state->vector_count < SGP_STATE_VECTORS_MAX);
    sgp_assert(strlen(name) < SGP_STATE_NAME_BYTES);
    struct sgp_state_vector *vector = &state->vectors[state->vector_count++];
    memcpy(vector->name, name, strlen(name) + 1);
    vector->values = values;
    vector->count = count;
}

void sgp_state_add_counter(struct sgp_trainer_state *state, const char *name, uint64_t value)
{
    sgp_assert(state->counter_count < SGP_STATE_COUNTERS_MAX);
    sgp_assert(strlen(name) < SGP_STATE_NAME_BYTES);
    struct sgp_state_counter *counter = &state->counters[state->counter_count++];
    memcpy(counter->name, name, strlen(name) + 1);
    counter->value = value;
}
