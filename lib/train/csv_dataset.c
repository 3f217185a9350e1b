/* SPDX-License-Identifier: Apache-2.0 */
/* Turns CSV records into a dataset. It decides which field is which feature, and handles missing
 * and unknown values. Owns nothing after it returns. Errors are one line, `FILE:LINE: column 'C':
 * ...`. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "csv.h"
#include "names.h"
#include "scaling.h"
#include "table.h"
#include "target_scale.h"

#define BLOCK_BYTES_MAX ((uint64_t)4 << 20) /* of the features of a block */

/* A word and its number; sorted by word. */
struct entry {
    const char *word;
    uint32_t number;
};

/* A class whose name is a number; sorted by it. */
struct numeric {
    double number;
    uint32_t class;
};

/* One feature column, bound to a field of the record. */
struct binding {
    uint32_t field;
    uint32_t feature;                         /* the column's first feature */
    const struct sgp_scaling_column *scaling; /* NULL: not scaled */
    struct entry *entries;                    /* categories by word */
};

struct reading {
    struct sgp_csv csv;
    struct sgp_csv_header header;
    const struct sgp_csv_options *options;
    struct binding *bindings;
    uint32_t binding_count;
    char **label_names;
    uint32_t label_count;
    uint32_t *label_fields;                       /* their positions in the record */
    const struct sgp_target_scale *target_scales; /* one for each; NULL: they are not scaled */
    bool *is_label;                               /* by field */
    struct entry *classes;
    struct numeric *numerics; /* the classes that are numbers */
    uint32_t numeric_count;
    struct sgp_dataset parts;
    size_t float_capacity;
    size_t label_capacity;
    uint64_t last_line;  /* where the last row begins that was kept */
    uint64_t block_rows; /* rows per block for `take`; 0: all rows are kept */
    sgp_csv_take *take;
    void *context;
};

static int entry_compare(const void *left, const void *right)
{
    return strcmp(((const struct entry *)left)->word, ((const struct entry *)right)->word);
}

static struct entry *entries_make(const char *const *words, uint32_t count)
{
    struct entry *entries = malloc(count * sizeof *entries);
    if (!entries)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (struct entry){.word = words[i], .number = i};
    qsort(entries, count, sizeof *entries, entry_compare);
    return entries;
}

static const struct entry *entry_find(const struct entry *entries, uint32_t count, const char *word)
{
    const struct entry key = {.word = word};
    return bsearch(&key, entries, count, sizeof *entries, entry_compare);
}

static int no_memory(const struct reading *reading, struct sgp_error *error)
{
    return sgp_fail(error, -ENOMEM, "%s:%llu: out of memory", reading->csv.source.name,
        (unsigned long long)reading->csv.line);
}

/* Bind every column except the labels, without scaling. The digest covers their names in order. */
static int bind_plain(struct reading *reading, struct sgp_error *error)
{
    size_t bytes = 0;
    sgp_assert(reading->header.count > 0);
    for (uint32_t i = 0; i < reading->header.count; i++)
        bytes += strlen(reading->header.names[i]) + 1;
    reading->bindings = calloc(reading->header.count, sizeof *reading->bindings);
    reading->parts.names = malloc(bytes);
    if (!reading->bindings || !reading->parts.names)
        return no_memory(reading, error);
    char *name = reading->parts.names;
    uint64_t digest = XXH3_64bits("columns", 7);
    for (uint32_t i = 0; i < reading->header.count; i++) {
        if (reading->is_label[i])
            continue;
        const uint32_t feature = reading->binding_count++;
        reading->bindings[feature] = (struct binding){.field = i, .feature = feature};
        const size_t size = strlen(reading->header.names[i]) + 1;
        memcpy(name, reading->header.names[i], size);
        name += size;
        digest = XXH3_64bits_withSeed(reading->header.names[i], size, digest);
    }
    reading->parts.features = reading->binding_count;
    reading->parts.scaling_digest = digest;
    if (reading->binding_count == 0)
        return sgp_fail(error, SGP_E_DATA,
            "%s:1: the label '%.80s' is the only column; rows need features too",
            reading->csv.source.name, reading->options->label);
    return 0;
}

