/* SPDX-License-Identifier: Apache-2.0 */
/* A model file as a graph of ONNX: columns, layers, answers; see sgp/onnx.h. */
#include "sgp/onnx.h"

#include "parts.h"

#define OTHER_NODES 64u /* beside those of columns of words and layers */

static void add_tags(struct sgp_onnx_graph *graph, const struct sgp_model_file *file)
{
    struct sgp_file_tag tag;
    for (uint32_t i = 0; sgp_model_file_tag_at(file, i, &tag); i++)
        sgp_onnx_tag(graph, tag.key, tag.value);
}

int sgp_onnx_write(const struct sgp_predictor *predictor, const char *path, struct sgp_error *error)
{
    const struct sgp_predictor_view view = sgp_predictor_view(predictor);
    struct sgp_onnx_graph graph;
    sgp_onnx_graph_init(&graph, SGP_FILE_TAGS_MAX + OTHER_NODES +
                                    sgp_onnx_columns_capacity(view.scaling) +
                                    (size_t)view.model->layer_count * SGP_ONNX_LAYER_NODES);
    const struct sgp_onnx_features features = sgp_onnx_columns(&graph, &view);
    const char *outputs = sgp_onnx_layers(&graph, &view, features.values);
    sgp_onnx_answers(&graph, &view, outputs, features.refused);
    add_tags(&graph, view.file);
    int code = sgp_onnx_graph_write(&graph, path, error);
    sgp_onnx_graph_finish(&graph);
    return code;
}
