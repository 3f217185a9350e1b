/* SPDX-License-Identifier: Apache-2.0 */
/* A message to a whole frame, and a body back to a message. */
#include "wire/fields.h"
#include "wire/frame.h"

#include <errno.h>
#include <string.h>

/* More fields than any version has, and few enough to skip those of a later one. */
#define FIELDS_MAX 64u

struct writer {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
};

/* msgpack-c's packer calls this for every few bytes; a negative answer ends the packing. */
static int append(void *context, const char *bytes, size_t count)
{
    struct writer *writer = context;
    if (count > writer->capacity - writer->count)
        return -ENOBUFS;
    memcpy(writer->bytes + writer->count, bytes, count);
    writer->count += count;
    return 0;
}

static int pack(msgpack_packer *packer, const struct sgp_field *fields, size_t count,
    const struct sgp_message *message)
{
    for (size_t i = 0; i < count; i++) {
        msgpack_object value = sgp_field_load(&fields[i], message);
        if (!sgp_field_accepts(&fields[i], &value))
            return -EINVAL;
        if (msgpack_pack_object(packer, value) < 0)
            return -ENOBUFS;
    }
    return 0;
}

/* A later field that says no more than its absence. */
static bool says_nothing(const struct sgp_field *field, const struct sgp_message *message)
{
    msgpack_object value = sgp_field_load(field, message);
    return field->later && ((value.type == MSGPACK_OBJECT_POSITIVE_INTEGER && value.via.u64 == 0) ||
                               (value.type == MSGPACK_OBJECT_BOOLEAN && !value.via.boolean) ||
                               (value.type == MSGPACK_OBJECT_FLOAT64 && value.via.f64 == 0));
}

int sgp_wire_encode(
    const struct sgp_message *message, uint8_t *frame, size_t capacity, size_t *ret_bytes)
{
    size_t pulse_count, count;
    const struct sgp_field *pulse = sgp_fields_of_pulse(&pulse_count);
    const struct sgp_field *fields = sgp_fields_of(message->type, &count);
    if (!fields)
        return -EINVAL;
    while (count > 0 && says_nothing(&fields[count - 1], message))
        count--;
    if (capacity < SGP_WIRE_HEADER_BYTES)
        return -ENOBUFS;
    struct writer writer = {
        .bytes = frame + SGP_WIRE_HEADER_BYTES, .capacity = capacity - SGP_WIRE_HEADER_BYTES};
    if (writer.capacity > SGP_WIRE_BODY_MAX)
        writer.capacity = SGP_WIRE_BODY_MAX;
    msgpack_packer packer;
    msgpack_packer_init(&packer, &writer, append);
    if (msgpack_pack_array(&packer, pulse_count + count) < 0)
        return -ENOBUFS;
    int code = pack(&packer, pulse, pulse_count, message);
    if (code == 0)
        code = pack(&packer, fields, count, message);
    if (code == 0 && sgp_fields_conflict(message))
        code = -EINVAL;
    if (code < 0)
        return code;
    struct sgp_wire_header header = {.version = SGP_WIRE_VERSION,
        .type = (uint16_t)message->type,
        .body_bytes = (uint32_t)writer.count,
        .checksum = sgp_wire_checksum(writer.bytes, writer.count)};
    sgp_wire_header_encode(&header, frame);
    *ret_bytes = SGP_WIRE_HEADER_BYTES + writer.count;
    return 0;
}

struct reader {
    const uint8_t *bytes;
    size_t count;
    size_t at;
};

/* The array's count of fields, or -1. Read here, because msgpack-c would take memory for as many
 * elements as the header announces. */
static int32_t read_array(struct reader *reader)
{
    if (reader->count >= 1 && (reader->bytes[0] & 0xf0) == 0x90) {
        reader->at = 1;
        return reader->bytes[0] & 0x0f;
    }
    if (reader->count >= 3 && reader->bytes[0] == 0xdc) {
        reader->at = 3;
        return reader->bytes[1] << 8 | reader->bytes[2];
    }
    return -1;
}

/* Whether a value that begins so is one that this protocol uses: a small or unsigned integer, nil, a
 * boolean, a double, a string below 256 bytes. None of them makes msgpack-c nest or allocate. */