#define AGREE_AGAIN "to agree on other columns, stop all nodes, remove %s on each, and start them"

/* Report that the table lacks a column of the scaling. */
static int fail_absent(const struct reading *reading, const char *name, struct sgp_error *error)
{
    const struct sgp_scaling *scaling = reading->options->scaling;
    const char *table = reading->csv.source.name;
    char list[SGP_TEXT_BYTES / 4];
    char theirs[SGP_TEXT_BYTES / 4];
    sgp_csv_header_list(&reading->header, list, sizeof list);
    sgp_scaling_columns(scaling, theirs, sizeof theirs);
    if (reading->options->agreed)
        return sgp_fail(error, SGP_E_DATA,
            "%s:1: there is no column '%.80s', on which the nodes have agreed (%s); the columns "
            "are %s; correct the table, or, " AGREE_AGAIN,
            table, name, theirs, list, scaling->name);
    return sgp_fail(error, SGP_E_DATA,
        "%s:1: there is no column '%.80s', which the scaling file %s names (%s); the columns are "
        "%s; write a scaling file of this table, or correct [data] scale",
        table, name, scaling->name, theirs, list);
}

/* Report that the scaling has the label as a feature. */
static int fail_label(const struct reading *reading, const char *name, struct sgp_error *error)
{
    const char *scaling = reading->options->scaling->name;
    if (reading->options->agreed)
        return sgp_fail(error, SGP_E_DATA,
            "%s:1: column '%.80s' is the label, and the nodes have agreed on it as a feature; "
            "correct [data] label, or, " AGREE_AGAIN,
            reading->csv.source.name, name, scaling);
    return sgp_fail(error, SGP_E_DATA,
        "%s:1: column '%.80s' is the label and cannot be a feature; take it out of the scaling "
        "file %s (sgpctl scaling --label %.80s leaves it out)",
        reading->csv.source.name, name, scaling, name);
}

/* Bind the columns that the scaling names, in its order. */
static int bind_scaled(struct reading *reading, struct sgp_error *error)
{
    const struct sgp_csv_options *options = reading->options;
    const struct sgp_scaling *scaling = options->scaling;
    reading->bindings = calloc(scaling->column_count, sizeof *reading->bindings);
    if (!reading->bindings)
        return no_memory(reading, error);
    for (uint32_t i = 0; i < scaling->column_count; i++) {
        const struct sgp_scaling_column *column = &scaling->columns[i];
        struct sgp_error absent = {0};
        int64_t field = sgp_csv_header_find(&reading->header, &reading->csv, column->name, &absent);
        if (field < 0 && !options->for_model)
            return fail_absent(reading, column->name, error);
        if (field < 0)
            return sgp_fail(error, (int)field, "%s", absent.text);
        if (reading->is_label[field])
            return fail_label(reading, column->name, error);
        struct binding *binding = &reading->bindings[reading->binding_count++];
        *binding = (struct binding){
            .field = (uint32_t)field, .feature = reading->parts.features, .scaling = column};
        reading->parts.features += column->values ? column->value_count : 1;
        if (column->values) {
            binding->entries =
                entries_make((const char *const *)column->values, column->value_count);
            if (!binding->entries)
                return no_memory(reading, error);
        }
    }
    reading->parts.scaling_digest = sgp_scaling_digest(scaling);
    return 0;
}

static int numeric_compare(const void *left, const void *right)
{
    const double a = ((const struct numeric *)left)->number;
    const double b = ((const struct numeric *)right)->number;
    return (a > b) - (a < b);
}

