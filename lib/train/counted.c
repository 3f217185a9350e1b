/* SPDX-License-Identifier: Apache-2.0 */
/* Counts different texts; see counted.h. */
#include "counted.h"

#include "csv.h"
#include "table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define SLOT_BYTES 16u  /* of the table for each value, at most */
#define WHOLE_MOST 1e15 /* doubles below this show whole numbers with all digits */

/* The slot of a text: that of its value, or the free one where it belongs. */
static uint32_t *slot_of(const struct sgp_counted *counted, const char *text)
{
    const uint32_t mask = counted->slot_count - 1;
    uint32_t at = (uint32_t)XXH3_64bits(text, strlen(text)) & mask;
    while (
        counted->slots[at] != 0 && strcmp(counted->values[counted->slots[at] - 1].text, text) != 0)
        at = (at + 1) & mask;
    return &counted->slots[at];
}

/* Keep at least half of the slots free. */
static int slots_reserve(struct sgp_counted *counted)
{
    if (2 * (counted->count + 1) <= counted->slot_count)
        return 0;
    const uint32_t count = counted->slot_count == 0 ? 16 : 2 * counted->slot_count;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    free(counted->slots);
    counted->slots = slots;
    counted->slot_count = count;
    for (uint32_t i = 0; i < counted->count; i++)
        *slot_of(counted, counted->values[i].text) = i + 1;
    return 0;
}

int sgp_counted_add(struct sgp_counted *counted, const char *text, uint64_t rows,
    uint32_t count_most, size_t bytes_most)
{
    const size_t bytes = strlen(text) + 1 + sizeof *counted->values + SLOT_BYTES;
    if (slots_reserve(counted) < 0)
        return -ENOMEM;
    uint32_t *slot = slot_of(counted, text);
    if (*slot != 0) {
        counted->values[*slot - 1].rows += rows;
        return SGP_COUNTED_AGAIN;
    }
    if (counted->count >= count_most || bytes > bytes_most || counted->bytes > bytes_most - bytes)
        return SGP_COUNTED_FULL;
    struct sgp_column_value *values = sgp_grow(
        counted->values, &counted->capacity, sizeof *values, counted->count + 1, count_most);
    if (!values)
        return -ENOMEM;
    counted->values = values;
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    values[counted->count] = (struct sgp_column_value){.text = copy, .rows = rows};
    *slot = ++counted->count;
    counted->bytes += bytes;
    return SGP_COUNTED_NEW;
}

void sgp_column_values_free(struct sgp_column_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(values[i].text);
    free(values);
}

struct sgp_column_value *sgp_counted_take(struct sgp_counted *counted)
{
    struct sgp_column_value *values = counted->values;
    free(counted->slots);
    *counted = (struct sgp_counted){.count = 0};
    return values;
}

void sgp_counted_finish(struct sgp_counted *counted)
{
    const uint32_t count = counted->count;
    sgp_column_values_free(sgp_counted_take(counted), count);
}

void sgp_number_text(double number, char text[SGP_NUMBER_BYTES])
{
    if (number == 0)
        number = 0; /* -0 is 0 */
    if (number == floor(number) && fabs(number) < WHOLE_MOST) {
        (void)snprintf(text, SGP_NUMBER_BYTES, "%.0f", number);
        return;
    }
    (void)snprintf(text, SGP_NUMBER_BYTES, "%.15g", number);
    if (strtod(text, NULL) != number)
        (void)snprintf(text, SGP_NUMBER_BYTES, "%.17g", number);
}

int sgp_column_value_compare(const void *left, const void *right)
{
    const char *first = ((const struct sgp_column_value *)left)->text;
    const char *second = ((const struct sgp_column_value *)right)->text;
    double a = 0, b = 0;
    const bool is_a = sgp_csv_number(first, &a), is_b = sgp_csv_number(second, &b);
    if (is_a && is_b && a != b)
        return a < b ? -1 : 1;
    return is_a != is_b ? is_b - is_a : strcmp(first, second);
}
