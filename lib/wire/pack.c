/* SPDX-License-Identifier: Apache-2.0 */
/* Converts one value of a schema to msgpack and back. */
#include "wire/pack.h"

#include "sgp/status.h"

#include <endian.h>
#include <string.h>

/* Values of one byte, and the first bytes of numbers of fixed width, by the specification of
 * msgpack. Almost all values of a message are such, and the calls of msgpack-c for one cost several
 * times what the rest of the work on it does. */
enum { SHORT_MAX = 0x7f, SHORT_NIL = 0xc0, SHORT_FALSE = 0xc2, SHORT_TRUE = 0xc3 };
enum { DOUBLE = 0xcb, UNSIGNED_8 = 0xcc, UNSIGNED_64 = 0xcf };

/* The first byte, and the lowest bytes of a value, big-endian. */
static size_t pack_fixed(uint8_t lead, uint64_t value, size_t width, uint8_t *bytes)
{
    uint64_t big = htobe64(value << (64 - 8 * width));
    bytes[0] = lead;
    memcpy(bytes + 1, &big, sizeof big);
    return 1 + width;
}

static size_t pack_byte(int byte, uint8_t *bytes)
{
    bytes[0] = (uint8_t)byte;
    return 1;
}

static size_t pack_unsigned(uint64_t value, uint8_t *bytes)
{
    if (value <= SHORT_MAX)
        return pack_byte((int)value, bytes);
    int power = (value > UINT8_MAX) + (value > UINT16_MAX) + (value > UINT32_MAX);
    return pack_fixed((uint8_t)(UNSIGNED_8 + power), value, (size_t)1 << power, bytes);
}

static size_t pack_signed(int64_t value, uint8_t *bytes)
{
    if (value >= 0)
        return pack_unsigned((uint64_t)value, bytes);
    return value == -1 ? pack_byte(SHORT_NIL, bytes) : 0;
}

static size_t pack_real(double value, uint8_t *bytes)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return pack_fixed(DOUBLE, bits, sizeof bits, bytes);
}

size_t sgp_pack_plain(const struct sgp_schema_field *field, const void *place,
    uint8_t bytes[static SGP_PACK_PLAIN_BYTES])
{
    switch (field->kind) {
    case SGP_SCHEMA_U64:
        return pack_unsigned(*(const uint64_t *)place, bytes);
    case SGP_SCHEMA_U32:
        return pack_unsigned(*(const uint32_t *)place, bytes);
    case SGP_SCHEMA_I64:
        return pack_signed(*(const int64_t *)place, bytes);
    case SGP_SCHEMA_INT:
        return pack_signed(*(const int *)place, bytes);
    case SGP_SCHEMA_BOOL:
        return pack_byte(*(const bool *)place ? SHORT_TRUE : SHORT_FALSE, bytes);
    case SGP_SCHEMA_REAL:
        return pack_real(*(const double *)place, bytes);
    case SGP_SCHEMA_FLOAT:
        return pack_real((double)*(const float *)place, bytes);
    default:
        return 0;
    }
}

static int pack_text(msgpack_packer *packer, const char *text, uint64_t most)
{
    return msgpack_pack_str_with_body(packer, text, strnlen(text, most));
}

int sgp_pack(msgpack_packer *packer, const struct sgp_schema_field *field, const void *place)
{
    uint8_t bytes[SGP_PACK_PLAIN_BYTES];
    size_t count = sgp_pack_plain(field, place, bytes);
    if (count > 0)
        return packer->callback(packer->data, (const char *)bytes, count);
    switch (field->kind) {
    case SGP_SCHEMA_I64:
        return msgpack_pack_int64(packer, *(const int64_t *)place);
    case SGP_SCHEMA_INT:
        return msgpack_pack_int64(packer, *(const int *)place);
    case SGP_SCHEMA_NAME:
        return pack_text(packer, place, SGP_NAME_BYTES);
    case SGP_SCHEMA_TEXT:
        return pack_text(packer, *(const char *const *)place, field->most + 1);
    default: /* a number; the values of a part are walked through one by one */
        break;
    }
    sgp_assert_failed("a value is of a known kind", __FILE__, __LINE__);
}

/* Whether msgpack-c neither nests nor allocates for a value with this first byte, which is none of
 * one byte and no number of fixed width. That is so for a string below 65,536 bytes. If they are
 * allowed, it is also so for a negative integer and for bytes. */
static bool is_scalar(uint8_t lead, bool wide)
{
    bool plain = (lead >= 0xa0 && lead <= 0xbf) || lead == 0xd9 || lead == 0xda;
    bool more = lead >= 0xe0 || (lead >= 0xc4 && lead <= 0xc6) || (lead >= 0xd0 && lead <= 0xd3);
    return plain || (wide && more);
}

/* The value of this first byte, if it is the only one. */
static bool unpack_short(uint8_t lead, msgpack_object *ret_value)
{
    if (lead <= SHORT_MAX)
        *ret_value = (msgpack_object){.type = MSGPACK_OBJECT_POSITIVE_INTEGER, .via.u64 = lead};
    else if (lead == SHORT_NIL)
        *ret_value = (msgpack_object){.type = MSGPACK_OBJECT_NIL};
    else if (lead == SHORT_FALSE || lead == SHORT_TRUE)
        *ret_value =
            (msgpack_object){.type = MSGPACK_OBJECT_BOOLEAN, .via.boolean = lead == SHORT_TRUE};
    else
        return false;
    return true;
}

static bool is_number(uint8_t lead)
{
    return lead >= DOUBLE && lead <= UNSIGNED_64;
}