/* Classes that are numbers can also be looked up as numbers: 0.0 is 0. */
static int bind_numerics(struct reading *reading, struct sgp_error *error)
{
    const struct sgp_csv_options *options = reading->options;
    struct numeric *numerics = malloc(options->class_count * sizeof *numerics);
    if (!numerics)
        return no_memory(reading, error);
    uint32_t count = 0;
    for (uint32_t i = 0; i < options->class_count; i++) {
        numerics[count].class = i;
        count += sgp_csv_number(options->class_names[i], &numerics[count].number);
    }
    qsort(numerics, count, sizeof *numerics, numeric_compare);
    reading->numerics = numerics;
    reading->numeric_count = count;
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t a = numerics[i - 1].class;
        const uint32_t b = numerics[i].class;
        if (numeric_compare(&numerics[i - 1], &numerics[i]) == 0)
            return sgp_fail(error, SGP_E_CONFIG,
                "classes: '%s' and '%s' are one number; name each class once",
                options->class_names[a < b ? a : b], options->class_names[a < b ? b : a]);
    }
    return 0;
}

static int bind_classes(struct reading *reading, struct sgp_error *error)
{
    const struct sgp_csv_options *options = reading->options;
    reading->parts.classes = options->class_count;
    reading->parts.classes_digest = sgp_classes_digest(options->class_names, options->class_count);
    if (options->class_count > SGP_CLASSES_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%s: %u classes; at most %u", reading->csv.source.name,
            options->class_count, SGP_CLASSES_MAX);
    if (options->class_count == 0)
        return 0;
    reading->classes = entries_make(options->class_names, options->class_count);
    if (!reading->classes)
        return no_memory(reading, error);
    for (uint32_t i = 1; i < options->class_count; i++) {
        if (strcmp(reading->classes[i - 1].word, reading->classes[i].word) == 0)
            return sgp_fail(error, SGP_E_CONFIG, "classes: '%s' is there twice; name each once",
                reading->classes[i].word);
    }
    return bind_numerics(reading, error);
}

/* Whether the file has the label columns. */
static bool has_labels(const struct reading *reading)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < reading->label_count; i++)
        for (uint32_t field = 0; field < reading->header.count; field++)
            found += strcmp(reading->header.names[field], reading->label_names[i]) == 0;
    return found == reading->label_count;
}

/* Find the positions of the columns that `label` names. */
static int bind_columns(struct reading *reading, struct sgp_error *error)
{
    reading->label_fields = calloc(reading->label_count, sizeof *reading->label_fields);
    if (!reading->label_fields)
        return no_memory(reading, error);
    for (uint32_t i = 0; i < reading->label_count; i++) {
        int64_t field =
            sgp_csv_header_find(&reading->header, &reading->csv, reading->label_names[i], error);
        if (field < 0)
            return (int)field;
        if (reading->is_label[field])
            return sgp_fail(error, SGP_E_CONFIG,
                "label: column '%.80s' is named twice; name it once", reading->label_names[i]);
        reading->is_label[field] = true;
        reading->label_fields[i] = (uint32_t)field;
    }
    return 0;
}

/* Split `label` into the names of the label columns. */
static int split_label(struct reading *reading, struct sgp_error *error)
{
    struct sgp_error why = {0};
    int status = sgp_names_split(reading->options->label, SGP_NAMES_COLUMNS, &why,
        &reading->label_names, &reading->label_count);
    if (status == 0 && reading->label_count == 0)
        status = sgp_fail(&why, SGP_E_CONFIG, "it names no column");
    if (status == 0 && reading->label_count > 1 && reading->options->class_count > 0)
        status = sgp_fail(&why, SGP_E_CONFIG,
            "%u columns, and classes are the values of one; leave classes out, or put a name with "
            "a comma in it in \"quotes\"",
            reading->label_count);
    return status < 0 ? sgp_fail(error, status, "label: %s", why.text) : 0;
}

/* Whether the scaling names the label columns as its targets. One may have another name on each
 * node. */
static bool has_targets(const struct reading *reading)
{
    const struct sgp_scaling *scaling = reading->options->scaling;
    bool same = reading->label_count == scaling->target_count;
    for (uint32_t i = 0; same && i < reading->label_count && reading->label_count > 1; i++)
        same = strcmp(reading->label_names[i], scaling->targets[i].name) == 0;
    return same;
}

/* Label columns of numbers are scaled if the scaling has targets. Bound after the features, whose
 * digest this one follows. */
