/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the library and sgpd: a structure described by its fields, so that all code that
 * stores, sends or checks it uses one table. The ledger stores the values as bytes of fixed width
 * (here). Wire and journal use msgpack (wire/pack.h).
 *
 * A field that is added to a table is stored, sent and checked from then on. Its kind must match
 * its C type. */
#ifndef SGP_BASE_SCHEMA_H
#define SGP_BASE_SCHEMA_H

#include "sgp/types.h"

enum sgp_schema_kind {
    SGP_SCHEMA_U64 = 1, /* uint64_t */
    SGP_SCHEMA_U32,     /* uint32_t, and an enumeration */
    SGP_SCHEMA_I64,     /* int64_t: a time, a round */
    SGP_SCHEMA_INT,     /* int */
    SGP_SCHEMA_BOOL,    /* bool */
    SGP_SCHEMA_REAL,    /* double */
    SGP_SCHEMA_FLOAT,   /* float */
    SGP_SCHEMA_NAME,    /* char[SGP_NAME_BYTES], with a terminating zero */
    SGP_SCHEMA_TEXT,    /* const char *: printable UTF-8 of least..most bytes; in messages only */
    SGP_SCHEMA_PART,    /* a structure with its own schema */
};

struct sgp_schema;

struct sgp_schema_field {
    const char *name; /* for messages about the field */
    enum sgp_schema_kind kind;
    uint16_t offset, count; /* count > 1: an array; a PART is never one */
    uint32_t bytes;         /* of one value in memory */
    int64_t least;          /* a value must be in least..most */
    uint64_t most;
    const struct sgp_schema *part; /* of a PART */
    bool borrowed;                 /* of a PART in a message: the structure has a pointer to it */
};

struct sgp_schema {
    const struct sgp_schema_field *fields;
    uint32_t count;
    uint32_t bytes; /* size of the structure in memory */
};

/* Ranges. ANY: every value of the type, and every finite value of REAL and FLOAT. BITS: every bit
 * pattern of REAL and FLOAT. */
#define SGP_SCHEMA_ANY INT64_MIN, UINT64_MAX
#define SGP_SCHEMA_BITS 0, 0

/* clang-format off */
#define SGP_SCHEMA_KIND(member)                                                                    \
    _Generic((member), uint64_t: SGP_SCHEMA_U64, uint32_t: SGP_SCHEMA_U32,                         \
        int64_t: SGP_SCHEMA_I64, int: SGP_SCHEMA_INT, bool: SGP_SCHEMA_BOOL,                       \
        double: SGP_SCHEMA_REAL, char *: SGP_SCHEMA_NAME, const char *: SGP_SCHEMA_TEXT,           \
        default: SGP_SCHEMA_KIND_OF_FLOAT(member))
#define SGP_SCHEMA_KIND_OF_FLOAT(member) /* separate: tests/float64 has no float */                \
    _Generic((member), float: SGP_SCHEMA_FLOAT, default: (enum sgp_schema_kind)0)
/* clang-format on */

/* A field `member` of `structure`, for example SGP_FIELD(struct sgp_ack, "number", number, 1,
 * UINT64_MAX). Then an array, a part, and a part to which the structure has a pointer. */
#define SGP_FIELD(structure, label, member, ...)                                                   \
    SGP_FIELD_OF(structure, label, member, ((structure *)0)->member, 1, __VA_ARGS__)
#define SGP_FIELDS(structure, label, member, ...)                                                  \
    SGP_FIELD_OF(structure, label, member, ((structure *)0)->member[0],                            \
        sizeof((structure *)0)->member / sizeof((structure *)0)->member[0], __VA_ARGS__)
#define SGP_FIELD_OF(structure, label, member, value, number, ...)                                 \
    SGP_FIELD_IN(label, SGP_SCHEMA_KIND(value), offsetof(structure, member), number,               \
        sizeof(value), __VA_ARGS__)
#define SGP_FIELD_IN(label, type, place, number, size, low, high)                                  \
    {                                                                                              \
        .name = label, .kind = type, .offset = place, .count = number, .bytes = size,              \
        .least = low, .most = high                                                                 \
    }
#define SGP_PART(structure, member, schema)                                                        \
    {                                                                                              \
        .name = #member, .kind = SGP_SCHEMA_PART, .offset = offsetof(structure, member),           \
        .count = 1, .bytes = sizeof((structure *)0)->member, .part = schema                        \
    }
