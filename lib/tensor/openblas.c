/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the loaded OpenBLAS; see openblas.h. Blocks on the library's file once. */
#include "openblas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <math.h>
#include <stddef.h>

#define LIBRARY "libopenblas.so.0"

/* The functions of the library that are used, by their names in cblas.h. */
#define FUNCTIONS(X)                                                                               \
    X(cblas_sgemm)                                                                                 \
    X(openblas_set_num_threads)                                                                    \
    X(openblas_get_corename)                                                                       \
    X(openblas_get_config)

static struct {
#define X(name) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
} calls;

static bool loaded;     /* calls is complete */
static uint32_t wanted; /* threads; 0: as many as OpenBLAS begins */

int sgp_blas_load(struct sgp_error *error)
{
    if (loaded)
        return 0;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return sgp_fail(error, SGP_E_CONFIG,
            LIBRARY " cannot be loaded: %s; install the package libopenblas0", dlerror());
    bool all = true;
#define X(name)                                                                                    \
    *(void **)&calls.name = dlsym(library, #name);                                                 \
    all = all && calls.name != NULL;
    FUNCTIONS(X)
#undef X
    if (!all)
        return sgp_fail(
            error, SGP_E_CONFIG, LIBRARY " is not OpenBLAS; install the package libopenblas0");
    if (wanted > 0)
        calls.openblas_set_num_threads((int)wanted);
    loaded = true;
    return 0;
}

bool sgp_openblas_is_loaded(void)
{
    return loaded;
}

const char *sgp_openblas_kernels(void)
{
    return calls.openblas_get_corename();
}

const char *sgp_openblas_build(void)
{
    return calls.openblas_get_config();
}

void sgp_blas_set_threads(uint32_t threads)
{
    wanted = threads;
    if (loaded)
        calls.openblas_set_num_threads((int)threads);
}

void sgp_blas_multiply(const struct sgp_blas_product *product, float scale, const float *left,
    const float *right, bool add, float *out)
{
    const int rows = (int)product->rows, columns = (int)product->columns;
    const int inner = (int)product->inner;
    if (sgp_blas_load(NULL) < 0) {
        for (size_t i = 0; i < product->rows * product->columns; i++)
            out[i] = NAN;
        return;
    }
    calls.cblas_sgemm(CblasRowMajor, product->left_transposed ? CblasTrans : CblasNoTrans,
        product->right_transposed ? CblasTrans : CblasNoTrans, rows, columns, inner, scale, left,
        product->left_transposed ? rows : inner, right, product->right_transposed ? inner : columns,
        add ? 1.0f : 0.0f, out, columns);
}
