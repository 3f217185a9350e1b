/* SPDX-License-Identifier: Apache-2.0 */
/* Whole streams of frames, as a link reads them: start, header, body or chunk, and again. */
#include "sgp/wire.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sgp_error start = {0};
    (void)sgp_wire_start_check(data, size, true, &start);
    sgp_assert((start.code == 0) == (start.text[0] == '\0'));
    while (size >= SGP_WIRE_HEADER_BYTES) {
        struct sgp_wire_header header;
        struct sgp_error error = {0};
        int code = sgp_wire_header_decode(data, &header, &error);
        sgp_assert(code == error.code);
        if (code < 0)
            return 0;
        data += SGP_WIRE_HEADER_BYTES;
        size -= SGP_WIRE_HEADER_BYTES;
        size_t follows = header.body_bytes + header.payload_bytes;
        if (follows > size)
            return 0;
        struct sgp_wire_text text;
        struct sgp_message message;
        if (header.type != SGP_WIRE_CHUNK &&
            sgp_wire_body_decode(&header, data, &text, &message, &error) < 0)
            return 0;
        data += follows;
        size -= follows;
    }
    return 0;
}
