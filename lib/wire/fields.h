/* SPDX-License-Identifier: Apache-2.0 */
/* Inside lib/wire and lib/journal: what each message holds on the wire, in order, and in which ranges.
 *
 * One form serves both directions, so what encode lets out is what decode lets in. */
#ifndef SGP_WIRE_FIELDS_H
#define SGP_WIRE_FIELDS_H

#include "base/form.h"

#include "sgp/wire.h"

#define SGP_PULSE_VALUES 6u /* with which every body begins */

/* The values of a type, out of struct sgp_message; NULL for a type that is not a message's. */
const struct sgp_form *sgp_message_form(uint32_t type);

/* What one field cannot say alone: NULL, or what is wrong with the message. */
const char *sgp_message_conflict(const struct sgp_message *message);

/* struct sgp_fingerprint, which greetings and the journal have in common. */
extern const struct sgp_form sgp_fingerprint_form;

#endif
