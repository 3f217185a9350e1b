/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a message to a whole frame, and a body back to a message. */
#include "wire/fields.h"
#include "wire/frame.h"
#include "wire/pack.h"

#include <errno.h>
#include <string.h>

/* More values than any message has, but few enough to skip the additional values of a later
 * revision. */
#define VALUES_MAX 64u

/* ---- to bytes ---- */

/* Bytes of an array's header, which is short for up to ARRAY_SHORT values. */
#define ARRAY_SHORT 15u
#define HEADER_SHORT 1u
#define HEADER_LONG 3u

struct writer {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
    msgpack_packer packer;
    size_t seen;       /* values */
    size_t kept, ends; /* values that are sent, and the bytes up to their end */
    bool full;         /* a value did not fit */
    bool cut;          /* a value that is sent did not */
};

/* The packer of msgpack-c calls this for every few bytes. A negative result ends the packing. */
static int append(void *context, const char *bytes, size_t count)
{
    struct writer *writer = context;
    uint8_t *place = writer->bytes + writer->count;
    if (count > writer->capacity - writer->count)
        return -ENOBUFS;
    memcpy(place, bytes, count);
    writer->count += count;
    return 0;
}

/* Almost all values are numbers, which are stored without a call of msgpack-c. */
static bool append_value(
    struct writer *writer, const struct sgp_schema_field *field, const void *place)
{
    size_t count = 0;
    if (writer->capacity - writer->count >= SGP_PACK_PLAIN_BYTES)
        count = sgp_pack_plain(field, place, writer->bytes + writer->count);
    writer->count += count;
    return count > 0 || sgp_pack(&writer->packer, field, place) == 0;
}

/* Zeros at the end are not sent. So a zero is packed, and kept if another value follows it. */
static int put(void *context, const struct sgp_schema_field *field, void *place)
{
    struct writer *writer = context;
    bool zero = sgp_schema_is_zero(field, place);
    if (zero ? !sgp_schema_may_be_zero(field) : !sgp_schema_fits(field, place))
        return -EINVAL;
    writer->full = writer->full || !append_value(writer, field, place);
    writer->seen++;
    if (zero && writer->seen > SGP_PULSE_VALUES)
        return 0;
    writer->kept = writer->seen;
    writer->ends = writer->count;
    writer->cut = writer->full;
    return 0;
}

/* Write the array's header before its values, for which there is place for a short one. Returns the
 * bytes of the body, or 0 if it does not fit. */
static size_t put_header(struct writer *writer)
{
    size_t values = writer->ends - HEADER_SHORT;
    size_t header = writer->kept > ARRAY_SHORT ? HEADER_LONG : HEADER_SHORT;
    if (header + values > writer->capacity)
        return 0;
    if (header != HEADER_SHORT)
        memmove(writer->bytes + header, writer->bytes + HEADER_SHORT, values);
    writer->count = 0;
    (void)msgpack_pack_array(&writer->packer, writer->kept);
    return header + values;
}

int sgp_wire_encode(
    const struct sgp_message *message, uint8_t *frame, size_t capacity, size_t *ret_bytes)
{
    const struct sgp_schema *schema = sgp_message_schema(message->type);
    if (schema == NULL)
        return -EINVAL;
    if (capacity < SGP_WIRE_HEADER_BYTES + HEADER_SHORT)
        return -ENOBUFS;
    struct writer writer = {.bytes = frame + SGP_WIRE_HEADER_BYTES,
        .count = HEADER_SHORT,
        .capacity = capacity - SGP_WIRE_HEADER_BYTES};
    if (writer.capacity > SGP_WIRE_BODY_MAX)
        writer.capacity = SGP_WIRE_BODY_MAX;
    msgpack_packer_init(&writer.packer, &writer, append);
    if (sgp_schema_walk(schema, message, put, &writer) < 0 || sgp_message_conflict(message) != NULL)
        return -EINVAL;
    size_t body_bytes = writer.cut ? 0 : put_header(&writer);
    if (body_bytes == 0)
        return -ENOBUFS;
    struct sgp_wire_header header = {.version = SGP_WIRE_VERSION,
        .type = (uint16_t)message->type,
        .body_bytes = (uint32_t)body_bytes,
        .checksum = sgp_wire_checksum(writer.bytes, body_bytes)};
    sgp_wire_header_encode(&header, frame);
    *ret_bytes = SGP_WIRE_HEADER_BYTES + body_bytes;
    return 0;
}

