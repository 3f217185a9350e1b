/* SPDX-License-Identifier: Apache-2.0 */
/* The layers as nodes. Between two layers a value is [rows, channels, height, width]; or [rows,
 * channels] if an image has one pixel, as that of each dense layer has. The features are [rows,
 * features]. Tensors have the names and the shapes of the model file. */
#include "parts.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 64u

struct chain {
    struct sgp_onnx_graph *graph;
    const struct sgp_model *model;
    uint32_t number;                     /* of the layer */
    const char *entered[SGP_LAYERS_MAX]; /* what each layer took */
};

static bool is_image(struct sgp_shape shape)
{
    return sgp_shape_pixels(shape) > 1;
}

/* ---- tensors ---- */

static void tensor_name(char name[NAME_BYTES], uint32_t layer, const char *own)
{
    (void)snprintf(name, NAME_BYTES, "layers.%u.%s", layer, own);
}

/* Whether the scale and the shift of a layer are multiplied with images by nodes of their own. */
static bool is_grouped_image(const struct sgp_layer *layer)
{
    return layer->kind == SGP_LAYER_NORM && !layer->batch && is_image(layer->output);
}

/* An averaged variance may be slightly below 0, which counts as 0. */
static void add_variances(
    struct chain *chain, const char *name, const float *values, uint64_t count)
{
    float *variances = sgp_onnx_vector(chain->graph, name, SGP_ONNX_FLOAT, (size_t)count, &name);
    for (uint64_t i = 0; i < count && variances; i++)
        variances[i] = values[i] > 0 ? values[i] : 0;
}

static void add_tensors(struct chain *chain, const float *values)
{
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    const uint32_t count = sgp_model_tensors(chain->model, tensors);
    for (uint32_t i = 0; i < count; i++) {
        const struct sgp_model_tensor *tensor = &tensors[i];
        char name[NAME_BYTES];
        int64_t shape[SGP_TENSOR_DIMENSIONS_MAX];
        size_t dimensions = tensor->dimensions;
        for (size_t d = 0; d < dimensions; d++)
            shape[d] = (int64_t)tensor->shape[d];
        if (is_grouped_image(&chain->model->layers[tensor->layer])) {
            shape[1] = shape[2] = 1;
            dimensions = 3;
        }
        tensor_name(name, tensor->layer, tensor->name);
        if (strcmp(tensor->name, "running_var") == 0)
            add_variances(chain, name, values + tensor->first, tensor->count);
        else
            (void)sgp_onnx_tensor(chain->graph, name, values + tensor->first, shape, dimensions);
    }
}

/* ---- shapes ---- */

static const char *reshape(
    struct chain *chain, const char *value, const int64_t *sizes, size_t count)
{
    const char *shape = sgp_onnx_ints(chain->graph, sizes, count);
    return sgp_onnx_apply(chain->graph, "Reshape", NULL, SGP_ONNX_VALUES(value, shape));
}

/* Any value as [rows, channels, height, width]. */
static const char *as_image(struct chain *chain, const char *value, struct sgp_shape shape)
{
    const int64_t sizes[] = {0, shape.channels, shape.height, shape.width};
    return reshape(chain, value, sizes, 4);
}

static const char *flat(struct chain *chain, const char *value)
{
    return sgp_onnx_apply(chain->graph, "Flatten", NULL, SGP_ONNX_VALUES(value));
}

/* What a layer takes as an image. */
static const char *image_of(struct chain *chain, const char *value, struct sgp_shape shape)
{
    return is_image(shape) ? value : as_image(chain, value, shape);
}

/* What follows from an image that a layer makes. */
static const char *made_of(struct chain *chain, const char *value, struct sgp_shape shape)
{
    return is_image(shape) ? value : flat(chain, value);
}

/* ---- windows ---- */

/* How many pixels a window needs in one direction behind the image. */
static int64_t after(
    uint32_t size, uint32_t windows, uint32_t window, uint32_t stride, uint32_t before)
{
    const int64_t more = (int64_t)(windows - 1) * stride + window - before - size;
    return more > 0 ? more : 0;
}

