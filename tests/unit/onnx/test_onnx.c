/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of ONNX: what protobuf-c reads back, and what is not written. test_onnx.py compares the
 * answers of graphs with those of sgpctl and of a daemon. */
#include "sgp/onnx.h"

#include "onnx/graph.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const float values[] = {1, -2, 3.5f, 4, 0.25f};
static const struct sgp_file_tensor tensors[] = {
    {.name = "layers.0.weight", .shape = {1, 4}, .count = 4},
    {.name = "layers.0.bias", .shape = {1}, .first = 4, .count = 1}};
static const struct sgp_file_tag tags[] = {{"layers", "dense 1 tanh"}, {"loss", "mse"},
    {"inputs", "4"}, {"label", "y"}, {"node", "n0"}, {"missing", "error"},
    {"targets", "[{\"name\":\"y\",\"mean\":100,\"deviation\":8}]"},
    {"columns", "{\"sgp_scaling\":1,\"columns\":[{\"name\":\"c\",\"values\":[\"u\",\"v\"]},"
                "{\"name\":\"a\",\"mean\":1,\"deviation\":2},"
                "{\"name\":\"b\",\"mean\":3,\"deviation\":4}]}"}};
#define TAGS (sizeof tags / sizeof tags[0])

static struct sgp_predictor *predictor_of(void)
{
    const struct sgp_model_contents contents = {
        .values = values, .tensors = tensors, .tensor_count = 2, .tags = tags, .tag_count = TAGS};
    void *bytes = NULL;
    size_t size = 0;
    struct sgp_model_file *file = NULL;
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_safetensors_encode(&contents, NULL, &bytes, &size), 0));
    cr_assert(eq(int, sgp_safetensors_decode(bytes, size, "m", NULL, &file), 0));
    free(bytes);
    cr_assert(eq(int, sgp_predictor_create(file, "m", &error, &predictor), 0), "%s", error.text);
    return predictor;
}

/* A folder for one file. */
struct place {
    char folder[24], path[48];
};

static struct place place_make(void)
{
    struct place place = {.folder = "/tmp/sgp-onnx-XXXXXX"};
    cr_assert(ne(ptr, mkdtemp(place.folder), NULL));
    (void)snprintf(place.path, sizeof place.path, "%s/m.onnx", place.folder);
    return place;
}

/* Remove the folder, in which there is nothing but the file, if `written`. */
static void place_remove(const struct place *place, bool written)
{
    cr_assert(eq(int, unlink(place->path), written ? 0 : -1));
    cr_assert(eq(int, rmdir(place->folder), 0));
}

static SgpOnnx__ModelProto *model_read(const char *path)
{
    static uint8_t bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    cr_assert(ne(ptr, file, NULL));
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    SgpOnnx__ModelProto *model = sgp_onnx__model_proto__unpack(NULL, size, bytes);
    cr_assert(ne(ptr, model, NULL));
    return model;
}

static void check_value(const SgpOnnx__ValueInfoProto *value, const char *name, int32_t type,
    size_t dimensions, int64_t columns)
{
    const SgpOnnx__TypeProto__Tensor *tensor = value->type->tensor_type;
    cr_assert(eq(str, value->name, (char *)(uintptr_t)name));
    cr_assert(eq(i32, tensor->elem_type, type));
    cr_assert(eq(sz, tensor->shape->n_dim, dimensions));
    cr_assert(eq(str, tensor->shape->dim[0]->dim_param, "rows"));
    cr_assert(eq(i64, tensor->shape->dim[1]->dim_value, columns));
}

Test(onnx, a_table_becomes_nodes)
{
    static const char *const operators[] = {"Sub", "Div", "Cast", "IsNaN", "Cast", "ReduceMax",
        "Cast", "Gather", "OneHotEncoder", "Concat", "Gather", "Gemm", "Tanh", "Where", "Cast",
        "Mul", "Add", "Cast"};
    struct place place = place_make();
    struct sgp_predictor *predictor = predictor_of();
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_onnx_write(predictor, place.path, &error), 0), "%s", error.text);
    sgp_predictor_destroy(predictor);
    SgpOnnx__ModelProto *model = model_read(place.path);
    const SgpOnnx__GraphProto *graph = model->graph;
    cr_assert(eq(str, model->producer_name, "sgpd"));
    cr_assert(eq(sz, model->n_opset_import, 2));
    cr_assert(eq(sz, graph->n_node, sizeof operators / sizeof operators[0]));
    for (size_t i = 0; i < graph->n_node; i++)
        cr_assert(eq(str, graph->node[i]->op_type, (char *)(uintptr_t)operators[i]));
    cr_assert(eq(sz, graph->n_input, 2));
    check_value(graph->input[0], "numbers", SGP_ONNX_DOUBLE, 2, 2);
    check_value(graph->input[1], "categories", SGP_ONNX_STRING, 2, 1);
    cr_assert(eq(sz, graph->n_output, 1));
    check_value(graph->output[0], "values", SGP_ONNX_FLOAT, 2, 1);
    sgp_onnx__model_proto__free_unpacked(model, NULL);
    place_remove(&place, true);
}

