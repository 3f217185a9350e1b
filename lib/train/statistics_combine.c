/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the statistics of all nodes, and makes the scaling of them. Texts are read one after the
 * other, and added to those of the first node. So memory is that of one text and of the total. */
#include "statistics.h"

#include "counted.h"
#include "measures/wide.h"
#include "scaling.h"
#include "target_scale.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WHERE "the statistics of all nodes"
#define VALUE_BYTES_MAX (16 * (size_t)SGP_STATISTICS_MAX) /* more than values in a text take */
#define ABSENT UINT32_MAX

/* The name of a column of the first node, and its place. */
struct named {
    const char *name;
    uint32_t place;
};

/* The sum over the nodes so far. */
struct total {
    const char *const *names; /* of the nodes */
    uint32_t node;            /* the one whose statistics are added */
    struct sgp_error *error;
    uint64_t *rows;               /* of each node */
    struct sgp_statistics *first; /* of the first node; counts and sums are those of the total */
    struct named *sorted;         /* its columns by name */
    uint32_t *places;             /* of the node's columns, in the order of the first node's */
    struct sgp_counted *counted;  /* the values of each column, then of each label */
    size_t bytes;                 /* of all values */
};

static int no_memory(const struct total *total)
{
    return sgp_fail(total->error, -ENOMEM, WHERE ": out of memory");
}

/* ---- whether columns fit together ---- */

static int named_compare(const void *left, const void *right)
{
    return strcmp(((const struct named *)left)->name, ((const struct named *)right)->name);
}

static uint32_t place_of(const struct total *total, const char *name)
{
    const struct named key = {.name = name};
    const struct named *named =
        bsearch(&key, total->sorted, total->first->column_count, sizeof key, named_compare);
    return named ? named->place : ABSENT;
}

static int absent(const struct total *total, const char *column, const char *has, const char *lacks)
{
    return sgp_fail(total->error, SGP_E_DATA,
        "column '%.80s' of %s is not told by %s; add it there, empty, or name it in ignore on "
        "every node or on none",
        column, has, lacks);
}

/* Find the place of each column of the first node among those of another. */
static int match_columns(struct total *total, const struct sgp_statistics *told)
{
    const struct sgp_statistics *first = total->first;
    const char *extra = NULL;
    memset(total->places, 0xff, first->column_count * sizeof *total->places);
    for (uint32_t i = 0; i < told->column_count; i++) {
        const uint32_t place = place_of(total, told->columns[i].name);
        if (place != ABSENT)
            total->places[place] = i;
        else if (!extra)
            extra = told->columns[i].name;
    }
    for (uint32_t i = 0; i < first->column_count; i++)
        if (total->places[i] == ABSENT)
            return absent(
                total, first->columns[i].name, total->names[0], total->names[total->node]);
    return extra ? absent(total, extra, total->names[total->node], total->names[0]) : 0;
}

static int match_labels(const struct total *total, const struct sgp_statistics *told)
{
    const struct sgp_statistics *first = total->first;
    if (told->label_count != first->label_count)
        return sgp_fail(total->error, SGP_E_DATA,
            "%s has %u label columns, and %s has %u; name the same in label on every node",
            total->names[0], first->label_count, total->names[total->node], told->label_count);
    /* One label column may have another name on each node, as the reader of rows allows. */
    for (uint32_t i = 0; i < told->label_count && told->label_count > 1; i++)
        if (strcmp(told->labels[i].name, first->labels[i].name) != 0)
            return sgp_fail(total->error, SGP_E_DATA,
                "label column %u is '%.80s' at %s and '%.80s' at %s; name the same in label on "
                "every node",
                i + 1, first->labels[i].name, total->names[0], told->labels[i].name,
                total->names[total->node]);
    return 0;
}

/* Refuse a column whose kind is not that of the first node, or that no node can use. */
static int check_kind(const struct total *total, const struct sgp_statistics_column *column,
    const struct sgp_statistics_column *other, bool label)
{
    const char *remedy = label ? "give classes" : "name it in categories";
    if (other->kind == SGP_STATISTICS_WORDS)
        return sgp_fail(total->error, SGP_E_DATA, "%s '%.80s' holds words at %s; %s on every node",
            label ? "label" : "column", other->name, total->names[total->node], remedy);
    if (column->kind == other->kind)
        return 0;
    return sgp_fail(total->error, SGP_E_DATA,
        "%s '%.80s' is told as %s by %s and as %s by %s; %s on every node or on none",
        label ? "label" : "column", column->name, sgp_statistics_kind_name(column->kind),
        total->names[0], sgp_statistics_kind_name(other->kind), total->names[total->node], remedy);
}

/* ---- sums ---- */

static int add_values(
    struct total *total, const struct sgp_statistics_column *other, struct sgp_counted *counted)
{
    const uint32_t most = sgp_statistics_values_max(other->kind);
    for (uint32_t i = 0; i < other->value_count; i++) {
        const size_t before = counted->bytes;
        const int added = sgp_counted_add(counted, other->values[i].text, other->values[i].rows,
            most, VALUE_BYTES_MAX - (total->bytes - before));
        if (added < 0)
            return no_memory(total);
        if (added == SGP_COUNTED_FULL)
            return sgp_fail(total->error, SGP_E_LIMIT,
                "column '%.80s' has more than %u different values, or too long ones, with those of "
                "%s; name it in ignore on every node",
                other->name, most, total->names[total->node]);
        total->bytes += counted->bytes - before;
    }
    return 0;
}

