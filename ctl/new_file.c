/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a command writes whole, or not at all. */
#include "ctl.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

int ctl_file_write(const char *path, const char *text, size_t bytes, bool replace)
{
    char part[PATH_MAX];
    if ((size_t)snprintf(part, sizeof part, "%s.part", path) >= sizeof part)
        return -ENAMETOOLONG;
    FILE *file = fopen(part, "w");
    if (!file)
        return -errno;
    bool whole =
        fwrite(text, 1, bytes, file) == bytes && fflush(file) == 0 && fsync(fileno(file)) == 0;
    int code = whole ? 0 : -errno;
    (void)fclose(file);
    /* link(2) fails if the name is taken, also by a file that came meanwhile */
    if (code == 0 && (replace ? rename(part, path) : link(part, path)) != 0)
        code = -errno;
    (void)unlink(part);
    return code;
}
