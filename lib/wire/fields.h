/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/wire and lib/journal: the fields of each message on the wire, in order, with
 * their ranges.
 *
 * One schema serves both directions, so decode accepts exactly what encode produces. */
#ifndef SGP_WIRE_FIELDS_H
#define SGP_WIRE_FIELDS_H

#include "base/schema.h"

#include "sgp/wire.h"

#define SGP_PULSE_VALUES 6u /* values at the start of every body */

/* The fields of a message type in struct sgp_message. NULL: the type is not that of a message. */
const struct sgp_schema *sgp_message_schema(uint32_t type);

/* A conflict between fields, as text. NULL: there is none. */
const char *sgp_message_conflict(const struct sgp_message *message);

/* The schema of struct sgp_fingerprint, which greetings and the journal share. */
extern const struct sgp_schema sgp_fingerprint_schema;

#endif
