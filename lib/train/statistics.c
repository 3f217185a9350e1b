/* SPDX-License-Identifier: Apache-2.0 */
/* Owns statistics; see sgp/statistics.h. */
#include "statistics.h"

#include "counted.h"

#include <stdlib.h>
#include <string.h>

const char *sgp_statistics_kind_name(enum sgp_statistics_kind kind)
{
    static const char *const names[] = {"numbers", "values", "classes", "words"};
    return names[kind - SGP_STATISTICS_NUMBERS];
}

uint32_t sgp_statistics_values_max(enum sgp_statistics_kind kind)
{
    return kind == SGP_STATISTICS_CLASSES ? SGP_CLASSES_MAX : SGP_CATEGORIES_MAX;
}

static int bytes_compare(const void *left, const void *right)
{
    return strcmp(((const struct sgp_column_value *)left)->text,
        ((const struct sgp_column_value *)right)->text);
}

sgp_statistics_compare *sgp_statistics_order(enum sgp_statistics_kind kind)
{
    return kind == SGP_STATISTICS_CLASSES ? sgp_column_value_compare : bytes_compare;
}

static void columns_free(struct sgp_statistics_column *columns, uint32_t count)
{
    for (uint32_t i = 0; columns && i < count; i++) {
        sgp_column_values_free(columns[i].values, columns[i].value_count);
        free(columns[i].name);
    }
    free(columns);
}

void sgp_statistics_destroy(struct sgp_statistics *statistics)
{
    if (!statistics)
        return;
    columns_free(statistics->columns, statistics->column_count);
    columns_free(statistics->labels, statistics->label_count);
    free(statistics);
}

void sgp_statistics_explain(const struct sgp_statistics_column *column, bool label,
    const char *path, struct sgp_error *ret_line)
{
    (void)sgp_fail(ret_line, SGP_E_DATA,
        "%s:%llu: column '%.80s': '%s' is not a number; %s on every node, or correct the value",
        path, (unsigned long long)column->stray_line, column->name, column->stray_text,
        label ? "name the classes of the label" : "name the column in categories or in ignore");
}
