/* SPDX-License-Identifier: Apache-2.0 */
/* The card of a model file, in Markdown: what it predicts and from what, its test results, and its
 * origin. The tags of the file are untrusted, so they are printed as plain text. */
#include "ctl.h"

#include "sgp/predictor.h"

#include <inttypes.h>
#include <string.h>

/* Text that Markdown shows unchanged, in a cell of a table. Control characters become '?'. */
static void put_text(const char *text)
{
    for (; *text; text++) {
        const unsigned char *at = (const unsigned char *)text;
        const bool wide = at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f; /* U+0080 to U+009F */
        if (wide || *at < ' ' || *at == 0x7f)
            (void)putchar('?');
        else
            (void)printf(strchr("\\`*_<>[]|#&", *text) ? "\\%c" : "%c", *text);
        text += wide;
    }
}

static void put_row(const char *name, const char *value)
{
    if (!value)
        return;
    (void)printf("| %s | ", name);
    put_text(value);
    (void)printf(" |\n");
}

static void put_heading(const char *heading, const char *header)
{
    (void)printf("\n## %s\n\n| %s |\n| --- | --- |\n", heading, header);
}

static void put_names(const char *const *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)printf(i == 0 ? "" : i + 1 < count ? ", " : " and ");
        put_text(names[i]);
    }
}

/* What the model says about a row, in a sentence. */
static void put_purpose(const struct sgp_predictor_view *view)
{
    const uint32_t outputs = view->model->outputs;
    (void)printf("Of each row the model says ");
    if (view->classifies && view->classes) {
        (void)printf(view->labels ? "the class of " : "its class");
        if (view->labels)
            put_text(view->labels[0]);
        (void)printf(", one of %" PRIu32 ": ", outputs);
        put_names(view->classes, outputs);
    } else if (view->classifies) {
        (void)printf("its class, from 0 to %" PRIu32, outputs - 1);
    } else if (view->labels) {
        (void)printf(view->bits ? "whether it is " : "numbers: ");
        put_names(view->labels, view->label_count);
    } else {
        (void)printf("%" PRIu32 " numbers", outputs);
    }
    (void)printf(".\n");
}

/* The columns that a row must have. The function that opened the file has checked the tag. */
static void put_columns(const struct sgp_predictor_view *view)
{
    const char *text = sgp_model_file_tag(view->file, "columns");
    json_t *root = text ? json_loads(text, 0, NULL) : NULL;
    size_t index, number;
    json_t *column, *value;
    put_heading("What a row must have", "column | takes");
    if (!root)
        (void)printf(
            "| %" PRIu32 " columns | numbers, as the model takes them |\n", view->model->inputs);
    json_array_foreach(json_object_get(root, "columns"), index, column)
    {
        const json_t *values = json_object_get(column, "values");
        (void)printf("| ");
        put_text(json_string_value(json_object_get(column, "name")));
        if (!values)
            (void)printf(" | a number; mean %.6g, deviation %.6g |\n",
                json_number_value(json_object_get(column, "mean")),
                json_number_value(json_object_get(column, "deviation")));
        else
            (void)printf(" | one of ");
        json_array_foreach(values, number, value)
        {
            (void)printf(number > 0 ? "; " : "");
            put_text(json_string_value(value));
        }
        if (values)
            (void)printf(" |\n");
    }
    json_decref(root);
}

/* The scales of the outputs, as rows of a table. The function that opened the file has checked the
 * tag. */
static void put_targets(const struct sgp_predictor_view *view)
{
    const char *text = sgp_model_file_tag(view->file, "targets");
    json_t *list = text ? json_loads(text, 0, NULL) : NULL;
    size_t index;
    json_t *target;
    json_array_foreach(list, index, target)
    {
        (void)printf("| scale of ");
        put_text(json_string_value(json_object_get(target, "name")));
        (void)printf(" | mean %.6g, deviation %.6g |\n",
            json_number_value(json_object_get(target, "mean")),
            json_number_value(json_object_get(target, "deviation")));
    }
    json_decref(list);
}

