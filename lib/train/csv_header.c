/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of a CSV file, which names the columns; see csv.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "scaling.h"

void sgp_csv_header_finish(struct sgp_csv_header *header)
{
    for (uint32_t i = 0; i < header->count; i++)
        free(header->names[i]);
    free(header->names);
    *header = (struct sgp_csv_header){.count = 0};
}

/* Refuse two columns of the same name, because the name would be ambiguous. */
static int names_check(
    const struct sgp_csv_header *header, const struct sgp_csv *csv, struct sgp_error *error)
{
    char **sorted = malloc(header->count * sizeof *sorted);
    if (!sorted)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", csv->source.name);
    memcpy(sorted, header->names, header->count * sizeof *sorted);
    qsort(sorted, header->count, sizeof *sorted, sgp_values_compare);
    int status = 0;
    for (uint32_t i = 1; i < header->count && status == 0; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = sgp_fail(error, SGP_E_DATA,
                "%s:%llu: two columns are named '%s'; the first line gives every column its own "
                "name",
                csv->source.name, (unsigned long long)csv->line, sorted[i]);
    }
    free(sorted);
    return status;
}

/* Refuse a file with one column whose name contains other programs' field separators. */
static int separators_check(const struct sgp_csv *csv, struct sgp_error *error)
{
    const char *name = sgp_csv_field(csv, 0);
    const char *other = strchr(name, ';') ? "semicolons" : strchr(name, '\t') ? "tabs" : NULL;
    if (csv->field_count > 1 || !other)
        return 0;
    return sgp_fail(error, SGP_E_DATA,
        "%s:%llu: one column, called '%.80s'; write the file with commas between the fields "
        "instead of %s",
        csv->source.name, (unsigned long long)csv->line, name, other);
}

int sgp_csv_header_read(
    struct sgp_csv *csv, struct sgp_error *error, struct sgp_csv_header *ret_header)
{
    int status = sgp_csv_next(csv, error);
    if (status < 0)
        return status;
    if (status == 0)
        return sgp_fail(error, SGP_E_DATA,
            "%s:1: the file is empty; the first line names the columns", csv->source.name);
    status = separators_check(csv, error);
    if (status < 0)
        return status;
    struct sgp_csv_header header = {.names = calloc(csv->field_count, sizeof *header.names)};
    if (!header.names)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", csv->source.name);
    for (size_t i = 0; i < csv->field_count && status == 0; i++) {
        header.names[i] = strdup(sgp_csv_field(csv, i));
        header.count++;
        if (!header.names[i])
            status = sgp_fail(error, -ENOMEM, "%s: out of memory", csv->source.name);
    }
    if (status == 0)
        status = names_check(&header, csv, error);
    if (status < 0) {
        sgp_csv_header_finish(&header);
        return status;
    }
    *ret_header = header;
    return 0;
}

void sgp_csv_header_list(const struct sgp_csv_header *header, char *list, size_t bytes)
{
    list[0] = '\0';
    for (uint32_t i = 0; i < header->count; i++)
        sgp_list_add(list, bytes, header->names[i]);
}

int64_t sgp_csv_header_find(const struct sgp_csv_header *header, const struct sgp_csv *csv,
    const char *name, struct sgp_error *error)
{
    char list[SGP_TEXT_BYTES / 4];
    for (uint32_t i = 0; i < header->count; i++)
        if (strcmp(header->names[i], name) == 0)
            return i;
    sgp_csv_header_list(header, list, sizeof list);
    return sgp_fail(error, SGP_E_DATA, "%s:1: there is no column '%.80s'; the columns are %s",
        csv->source.name, name, list);
}

int sgp_csv_row(struct sgp_csv *csv, const struct sgp_csv_header *header, struct sgp_error *error)
{
    int status = sgp_csv_next(csv, error);
    if (status == 1 && csv->field_count != header->count)
        return sgp_fail(error, SGP_E_DATA,
            "%s:%llu: %zu fields, but the first line names %u columns", csv->source.name,
            (unsigned long long)csv->line, csv->field_count, header->count);
    return status;
}
