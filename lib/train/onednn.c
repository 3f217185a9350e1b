/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the loaded oneDNN and its matmul primitives; see onednn.h. Blocks on the library's file
 * once. */
#include "onednn.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libdnnl.so.2"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
    "the kernel to_bfloat writes little-endian bytes, and oneDNN reads numbers");

/* The functions of the library that are used, by their names in dnnl.h. */
#define FUNCTIONS(X)                                                                               \
    X(dnnl_get_effective_cpu_isa)                                                                  \
    X(dnnl_engine_create)                                                                          \
    X(dnnl_engine_destroy)                                                                         \
    X(dnnl_stream_create)                                                                          \
    X(dnnl_stream_wait)                                                                            \
    X(dnnl_stream_destroy)                                                                         \
    X(dnnl_memory_desc_init_by_tag)                                                                \
    X(dnnl_memory_create)                                                                          \
    X(dnnl_memory_destroy)                                                                         \
    X(dnnl_matmul_desc_init)                                                                       \
    X(dnnl_post_ops_create)                                                                        \
    X(dnnl_post_ops_append_sum)                                                                    \
    X(dnnl_post_ops_destroy)                                                                       \
    X(dnnl_primitive_attr_create)                                                                  \
    X(dnnl_primitive_attr_set_post_ops)                                                            \
    X(dnnl_primitive_attr_destroy)                                                                 \
    X(dnnl_primitive_desc_create)                                                                  \
    X(dnnl_primitive_desc_destroy)                                                                 \
    X(dnnl_primitive_create)                                                                       \
    X(dnnl_primitive_execute)                                                                      \
    X(dnnl_primitive_destroy)

static struct {
#define X(name) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
    void (*omp_set_num_threads)(
        int threads); /* from the OpenMP runtime that oneDNN is linked with */
} calls;

struct sgp_onednn {
    dnnl_data_type_t type;
    int threads;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t products[SGP_ONEDNN_FORMS];
    bool planned; /* oneDNN has accepted the last product; generating its code is next */
};

/* ---- the library ---- */

