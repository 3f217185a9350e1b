/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the steps of a rule, for test_step_rules.py:
 * take_steps KIND RATE DECAY CLIP_NORM CLIP_VALUE WEIGHTS BIASES STEPS, with the other settings as by default.
 * Standard input: the parameters, WEIGHTS values of a matrix and BIASES behind them, then a gradient for each step, all
 * float32. Standard output: the parameters after each step. In the middle it begins again from its state. */
#include "sgp/optimizer.h"

#include <stdio.h>
#include <stdlib.h>

#define VALUES_MAX 1024u

/* As in a process that begins again from a checkpoint. */
static bool begin_again(struct sgp_optimizer *optimizer)
{
    struct sgp_optimizer next;
    struct sgp_trainer_state state = {0};
    sgp_optimizer_state(optimizer, &state);
    if (sgp_optimizer_init(
            &next, &optimizer->settings, optimizer->parameters, &optimizer->tensors) < 0)
        return false;
    sgp_optimizer_resume(&next, &state);
    sgp_optimizer_finish(optimizer);
    *optimizer = next;
    return true;
}

static bool take(struct sgp_optimizer *optimizer, double rate, unsigned long steps)
{
    size_t count = optimizer->parameters;
    float x[VALUES_MAX], gradient[VALUES_MAX];
    bool good = fread(x, sizeof *x, count, stdin) == count;
    for (unsigned long i = 0; i < steps && good; i++) {
        good = fread(gradient, sizeof *gradient, count, stdin) == count;
        good = good && (i != steps / 2 || begin_again(optimizer));
        sgp_optimizer_step(optimizer, x, gradient, NULL, 1, rate);
        good = good && fwrite(x, sizeof *x, count, stdout) == count;
    }
    return good;
}

int main(int count, char **arguments)
{
    if (count != 9)
        return 2;
    double numbers[4];
    for (int i = 0; i < 4; i++)
        numbers[i] = strtod(arguments[2 + i], NULL);
    uint64_t weights = strtoul(arguments[6], NULL, 10), biases = strtoul(arguments[7], NULL, 10);
    const struct sgp_tensor_end ends[] = {{weights, true}, {weights + biases, false}};
    struct sgp_optimizer_settings settings = {.momentum = 0.9,
        .weight_decay = numbers[1],
        .beta1 = 0.9,
        .beta2 = 0.999,
        .alpha = 0.99,
        .epsilon = 1e-8,
        .trust = 1e-3,
        .noise_fraction = 1,
        .clip_norm = numbers[2],
        .clip_value = numbers[3],
        .kind = (enum sgp_optimizer_kind)strtol(arguments[1], NULL, 10)};
    struct sgp_optimizer optimizer;
    if (weights + biases > VALUES_MAX || sgp_optimizer_check(&settings, NULL) < 0 ||
        sgp_optimizer_init(&optimizer, &settings, weights + biases,
            &(struct sgp_tensors){ends, biases > 0 ? 2 : 1}) < 0)
        return 2;
    bool good = take(&optimizer, numbers[0], strtoul(arguments[8], NULL, 10));
    sgp_optimizer_finish(&optimizer);
    return good ? 0 : 1;
}
