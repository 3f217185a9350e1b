/* SPDX-License-Identifier: Apache-2.0 */
/* The files of [data] scale = fleet; see scaling.h. */
#include "scaling.h"

#include "train/atomic_file.h"
#include "train/names.h"
#include "train/scaling.h"
#include "train/statistics.h"

#include "sgp/loss.h"
#include "sgp/statistics.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSION_KEY "version"
/* Bytes of the text of a combination with its version. */
#define SCALING_TEXT_MAX (SGP_STATISTICS_MAX + sizeof ",\"" VERSION_KEY "\":" + 20)

bool scaling_is_of_fleet(const struct config *config)
{
    return config->kind != CONFIG_ATTACHED && strcmp(config->scale, SCALING_FLEET) == 0;
}

int scaling_check(const struct config *config, const struct sgp_topology *topology, bool relay,
    struct sgp_error *error)
{
    if (*config->labels)
        return config_fail(config, CONFIG_ID_SCALE, error, SGP_E_CONFIG,
            "fleet is for CSV; bytes of IDX are always divided by 255; remove the line");
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].colocated)
            return config_fail(config, CONFIG_ID_SCALE, error, SGP_E_CONFIG,
                "fleet does not go with %s, an owner co-located with another node of %s; give a "
                "scaling "
                "file",
                topology->nodes[i].name, config->topology);
    if (!relay && !*config->train)
        return config_fail(config, CONFIG_ID_SCALE, error, SGP_E_CONFIG,
            "fleet needs rows; add a line `train = FILE`");
    return 0;
}

void scaling_path(const struct config *config, char path[CONFIG_TEXT_BYTES])
{
    if (scaling_is_of_fleet(config))
        (void)snprintf(path, CONFIG_TEXT_BYTES, "%s/scale.json", config->state_directory);
    else
        (void)snprintf(path, CONFIG_TEXT_BYTES, "%s", config->scale);
}

/* ---- what this node tells ---- */

static const char *given(const char *text)
{
    return *text ? text : NULL;
}

/* The first column of numbers that holds words. */
static void note_words(
    const struct sgp_statistics *statistics, const char *path, struct sgp_error *ret_note)
{
    for (uint32_t i = 0; i < statistics->column_count + statistics->label_count; i++) {
        const bool label = i >= statistics->column_count;
        const struct sgp_statistics_column *column =
            label ? &statistics->labels[i - statistics->column_count] : &statistics->columns[i];
        if (column->kind == SGP_STATISTICS_WORDS && ret_note->code == 0)
            sgp_statistics_explain(column, label, path, ret_note);
    }
}

/* An error that begins with the name of a key, as one of its line of the configuration. */
static int fail_key(
    const struct config *config, int code, const struct sgp_error *why, struct sgp_error *error)
{
    static const enum config_id ids[] = {CONFIG_ID_LABEL, CONFIG_ID_CATEGORIES, CONFIG_ID_IGNORE};
    for (size_t i = 0; i < sizeof ids / sizeof *ids && code == SGP_E_CONFIG; i++) {
        const char *key = config_keys[ids[i]].key;
        const size_t length = strlen(key);
        if (strncmp(why->text, key, length) == 0 && strncmp(why->text + length, ": ", 2) == 0)
            return config_fail(config, ids[i], error, code, "%s", why->text + length + 2);
    }
    return sgp_fail(error, code, "%s", why->text);
}

static int read_statistics(const struct config *config, uint64_t min_count, struct sgp_error *error,
    struct sgp_statistics **ret_statistics)
{
    const struct sgp_statistics_options options = {.label = given(config->label),
        .classes = *config->classes != '\0',
        .categories = given(config->categories),
        .ignore = given(config->ignore),
        .min_count = (uint32_t)min_count};
    struct sgp_error why = {0};
    const int code = sgp_statistics_read(config->train, &options, &why, ret_statistics);
    return code < 0 ? fail_key(config, code, &why, error) : 0;
}

int scaling_tell(const struct config *config, struct sgp_error *ret_note, struct sgp_error *error,
    char **ret_text)
{
    struct sgp_statistics *statistics = NULL;
    int code = read_statistics(config, config->min_count, error, &statistics);
    if (code == 0)
        code = sgp_statistics_text(statistics, config->train, error, ret_text);
    if (code == 0)
        note_words(statistics, config->train, ret_note);
    sgp_statistics_destroy(statistics);
    return code;
}

/* ---- the result ---- */

