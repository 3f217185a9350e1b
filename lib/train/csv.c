/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 4180 records, see csv.h. A failure is one line `FILE:LINE: ...`. After a failure the caller
 * may only finish the reader. */
#include "csv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

int sgp_csv_init(struct sgp_csv *csv, FILE *file, const char *name, struct sgp_error *error)
{
    *csv = (struct sgp_csv){.line = 1, .line_end = 1};
    return sgp_source_init(&csv->source, file, name, error);
}

void sgp_csv_finish(struct sgp_csv *csv)
{
    sgp_source_finish(&csv->source);
    free(csv->text);
    free(csv->fields);
    *csv = (struct sgp_csv){.line = 0};
}

const char *sgp_csv_field(const struct sgp_csv *csv, size_t index)
{
    sgp_assert(index < csv->field_count);
    return csv->text + csv->fields[index];
}

static int out_of_memory(const struct sgp_csv *csv, struct sgp_error *error)
{
    return sgp_fail(error, -ENOMEM, "%s:%llu: out of memory", csv->source.name,
        (unsigned long long)csv->line_end);
}

/* Append one character to the text. `begin` is where its field starts. */
static int put(struct sgp_csv *csv, size_t begin, int character, struct sgp_error *error)
{
    if (csv->text_size - begin >= SGP_FIELD_BYTES_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%s:%llu: field %zu is longer than %u bytes",
            csv->source.name, (unsigned long long)csv->line, csv->field_count, SGP_FIELD_BYTES_MAX);
    if (csv->text_size >= SGP_CSV_RECORD_BYTES_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%s:%llu: a record is longer than %zu bytes",
            csv->source.name, (unsigned long long)csv->line, SGP_CSV_RECORD_BYTES_MAX);
    if (csv->text_size == csv->text_capacity) {
        char *text = sgp_grow(csv->text, &csv->text_capacity, 1,
            csv->text_size == 0 ? 256 : csv->text_size + 1, SGP_CSV_RECORD_BYTES_MAX);
        if (!text)
            return out_of_memory(csv, error);
        csv->text = text;
    }
    csv->text[csv->text_size++] = (char)character;
    return 0;
}

static int field_begin(struct sgp_csv *csv, struct sgp_error *error)
{
    if (csv->field_count >= SGP_COLUMNS_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%s:%llu: more than %u fields in a line",
            csv->source.name, (unsigned long long)csv->line, SGP_COLUMNS_MAX);
    size_t *fields = sgp_grow(
        csv->fields, &csv->field_capacity, sizeof *fields, csv->field_count + 1, SGP_COLUMNS_MAX);
    if (!fields)
        return out_of_memory(csv, error);
    csv->fields = fields;
    csv->fields[csv->field_count++] = csv->text_size;
    return 0;
}

/* Read the next character of the file. A carriage return counts only with the line feed after it,
 * and both together are '\n'. A zero byte is refused, because it would end a field early. */
static int next_character(struct sgp_csv *csv, struct sgp_error *error)
{
    int character = sgp_source_byte(&csv->source, error);
    if (character == 0)
        return sgp_fail(error, SGP_E_DATA,
            "%s:%llu: a zero byte in field %zu; CSV is text (is the file UTF-16?)",
            csv->source.name, (unsigned long long)csv->line_end, csv->field_count);
    if (character != '\r')
        return character;
    character = sgp_source_byte(&csv->source, error);
    if (character < 0 || character == '\n')
        return character;
    return sgp_fail(error, SGP_E_DATA,
        "%s:%llu: a carriage return without line feed in field %zu; lines end with LF or CRLF",
        csv->source.name, (unsigned long long)csv->line_end, csv->field_count);
}

static bool is_delimiter(int character)
{
    return character == ',' || character == '\n' || character == SGP_SOURCE_END;
}

