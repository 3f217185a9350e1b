/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a model's graph, from the table to the answers. Each adds its nodes, and returns the
 * names of the values that the next part takes. */
#ifndef SGP_ONNX_PARTS_H
#define SGP_ONNX_PARTS_H

#include "graph.h"

#include "sgp/predictor.h"

/* What columns become. */
struct sgp_onnx_features {
    const char *values; /* [rows, features] */
    const char
        *refused; /* [rows, 1], whether a row lacks a number that must be there; NULL: none */
};

/* How many nodes, constants, inputs or outputs the columns make at the most. */
size_t sgp_onnx_columns_capacity(const struct sgp_scaling *scaling);

/* The inputs and tags of the table, and its columns scaled. */
struct sgp_onnx_features sgp_onnx_columns(
    struct sgp_onnx_graph *graph, const struct sgp_predictor_view *view);

/* The layers, from features to [rows, outputs]. A layer has at most SGP_ONNX_LAYER_NODES nodes, and
 * as many constants with its tensors. */
#define SGP_ONNX_LAYER_NODES 8u
const char *sgp_onnx_layers(
    struct sgp_onnx_graph *graph, const struct sgp_predictor_view *view, const char *features);

/* What the outputs of the last layer stand for, as outputs of the graph. A graph can refuse no row:
 * the answers of a refused row are NaN, -1, or a class without a name. */
void sgp_onnx_answers(struct sgp_onnx_graph *graph, const struct sgp_predictor_view *view,
    const char *outputs, const char *refused);

#endif
