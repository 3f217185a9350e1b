/* SPDX-License-Identifier: Apache-2.0 */
/* A Unix socket in the file system; see socket_file.h. */
#include "socket_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct place {
    struct sockaddr_un address;
    int type;
    const char *key;
};

static int probe(const struct place *place)
{
    int descriptor = socket(AF_UNIX, place->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -errno;
    const struct sockaddr *address = (const struct sockaddr *)&place->address;
    int code = connect(descriptor, address, sizeof place->address) < 0 ? -errno : 0;
    (void)close(descriptor);
    return code;
}

static int set_path(struct place *place, const char *path, struct sgp_error *error)
{
    place->address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(place->address.sun_path, sizeof place->address.sun_path, "%s", path);
    if (length < (int)sizeof place->address.sun_path)
        return 0;
    return sgp_fail(error, -ENAMETOOLONG,
        "%s: longer than the %zu bytes that a socket's path may have; give a shorter %s", path,
        sizeof place->address.sun_path - 1, place->key);
}

/* What exists at the path: 0: nothing. 1: a socket on which no process listens. Else negative. */
static int look(struct place *place, const char *path, struct sgp_error *error)
{
    struct stat status;
    int code = set_path(place, path, error);
    if (code < 0)
        return code;
    if (lstat(path, &status) < 0)
        return errno == ENOENT ? 0 : sgp_fail(error, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISSOCK(status.st_mode))
        return sgp_fail(error, -EEXIST,
            "%s: exists and is not a socket; remove it, or give another %s", path, place->key);
    if (probe(place) != -ECONNREFUSED)
        return sgp_fail(error, -EADDRINUSE,
            "%s: another daemon answers there; stop it, or give another %s", path, place->key);
    return 1;
}

int socket_file_try(const char *path, int type, const char *key, struct sgp_error *error)
{
    struct place place = {.type = type, .key = key};
    int code = look(&place, path, error);
    return code < 0 ? code : 0;
}

static int fail_bind(const struct place *place, int code, struct sgp_error *error)
{
    if (code == -ENOENT)
        return sgp_fail(error, code,
            "%s: cannot be bound: %s; create its directory (systemd does by RuntimeDirectory=)",
            place->address.sun_path, strerror(-code));
    return sgp_fail(error, code, "%s: cannot be bound: %s; give a %s that this user may create",
        place->address.sun_path, strerror(-code), place->key);
}

int socket_file_listen(const char *path, int type, const char *key, struct sgp_error *error)
{
    struct place place = {.type = type, .key = key};
    int code = look(&place, path, error);
    if (code < 0)
        return code;
    if (code > 0 && unlink(path) < 0)
        return sgp_fail(
            error, -errno, "%s: cannot be removed: %s; remove it", path, strerror(errno));
    int descriptor = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return fail_bind(&place, -errno, error);
    /* No client can connect before listen, so the mode is right from the first client on. */
    if (bind(descriptor, (struct sockaddr *)&place.address, sizeof place.address) < 0 ||
        chmod(path, 0660) < 0 || listen(descriptor, SOMAXCONN) < 0) {
        code = -errno;
        (void)close(descriptor);
        return fail_bind(&place, code, error);
    }
    return descriptor;
}
