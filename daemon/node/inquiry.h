/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about what a lost node accepted: ours, and strangers'. Thread: the loop thread. */
#ifndef SGPD_INQUIRY_H
#define SGPD_INQUIRY_H

#include "state.h"

void inquiry_init(struct daemon *daemon);
void inquiry_close(struct daemon *daemon);
/* Ask it of this peer, instead of the question before; SGP_EVENT_ANSWER follows, never from within. */
void inquiry_ask(struct daemon *daemon, uint32_t peer, const struct sgp_inquire *question);

/* For the listener: a stranger asks. Answer, and end the connection. */
void inquiry_answer(void *context, struct link *link, const struct sgp_message *message);
/* For the listener: what this node says of itself to one that is no neighbour. */
void inquiry_pulse(void *context, struct sgp_pulse *ret_pulse);

#endif
