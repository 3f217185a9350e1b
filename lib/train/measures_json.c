/* SPDX-License-Identifier: Apache-2.0 */
/* Renders measures; see measures_json.h. */
#include "measures_json.h"

static void add(json_t *object, const char *key, bool known, double value)
{
    if (known)
        (void)json_object_set_new(object, key, json_real(value));
}

/* A name may have bytes that are not UTF-8; then the number is the name. */
static json_t *name_json(const char *const *names, uint32_t output)
{
    json_t *name = names ? json_string(names[output]) : NULL;
    return name ? name : json_integer((json_int_t)output);
}

static json_t *class_json(
    const struct sgp_measures *measures, uint32_t output, const char *const *names)
{
    const struct sgp_measures_class *class = &measures->classes[output];
    double auc = 0, bound = 0;
    json_t *object = json_pack("{s:o, s:I, s:I, s:I, s:f, s:f, s:f}", "class",
        name_json(names, output), "rows", (json_int_t) class->rows, "said",
        (json_int_t) class->said, "correct", (json_int_t) class->correct, "precision",
        sgp_measures_precision(measures, output), "recall", sgp_measures_recall(measures, output),
        "f1", sgp_measures_f1(measures, output));
    const bool known = sgp_measures_auc(measures, output, &auc, &bound);
    add(object, "auc", known, auc);
    add(object, "auc_bound", known, bound);
    return object;
}

static json_t *confusion_json(const struct sgp_measures *measures)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < measures->outputs; i++) {
        json_t *row = json_array();
        for (uint32_t j = 0; j < measures->outputs; j++)
            (void)json_array_append_new(row,
                json_integer((json_int_t)measures->confusion[(size_t)i * measures->outputs + j]));
        (void)json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *calibration_json(const struct sgp_measures *measures)
{
    json_t *parts = json_array();
    for (uint32_t p = 0; p < SGP_MEASURES_PARTS; p++) {
        const struct sgp_measures_part *part = &measures->parts[p];
        double confidence;
        if (sgp_measures_confidence(measures, p, &confidence))
            (void)json_array_append_new(parts,
                json_pack("{s:f, s:f, s:I, s:I, s:f}", "from", (double)p / SGP_MEASURES_PARTS, "to",
                    (double)(p + 1) / SGP_MEASURES_PARTS, "rows", (json_int_t)part->rows, "correct",
                    (json_int_t)part->correct, "confidence", confidence));
    }
    return parts;
}

/* The figures of numbers: of one column, or the means over all. */
static void add_numbers(json_t *object, const struct sgp_measures *measures, uint32_t output)
{
    double value = 0;
    bool known = sgp_measures_r2(measures, output, &value);
    add(object, "r2", known, value);
    known = sgp_measures_absolute_error(measures, output, &value);
    add(object, "absolute_error", known, value);
    known = sgp_measures_squared_error(measures, output, &value);
    add(object, "squared_error", known, value);
}

static void add_summary(json_t *object, const struct sgp_measures *measures)
{
    static const struct {
        const char *key;
        bool (*figure)(const struct sgp_measures *measures, double *ret_value);
    } figures[] = {{"accuracy", sgp_measures_accuracy}, {"log_loss", sgp_measures_log_loss},
        {"macro_f1", sgp_measures_macro_f1}, {"macro_auc", sgp_measures_macro_auc},
        {"calibration_error", sgp_measures_calibration_error}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        double value = 0;
        const bool known = figures[i].figure(measures, &value);
        add(object, figures[i].key, known, value);
    }
    add_numbers(object, measures, measures->outputs);
}

static json_t *column_json(
    const struct sgp_measures *measures, uint32_t output, const char *const *names)
{
    json_t *object = json_pack("{s:o}", "column", name_json(names, output));
    add_numbers(object, measures, output);
    return object;
}

json_t *sgp_measures_json(const struct sgp_measures *measures, const char *const *names)
{
    json_t *object = json_pack("{s:I}", "rows", (json_int_t)measures->rows);
    json_t *outputs = json_array();
    add_summary(object, measures);
    for (uint32_t i = 0; i < measures->outputs; i++)
        (void)json_array_append_new(outputs,
            measures->classes ? class_json(measures, i, names) : column_json(measures, i, names));
    (void)json_object_set_new(object, measures->classes ? "classes" : "columns", outputs);
    if (measures->confusion)
        (void)json_object_set_new(object, "confusion", confusion_json(measures));
    double value;
    if (sgp_measures_calibration_error(measures, &value))
        (void)json_object_set_new(object, "calibration", calibration_json(measures));
    return object;
}
