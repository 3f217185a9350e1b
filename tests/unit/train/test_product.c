/* SPDX-License-Identifier: Apache-2.0 */
/* Products in each precision: float32 to the bit of OpenBLAS and the narrow kernels, bfloat16
 * against loops that round by another rule, and oneDNN's layouts and refusals. */
#include "sgp/kernels.h"
#include "sgp/learner.h"
#include "sgp/random.h"
#include "train/onednn.h"
#include "train/product.h"

#include <cblas.h>
#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define SIDE 70 /* of a matrix, at most */

/* Sizes at which kernels change: one, narrow, odd, more than a vector. */
static const struct sgp_product_shape shapes[] = {
    {1, 1, 1}, {3, 5, 2}, {16, 33, 10}, {17, 20, 15}, {5, 70, 16}, {33, 17, 40}, {70, 64, 70}};
#define SHAPES (sizeof shapes / sizeof *shapes)

struct matrices {
    float features[SIDE * SIDE], weights[SIDE * SIDE], delta[SIDE * SIDE];
};

static struct matrices *fill(uint64_t seed)
{
    struct matrices *m = malloc(sizeof *m);
    struct sgp_random random;
    sgp_random_init(&random, seed, 0);
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        m->features[i] = (float)sgp_random_normal(&random);
        m->weights[i] = (float)(0.1 * sgp_random_normal(&random));
        m->delta[i] = (float)(1e-3 * sgp_random_normal(&random));
    }
    return m;
}

struct ready {
    struct sgp_product product;
    float *memory;
};

static struct ready ready(enum sgp_precision precision, const struct sgp_product_shape *shape)
{
    struct ready r;
    struct sgp_product_room room = {0};
    sgp_product_fit(&room, shape);
    r.memory = aligned_alloc(64, sgp_product_floats(precision, &room) * sizeof(float) + 64);
    cr_assert(eq(int, sgp_product_init(&r.product, precision, 1, &room, r.memory), 0));
    return r;
}

static void done(struct ready *r)
{
    sgp_product_finish(&r->product);
    free(r->memory);
}

Test(product, float32_is_what_blas_and_the_narrow_kernels_give)
{
    struct matrices *m = fill(1);
    const float scale = 0.7f;
    static float got[SIDE * SIDE], want[SIDE * SIDE];
    for (size_t i = 0; i < SHAPES; i++) {
        const struct sgp_product_shape *s = &shapes[i];
        int rows = (int)s->rows, inputs = (int)s->inputs, outputs = (int)s->outputs;
        struct ready r = ready(SGP_PRECISION_FLOAT32, s);
        bool narrow = s->outputs <= 15;
        sgp_product_forward(&r.product, s, got, m->features, m->weights, scale);
        if (narrow)
            sgp_kernels_best()->narrow_product(
                want, m->features, m->weights, scale, s->rows, s->inputs, s->outputs);
        else
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, outputs, inputs, scale,
                m->features, inputs, m->weights, inputs, 0.0f, want, outputs);
        cr_assert(
            eq(int, memcmp(got, want, s->rows * s->outputs * sizeof *got), 0), "shape %zu", i);
        sgp_product_gradient(&r.product, s, got, m->delta, m->features, false);
        if (narrow)
            sgp_kernels_best()->narrow_gradient(
                want, m->delta, m->features, s->rows, s->inputs, s->outputs);
        else
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, outputs, inputs, rows, 1.0f,
                m->delta, outputs, m->features, inputs, 0.0f, want, inputs);
        cr_assert(
            eq(int, memcmp(got, want, s->outputs * s->inputs * sizeof *got), 0), "shape %zu", i);
        sgp_product_back(&r.product, s, got, m->delta, m->weights, scale);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, inputs, outputs, scale,
            m->delta, outputs, m->weights, inputs, 0.0f, want, inputs);
        cr_assert(eq(int, memcmp(got, want, s->rows * s->inputs * sizeof *got), 0), "shape %zu", i);
        done(&r);
    }
    free(m);
}

/* --- bfloat16: 8 significant bits, ties to even --- */

static double rounded(double value)
{
    int exponent;
    double fraction = frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(fraction, 8)), exponent - 8);
}

