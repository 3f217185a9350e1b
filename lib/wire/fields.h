/* SPDX-License-Identifier: Apache-2.0 */
/* Inside lib/wire: which fields a message has on the wire, in order, and what each may hold.
 *
 * One table serves both directions, so what encode lets out is what decode lets in. */
#ifndef SGP_WIRE_FIELDS_H
#define SGP_WIRE_FIELDS_H

#include "base/form.h"

#include "sgp/wire.h"

#include <msgpack.h>

enum sgp_field_kind {
    SGP_FIELD_U64 = 1, /* unsigned integer, least..most, in a uint64_t */
    SGP_FIELD_U32,     /* the same in a uint32_t */
    SGP_FIELD_ROUND,   /* unsigned integer, 0..most, in a sgp_round; nil is SGP_ROUND_NONE if least
                          says SGP_ROUND_MAY_BE_NONE */
    SGP_FIELD_BOOL,
    SGP_FIELD_REAL,   /* float64, finite, 0..most */
    SGP_FIELD_FLOAT,  /* float64 that is a finite float32, of any sign, in a float */
    SGP_FIELD_STATE,  /* unsigned integer, least..most, in an enum sgp_node_state */
    SGP_FIELD_REASON, /* the same in an enum sgp_reason */
    SGP_FIELD_TEXT,   /* string of least..most bytes, printable UTF-8 */
};
#define SGP_ROUND_MAY_BE_NONE 1u

struct sgp_field {
    const char *name;
    enum sgp_field_kind kind;
    uint16_t offset; /* in struct sgp_message */
    uint16_t text;   /* TEXT: in struct sgp_wire_text */
    uint64_t least;
    uint64_t most; /* REAL: 0 = any finite value, else the limit */
    bool later;    /* added within this version: a peer that is older leaves it out, which means 0;
                      only fields of the same kind follow */
};

/* The fields of a type, after those of the pulse; NULL for a type that is not a message's. */
const struct sgp_field *sgp_fields_of(uint32_t type, size_t *ret_count);
const struct sgp_field *sgp_fields_of_pulse(size_t *ret_count);

/* A field of a message as a msgpack value. A string is borrowed. */
msgpack_object sgp_field_load(const struct sgp_field *field, const struct sgp_message *message);

/* Whether a field may hold a value. */
bool sgp_field_accepts(const struct sgp_field *field, const msgpack_object *value);

/* Put an accepted value into a message; a string is copied to *text. */
void sgp_field_store(const struct sgp_field *field, const msgpack_object *value,
    struct sgp_wire_text *text, struct sgp_message *message);

/* What one field cannot say alone: NULL, or what is wrong with the message. */
const char *sgp_fields_conflict(const struct sgp_message *message);

/* struct sgp_fingerprint, which greetings and the journal have in common. */
extern const struct sgp_form sgp_fingerprint_form;

#endif
