/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about what a lost node accepted, from this node and from others. Thread: the loop
 * thread. */
#ifndef SGPD_INQUIRY_H
#define SGPD_INQUIRY_H

#include "state.h"

void inquiry_init(struct daemon *daemon);
void inquiry_close(struct daemon *daemon);
/* Ask this peer, instead of the previous question. SGP_EVENT_ANSWER follows, but not during the
 * call. */
void inquiry_ask(struct daemon *daemon, uint32_t peer, const struct sgp_inquire *question);

/* For the listener: a node that is no neighbour asks. Answer, and end the connection. */
void inquiry_answer(void *context, struct link *link, const struct sgp_message *message);
/* For the listener: this node's pulse for a node that is no neighbour. */
void inquiry_pulse(void *context, struct sgp_pulse *ret_pulse);

#endif
