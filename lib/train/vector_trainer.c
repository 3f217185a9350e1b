/* Owns x, the flat vector behind a trainer. Thread: the one of the trainer. */
#include "vector_trainer.h"

#include "sgp/buffer.h"

#include <xxhash.h>

int sgp_vector_trainer_init(struct sgp_vector_trainer *vector,
    const struct sgp_trainer_methods *methods, uint64_t parameters)
{
    if (parameters == 0 || parameters > SGP_PARAMETERS_MAX)
        return SGP_E_LIMIT;
    int status = sgp_vector_create(parameters, &vector->x);
    if (status < 0)
        return status;
    vector->trainer = (struct sgp_trainer){.methods = methods, .parameters = parameters};
    vector->kernels = sgp_kernels_best();
    return 0;
}

void sgp_vector_trainer_finish(struct sgp_vector_trainer *vector)
{
    sgp_vector_destroy(vector->x);
    vector->x = NULL;
}

void sgp_vector_trainer_publish(
    struct sgp_trainer *trainer, float *snapshot, float keep, uint64_t first, uint64_t count)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    sgp_assert(first <= trainer->parameters && count <= trainer->parameters - first);
    vector->kernels->publish(snapshot, vector->x + first, keep, count);
}

void sgp_vector_trainer_absorb(
    struct sgp_trainer *trainer, const float *share, float fraction, uint64_t first, uint64_t count)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    sgp_assert(first <= trainer->parameters && count <= trainer->parameters - first);
    vector->kernels->absorb(vector->x + first, share, fraction, count);
}

void sgp_vector_trainer_adopt(struct sgp_trainer *trainer, const float *values, double factor)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    for (uint64_t i = 0; i < trainer->parameters; i++)
        vector->x[i] = (float)(factor * (double)values[i]);
}

void sgp_vector_trainer_scale(struct sgp_trainer *trainer, double factor)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    for (uint64_t i = 0; i < trainer->parameters; i++)
        vector->x[i] = (float)(factor * (double)vector->x[i]);
}

void sgp_vector_trainer_estimate(const struct sgp_trainer *trainer, double weight, float *estimate)
{
    const struct sgp_vector_trainer *vector = (const struct sgp_vector_trainer *)trainer;
    vector->kernels->estimate(estimate, vector->x, weight, trainer->parameters);
}

uint64_t sgp_vector_trainer_digest(const struct sgp_trainer *trainer)
{
    const struct sgp_vector_trainer *vector = (const struct sgp_vector_trainer *)trainer;
    return XXH3_64bits(vector->x, trainer->parameters * sizeof *vector->x);
}