/* Add the version to the text of a combination, which is freed. */
static int add_version(char *text, uint64_t version, struct sgp_error *error, char **ret_text)
{
    json_t *root = json_loads(text, 0, NULL);
    free(text);
    const int failed = json_object_set_new(root, VERSION_KEY, json_integer((json_int_t)version));
    char *whole = failed ? NULL : sgp_statistics_dump(root);
    json_decref(root);
    if (whole == NULL)
        return sgp_fail(error, -ENOMEM, "out of memory");
    *ret_text = whole;
    return 0;
}

static int combine(const char *const *texts, const char *const *names, uint32_t count,
    uint64_t version, struct sgp_error *error, char **ret_text)
{
    struct sgp_scaling *scaling = NULL;
    char *text = NULL;
    const int code = sgp_statistics_combine(texts, names, count, error, &scaling, &text);
    sgp_scaling_destroy(scaling);
    return code < 0 ? code : add_version(text, version, error, ret_text);
}

int scaling_combine(const struct sgp_survey *survey, const struct sgp_topology *topology,
    struct sgp_error *error, char **ret_text)
{
    const uint32_t count = sgp_survey_members(survey);
    const char **names = calloc(count + 1u, sizeof *names);
    const char **texts = calloc(count + 1u, sizeof *texts);
    int code = names == NULL || texts == NULL ? sgp_fail(error, -ENOMEM, "out of memory") : 0;
    for (uint32_t i = 0; code == 0 && i < count; i++) {
        names[i] = sgp_survey_name(survey, i);
        texts[i] = sgp_survey_figures(survey, i);
    }
    if (code == 0)
        code = combine(texts, names, count, topology->version, error, ret_text);
    free(names);
    free(texts);
    return code;
}

/* ---- the scaling of these rows alone, for a check ---- */

static bool is_told(const struct sgp_statistics_column *column)
{
    return column->count > 0 || column->value_count > 0 || column->kind == SGP_STATISTICS_WORDS;
}

/* A column that is empty here: a constant, or one value. */
static int stand_in(struct sgp_statistics_column *column)
{
    column->count = 1;
    if (column->kind == SGP_STATISTICS_NUMBERS)
        return 0;
    column->values = calloc(1, sizeof *column->values);
    char *text = column->values ? strdup("any") : NULL;
    if (text == NULL)
        return -ENOMEM;
    column->values[0].text = text;
    column->values[0].rows = 1;
    column->value_count = 1;
    return 0;
}

/* Whether two readings of a table found the same columns. */
static bool are_alike(const struct sgp_statistics_column *a, uint32_t a_count,
    const struct sgp_statistics_column *b, uint32_t b_count)
{
    uint32_t i = 0;
    while (a_count == b_count && i < a_count && strcmp(a[i].name, b[i].name) == 0)
        i++;
    return a_count == b_count && i == a_count;
}

/* Take what this node does not tell from `whole`, which has the same columns and tells all values.
 * The first such column is noted. */
static void fill(struct sgp_statistics_column *own, struct sgp_statistics_column *whole,
    uint32_t count, const char *what, struct sgp_error *ret_note)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_told(&own[i]))
            continue;
        if (ret_note->code == 0)
            (void)sgp_fail(ret_note, SGP_E_DATA,
                "%s '%.80s' is not told by this node, because too few of its rows have it "
                "(min_count); another node must tell it",
                what, own[i].name);
        const struct sgp_statistics_column untold = own[i];
        own[i] = whole[i];
        whole[i] = untold;
    }
}

/* What is empty in all rows of this node. */
static int fill_empty(
    const struct config *config, struct sgp_statistics *own, struct sgp_error *error)
{
    for (uint32_t i = 0; i < own->column_count; i++)
        if (!is_told(&own->columns[i]) && stand_in(&own->columns[i]) < 0)
            return sgp_fail(error, -ENOMEM, "%s: out of memory", config->train);
    for (uint32_t i = 0; i < own->label_count; i++)
        if (!is_told(&own->labels[i]))
            return sgp_fail(error, SGP_E_DATA,
                "%s: no row has a value of the label '%.80s'; correct the table, or [data] label",
                config->train, own->labels[i].name);
    return 0;
}

static bool all_told(const struct sgp_statistics *statistics)
{
    bool all = true;
    for (uint32_t i = 0; i < statistics->column_count; i++)
        all = all && is_told(&statistics->columns[i]);
    for (uint32_t i = 0; i < statistics->label_count; i++)
        all = all && is_told(&statistics->labels[i]);
    return all;
}

