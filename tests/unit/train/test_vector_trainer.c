/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing and absorbing by exchange of memory, and parts that are only known, beside a slow trainer that copies: the same bits after
 * every step, whatever the order, and every vector is somewhere. */
#include "sgp/buffer.h"
#include "sgp/kernels.h"
#include "sgp/quadratic.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdlib.h>
#include <string.h>

#define VALUES 20011u /* some blocks and a part of one */
#define SLOTS 3u
#define STEPS 2000
#define ETA 0.25

struct pair { /* the trainer, and what it should be */
    struct sgp_trainer *trainer;
    float *snapshots[SLOTS]; /* exchanged with it */
    float *share;
    float x[VALUES];
    float copies[SLOTS][VALUES];
    float share_copy[VALUES];
    float z[VALUES];
    struct sgp_random random;
    uint32_t last; /* slot published last; SLOTS: none yet */
};

static float draw(struct pair *pair)
{
    return (float)sgp_random_double(&pair->random) - 0.5f;
}

static struct pair *create(void)
{
    static const float centre[VALUES] = {0};
    struct pair *pair = calloc(1, sizeof *pair);
    sgp_random_init(&pair->random, 3, 4);
    for (size_t i = 0; i < VALUES; i++)
        pair->x[i] = draw(pair);
    cr_assert(eq(int, sgp_quadratic_create(VALUES, centre, pair->x, ETA, &pair->trainer), 0));
    for (size_t i = 0; i < SLOTS; i++)
        cr_assert(eq(int, sgp_vector_create(VALUES, &pair->snapshots[i]), 0));
    cr_assert(eq(int, sgp_vector_create(VALUES, &pair->share), 0));
    pair->last = SLOTS;
    return pair;
}

static void destroy(struct pair *pair)
{
    pair->trainer->methods->destroy(pair->trainer);
    for (size_t i = 0; i < SLOTS; i++)
        sgp_vector_destroy(pair->snapshots[i]);
    sgp_vector_destroy(pair->share);
    free(pair);
}

static void publish(struct pair *pair)
{
    uint32_t slot = (uint32_t)sgp_random_below(&pair->random, SLOTS);
    float keep = slot == 0 ? 1 : 0.5f + draw(pair) / 2;
    pair->trainer->methods->publish(pair->trainer, &pair->snapshots[slot], keep);
    memcpy(pair->copies[slot], pair->x, sizeof pair->x);
    for (size_t i = 0; i < VALUES; i++)
        pair->x[i] *= keep;
    pair->last = slot;
}

static void absorb(struct pair *pair, uint64_t first, uint64_t count)
{
    float fraction = 0.3f;
    struct sgp_comparison comparison = {.own_weight = 0.8, .their_weight = 1.1};
    bool compares = pair->last < SLOTS;
    if (compares)
        comparison.own = pair->snapshots[pair->last];
    for (size_t i = 0; i < count; i++)
        pair->share_copy[i] = pair->share[i] = draw(pair);
    pair->trainer->methods->absorb(
        pair->trainer, &pair->share, fraction, first, count, compares ? &comparison : NULL);
    double difference = 0, norm = 0;
    for (size_t i = 0; i < count; i++) {
        float share = pair->share_copy[i] * fraction;
        pair->x[first + i] += share;
        double own = compares ? (double)pair->copies[pair->last][first + i] / 0.8 : 0;
        double distance = (double)pair->share_copy[i] / 1.1 - own;
        difference += distance * distance;
        norm += own * own;
    }
    if (compares) {
        cr_assert(epsilon_eq(dbl, comparison.difference, difference, 1e-5 * difference));
        cr_assert(epsilon_eq(dbl, comparison.norm, norm, 1e-5 * norm));
    }
}

/* A range, mostly one of a few, so that they meet. */
static uint64_t draw_range(struct pair *pair, uint64_t *ret_count)
{
    const uint64_t parts = 8, part = VALUES / parts;
    if (sgp_random_below(&pair->random, 8) == 0) {
        *ret_count = VALUES;
        return 0;
    }
    if (sgp_random_below(&pair->random, 4) == 0) {
        uint64_t first = sgp_random_below(&pair->random, VALUES);
        *ret_count = sgp_random_below(&pair->random, VALUES - first + 1);
        return first;
    }
    uint64_t first = part * sgp_random_below(&pair->random, parts);
    *ret_count = part * (1 + sgp_random_below(&pair->random, 3));
    *ret_count = *ret_count < VALUES - first ? *ret_count : VALUES - first;
    return first;
}

static void copy(struct pair *pair)
{
    static const float keeps[] = {0, 0.25f, 1};
    uint32_t slot = (uint32_t)sgp_random_below(&pair->random, SLOTS);
    float keep = keeps[sgp_random_below(&pair->random, 3)];
    uint64_t count, first = draw_range(pair, &count);
    pair->trainer->methods->copy(pair->trainer, &pair->snapshots[slot], keep, first, count);
    memcpy(pair->copies[slot] + first, pair->x + first, count * sizeof *pair->x);
    for (uint64_t i = first; i < first + count; i++)
        pair->x[i] = keep > 0 ? keep * pair->x[i] : 0;
}

static void scale(struct pair *pair)
{
    static const double factors[] = {0, 0.25, 1, 1.0 / 3};
    double factor = factors[sgp_random_below(&pair->random, 4)];
    uint64_t count, first = draw_range(pair, &count);
    pair->trainer->methods->scale(pair->trainer, factor, first, count);
    for (uint64_t i = first; i < first + count; i++)
        pair->x[i] = factor > 0 ? (float)(factor * (double)pair->x[i]) : 0;
}