static int bind_targets(struct reading *reading, struct sgp_error *error)
{
    const struct sgp_csv_options *options = reading->options;
    const struct sgp_scaling *scaling = options->scaling;
    char list[SGP_TEXT_BYTES / 4] = "";
    if (!scaling->targets || reading->classes || options->bits || reading->label_count == 0)
        return 0;
    for (uint32_t i = 0; i < scaling->target_count; i++)
        sgp_list_add(list, sizeof list, scaling->targets[i].name);
    if (!has_targets(reading) && options->agreed)
        return sgp_fail(error, SGP_E_DATA,
            "%s:1: label = %.80s, but the nodes have agreed on %s; correct [data] label, "
            "or, " AGREE_AGAIN,
            reading->csv.source.name, options->label, list, scaling->name);
    if (!has_targets(reading))
        return sgp_fail(error, SGP_E_DATA,
            "%s:1: label = %.80s, but the targets of the scaling file %s are %s; write a scaling "
            "file with this label (sgpctl scaling --label %.80s)",
            reading->csv.source.name, options->label, scaling->name, list, options->label);
    reading->target_scales = scaling->targets;
    reading->parts.scaled_targets = true;
    reading->parts.scaling_digest = sgp_target_scales_digest(
        scaling->targets, scaling->target_count, reading->parts.scaling_digest);
    return 0;
}

/* Bind the label columns and the classes. A single column of numbers may have another name on each
 * node. */
static int bind_labels(struct reading *reading, struct sgp_error *error)
{
    reading->is_label = calloc(reading->header.count, sizeof *reading->is_label);
    if (!reading->is_label)
        return no_memory(reading, error);
    int status = bind_classes(reading, error);
    if (status == 0 && reading->options->label)
        status = split_label(reading, error);
    if (status < 0 || !reading->options->label)
        return status;
    if (reading->options->for_model && !has_labels(reading)) {
        sgp_names_free(reading->label_names, reading->label_count);
        reading->label_names = NULL;
        reading->label_count = 0;
        return 0;
    }
    reading->parts.targets = reading->label_count;
    reading->target_scales = reading->options->target_scales;
    if (reading->label_count > 1 || reading->options->bits)
        reading->parts.classes_digest =
            sgp_classes_digest((const char *const *)reading->label_names, reading->label_count);
    return bind_columns(reading, error);
}

static int column_fail(const struct reading *reading, uint32_t field, struct sgp_error *error,
    const char *what, const char *right)
{
    return sgp_fail(error, SGP_E_DATA, "%s:%llu: column '%.80s': '%.80s' %s; %s",
        reading->csv.source.name, (unsigned long long)reading->csv.line,
        reading->header.names[field], sgp_csv_field(&reading->csv, field), what, right);
}

/* A missing field: SGP_E_DATA, or 1 to drop the row, or 0 to use the mean. */
static int missing_handle(const struct reading *reading, uint32_t field, struct sgp_error *error)
{
    if (reading->options->missing == SGP_MISSING_DROP)
        return 1;
    if (reading->options->for_model &&
        (reading->is_label[field] || reading->options->missing == SGP_MISSING_ERROR))
        return column_fail(reading, field, error, "is a missing value",
            reading->is_label[field] ? "give it, or leave the column out" : "give it");
    if (reading->is_label[field])
        return column_fail(
            reading, field, error, "is a missing label", "give it, or set missing = drop");
    if (reading->options->missing == SGP_MISSING_MEAN)
        return 0;
    return column_fail(
        reading, field, error, "is a missing value", "give it, or set missing = drop or mean");
}

/* Report a word that is not a value of the column. */
static int category_fail(
    const struct reading *reading, const struct binding *binding, struct sgp_error *error)
{
    const struct sgp_scaling_column *column = binding->scaling;
    char known[SGP_TEXT_BYTES / 4] = "";
    char list[SGP_TEXT_BYTES / 4 + 32];
    if (!reading->options->for_model)
        return column_fail(reading, binding->field, error,
            "is not among the values of the scaling file", "add it there on every node");
    for (uint32_t i = 0; i < column->value_count; i++)
        sgp_list_add(known, sizeof known, column->values[i]);
    (void)snprintf(list, sizeof list, "give one of them: %s", known);
    return column_fail(
        reading, binding->field, error, "is not among the values that the model knows", list);
}