Test(product, the_slow_rounding_knows_bfloat16)
{
    cr_assert(eq(dbl, rounded(1.0), 1.0));
    cr_assert(eq(dbl, rounded(1.0 + 0x1p-8), 1.0), "a tie goes to the even one");
    cr_assert(eq(dbl, rounded(1.0 + 0x3p-8), 1.0 + 0x1p-6), "and the next one up");
    cr_assert(eq(dbl, rounded(-(1.0 + 0x1p-8 + 0x1p-20)), -(1.0 + 0x1p-7)));
    cr_assert(eq(dbl, rounded(3.14159265), 3.140625));
}

struct side { /* element (i, j) of a matrix is values[i * down + j * right] */
    const float *values;
    size_t down, right;
    float scale;
};

/* Each value of c is the float64 sum of products of rounded operands, to the rounding of as many
 * float32 additions. */
static void expect(const char *what, const float *c, size_t rows, size_t columns, size_t inner,
    struct side a, struct side b)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            double sum = 0, size = 0;
            for (size_t k = 0; k < inner; k++) {
                float left = a.scale * a.values[i * a.down + k * a.right];
                float right = b.scale * b.values[k * b.down + j * b.right];
                double term = rounded((double)left) * rounded((double)right);
                sum += term;
                size += fabs(term);
            }
            double far = fabs((double)c[i * columns + j] - sum);
            cr_assert(far <= (double)(inner + 4) * 0x1p-24 * size, /* no NaN */
                "%s, %zu x %zu x %zu at %zu, %zu: %g, not %g", what, rows, columns, inner, i, j,
                (double)c[i * columns + j], sum);
        }
}

static void against_loops(enum sgp_precision precision)
{
    struct matrices *m = fill(2);
    const float scale = 0.7f;
    static float got[SIDE * SIDE];
    for (size_t i = 0; i < SHAPES; i++) {
        const struct sgp_product_shape *s = &shapes[i];
        struct ready r = ready(precision, s);
        struct side features = {m->features, s->inputs, 1, 1.0f};
        struct side delta = {m->delta, s->outputs, 1, 1.0f};
        struct side weights = {m->weights, s->inputs, 1, scale};
        memset(got, 0xff, sizeof got); /* NaN: every value must be written */
        sgp_product_forward(&r.product, s, got, m->features, m->weights, scale);
        expect("forward", got, s->rows, s->outputs, s->inputs, features,
            (struct side){m->weights, 1, s->inputs, scale});
        memset(got, 0xff, sizeof got);
        sgp_product_gradient(&r.product, s, got, m->delta, m->features, false);
        expect("gradient", got, s->outputs, s->inputs, s->rows,
            (struct side){m->delta, 1, s->outputs, 1.0f}, features);
        memset(got, 0xff, sizeof got);
        sgp_product_back(&r.product, s, got, m->delta, m->weights, scale);
        expect("back", got, s->rows, s->inputs, s->outputs, delta, weights);
        done(&r);
    }
    free(m);
}

/* The gradient of rows that come in two parts is that of all of them, but for its rounding. */
static void in_parts(enum sgp_precision precision)
{
    struct matrices *m = fill(3);
    static float whole[SIDE * SIDE], parts[SIDE * SIDE];
    for (size_t i = 0; i < SHAPES; i++) {
        struct sgp_product_shape s = shapes[i], half = s;
        if (s.rows < 2)
            continue;
        half.rows = s.rows / 2;
        struct ready r = ready(precision, &s);
        sgp_product_gradient(&r.product, &s, whole, m->delta, m->features, false);
        memset(parts, 0xff, sizeof parts);
        sgp_product_gradient(&r.product, &half, parts, m->delta, m->features, false);
        const float *delta = m->delta + half.rows * s.outputs;
        const float *features = m->features + half.rows * s.inputs;
        half.rows = s.rows - half.rows;
        sgp_product_gradient(&r.product, &half, parts, delta, features, true);
        for (size_t k = 0; k < s.outputs * s.inputs; k++)
            cr_assert(epsilon_eq(flt, parts[k], whole[k], 1e-7f), "shape %zu at %zu", i, k);
        done(&r);
    }
    free(m);
}

Test(product, gradients_add_up)
{
    in_parts(SGP_PRECISION_FLOAT32);
    in_parts(SGP_PRECISION_BF16_REFERENCE);
    if (sgp_precision_check(SGP_PRECISION_BF16, NULL) == 0)
        in_parts(SGP_PRECISION_BF16);
}

Test(product, the_reference_of_bf16_follows_the_loops)
{
    against_loops(SGP_PRECISION_BF16_REFERENCE);
}