static bool scalar(uint8_t lead)
{
    return lead <= 0x7f || (lead >= 0xa0 && lead <= 0xbf) || lead == 0xc0 || lead == 0xc2 ||
           lead == 0xc3 || (lead >= 0xcb && lead <= 0xcf) || lead == 0xd9;
}

/* The next value; a string is borrowed from the body. */
static bool read_value(struct reader *reader, msgpack_object *ret_value)
{
    if (reader->at >= reader->count || !scalar(reader->bytes[reader->at]))
        return false;
    msgpack_zone nothing = {0}; /* given, so that no zone is made for a string */
    msgpack_unpack_return got = msgpack_unpack(
        (const char *)reader->bytes, reader->count, &reader->at, &nothing, ret_value);
    return got == MSGPACK_UNPACK_SUCCESS || got == MSGPACK_UNPACK_EXTRA_BYTES;
}

static int unpack(struct reader *reader, const struct sgp_field *fields, size_t count,
    struct sgp_wire_text *text, struct sgp_message *message, struct sgp_error *error)
{
    const char *type = sgp_message_type_name(message->type);
    for (size_t i = 0; i < count; i++) {
        msgpack_object value;
        if (!read_value(reader, &value))
            return sgp_fail(error, SGP_E_FRAME, "%s frame: field '%s' is cut off or not a scalar",
                type, fields[i].name);
        if (!sgp_field_accepts(&fields[i], &value))
            return sgp_fail(error, SGP_E_FRAME,
                "%s frame: field '%s' is of another type or out of range", type, fields[i].name);
        sgp_field_store(&fields[i], &value, text, message);
    }
    return 0;
}

/* Fields that a later revision of this version has added: whole, and of no meaning here. */
static int skip(struct reader *reader, size_t count, const char *type, struct sgp_error *error)
{
    msgpack_object value;
    for (size_t i = 0; i < count; i++)
        if (!read_value(reader, &value))
            return sgp_fail(
                error, SGP_E_FRAME, "%s frame: an extra field is cut off or not a scalar", type);
    if (reader->at != reader->count)
        return sgp_fail(error, SGP_E_FRAME, "%s frame: %zu bytes follow the last field", type,
            reader->count - reader->at);
    return 0;
}

/* How many fields the first peers of this version sent. */
static size_t count_first(const struct sgp_field *fields, size_t count)
{
    while (count > 0 && fields[count - 1].later)
        count--;
    return count;
}

int sgp_wire_body_decode(const struct sgp_wire_header *header, const uint8_t *body,
    struct sgp_wire_text *text, struct sgp_message *ret_message, struct sgp_error *error)
{
    size_t pulse_count, count;
    const struct sgp_field *pulse = sgp_fields_of_pulse(&pulse_count);
    const struct sgp_field *fields = sgp_fields_of(header->type, &count);
    sgp_assert(fields && header->body_bytes <= SGP_WIRE_BODY_MAX);

    struct sgp_message message = {.type = (enum sgp_message_type)header->type};
    const char *type = sgp_message_type_name(message.type);
    if (sgp_wire_checksum(body, header->body_bytes) != header->checksum)
        return sgp_fail(error, SGP_E_FRAME, "%s frame: the body's checksum does not match", type);
    struct reader reader = {.bytes = body, .count = header->body_bytes};
    int32_t announced = read_array(&reader);
    size_t least = pulse_count + count_first(fields, count);
    if (announced < (int32_t)least || announced > (int32_t)FIELDS_MAX)
        return sgp_fail(error, SGP_E_FRAME,
            "%s frame: the body is not an array of %zu to %u fields", type, least, FIELDS_MAX);
    if ((size_t)announced < pulse_count + count)
        count = (size_t)announced - pulse_count;
    int code = unpack(&reader, pulse, pulse_count, text, &message, error);
    if (code == 0)
        code = unpack(&reader, fields, count, text, &message, error);
    if (code == 0)
        code = skip(&reader, (size_t)announced - pulse_count - count, type, error);
    if (code < 0)
        return code;
    const char *conflict = sgp_fields_conflict(&message);
    if (conflict)
        return sgp_fail(error, SGP_E_FRAME, "%s frame: %s", type, conflict);
    *ret_message = message;
    return 0;
}
