/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of OpenBLAS: what suits a processor, whether products are correct, and how fast they are;
 * see blas.h. */
#include "blas.h"

#include "sgp/random.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- kernels and processors ---- */

enum ability { ANY = 0, AVX, AVX2, AVX512 };

/* For the names of OpenBLAS: what its x86 kernels need of a processor. */
static const struct {
    const char *name;
    enum ability ability;
} known[] = {{"Katmai", ANY}, {"Coppermine", ANY}, {"Northwood", ANY}, {"Prescott", ANY},
    {"Banias", ANY}, {"Core2", ANY}, {"Penryn", ANY}, {"Dunnington", ANY}, {"Nehalem", ANY},
    {"Atom", ANY}, {"Athlon", ANY}, {"Opteron", ANY}, {"Opteron_SSE3", ANY}, {"Barcelona", ANY},
    {"Bobcat", ANY}, {"Nano", ANY}, {"Sandybridge", AVX}, {"Bulldozer", AVX}, {"Piledriver", AVX},
    {"Steamroller", AVX}, {"Excavator", AVX}, {"Haswell", AVX2}, {"Zen", AVX2},
    {"SkylakeX", AVX512}, {"Cooperlake", AVX512}, {"SapphireRapids", AVX512}};

static enum ability ability_of_processor(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx512)
        return AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return AVX2;
    if (__builtin_cpu_supports("avx"))
        return AVX;
#endif
    return ANY;
}

bool sgp_blas_suit(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(known[i].name, name) == 0)
            return known[i].ability >= ability_of_processor();
    return true;
}

const char *const *sgp_blas_candidates(void)
{
    static const char *const lists[][6] = {
        [ANY] = {NULL},
        [AVX] = {"Sandybridge", NULL},
        [AVX2] = {"Haswell", "Zen", NULL},
        [AVX512] = {"SkylakeX", "Cooperlake", "Haswell", "Zen", NULL},
    };
    return lists[ability_of_processor()];
}

void sgp_blas_key(const char *build, char ret_text[SGP_TEXT_BYTES])
{
    unsigned model[3][4] = {{0}}; /* its name, as characters */
#ifdef __x86_64__
    for (unsigned i = 0; i < 3; i++)
        (void)__get_cpuid(0x80000002u + i, &model[i][0], &model[i][1], &model[i][2], &model[i][3]);
#endif
    (void)snprintf(ret_text, SGP_TEXT_BYTES, "%.*s, ability %d, %s", (int)sizeof model,
        (const char *)model, (int)ability_of_processor(), build);
}

/* ---- one product ---- */

static size_t element(bool transposed, size_t row, size_t column, size_t rows, size_t columns)
{
    return transposed ? column * rows + row : row * columns + column;
}

/* Whether c[row][column] equals its sum, up to the rounding of that many additions. */
static bool is_right(const struct sgp_blas_product *p, float scale, const float *a, const float *b,
    const float *c, size_t row, size_t column, double *ret_sum)
{
    size_t rows = p->rows, columns = p->columns, inner = p->inner;
    double sum = 0, size = 0;
    for (size_t i = 0; i < inner; i++) {
        double term = (double)a[element(p->left_transposed, row, i, rows, inner)] *
                      (double)b[element(p->right_transposed, i, column, inner, columns)];
        sum += term;
        size += fabs(term);
    }
    *ret_sum = (double)scale * sum;
    double bound = (double)(p->inner + 16) * 0x1p-24 * fabs((double)scale) * size;
    return fabs((double)c[row * columns + column] - *ret_sum) <= bound; /* false for a NaN */
}

static int wrong(const struct sgp_blas_product *p, double got, double sum, struct sgp_error *error)
{
    return sgp_fail(error, SGP_E_STATE,
        "a product of %zu x %zu%s by %zu x %zu%s has %.9g where %.9g is right", p->rows, p->inner,
        p->left_transposed ? " (transposed)" : "", p->inner, p->columns,
        p->right_transposed ? " (transposed)" : "", got, sum);
}

#define LOOKS 256u /* number of checked elements of a large product */

/* c is filled with NaN first, so that a product that adds to it is found wrong. */
static int verify(const struct sgp_blas_product *p, struct sgp_random *random, float *memory,
    struct sgp_error *error)
{
    size_t a_count = p->rows * p->inner;
    size_t b_count = p->inner * p->columns;
    size_t c_count = p->rows * p->columns;
    float *a = memory, *b = a + a_count, *c = b + b_count;
    const float scale = 0.75f;
    for (size_t i = 0; i < a_count + b_count; i++)
        a[i] = (float)(sgp_random_double(random) - 0.5);
    for (size_t i = 0; i < c_count; i++)
        c[i] = NAN;
    sgp_blas_multiply(p, scale, a, b, false, c);
    bool all = c_count <= LOOKS * 4;
    for (size_t i = 0; i < (all ? c_count : LOOKS); i++) {
        size_t at = all || i == 0 ? i : i == 1 ? c_count - 1 : sgp_random_below(random, c_count);
        double sum;
        if (!is_right(p, scale, a, b, c, at / p->columns, at % p->columns, &sum))
            return wrong(p, (double)c[at], sum, error);
    }
    return 0;
}

