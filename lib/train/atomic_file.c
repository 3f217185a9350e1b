/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces a file atomically, see atomic_file.h. */
#include "atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sgp_atomic_open(
    struct sgp_atomic_file *file, const char *path, mode_t mode, struct sgp_error *error)
{
    *file = (struct sgp_atomic_file){.fd = -1, .path = path};
    if (asprintf(&file->temporary, "%s.new", path) < 0) {
        file->temporary = NULL;
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    }
    (void)unlink(file->temporary); /* an existing file would keep its mode */
    file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    const int code = file->fd < 0 ? -errno : 0;
    if (code < 0) {
        sgp_fail(error, code, "%s: cannot be written: %s", file->temporary, sgp_strerror(code));
        free(file->temporary);
    }
    return code;
}

void sgp_atomic_write(struct sgp_atomic_file *file, const void *bytes, size_t size)
{
    const unsigned char *next = bytes;
    while (size > 0 && file->status == 0) {
        ssize_t written = write(file->fd, next, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            file->status = -errno;
            return;
        }
        next += written;
        size -= (size_t)written;
    }
}

/* Make the rename itself durable. */
static int directory_sync(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!directory)
        return -ENOMEM;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(directory);
    if (fd < 0)
        return -errno;
    /* Some file systems cannot sync a directory and return EINVAL. They need no such sync. */
    int status = fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
    close(fd);
    return status;
}

void sgp_atomic_sync(struct sgp_atomic_file *file)
{
    if (file->status == 0 && fsync(file->fd) < 0)
        file->status = -errno;
}

static void sync_and_close(struct sgp_atomic_file *file)
{
    sgp_atomic_sync(file);
    if (close(file->fd) < 0 && file->status == 0)
        file->status = -errno;
}

int sgp_atomic_commit(struct sgp_atomic_file *file, struct sgp_error *error)
{
    sync_and_close(file);
    if (file->status == 0 && rename(file->temporary, file->path) < 0)
        file->status = -errno;
    if (file->status < 0)
        unlink(file->temporary);
    else
        file->status = directory_sync(file->path);
    free(file->temporary);
    if (file->status < 0)
        return sgp_fail(error, file->status, "%s: cannot be written: %s", file->path,
            sgp_strerror(file->status));
    return 0;
}

int sgp_atomic_try(const char *path, mode_t mode, struct sgp_error *error)
{
    struct sgp_atomic_file file;
    int code = sgp_atomic_open(&file, path, mode, error);
    if (code < 0)
        return code;
    sgp_atomic_write(&file, "\n", 1);
    sync_and_close(&file);
    (void)unlink(file.temporary);
    free(file.temporary);
    return file.status == 0 ? 0
                            : sgp_fail(error, file.status, "%s: cannot be written: %s", path,
                                  sgp_strerror(file.status));
}