/* Tags that are printed unchanged, under a heading if there are any. */
struct tag {
    const char *key, *name;
};

static void put_tags(const struct sgp_model_file *file, const char *heading, const struct tag *tags)
{
    bool any = false;
    for (size_t i = 0; tags[i].key; i++)
        any = any || sgp_model_file_tag(file, tags[i].key);
    if (!any)
        return;
    put_heading(heading, " | ");
    for (size_t i = 0; tags[i].key; i++)
        put_row(tags[i].name, sgp_model_file_tag(file, tags[i].key));
}

static const struct tag model_tags[] = {{"layers", "layers"}, {"local", "local layers"},
    {"loss", "loss"}, {"label_smoothing", "label smoothing"}, {"huber_delta", "delta of the loss"},
    {"missing", "a missing value is"}, {0}};
static const struct tag measure_tags[] = {{"test_rows", "rows"}, {"test_loss", "loss"},
    {"test_accuracy", "accuracy"}, {"train_loss", "loss of the latest round of training"}, {0}};
static const struct tag fleet_tags[] = {{"fleet_measure", "kept by all nodes as the best by"},
    {"fleet_value", "its value"}, {"fleet_count", "over so many rows, or values of rows"}, {0}};
static const struct tag origin_tags[] = {{"node", "node"}, {"created", "created"},
    {"round", "round"}, {"epoch", "epochs"}, {"version", "sgpd"}, {"fingerprint", "fingerprint"},
    {"xxh3", "checksum (xxh3)"}, {0}};

static void put_card(const char *path, const struct sgp_predictor_view *view)
{
    (void)printf("# ");
    put_text(path);
    (void)printf("\n\n");
    put_purpose(view);
    (void)printf(
        "Predict with `sgpctl predict --model FILE rows.csv`, or make a graph of ONNX with "
        "`sgpctl export --model FILE model.onnx`.\n");
    put_columns(view);
    put_tags(view->file, "The model", model_tags);
    (void)printf("| parameters | %" PRIu64 " |\n", view->model->parameters);
    put_targets(view);
    put_tags(view->file, "Measures, on the rows that the node tests on", measure_tags);
    put_tags(view->file, "Measure, on the held-out rows of all nodes", fleet_tags);
    put_tags(view->file, "Where it is from", origin_tags);
}

/* All tags on the card, as strings. */
static enum ctl_exit print_json(const char *path, const struct sgp_predictor_view *view)
{
    static const struct tag others[] = {{"label", ""}, {"targets", ""}, {"classes", ""},
        {"columns", ""}, {"inputs", ""}, {"weight", ""}, {0}};
    static const struct tag *const all[] = {
        model_tags, others, measure_tags, fleet_tags, origin_tags};
    json_t *object = json_pack("{s:o, s:I}", "file", ctl_json_text(path), "parameters",
        (json_int_t)view->model->parameters);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (const struct tag *tag = all[i]; tag->key; tag++) {
            const char *value = sgp_model_file_tag(view->file, tag->key);
            if (value)
                (void)json_object_set_new(object, tag->key, json_string(value));
        }
    return ctl_print_json(object);
}

static enum ctl_exit card(struct ctl *ctl, int argc, char **argv)
{
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, NULL, 0, 1, 1);
    if (status != CTL_DONE)
        return status;
    int code = sgp_predictor_open(argv[0], &error, &predictor);
    if (code < 0)
        return ctl_fail(ctl, CTL_INVALID, "%s", error.text);
    const struct sgp_predictor_view view = sgp_predictor_view(predictor);
    if (ctl->json)
        status = print_json(argv[0], &view);
    else
        put_card(argv[0], &view);
    sgp_predictor_destroy(predictor);
    return status;
}

const struct ctl_command ctl_card_command = {.words = "card",
    .operands = "FILE",
    .summary = "what a model file predicts, of what, how well, and where it is from",
    .help = "FILE is a model.safetensors. The card is Markdown: the columns that a row must have,\n"
            "layers and loss, the measures that the node had, and the version, date and\n"
            "fingerprint. With --json it is an object of the tags. No daemon is needed.\n",
    .run = card};
