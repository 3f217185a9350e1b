/* SPDX-License-Identifier: Apache-2.0 */
/* A Unix socket in the file system. If no process listens on it any more, it is replaced. If a
 * daemon listens on it, it is not. `key` is the configuration's, for messages: "[control] socket".
 * Any thread. */
#ifndef SGPD_SOCKET_FILE_H
#define SGPD_SOCKET_FILE_H

#include "sgp/status.h"

/* Whether `path` is free, or a stale socket: 0. Else -ENAMETOOLONG, -EEXIST, -EADDRINUSE or -errno
 * with *error. Nothing is changed. `type` is SOCK_STREAM or SOCK_SEQPACKET. */
int socket_file_try(const char *path, int type, const char *key, struct sgp_error *error);

/* Bind the socket with mode 0660 and listen. Returns a non-blocking descriptor, or an error as
 * above. */
int socket_file_listen(const char *path, int type, const char *key, struct sgp_error *error);

#endif