static void set_windows(
    struct chain *chain, SgpOnnx__NodeProto *node, const struct sgp_layer *layer)
{
    const struct sgp_window window = layer->window, stride = layer->stride;
    const uint32_t top = layer->same ? (window.height - 1) / 2 : 0;
    const uint32_t left = layer->same ? (window.width - 1) / 2 : 0;
    const int64_t windows[] = {window.height, window.width};
    const int64_t strides[] = {stride.height, stride.width};
    const int64_t pads[] = {top, left,
        after(layer->input.height, layer->output.height, window.height, stride.height, top),
        after(layer->input.width, layer->output.width, window.width, stride.width, left)};
    sgp_onnx_set_ints(chain->graph, node, "kernel_shape", windows, 2);
    sgp_onnx_set_ints(chain->graph, node, "strides", strides, 2);
    sgp_onnx_set_ints(chain->graph, node, "pads", pads, 4);
}

/* ---- kinds ---- */

struct own { /* the layer's tensors, by the names of the model file */
    char weight[NAME_BYTES], bias[NAME_BYTES], mean[NAME_BYTES], variance[NAME_BYTES];
};

static struct own own_of(const struct chain *chain)
{
    struct own own;
    tensor_name(own.weight, chain->number, "weight");
    tensor_name(own.bias, chain->number, "bias");
    tensor_name(own.mean, chain->number, "running_mean");
    tensor_name(own.variance, chain->number, "running_var");
    return own;
}

static const char *dense(struct chain *chain, const struct sgp_layer *layer, const char *value)
{
    const struct own own = own_of(chain);
    if (is_image(layer->input) && chain->number > 0) /* features are flat already */
        value = flat(chain, value);
    SgpOnnx__NodeProto *node =
        sgp_onnx_node(chain->graph, "Gemm", NULL, SGP_ONNX_VALUES(value, own.weight, own.bias));
    sgp_onnx_set_int(chain->graph, node, "transB", 1);
    return sgp_onnx_value(node);
}

static const char *conv(struct chain *chain, const struct sgp_layer *layer, const char *value)
{
    const struct own own = own_of(chain);
    value = image_of(chain, value, layer->input);
    SgpOnnx__NodeProto *node =
        sgp_onnx_node(chain->graph, "Conv", NULL, SGP_ONNX_VALUES(value, own.weight, own.bias));
    set_windows(chain, node, layer);
    return made_of(chain, sgp_onnx_value(node), layer->output);
}

static const char *pool(struct chain *chain, const struct sgp_layer *layer, const char *value)
{
    if (!is_image(layer->input))
        return value;
    const bool all = layer->window.height == 0;
    const char *word = all ? (layer->average ? "GlobalAveragePool" : "GlobalMaxPool")
                           : (layer->average ? "AveragePool" : "MaxPool");
    SgpOnnx__NodeProto *node = sgp_onnx_node(chain->graph, word, NULL, SGP_ONNX_VALUES(value));
    if (!all)
        set_windows(chain, node, layer);
    return made_of(chain, sgp_onnx_value(node), layer->output);
}

static const char *norm_batch(struct chain *chain, const char *value)
{
    const struct own own = own_of(chain);
    SgpOnnx__NodeProto *node = sgp_onnx_node(chain->graph, "BatchNormalization", NULL,
        SGP_ONNX_VALUES(value, own.weight, own.bias, own.mean, own.variance));
    sgp_onnx_set_float(chain->graph, node, "epsilon", SGP_NORM_EPSILON);
    return sgp_onnx_value(node);
}

static const char *filled(struct sgp_onnx_graph *graph, float value, size_t count)
{
    const char *name;
    float *values = sgp_onnx_vector(graph, NULL, SGP_ONNX_FLOAT, count, &name);
    for (size_t i = 0; i < count && values; i++)
        values[i] = value;
    return name;
}

