/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a table as features. All numbers are one input, and all words are another one, so
 * that a program needs no name for each column. Numbers are float64 until they are scaled, as the
 * reader of CSV has them. */
#include "parts.h"

#include "train/scaling.h"

#include <stdlib.h>

#define NUMBERS "numbers"
#define CATEGORIES "categories"
#define FEATURES "features"
#define NODES_PER_COLUMN 2u /* of words: one selects it, one encodes it */

size_t sgp_onnx_columns_capacity(const struct sgp_scaling *scaling)
{
    return scaling ? (size_t)NODES_PER_COLUMN * scaling->column_count : 0;
}

/* ---- the order of columns ---- */

static bool is_category(const struct sgp_scaling_column *column)
{
    return column->values != NULL;
}

static uint32_t count_of(const struct sgp_scaling *scaling, bool categories)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < scaling->column_count; i++)
        count += is_category(&scaling->columns[i]) == categories;
    return count;
}

/* The names of the columns of an input, in their order, as a tag. */
static void add_names(
    struct sgp_onnx_graph *graph, const struct sgp_scaling *scaling, bool categories)
{
    json_t *names = json_array();
    for (uint32_t i = 0; i < scaling->column_count; i++)
        if (is_category(&scaling->columns[i]) == categories)
            (void)json_array_append_new(names, json_string(scaling->columns[i].name));
    char *text = json_dumps(names, JSON_COMPACT);
    json_decref(names);
    sgp_onnx_tag(graph, categories ? CATEGORIES : NUMBERS, text);
    free(text);
}

/* ---- numbers ---- */

static bool is_scaled(const struct sgp_scaling *scaling)
{
    for (uint32_t i = 0; i < scaling->column_count; i++) {
        const struct sgp_scaling_column *column = &scaling->columns[i];
        if (!is_category(column) && (column->mean != 0 || column->deviation != 1))
            return true;
    }
    return false;
}

/* The means, or the deviations, of the columns of numbers. */
static const char *constants_of(
    struct sgp_onnx_graph *graph, const struct sgp_scaling *scaling, bool means)
{
    const char *name;
    double *values = sgp_onnx_vector(graph, NULL, SGP_ONNX_DOUBLE, count_of(scaling, false), &name);
    for (uint32_t i = 0; i < scaling->column_count && values; i++)
        if (!is_category(&scaling->columns[i]))
            *values++ = means ? scaling->columns[i].mean : scaling->columns[i].deviation;
    return name;
}

/* [rows, columns of numbers] of float32. */
static const char *scale(struct sgp_onnx_graph *graph, const struct sgp_scaling *scaling)
{
    const char *value = NUMBERS;
    if (is_scaled(scaling)) {
        const char *means = constants_of(graph, scaling, true);
        const char *deviations = constants_of(graph, scaling, false);
        value = sgp_onnx_apply(graph, "Sub", NULL, SGP_ONNX_VALUES(value, means));
        value = sgp_onnx_apply(graph, "Div", NULL, SGP_ONNX_VALUES(value, deviations));
    }
    return sgp_onnx_cast(graph, value, NULL, SGP_ONNX_FLOAT);
}

/* [rows, 1], whether a row lacks a number. */
static const char *any_of(struct sgp_onnx_graph *graph, const char *missing)
{
    const int64_t axis = 1;
    const char *marks = sgp_onnx_cast(graph, missing, NULL, SGP_ONNX_FLOAT);
    SgpOnnx__NodeProto *any = sgp_onnx_node(graph, "ReduceMax", NULL, SGP_ONNX_VALUES(marks));
    sgp_onnx_set_ints(graph, any, "axes", &axis, 1);
    return sgp_onnx_cast(graph, sgp_onnx_value(any), NULL, SGP_ONNX_BOOL);
}

/* A missing number is the mean, which is 0 once scaled; or its row is refused. */
static struct sgp_onnx_features numbers(
    struct sgp_onnx_graph *graph, const struct sgp_predictor_view *view)
{
    const uint32_t count = count_of(view->scaling, false);
    if (count == 0)
        return (struct sgp_onnx_features){0};
    sgp_onnx_input(graph, NUMBERS, SGP_ONNX_DOUBLE, count,
        view->missing == SGP_MISSING_MEAN
            ? "columns of numbers, as the tag 'numbers' names them; NaN: a missing value"
            : "columns of numbers, as the tag 'numbers' names them; no value may be missing");
    add_names(graph, view->scaling, false);
    const char *value = scale(graph, view->scaling);
    const char *missing = sgp_onnx_apply(graph, "IsNaN", NULL, SGP_ONNX_VALUES(NUMBERS));
    if (view->missing != SGP_MISSING_MEAN)
        return (struct sgp_onnx_features){value, any_of(graph, missing)};
    const char *zero = sgp_onnx_float(graph, 0);
    return (struct sgp_onnx_features){
        sgp_onnx_apply(graph, "Where", NULL, SGP_ONNX_VALUES(missing, zero, value)), NULL};
}

