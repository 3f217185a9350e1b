/* SPDX-License-Identifier: Apache-2.0 */
/* Products by OpenBLAS against plain sums, and what is loaded when: each test has a process of its own, in which
 * nothing is loaded yet. That kernels are chosen is tested with a stand-in for OpenBLAS, in tests/system. */
#include "sgp/blas.h"
#include "sgp/random.h"
#include "tensor/openblas.h"

#include <assertions.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define SIDE 40

static float left[SIDE * SIDE], right[SIDE * SIDE], out[SIDE * SIDE], before[SIDE * SIDE];

static void fill(void)
{
    struct sgp_random random;
    sgp_random_init(&random, 7, 1);
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        left[i] = (float)sgp_random_normal(&random);
        right[i] = (float)sgp_random_normal(&random);
        before[i] = out[i] = (float)sgp_random_normal(&random);
    }
}

/* The largest distance of a product from its plain sums. */
static double distance(const struct sgp_blas_product *p, float scale, bool add)
{
    double most = 0;
    fill();
    sgp_blas_multiply(p, scale, left, right, add, out);
    for (size_t r = 0; r < p->rows; r++)
        for (size_t c = 0; c < p->columns; c++) {
            double sum = 0;
            for (size_t i = 0; i < p->inner; i++)
                sum += (double)left[p->left_transposed ? i * p->rows + r : r * p->inner + i] *
                       (double)right[p->right_transposed ? c * p->inner + i : i * p->columns + c];
            const size_t at = r * p->columns + c;
            const double wanted = (double)scale * sum + (add ? (double)before[at] : 0);
            most = fmax(most, fabs((double)out[at] - wanted));
        }
    return most;
}

Test(blas, products_are_plain_sums)
{
    for (unsigned i = 0; i < 8; i++) {
        const struct sgp_blas_product product = {i % 2 == 1, i / 2 % 2 == 1, 7, 33, 17};
        cr_assert(lt(dbl, distance(&product, 0.5f, i / 4 == 1), 1e-5));
    }
}

Test(blas, a_value_beyond_the_product_stays)
{
    const struct sgp_blas_product product = {false, false, 3, 5, 2};
    (void)distance(&product, 1.0f, false);
    for (size_t i = 15; i < SIDE * SIDE; i++)
        cr_assert(eq(flt, out[i], before[i]));
}

Test(blas, it_is_loaded_by_the_first_product)
{
    const struct sgp_blas_product product = {false, false, 1, 1, 1};
    sgp_blas_set_threads(2);
    cr_assert(not(sgp_openblas_is_loaded()));
    (void)distance(&product, 1.0f, false);
    cr_assert(sgp_openblas_is_loaded());
    cr_assert(eq(int, sgp_blas_load(NULL), 0));
}

Test(blas, a_program_without_products_loads_nothing)
{
    const struct sgp_blas_wish wish = {.count = 0};
    struct sgp_blas blas;
    char text[SGP_BLAS_TEXT_BYTES];
    cr_assert(eq(int, sgp_blas_fit(&wish, NULL, &blas), 0));
    sgp_blas_text(&blas, text);
    cr_assert(eq(str, text, "unused"));
    cr_assert(not(sgp_openblas_is_loaded()));
}

/* A variable that stayed would be taken for a user's by the next start, and by programs that this one starts. */
Test(blas, what_is_set_for_openblas_does_not_stay_set)
{
    const struct sgp_blas_layer layer = {8, 20, 30};
    const struct sgp_blas_wish wish = {.layers = &layer, .count = 1, .threads = 1};
    struct sgp_blas blas;
    struct sgp_error error = {0};
    (void)unsetenv("OPENBLAS_CORETYPE");
    (void)unsetenv("OPENBLAS_NUM_THREADS");
    cr_assert(eq(int, sgp_blas_fit(&wish, &error, &blas), 0), "%s", error.text);
    cr_assert(sgp_openblas_is_loaded());
    cr_assert(ne(int, blas.kernels[0], '\0'));
    cr_assert(not(blas.by_user));
    cr_assert(eq(ptr, getenv("OPENBLAS_CORETYPE"), NULL));
    cr_assert(eq(ptr, getenv("OPENBLAS_NUM_THREADS"), NULL));
}

Test(blas, a_users_choice_stays_set)
{
    const struct sgp_blas_layer layer = {8, 20, 30};
    const struct sgp_blas_wish wish = {.layers = &layer, .count = 1, .threads = 1};
    struct sgp_blas blas;
    struct sgp_error error = {0};
    (void)setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    (void)setenv("OPENBLAS_NUM_THREADS", "2", 1);
    cr_assert(eq(int, sgp_blas_fit(&wish, &error, &blas), 0), "%s", error.text);
    cr_assert(blas.by_user);
    cr_assert(eq(str, getenv("OPENBLAS_CORETYPE"), "Prescott"));
    cr_assert(eq(str, getenv("OPENBLAS_NUM_THREADS"), "2"));
}
