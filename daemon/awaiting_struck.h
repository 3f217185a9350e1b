/* SPDX-License-Identifier: Apache-2.0 */
/* A node that the signed topology file in use does not name any more: it sends nothing, and waits
 * for its operator. The control socket says so, and is told to stop, or to read a later file that
 * names the node again. Thread: the loop thread, which is the only thread. */
#ifndef SGPD_AWAITING_STRUCK_H
#define SGPD_AWAITING_STRUCK_H

#include "setup/config.h"
#include "util/log.h"

/* 0: it was told to stop; 1: its file names it again, so the program should start anew; or negative
 * with *error. */
int awaiting_struck_wait(const struct config *config, struct log *log, struct sgp_error *error);

#endif
