/* SPDX-License-Identifier: Apache-2.0 */
/* An audit of private steps in one run (Steinke, Nasr, Jagielski 2023): each of many canary rows is put in by a fair coin, and an
 * auditor guesses which from what the steps tell. So many right guesses bound epsilon from below, with 95%. The bound of the
 * learner is below what its account claims. Bugs are planted by settings that are not those of the claim, and are refuted. */
#include "learner_rows.h"

#include "sgp/privacy.h"

#include <math.h>

enum { CANARIES = 2000, HONEST = 500, OWN = 5, COLUMNS = OWN + CANARIES, STEPS = 40, RUNS = 3 };
#define NOISE 2.0
#define DELTA 1e-5

static bool inside[CANARIES];
static double score[CANARIES];

/* Honest rows have five columns; canary i has a great value in a column of its own, along which no other row moves x. */
static struct sgp_dataset *rows_with_canaries(struct sgp_random *random)
{
    float *features = calloc((size_t)(HONEST + CANARIES) * COLUMNS, sizeof *features);
    uint32_t *labels = calloc(HONEST + CANARIES, sizeof *labels), rows = HONEST;
    for (uint32_t r = 0; r < HONEST; r++) {
        labels[r] = (uint32_t)sgp_random_below(random, 2);
        for (uint32_t f = 0; f < OWN; f++)
            features[(size_t)r * COLUMNS + f] = (float)sgp_random_normal(random);
    }
    for (uint32_t i = 0; i < CANARIES; i++) {
        inside[i] = sgp_random_below(random, 2) == 1;
        if (inside[i])
            features[(size_t)rows++ * COLUMNS + OWN + i] = 100;
    }
    struct sgp_dataset *dataset = NULL;
    cr_assert(eq(
        int, sgp_dataset_create_memory(features, labels, NULL, rows, COLUMNS, 2, 1, &dataset), 0));
    free(features);
    free(labels);
    return dataset;
}

/* score[i] = how far all steps moved the weights of canary i, one class against the other. */
static void listen_to(const struct sgp_learner_privacy *privacy, uint64_t seed)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, 5);
    struct sgp_dataset *rows = rows_with_canaries(&random);
    struct sgp_learner_settings settings =
        settings_of("dense 2", SGP_LOSS_CROSS_ENTROPY, rows, (uint32_t)(rows->rows / 10));
    settings.schedule.learning_rate = 0.01;
    settings.privacy = *privacy;
    settings.privacy.key[0] = (uint8_t)seed;
    struct sgp_trainer *trainer = create(&settings);
    struct sgp_trainer_state state = {0};
    trainer->methods->state(trainer, &state);
    for (uint32_t i = 0; i < CANARIES; i++)
        score[i] = (double)state.x[COLUMNS + OWN + i] - (double)state.x[OWN + i];
    (void)train(trainer, 1, STEPS);
    trainer->methods->state(trainer, &state);
    for (uint32_t i = 0; i < CANARIES; i++)
        score[i] -= (double)state.x[COLUMNS + OWN + i] - (double)state.x[OWN + i];
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(rows);
}

static int by_score(const void *a, const void *b)
{
    double x = score[*(const uint32_t *)a], y = score[*(const uint32_t *)b];
    return (x > y) - (x < y);
}

/* Whether so many right guesses of `guesses` are too many for epsilon: theorem 5.2, by a sum of the binomial tail. */
static bool is_refuted(double epsilon, uint32_t right, uint32_t guesses)
{
    const double p = 1 / (1 + exp(-epsilon));
    double tail = 0, below = 0, alpha = 0;
    for (uint32_t k = 0; k <= guesses; k++) {
        double log_chance =
            lgamma(guesses + 1.0) - lgamma(k + 1.0) - lgamma(guesses - k + 1.0) + k * log(p);
        log_chance += k < guesses ? (guesses - k) * log1p(-p) : 0;
        tail += k >= right ? exp(log_chance) : 0;
    }
    for (uint32_t i = 1; i <= right; i++) {
        uint32_t k = right - i;
        below += exp(lgamma(guesses + 1.0) - lgamma(k + 1.0) - lgamma(guesses - k + 1.0) +
                     k * log(p) + (guesses - k) * log1p(-p));
        alpha = fmax(alpha, below / i);
    }
    return tail + alpha * DELTA * 2 * CANARIES < 0.05;
}

/* The least epsilon that is not refuted: guess "in" for the highest scores, and "out" for the lowest. */
static double least_epsilon(uint32_t guesses)
{
    static uint32_t order[CANARIES];
    uint32_t right = 0;
    double epsilon = 0;
    for (uint32_t i = 0; i < CANARIES; i++)
        order[i] = i;
    qsort(order, CANARIES, sizeof *order, by_score);
    for (uint32_t i = 0; i < guesses / 2; i++)
        right += (unsigned)inside[order[CANARIES - 1 - i]] + (unsigned)!inside[order[i]];
    while (epsilon < 10 && is_refuted(epsilon + 0.01, right, guesses))
        epsilon += 0.01;
    return epsilon;
}

/* The median over runs of the best bound. */
static double audit(const struct sgp_learner_privacy *privacy)
{
    double found[RUNS];
    for (uint32_t run = 0; run < RUNS; run++) {
        listen_to(privacy, run + 1);
        found[run] = fmax(fmax(least_epsilon(40), least_epsilon(100)), least_epsilon(400));
    }
    return fmax(fmin(found[0], found[1]), fmin(fmax(found[0], found[1]), found[2]));
}

Test(privacy_audit, what_canaries_tell_is_below_the_claim, .timeout = 600)
{
    struct sgp_privacy_cost step, all = {0};
    sgp_privacy_step(0.1, NOISE, &step);
    sgp_privacy_add(&all, &step, STEPS);
    const double claim = sgp_privacy_epsilon(&all, DELTA);
    cr_assert(epsilon_eq(dbl, claim, 1.66, 0.005));
    const struct {
        const char *what;
        bool refuted;
        struct sgp_learner_privacy privacy;
    } cases[] = {{"sound", false, {.clip = 1, .noise = NOISE}},
        {"the auditor knows the seed, and takes the noise off", true, {.clip = 1}},
        {"no clipping", true, {.clip = 1e6, .noise = NOISE / 1e6}},
        {"noise of the mean", true, {.clip = 1, .noise = NOISE / sqrt(150)}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double least = audit(&cases[i].privacy);
        (void)printf("%s: epsilon is at least %.2f, claimed %.2f\n", cases[i].what, least, claim);
        cr_assert(
            eq(int, (int)(least > claim), (int)cases[i].refuted), "%s: %g", cases[i].what, least);
    }
}
