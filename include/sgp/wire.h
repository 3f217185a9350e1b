/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on a link: messages to frames and back. docs/PROTOCOL.md has the byte tables.
 *
 *     frame = header (32 bytes) | body (msgpack, <= SGP_WIRE_BODY_MAX) | payload
 *
 * Every message is one frame with a body and no payload. The parameters that a SHARE announces
 * follow in CHUNK frames: no body, and the next bytes of the share announced last in this
 * direction. Frames of other messages may come between chunks, so a share never delays a credit or
 * a heartbeat.
 *
 * These functions see neither a socket nor a payload float, keep no state and allocate nothing.
 * Their input is hostile until they have returned 0. Any thread. */
#ifndef SGP_WIRE_H
#define SGP_WIRE_H

#include "sgp/message.h"
#include "sgp/status.h"

#define SGP_WIRE_VERSION 3u
#define SGP_WIRE_HEADER_BYTES 32u
#define SGP_WIRE_BODY_MAX 1024u
#define SGP_WIRE_FRAME_MAX (SGP_WIRE_HEADER_BYTES + SGP_WIRE_BODY_MAX) /* of a message */
#define SGP_WIRE_CHUNK_MAX (1024u * 1024u)                             /* bytes; a multiple of 4 */
#define SGP_WIRE_CHUNK 255u /* the frame type that enum sgp_message_type lacks */

/* A decoded header. If the type is one of enum sgp_message_type, payload_bytes is 0. If it is
 * SGP_WIRE_CHUNK, body_bytes is 0. */
struct sgp_wire_header {
    uint16_t version;
    uint16_t type;
    uint32_t body_bytes;    /* <= SGP_WIRE_BODY_MAX */
    uint32_t payload_bytes; /* <= SGP_WIRE_CHUNK_MAX, a multiple of 4 */
    uint32_t checksum;      /* sgp_wire_checksum of the body or payload that follows */
};

/* The memory of decoded strings, and of a summary; the message borrows them. A body has at least as
 * many bytes as its strings with their zeros. */
struct sgp_wire_text {
    struct sgp_summary summary;
    char bytes[SGP_WIRE_BODY_MAX];
};

/* Write the frame of a message, header and body, to frame[0..*ret_bytes).
 * SGP_WIRE_FRAME_MAX bytes of capacity always suffice. Returns 0, -EINVAL for a message that every
 * peer would refuse (a field out of range, a string too long), -ENOBUFS if it does not fit. */
int sgp_wire_encode(
    const struct sgp_message *message, uint8_t *frame, size_t capacity, size_t *ret_bytes);

/* Write the header of a chunk of payload_bytes bytes (4 .. SGP_WIRE_CHUNK_MAX, a multiple of 4)
 * with this checksum, which may have any value on a ciphered connection. */
void sgp_wire_chunk_header(
    uint32_t payload_bytes, uint32_t checksum, uint8_t ret_header[SGP_WIRE_HEADER_BYTES]);

/* Whether bytes[0..count), the first of a connection, can begin a frame. count may have any value,
 * so that a stranger is recognised before 32 bytes have arrived. Returns 0, or SGP_E_FRAME. If the
 * peer calls, which means that it dialled, the text names the caller: an HTTP client, a TLS
 * client, ... */
int sgp_wire_start_check(const uint8_t *bytes, size_t count, bool calls, struct sgp_error *error);

/* Decode a header. Returns 0; SGP_E_FRAME (not a frame of ours, damaged, or a limit exceeded);
 * SGP_E_VERSION: a sound header of another protocol version. In the last case *ret_header is filled
 * too: report the version, since nothing after the header can be decoded. */
int sgp_wire_header_decode(const uint8_t bytes[SGP_WIRE_HEADER_BYTES],
    struct sgp_wire_header *ret_header, struct sgp_error *error);

/* Decode the body of a message: body[0..header->body_bytes), of a header that decoded to 0 and is
 * not a chunk's. Checks the checksum, and the exact type and range of every field; a field that is
 * missing at the end is 0, or false. Checks that doubles are finite, that strings are printable
 * UTF-8, and that nothing follows. Strings of *ret_message, and its summary, lie in *text. Returns
 * 0 or SGP_E_FRAME; on failure *ret_message is untouched (*text is not). */
int sgp_wire_body_decode(const struct sgp_wire_header *header, const uint8_t *body,
    struct sgp_wire_text *text, struct sgp_message *ret_message, struct sgp_error *error);

/* The checksum of headers, bodies and payloads: the low 32 bits of XXH3-64. */
uint32_t sgp_wire_checksum(const uint8_t *bytes, size_t count);

#endif
