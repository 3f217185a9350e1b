/* SPDX-License-Identifier: Apache-2.0 */
/* How fast blocks (sgp/block.h) are packed, projected and unpacked by one thread.
 *
 *   block COUNT...    one JSON object for each number of values, a multiple of 256, and each form:
 *                     bytes/s of float32 of packing; of y = y - project(x) / 2, which is how a
 *                     source keeps the rest; and of unpacking
 */
#include "stopwatch.h"

#include "sgp/block.h"
#include "sgp/kernels.h"
#include "sgp/random.h"

#include <stdio.h>
#include <stdlib.h>

#define TIMES 100           /* of which the fastest counts */
#define LEAST_SECONDS 0.002 /* of one of them */

struct vectors {
    size_t count;
    enum sgp_compressor compressor;
    float *x, *y;
    uint8_t *bytes;
    size_t size; /* of a block */
};

static void pack(const struct vectors *v)
{
    uint8_t *next = v->bytes;
    for (size_t i = 0; i < v->count; i += SGP_BLOCK_VALUES)
        next += sgp_block_pack(next, v->compressor, false, v->x + i, SGP_BLOCK_VALUES);
}

static void project_and_absorb(const struct vectors *v)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    float projected[SGP_BLOCK_VALUES];
    for (size_t i = 0; i < v->count; i += SGP_BLOCK_VALUES) {
        (void)sgp_block_project(projected, v->compressor, false, v->x + i, SGP_BLOCK_VALUES);
        kernels->absorb(v->y + i, projected, -0.5f, SGP_BLOCK_VALUES);
    }
}

static void unpack(const struct vectors *v)
{
    const uint8_t *next = v->bytes;
    for (size_t i = 0; i < v->count; i += SGP_BLOCK_VALUES, next += v->size)
        sgp_assert(sgp_block_unpack(v->y + i, next, v->size, SGP_BLOCK_VALUES) == 0);
}

static double rate(void (*run)(const struct vectors *), const struct vectors *v)
{
    double best = 0;
    for (unsigned t = 0; t < TIMES; t++) {
        double start = stopwatch_seconds(), seconds;
        unsigned times = 0;
        do {
            run(v);
            times++;
            seconds = stopwatch_seconds() - start;
        } while (seconds < LEAST_SECONDS);
        double bytes = (double)times * (double)v->count * sizeof(float);
        best = bytes / seconds > best ? bytes / seconds : best;
    }
    return best;
}

static void *memory(size_t bytes)
{
    void *got = calloc(1, bytes);
    if (got == NULL) {
        perror("block");
        exit(1);
    }
    return got;
}

static void measure(size_t count)
{
    static const struct {
        const char *name;
        enum sgp_compressor compressor;
    } forms[] = {{"fp16", SGP_COMPRESSOR_FP16}, {"bf16", SGP_COMPRESSOR_BF16},
        {"int8", SGP_COMPRESSOR_INT8}, {"int6", SGP_COMPRESSOR_INT6}, {"int4", SGP_COMPRESSOR_INT4},
        {"int4:64", SGP_COMPRESSOR_INT4_64}, {"sign", SGP_COMPRESSOR_SIGN}};
    struct vectors v = {.count = count,
        .x = memory(count * sizeof(float)),
        .y = memory(count * sizeof(float)),
        .bytes = memory(count / SGP_BLOCK_VALUES * SGP_BLOCK_BYTES_MOST)};
    struct sgp_random random;
    sgp_random_init(&random, 1, 0);
    for (size_t i = 0; i < count; i++)
        v.x[i] = (float)sgp_random_double(&random) - 0.5f;
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        v.compressor = forms[f].compressor;
        v.size = sgp_block_pack(v.bytes, v.compressor, false, v.x, SGP_BLOCK_VALUES);
        double packed = rate(pack, &v), absorbed = rate(project_and_absorb, &v);
        (void)printf("{\"form\": \"%s\", \"values\": %zu, \"pack\": %.4g, "
                     "\"project_and_absorb\": %.4g, \"unpack\": %.4g}\n",
            forms[f].name, count, packed, absorbed, rate(unpack, &v));
    }
    free(v.x);
    free(v.y);
    free(v.bytes);
}

int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        size_t values = strtoull(arguments[i], NULL, 10);
        if (values == 0 || values % SGP_BLOCK_VALUES != 0) {
            (void)fprintf(stderr, "Usage: block COUNT..., multiples of %u\n", SGP_BLOCK_VALUES);
            return 2;
        }
        measure(values);
    }
    return 0;
}
