/* SPDX-License-Identifier: Apache-2.0 */
/* The owner that is co-located with a node that trains. One line of the topology file makes two
 * nodes of them (sgp/topology.h), which run as two processes.
 *
 * The child is an ordinary sgpd, with its own state directory and control socket. This process acts
 * as its service manager. It receives READY=1, WATCHDOG=1 and the other messages of sd_notify(3).
 * The child ends with this process, however this process ends. If the child fails, this process
 * ends, so that the real service manager starts both again.
 *
 * Thread: the loop thread. */
#ifndef SGPD_COLOCATED_OWNER_H
#define SGPD_COLOCATED_OWNER_H

#include "sgp/status.h"

#include <sys/types.h>

struct daemon;

/* The child, as its parent knows it. */
struct colocated_owner {
    pid_t pid;  /* 0: there is no child, or it has ended */
    int notify; /* the socket that receives its messages */
    /* its exit status once it has ended; 1 if a signal ended it that the parent did not send */
    int status;
    bool ready; /* the child has sent READY=1 */
    bool stops; /* the child was told to stop */
    bool reads; /* the child must read the topology file once it is ready */
    bool alive; /* the child has sent WATCHDOG=1 since the last query */
};

/* Create the child, before there is any thread or loop. Returns 1 in the child, 0 in the parent, or
 * -errno with *error filled. The parent owns *ret_owner and waits for the child. */
int colocated_owner_fork(struct sgp_error *error, struct colocated_owner *ret_owner);

/* In the parent, without a loop: end the child, and wait for its end. It is killed after 5 s. Does
 * nothing if there is no child. */
void colocated_owner_end(struct colocated_owner *owner);

/* Listen to the child, and close that again. daemon->colocated_owner may be NULL, here and
 * below. */
void colocated_owner_open(struct daemon *daemon);
void colocated_owner_close(struct daemon *daemon);

/* Send SIGTERM, so that the child ends cleanly. */
void colocated_owner_stop(struct daemon *daemon);

/* The topology file was read again, so the child must read it, too. */
void colocated_owner_reload(struct daemon *daemon);

/* Whether the child is still running. */
bool colocated_owner_runs(const struct daemon *daemon);

/* Whether the child has ended although its work is not done. Then this process ends, too. */
bool colocated_owner_is_missed(const struct daemon *daemon);

/* Whether READY=1 and WATCHDOG=1 to the service manager are true for both processes. */
bool colocated_owner_is_ready(const struct daemon *daemon);
bool colocated_owner_is_alive(struct daemon *daemon); /* since the last query */

#endif
