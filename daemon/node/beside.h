/* SPDX-License-Identifier: Apache-2.0 */
/* The owner beside a node that trains: what one line of the topology file makes two nodes of (sgp/topology.h) runs as two processes.
 *
 * The child is an sgpd as any, with a state directory and a control socket of its own. To it this process is the service
 * manager: it hears READY=1, WATCHDOG=1 and what else sd_notify(3) says. The child ends with this process, however that
 * ends; if the child fails, this process ends, so that the real service manager starts both again.
 *
 * Thread: the loop thread. */
#ifndef SGPD_BESIDE_H
#define SGPD_BESIDE_H

#include "sgp/status.h"

#include <sys/types.h>

struct daemon;

/* The child, as the process knows it that made it. */
struct beside {
    pid_t pid;  /* 0: there is none, or it has ended */
    int notify; /* the socket on which it tells */
    int status; /* once it has ended: its exit status; 1 if a signal ended it that was not ours */
    bool ready; /* it said so */
    bool stops; /* it was told to stop */
    bool reads; /* the topology file, once it is ready */
    bool alive; /* it said so since this was last asked */
};

/* Make the child, before there is any thread or loop. Returns 1 in the child, 0 in the parent, which owns *ret_beside and waits for
 * it; or -errno with *error filled. */
int beside_fork(struct sgp_error *error, struct beside *ret_beside);

/* The parent, without a loop: end the child, and wait until it has ended, killed after 5 s. Nothing if there is none. */
void beside_end(struct beside *beside);

/* Listen to the child, and close that again; daemon->beside may be NULL, here and below. */
void beside_open(struct daemon *daemon);
void beside_close(struct daemon *daemon);

/* SIGTERM: it ends cleanly. */
void beside_stop(struct daemon *daemon);

/* The topology file was read again: the child reads it, too. */
void beside_reload(struct daemon *daemon);

/* Whether the child has not ended yet. */
bool beside_runs(const struct daemon *daemon);

/* It has, and not because its work is done: so does this process. */
bool beside_is_missed(const struct daemon *daemon);

/* What the service manager is told, READY=1 and WATCHDOG=1, holds for both. */
bool beside_is_ready(const struct daemon *daemon);
bool beside_is_alive(struct daemon *daemon); /* since the last time */

#endif