/* What this node tells, and of a column that it does not tell what another node might. */
static int tell_alone(const struct config *config, struct sgp_error *ret_note,
    struct sgp_error *error, struct sgp_statistics **ret_own)
{
    struct sgp_statistics *own = NULL, *whole = NULL;
    int code = read_statistics(config, config->min_count, error, &own);
    if (code == 0 && !all_told(own))
        code = read_statistics(config, 1, error, &whole);
    if (code == 0 && whole != NULL &&
        !(are_alike(own->columns, own->column_count, whole->columns, whole->column_count) &&
            are_alike(own->labels, own->label_count, whole->labels, whole->label_count)))
        code = sgp_fail(error, SGP_E_DATA,
            "%s: the table was changed while it was read; try again when nothing writes to it",
            config->train);
    if (code == 0 && whole != NULL) {
        fill(own->columns, whole->columns, own->column_count, "column", ret_note);
        fill(own->labels, whole->labels, own->label_count, "label", ret_note);
        code = fill_empty(config, own, error);
    }
    sgp_statistics_destroy(whole);
    if (code == 0)
        *ret_own = own;
    else
        sgp_statistics_destroy(own);
    return code;
}

static int scale_alone(const struct config *config, struct sgp_error *ret_note,
    struct sgp_error *error, char **ret_text)
{
    struct sgp_error words = {0};
    struct sgp_statistics *own = NULL;
    char *figures = NULL;
    const char *name = config->name;
    int code = tell_alone(config, ret_note, error, &own);
    if (code != 0)
        return code;
    note_words(own, config->train, &words);
    code = words.code != 0 ? sgp_fail(error, words.code, "%s", words.text)
                           : sgp_statistics_text(own, config->train, error, &figures);
    if (code == 0)
        code = combine((const char *const *)&figures, &name, 1, 0, error, ret_text);
    sgp_statistics_destroy(own);
    free(figures);
    return code;
}

/* ---- the kept result ---- */

/* The kept text, which the caller frees: 1, 0 or negative. */
static int read_kept(
    const char *path, struct sgp_error *error, uint64_t *ret_version, char **ret_text)
{
    FILE *file = fopen(path, "re");
    if (file == NULL && errno == ENOENT)
        return 0;
    if (file == NULL)
        return sgp_fail(error, -errno,
            "%s: the scaling on which the nodes have agreed cannot be read: %s; let the user of "
            "sgpd read this file and its directory",
            path, strerror(errno));
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, NULL);
    (void)fclose(file);
    const json_t *version = json_object_get(root, VERSION_KEY);
    if (!json_is_integer(version) || json_integer_value(version) < 0) {
        json_decref(root);
        return sgp_fail(error, SGP_E_FILE,
            "%s: not a scaling on which a fleet has agreed; remove it, and all nodes agree again",
            path);
    }
    *ret_version = (uint64_t)json_integer_value(version);
    *ret_text = sgp_statistics_dump(root);
    json_decref(root);
    return *ret_text != NULL ? 1 : sgp_fail(error, -ENOMEM, "%s: out of memory", path);
}

int scaling_read(const struct config *config, bool relay, struct sgp_error *error, bool *ret_alone,
    struct sgp_error *ret_note, char **ret_text, struct sgp_scaling **ret_scaling)
{
    char path[CONFIG_TEXT_BYTES];
    uint64_t version;
    scaling_path(config, path);
    if (!scaling_is_of_fleet(config)) {
        const bool none = relay && access(path, F_OK) < 0 && errno == ENOENT;
        return none ? 0 : sgp_scaling_read(path, error, ret_scaling);
    }
    int code = read_kept(path, error, &version, ret_text);
    *ret_alone = code == 0;
    if (*ret_alone && relay && config->inputs > 0)
        return 0;
    if (*ret_alone && relay)
        return sgp_fail(error, SGP_E_CONFIG,
            "%s: the nodes have not agreed on a scaling yet, so the inputs of this relay are not "
            "known; add a line `inputs = N` to check the rest",
            config->file);
    if (*ret_alone)
        code = scale_alone(config, ret_note, error, ret_text);
    return code < 0 ? code
                    : sgp_scaling_parse(*ret_text, strlen(*ret_text),
                          *ret_alone ? config->train : path, error, ret_scaling);
}

/* ---- classes ---- */

int scaling_classes(
    const char *text, struct sgp_error *error, char ***ret_names, uint32_t *ret_count)
{
    json_t *root = json_loads(text, 0, NULL);
    json_t *classes = json_object_get(root, "classes");
    char **names = calloc(json_object_size(classes) + 1, sizeof *names);
    uint32_t count = 0;
    bool whole = root != NULL && names != NULL;
    const char *name;
    json_t *rows;
    json_object_foreach(classes, name, rows)
    {
        if (!whole)
            break;
        names[count] = strdup(name);
        whole = names[count] != NULL;
        count += whole;
    }
    json_decref(root);
    if (whole && count > 0) {
        *ret_names = names;
        *ret_count = count;
        return 0;
    }
    sgp_names_free(names, count);
    return whole ? 0 : sgp_fail(error, -ENOMEM, "out of memory");
}

