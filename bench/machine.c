/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor and its memory allow, without any of our code but the choice of OpenBLAS's kernels.
 *
 *   machine memory                              bytes/s of memcpy and of a[i] = b[i] + s * c[i]
 *   machine sgemm THREADS                       flops/s of square matrices of 2048
 *   machine model WIDTHS BATCH THREADS SECONDS  rows/s if a training step were its matrix products
 *                                               alone; WIDTHS is 784,512,10: inputs, then each layer's
 */
#include "stopwatch.h"

#include "sgp/blas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_FLOATS ((size_t)32 << 20) /* 128 MiB: far more than any cache here */
#define MEMORY_TIMES 10u
#define SGEMM_SIZE 2048
#define SGEMM_TIMES 5u
#define WIDTHS_MAX 16

static float *vector(size_t count)
{
    float *values = aligned_alloc(64, (count * sizeof *values + 63) / 64 * 64);
    if (values == NULL) {
        perror("machine");
        exit(1);
    }
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(i % 1000) * 1e-3f;
    return values;
}

static int memory(void)
{
    float *a = vector(MEMORY_FLOATS);
    float *b = vector(MEMORY_FLOATS);
    float *c = vector(MEMORY_FLOATS);
    double bytes = (double)MEMORY_FLOATS * sizeof *a;
    struct stopwatch start = stopwatch_now();
    for (unsigned i = 0; i < MEMORY_TIMES; i++) {
        memcpy(a, i % 2 ? b : c, MEMORY_FLOATS * sizeof *a);
        __asm__ volatile("" ::"r"(a) : "memory"); /* it was wanted */
    }
    double copy = stopwatch_since(start, MEMORY_TIMES).seconds;
    start = stopwatch_now();
    for (unsigned i = 0; i < MEMORY_TIMES; i++) {
        for (size_t j = 0; j < MEMORY_FLOATS; j++)
            a[j] = b[j] + 0.5f * c[j];
        __asm__ volatile("" ::"r"(a) : "memory");
    }
    double triad = stopwatch_since(start, MEMORY_TIMES).seconds;
    (void)printf("{\"memcpy\": %.6g, \"triad\": %.6g}\n", bytes / copy, 3 * bytes / triad);
    free(a);
    free(b);
    free(c);
    return 0;
}

static int sgemm(int threads)
{
    const size_t n = SGEMM_SIZE, count = n * n;
    float *a = vector(count);
    float *b = vector(count);
    float *c = vector(count);
    sgp_blas_set_threads((uint32_t)threads);
    const struct sgp_blas_product product = {false, false, n, n, n};
    sgp_blas_multiply(&product, 1.0f, a, b, false, c);
    struct stopwatch start = stopwatch_now();
    for (unsigned i = 0; i < SGEMM_TIMES; i++)
        sgp_blas_multiply(&product, 1.0f, a, b, false, c);
    double seconds = stopwatch_since(start, SGEMM_TIMES).seconds;
    (void)printf("{\"flops\": %.6g}\n", 2.0 * (double)n * (double)count / seconds);
    free(a);
    free(b);
    free(c);
    return 0;
}

/* ---- the products of a model ---- */

struct products {
    int layers;
    int widths[WIDTHS_MAX + 1];
    int batch;
    float *activations[WIDTHS_MAX + 1]; /* batch x width */
    float *deltas[WIDTHS_MAX + 1];
    float *weights[WIDTHS_MAX]; /* outputs x inputs */
    float *gradients[WIDTHS_MAX];
};

/* Forward, the gradients of all weights, and the way back to all layers but the first. */
static void step(struct products *p)
{
    const size_t batch = (size_t)p->batch;
    for (int l = 0; l < p->layers; l++) {
        const size_t inputs = (size_t)p->widths[l], outputs = (size_t)p->widths[l + 1];
        const struct sgp_blas_product forward = {false, true, batch, outputs, inputs};
        sgp_blas_multiply(
            &forward, 1.0f, p->activations[l], p->weights[l], false, p->activations[l + 1]);
    }
    for (int l = p->layers; l-- > 0;) {
        const size_t inputs = (size_t)p->widths[l], outputs = (size_t)p->widths[l + 1];
        const struct sgp_blas_product gradient = {true, false, outputs, inputs, batch};
        const struct sgp_blas_product back = {false, false, batch, inputs, outputs};
        sgp_blas_multiply(
            &gradient, 1.0f, p->deltas[l + 1], p->activations[l], false, p->gradients[l]);
        if (l > 0)
            sgp_blas_multiply(&back, 1.0f, p->deltas[l + 1], p->weights[l], false, p->deltas[l]);
    }
}

static int parse_widths(struct products *p, const char *text)
{
    char *end;
    int count = 0;
    for (const char *next = text; *next != '\0' && count <= WIDTHS_MAX; next = end) {
        next += *next == ',';
        p->widths[count++] = (int)strtol(next, &end, 10);
        if (end == next || p->widths[count - 1] <= 0)
            return -1;
    }
    p->layers = count - 1;
    return p->layers < 1 ? -1 : 0;
}

static int model(const char *widths, int batch, int threads, double seconds)
{
    struct products p = {.batch = batch};
    if (parse_widths(&p, widths) < 0 || batch <= 0)
        return 2;
    for (int l = 0; l <= p.layers; l++) {
        p.activations[l] = vector((size_t)batch * (size_t)p.widths[l]);
        p.deltas[l] = vector((size_t)batch * (size_t)p.widths[l]);
        if (l < p.layers) {
            p.weights[l] = vector((size_t)p.widths[l] * (size_t)p.widths[l + 1]);
            p.gradients[l] = vector((size_t)p.widths[l] * (size_t)p.widths[l + 1]);
        }
    }
    sgp_blas_set_threads((uint32_t)threads);
    for (int i = 0; i < 10; i++)
        step(&p);
    unsigned steps = 0;
    struct stopwatch start = stopwatch_now();
    do {
        step(&p);
        steps++;
    } while (stopwatch_since(start, 1).seconds < seconds);
    (void)printf("{\"rows\": %.6g}\n", batch / stopwatch_since(start, steps).seconds);
    return 0;
}

/* What the daemon would multiply with. */
static bool fit(void)
{
    const struct sgp_blas_layer layer = {128, 512, 512};
    struct sgp_blas blas;
    struct sgp_error error = {0};
    const struct sgp_blas_wish wish = {.layers = &layer, .count = 1};
    bool right = sgp_blas_fit(&wish, &error, &blas) == 0;
    if (!right)
        (void)fprintf(stderr, "machine: %s\n", error.text);
    return right;
}

int main(int count, char **arguments)
{
    if (!fit())
        return 1;
    if (count == 2 && strcmp(arguments[1], "memory") == 0)
        return memory();
    if (count == 3 && strcmp(arguments[1], "sgemm") == 0)
        return sgemm(atoi(arguments[2]));
    if (count == 6 && strcmp(arguments[1], "model") == 0)
        return model(
            arguments[2], atoi(arguments[3]), atoi(arguments[4]), strtod(arguments[5], NULL));
    (void)fprintf(
        stderr, "Usage: machine memory | sgemm THREADS | model WIDTHS BATCH THREADS SECONDS\n");
    return 2;
}