static int load(struct sgp_error *error)
{
    static bool loaded;
    if (loaded)
        return 0;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return sgp_fail(error, SGP_E_CONFIG, "%s cannot be loaded (package libdnnl2)", LIBRARY);
    bool all = true;
#define X(name)                                                                                    \
    *(void **)&calls.name = dlsym(library, #name);                                                 \
    all = all && calls.name != NULL;
    FUNCTIONS(X)
#undef X
    *(void **)&calls.omp_set_num_threads = dlsym(library, "omp_set_num_threads");
    loaded = all;
    return all ? 0
               : sgp_fail(error, SGP_E_CONFIG, "%s is another oneDNN than version 2.6", LIBRARY);
}

/* Ask oneDNN itself, which also obeys DNNL_MAX_CPU_ISA. */
static int check_processor(struct sgp_error *error)
{
    const unsigned wanted = dnnl_cpu_isa_avx512_core_bf16;
    if (((unsigned)calls.dnnl_get_effective_cpu_isa() & wanted) == wanted)
        return 0;
    return sgp_fail(error, SGP_E_CONFIG, "the processor has neither AVX512-BF16 nor AMX%s",
        getenv("DNNL_MAX_CPU_ISA") != NULL ? ", or DNNL_MAX_CPU_ISA hides it" : "");
}

/* ---- products ---- */

/* OpenMP's number of threads belongs to the calling thread. oneDNN reads it when it prepares and
 * when it multiplies. */
static void set_threads(const struct sgp_onednn *onednn)
{
    if (calls.omp_set_num_threads != NULL)
        calls.omp_set_num_threads(onednn->threads);
}

static bool a_is_transposed(enum sgp_onednn_form form)
{
    return form == SGP_ONEDNN_A_TRANSPOSED || form == SGP_ONEDNN_A_TRANSPOSED_ADDED;
}

/* Describe the matrices of a product by their sizes, or by DNNL_RUNTIME_DIM_VAL. */
static dnnl_status_t describe(const struct sgp_onednn *onednn, enum sgp_onednn_form form,
    dnnl_dim_t rows, dnnl_dim_t columns, dnnl_dim_t inner, dnnl_memory_desc_t ret_matrices[3])
{
    const dnnl_dims_t a = {rows, inner}, b = {inner, columns}, c = {rows, columns};
    dnnl_status_t status = calls.dnnl_memory_desc_init_by_tag(
        &ret_matrices[0], 2, a, onednn->type, a_is_transposed(form) ? dnnl_ba : dnnl_ab);
    if (status == dnnl_success)
        status = calls.dnnl_memory_desc_init_by_tag(&ret_matrices[1], 2, b, onednn->type,
            form == SGP_ONEDNN_B_TRANSPOSED ? dnnl_ba : dnnl_ab);
    if (status == dnnl_success)
        status = calls.dnnl_memory_desc_init_by_tag(&ret_matrices[2], 2, c, dnnl_f32, dnnl_ab);
    return status;
}

/* Describe that the product is added to the content of c. The caller destroys *ret_attribute. */
static dnnl_status_t describe_sum(dnnl_primitive_attr_t *ret_attribute)
{
    dnnl_post_ops_t sum = NULL;
    dnnl_status_t status = calls.dnnl_primitive_attr_create(ret_attribute);
    if (status == dnnl_success)
        status = calls.dnnl_post_ops_create(&sum);
    if (status == dnnl_success)
        status = calls.dnnl_post_ops_append_sum(sum, 1.0f);
    if (status == dnnl_success)
        status = calls.dnnl_primitive_attr_set_post_ops(*ret_attribute, sum);
    if (sum != NULL)
        (void)calls.dnnl_post_ops_destroy(sum);
    return status;
}

/* Prepare one primitive for all sizes. Batches differ at the end of an epoch, and a step must not
 * prepare anything. */
static dnnl_status_t prepare(struct sgp_onednn *onednn, enum sgp_onednn_form form)
{
    const dnnl_dim_t any = DNNL_RUNTIME_DIM_VAL;
    dnnl_memory_desc_t matrices[3];
    dnnl_matmul_desc_t product;
    dnnl_primitive_attr_t attribute = NULL;
    dnnl_primitive_desc_t primitive = NULL;
    dnnl_status_t status = describe(onednn, form, any, any, any, matrices);
    if (status == dnnl_success)
        status =
            calls.dnnl_matmul_desc_init(&product, &matrices[0], &matrices[1], NULL, &matrices[2]);
    if (status == dnnl_success && form == SGP_ONEDNN_A_TRANSPOSED_ADDED)
        status = describe_sum(&attribute);
    if (status == dnnl_success)
        status =
            calls.dnnl_primitive_desc_create(&primitive, &product, attribute, onednn->engine, NULL);
    onednn->planned = status == dnnl_success;
    if (status == dnnl_success)
        status = calls.dnnl_primitive_create(&onednn->products[form], primitive);
    if (primitive != NULL)
        (void)calls.dnnl_primitive_desc_destroy(primitive);
    if (attribute != NULL)
        (void)calls.dnnl_primitive_attr_destroy(attribute);
    return status;
}

static int code_of(dnnl_status_t status)
{
    if (status == dnnl_success)
        return 0;
    return status == dnnl_out_of_memory ? -ENOMEM : SGP_E_STATE;
}

int sgp_onednn_multiply(struct sgp_onednn *onednn, enum sgp_onednn_form form, float *c,
    const void *a, const void *b, size_t rows, size_t columns, size_t inner)
{
    void *values[3] = {(void *)(uintptr_t)a, (void *)(uintptr_t)b, c}; /* a and b are only read */
    const int names[3] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    dnnl_memory_desc_t matrices[3];
    dnnl_exec_arg_t arguments[3] = {{0}};
    dnnl_status_t status =
        describe(onednn, form, (dnnl_dim_t)rows, (dnnl_dim_t)columns, (dnnl_dim_t)inner, matrices);
    for (unsigned i = 0; i < 3 && status == dnnl_success; i++) {
        arguments[i].arg = names[i];
        status =
            calls.dnnl_memory_create(&arguments[i].memory, &matrices[i], onednn->engine, values[i]);
    }
    set_threads(onednn);
    if (status == dnnl_success)
        status = calls.dnnl_primitive_execute(onednn->products[form], onednn->stream, 3, arguments);
    if (status == dnnl_success)
        status = calls.dnnl_stream_wait(onednn->stream);
    for (unsigned i = 0; i < 3; i++)
        if (arguments[i].memory != NULL)
            (void)calls.dnnl_memory_destroy(arguments[i].memory);
    return code_of(status);
}

/* ---- life ---- */

void sgp_onednn_destroy(struct sgp_onednn *onednn)
{
    if (onednn == NULL)
        return;
    for (unsigned form = 0; form < SGP_ONEDNN_FORMS; form++)
        if (onednn->products[form] != NULL)
            (void)calls.dnnl_primitive_destroy(onednn->products[form]);
    if (onednn->stream != NULL)
        (void)calls.dnnl_stream_destroy(onednn->stream);
    if (onednn->engine != NULL)
        (void)calls.dnnl_engine_destroy(onednn->engine);
    free(onednn);
}

static dnnl_status_t begin(struct sgp_onednn *onednn)
{
    dnnl_status_t status = calls.dnnl_engine_create(&onednn->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status =
            calls.dnnl_stream_create(&onednn->stream, onednn->engine, dnnl_stream_default_flags);
    for (int form = 0; form < (int)SGP_ONEDNN_FORMS && status == dnnl_success; form++)
        status = prepare(onednn, (enum sgp_onednn_form)form);
    return status;
}

/* oneDNN generates its code when a product is prepared, or at the first product. It cannot if
 * memory may not be made executable. */
static int fail_code(struct sgp_error *error)
{
    return sgp_fail(error, SGP_E_CONFIG,
        "oneDNN may not run the code that it makes (set MemoryDenyWriteExecute=no in a drop-in of "
        "the unit)");
}

static int prepare_all(struct sgp_onednn *onednn, struct sgp_error *error)
{
    set_threads(onednn);
    int code = code_of(begin(onednn));
    if (code != SGP_E_STATE)
        return code;
    return onednn->planned
               ? fail_code(error)
               : sgp_fail(error, SGP_E_CONFIG, "oneDNN has no such product for this processor");
}

static int try_product(struct sgp_onednn *onednn, struct sgp_error *error)
{
    const float ones[2] = {1.0f, 1.0f};
    const uint16_t bf16_ones[2] = {0x3f80, 0x3f80};
    const void *operand = onednn->type == dnnl_bf16 ? (const void *)bf16_ones : (const void *)ones;
    float sum = NAN;
    int code = sgp_onednn_multiply(onednn, SGP_ONEDNN_PLAIN, &sum, operand, operand, 1, 1, 2);
    if (code == SGP_E_STATE)
        return fail_code(error);
    if (code == 0 && sum != 2.0f)
        return sgp_fail(error, SGP_E_CONFIG, "oneDNN multiplies wrongly: %g for 2", (double)sum);
    return code;
}

int sgp_onednn_create(enum sgp_onednn_operands operands, uint32_t threads, struct sgp_error *error,
    struct sgp_onednn **ret_onednn)
{
    int code = load(error);
    if (code == 0 && operands == SGP_ONEDNN_BF16)
        code = check_processor(error);
    if (code < 0)
        return code;
    struct sgp_onednn *onednn = calloc(1, sizeof *onednn);
    if (onednn == NULL)
        return -ENOMEM;
    onednn->type = operands == SGP_ONEDNN_BF16 ? dnnl_bf16 : dnnl_f32;
    onednn->threads = (int)threads;
    code = prepare_all(onednn, error);
    if (code == 0)
        code = try_product(onednn, error);
    if (code < 0) {
        sgp_onednn_destroy(onednn);
        return code;
    }
    *ret_onednn = onednn;
    return 0;
}