/* Read one field into its features (zeroed before). Returns 0, 1 to drop the row, or a negative
 * code. */
static int feature_read(const struct reading *reading, const struct binding *binding,
    float *features, struct sgp_error *error)
{
    const char *field = sgp_csv_field(&reading->csv, binding->field);
    const struct sgp_scaling_column *scaling = binding->scaling;
    const struct entry *entry =
        binding->entries ? entry_find(binding->entries, scaling->value_count, field) : NULL;
    if (entry) { /* a value may be called NA */
        features[binding->feature + entry->number] = 1;
        return 0;
    }
    double number;
    const bool is_number = !binding->entries && sgp_csv_number(field, &number);
    /* A scaled mean is 0, and a missing category sets no feature: the zeros are already there. */
    if (!is_number && sgp_csv_missing(field))
        return missing_handle(reading, binding->field, error);
    if (binding->entries && reading->options->agreed) {
        reading->options->agreed->strange++;
        return 0;
    }
    if (binding->entries)
        return category_fail(reading, binding, error);
    if (!is_number)
        return column_fail(reading, binding->field, error, "is not a number",
            reading->options->for_model ? "the model takes a number"
                                        : "a column of words needs its values in a scaling file");
    if (scaling)
        number = (number - scaling->mean) / scaling->deviation;
    if (!isfinite((float)number))
        return column_fail(reading, binding->field, error, "is too large once scaled",
            reading->options->for_model ? "a 32-bit number would be right"
                                        : "look at the mean and deviation of the scaling file");
    features[binding->feature] = (float)number;
    return 0;
}

/* Find the class of a field by its name or by its number; false if there is none. */
static bool class_find(const struct reading *reading, const char *field, uint32_t *ret_class)
{
    const struct entry *entry = entry_find(reading->classes, reading->parts.classes, field);
    if (entry) {
        *ret_class = entry->number;
        return true;
    }
    struct numeric key;
    if (reading->numeric_count == 0 || !sgp_csv_number(field, &key.number))
        return false;
    const struct numeric *numeric =
        bsearch(&key, reading->numerics, reading->numeric_count, sizeof key, numeric_compare);
    if (!numeric)
        return false;
    *ret_class = numeric->class;
    return true;
}

/* Whether some node has told the class of a field: 0.0 is the class 0. */
static bool is_told(const struct sgp_csv_agreed *agreed, const char *field)
{
    double number, told;
    const bool is_number = sgp_csv_number(field, &number);
    for (uint32_t i = 0; i < agreed->class_count; i++)
        if (strcmp(agreed->classes[i], field) == 0 ||
            (is_number && sgp_csv_number(agreed->classes[i], &told) && told == number))
            return true;
    return false;
}

/* A label that is none of the classes: 1 to leave its row out, or an error. */
static int stray_label(const struct reading *reading, uint32_t index, struct sgp_error *error)
{
    struct sgp_csv_agreed *agreed = reading->options->agreed;
    if (agreed && agreed->class_count > 0 &&
        !is_told(agreed, sgp_csv_field(&reading->csv, index))) {
        if (agreed->left_out++ == 0)
            agreed->left_out_line = reading->csv.line;
        return 1;
    }
    return column_fail(reading, index, error, "is not among the classes",
        reading->options->for_model ? "give one that the model knows"
                                    : "list every class in classes = ...");
}

