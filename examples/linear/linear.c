/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a linear model through the daemon of this machine, by name or by its socket. Each node draws rows of its own
 * from one plane, and all of them find it. Between its turns it says what `sgpctl evaluate` and `sgpctl predict` ask.
 *
 *   cc linear.c -o linear $(pkg-config --cflags --libs sgp) -lm && ./linear n0
 */
#include <math.h>
#include <sgp/attach.h>
#include <sgp/random.h>
#include <stdio.h>

#define FEATURES 4
#define ROWS 32 /* in a step */

static const double plane[FEATURES + 1] = {1, -2, 3, -4, 0.5}; /* to be found: weights, then bias */

static double value(const float *z, const double x[FEATURES + 1])
{
    double sum = 0;
    for (int i = 0; i <= FEATURES; i++)
        sum += (double)z[i] * x[i];
    return sum;
}

/* The squared distance of the planes is what rows without end would find, for their features are normal. */
static int evaluate(void *context, const float *z, struct sgp_evaluation *ret_evaluation)
{
    (void)context;
    ret_evaluation->loss = 0;
    for (int i = 0; i <= FEATURES; i++)
        ret_evaluation->loss += pow((double)z[i] - plane[i], 2);
    return 0;
}

static int predict(void *context, const float *z, const float *features, uint64_t rows,
    uint32_t columns, float *outputs)
{
    (void)context;
    if (columns != FEATURES)
        return SGP_E_DATA;
    for (uint64_t row = 0; row < rows; row++) {
        double x[FEATURES + 1] = {[FEATURES] = 1};
        for (uint32_t i = 0; i < columns; i++)
            x[i] = (double)features[row * columns + i];
        outputs[row] = (float)value(z, x);
    }
    return 0;
}

/* One step of gradient descent on rows drawn for it. Returns the mean of the squared errors. */
static double step(float *z, struct sgp_random *random)
{
    double gradient[FEATURES + 1] = {0}, loss = 0;
    for (int row = 0; row < ROWS; row++) {
        double x[FEATURES + 1] = {[FEATURES] = 1}, error = 0;
        for (int i = 0; i < FEATURES; i++)
            x[i] = sgp_random_normal(random);
        for (int i = 0; i <= FEATURES; i++)
            error -= plane[i] * x[i];
        error += value(z, x);
        for (int i = 0; i <= FEATURES; i++)
            gradient[i] += 2 * error * x[i] / ROWS;
        loss += error * error / ROWS;
    }
    for (int i = 0; i <= FEATURES; i++)
        z[i] -= (float)(0.05 * gradient[i]);
    return loss;
}

int main(int count, char **arguments)
{
    const struct sgp_file_tensor tensors[] = {
        {.name = "weight", .shape = {1, FEATURES}, .first = 0, .count = FEATURES},
        {.name = "bias", .shape = {1}, .first = FEATURES, .count = 1}};
    const struct sgp_attach_options options = {.node = count > 1 ? arguments[1] : NULL,
        .program = "linear",
        .tensors = tensors,
        .tensor_count = 2,
        .values_from = FEATURES + 1, /* updates all of them: nothing here is a running average */
        .rounds = 200,
        .timeout_ms = 10000,
        .answers = {.evaluate = evaluate, .predict = predict, .outputs = 1}};
    const float initial[FEATURES + 1] = {0};
    struct sgp_error error = {0};
    struct sgp_attachment *attachment;
    if (sgp_attach(&options, initial, &error, &attachment) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    struct sgp_attach_welcome welcome;
    sgp_attachment_welcome(attachment, &welcome);
    float *z = sgp_attachment_values(attachment);
    struct sgp_random random;
    sgp_random_init(&random, welcome.seed, welcome.index);

    struct sgp_mixed mixed = {0};
    int status = 0;
    while (status == 0 && !mixed.stop) {
        const struct sgp_step done = {
            .rows = ROWS, .loss = step(z, &random), .epoch = (double)NAN, .learning_rate = 0.05};
        status = sgp_attachment_mix(attachment, &done, &error, &mixed);
    }
    struct sgp_finished finished;
    if (status == 0)
        status = sgp_attachment_finish(attachment, &error, &finished);
    if (status == 0)
        printf("%s, round %lld: %.3f %.3f %.3f %.3f %.3f\n", welcome.node,
            (long long)finished.round, (double)z[0], (double)z[1], (double)z[2], (double)z[3],
            (double)z[4]);
    else
        fprintf(stderr, "%s\n", error.text);
    sgp_attachment_detach(attachment);
    return status == 0 ? 0 : 1;
}