#define SGP_BORROWED_PART(structure, member, schema)                                               \
    {                                                                                              \
        .name = #member, .kind = SGP_SCHEMA_PART, .offset = offsetof(structure, member),           \
        .count = 1, .bytes = sizeof *((structure *)0)->member, .part = schema, .borrowed = true    \
    }
#define SGP_SCHEMA(structure, table)                                                               \
    {                                                                                              \
        .fields = table, .count = sizeof table / sizeof *(table), .bytes = sizeof(structure)       \
    }

/* Call `visit` for every value of a structure and of its parts, in order, until it returns other
 * than 0. Returns the result of the last call. `visit` may write to `place` only if the caller's
 * structure may be written.
 *
 * It is inline, since each message is walked through: the compiler then inlines `visit`. */
typedef int sgp_schema_visit(void *context, const struct sgp_schema_field *field, void *place);
static inline int sgp_schema_walk(
    const struct sgp_schema *schema, const void *structure, sgp_schema_visit *visit, void *context)
{
    const struct sgp_schema_field *end = schema->fields + schema->count;
    int code = 0;
    for (const struct sgp_schema_field *field = schema->fields; code == 0 && field < end; field++) {
        const uint8_t *place = (const uint8_t *)structure + field->offset;
        if (field->kind == SGP_SCHEMA_PART)
            code = sgp_schema_walk(
                field->part, field->borrowed ? *(const void *const *)place : place, visit, context);
        else
            code = visit(context, field, (void *)(uintptr_t)place);
        for (uint32_t k = 1; code == 0 && k < field->count; k++)
            code = visit(context, field, (void *)(uintptr_t)(place + k * field->bytes));
    }
    return code;
}

/* Whether the value at `place` is in its range. Its bytes may be hostile, but the pointer of a TEXT
 * must be valid or NULL. */
bool sgp_schema_fits(const struct sgp_schema_field *field, const void *place);

/* Whether a value is 0 or false, and 0 is in its range. Never true for a text. */
static inline bool sgp_schema_is_zero(const struct sgp_schema_field *field, const void *place)
{
    switch (field->kind) {
    case SGP_SCHEMA_U64:
    case SGP_SCHEMA_I64:
        return *(const uint64_t *)place == 0;
    case SGP_SCHEMA_U32:
    case SGP_SCHEMA_INT:
        return *(const uint32_t *)place == 0;
    case SGP_SCHEMA_BOOL:
        return *(const unsigned char *)place == 0;
    case SGP_SCHEMA_REAL:
        return *(const double *)place == 0;
    case SGP_SCHEMA_FLOAT:
        return *(const float *)place == 0;
    default:
        return false;
    }
}

static inline bool sgp_schema_may_be_zero(const struct sgp_schema_field *field)
{
    return field->least <= 0 && field->kind != SGP_SCHEMA_TEXT;
}

/* Whether every value of a structure is in its range. */
bool sgp_schema_holds(const struct sgp_schema *schema, const void *structure);

/* The stretches of memory that the values of a structure occupy, in the order of the schema. Values
 * that are neighbours in memory are one stretch. */
#define SGP_SCHEMA_SPANS_MAX 64u
struct sgp_schema_spans {
    uint32_t count;
    struct {
        uint32_t offset, bytes;
    } at[SGP_SCHEMA_SPANS_MAX];
};

/* Find the stretches. A schema with a TEXT, with a borrowed part, or with more than
 * SGP_SCHEMA_SPANS_MAX of them, is not allowed. */
void sgp_schema_find_spans(const struct sgp_schema *schema, struct sgp_schema_spans *ret_spans);

/* Store values as bytes of fixed width, one after the other, in this machine's byte order. For
 * files that stay on this machine. A schema with a TEXT is not allowed. sgp_schema_put returns the
 * position of the next byte; the stretches are those of the structure's schema. */
size_t sgp_schema_bytes(const struct sgp_schema *schema);
uint8_t *sgp_schema_put(
    const struct sgp_schema_spans *spans, const void *structure, uint8_t *bytes);

/* Read values from bytes. Returns the position after them. NULL: a value is out of its range, and
 * the structure must not be used. */
const uint8_t *sgp_schema_take(
    const struct sgp_schema *schema, const uint8_t *bytes, void *structure);

#endif