/* ---- from bytes ---- */

struct reader {
    struct sgp_unpacker from;
    size_t left;               /* values of the array that are not read yet */
    const char *field, *fault; /* the field at fault, and its fault; NULL: none */
};

/* The number of values of the array, or -1. It is read here, because msgpack-c would allocate as
 * many elements as the header announces. */
static int32_t read_array(struct sgp_unpacker *from)
{
    const uint8_t *bytes = from->bytes;
    if (from->count >= 1 && (bytes[0] & 0xf0) == 0x90) {
        from->at = 1;
        return bytes[0] & 0x0f;
    }
    if (from->count >= 3 && bytes[0] == 0xdc) {
        from->at = 3;
        return bytes[1] << 8 | bytes[2];
    }
    return -1;
}

/* Store the next value in its place. The place is zero, and remains so if the array has ended. */
static int get(void *context, const struct sgp_schema_field *field, void *place)
{
    struct reader *reader = context;
    msgpack_object value;
    if (reader->left == 0)
        reader->fault = sgp_schema_may_be_zero(field) ? NULL : "is missing";
    else if (!sgp_unpack(&reader->from, &value))
        reader->fault = "is cut off or not a scalar";
    else if (!sgp_unpack_store(&reader->from, field, &value, place))
        reader->fault = "is of another type or out of range";
    reader->left -= reader->left > 0;
    reader->field = field->name;
    return reader->fault == NULL ? 0 : -1;
}

/* Skip values that a later revision of this version has added. They must be complete, but have no
 * meaning here. */
static int skip(struct reader *reader, const char *type, struct sgp_error *error)
{
    msgpack_object value;
    for (; reader->left > 0; reader->left--)
        if (!sgp_unpack(&reader->from, &value))
            return sgp_fail(
                error, SGP_E_FRAME, "%s frame: an extra field is cut off or not a scalar", type);
    if (reader->from.at != reader->from.count)
        return sgp_fail(error, SGP_E_FRAME, "%s frame: %zu bytes follow the last field", type,
            reader->from.count - reader->from.at);
    return 0;
}

int sgp_wire_body_decode(const struct sgp_wire_header *header, const uint8_t *body,
    struct sgp_wire_text *text, struct sgp_message *ret_message, struct sgp_error *error)
{
    const struct sgp_schema *schema = sgp_message_schema(header->type);
    sgp_assert(schema && header->body_bytes <= SGP_WIRE_BODY_MAX);

    struct sgp_message message;
    memset(&message, 0, sizeof message);
    message.type = (enum sgp_message_type)header->type;
    if (message.type == SGP_SUMMARY) {
        text->summary = (struct sgp_summary){.wants = false};
        message.summary = &text->summary;
    }
    const char *type = sgp_message_type_name(message.type);
    if (sgp_wire_checksum(body, header->body_bytes) != header->checksum)
        return sgp_fail(error, SGP_E_FRAME, "%s frame: the body's checksum does not match", type);
    struct reader reader = {.from = {.bytes = body,
                                .count = header->body_bytes,
                                .text = text->bytes,
                                .room = sizeof text->bytes}};
    int32_t announced = read_array(&reader.from);
    if (announced < (int32_t)SGP_PULSE_VALUES || announced > (int32_t)VALUES_MAX)
        return sgp_fail(error, SGP_E_FRAME, "%s frame: the body is not an array of %u to %u fields",
            type, SGP_PULSE_VALUES, VALUES_MAX);
    reader.left = (size_t)announced;
    if (sgp_schema_walk(schema, &message, get, &reader) < 0)
        return sgp_fail(
            error, SGP_E_FRAME, "%s frame: field '%s' %s", type, reader.field, reader.fault);
    int code = skip(&reader, type, error);
    if (code < 0)
        return code;
    const char *conflict = sgp_message_conflict(&message);
    if (conflict)
        return sgp_fail(error, SGP_E_FRAME, "%s frame: %s", type, conflict);
    *ret_message = message;
    return 0;
}
