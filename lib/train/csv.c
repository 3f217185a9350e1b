/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 4180 records, see csv.h. A failure is one line `FILE:LINE: ...`. After a failure the caller
 * may only finish the reader. */
#include "csv.h"

#include <endian.h>
#include <errno.h>
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

/* Append characters to the text. `begin` is where their field starts. */
static int put(struct sgp_csv *csv, size_t begin, const unsigned char *characters, size_t count,
    struct sgp_error *error)
{
    if (count > SGP_FIELD_BYTES_MAX - (csv->text_size - begin))
        return sgp_fail(error, SGP_E_LIMIT, "%s:%llu: field %zu is longer than %u bytes",
            csv->source.name, (unsigned long long)csv->line, csv->field_count, SGP_FIELD_BYTES_MAX);
    if (count > SGP_CSV_RECORD_BYTES_MAX - csv->text_size)
        return sgp_fail(error, SGP_E_LIMIT, "%s:%llu: a record is longer than %zu bytes",
            csv->source.name, (unsigned long long)csv->line, SGP_CSV_RECORD_BYTES_MAX);
    if (count > csv->text_capacity - csv->text_size) {
        const size_t wanted = csv->text_size + count;
        char *text = sgp_grow(csv->text, &csv->text_capacity, 1, wanted < 256 ? 256 : wanted,
            SGP_CSV_RECORD_BYTES_MAX);
        if (!text)
            return out_of_memory(csv, error);
        csv->text = text;
    }
    memcpy(csv->text + csv->text_size, characters, count);
    csv->text_size += count;
    return 0;
}

static int put_character(struct sgp_csv *csv, size_t begin, int character, struct sgp_error *error)
{
    const unsigned char byte = (unsigned char)character;
    return put(csv, begin, &byte, 1, error);
}

#define EACH_BYTE (UINT64_MAX / 255) /* times a byte: eight of it */
#define HIGH_BITS (0x80 * EACH_BYTE)

/* Look at eight characters at once. The lowest high bit of the result belongs to the first of them
 * that is a comma, a quote or below 14. Higher bits may be wrong (S. E. Anderson, Bit Twiddling
 * Hacks, "hasless"). Zero: there is none. */
static uint64_t find_candidates(const unsigned char *characters)
{
    uint64_t word;
    memcpy(&word, characters, sizeof word);
    word = le64toh(word);
    const uint64_t comma = word ^ ',' * EACH_BYTE;
    const uint64_t quote = word ^ '"' * EACH_BYTE;
    return (((word - 14 * EACH_BYTE) & ~word) | ((comma - EACH_BYTE) & ~comma) |
               ((quote - EACH_BYTE) & ~quote)) &
           HIGH_BITS;
}

/* The number of characters in the source's buffer before the next delimiter, quote, line end or
 * zero byte. */
static size_t count_plain(const struct sgp_source *source)
{
    static const bool has_meaning[256] = {
        ['\0'] = true, [','] = true, ['"'] = true, ['\r'] = true, ['\n'] = true};
    size_t next = source->first;
    while (next < source->end) {
        const uint64_t found =
            source->end - next >= sizeof found ? find_candidates(source->data + next) : HIGH_BITS;
        if (found == 0) {
            next += sizeof found;
            continue;
        }
        next += (size_t)__builtin_ctzll(found) / 8;
        if (has_meaning[source->data[next]])
            break;
        next++;
    }
    return next - source->first;
}

static void skip(struct sgp_source *source, size_t count)
{
    source->first += count;
    source->offset += count;
}

/* Append these characters. */
static int put_plain(struct sgp_csv *csv, size_t begin, struct sgp_error *error)
{
    const size_t count = count_plain(&csv->source);
    const unsigned char *first = csv->source.data + csv->source.first;
    skip(&csv->source, count);
    return count == 0 ? 0 : put(csv, begin, first, count, error);
}

static int field_begin(struct sgp_csv *csv, struct sgp_error *error)
{
    if (csv->field_count >= SGP_COLUMNS_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%s:%llu: more than %u fields in a line",
            csv->source.name, (unsigned long long)csv->line, SGP_COLUMNS_MAX);
    if (csv->field_count == csv->field_capacity) {
        size_t *fields = sgp_grow(csv->fields, &csv->field_capacity, sizeof *fields,
            csv->field_count + 1, SGP_COLUMNS_MAX);
        if (!fields)
            return out_of_memory(csv, error);
        csv->fields = fields;
    }
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
        int status = put_character(csv, begin, character, error);
        if (status == 0)
            status = put_plain(csv, begin, error);
        if (status < 0)
            return status;
    }
}

/* Read the rest of a field that is not quoted. Returns the delimiter after it. */
static int unquoted_read(struct sgp_csv *csv, size_t begin, int character, struct sgp_error *error)
{
    while (character >= 0 && !is_delimiter(character)) {
        if (character == '"')
            return sgp_fail(error, SGP_E_DATA,
                "%s:%llu: a quote inside field %zu; quote the whole field and write the quote "
                "twice",
                csv->source.name, (unsigned long long)csv->line_end, csv->field_count);
        int status = put_character(csv, begin, character, error);
        if (status == 0)
            status = put_plain(csv, begin, error);
        if (status < 0)
            return status;
        character = next_character(csv, error);
    }
    return character;
}

/* Read a field that lies in the source's buffer as it is, up to a comma or a line feed: almost all
 * are of this kind. Its delimiter becomes its terminating zero. Returns the delimiter, or 0: it is
 * no such field. */
static int short_read(struct sgp_csv *csv)
{
    struct sgp_source *source = &csv->source;
    const size_t count = count_plain(source);
    const unsigned char *first = source->data + source->first;
    if (count == source->end - source->first || count >= SGP_FIELD_BYTES_MAX ||
        count >= csv->text_capacity - csv->text_size)
        return 0;
    const int delimiter = first[count];
    if (delimiter != ',' && delimiter != '\n')
        return 0;
    memcpy(csv->text + csv->text_size, first, count);
    csv->text_size += count + 1;
    csv->text[csv->text_size - 1] = '\0';
    skip(source, count + 1);
    return delimiter;
}

/* Read any field. Returns the delimiter after it, or a negative code. */
static int long_read(struct sgp_csv *csv, struct sgp_error *error)
{
    const size_t begin = csv->text_size;
    int character = next_character(csv, error);
    character = character == '"' ? quoted_read(csv, begin, error)
                                 : unquoted_read(csv, begin, character, error);
    if (character < 0)
        return character;
    int status = put_character(csv, csv->text_size, '\0', error);
    return status < 0 ? status : character;
}

/* Read one field. Returns as long_read. */
static int field_read(struct sgp_csv *csv, struct sgp_error *error)
{
    int status = field_begin(csv, error);
    if (status < 0)
        return status;
    const int delimiter = short_read(csv);
    return delimiter != 0 ? delimiter : long_read(csv, error);
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