Test(onnx, tensors_and_tags_are_those_of_the_model_file)
{
    struct place place = place_make();
    struct sgp_predictor *predictor = predictor_of();
    cr_assert(eq(int, sgp_onnx_write(predictor, place.path, NULL), 0));
    sgp_predictor_destroy(predictor);
    SgpOnnx__ModelProto *model = model_read(place.path);
    const SgpOnnx__GraphProto *graph = model->graph;
    size_t found = 0;
    for (size_t i = 0; i < graph->n_initializer; i++)
        for (size_t t = 0; t < 2; t++) {
            const SgpOnnx__TensorProto *tensor = graph->initializer[i];
            if (strcmp(tensor->name, tensors[t].name) != 0)
                continue;
            found++;
            cr_assert(eq(sz, tensor->raw_data.len, tensors[t].count * sizeof(float)));
            cr_assert(eq(int,
                memcmp(tensor->raw_data.data, values + tensors[t].first, tensor->raw_data.len), 0));
        }
    cr_assert(eq(sz, found, 2));
    cr_assert(eq(sz, model->n_metadata_props, TAGS + 3), "xxh3, numbers, categories");
    for (size_t i = 0; i < TAGS; i++) {
        size_t at = 0;
        while (at < model->n_metadata_props &&
               strcmp(model->metadata_props[at]->key, tags[i].key) != 0)
            at++;
        cr_assert(lt(sz, at, model->n_metadata_props), "%s", tags[i].key);
        cr_assert(eq(str, model->metadata_props[at]->value, (char *)(uintptr_t)tags[i].value));
    }
    sgp_onnx__model_proto__free_unpacked(model, NULL);
    place_remove(&place, true);
}

Test(onnx, more_than_protobuf_takes_is_refused)
{
    const int64_t many = (int64_t)1 << 29; /* values of 4 bytes, which nobody looks at */
    struct place place = place_make();
    struct sgp_onnx_graph graph;
    struct sgp_error error = {0};
    sgp_onnx_graph_init(&graph, 1);
    (void)sgp_onnx_tensor(&graph, "large", values, &many, 1);
    cr_assert(eq(int, sgp_onnx_graph_write(&graph, place.path, &error), SGP_E_LIMIT));
    cr_assert(ne(ptr, strstr(error.text, "2 GiB"), NULL), "%s", error.text);
    sgp_onnx_graph_finish(&graph);
    place_remove(&place, false);
}

Test(onnx, without_memory_nothing_is_written)
{
    struct place place = place_make();
    struct sgp_onnx_graph graph;
    const char *name = NULL;
    sgp_onnx_graph_init(&graph, 4);
    graph.failed = true;
    SgpOnnx__NodeProto *node = sgp_onnx_ml_node(&graph, "Relu", NULL, SGP_ONNX_VALUES("x"));
    sgp_onnx_set_int(&graph, node, "axis", 1);
    sgp_onnx_set_ints(&graph, node, "axes", &(int64_t){1}, 1);
    sgp_onnx_set_float(&graph, node, "epsilon", 1);
    sgp_onnx_set_strings(&graph, node, "names", SGP_ONNX_VALUES("x"), 1);
    cr_assert(eq(str, (char *)(uintptr_t)sgp_onnx_value(node), ""));
    cr_assert(eq(str, (char *)(uintptr_t)sgp_onnx_float(&graph, 1), ""));
    cr_assert(eq(str, (char *)(uintptr_t)sgp_onnx_strings(&graph, SGP_ONNX_VALUES("x"), 1), ""));
    cr_assert(eq(ptr, sgp_onnx_vector(&graph, NULL, SGP_ONNX_FLOAT, 2, &name), NULL));
    sgp_onnx_input(&graph, "x", SGP_ONNX_FLOAT, 1, "");
    sgp_onnx_tag(&graph, "node", "n0");
    cr_assert(eq(int, sgp_onnx_graph_write(&graph, place.path, NULL), -ENOMEM));
    sgp_onnx_graph_finish(&graph);
    place_remove(&place, false);
}

Test(onnx, a_folder_that_is_not_there)
{
    struct sgp_predictor *predictor = predictor_of();
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_onnx_write(predictor, "/does/not/exist/m.onnx", &error), -ENOENT));
    cr_assert(ne(ptr, strstr(error.text, "/does/not/exist/m.onnx"), NULL), "%s", error.text);
    sgp_predictor_destroy(predictor);
}