static int add_column(struct total *total, struct sgp_statistics_column *column,
    const struct sgp_statistics_column *other, bool label, struct sgp_counted *counted)
{
    int code = check_kind(total, column, other, label);
    if (code < 0)
        return code;
    if (column != other) {
        column->count += other->count;
        sgp_wide_add_limbs(column->sum, other->sum, SGP_WIDE_SUM_LIMBS);
        sgp_wide_add_limbs(column->squares, other->squares, SGP_WIDE_SQUARES_LIMBS);
    }
    return add_values(total, other, counted);
}

/* Add the statistics of a node; of the first node its values alone. */
static int add(struct total *total, const struct sgp_statistics *told)
{
    struct sgp_statistics *first = total->first;
    total->rows[total->node] = told->rows;
    int code = match_labels(total, told);
    if (code == 0)
        code = match_columns(total, told);
    for (uint32_t i = 0; i < first->column_count && code == 0; i++)
        code = add_column(
            total, &first->columns[i], &told->columns[total->places[i]], false, &total->counted[i]);
    for (uint32_t i = 0; i < first->label_count && code == 0; i++)
        code = add_column(total, &first->labels[i], &told->labels[i], true,
            &total->counted[first->column_count + i]);
    return code;
}

/* Begin with the statistics of the first node, which are taken over. */
static int begin(struct total *total, struct sgp_statistics *first)
{
    total->first = first;
    total->sorted = calloc(first->column_count, sizeof *total->sorted);
    total->places = calloc(first->column_count, sizeof *total->places);
    total->counted = calloc(first->column_count + first->label_count, sizeof *total->counted);
    if (!total->sorted || !total->places || !total->counted)
        return no_memory(total);
    for (uint32_t i = 0; i < first->column_count; i++)
        total->sorted[i] = (struct named){.name = first->columns[i].name, .place = i};
    qsort(total->sorted, first->column_count, sizeof *total->sorted, named_compare);
    return 0;
}

static int add_all(struct total *total, const char *const *texts, uint32_t count)
{
    int code = 0;
    for (uint32_t i = 0; i < count && code == 0; i++) {
        struct sgp_statistics *told = NULL;
        total->node = i;
        code = sgp_statistics_parse(texts[i], total->names[i], total->error, &told);
        if (code == 0 && !total->first)
            code = begin(total, told);
        if (code == 0)
            code = add(total, told);
        if (told != total->first)
            sgp_statistics_destroy(told);
    }
    return code;
}

/* ---- the scaling ---- */

/* Move the values of a column or label to it, in their order. */
static int settle(const struct total *total, struct sgp_statistics_column *column, bool label,
    struct sgp_counted *counted)
{
    sgp_column_values_free(column->values, column->value_count);
    column->value_count = counted->count;
    column->values = sgp_counted_take(counted);
    if (column->value_count > 0)
        qsort(column->values, column->value_count, sizeof *column->values,
            sgp_statistics_order(column->kind));
    if (column->count > 0 || column->value_count > 0)
        return 0;
    return sgp_fail(total->error, SGP_E_DATA,
        "%s '%.80s' has %s at any of %u nodes, from %s to %s; %s", label ? "label" : "column",
        column->name,
        column->kind == SGP_STATISTICS_NUMBERS ? "too few numbers to be told"
                                               : "no value that enough rows have",
        total->node + 1, total->names[0], total->names[total->node],
        label ? "lower min_count, or give the nodes more rows" : "name it in ignore on every node");
}

static double deviation_of(const struct sgp_statistics_column *column)
{
    const double deviation = sgp_wide_deviation(column->count, column->sum, column->squares);
    return deviation > 0 ? deviation : 1;
}

static int column_make(
    struct sgp_statistics_column *column, struct sgp_scaling_column *scaling_column)
{
    scaling_column->name = strdup(column->name);
    if (!scaling_column->name)
        return -ENOMEM;
    if (column->kind == SGP_STATISTICS_NUMBERS) {
        scaling_column->mean = sgp_wide_mean(column->count, column->sum);
        scaling_column->deviation = deviation_of(column);
        return 0;
    }
    scaling_column->values = calloc(column->value_count, sizeof *scaling_column->values);
    if (!scaling_column->values)
        return -ENOMEM;
    for (uint32_t i = 0; i < column->value_count; i++) {
        scaling_column->values[i] = column->values[i].text;
        column->values[i].text = NULL;
    }
    scaling_column->value_count = column->value_count;
    return 0;
}