/* Whether a told class is the class of this name: 0.0 is the class 0. */
static bool is_class(const char *told, const char *name)
{
    char *end, *told_end;
    const double number = strtod(name, &end), told_number = strtod(told, &told_end);
    const bool numbers = end != name && *end == '\0' && told_end != told && *told_end == '\0';
    return strcmp(told, name) == 0 || (numbers && number == told_number);
}

/* How many rows were told of a class. */
static uint64_t rows_of(const json_t *classes, const char *name)
{
    const char *told;
    json_t *rows;
    json_object_foreach((json_t *)(uintptr_t)classes, told, rows) if (is_class(told, name)) return (
        uint64_t)json_integer_value(rows);
    return 0;
}

static int balance(const json_t *classes, char *const *names, uint32_t count,
    struct sgp_error *error, float *weights)
{
    uint64_t all = 0, fewest = UINT64_MAX;
    uint32_t told = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t rows = rows_of(classes, names[i]);
        all += rows;
        told += rows > 0;
        fewest = rows > 0 && rows < fewest ? rows : fewest;
    }
    if (told == 0)
        return sgp_fail(error, SGP_E_DATA,
            "no node has told how many rows a class has; give class_weights as numbers");
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t rows = rows_of(classes, names[i]);
        const double weight = (double)all / ((double)told * (double)(rows > 0 ? rows : fewest));
        weights[i] = (float)fmin(weight, SGP_CLASS_WEIGHT_MAX);
    }
    return 0;
}

int scaling_balance(const char *text, char *const *names, uint32_t count, struct sgp_error *error,
    float **ret_weights)
{
    json_t *root = json_loads(text, 0, NULL);
    float *weights = calloc(count, sizeof *weights);
    int code = root == NULL || weights == NULL
                   ? sgp_fail(error, -ENOMEM, "out of memory")
                   : balance(json_object_get(root, "classes"), names, count, error, weights);
    json_decref(root);
    if (code < 0)
        free(weights);
    else
        *ret_weights = weights;
    return code;
}

/* Whether a text can be what nodes of this version of the topology file have agreed on. */
static bool is_sound(const char *text, uint64_t version)
{
    struct sgp_error error = {0};
    struct sgp_scaling *scaling = NULL;
    const bool is_short = strlen(text) <= SCALING_TEXT_MAX; /* to parse it costs time */
    json_t *root = is_short ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const json_t *told = json_object_get(root, VERSION_KEY);
    const bool same = json_is_integer(told) && json_integer_value(told) >= 0 &&
                      (uint64_t)json_integer_value(told) == version;
    json_decref(root);
    const bool sound = same && sgp_scaling_parse(text, strlen(text), "the scaling of the fleet",
                                   &error, &scaling) == 0;
    sgp_scaling_destroy(scaling);
    return sound;
}

int scaling_judge(void *context, const struct sgp_bulletin *bulletin)
{
    (void)context;
    return is_sound(bulletin->text, bulletin->stamp) ? 1 : SGP_E_PROTOCOL;
}

int scaling_try_to_keep(const struct config *config, struct sgp_error *error)
{
    char path[CONFIG_TEXT_BYTES];
    scaling_path(config, path);
    return sgp_atomic_try(path, SGP_ATOMIC_PRIVATE, error);
}

int scaling_keep(const struct config *config, const char *text, struct sgp_error *error)
{
    char path[CONFIG_TEXT_BYTES];
    struct sgp_atomic_file file;
    scaling_path(config, path);
    const int code = sgp_atomic_open(&file, path, SGP_ATOMIC_PRIVATE, error);
    if (code < 0)
        return code;
    sgp_atomic_write(&file, text, strlen(text));
    sgp_atomic_write(&file, "\n", 1);
    return sgp_atomic_commit(&file, error);
}

int scaling_restore(const struct config *config, struct sgp_survey *survey, struct sgp_error *error)
{
    char path[CONFIG_TEXT_BYTES];
    uint64_t version = 0;
    char *text = NULL;
    scaling_path(config, path);
    const int found = read_kept(path, error, &version, &text);
    if (found <= 0)
        return found;
    const int code = sgp_survey_freeze(survey, version, text);
    free(text);
    return code < 0 ? sgp_fail(error, code, "%s: %s", path, sgp_strerror(code)) : 1;
}
