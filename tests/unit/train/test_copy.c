/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's copy beside a trainer: what it takes, what it gives, and that the optimiser is left alone. */
#include "sgp/buffer.h"
#include "sgp/copy.h"
#include "sgp/quadratic.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <string.h>

#define VALUES 3u

static void expect_x(struct sgp_trainer *trainer, const float expected[VALUES])
{
    float x[VALUES];
    trainer->methods->estimate(trainer, 1, x);
    for (uint32_t i = 0; i < VALUES; i++)
        cr_assert(eq(flt, x[i], expected[i]), "x[%u]", i);
}

Test(copy, what_was_moved_is_given_and_the_rest_is_the_copy)
{
    static const float centre[VALUES] = {8, 0, -8}, start[VALUES] = {100, 200, 300};
    static const float model[VALUES] = {4, 2, 0}, moved[VALUES] = {2, -1, -4};
    struct sgp_trainer *trainer;
    struct sgp_training training;
    float *copy, *slot;
    cr_assert(zero(int, sgp_quadratic_create(VALUES, centre, start, 0.5, &trainer)));
    cr_assert(zero(int, sgp_vector_create(VALUES, &copy)));
    cr_assert(zero(int, sgp_vector_create(VALUES, &slot)));
    memcpy(slot, model, sizeof model);
    sgp_copy_follow(copy, trainer, &slot, (struct sgp_slice){0, VALUES});
    expect_x(trainer, model);
    cr_assert(zero(int, memcmp(copy, model, sizeof model)));
    cr_assert(zero(int, trainer->methods->train(trainer, 1, 1, 1, &training)));
    sgp_copy_push(copy, trainer, &slot);
    cr_assert(zero(int, memcmp(slot, moved, sizeof moved)), "half of the way to the minimum");
    expect_x(trainer, model);
    sgp_copy_push(copy, trainer, &slot);
    for (uint32_t i = 0; i < VALUES; i++)
        cr_assert(eq(flt, slot[i], 0), "nothing was moved since");
    trainer->methods->restore(trainer, moved, 1, 0, VALUES); /* an update that returned, */
    sgp_copy_push(copy, trainer, &slot);                     /* and goes out again */
    cr_assert(zero(int, memcmp(slot, moved, sizeof moved)));
    trainer->methods->destroy(trainer);
    sgp_vector_destroy(copy);
    sgp_vector_destroy(slot);
}

/* Zheng et al. 2017, equation 10, of updates: numbers that float32 holds. */
Test(copy, a_stale_update_is_compensated_for_what_was_added_since)
{
    static const float now[VALUES] = {5, -2, 1}, base[VALUES] = {1, -2, 3};
    static const float bent[VALUES] = {2 - 0.5f * 4 * 4, -1, -4 + 0.5f * 16 * 2};
    struct sgp_trainer *trainer;
    float update[VALUES] = {2, -1, -4};
    cr_assert(zero(int, sgp_quadratic_create(VALUES, now, now, 0.5, &trainer)));
    sgp_copy_compensate(update, trainer, base, 0.5f, (struct sgp_slice){0, VALUES});
    for (uint32_t i = 0; i < VALUES; i++)
        cr_assert(eq(flt, update[i], bent[i]), "u[%u]", i);
    expect_x(trainer, now);
    sgp_copy_compensate(update, trainer, now, 0.5f, (struct sgp_slice){0, VALUES});
    for (uint32_t i = 0; i < VALUES; i++)
        cr_assert(eq(flt, update[i], bent[i]), "nothing was added since");
    trainer->methods->destroy(trainer);
}

/* Of two parts: one is followed, and what was moved in the other stays; an update is compensated where its part begins. */
Test(copy, a_part_leaves_the_others_alone)
{
    static const float centre[VALUES] = {8, 0, -8}, start[VALUES] = {4, 2, 0};
    static const struct sgp_slice last = {1, 2}, first = {0, 1};
    struct sgp_trainer *trainer;
    struct sgp_training training;
    float *copy, *slot, update[2] = {-1, -4};
    cr_assert(zero(int, sgp_quadratic_create(VALUES, centre, start, 0.5, &trainer)));
    cr_assert(zero(int, sgp_vector_create(VALUES, &copy)));
    cr_assert(zero(int, sgp_vector_create(VALUES, &slot)));
    memcpy(slot, start, sizeof start);
    sgp_copy_follow(copy, trainer, &slot, (struct sgp_slice){0, VALUES});
    cr_assert(zero(int, trainer->methods->train(trainer, 1, 1, 1, &training)));
    memcpy(slot, (const float[]){-7, 9}, 2 * sizeof *slot);
    sgp_copy_follow(copy, trainer, &slot, last);
    expect_x(trainer, (const float[VALUES]){6, -7, 9});
    cr_assert(zero(int, memcmp(copy, ((const float[VALUES]){4, -7, 9}), sizeof start)));
    sgp_copy_push(copy, trainer, &slot);
    cr_assert(zero(int, memcmp(slot, ((const float[VALUES]){2, 0, 0}), sizeof start)));
    sgp_copy_adopt(trainer, (const float[]){3}, 2, first);
    expect_x(trainer, (const float[VALUES]){6, -7, 9});
    sgp_copy_compensate(update, trainer, start, 0.5f, last);
    cr_assert(eq(flt, update[0], -1 - 0.5f * 1 * (-7 - 2)));
    cr_assert(eq(flt, update[1], -4 - 0.5f * 16 * (9 - 0)));
    trainer->methods->destroy(trainer);
    sgp_vector_destroy(copy);
    sgp_vector_destroy(slot);
}

/* An owner has moved on; what its copy lacks is told, and both ends add it. */
Test(copy, a_change_brings_both_copies_to_the_same_values)
{
    static const float start[VALUES] = {4, 2, 1}, lacks[VALUES] = {2, -1, 0};
    static const float moved[VALUES] = {6, 1, 1};
    struct sgp_slice all = {0, VALUES}, first = {0, 2};
    struct sgp_trainer *owner, *worker;
    float copy[VALUES] = {0}, values[VALUES], theirs[VALUES] = {4, 2, 1};
    cr_assert(zero(int, sgp_quadratic_create(VALUES, start, start, 0.5, &owner)));
    cr_assert(zero(int, sgp_quadratic_create(VALUES, start, lacks, 0.5, &worker)));
    sgp_copy_take(copy, owner, values, all);
    cr_assert(zero(int, memcmp(copy, start, sizeof copy)));
    cr_assert(zero(int, memcmp(values, start, sizeof values)));
    owner->methods->adopt(owner, moved, 1);
    sgp_copy_lacks(copy, owner, values, all);
    cr_assert(zero(int, memcmp(values, lacks, sizeof values)));
    expect_x(owner, moved);
    sgp_copy_add(copy, values, all);
    cr_assert(zero(int, memcmp(copy, moved, sizeof copy)));
    sgp_copy_add(theirs, values, first);
    sgp_copy_return(theirs, worker, first);
    expect_x(worker, (const float[VALUES]){6, 1, 0});
    owner->methods->destroy(owner);
    worker->methods->destroy(worker);
}