/* ---- products of layers ---- */

/* Kernels work on blocks. Beyond this size there is nothing new to check, except for the remainder
 * at the end. */
static uint32_t part_of(uint32_t size)
{
    return size <= 1024 ? size : 1024 + size % 64;
}

/* Forward, the gradient of the weights, and backward to the inputs. */
static void products_of(const struct sgp_blas_layer *layer, struct sgp_blas_product ret_products[3])
{
    size_t rows = part_of(layer->rows), inputs = part_of(layer->inputs);
    size_t outputs = part_of(layer->outputs);
    ret_products[0] = (struct sgp_blas_product){false, true, rows, outputs, inputs};
    ret_products[1] = (struct sgp_blas_product){true, false, outputs, inputs, rows};
    ret_products[2] = (struct sgp_blas_product){false, false, rows, inputs, outputs};
}

static const size_t odd_sizes[] = {1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 64, 65};
#define ODD_MAX 65u
#define ODD_TRIES 300u /* of 13^3 x 4 */

static size_t floats_of(const struct sgp_blas_layer *layer)
{
    size_t rows = part_of(layer->rows), inputs = part_of(layer->inputs);
    size_t outputs = part_of(layer->outputs);
    return rows * inputs + inputs * outputs + rows * outputs;
}

static float *memory_for(const struct sgp_blas_layer *layers, uint32_t count)
{
    size_t most = (size_t)3 * ODD_MAX * ODD_MAX;
    for (uint32_t i = 0; i < count; i++)
        most = floats_of(&layers[i]) > most ? floats_of(&layers[i]) : most;
    return malloc(most * sizeof(float));
}

static int verify_odd(struct sgp_random *random, float *memory, struct sgp_error *error)
{
    const size_t sizes = sizeof odd_sizes / sizeof *odd_sizes;
    int code = 0;
    for (uint32_t i = 0; i < ODD_TRIES && code == 0; i++) {
        struct sgp_blas_product product = {i % 2 == 1, i / 2 % 2 == 1,
            odd_sizes[sgp_random_below(random, sizes)], odd_sizes[sgp_random_below(random, sizes)],
            odd_sizes[sgp_random_below(random, sizes)]};
        code = verify(&product, random, memory, error);
    }
    return code;
}

int sgp_blas_verify(const struct sgp_blas_layer *layers, uint32_t count, struct sgp_error *error)
{
    struct sgp_random random;
    sgp_random_init(&random, 1, 1);
    float *memory = memory_for(layers, count);
    if (memory == NULL)
        return -ENOMEM;
    int code = verify_odd(&random, memory, error);
    for (uint32_t i = 0; i < 3 * count && code == 0; i++) {
        struct sgp_blas_product products[3];
        products_of(&layers[i / 3], products);
        code = verify(&products[i % 3], &random, memory, error);
    }
    free(memory);
    return code;
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The least time of the products of a layer, over several runs. */
static double least_time(const struct sgp_blas_layer *layer, float *memory)
{
    const double enough = 0.02, at_most = 0.25;
    struct sgp_blas_product products[3];
    products_of(layer, products);
    size_t most = floats_of(layer);
    for (size_t i = 0; i < most; i++)
        memory[i] = 1;
    double least = INFINITY, begin = seconds(), spent = 0;
    for (int times = 0; times < 3 || spent < enough; times++) {
        double start = seconds();
        for (size_t i = 0; i < 3; i++) {
            const struct sgp_blas_product *p = &products[i];
            float *b = memory + p->rows * p->inner;
            sgp_blas_multiply(p, 1, memory, b, false, b + p->inner * p->columns);
        }
        least = fmin(least, seconds() - start);
        spent = seconds() - begin;
        if (spent > at_most)
            break;
    }
    return least;
}

double sgp_blas_rate(const struct sgp_blas_layer *layers, uint32_t count)
{
    sgp_blas_set_threads(1);
    float *memory = memory_for(layers, count);
    double time = 0, work = 0;
    for (uint32_t i = 0; memory != NULL && i < count; i++) {
        time += least_time(&layers[i], memory);
        work +=
            6.0 * part_of(layers[i].rows) * part_of(layers[i].inputs) * part_of(layers[i].outputs);
    }
    free(memory);
    return time > 0 ? work / time : 0;
}
