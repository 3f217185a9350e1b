/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: OpenBLAS on a processor that it does not know. What it would choose by itself is what
 * STAND_IN_CHOICE names; with the kernels that STAND_IN_WRONG names a product is wrong, those of STAND_IN_CRASH
 * crash, and with those of STAND_IN_STOP the process stops; "not NAME": with all others. A choice in OPENBLAS_CORETYPE is
 * left alone. */
#include <cblas.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static char *find(const char *name)
{
    size_t length = strlen(name);
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

/* OpenBLAS alone is told of a choice that nobody made. */
char *getenv(const char *name)
{
    char *value = find(name);
    Dl_info caller;
    if (value != NULL || strcmp(name, "OPENBLAS_CORETYPE") != 0 ||
        dladdr(__builtin_return_address(0), &caller) == 0 || caller.dli_fname == NULL ||
        strstr(caller.dli_fname, "libopenblas") == NULL)
        return value;
    return find("STAND_IN_CHOICE");
}

static bool in_use(const char *variable)
{
    const char *name = find(variable), *present = openblas_get_corename();
    if (name != NULL && strncmp(name, "not ", 4) == 0)
        return strcasecmp(name + 4, present) != 0;
    return name != NULL && strcasecmp(name, present) == 0;
}

void cblas_sgemm(OPENBLAS_CONST enum CBLAS_ORDER order, OPENBLAS_CONST enum CBLAS_TRANSPOSE a_form,
    OPENBLAS_CONST enum CBLAS_TRANSPOSE b_form, OPENBLAS_CONST blasint m, OPENBLAS_CONST blasint n,
    OPENBLAS_CONST blasint k, OPENBLAS_CONST float alpha, OPENBLAS_CONST float *a,
    OPENBLAS_CONST blasint lda, OPENBLAS_CONST float *b, OPENBLAS_CONST blasint ldb,
    OPENBLAS_CONST float beta, float *c, OPENBLAS_CONST blasint ldc)
{
    static __typeof__(&cblas_sgemm) real;
    if (real == NULL) {
        void *symbol = dlsym(RTLD_NEXT, "cblas_sgemm");
        memcpy(&real, &symbol, sizeof real);
    }
    if (in_use("STAND_IN_CRASH"))
        abort();
    if (in_use("STAND_IN_STOP"))
        (void)raise(SIGSTOP);
    real(order, a_form, b_form, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (in_use("STAND_IN_WRONG") && m > 16)
        c[ldc * (m - 1)] += 1;
}
