/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange of bulletins while the node runs (net/pulls.h): the reports of all nodes, and the
 * scaling on which the fleet has agreed, for nodes that begin later.
 *
 * Fails: a kept scaling that cannot be read, at the start. Thread: the loop thread. */
#ifndef SGPD_BULLETINS_H
#define SGPD_BULLETINS_H

#include "state.h"

/* 0, or negative with *error; bulletins_close is due in both cases. */
int bulletins_open(struct daemon *daemon, struct sgp_error *error);

/* For the listener. */
void bulletins_on_pull(void *context, struct link *link, const struct sgp_message *message);

/* The text of the scaling, while the daemon runs; NULL: there is none. */
const char *bulletins_result(const struct daemon *daemon);

void bulletins_close(struct daemon *daemon);
void bulletins_finish(struct daemon *daemon);

#endif
