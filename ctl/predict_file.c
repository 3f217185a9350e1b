/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions with a model file, without a daemon: CSV in, CSV or a JSON object a line out.
 *
 * The number of rows is not limited, because printed rows are not stored. So if a row is wrong, the
 * rows before it have already been printed. */
#include "measures.h"

#include "train/measures_json.h"

#include "sgp/predictor.h"

#include <errno.h>
#include <string.h>

struct printer {
    struct ctl *ctl;
    struct sgp_predictor_view view;
    uint64_t rows;
};

/* ---- CSV ---- */

/* A field, in quotes if it must be: RFC 4180. */
static void put_field(const char *prefix, const char *name, const char *suffix)
{
    if (name[strcspn(name, ",\"\r\n")] == '\0') {
        (void)printf("%s%s%s", prefix, name, suffix);
        return;
    }
    (void)printf("\"%s", prefix);
    for (; *name; name++)
        (void)printf(*name == '"' ? "\"\"" : "%c", *name);
    (void)printf("%s\"", suffix);
}

/* The name of output `i`: its class, its label column, or its number. */
static const char *name_of(const struct sgp_predictor_view *view, uint32_t i, char text[24])
{
    if (view->classes)
        return view->classes[i];
    if (view->labels && !view->classifies)
        return view->labels[i];
    (void)snprintf(text, 24, view->classifies ? "%u" : "output%u", i);
    return text;
}

/* Whether the outputs are probabilities. */
static bool has_probabilities(const struct sgp_predictor_view *view)
{
    return sgp_loss_activation(view->model->loss) != NULL;
}

static void put_header(const struct sgp_predictor_view *view)
{
    char text[24];
    const char *before = "";
    if (view->classifies) {
        (void)printf("class");
        before = ",";
    }
    for (uint32_t i = 0; i < view->model->outputs; i++, before = ",") {
        (void)printf("%s", before);
        if (view->bits) {
            put_field("", name_of(view, i, text), "");
            (void)printf(",");
        }
        if (has_probabilities(view))
            put_field("p(", name_of(view, i, text), ")");
        else
            put_field("", name_of(view, i, text), "");
    }
    (void)printf("\n");
}

static void put_row(const struct sgp_predictor_view *view, const float *outputs)
{
    char text[24];
    const uint32_t count = view->model->outputs;
    if (view->classifies)
        put_field("", name_of(view, sgp_measures_greatest(outputs, count), text), "");
    for (uint32_t i = 0; i < count; i++) {
        (void)printf("%s", i > 0 || view->classifies ? "," : "");
        if (view->bits)
            (void)printf("%d,", outputs[i] > 0.5f);
        (void)printf("%.9g", (double)outputs[i]);
    }
    (void)printf("\n");
}

/* ---- JSON ---- */

static json_t *outputs_json(const struct sgp_predictor_view *view, const float *outputs, bool bits)
{
    char text[24];
    json_t *object = json_object();
    for (uint32_t i = 0; i < view->model->outputs; i++)
        (void)json_object_set_new(object, name_of(view, i, text),
            bits ? json_integer(outputs[i] > 0.5f) : ctl_json_real((double)outputs[i]));
    return object;
}

static void print_row_json(
    const struct sgp_predictor_view *view, uint64_t number, const float *outputs)
{
    char text[24];
    const bool probable = has_probabilities(view);
    json_t *row = json_pack("{s:I}", "row", (json_int_t)number);
    if (view->classifies) {
        const char *name =
            name_of(view, sgp_measures_greatest(outputs, view->model->outputs), text);
        (void)json_object_set_new(row, "class", json_string(name));
    }
    if (view->bits || !view->classifies)
        (void)json_object_set_new(row, "values", outputs_json(view, outputs, view->bits));
    if (view->classifies || view->bits)
        (void)json_object_set_new(
            row, probable ? "probabilities" : "outputs", outputs_json(view, outputs, false));
    (void)ctl_print_json(row);
}

/* ---- the complete prediction ---- */

static int take(void *context, const struct sgp_predictions *block, struct sgp_error *error)
{
    struct printer *printer = context;
    const struct sgp_predictor_view *view = &printer->view;
    if (printer->rows == 0 && !printer->ctl->json)
        put_header(view);
    for (uint64_t r = 0; r < block->rows; r++) {
        const float *outputs = block->outputs + r * view->model->outputs;
        if (printer->ctl->json)
            print_row_json(view, block->first + r + 1, outputs);
        else
            put_row(view, outputs);
    }
    printer->rows += block->rows;
    return ferror(stdout) ? sgp_fail(error, -EIO, "standard output: %s", strerror(errno)) : 0;
}

/* Print how good the predictions are: with --json as a last object, else on standard error,
 * because these lines are no rows. */
static void print_measures(
    const struct printer *printer, const char *rows, const struct sgp_measures *measures)
{
    const struct sgp_predictor_view *view = &printer->view;
    json_t *object = sgp_measures_json(measures, view->classes ? view->classes : view->labels);
    const char *key, *before = " ";
    json_t *value;
    if (printer->ctl->json) {
        (void)ctl_print_json(
            json_pack("{s:I, s:o}", "scored_rows", (json_int_t)measures->rows, "measures", object));
        return;
    }
    (void)fprintf(
        stderr, "sgpctl: %s: %llu rows scored:", rows, (unsigned long long)measures->rows);
    json_object_foreach(object, key, value)
    {
        if (!json_is_real(value))
            continue;
        (void)fprintf(stderr, "%s%s %.6g", before, key, json_real_value(value));
        before = ", ";
    }
    (void)fprintf(stderr, "\n");
    ctl_measures_print(object, stderr);
    json_decref(object);
}

static enum ctl_exit fail(struct ctl *ctl, int code, const struct sgp_error *error)
{
    const char *text = error->text[0] != '\0' ? error->text : sgp_strerror(code);
    const bool own = code == -EIO || code == -ENOMEM || code == SGP_E_NOT_FINITE;
    (void)fflush(stdout);
    return ctl_fail(ctl, own ? CTL_FAILED : CTL_INVALID, "%s", text);
}

static enum ctl_exit run(struct ctl *ctl, struct sgp_predictor *predictor, const char *rows)
{
    const bool standard = strcmp(rows, "-") == 0;
    FILE *file = standard ? stdin : fopen(rows, "rb");
    struct printer printer = {.ctl = ctl, .view = sgp_predictor_view(predictor)};
    struct sgp_error error = {0};
    struct sgp_measures measures = {0};
    if (!file)
        return ctl_fail(ctl, CTL_INVALID, "%s: %s", rows, strerror(errno));
    const char *name = standard ? "standard input" : rows;
    int code = sgp_predictor_measures(predictor, &measures);
    if (code == 0)
        code = sgp_predictor_run(predictor, file, name, take, &printer, &error, &measures);
    if (!standard)
        (void)fclose(file);
    if (code == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        code = sgp_fail(&error, -EIO, "standard output: %s", strerror(errno));
    enum ctl_exit status = code < 0 ? fail(ctl, code, &error) : CTL_DONE;
    if (code == 0 && measures.rows > 0)
        print_measures(&printer, name, &measures);
    sgp_measures_finish(&measures);
    return status;
}

enum ctl_exit ctl_predict_file(struct ctl *ctl, const char *model, const char *rows)
{
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    int code = sgp_predictor_open(model, &error, &predictor);
    if (code < 0)
        return fail(ctl, code, &error);
    enum ctl_exit status = run(ctl, predictor, rows);
    sgp_predictor_destroy(predictor);
    return status;
}
