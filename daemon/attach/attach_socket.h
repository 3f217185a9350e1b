/* SPDX-License-Identifier: Apache-2.0 */
/* The socket at which a program attaches (sgp/attach.h). It accepts the program and finds out
 * what it brings.
 *
 * A stranger says hello in one frame with its memory. Or it asks which node this is with IDENTIFY;
 * then the answer is IDENTITY, and the connection ends.
 *
 * If more than ATTACH_STRANGERS_MAX strangers have sent nothing, the oldest is closed. A stranger
 * that violates the protocol, or brings unusable memory, is told why in one line and loses its
 * connection.
 *
 * Fails: at open, with one line. Thread: the loop thread. */
#ifndef SGPD_ATTACH_SOCKET_H
#define SGPD_ATTACH_SOCKET_H

#include "shared.h"

#include "sgp/attach.h"

#include <uv.h>

#define ATTACH_STRANGERS_MAX 4u

struct attachment { /* a program that has said hello */
    int socket;     /* non-blocking */
    int pid;
    struct shared shared;
    struct sgp_attach_frame hello;
};

struct attach_socket; /* opaque */

struct attach_socket_events {
    /* A program attaches. The callee owns the attachment, and takes it in or refuses it. */
    void (*entered)(void *context, struct attachment *attachment);
    /* Fill in IDENTITY for a program that asks which node this is. */
    void (*identify)(void *context, struct sgp_attach_frame *frame);
};

int attach_socket_open(uv_loop_t *loop, const char *path, const struct attach_socket_events *events,
    void *context, struct sgp_error *error, struct attach_socket **ret_attach_socket);
/* The socket file is removed; the loop frees the rest. NULL is fine. */
void attach_socket_close(struct attach_socket *attach_socket);

/* Refuse in one line, and close. */
void attach_socket_refuse(struct attachment *attachment, int code, const char *why);

#endif