/* A group is one channel of InstanceNormalization, whose own scale and shift do nothing. */
static const char *norm(struct chain *chain, const struct sgp_layer *layer, const char *value)
{
    struct sgp_onnx_graph *graph = chain->graph;
    const struct own own = own_of(chain);
    const struct sgp_shape shape = layer->input;
    const int64_t groups[] = {0, layer->groups, -1};
    const int64_t sizes[] = {0, shape.channels, shape.height, shape.width};
    if (layer->batch)
        return norm_batch(chain, value);
    const char *ones = filled(graph, 1, layer->groups), *zeros = filled(graph, 0, layer->groups);
    value = reshape(chain, value, groups, 3);
    SgpOnnx__NodeProto *node =
        sgp_onnx_node(graph, "InstanceNormalization", NULL, SGP_ONNX_VALUES(value, ones, zeros));
    sgp_onnx_set_float(graph, node, "epsilon", SGP_NORM_EPSILON);
    value = reshape(chain, sgp_onnx_value(node), sizes, is_image(shape) ? 4 : 2);
    value = sgp_onnx_apply(graph, "Mul", NULL, SGP_ONNX_VALUES(value, own.weight));
    return sgp_onnx_apply(graph, "Add", NULL, SGP_ONNX_VALUES(value, own.bias));
}

static const char *dropout(struct chain *chain, const struct sgp_layer *layer, const char *value)
{
    (void)chain;
    (void)layer;
    return value;
}

/* A feature selects its vector; a feature outside the table the nearest one. */
static const char *embedding(struct chain *chain, const struct sgp_layer *layer, const char *value)
{
    static const int64_t channels_first[] = {0, 3, 1, 2};
    struct sgp_onnx_graph *graph = chain->graph;
    const struct own own = own_of(chain);
    const int64_t sizes[] = {0, layer->output.height, layer->output.width};
    const char *least = sgp_onnx_float(graph, 0);
    const char *most = sgp_onnx_float(graph, (float)(layer->vocabulary - 1));
    value = sgp_onnx_apply(graph, "Clip", NULL, SGP_ONNX_VALUES(value, least, most));
    value = sgp_onnx_cast(graph, value, NULL, SGP_ONNX_INT64);
    value = reshape(chain, value, sizes, 3);
    value = sgp_onnx_apply(graph, "Gather", NULL, SGP_ONNX_VALUES(own.weight, value));
    SgpOnnx__NodeProto *node = sgp_onnx_node(graph, "Transpose", NULL, SGP_ONNX_VALUES(value));
    sgp_onnx_set_ints(graph, node, "perm", channels_first, 4);
    return made_of(chain, sgp_onnx_value(node), layer->output);
}

static const char *residual(struct chain *chain, const struct sgp_layer *layer, const char *value)
{
    const char *around = chain->entered[chain->number - layer->span];
    return sgp_onnx_apply(chain->graph, "Add", NULL, SGP_ONNX_VALUES(value, around));
}

typedef const char *layer_nodes(
    struct chain *chain, const struct sgp_layer *layer, const char *value);
static layer_nodes *const kinds[] = {
    [SGP_LAYER_DENSE] = dense,
    [SGP_LAYER_CONV] = conv,
    [SGP_LAYER_POOL] = pool,
    [SGP_LAYER_NORM] = norm,
    [SGP_LAYER_DROPOUT] = dropout,
    [SGP_LAYER_EMBEDDING] = embedding,
    [SGP_LAYER_RESIDUAL] = residual,
};

static const char *const activations[] = {
    [SGP_ACTIVATION_RELU] = "Relu",
    [SGP_ACTIVATION_TANH] = "Tanh",
    [SGP_ACTIVATION_SIGMOID] = "Sigmoid",
};

const char *sgp_onnx_layers(
    struct sgp_onnx_graph *graph, const struct sgp_predictor_view *view, const char *features)
{
    struct chain chain = {.graph = graph, .model = view->model};
    const char *value = features;
    char scope[NAME_BYTES];
    add_tensors(&chain, view->file->values);
    graph->scope = "input";
    if (is_image(view->model->input) && view->model->layers[0].kind != SGP_LAYER_DENSE)
        value = as_image(&chain, value, view->model->input);
    graph->scope = scope;
    for (uint32_t l = 0; l < view->model->layer_count; l++) {
        const struct sgp_layer *layer = &view->model->layers[l];
        (void)snprintf(scope, sizeof scope, "layers.%u", l);
        chain.number = l;
        chain.entered[l] = value;
        value = kinds[layer->kind](&chain, layer, value);
        if (layer->activation != SGP_ACTIVATION_NONE)
            value =
                sgp_onnx_apply(graph, activations[layer->activation], NULL, SGP_ONNX_VALUES(value));
    }
    graph->scope = "";
    return value;
}
