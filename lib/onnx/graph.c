/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of a graph, and fills the messages of protobuf-c; see graph.h. */
#include "graph.h"

#include "train/atomic_file.h"

#include "sgp/version.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IR_VERSION 7   /* of the format: that of ONNX 1.8, as is the set of operators */
#define OPERATORS 13   /* of ai.onnx */
#define OPERATORS_ML 1 /* of ai.onnx.ml */
#define ML_DOMAIN "ai.onnx.ml"
#define PRODUCER "sgpd"
#define NAME_BYTES 128u
#define ROWS "rows" /* the name of the first dimension of inputs and outputs */

/* ---- memory ---- */

struct block {
    struct block *next;
    max_align_t memory[];
};

static void *allocate(struct sgp_onnx_graph *graph, size_t count, size_t size)
{
    struct block *block = NULL;
    if (!graph->failed && (count == 0 || size <= (SIZE_MAX - sizeof *block) / count))
        block = calloc(1, sizeof *block + count * size);
    if (!block) {
        graph->failed = true;
        return NULL;
    }
    block->next = graph->blocks;
    graph->blocks = block;
    return block->memory;
}

static void *copy(struct sgp_onnx_graph *graph, const void *bytes, size_t count, size_t size)
{
    void *memory = allocate(graph, count, size);
    if (memory && count > 0)
        memcpy(memory, bytes, count * size);
    return memory;
}

/* A text that is NULL had no memory. */
static char *copy_text(struct sgp_onnx_graph *graph, const char *text)
{
    graph->failed = graph->failed || !text;
    return graph->failed ? NULL : copy(graph, text, strlen(text) + 1, 1);
}

/* The heads of the messages. */
static void head_fill(struct sgp_onnx_graph *graph)
{
    SgpOnnx__ModelProto *model = &graph->model;
    sgp_onnx__model_proto__init(model);
    sgp_onnx__graph_proto__init(&graph->graph);
    sgp_onnx__operator_set_id_proto__init(&graph->set);
    sgp_onnx__operator_set_id_proto__init(&graph->ml_set);
    model->has_ir_version = true;
    model->ir_version = IR_VERSION;
    model->producer_name = copy_text(graph, PRODUCER);
    model->producer_version = copy_text(graph, sgp_version());
    model->graph = &graph->graph;
    model->opset_import = graph->sets;
    model->n_opset_import = 1; /* another one once a node needs it */
    graph->graph.name = copy_text(graph, PRODUCER);
    graph->sets[0] = &graph->set;
    graph->sets[1] = &graph->ml_set;
    graph->set.domain = copy_text(graph, "");
    graph->set.has_version = graph->ml_set.has_version = true;
    graph->set.version = OPERATORS;
    graph->ml_set.domain = copy_text(graph, ML_DOMAIN);
    graph->ml_set.version = OPERATORS_ML;
}

void sgp_onnx_graph_init(struct sgp_onnx_graph *graph, size_t capacity)
{
    *graph = (struct sgp_onnx_graph){.capacity = capacity, .scope = ""};
    head_fill(graph);
    graph->graph.node = allocate(graph, capacity, sizeof *graph->graph.node);
    graph->graph.initializer = allocate(graph, capacity, sizeof *graph->graph.initializer);
    graph->graph.input = allocate(graph, capacity, sizeof *graph->graph.input);
    graph->graph.output = allocate(graph, capacity, sizeof *graph->graph.output);
    graph->graph.value_info = allocate(graph, capacity, sizeof *graph->graph.value_info);
    graph->model.metadata_props = allocate(graph, capacity, sizeof *graph->model.metadata_props);
}