/* The label columns of numbers as the targets of the scaling. */
static int targets_make(const struct total *total, struct sgp_scaling *scaling)
{
    const struct sgp_statistics *first = total->first;
    const uint32_t count = first->label_count;
    if (count == 0 || first->labels[0].kind != SGP_STATISTICS_NUMBERS)
        return 0;
    struct sgp_target_scale *targets = calloc(count, sizeof *targets);
    bool whole = targets != NULL;
    for (uint32_t i = 0; whole && i < count; i++) {
        const struct sgp_statistics_column *label = &first->labels[i];
        targets[i] = (struct sgp_target_scale){.name = strdup(label->name),
            .mean = sgp_wide_mean(label->count, label->sum),
            .deviation = deviation_of(label)};
        whole = targets[i].name != NULL;
    }
    if (!whole) {
        sgp_target_scales_free(targets, count);
        return no_memory(total);
    }
    sgp_scaling_take_targets(scaling, targets, count);
    return 0;
}

static int columns_make(const struct total *total, struct sgp_scaling **ret_scaling)
{
    struct sgp_statistics *first = total->first;
    struct sgp_scaling_column *columns = calloc(first->column_count, sizeof *columns);
    int code = columns ? 0 : no_memory(total);
    for (uint32_t i = 0; i < first->column_count && code == 0; i++) {
        code = settle(total, &first->columns[i], false, &total->counted[i]);
        if (code == 0 && column_make(&first->columns[i], &columns[i]) < 0)
            code = no_memory(total);
    }
    if (code == 0)
        return sgp_scaling_create(columns, first->column_count, WHERE, total->error, ret_scaling);
    if (columns)
        sgp_scaling_columns_free(columns, first->column_count);
    return code;
}

/* On failure, too, the caller destroys *ret_scaling. */
static int scaling_make(const struct total *total, struct sgp_scaling **ret_scaling)
{
    struct sgp_statistics *first = total->first;
    int code = columns_make(total, ret_scaling);
    for (uint32_t i = 0; i < first->label_count && code == 0; i++)
        code = settle(total, &first->labels[i], true, &total->counted[first->column_count + i]);
    return code == 0 ? targets_make(total, *ret_scaling) : code;
}

/* ---- its text ---- */

/* Give an object a member; *failed without memory. */
static void set(json_t *object, const char *key, json_t *value, bool *failed)
{
    *failed = json_object_set_new(object, key, value) < 0 || *failed;
}

/* The classes of the label, and the rows of each. */
static json_t *classes_json(const struct sgp_statistics_column *label, bool *failed)
{
    json_t *classes = json_object();
    for (uint32_t i = 0; i < label->value_count; i++)
        set(classes, label->values[i].text, json_integer((json_int_t)label->values[i].rows),
            failed);
    return classes;
}

/* Add what only a scaling of all nodes says; false without memory. */
static bool add_keys(const struct total *total, json_t *root)
{
    const struct sgp_statistics *first = total->first;
    json_t *members = json_object();
    uint64_t rows = 0;
    bool failed = false;
    for (uint32_t i = 0; i <= total->node; i++) {
        rows += total->rows[i];
        set(members, total->names[i], json_integer((json_int_t)total->rows[i]), &failed);
    }
    set(root, "rows", json_integer((json_int_t)rows), &failed);
    if (first->label_count > 0 && first->labels[0].kind == SGP_STATISTICS_CLASSES)
        set(root, "classes", classes_json(&first->labels[0], &failed), &failed);
    set(root, "members", members, &failed);
    return !failed;
}

static int text_make(const struct total *total, const struct sgp_scaling *scaling, char **ret_text)
{
    struct sgp_error why = {0};
    json_t *root = sgp_scaling_json(scaling, WHERE, &why);
    if (!root)
        return sgp_fail(total->error, why.code, "%s", why.text);
    char *text = add_keys(total, root) ? sgp_statistics_dump(root) : NULL;
    json_decref(root);
    if (!text)
        return no_memory(total);
    if (strlen(text) > SGP_STATISTICS_MAX) {
        free(text);
        return sgp_fail(total->error, SGP_E_LIMIT,
            "the scaling of %u nodes, from %s to %s, is longer than %u bytes; name columns in "
            "ignore on every node",
            total->node + 1, total->names[0], total->names[total->node], SGP_STATISTICS_MAX);
    }
    *ret_text = text;
    return 0;
}

int sgp_statistics_combine(const char *const *texts, const char *const *names, uint32_t count,
    struct sgp_error *error, struct sgp_scaling **ret_scaling, char **ret_text)
{
    sgp_assert(count > 0 && count <= SGP_STATISTICS_NODES_MAX);
    struct total total = {.names = names, .error = error, .rows = calloc(count, sizeof(uint64_t))};
    struct sgp_scaling *scaling = NULL;
    int code = total.rows ? add_all(&total, texts, count) : no_memory(&total);
    if (code == 0)
        code = scaling_make(&total, &scaling);
    if (code == 0)
        code = text_make(&total, scaling, ret_text);
    for (uint32_t i = 0; total.counted && i < total.first->column_count + total.first->label_count;
         i++)
        sgp_counted_finish(&total.counted[i]);
    sgp_statistics_destroy(total.first);
    free(total.counted);
    free(total.places);
    free(total.sorted);
    free(total.rows);
    if (code < 0)
        sgp_scaling_destroy(scaling);
    else
        *ret_scaling = scaling;
    return code;
}
