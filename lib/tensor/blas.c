/* SPDX-License-Identifier: Apache-2.0 */
/* Which BLAS this process has, whether its products are correct, and how fast it is; see blas.h. */
#include "blas.h"

#include "sgp/random.h"

#include <cblas.h>
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

void sgp_blas_kernels(char ret_name[SGP_BLAS_NAME_BYTES])
{
    (void)snprintf(ret_name, SGP_BLAS_NAME_BYTES, "%s", openblas_get_corename());
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

void sgp_blas_key(char ret_text[SGP_TEXT_BYTES])
{
    unsigned model[3][4] = {{0}}; /* its name, as characters */
#ifdef __x86_64__
    for (unsigned i = 0; i < 3; i++)
        (void)__get_cpuid(0x80000002u + i, &model[i][0], &model[i][1], &model[i][2], &model[i][3]);
#endif
    (void)snprintf(ret_text, SGP_TEXT_BYTES, "%.*s, ability %d, %s", (int)sizeof model,
        (const char *)model, (int)ability_of_processor(), openblas_get_config());
}

/* ---- one product ---- */

struct product { /* c = scale * a' b', of rows x inner by inner x columns */
    bool a_transposed, b_transposed;
    int rows, columns, inner;
};

static void multiply(const struct product *p, float scale, const float *a, const float *b, float *c)
{
    cblas_sgemm(CblasRowMajor, p->a_transposed ? CblasTrans : CblasNoTrans,
        p->b_transposed ? CblasTrans : CblasNoTrans, p->rows, p->columns, p->inner, scale, a,
        p->a_transposed ? p->rows : p->inner, b, p->b_transposed ? p->inner : p->columns, 0.0f, c,
        p->columns);
}

static size_t element(bool transposed, size_t row, size_t column, size_t rows, size_t columns)
{
    return transposed ? column * rows + row : row * columns + column;
}

/* Whether c[row][column] equals its sum, up to the rounding of that many additions. */
static bool is_right(const struct product *p, float scale, const float *a, const float *b,
    const float *c, size_t row, size_t column, double *ret_sum)
{
    size_t rows = (size_t)p->rows, columns = (size_t)p->columns, inner = (size_t)p->inner;
    double sum = 0, size = 0;
    for (size_t i = 0; i < inner; i++) {
        double term = (double)a[element(p->a_transposed, row, i, rows, inner)] *
                      (double)b[element(p->b_transposed, i, column, inner, columns)];
        sum += term;
        size += fabs(term);
    }
    *ret_sum = (double)scale * sum;
    double bound = (double)(p->inner + 16) * 0x1p-24 * fabs((double)scale) * size;
    return fabs((double)c[row * columns + column] - *ret_sum) <= bound; /* false for a NaN */
}

static int wrong(const struct product *p, double got, double sum, struct sgp_error *error)
{
    return sgp_fail(error, SGP_E_STATE,
        "a product of %d x %d%s by %d x %d%s has %.9g where %.9g is right", p->rows, p->inner,
        p->a_transposed ? " (transposed)" : "", p->inner, p->columns,
        p->b_transposed ? " (transposed)" : "", got, sum);
}

#define LOOKS 256u /* number of checked elements of a large product */

/* c is filled with NaN first, so that a product that adds to it is found wrong. */
static int verify(
    const struct product *p, struct sgp_random *random, float *memory, struct sgp_error *error)
{
    size_t a_count = (size_t)p->rows * (size_t)p->inner;
    size_t b_count = (size_t)p->inner * (size_t)p->columns;
    size_t c_count = (size_t)p->rows * (size_t)p->columns;
    float *a = memory, *b = a + a_count, *c = b + b_count;
    const float scale = 0.75f;
    for (size_t i = 0; i < a_count + b_count; i++)
        a[i] = (float)(sgp_random_double(random) - 0.5);
    for (size_t i = 0; i < c_count; i++)
        c[i] = NAN;
    multiply(p, scale, a, b, c);
    bool all = c_count <= LOOKS * 4;
    for (size_t i = 0; i < (all ? c_count : LOOKS); i++) {
        size_t at = all || i == 0 ? i : i == 1 ? c_count - 1 : sgp_random_below(random, c_count);
        double sum;
        if (!is_right(p, scale, a, b, c, at / (size_t)p->columns, at % (size_t)p->columns, &sum))
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
static void products_of(const struct sgp_blas_layer *layer, struct product ret_products[3])
{
    int rows = (int)part_of(layer->rows), inputs = (int)part_of(layer->inputs);
    int outputs = (int)part_of(layer->outputs);
    ret_products[0] = (struct product){false, true, rows, outputs, inputs};
    ret_products[1] = (struct product){true, false, outputs, inputs, rows};
    ret_products[2] = (struct product){false, false, rows, inputs, outputs};
}

static const int odd_sizes[] = {1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 64, 65};
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
        struct product product = {i % 2 == 1, i / 2 % 2 == 1,
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
        struct product products[3];
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
    struct product products[3];
    products_of(layer, products);
    size_t most = floats_of(layer);
    for (size_t i = 0; i < most; i++)
        memory[i] = 1;
    double least = INFINITY, begin = seconds(), spent = 0;
    for (int times = 0; times < 3 || spent < enough; times++) {
        double start = seconds();
        for (size_t i = 0; i < 3; i++) {
            const struct product *p = &products[i];
            float *b = memory + (size_t)p->rows * (size_t)p->inner;
            multiply(p, 1, memory, b, b + (size_t)p->inner * (size_t)p->columns);
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
    openblas_set_num_threads(1);
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
