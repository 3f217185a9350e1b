/* SPDX-License-Identifier: Apache-2.0 */
/* The socket at which a program attaches (sgp/attach.h): accepts it, and finds out what it brings.
 *
 * A stranger says hello in one frame with its memory, or asks which node this is: IDENTIFY, then IDENTITY, and the
 * connection ends. More than DOOR_STRANGERS_MAX that have not, and the oldest is
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

struct door_events {
    /* Whoever attaches: the guest is the callee's, to be taken in or refused. */
    void (*entered)(void *context, struct guest *guest);
    /* Fill in IDENTITY for a program that asks which node this is. */
    void (*identify)(void *context, struct sgp_attach_frame *frame);
};

int door_open(uv_loop_t *loop, const char *path, const struct door_events *events, void *context,
    struct sgp_error *error, struct door **ret_door);
/* The socket file is removed; the rest goes with the loop. NULL is fine. */
void door_close(struct door *door);

/* Say no in one line, and close. */
void door_refuse(struct guest *guest, int code, const char *why);

#endif
