/* SPDX-License-Identifier: Apache-2.0 */
/* What the outputs of the last layer stand for, under the names that `sgpctl predict --json`
 * has. */
#include "parts.h"

#include <math.h>

#define PROBABILITIES "probabilities"
#define VALUES "values"
#define OUTPUTS "outputs"
#define CLASS "class"
#define NONE (-1) /* in the place of a whole number that there is not */

/* `marker` in the rows that are refused, else the value. */
static const char *unless(struct sgp_onnx_graph *graph, const char *name, const char *refused,
    const char *marker, const char *value)
{
    return sgp_onnx_apply(graph, "Where", name, SGP_ONNX_VALUES(refused, marker, value));
}

/* ---- numbers ---- */

static const char *constants_of(
    struct sgp_onnx_graph *graph, const struct sgp_loss_settings *settings, bool means)
{
    const char *name;
    double *values =
        sgp_onnx_vector(graph, NULL, SGP_ONNX_DOUBLE, settings->target_scale_count, &name);
    for (uint32_t i = 0; i < settings->target_scale_count && values; i++)
        values[i] = means ? settings->target_scales[i].mean : settings->target_scales[i].deviation;
    return name;
}

/* In the units of the label columns. */
static void restore(
    struct sgp_onnx_graph *graph, const struct sgp_loss_settings *settings, const char *outputs)
{
    const char *means = constants_of(graph, settings, true);
    const char *deviations = constants_of(graph, settings, false);
    const char *value = sgp_onnx_cast(graph, outputs, NULL, SGP_ONNX_DOUBLE);
    value = sgp_onnx_apply(graph, "Mul", NULL, SGP_ONNX_VALUES(value, deviations));
    value = sgp_onnx_apply(graph, "Add", NULL, SGP_ONNX_VALUES(value, means));
    (void)sgp_onnx_cast(graph, value, VALUES, SGP_ONNX_FLOAT);
}

static void add_numbers(
    struct sgp_onnx_graph *graph, const struct sgp_model *model, const char *outputs)
{
    if (model->loss_settings.target_scales)
        restore(graph, &model->loss_settings, outputs);
    else
        (void)sgp_onnx_apply(graph, "Identity", VALUES, SGP_ONNX_VALUES(outputs));
    sgp_onnx_output(
        graph, VALUES, SGP_ONNX_FLOAT, model->outputs, "a number for each label column");
}

/* ---- 0 and 1 ---- */

static void add_bits(struct sgp_onnx_graph *graph, const struct sgp_model *model,
    const char *outputs, const char *refused)
{
    (void)sgp_onnx_apply(graph, "Sigmoid", PROBABILITIES, SGP_ONNX_VALUES(outputs));
    const char *half = sgp_onnx_float(graph, 0.5f);
    const char *above =
        sgp_onnx_apply(graph, "Greater", NULL, SGP_ONNX_VALUES(PROBABILITIES, half));
    const char *bits = sgp_onnx_cast(graph, above, refused ? NULL : VALUES, SGP_ONNX_INT64);
    if (refused) /* a comparison with NaN is no */
        (void)unless(graph, VALUES, refused, sgp_onnx_int(graph, NONE), bits);
    sgp_onnx_output(graph, VALUES, SGP_ONNX_INT64, model->outputs, "0 or 1 for each label column");
    sgp_onnx_output(
        graph, PROBABILITIES, SGP_ONNX_FLOAT, model->outputs, "that each label column is 1");
}

/* ---- classes ---- */

/* [rows], of equals the first. */
static const char *number_of(
    struct sgp_onnx_graph *graph, const char *scores, const char *refused, const char *name)
{
    const int64_t all = -1;
    SgpOnnx__NodeProto *node =
        sgp_onnx_node(graph, "ArgMax", refused ? NULL : name, SGP_ONNX_VALUES(scores));
    sgp_onnx_set_int(graph, node, "axis", 1);
    sgp_onnx_set_int(graph, node, "keepdims", refused != NULL);
    if (!refused)
        return sgp_onnx_value(node);
    const char *none = sgp_onnx_int(graph, NONE), *shape = sgp_onnx_ints(graph, &all, 1);
    const char *number = unless(graph, NULL, refused, none, sgp_onnx_value(node));
    return sgp_onnx_apply(graph, "Reshape", name, SGP_ONNX_VALUES(number, shape));
}

/* The names of the classes, and an empty name behind them, which has the index -1, too. */
static const char *names_of(struct sgp_onnx_graph *graph, const struct sgp_predictor_view *view)
{
    const uint32_t count = view->model->outputs;
    const char **names = sgp_onnx_list(graph, count + 1);
    for (uint32_t i = 0; i < count && names; i++)
        names[i] = view->classes[i];
    if (!names)
        return "";
    names[count] = "";
    return sgp_onnx_strings(graph, names, count + 1);
}

/* The class of the greatest output: by its name, or its number. */
static void add_class(struct sgp_onnx_graph *graph, const struct sgp_predictor_view *view,
    const char *scores, const char *refused)
{
    const bool named = view->classes != NULL;
    const char *number = number_of(graph, scores, refused, named ? NULL : CLASS);
    if (named) {
        const char *names = names_of(graph, view);
        (void)sgp_onnx_apply(graph, "Gather", CLASS, SGP_ONNX_VALUES(names, number));
    }
    sgp_onnx_output(graph, CLASS, named ? SGP_ONNX_STRING : SGP_ONNX_INT64, 0,
        "the class with the greatest output");
}

static void add_classes(struct sgp_onnx_graph *graph, const struct sgp_predictor_view *view,
    const char *outputs, const char *refused)
{
    const bool probable = sgp_loss_activation(view->model->loss) != NULL;
    const char *scores = probable ? PROBABILITIES : OUTPUTS;
    (void)sgp_onnx_apply(
        graph, probable ? "Softmax" : "Identity", scores, SGP_ONNX_VALUES(outputs));
    add_class(graph, view, scores, refused);
    sgp_onnx_output(graph, scores, SGP_ONNX_FLOAT, view->model->outputs, "one for each class");
}

void sgp_onnx_answers(struct sgp_onnx_graph *graph, const struct sgp_predictor_view *view,
    const char *outputs, const char *refused)
{
    if (refused)
        outputs = unless(graph, NULL, refused, sgp_onnx_float(graph, NAN), outputs);
    if (view->bits)
        add_bits(graph, view->model, outputs, refused);
    else if (view->classifies)
        add_classes(graph, view, outputs, refused);
    else
        add_numbers(graph, view->model, outputs);
}
