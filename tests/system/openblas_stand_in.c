/* SPDX-License-Identifier: Apache-2.0 */
/* In place of libopenblas.so.0: OpenBLAS on a processor that it does not know. What it would choose by itself is what
 * STAND_IN_CHOICE names; with the kernels that STAND_IN_WRONG names a product is wrong, those of STAND_IN_CRASH
 * crash, and with those of STAND_IN_STOP the process stops; "not NAME": with all others. A choice in OPENBLAS_CORETYPE is
 * left alone. REAL is the path of the library that multiplies. */
#include <cblas.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(X)                                                                               \
    X(cblas_sgemm)                                                                                 \
    X(openblas_set_num_threads)                                                                    \
    X(openblas_get_corename)                                                                       \
    X(openblas_get_config)

static struct {
#define X(name) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
} real;

static __attribute__((constructor)) void load(void)
{
    const char *choice = getenv("STAND_IN_CHOICE");
    const bool ours = choice != NULL && getenv("OPENBLAS_CORETYPE") == NULL;
    if (ours)
        (void)setenv("OPENBLAS_CORETYPE", choice, 1);
    void *library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
    if (ours)
        (void)unsetenv("OPENBLAS_CORETYPE");
#define X(name) *(void **)&real.name = library != NULL ? dlsym(library, #name) : NULL;
    FUNCTIONS(X)
#undef X
}

static bool in_use(const char *variable)
{
    const char *name = getenv(variable), *present = real.openblas_get_corename();
    if (name != NULL && strncmp(name, "not ", 4) == 0)
        return strcasecmp(name + 4, present) != 0;
    return name != NULL && strcasecmp(name, present) == 0;
}

void openblas_set_num_threads(int threads)
{
    real.openblas_set_num_threads(threads);
}

char *openblas_get_corename(void)
{
    return real.openblas_get_corename();
}

char *openblas_get_config(void)
{
    return real.openblas_get_config();
}

void cblas_sgemm(OPENBLAS_CONST enum CBLAS_ORDER order, OPENBLAS_CONST enum CBLAS_TRANSPOSE a_form,
    OPENBLAS_CONST enum CBLAS_TRANSPOSE b_form, OPENBLAS_CONST blasint m, OPENBLAS_CONST blasint n,
    OPENBLAS_CONST blasint k, OPENBLAS_CONST float alpha, OPENBLAS_CONST float *a,
    OPENBLAS_CONST blasint lda, OPENBLAS_CONST float *b, OPENBLAS_CONST blasint ldb,
    OPENBLAS_CONST float beta, float *c, OPENBLAS_CONST blasint ldc)
{
    if (in_use("STAND_IN_CRASH"))
        abort();
    if (in_use("STAND_IN_STOP"))
        (void)raise(SIGSTOP);
    real.cblas_sgemm(order, a_form, b_form, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (in_use("STAND_IN_WRONG") && m > 16)
        c[ldc * (m - 1)] += 1;
}
