/* SPDX-License-Identifier: Apache-2.0 */
/* The scaling on which the fleet has agreed, for nodes that begin later: a running node answers
 * their questions (sgp/survey.h). It asks none.
 *
 * Fails: a kept scaling that cannot be read, at the start. Thread: the loop thread. */
#ifndef SGPD_BULLETINS_H
#define SGPD_BULLETINS_H

#include "state.h"

/* Without [data] scale = fleet every question is refused. 0, or negative with *error. */
int bulletins_open(struct daemon *daemon, struct sgp_error *error);

/* For the listener. */
void bulletins_on_pull(void *context, struct link *link, const struct sgp_message *pull);

/* The text of the scaling, while the daemon runs; NULL: there is none. */
const char *bulletins_result(const struct daemon *daemon);

void bulletins_close(struct daemon *daemon);
void bulletins_finish(struct daemon *daemon);

#endif