void sgp_onnx_graph_finish(struct sgp_onnx_graph *graph)
{
    for (struct block *block = graph->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *graph = (struct sgp_onnx_graph){.failed = true};
}

/* ---- nodes ---- */

/* The given name, or a name that no other value has. */
static char *name_of(struct sgp_onnx_graph *graph, const char *name, const char *kind)
{
    char text[NAME_BYTES];
    if (name)
        return copy_text(graph, name);
    (void)snprintf(text, sizeof text, "%s%s%s_%zu", graph->scope, *graph->scope ? "." : "", kind,
        graph->graph.n_node + graph->graph.n_initializer);
    return copy_text(graph, text);
}

SgpOnnx__NodeProto *sgp_onnx_node(
    struct sgp_onnx_graph *graph, const char *word, const char *name, const char *const *inputs)
{
    size_t count = 0;
    while (inputs[count])
        count++;
    SgpOnnx__NodeProto *node = allocate(graph, 1, sizeof *node);
    char **texts = allocate(graph, count + 1, sizeof *texts);
    SgpOnnx__AttributeProto **attributes =
        allocate(graph, SGP_ONNX_ATTRIBUTES_MAX, sizeof(SgpOnnx__AttributeProto *));
    char *output = name_of(graph, name, word);
    for (size_t i = 0; i < count && texts; i++)
        texts[i] = copy_text(graph, inputs[i]);
    char *own_word = copy_text(graph, word);
    if (graph->failed)
        return NULL;
    texts[count] = output;
    sgp_onnx__node_proto__init(node);
    node->op_type = own_word;
    node->name = output;
    node->input = texts;
    node->n_input = count;
    node->output = &texts[count];
    node->n_output = 1;
    node->attribute = attributes;
    sgp_assert(graph->graph.n_node < graph->capacity);
    graph->graph.node[graph->graph.n_node++] = node;
    return node;
}

const char *sgp_onnx_value(const SgpOnnx__NodeProto *node)
{
    return node ? node->output[0] : "";
}

SgpOnnx__NodeProto *sgp_onnx_ml_node(
    struct sgp_onnx_graph *graph, const char *word, const char *name, const char *const *inputs)
{
    SgpOnnx__NodeProto *node = sgp_onnx_node(graph, word, name, inputs);
    if (node)
        node->domain = graph->ml_set.domain;
    graph->model.n_opset_import = 2;
    return node;
}

const char *sgp_onnx_apply(
    struct sgp_onnx_graph *graph, const char *word, const char *name, const char *const *inputs)
{
    return sgp_onnx_value(sgp_onnx_node(graph, word, name, inputs));
}

/* ---- attributes ---- */

/* What every attribute has; a function adds its value. */
static SgpOnnx__AttributeProto attribute_of(SgpOnnx__AttributeProto__AttributeType type)
{
    SgpOnnx__AttributeProto made = SGP_ONNX__ATTRIBUTE_PROTO__INIT;
    made.has_type = true;
    made.type = type;
    return made;
}

static void add_attribute(struct sgp_onnx_graph *graph, SgpOnnx__NodeProto *node, const char *name,
    SgpOnnx__AttributeProto attribute)
{
    attribute.name = copy_text(graph, name);
    SgpOnnx__AttributeProto *made = copy(graph, &attribute, 1, sizeof attribute);
    if (!made)
        return;
    sgp_assert(node->n_attribute < SGP_ONNX_ATTRIBUTES_MAX);
    node->attribute[node->n_attribute++] = made;
}

void sgp_onnx_set_float(
    struct sgp_onnx_graph *graph, SgpOnnx__NodeProto *node, const char *name, float value)
{
    SgpOnnx__AttributeProto made = attribute_of(SGP_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    made.has_f = true;
    made.f = value;
    add_attribute(graph, node, name, made);
}

void sgp_onnx_set_int(
    struct sgp_onnx_graph *graph, SgpOnnx__NodeProto *node, const char *name, int64_t value)
{
    SgpOnnx__AttributeProto made = attribute_of(SGP_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    made.has_i = true;
    made.i = value;
    add_attribute(graph, node, name, made);
}

void sgp_onnx_set_ints(struct sgp_onnx_graph *graph, SgpOnnx__NodeProto *node, const char *name,
    const int64_t *values, size_t count)
{
    SgpOnnx__AttributeProto made = attribute_of(SGP_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    made.ints = copy(graph, values, count, sizeof *values);
    made.n_ints = count;
    add_attribute(graph, node, name, made);
}

/* Texts as protobuf's bytes; NULL without memory. */
static ProtobufCBinaryData *copy_texts(
    struct sgp_onnx_graph *graph, const char *const *values, size_t count)
{
    ProtobufCBinaryData *texts = allocate(graph, count, sizeof *texts);
    for (size_t i = 0; i < count && texts; i++)
        texts[i] = (ProtobufCBinaryData){
            .len = strlen(values[i]), .data = (uint8_t *)copy_text(graph, values[i])};
    return graph->failed ? NULL : texts;
}

void sgp_onnx_set_strings(struct sgp_onnx_graph *graph, SgpOnnx__NodeProto *node, const char *name,
    const char *const *values, size_t count)
{
    SgpOnnx__AttributeProto made = attribute_of(SGP_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    made.strings = copy_texts(graph, values, count);
    made.n_strings = count;
    add_attribute(graph, node, name, made);
}

const char *sgp_onnx_cast(
    struct sgp_onnx_graph *graph, const char *value, const char *name, sgp_onnx_type type)
{
    SgpOnnx__NodeProto *node = sgp_onnx_node(graph, "Cast", name, SGP_ONNX_VALUES(value));
    sgp_onnx_set_int(graph, node, "to", type);
    return sgp_onnx_value(node);
}

/* ---- constants ---- */

/* A tensor without values; NULL without memory. */
static SgpOnnx__TensorProto *tensor(struct sgp_onnx_graph *graph, const char *name,
    sgp_onnx_type type, const int64_t *shape, size_t dimensions)
{
    SgpOnnx__TensorProto *made = allocate(graph, 1, sizeof *made);
    int64_t *dims = copy(graph, shape, dimensions, sizeof *shape);
    char *text = name_of(graph, name, "constant");
    if (!made || !dims || !text)
        return NULL;
    sgp_onnx__tensor_proto__init(made);
    made->name = text;
    made->dims = dims;
    made->n_dims = dimensions;
    made->has_data_type = true;
    made->data_type = (int32_t)type;
    sgp_assert(graph->graph.n_initializer < graph->capacity);
    graph->graph.initializer[graph->graph.n_initializer++] = made;
    return made;
}

/* The values lie in memory as the file has them, least significant byte first (train requires
 * that). */
static const char *numbers(struct sgp_onnx_graph *graph, const char *name, sgp_onnx_type type,
    const void *values, size_t bytes, const int64_t *shape, size_t dimensions)
{
    SgpOnnx__TensorProto *made = tensor(graph, name, type, shape, dimensions);
    if (!made)
        return "";
    made->has_raw_data = true;
    made->raw_data = (ProtobufCBinaryData){.len = bytes, .data = (uint8_t *)(uintptr_t)values};
    return made->name;
}

const char *sgp_onnx_tensor(struct sgp_onnx_graph *graph, const char *name, const float *values,
    const int64_t *shape, size_t dimensions)
{
    size_t count = 1;
    for (size_t i = 0; i < dimensions; i++)
        count *= (size_t)shape[i];
    return numbers(graph, name, SGP_ONNX_FLOAT, values, count * sizeof *values, shape, dimensions);
}

static size_t size_of(sgp_onnx_type type)
{
    return type == SGP_ONNX_FLOAT ? sizeof(float) : sizeof(double);
}

void *sgp_onnx_vector(struct sgp_onnx_graph *graph, const char *name, sgp_onnx_type type,
    size_t count, const char **ret_name)
{
    const int64_t shape = (int64_t)count;
    void *values = allocate(graph, count, size_of(type));
    *ret_name = numbers(graph, name, type, values, count * size_of(type), &shape, 1);
    return graph->failed ? NULL : values;
}

const char *sgp_onnx_ints(struct sgp_onnx_graph *graph, const int64_t *values, size_t count)
{
    const char *name;
    int64_t *ints = sgp_onnx_vector(graph, NULL, SGP_ONNX_INT64, count, &name);
    if (ints)
        memcpy(ints, values, count * sizeof *ints);
    return name;
}

static const char *scalar(struct sgp_onnx_graph *graph, sgp_onnx_type type, const void *value)
{
    return numbers(graph, NULL, type, copy(graph, value, 1, size_of(type)), size_of(type), NULL, 0);
}

const char *sgp_onnx_float(struct sgp_onnx_graph *graph, float value)
{
    return scalar(graph, SGP_ONNX_FLOAT, &value);
}

const char *sgp_onnx_int(struct sgp_onnx_graph *graph, int64_t value)
{
    return scalar(graph, SGP_ONNX_INT64, &value);
}

const char *sgp_onnx_strings(struct sgp_onnx_graph *graph, const char *const *values, size_t count)
{
    const int64_t shape = (int64_t)count;
    ProtobufCBinaryData *texts = copy_texts(graph, values, count);
    SgpOnnx__TensorProto *made = tensor(graph, NULL, SGP_ONNX_STRING, &shape, 1);
    if (!made)
        return "";
    made->string_data = texts;
    made->n_string_data = count;
    return made->name;
}

const char **sgp_onnx_list(struct sgp_onnx_graph *graph, size_t count)
{
    return allocate(graph, count, sizeof(const char *));
}

/* ---- the model ---- */

/* An input, an output or a declared value: its messages lie in one piece of memory. */
struct information {
    SgpOnnx__ValueInfoProto info;
    SgpOnnx__TypeProto type;
    SgpOnnx__TypeProto__Tensor tensor;
    SgpOnnx__TensorShapeProto shape;
    SgpOnnx__TensorShapeProto__Dimension dimensions[2];
    SgpOnnx__TensorShapeProto__Dimension *list[2];
};

static SgpOnnx__ValueInfoProto *information(struct sgp_onnx_graph *graph, const char *name,
    sgp_onnx_type type, uint32_t columns, const char *text)
{
    struct information *made = allocate(graph, 1, sizeof *made);
    char *own_name = copy_text(graph, name), *own_text = copy_text(graph, text);
    char *rows = copy_text(graph, ROWS);
    if (graph->failed)
        return NULL;
    sgp_onnx__value_info_proto__init(&made->info);
    sgp_onnx__type_proto__init(&made->type);
    sgp_onnx__type_proto__tensor__init(&made->tensor);
    sgp_onnx__tensor_shape_proto__init(&made->shape);
    for (size_t i = 0; i < 2; i++) {
        sgp_onnx__tensor_shape_proto__dimension__init(&made->dimensions[i]);
        made->list[i] = &made->dimensions[i];
    }
    made->dimensions[0].dim_param = rows;
    made->dimensions[1].has_dim_value = true;
    made->dimensions[1].dim_value = columns;
    made->shape.dim = made->list;
    made->shape.n_dim = columns > 0 ? 2 : 1;
    made->tensor.has_elem_type = true;
    made->tensor.elem_type = (int32_t)type;
    made->tensor.shape = &made->shape;
    made->type.tensor_type = &made->tensor;
    made->info.name = own_name;
    made->info.doc_string = own_text;
    made->info.type = &made->type;
    return &made->info;
}

/* Add it to one of the lists of the graph, which has room for `capacity` of them. */
static void add_information(struct sgp_onnx_graph *graph, SgpOnnx__ValueInfoProto **list,
    size_t *count, SgpOnnx__ValueInfoProto *made)
{
    sgp_assert(*count < graph->capacity);
    if (made)
        list[(*count)++] = made;
}

void sgp_onnx_input(struct sgp_onnx_graph *graph, const char *name, sgp_onnx_type type,
    uint32_t columns, const char *text)
{
    add_information(graph, graph->graph.input, &graph->graph.n_input,
        information(graph, name, type, columns, text));
}

void sgp_onnx_output(struct sgp_onnx_graph *graph, const char *name, sgp_onnx_type type,
    uint32_t columns, const char *text)
{
    add_information(graph, graph->graph.output, &graph->graph.n_output,
        information(graph, name, type, columns, text));
}

void sgp_onnx_declare(
    struct sgp_onnx_graph *graph, const char *name, sgp_onnx_type type, uint32_t columns)
{
    add_information(graph, graph->graph.value_info, &graph->graph.n_value_info,
        information(graph, name, type, columns, ""));
}

void sgp_onnx_tag(struct sgp_onnx_graph *graph, const char *key, const char *value)
{
    SgpOnnx__StringStringEntryProto *made = allocate(graph, 1, sizeof *made);
    char *own_key = copy_text(graph, key), *own_value = copy_text(graph, value);
    if (graph->failed)
        return;
    sgp_onnx__string_string_entry_proto__init(made);
    made->key = own_key;
    made->value = own_value;
    sgp_assert(graph->model.n_metadata_props < graph->capacity);
    graph->model.metadata_props[graph->model.n_metadata_props++] = made;
}

/* ---- the file ---- */

/* Where protobuf-c puts the bytes, without another copy of them. */
struct sink {
    ProtobufCBuffer base;
    struct sgp_atomic_file file;
};

static void append(ProtobufCBuffer *buffer, size_t size, const uint8_t *bytes)
{
    sgp_atomic_write(&((struct sink *)buffer)->file, bytes, size);
}

int sgp_onnx_graph_write(struct sgp_onnx_graph *graph, const char *path, struct sgp_error *error)
{
    struct sink sink = {.base = {.append = append}};
    if (graph->failed)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    if (sgp_onnx__model_proto__get_packed_size(&graph->model) > INT32_MAX)
        return sgp_fail(error, SGP_E_LIMIT,
            "%s: the model is larger than the 2 GiB of an .onnx; .safetensors would be right",
            path);
    int code = sgp_atomic_open(&sink.file, path, SGP_ATOMIC_PUBLIC, error);
    if (code < 0)
        return code;
    (void)sgp_onnx__model_proto__pack_to_buffer(&graph->model, &sink.base);
    return sgp_atomic_commit(&sink.file, error);
}