/* ---- words ---- */

/* [rows, values of the column]: 1 for the row's word. A word that is not there makes zeros, or is
 * an error of the node. */
static const char *encode(struct sgp_onnx_graph *graph, const struct sgp_scaling_column *column,
    uint32_t number, bool may_miss)
{
    const char *index = sgp_onnx_int(graph, number);
    SgpOnnx__NodeProto *node =
        sgp_onnx_node(graph, "Gather", NULL, SGP_ONNX_VALUES(CATEGORIES, index));
    sgp_onnx_set_int(graph, node, "axis", 1);
    node = sgp_onnx_ml_node(graph, "OneHotEncoder", NULL, SGP_ONNX_VALUES(sgp_onnx_value(node)));
    sgp_onnx_set_strings(
        graph, node, "cats_strings", (const char *const *)column->values, column->value_count);
    sgp_onnx_set_int(graph, node, "zeros", may_miss);
    sgp_onnx_declare(graph, sgp_onnx_value(node), SGP_ONNX_FLOAT, column->value_count);
    return sgp_onnx_value(node);
}

/* Add the features of all columns of words to a list of values. */
static void words(
    struct sgp_onnx_graph *graph, const struct sgp_predictor_view *view, const char **list)
{
    const struct sgp_scaling *scaling = view->scaling;
    const uint32_t count = count_of(scaling, true);
    const bool may_miss = view->missing == SGP_MISSING_MEAN;
    uint32_t number = 0;
    if (count == 0)
        return;
    sgp_onnx_input(graph, CATEGORIES, SGP_ONNX_STRING, count,
        may_miss ? "columns of words, as the tag 'categories' names them; unknown words are missing"
                 : "columns of words, as the tag 'categories' names them; no word may be unknown");
    add_names(graph, scaling, true);
    for (uint32_t i = 0; i < scaling->column_count; i++)
        if (is_category(&scaling->columns[i])) {
            list[number] = encode(graph, &scaling->columns[i], number, may_miss);
            number++;
        }
}

/* ---- both ---- */

/* Numbers come first now. Put features in the order of the columns. */
static const char *sort(
    struct sgp_onnx_graph *graph, const struct sgp_scaling *scaling, const char *value)
{
    const char *order;
    int64_t *places =
        sgp_onnx_vector(graph, NULL, SGP_ONNX_INT64, sgp_scaling_features(scaling), &order);
    int64_t number = 0, word = count_of(scaling, false);
    for (uint32_t i = 0; i < scaling->column_count && places; i++) {
        const struct sgp_scaling_column *column = &scaling->columns[i];
        if (!is_category(column))
            *places++ = number++;
        for (uint32_t v = 0; is_category(column) && v < column->value_count; v++)
            *places++ = word++;
    }
    SgpOnnx__NodeProto *node = sgp_onnx_node(graph, "Gather", NULL, SGP_ONNX_VALUES(value, order));
    sgp_onnx_set_int(graph, node, "axis", 1);
    return sgp_onnx_value(node);
}

/* Features of numbers, then of words, as one matrix. */
static const char *join(struct sgp_onnx_graph *graph, const char *const *list)
{
    if (!list[1])
        return list[0];
    SgpOnnx__NodeProto *node = sgp_onnx_node(graph, "Concat", NULL, list);
    sgp_onnx_set_int(graph, node, "axis", 1);
    return sgp_onnx_value(node);
}

/* Whether a column of numbers follows a column of words. */
static bool is_mixed(const struct sgp_scaling *scaling)
{
    for (uint32_t i = 1; i < scaling->column_count; i++)
        if (is_category(&scaling->columns[i - 1]) && !is_category(&scaling->columns[i]))
            return true;
    return false;
}

struct sgp_onnx_features sgp_onnx_columns(
    struct sgp_onnx_graph *graph, const struct sgp_predictor_view *view)
{
    const struct sgp_scaling *scaling = view->scaling;
    if (!scaling) {
        sgp_onnx_input(graph, FEATURES, SGP_ONNX_FLOAT, view->model->inputs,
            "features, as the first layer takes them");
        return (struct sgp_onnx_features){FEATURES, NULL};
    }
    const char **list = sgp_onnx_list(graph, scaling->column_count + 2);
    if (!list)
        return (struct sgp_onnx_features){"", NULL};
    struct sgp_onnx_features features = numbers(graph, view);
    list[0] = features.values;
    words(graph, view, features.values ? list + 1 : list);
    features.values = join(graph, list);
    if (is_mixed(scaling))
        features.values = sort(graph, scaling, features.values);
    return features;
}
