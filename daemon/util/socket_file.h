/* SPDX-License-Identifier: Apache-2.0 */
/* A Unix socket in the file system: one that nobody listens on any more is replaced, one with a daemon behind it is not.
 * `key` is the configuration's, for messages: "[control] socket". Any thread. */
#ifndef SGPD_SOCKET_FILE_H
#define SGPD_SOCKET_FILE_H

#include "sgp/status.h"

/* Whether `path` is free, or a dead socket's: 0; else -ENAMETOOLONG, -EEXIST, -EADDRINUSE or -errno
 * with *error. Nothing is touched. `type` is SOCK_STREAM or SOCK_SEQPACKET. */
int socket_file_try(const char *path, int type, const char *key, struct sgp_error *error);

/* Bind it with mode 0660 and listen. Returns a descriptor that does not block, or as above. */
int socket_file_listen(const char *path, int type, const char *key, struct sgp_error *error);

#endif
