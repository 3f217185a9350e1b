/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through the values of a structure by its schema, checks them, and converts them to
 * bytes. */
#include "base/schema.h"

#include "sgp/status.h"

#include <math.h>
#include <string.h>

_Static_assert(
    sizeof(double) == 8 && sizeof(int) == 4 && sizeof(bool) == 1, "as the schemas have them");

/* ---- checks ---- */

/* The length of the UTF-8 sequence at s[0..count). 0 if it is not the shortest form of a character,
 * or is a control character (C0, DEL, C1). */
static size_t printable(const unsigned char *s, size_t count)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > count)
        return 0;
    uint32_t character = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (s[i] & 0x3fu);
    }
    bool surrogate = character >= 0xd800 && character < 0xe000;
    return character >= least[length] && character <= 0x10ffff && !surrogate ? length : 0;
}

static bool fits_text(const struct sgp_schema_field *field, const char *text)
{
    size_t bytes = text != NULL ? strnlen(text, field->most + 1) : 0;
    if (text == NULL || bytes < (size_t)field->least || bytes > field->most)
        return false;
    for (size_t at = 0, step; at < bytes; at += step)
        if ((step = printable((const unsigned char *)text + at, bytes - at)) == 0)
            return false;
    return true;
}

static bool fits_unsigned(const struct sgp_schema_field *field, uint64_t value)
{
    return value <= field->most && (field->least <= 0 || value >= (uint64_t)field->least);
}

static bool fits_signed(const struct sgp_schema_field *field, int64_t value)
{
    return value >= field->least && (value < 0 || (uint64_t)value <= field->most);
}

static bool fits_real(const struct sgp_schema_field *field, double value)
{
    if (field->most == 0)
        return true;
    return isfinite(value) && (field->least == INT64_MIN || value >= (double)field->least) &&
           (field->most == UINT64_MAX || value <= (double)field->most);
}

bool sgp_schema_fits(const struct sgp_schema_field *field, const void *place)
{
    switch (field->kind) {
    case SGP_SCHEMA_U64:
        return fits_unsigned(field, *(const uint64_t *)place);
    case SGP_SCHEMA_U32:
        return fits_unsigned(field, *(const uint32_t *)place);
    case SGP_SCHEMA_I64:
        return fits_signed(field, *(const int64_t *)place);
    case SGP_SCHEMA_INT:
        return fits_signed(field, *(const int *)place);
    case SGP_SCHEMA_BOOL:
        return *(const unsigned char *)place <= 1;
    case SGP_SCHEMA_REAL:
        return fits_real(field, *(const double *)place);
    case SGP_SCHEMA_FLOAT:
        return fits_real(field, (double)*(const float *)place);
    case SGP_SCHEMA_NAME:
        return memchr(place, '\0', SGP_NAME_BYTES) != NULL;
    case SGP_SCHEMA_TEXT:
        return fits_text(field, *(const char *const *)place);
    case SGP_SCHEMA_PART: /* its values are walked through one by one */
        break;
    }
    sgp_assert_failed("a value is of a known kind", __FILE__, __LINE__);
}

static int check(void *context, const struct sgp_schema_field *field, void *place)
{
    (void)context;
    return sgp_schema_fits(field, place) ? 0 : -1;
}

bool sgp_schema_holds(const struct sgp_schema *schema, const void *structure)
{
    return sgp_schema_walk(schema, structure, check, NULL) == 0;
}

/* ---- bytes ---- */

size_t sgp_schema_bytes(const struct sgp_schema *schema)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct sgp_schema_field *field = &schema->fields[i];
        bool part = field->kind == SGP_SCHEMA_PART;
        bytes += field->count * (part ? sgp_schema_bytes(field->part) : field->bytes);
    }
    return bytes;
}

static void add_span(struct sgp_schema_spans *spans, size_t offset, size_t bytes)
{
    uint32_t last = spans->count - 1;
    if (spans->count > 0 && spans->at[last].offset + spans->at[last].bytes == offset) {
        spans->at[last].bytes += (uint32_t)bytes;
        return;
    }
    sgp_assert(spans->count < SGP_SCHEMA_SPANS_MAX);
    spans->at[spans->count].offset = (uint32_t)offset;
    spans->at[spans->count].bytes = (uint32_t)bytes;
    spans->count++;
}

/* Those of a part that begins at `start` of the structure. */
static void add_spans(struct sgp_schema_spans *spans, const struct sgp_schema *schema, size_t start)
{
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct sgp_schema_field *field = &schema->fields[i];
        sgp_assert(field->kind != SGP_SCHEMA_TEXT && !field->borrowed);
        if (field->kind == SGP_SCHEMA_PART)
            add_spans(spans, field->part, start + field->offset);
        else
            add_span(spans, start + field->offset, (size_t)field->count * field->bytes);
    }
}

void sgp_schema_find_spans(const struct sgp_schema *schema, struct sgp_schema_spans *ret_spans)
{
    ret_spans->count = 0;
    add_spans(ret_spans, schema, 0);
}

uint8_t *sgp_schema_put(const struct sgp_schema_spans *spans, const void *structure, uint8_t *bytes)
{
    for (uint32_t i = 0; i < spans->count; i++) {
        memcpy(bytes, (const uint8_t *)structure + spans->at[i].offset, spans->at[i].bytes);
        bytes += spans->at[i].bytes;
    }
    return bytes;
}

static int take(void *context, const struct sgp_schema_field *field, void *place)
{
    const uint8_t **at = context;
    sgp_assert(field->kind != SGP_SCHEMA_TEXT);
    memcpy(place, *at, field->bytes);
    *at += field->bytes;
    return sgp_schema_fits(field, place) ? 0 : -1;
}

const uint8_t *sgp_schema_take(
    const struct sgp_schema *schema, const uint8_t *bytes, void *structure)
{
    return sgp_schema_walk(schema, structure, take, &bytes) == 0 ? bytes : NULL;
}
