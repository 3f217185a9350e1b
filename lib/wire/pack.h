/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/wire and lib/journal: the values of schemas (base/schema.h) as msgpack scalars,
 * and back.
 *
 * An int64_t of -1, which is no round, becomes nil. Nothing is allocated. Input may be hostile. Any
 * thread. */
#ifndef SGP_WIRE_PACK_H
#define SGP_WIRE_PACK_H

#include "base/schema.h"

#include <msgpack.h>

/* Pack a value that is a number at or above 0, a truth or "no round". Returns the number of bytes
 * that it has, or 0 if it is another, and must be packed by sgp_pack. The other bytes are not
 * defined then. The value may be out of its range. */
#define SGP_PACK_PLAIN_BYTES 9u
size_t sgp_pack_plain(const struct sgp_schema_field *field, const void *place,
    uint8_t bytes[static SGP_PACK_PLAIN_BYTES]);

/* Pack a value. Negative, as the packer's callback has returned it: it is not written. */
int sgp_pack(msgpack_packer *packer, const struct sgp_schema_field *field, const void *place);

struct sgp_unpacker {
    const uint8_t *bytes;
    size_t count;
    size_t at;   /* position of the next value */
    bool wide;   /* also accept negative integers, and bytes of any length */
    char *text;  /* where the next TEXT is copied */
    size_t room; /* room there, in bytes */
};

/* Read the next value of any type. It must begin as an allowed scalar, and be complete. Strings are
 * borrowed. */
bool sgp_unpack(struct sgp_unpacker *unpacker, msgpack_object *ret_value);

/* Store a value in its place in a structure. False if it has another type, or is out of range. */
bool sgp_unpack_store(struct sgp_unpacker *unpacker, const struct sgp_schema_field *field,
    const msgpack_object *value, void *place);

#endif
