/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the statistics of three nodes, and as a table. An input is one byte of options, and
 * the texts of the nodes with a zero byte after each. A scaling that follows from them must read back.
 * The last text is read as a CSV file, too, and what it tells must be read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/scaling.h"
#include "train/statistics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Combine the texts. Returns the status. */
static int combine(const char *const *texts, uint32_t count)
{
    static const char *const names[] = {"a", "b", "c"};
    struct sgp_error error = {.code = 0};
    struct sgp_scaling *scaling = NULL, *again = NULL;
    char *text = NULL;
    const int status = sgp_statistics_combine(texts, names, count, &error, &scaling, &text);
    sgp_assert(
        status <= 0 && (status == 0) == (scaling != NULL) && (status == 0) == (text != NULL));
    sgp_assert(error.code == status && (status == 0) == (error.text[0] == '\0'));
    if (status == 0) {
        struct sgp_error why = {.code = 0};
        sgp_assert(sgp_scaling_parse(text, strlen(text), "again", &why, &again) == 0);
        sgp_assert(sgp_scaling_digest(again) == sgp_scaling_digest(scaling));
        for (const char *c = text; *c; c++)
            sgp_assert(*c >= ' ' && *c < 0x7f);
    }
    sgp_scaling_destroy(scaling);
    sgp_scaling_destroy(again);
    free(text);
    return status;
}

/* Tell the statistics of a table; they must be read again. */
static void tell(const char *table, uint8_t choice)
{
    const struct sgp_statistics_options options = {.label = choice & 1 ? "y" : NULL,
        .classes = (choice & 2) != 0,
        .categories = choice & 4 ? "c, d" : NULL,
        .ignore = choice & 8 ? "i" : NULL,
        .min_count = choice & 16 ? 1 : 3};
    FILE *file = fmemopen((void *)(uintptr_t)table, strlen(table), "rb");
    struct sgp_error error = {.code = 0};
    struct sgp_statistics *statistics = NULL, *again = NULL;
    char *text = NULL;
    sgp_assert(file != NULL);
    int status = sgp_statistics_read_file(file, "csv", &options, &error, &statistics);
    sgp_assert(status <= 0 && (status == 0) == (statistics != NULL) && error.code == status);
    if (status == 0)
        status = sgp_statistics_text(statistics, "csv", &error, &text);
    if (status == 0)
        sgp_assert(sgp_statistics_parse(text, "a", &error, &again) == 0);
    sgp_statistics_destroy(statistics);
    sgp_statistics_destroy(again);
    free(text);
    (void)fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *texts[3];
    uint32_t count = 0;
    char *copy = malloc(size + 1);
    if (size < 1 || !copy) {
        free(copy);
        return 0;
    }
    memcpy(copy, data, size);
    copy[size] = '\0';
    for (size_t at = 1; at <= size && count < 3; at += strlen(copy + at) + 1)
        texts[count++] = copy + at;
    if (count > 0) {
        (void)combine(texts, count);
        if (texts[count - 1][0] != '\0')
            tell(texts[count - 1], data[0]);
    }
    free(copy);
    return 0;
}
