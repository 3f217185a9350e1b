/* SPDX-License-Identifier: Apache-2.0 */
/* The socket at which a program attaches (sgp/attach.h): accepts it, and finds out what it brings.
 *
 * A stranger says hello in one frame with its memory. More than DOOR_STRANGERS_MAX that have not, and the oldest is
 * closed. Whoever does not speak the protocol, or brings a memory that is none, is told why in one line and costs one
 * connection. Fails: at open, with one line. Thread: the loop thread. */
#ifndef SGPD_DOOR_H
#define SGPD_DOOR_H

#include "shared.h"

#include "sgp/attach.h"

#include <uv.h>

#define DOOR_STRANGERS_MAX 4u

struct guest {  /* a program that has said hello */
    int socket; /* does not block */
    int pid;
    struct shared shared;
    struct sgp_attach_frame hello;
};

struct door; /* opaque */

/* Whoever attaches: the guest is the callee's, to be taken in or refused. */
typedef void (*door_entered)(void *context, struct guest *guest);

int door_open(uv_loop_t *loop, const char *path, door_entered entered, void *context,
    struct sgp_error *error, struct door **ret_door);
/* The socket file is removed; the rest goes with the loop. NULL is fine. */
void door_close(struct door *door);

/* Say no in one line, and close. */
void door_refuse(struct guest *guest, int code, const char *why);

#endif
