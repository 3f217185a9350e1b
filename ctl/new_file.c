/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a command writes whole, or not at all. */
#include "new_file.h"

#include "ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* mkostemp makes a file for its owner alone. */
static int set_mode(int descriptor, const char *path, bool replace)
{
    struct stat old;
    if (replace && stat(path, &old) == 0) {
        if (fchown(descriptor, old.st_uid, old.st_gid) < 0)
            (void)!fchown(descriptor, (uid_t)-1, old.st_gid); /* a member of the group may */
        return fchmod(descriptor, old.st_mode & 0777) < 0 ? -errno : 0;
    }
    const mode_t mask = umask(0);
    (void)umask(mask);
    return fchmod(descriptor, 0666 & ~mask) < 0 ? -errno : 0;
}

static int write_all(int descriptor, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t count = write(descriptor, text, bytes);
        if (count < 0 && errno != EINTR)
            return -errno;
        text += count > 0 ? count : 0;
        bytes -= count > 0 ? (size_t)count : 0;
    }
    return fsync(descriptor) < 0 ? -errno : 0;
}

int ctl_file_open(const char *path, bool replace, char ret_part[PATH_MAX])
{
    if ((size_t)snprintf(ret_part, PATH_MAX, "%s.XXXXXX", path) >= PATH_MAX)
        return -ENAMETOOLONG;
    const int descriptor = mkostemp(ret_part, O_CLOEXEC);
    if (descriptor < 0)
        return -errno;
    const int code = set_mode(descriptor, path, replace);
    if (code == 0)
        return descriptor;
    (void)close(descriptor);
    (void)unlink(ret_part);
    return code;
}

int ctl_file_prepare(
    const char *path, const char *text, size_t bytes, bool replace, char ret_part[PATH_MAX])
{
    const int descriptor = ctl_file_open(path, replace, ret_part);
    if (descriptor < 0)
        return descriptor;
    int code = write_all(descriptor, text, bytes);
    if (close(descriptor) < 0 && code == 0)
        code = -errno;
    if (code < 0)
        (void)unlink(ret_part);
    return code;
}

/* Both fail if the name is taken, also by a file that came meanwhile. File systems such as vfat
 * have no hard links. */
static int place_new(const char *part, const char *path)
{
    if (link(part, path) == 0)
        return unlink(part) < 0 ? -errno : 0;
    if (errno != EPERM && errno != EOPNOTSUPP)
        return -errno;
    return renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

int ctl_file_place(const char *part, const char *path, bool replace)
{
    int code = replace ? 0 : place_new(part, path);
    if (replace && rename(part, path) < 0)
        code = -errno;
    if (code < 0)
        (void)unlink(part);
    return code;
}

int ctl_file_write(const char *path, const char *text, size_t bytes, bool replace)
{
    char part[PATH_MAX];
    const int code = ctl_file_prepare(path, text, bytes, replace, part);
    return code < 0 ? code : ctl_file_place(part, path, replace);
}
