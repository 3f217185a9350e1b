/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed header before every frame, and the detection of other protocols.
 *
 * The header's layout and checksum are the same in every protocol version. So a peer of another
 * version is told so, instead of being treated as noise. */
#include "wire/frame.h"

#include <string.h>
#include <xxhash.h>

enum { /* offsets; little-endian */
    MAGIC_AT = 0,
    VERSION_AT = 4,
    TYPE_AT = 6,
    BODY_BYTES_AT = 8,
    PAYLOAD_BYTES_AT = 12,
    RESERVED_AT = 16,
    FOLLOWING_CHECKSUM_AT = 24,
    CHECKSUM_AT = 28,
};

/* The first byte does not occur in text, so no line of text begins a frame. */
static const uint8_t magic[4] = {0x9d, 'S', 'G', 'P'};

static void put(uint8_t *bytes, uint32_t value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get(const uint8_t *bytes, size_t count)
{
    uint32_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint32_t)bytes[i] << (8 * i);
    return value;
}

uint32_t sgp_wire_checksum(const uint8_t *bytes, size_t count)
{
    return (uint32_t)XXH3_64bits(bytes, count);
}

void sgp_wire_header_encode(
    const struct sgp_wire_header *header, uint8_t bytes[SGP_WIRE_HEADER_BYTES])
{
    memset(bytes, 0, SGP_WIRE_HEADER_BYTES);
    memcpy(bytes + MAGIC_AT, magic, sizeof magic);
    put(bytes + VERSION_AT, header->version, 2);
    put(bytes + TYPE_AT, header->type, 2);
    put(bytes + BODY_BYTES_AT, header->body_bytes, 4);
    put(bytes + PAYLOAD_BYTES_AT, header->payload_bytes, 4);
    put(bytes + FOLLOWING_CHECKSUM_AT, header->checksum, 4);
    put(bytes + CHECKSUM_AT, sgp_wire_checksum(bytes, CHECKSUM_AT), 4);
}

void sgp_wire_chunk_header(
    uint32_t payload_bytes, uint32_t checksum, uint8_t ret_header[SGP_WIRE_HEADER_BYTES])
{
    sgp_assert(payload_bytes > 0 && payload_bytes <= SGP_WIRE_CHUNK_MAX && payload_bytes % 4 == 0);
    struct sgp_wire_header header = {.version = SGP_WIRE_VERSION,
        .type = SGP_WIRE_CHUNK,
        .payload_bytes = payload_bytes,
        .checksum = checksum};
    sgp_wire_header_encode(&header, ret_header);
}

/* The program that begins a connection with these bytes. */
static const char *stranger(const uint8_t *bytes, size_t count)
{
    static const struct {
        const char *start;
        const char *who;
    } known[] = {{"GET ", "an HTTP client"}, {"HEAD ", "an HTTP client"},
        {"POST ", "an HTTP client"}, {"PUT ", "an HTTP client"}, {"DELETE ", "an HTTP client"},
        {"OPTIONS ", "an HTTP client"}, {"CONNECT ", "an HTTP client"},
        {"PRI * ", "an HTTP client"}, {"\x16\x03", "a TLS client"}, {"SSH-", "an SSH client"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (count >= strlen(known[i].start) &&
            memcmp(bytes, known[i].start, strlen(known[i].start)) == 0)
            return known[i].who;
    return "a stranger";
}

int sgp_wire_start_check(const uint8_t *bytes, size_t count, bool calls, struct sgp_error *error)
{
    if (memcmp(bytes, magic, count < sizeof magic ? count : sizeof magic) == 0)
        return 0;
    if (!calls)
        return sgp_fail(error, SGP_E_FRAME, "the peer sent bytes that are not a frame of sgpd");
    return sgp_fail(error, SGP_E_FRAME,
        "%s is calling: its first bytes are not a frame of sgpd; this port is for peers only",
        stranger(bytes, count));
}

/* Check the lengths and reserved bytes of a header of this version. */
static int check(
    const struct sgp_wire_header *header, const uint8_t *bytes, struct sgp_error *error)
{
    static const uint8_t zero[FOLLOWING_CHECKSUM_AT - RESERVED_AT];
    bool chunk = header->type == SGP_WIRE_CHUNK;
    if (!chunk && (header->type < SGP_HELLO || header->type > SGP_MESSAGE_TYPES))
        return sgp_fail(error, SGP_E_FRAME, "frame type %u is not known", header->type);
    if (memcmp(bytes + RESERVED_AT, zero, sizeof zero) != 0)
        return sgp_fail(error, SGP_E_FRAME, "reserved bytes of the header are not 0");
    if (chunk ? header->body_bytes != 0
              : header->body_bytes == 0 || header->body_bytes > SGP_WIRE_BODY_MAX)
        return sgp_fail(error, SGP_E_FRAME,
            "a body of %u bytes; a message has 1 to %u, a chunk none", header->body_bytes,
            SGP_WIRE_BODY_MAX);
    if (chunk ? header->payload_bytes == 0 || header->payload_bytes > SGP_WIRE_CHUNK_MAX ||
                    header->payload_bytes % 4 != 0
              : header->payload_bytes != 0)
        return sgp_fail(error, SGP_E_FRAME,
            "a payload of %u bytes; a chunk has 4 to %u and a multiple of 4, a message none",
            header->payload_bytes, SGP_WIRE_CHUNK_MAX);
    return 0;
}

int sgp_wire_header_decode(const uint8_t bytes[SGP_WIRE_HEADER_BYTES],
    struct sgp_wire_header *ret_header, struct sgp_error *error)
{
    int code = sgp_wire_start_check(bytes, SGP_WIRE_HEADER_BYTES, false, error);
    if (code < 0)
        return code;
    if (sgp_wire_checksum(bytes, CHECKSUM_AT) != get(bytes + CHECKSUM_AT, 4))
        return sgp_fail(error, SGP_E_FRAME, "the header's checksum does not match");
    struct sgp_wire_header header = {.version = (uint16_t)get(bytes + VERSION_AT, 2),
        .type = (uint16_t)get(bytes + TYPE_AT, 2),
        .body_bytes = get(bytes + BODY_BYTES_AT, 4),
        .payload_bytes = get(bytes + PAYLOAD_BYTES_AT, 4),
        .checksum = get(bytes + FOLLOWING_CHECKSUM_AT, 4)};
    if (header.version != SGP_WIRE_VERSION) {
        *ret_header = header;
        return sgp_fail(error, SGP_E_VERSION,
            "the peer speaks protocol version %u; this program speaks version %u", header.version,
            SGP_WIRE_VERSION);
    }
    code = check(&header, bytes, error);
    if (code == 0)
        *ret_header = header;
    return code;
}
