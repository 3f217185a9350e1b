/* SPDX-License-Identifier: Apache-2.0 */
/* Inside lib/wire and lib/journal: the values of forms (base/form.h) as msgpack scalars, and back.
 *
 * An int64_t of -1, which of a round is none, is nil. Nothing allocates. What is read may be hostile. Any thread. */
#ifndef SGP_WIRE_PACK_H
#define SGP_WIRE_PACK_H

#include "base/form.h"

#include <msgpack.h>

/* A value as msgpack has it; a string is borrowed. */
msgpack_object sgp_pack_load(const struct sgp_form_field *field, const void *place);

struct sgp_unpacker {
    const uint8_t *bytes;
    size_t count;
    size_t at;   /* of the next value */
    bool wide;   /* also negative integers, and bytes of any length */
    char *text;  /* where the next TEXT is copied to */
    size_t room; /* bytes of that */
};

/* The next value, whatever it is: one that begins as a scalar that is allowed, and whole. Strings are borrowed. */
bool sgp_unpack(struct sgp_unpacker *unpacker, msgpack_object *ret_value);

/* Put a value to its place in a structure; false if it is of another type, or not in its range. */
bool sgp_unpack_store(struct sgp_unpacker *unpacker, const struct sgp_form_field *field,
    const msgpack_object *value, void *place);

#endif
