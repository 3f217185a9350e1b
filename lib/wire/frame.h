/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/wire: the bytes of the header. */
#ifndef SGP_WIRE_FRAME_H
#define SGP_WIRE_FRAME_H

#include "sgp/wire.h"

/* Write a header with its checksum. */
void sgp_wire_header_encode(
    const struct sgp_wire_header *header, uint8_t bytes[SGP_WIRE_HEADER_BYTES]);

#endif