static void restore(struct pair *pair)
{
    if (pair->last == SLOTS)
        return;
    pair->trainer->methods->restore(
        pair->trainer, pair->snapshots[pair->last] + 7, 0.5f, 7, VALUES - 100);
    for (size_t i = 7; i < VALUES - 93; i++)
        pair->x[i] += 0.5f * pair->copies[pair->last][i];
}

static void train(struct pair *pair)
{
    struct sgp_training training;
    cr_assert(eq(int, pair->trainer->methods->train(pair->trainer, 1, 1, 1, &training), 0));
    for (size_t i = 0; i < VALUES; i++)
        pair->x[i] -= (float)ETA * pair->x[i];
}

static void adopt(struct pair *pair)
{
    for (size_t i = 0; i < VALUES; i++)
        pair->x[i] = draw(pair);
    pair->trainer->methods->adopt(pair->trainer, pair->x, 1);
}

static void step(struct pair *pair)
{
    uint64_t count, first = draw_range(pair, &count);
    switch (sgp_random_below(&pair->random, 18)) {
    case 0:
    case 1:
        publish(pair);
        break;
    case 2:
    case 3:
        absorb(pair, 0, VALUES);
        break;
    case 4:
        absorb(pair, 100, VALUES / 2);
        break;
    case 5:
        restore(pair);
        break;
    case 6:
        train(pair);
        break;
    case 7:
        adopt(pair);
        break;
    case 8:
    case 9:
    case 10:
        absorb(pair, first, count);
        break;
    case 11:
    case 12:
    case 13:
        copy(pair);
        break;
    default:
        scale(pair);
    }
}

Test(vector_trainer, exchanging_is_copying)
{
    struct pair *pair = create();
    for (int i = 0; i < STEPS; i++) {
        step(pair);
        if (i % 3 == 0) { /* looking must not change what comes */
            pair->trainer->methods->estimate(pair->trainer, 1, pair->z);
            cr_assert(eq(int, memcmp(pair->z, pair->x, sizeof pair->x), 0), "step %d", i);
        }
        for (size_t s = 0; s < SLOTS && pair->last == s; s++)
            cr_assert(eq(int, memcmp(pair->snapshots[s], pair->copies[s], sizeof pair->x), 0));
    }
    destroy(pair);
}

/* As a relay begins that has nothing: nothing was published that it could be told from. */
Test(vector_trainer, zeros_take_a_whole_share)
{
    struct pair *pair = create();
    const struct sgp_trainer_methods *methods = pair->trainer->methods;
    methods->scale(pair->trainer, 0, 0, VALUES);
    for (size_t i = 0; i < VALUES; i++)
        pair->share[i] = (float)i;
    methods->absorb(pair->trainer, &pair->share, 0.5f, 0, VALUES, NULL);
    methods->estimate(pair->trainer, 1, pair->z);
    for (size_t i = 0; i < VALUES; i++)
        cr_assert(eq(flt, pair->z[i], 0.5f * (float)i));
    destroy(pair);
}

/* A part of zeros that no cache keeps, at any place: the same bits as a small one. */
Test(vector_trainer, zeros_take_a_large_part)
{
    const uint64_t values = 600001, first = 3, count = 400002;
    float *start = calloc(values, sizeof *start), *share, *z = malloc(values * sizeof *z);
    struct sgp_trainer *trainer;
    for (uint64_t i = 0; i < values; i++)
        start[i] = (float)i;
    cr_assert(zero(int, sgp_quadratic_create(values, start, start, 0, &trainer)));
    cr_assert(zero(int, sgp_vector_create(values, &share)));
    for (uint64_t i = 0; i < count; i++)
        share[i] = i % 3 == 0 ? -0.0f : (float)i + 0.7f;
    trainer->methods->scale(trainer, 0, first, count);
    trainer->methods->absorb(trainer, &share, 0.3f, first, count, NULL);
    trainer->methods->estimate(trainer, 1, z);
    for (uint64_t i = 0; i < values; i++) {
        bool inside = i >= first && i < first + count;
        float expected = inside ? 0.0f + 0.3f * share[i - first] : start[i];
        cr_assert(zero(int, memcmp(&z[i], &expected, sizeof expected)), "value %u", (unsigned)i);
    }
    trainer->methods->destroy(trainer);
    sgp_vector_destroy(share);
    free(start);
    free(z);
}

/* As many parts as there are, one by one: more ranges than the trainer remembers. */
Test(vector_trainer, any_number_of_parts_may_be_known)
{
    struct pair *pair = create();
    const struct sgp_trainer_methods *methods = pair->trainer->methods;
    methods->publish(pair->trainer, &pair->snapshots[0], 1);
    for (uint64_t first = 0; first + 20 <= VALUES; first += 20) {
        methods->scale(pair->trainer, 0.5, first, 10);
        for (uint64_t i = first; i < first + 10; i++)
            pair->x[i] *= 0.5f;
    }
    methods->estimate(pair->trainer, 1, pair->z);
    cr_assert(eq(int, memcmp(pair->z, pair->x, sizeof pair->x), 0));
    destroy(pair);
}

Test(vector_trainer, a_share_after_publishing_is_not_copied)
{
    struct pair *pair = create();
    float *snapshot = pair->snapshots[0], *share = pair->share;
    pair->trainer->methods->publish(pair->trainer, &pair->snapshots[0], 0.5f);
    cr_assert(ne(ptr, pair->snapshots[0], snapshot));
    pair->trainer->methods->absorb(pair->trainer, &pair->share, 0.5f, 0, VALUES, NULL);
    cr_assert(eq(ptr, pair->share, snapshot));
    pair->trainer->methods->publish(pair->trainer, &pair->snapshots[1], 0.5f);
    cr_assert(eq(ptr, pair->snapshots[1], share));
    destroy(pair);
}