/* Read label column `i` of the record into row `rows`. Returns as feature_read. */
static int label_read(struct reading *reading, uint32_t i, struct sgp_error *error)
{
    const uint32_t index = reading->label_fields[i];
    const char *field = sgp_csv_field(&reading->csv, index);
    const size_t row = (size_t)reading->parts.rows;
    /* A class may be called NA. */
    if (reading->classes && class_find(reading, field, &reading->parts.labels[row]))
        return 0;
    if (sgp_csv_missing(field))
        return missing_handle(reading, index, error);
    if (reading->classes)
        return stray_label(reading, index, error);
    double number;
    if (!sgp_csv_number(field, &number))
        return column_fail(reading, index, error, "is not a number",
            reading->options->for_model ? "the model says numbers"
                                        : "labels that are words need classes = ...");
    if (reading->options->bits && number != 0 && number != 1)
        return column_fail(
            reading, index, error, "is neither 0 nor 1", "the loss takes label columns of 0 and 1");
    const float value = reading->target_scales
                            ? sgp_target_scale_apply(&reading->target_scales[i], number)
                            : (float)number;
    if (!isfinite(value) || !isfinite((float)number)) /* predictions and measures have its unit */
        return column_fail(reading, index, error,
            isfinite(value) ? "is too large" : "is too large once scaled",
            "look at the targets of the scaling file");
    reading->parts.values[row * reading->label_count + i] = value;
    return 0;
}

int sgp_csv_too_many(const char *name, uint64_t line, struct sgp_error *error)
{
    return sgp_fail(error, SGP_E_LIMIT,
        "%s:%llu: more than %u rows or %llu bytes of numbers; split the table, and give each node "
        "one part",
        name, (unsigned long long)line, SGP_ROWS_MAX, (unsigned long long)SGP_DATA_BYTES_MAX);
}

/* Reserve memory for one more row. */
static int row_reserve(struct reading *reading, struct sgp_error *error)
{
    struct sgp_dataset *parts = &reading->parts;
    const uint64_t float_limit = SGP_DATA_BYTES_MAX / sizeof(float);
    if (parts->rows >= SGP_ROWS_MAX || parts->rows >= float_limit / parts->features)
        return sgp_csv_too_many(reading->csv.source.name, reading->csv.line, error);
    const size_t rows = (size_t)parts->rows + 1;
    const size_t targets = rows * reading->label_count;
    float *floats = sgp_grow(parts->floats, &reading->float_capacity, sizeof *floats,
        rows * parts->features, float_limit);
    if (!floats)
        return no_memory(reading, error);
    parts->floats = floats;
    memset(floats + (rows - 1) * parts->features, 0, parts->features * sizeof *floats);
    if (targets == 0)
        return 0;
    if (targets > float_limit)
        return sgp_csv_too_many(reading->csv.source.name, reading->csv.line, error);
    void *labels = sgp_grow(parts->classes ? (void *)parts->labels : (void *)parts->values,
        &reading->label_capacity, sizeof(uint32_t), targets, float_limit);
    if (!labels)
        return no_memory(reading, error);
    if (parts->classes)
        parts->labels = labels;
    else
        parts->values = labels;
    return 0;
}

/* Blocks of wide rows have fewer of them. */
static void block_bound(struct reading *reading)
{
    const uint64_t most = BLOCK_BYTES_MAX / (reading->parts.features * sizeof(float));
    if (reading->block_rows > most)
        reading->block_rows = most > 0 ? most : 1;
}

/* Pass the present rows to `take`, then drop them. */
static int block_give(struct reading *reading, struct sgp_error *error)
{
    if (reading->parts.rows == 0)
        return 0;
    int status = reading->take(reading->context, &reading->parts, reading->last_line, error);
    reading->parts.rows = 0;
    return status;
}

/* Read the fields of the record into the row after the last one. Returns as feature_read. */
static int row_read(struct reading *reading, struct sgp_error *error)
{
    int status = row_reserve(reading, error);
    if (status < 0)
        return status;
    float *features = reading->parts.floats + reading->parts.rows * reading->parts.features;
    for (uint32_t i = 0; i < reading->label_count && status == 0; i++)
        status = label_read(reading, i, error);
    for (uint32_t i = 0; i < reading->binding_count && status == 0; i++)
        status = feature_read(reading, &reading->bindings[i], features, error);
    return status;
}

static int rows_take(struct reading *reading, struct sgp_error *error)
{
    int status;
    while ((status = sgp_csv_row(&reading->csv, &reading->header, error)) > 0 &&
           (status = row_read(reading, error)) >= 0) {
        if (status == 0) {
            reading->parts.rows++;
            reading->last_line = reading->csv.line;
        }
        status = reading->parts.rows == reading->block_rows ? block_give(reading, error) : 0;
        if (status < 0)
            return status;
    }
    return status;
}

