/* SPDX-License-Identifier: Apache-2.0 */
/* A model of ONNX under construction: nodes, constants, inputs and outputs are added to it, and
 * then it is written. It owns all memory but the values of tensors of floats, which it borrows.
 *
 * Values are named. A function that adds a node or a constant returns the name of what it makes,
 * which lives as long as the graph. Without memory a function adds nothing, and the file is not
 * written. One thread. */
#ifndef SGP_ONNX_GRAPH_H
#define SGP_ONNX_GRAPH_H

#include "sgp/status.h"

#include <onnx.pb-c.h>

#define SGP_ONNX_ATTRIBUTES_MAX 4u /* of a node */

/* The types of values. */
typedef SgpOnnx__TensorProto__DataType sgp_onnx_type;
#define SGP_ONNX_FLOAT SGP_ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT
#define SGP_ONNX_DOUBLE SGP_ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE
#define SGP_ONNX_INT64 SGP_ONNX__TENSOR_PROTO__DATA_TYPE__INT64
#define SGP_ONNX_BOOL SGP_ONNX__TENSOR_PROTO__DATA_TYPE__BOOL
#define SGP_ONNX_STRING SGP_ONNX__TENSOR_PROTO__DATA_TYPE__STRING

struct sgp_onnx_graph {
    SgpOnnx__ModelProto model;
    SgpOnnx__GraphProto graph;
    SgpOnnx__OperatorSetIdProto set, ml_set; /* of operators: ai.onnx, ai.onnx.ml */
    SgpOnnx__OperatorSetIdProto *sets[2];
    size_t capacity;   /* of each list of the graph and of its tags */
    void *blocks;      /* all memory, as a chain */
    bool failed;       /* there was no memory */
    const char *scope; /* begins the names of values; borrowed */
};

/* A graph without nodes, with room for `capacity` of them, and as many constants, tags, inputs and
 * outputs. It stays where it is. */
void sgp_onnx_graph_init(struct sgp_onnx_graph *graph, size_t capacity);
void sgp_onnx_graph_finish(struct sgp_onnx_graph *graph);

/* ---- nodes ---- */

/* Add a node of the operator `word`, with one output. `name` is the name of the output; NULL:
 * any. */
#define SGP_ONNX_VALUES(...)                                                                       \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
SgpOnnx__NodeProto *sgp_onnx_node(
    struct sgp_onnx_graph *graph, const char *word, const char *name, const char *const *inputs);
/* The name of its output. */
const char *sgp_onnx_value(const SgpOnnx__NodeProto *node);
/* A node of an operator of ai.onnx.ml. */
SgpOnnx__NodeProto *sgp_onnx_ml_node(
    struct sgp_onnx_graph *graph, const char *word, const char *name, const char *const *inputs);
/* A node without attributes, by the name of its output. */
const char *sgp_onnx_apply(
    struct sgp_onnx_graph *graph, const char *word, const char *name, const char *const *inputs);

/* Add an attribute to a node. */
void sgp_onnx_set_float(
    struct sgp_onnx_graph *graph, SgpOnnx__NodeProto *node, const char *name, float value);
void sgp_onnx_set_int(
    struct sgp_onnx_graph *graph, SgpOnnx__NodeProto *node, const char *name, int64_t value);
void sgp_onnx_set_ints(struct sgp_onnx_graph *graph, SgpOnnx__NodeProto *node, const char *name,
    const int64_t *values, size_t count);
void sgp_onnx_set_strings(struct sgp_onnx_graph *graph, SgpOnnx__NodeProto *node, const char *name,
    const char *const *values, size_t count);

const char *sgp_onnx_cast(
    struct sgp_onnx_graph *graph, const char *value, const char *name, sgp_onnx_type type);

/* ---- constants ---- */

/* A tensor of floats, which are borrowed. */
const char *sgp_onnx_tensor(struct sgp_onnx_graph *graph, const char *name, const float *values,
    const int64_t *shape, size_t dimensions);
/* A vector that the caller fills: zeroed memory, which lives as long as the graph; NULL if there is
 * none. */
void *sgp_onnx_vector(struct sgp_onnx_graph *graph, const char *name, sgp_onnx_type type,
    size_t count, const char **ret_name);
/* Vectors and scalars that are copied. */
const char *sgp_onnx_ints(struct sgp_onnx_graph *graph, const int64_t *values, size_t count);
const char *sgp_onnx_strings(struct sgp_onnx_graph *graph, const char *const *values, size_t count);
const char *sgp_onnx_float(struct sgp_onnx_graph *graph, float value);
const char *sgp_onnx_int(struct sgp_onnx_graph *graph, int64_t value);

/* An empty list of names, which are the inputs of a node: each is NULL. NULL without memory. */
const char **sgp_onnx_list(struct sgp_onnx_graph *graph, size_t count);

/* ---- the model ---- */

/* An input or output of any number of rows, with `columns` values each; 0: one value without a
 * dimension of its own. */
void sgp_onnx_input(struct sgp_onnx_graph *graph, const char *name, sgp_onnx_type type,
    uint32_t columns, const char *text);
void sgp_onnx_output(struct sgp_onnx_graph *graph, const char *name, sgp_onnx_type type,
    uint32_t columns, const char *text);

/* The same of a value within the graph whose type ONNX's checker does not infer. */
void sgp_onnx_declare(
    struct sgp_onnx_graph *graph, const char *name, sgp_onnx_type type, uint32_t columns);

/* `value` may be NULL, if there was no memory for it. */
void sgp_onnx_tag(struct sgp_onnx_graph *graph, const char *key, const char *value);

/* Write it, and replace the file atomically. Errors as sgp_onnx_write. */
int sgp_onnx_graph_write(struct sgp_onnx_graph *graph, const char *path, struct sgp_error *error);

#endif
