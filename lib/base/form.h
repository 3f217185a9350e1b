/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the library and sgpd: a structure described by its fields, so that whatever stores, sends or checks it goes by one
 * table. The ledger takes the values as bytes of fixed width (here), wire and journal as msgpack (wire/pack.h).
 *
 * A field that is added to a table is stored, sent and checked from then on. Its kind is that of its C type. */
#ifndef SGP_BASE_FORM_H
#define SGP_BASE_FORM_H

#include "sgp/types.h"

enum sgp_form_kind {
    SGP_FORM_U64 = 1, /* uint64_t */
    SGP_FORM_U32,     /* uint32_t, and an enumeration */
    SGP_FORM_I64,     /* int64_t: a time, a round */
    SGP_FORM_INT,     /* int */
    SGP_FORM_BOOL,    /* bool */
    SGP_FORM_REAL,    /* double */
    SGP_FORM_FLOAT,   /* float */
    SGP_FORM_NAME,    /* char[SGP_NAME_BYTES], with a terminating zero */
    SGP_FORM_TEXT,    /* const char *: printable UTF-8 of least..most bytes; in messages only */
    SGP_FORM_PART,    /* a structure that has a form of its own */
};

struct sgp_form;

struct sgp_form_field {
    const char *name; /* for messages about it */
    enum sgp_form_kind kind;
    uint16_t offset, count; /* an array has more than one value */
    int64_t least;          /* a value is in least..most */
    uint64_t most;
    const struct sgp_form *part; /* PART: of each of them */
};

struct sgp_form {
    const struct sgp_form_field *fields;
    uint32_t count;
    uint32_t bytes; /* of the structure in memory */
};

/* Ranges: every value of the type, of REAL and FLOAT every finite one; and of those two every bit pattern. */
#define SGP_FORM_ANY INT64_MIN, UINT64_MAX
#define SGP_FORM_BITS 0, 0

/* clang-format off */
#define SGP_FORM_KIND(member)                                                                      \
    _Generic((member), uint64_t: SGP_FORM_U64, uint32_t: SGP_FORM_U32, int64_t: SGP_FORM_I64,      \
        int: SGP_FORM_INT, bool: SGP_FORM_BOOL, double: SGP_FORM_REAL, char *: SGP_FORM_NAME,      \
        const char *: SGP_FORM_TEXT, default: SGP_FORM_KIND_OF_FLOAT(member))
#define SGP_FORM_KIND_OF_FLOAT(member) /* apart, for tests/float64 has none */                     \
    _Generic((member), float: SGP_FORM_FLOAT, default: (enum sgp_form_kind)0)
/* clang-format on */

/* A field `member` of `structure`: SGP_FIELD(struct sgp_ack, "number", number, 1, UINT64_MAX); an array; a part. */
#define SGP_FIELD(structure, label, member, ...)                                                   \
    SGP_FIELD_OF(structure, label, member, ((structure *)0)->member, 1, __VA_ARGS__)
#define SGP_FIELDS(structure, label, member, ...)                                                  \
    SGP_FIELD_OF(structure, label, member, ((structure *)0)->member[0],                            \
        sizeof((structure *)0)->member / sizeof((structure *)0)->member[0], __VA_ARGS__)
#define SGP_FIELD_OF(structure, label, member, value, number, ...)                                 \
    SGP_FIELD_IN(label, SGP_FORM_KIND(value), offsetof(structure, member), number, __VA_ARGS__)
#define SGP_FIELD_IN(label, type, place, number, low, high)                                        \
    {                                                                                              \
        .name = label, .kind = type, .offset = place, .count = number, .least = low, .most = high  \
    }
#define SGP_PART(structure, member, form)                                                          \
    {                                                                                              \
        .name = #member, .kind = SGP_FORM_PART, .offset = offsetof(structure, member), .count = 1, \
        .part = form                                                                               \
    }
#define SGP_FORM(structure, table)                                                                 \
    {                                                                                              \
        .fields = table, .count = sizeof table / sizeof *(table), .bytes = sizeof(structure)       \
    }

/* Visit every value of a structure, of its parts too, in order, until a visit does not return 0. Returns what the last
 * visit did. A visitor that writes to `place` is given a structure of the caller's that may be written. */
typedef int sgp_form_visit(void *context, const struct sgp_form_field *field, void *place);
int sgp_form_walk(
    const struct sgp_form *form, const void *structure, sgp_form_visit *visit, void *context);

/* Whether the value at `place` is in its range. Its bytes may be hostile; the pointer of a TEXT may not, but for NULL. */
bool sgp_form_fits(const struct sgp_form_field *field, const void *place);

/* Whether a value is 0, or false, and whether that is in its range. A text is not. */
bool sgp_form_is_zero(const struct sgp_form_field *field, const void *place);
bool sgp_form_may_be_zero(const struct sgp_form_field *field);

/* Whether every value of a structure is in its range. */
bool sgp_form_holds(const struct sgp_form *form, const void *structure);

/* Values as bytes of fixed width, one behind the other as this machine has them: for a file that does not leave it. No
 * form with a TEXT. sgp_form_put returns where the next byte goes. */
size_t sgp_form_bytes(const struct sgp_form *form);
uint8_t *sgp_form_put(const struct sgp_form *form, const void *structure, uint8_t *bytes);

/* Bytes to values. Returns the byte behind them; NULL if one is out of its range, and the structure is not to be looked at. */
const uint8_t *sgp_form_take(const struct sgp_form *form, const uint8_t *bytes, void *structure);

#endif