/* A double, or an unsigned integer of 1, 2, 4 or 8 bytes, which are big-endian. */
static bool unpack_number(struct sgp_unpacker *unpacker, msgpack_object *ret_value)
{
    const uint8_t *bytes = unpacker->bytes + unpacker->at + 1;
    uint8_t lead = unpacker->bytes[unpacker->at];
    size_t width = lead == DOUBLE ? sizeof(double) : (size_t)1 << (lead - UNSIGNED_8);
    uint64_t value = 0;
    if (unpacker->count - unpacker->at - 1 < width)
        return false;
    for (size_t i = 0; i < width; i++)
        value = value << 8 | bytes[i];
    *ret_value = (msgpack_object){
        .type = lead == DOUBLE ? MSGPACK_OBJECT_FLOAT64 : MSGPACK_OBJECT_POSITIVE_INTEGER,
        .via.u64 = value};
    if (lead == DOUBLE)
        memcpy(&ret_value->via.f64, &value, sizeof value);
    unpacker->at += 1 + width;
    return true;
}

bool sgp_unpack(struct sgp_unpacker *unpacker, msgpack_object *ret_value)
{
    if (unpacker->at >= unpacker->count)
        return false;
    if (unpack_short(unpacker->bytes[unpacker->at], ret_value)) {
        unpacker->at++;
        return true;
    }
    if (is_number(unpacker->bytes[unpacker->at]))
        return unpack_number(unpacker, ret_value);
    if (!is_scalar(unpacker->bytes[unpacker->at], unpacker->wide))
        return false;
    msgpack_zone nothing = {0}; /* given, so that msgpack-c creates no zone for a string */
    msgpack_unpack_return got = msgpack_unpack(
        (const char *)unpacker->bytes, unpacker->count, &unpacker->at, &nothing, ret_value);
    return got == MSGPACK_UNPACK_SUCCESS || got == MSGPACK_UNPACK_EXTRA_BYTES;
}

/* Copy a string's bytes, and append a zero. */
static bool copy(char *text, size_t room, const msgpack_object *value)
{
    const msgpack_object_str *from = &value->via.str;
    if (value->type != MSGPACK_OBJECT_STR || from->size >= room)
        return false;
    if (from->size > 0) /* the empty string of msgpack-c is at NULL */
        memcpy(text, from->ptr, from->size);
    memset(text + from->size, 0, 1);
    return strlen(text) == from->size;
}

static bool store_text(struct sgp_unpacker *unpacker, const struct sgp_schema_field *field,
    const msgpack_object *value, const char **place)
{
    size_t room = unpacker->room < field->most + 1 ? unpacker->room : field->most + 1;
    if (!copy(unpacker->text, room, value))
        return false;
    *place = unpacker->text;
    unpacker->text += value->via.str.size + 1;
    unpacker->room -= value->via.str.size + 1;
    return true;
}

static bool store_name(char *name, const msgpack_object *value)
{
    memset(name, 0, SGP_NAME_BYTES);
    return copy(name, SGP_NAME_BYTES, value);
}

/* Whether an integer of any sign is in this range. */
static bool lies(const msgpack_object *value, int64_t least, int64_t most)
{
    if (value->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        return value->via.i64 >= least;
    return value->type == MSGPACK_OBJECT_POSITIVE_INTEGER && value->via.u64 <= (uint64_t)most;
}

static bool store(struct sgp_unpacker *unpacker, const struct sgp_schema_field *field,
    const msgpack_object *value, void *place)
{
    bool fits = false;
    msgpack_object none = {.type = MSGPACK_OBJECT_NEGATIVE_INTEGER, .via.i64 = -1};
    switch (field->kind) {
    case SGP_SCHEMA_U64:
        if ((fits = value->type == MSGPACK_OBJECT_POSITIVE_INTEGER))
            *(uint64_t *)place = value->via.u64;
        break;
    case SGP_SCHEMA_U32:
        if ((fits = lies(value, 0, UINT32_MAX)))
            *(uint32_t *)place = (uint32_t)value->via.u64;
        break;
    case SGP_SCHEMA_I64:
        value = value->type == MSGPACK_OBJECT_NIL ? &none : value;
        if ((fits = lies(value, INT64_MIN, INT64_MAX)))
            *(int64_t *)place = value->via.i64;
        break;
    case SGP_SCHEMA_INT:
        value = value->type == MSGPACK_OBJECT_NIL ? &none : value;
        if ((fits = lies(value, INT32_MIN, INT32_MAX)))
            *(int *)place = (int)value->via.i64;
        break;
    case SGP_SCHEMA_BOOL:
        if ((fits = value->type == MSGPACK_OBJECT_BOOLEAN))
            *(bool *)place = value->via.boolean;
        break;
    case SGP_SCHEMA_REAL:
        if ((fits = value->type == MSGPACK_OBJECT_FLOAT64))
            *(double *)place = value->via.f64;
        break;
    case SGP_SCHEMA_FLOAT:
        if ((fits = value->type == MSGPACK_OBJECT_FLOAT64))
            *(float *)place = (float)value->via.f64;
        break;
    case SGP_SCHEMA_NAME:
        fits = store_name(place, value);
        break;
    case SGP_SCHEMA_TEXT:
        fits = store_text(unpacker, field, value, place);
        break;
    case SGP_SCHEMA_PART: /* its values are walked through one by one */
        break;
    }
    return fits;
}

bool sgp_unpack_store(struct sgp_unpacker *unpacker, const struct sgp_schema_field *field,
    const msgpack_object *value, void *place)
{
    return store(unpacker, field, value, place) && sgp_schema_fits(field, place);
}