/* Rows before a wrong one are given, too. If `take` refuses them, its error comes first. */
static int rows_read(struct reading *reading, struct sgp_error *error)
{
    struct sgp_error wrong = {0};
    const int status = rows_take(reading, &wrong);
    const int given = reading->block_rows > 0 ? block_give(reading, error) : 0;
    if (given < 0)
        return given;
    if (status < 0)
        return sgp_fail(error, status, "%s", wrong.text);
    if (reading->block_rows == 0 && reading->parts.rows == 0)
        return sgp_fail(error, SGP_E_DATA, "%s:%llu: no rows%s; at least one is needed",
            reading->csv.source.name, (unsigned long long)reading->csv.line,
            reading->options->missing == SGP_MISSING_DROP ? " without missing values" : "");
    return 0;
}

static int reading_run(struct reading *reading, struct sgp_error *error)
{
    int status = sgp_csv_header_read(&reading->csv, error, &reading->header);
    if (status == 0)
        status = bind_labels(reading, error);
    if (status == 0)
        status =
            reading->options->scaling ? bind_scaled(reading, error) : bind_plain(reading, error);
    if (status == 0 && reading->options->scaling)
        status = bind_targets(reading, error);
    if (status == 0)
        block_bound(reading);
    return status == 0 ? rows_read(reading, error) : status;
}

/* Free everything except the rows. */
static void reading_finish(struct reading *reading)
{
    for (uint32_t i = 0; i < reading->binding_count; i++)
        free(reading->bindings[i].entries);
    free(reading->bindings);
    free(reading->classes);
    sgp_names_free(reading->label_names, reading->label_count);
    free(reading->label_fields);
    free(reading->is_label);
    free(reading->numerics);
    sgp_csv_header_finish(&reading->header);
    sgp_csv_finish(&reading->csv);
}

static void rows_free(struct sgp_dataset *parts)
{
    free(parts->floats);
    free(parts->labels);
    free(parts->values);
    free(parts->names);
}

static int reading_begin(
    struct reading *reading, FILE *file, const char *name, struct sgp_error *error)
{
    const struct sgp_csv_options *options = reading->options;
    sgp_assert((options->class_count > 0) == (options->class_names != NULL));
    if (options->missing == SGP_MISSING_MEAN && !options->scaling)
        return sgp_fail(error, SGP_E_CONFIG,
            "%s: missing = mean takes the means from a scaling file; set scale = FILE", name);
    return sgp_csv_init(&reading->csv, file, name, error);
}

int sgp_csv_read_dataset(FILE *file, const char *name, const struct sgp_csv_options *options,
    struct sgp_error *error, struct sgp_dataset **ret_dataset)
{
    struct reading reading = {.options = options};
    int status = reading_begin(&reading, file, name, error);
    if (status == 0)
        status = reading_run(&reading, error);
    if (status == 0) {
        status = sgp_dataset_create_parts(&reading.parts, ret_dataset);
        if (status < 0)
            no_memory(&reading, error);
    }
    if (status < 0)
        rows_free(&reading.parts);
    reading_finish(&reading);
    return status;
}

int sgp_csv_read_blocks(FILE *file, const char *name, const struct sgp_csv_options *options,
    uint64_t block_rows, sgp_csv_take *take, void *context, struct sgp_error *error)
{
    sgp_assert(block_rows > 0);
    struct reading reading = {
        .options = options, .block_rows = block_rows, .take = take, .context = context};
    int status = reading_begin(&reading, file, name, error);
    if (status == 0)
        status = reading_run(&reading, error);
    rows_free(&reading.parts);
    reading_finish(&reading);
    return status;
}

int sgp_dataset_read_csv(const char *path, const struct sgp_csv_options *options,
    struct sgp_error *error, struct sgp_dataset **ret_dataset)
{
    FILE *file = NULL;
    int status = sgp_source_open(path, error, &file);
    if (status < 0)
        return status;
    status = sgp_csv_read_dataset(file, path, options, error, ret_dataset);
    fclose(file);
    return status;
}