/* Read the rest of a field after its opening quote. Returns the delimiter after it. */
static int quoted_read(struct sgp_csv *csv, size_t begin, struct sgp_error *error)
{
    const uint64_t opened = csv->line_end;
    for (;;) {
        int character = next_character(csv, error);
        if (character < 0)
            return character;
        if (character == SGP_SOURCE_END)
            return sgp_fail(error, SGP_E_DATA,
                "%s:%llu: the quote opened in field %zu is never closed; a quote inside a quoted "
                "field is written twice",
                csv->source.name, (unsigned long long)opened, csv->field_count);
        if (character == '"') {
            character = next_character(csv, error);
            if (character < 0 || is_delimiter(character))
                return character;
            if (character != '"')
                return sgp_fail(error, SGP_E_DATA,
                    "%s:%llu: text after the closing quote of field %zu; a comma or the end of the "
                    "line would be right",
                    csv->source.name, (unsigned long long)csv->line_end, csv->field_count);
        }
        if (character == '\n')
            csv->line_end++;
        int status = put(csv, begin, character, error);
        if (status < 0)
            return status;
    }
}

/* Read one field. Returns the delimiter after it, or a negative code. */
static int field_read(struct sgp_csv *csv, struct sgp_error *error)
{
    int status = field_begin(csv, error);
    if (status < 0)
        return status;
    const size_t begin = csv->text_size;
    int character = next_character(csv, error);
    if (character == '"') {
        character = quoted_read(csv, begin, error);
    } else {
        while (character >= 0 && !is_delimiter(character)) {
            if (character == '"')
                return sgp_fail(error, SGP_E_DATA,
                    "%s:%llu: a quote inside field %zu; quote the whole field and write the quote "
                    "twice",
                    csv->source.name, (unsigned long long)csv->line_end, csv->field_count);
            status = put(csv, begin, character, error);
            if (status < 0)
                return status;
            character = next_character(csv, error);
        }
    }
    if (character < 0)
        return character;
    status = put(csv, csv->text_size, '\0', error);
    return status < 0 ? status : character;
}

/* Skip a byte order mark at the very beginning. */
static int skip_mark(struct sgp_csv *csv, struct sgp_error *error)
{
    struct sgp_source *source = &csv->source;
    if (source->offset > 0)
        return 0;
    int character = sgp_source_byte(source, error);
    if (character < 0 || character == SGP_SOURCE_END)
        return character < 0 ? character : 0;
    source->first--;
    source->offset--;
    if (source->end - source->first >= 3 &&
        memcmp(source->data + source->first, "\xef\xbb\xbf", 3) == 0) {
        source->first += 3;
        source->offset += 3;
    }
    return 0;
}

int sgp_csv_next(struct sgp_csv *csv, struct sgp_error *error)
{
    int delimiter = skip_mark(csv, error);
    if (delimiter < 0)
        return delimiter;
    do {
        csv->line = csv->line_end;
        csv->text_size = 0;
        csv->field_count = 0;
        do {
            delimiter = field_read(csv, error);
            if (delimiter < 0)
                return delimiter;
        } while (delimiter == ',');
        if (delimiter == '\n')
            csv->line_end++;
        if (csv->field_count > 1 || csv->text[0] != '\0')
            return 1;
    } while (delimiter != SGP_SOURCE_END);
    return 0;
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

bool sgp_csv_number(const char *field, double *ret_number)
{
    /* strtod would also accept 0x1p3, inf and nan. Nothing in this project calls setlocale, so the
     * decimal point is a point. */
    const char *begin = skip_blanks(field);
    const size_t length = strspn(begin, "+-.0123456789eE");
    if (length == 0 || *skip_blanks(begin + length) != '\0')
        return false;
    char *end;
    double number = strtod(begin, &end);
    if (end != begin + length || !isfinite(number) || fabs(number) > 3e38)
        return false;
    *ret_number = number;
    return true;
}

bool sgp_csv_missing(const char *field)
{
    static const char *const words[] = {"", "?", "NA", "NaN", "nan"};
    const char *begin = skip_blanks(field);
    size_t length = strlen(begin);
    while (length > 0 && (begin[length - 1] == ' ' || begin[length - 1] == '\t'))
        length--;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i]) == length && strncmp(begin, words[i], length) == 0)
            return true;
    }
    return false;
}
