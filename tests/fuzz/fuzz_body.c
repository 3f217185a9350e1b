/* SPDX-License-Identifier: Apache-2.0 */
/* One body, its checksum made good, so that the fuzzer reaches the fields. The first byte chooses the
 * type of the message. What decodes must encode, and decode again to the same. */
#include "sgp/wire.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size - 1 > SGP_WIRE_BODY_MAX)
        return 0;
    const uint8_t *body = data + 1;
    struct sgp_wire_header header = {.version = SGP_WIRE_VERSION,
        .type = (uint16_t)(SGP_HELLO + data[0] % SGP_MESSAGE_TYPES),
        .body_bytes = (uint32_t)(size - 1),
        .checksum = sgp_wire_checksum(body, size - 1)};
    struct sgp_wire_text text, text_again;
    struct sgp_message message, again;
    struct sgp_error error = {0};
    int code = sgp_wire_body_decode(&header, body, &text, &message, &error);
    sgp_assert(code == error.code && (code == 0 || error.text[0] != '\0'));
    if (code < 0)
        return 0;
    uint8_t first[SGP_WIRE_FRAME_MAX], second[SGP_WIRE_FRAME_MAX];
    size_t first_bytes, second_bytes;
    sgp_assert(sgp_wire_encode(&message, first, sizeof first, &first_bytes) == 0);
    sgp_assert(sgp_wire_header_decode(first, &header, NULL) == 0);
    sgp_assert(sgp_wire_body_decode(
                   &header, first + SGP_WIRE_HEADER_BYTES, &text_again, &again, NULL) == 0);
    sgp_assert(sgp_wire_encode(&again, second, sizeof second, &second_bytes) == 0);
    sgp_assert(first_bytes == second_bytes && memcmp(first, second, first_bytes) == 0);
    return 0;
}