Test(product, bf16_follows_the_loops)
{
    struct sgp_error error = {0};
    if (sgp_precision_check(SGP_PRECISION_BF16, &error) < 0)
        cr_skip_test("%s", error.text);
    against_loops(SGP_PRECISION_BF16);
}

Test(product, bf16_runs_or_says_why_not)
{
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_precision_check(SGP_PRECISION_FLOAT32, &error), 0));
    cr_assert(eq(int, sgp_precision_check(SGP_PRECISION_BF16_REFERENCE, &error), 0));
    int code = sgp_precision_check(SGP_PRECISION_BF16, &error);
    if (code == 0)
        cr_skip_test("bf16 runs here");
    cr_assert(eq(int, code, SGP_E_CONFIG));
    cr_assert(strstr(error.text, "bf16 cannot run here: ") == error.text, "%s", error.text);
    cr_assert(strstr(error.text, "; write precision = float32") != NULL, "%s", error.text);
}

Test(product, a_processor_without_bf16_is_named)
{
#ifdef __x86_64__
    struct sgp_error error = {0};
    struct sgp_onednn *onednn = NULL;
    if (sgp_onednn_create(SGP_ONEDNN_FLOAT32, 1, &error, &onednn) < 0)
        cr_skip_test("%s", error.text);
    sgp_onednn_destroy(onednn);
    if (__builtin_cpu_supports("avx512bf16"))
        cr_skip_test("the processor has AVX512-BF16");
    cr_assert(eq(int, sgp_onednn_create(SGP_ONEDNN_BF16, 1, &error, &onednn), SGP_E_CONFIG));
    cr_assert(eq(str, error.text, (char *)"the processor has neither AVX512-BF16 nor AMX"));
#else
    cr_skip_test("not an x86 processor");
#endif
}

/* --- oneDNN, with operands that every processor multiplies --- */

Test(product, onednn_takes_matrices_as_they_lie)
{
    struct sgp_error error = {0};
    struct sgp_onednn *onednn = NULL;
    if (sgp_onednn_create(SGP_ONEDNN_FLOAT32, 1, &error, &onednn) < 0)
        cr_skip_test("%s", error.text);
    static float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
    for (size_t i = 0; i < SIDE * SIDE; i++) { /* small integers: every sum is exact */
        a[i] = (float)(i % 11) - 5;
        b[i] = (float)(i % 7) - 3;
    }
    for (size_t i = 0; i < SHAPES * SGP_ONEDNN_FORMS; i++) {
        enum sgp_onednn_form form = (enum sgp_onednn_form)(i % SGP_ONEDNN_FORMS);
        const struct sgp_product_shape *s = &shapes[i / SGP_ONEDNN_FORMS];
        size_t rows = s->rows, columns = s->outputs, inner = s->inputs;
        bool added = form == SGP_ONEDNN_A_TRANSPOSED_ADDED;
        bool a_across = added || form == SGP_ONEDNN_A_TRANSPOSED;
        bool b_across = form == SGP_ONEDNN_B_TRANSPOSED;
        memset(c, 0xff, sizeof c);
        for (size_t k = 0; added && k < rows * columns; k++)
            c[k] = (float)(k % 5);
        cr_assert(eq(int, sgp_onednn_multiply(onednn, form, c, a, b, rows, columns, inner), 0));
        for (size_t k = 0; added && k < rows * columns; k++)
            c[k] -= (float)(k % 5);
        expect("onednn", c, rows, columns, inner,
            (struct side){a, a_across ? 1 : inner, a_across ? rows : 1, 1.0f},
            (struct side){b, b_across ? 1 : columns, b_across ? inner : 1, 1.0f});
    }
    sgp_onednn_destroy(onednn);
}

/* As under MemoryDenyWriteExecute of systemd; PR_SET_MDWE is of Linux 6.3. */
Test(product, onednn_that_may_not_make_code_is_refused)
{
    struct sgp_error error = {0};
    struct sgp_onednn *onednn = NULL;
    if (prctl(65, 1, 0, 0, 0) < 0)
        cr_skip_test("the kernel has no PR_SET_MDWE");
    int code = sgp_onednn_create(SGP_ONEDNN_FLOAT32, 1, &error, &onednn);
    cr_assert(eq(int, code, SGP_E_CONFIG));
    if (strstr(error.text, "built without") || strstr(error.text, "cannot be loaded"))
        cr_skip_test("%s", error.text);
    cr_assert(strstr(error.text, "MemoryDenyWriteExecute=no") != NULL, "%s", error.text);
}

