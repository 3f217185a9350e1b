/* SPDX-License-Identifier: Apache-2.0 */
/* The socket at which a program attaches (sgp/attach.h). The door accepts the program and finds out
 * what it brings.
 *
 * A stranger says hello in one frame with its memory. Or it asks which node this is with IDENTIFY;
 * then the answer is IDENTITY, and the connection ends.
 *
 * If more than DOOR_STRANGERS_MAX strangers have sent nothing, the oldest is closed. A stranger
 * that violates the protocol, or brings unusable memory, is told why in one line and loses its
 * connection.
 *
 * Fails: at open, with one line. Thread: the loop thread. */
#ifndef SGPD_DOOR_H
#define SGPD_DOOR_H

#include "shared.h"

#include "sgp/attach.h"

#include <uv.h>

#define DOOR_STRANGERS_MAX 4u

struct guest {  /* a program that has said hello */
    int socket; /* non-blocking */
    int pid;
    struct shared shared;
    struct sgp_attach_frame hello;
};

struct door; /* opaque */

struct door_events {
    /* A program attaches. The callee owns the guest, and takes it in or refuses it. */
    void (*entered)(void *context, struct guest *guest);
    /* Fill in IDENTITY for a program that asks which node this is. */
    void (*identify)(void *context, struct sgp_attach_frame *frame);
};

int door_open(uv_loop_t *loop, const char *path, const struct door_events *events, void *context,
    struct sgp_error *error, struct door **ret_door);
/* The socket file is removed; the loop frees the rest. NULL is fine. */
void door_close(struct door *door);

/* Refuse in one line, and close. */
void door_refuse(struct guest *guest, int code, const char *why);

#endif