/* --- a model in training --- */

#define ROWS 64
#define FEATURES 20

static struct sgp_learner *learner_of(enum sgp_precision precision, double rate,
    const struct sgp_dataset *data, struct sgp_error *error)
{
    struct sgp_learner *learner = NULL;
    struct sgp_learner_settings settings = {.optimizer = {.kind = SGP_OPTIMIZER_SGD},
        .schedule = {.kind = SGP_SCHEDULE_CONSTANT, .learning_rate = rate},
        .batch = 16,
        .threads = 1,
        .precision = precision,
        .seed = 3,
        .train = data,
        .evaluation = data};
    cr_assert(eq(int,
        sgp_model_init(
            &settings.model, "dense 24 relu, dense 2", SGP_LOSS_CROSS_ENTROPY, FEATURES, NULL),
        0));
    (void)sgp_learner_create(&settings, error, &learner);
    return learner;
}

/* Two classes apart in every feature. */
static struct sgp_dataset *rows_of_two_classes(void)
{
    static float features[ROWS * FEATURES];
    static uint32_t labels[ROWS];
    struct sgp_random random;
    sgp_random_init(&random, 5, 0);
    for (uint32_t r = 0; r < ROWS; r++) {
        labels[r] = r % 2;
        for (uint32_t f = 0; f < FEATURES; f++)
            features[r * FEATURES + f] = (float)(sgp_random_normal(&random) + (r % 2 ? 0.7 : -0.7));
    }
    struct sgp_dataset *data = NULL;
    cr_assert(
        eq(int, sgp_dataset_create_memory(features, labels, NULL, ROWS, FEATURES, 2, 1, &data), 0));
    return data;
}

Test(product, a_model_learns_in_bf16_as_in_float32)
{
    static const enum sgp_precision precisions[] = {
        SGP_PRECISION_FLOAT32, SGP_PRECISION_BF16_REFERENCE};
    struct sgp_dataset *data = rows_of_two_classes();
    double losses[2];
    for (size_t i = 0; i < 2; i++) {
        struct sgp_learner *learner = learner_of(precisions[i], 0.1, data, NULL);
        struct sgp_trainer *trainer = sgp_learner_trainer(learner);
        struct sgp_training training;
        struct sgp_evaluation evaluation;
        cr_assert(eq(int, trainer->methods->train(trainer, 0.8, 100, 1.0, &training), 0));
        cr_assert(eq(int, trainer->methods->evaluate(trainer, 0.8, &evaluation), 0));
        cr_assert(eq(dbl, evaluation.accuracy, 1.0));
        losses[i] = evaluation.loss;
        sgp_learner_destroy(learner);
    }
    cr_assert(ne(dbl, losses[0], losses[1]), "operands were rounded");
    cr_assert(epsilon_eq(dbl, losses[0], losses[1], 0.02 * losses[0]));
    sgp_dataset_destroy(data);
}

/* A step of less than half a bfloat16 is no step of a bfloat16 parameter; the float32 one takes
 * it. */
Test(product, small_steps_count_under_bf16)
{
    struct sgp_dataset *data = rows_of_two_classes();
    struct sgp_learner *learner = learner_of(SGP_PRECISION_BF16_REFERENCE, 1e-5, data, NULL);
    struct sgp_trainer *trainer = sgp_learner_trainer(learner);
    struct sgp_training training;
    static float before[FEATURES * 24 + 24 + 50],
        after[FEATURES * 24 + 24 + 50]; /* the model's parameters */
    trainer->methods->estimate(trainer, 1.0, before);
    cr_assert(eq(int, trainer->methods->train(trainer, 1.0, 1, 1.0, &training), 0));
    trainer->methods->estimate(trainer, 1.0, after);
    size_t changed = 0, small = 0;
    for (size_t i = 0; i < FEATURES * 24; i++) {
        changed += after[i] < before[i] || after[i] > before[i];
        small += rounded((double)after[i]) == rounded((double)before[i]);
    }
    cr_assert(gt(sz, changed, FEATURES * 24 / 2));
    cr_assert(
        gt(sz, small, FEATURES * 24 * 9 / 10), "%zu parameters seem the same as bfloat16", small);
    sgp_learner_destroy(learner);
    sgp_dataset_destroy(data);
}
