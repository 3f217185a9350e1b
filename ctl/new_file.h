/* SPDX-License-Identifier: Apache-2.0 */
/* Several files that a command makes, all or none: each is written under a temporary name beside
 * its own, and then given its name (new_file.c). ctl_file_write of ctl.h is both steps of one. */
#ifndef CTL_NEW_FILE_H
#define CTL_NEW_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Make a file beside `path` with a name that no other file has, and set ret_part to it. A file that
 * replaces another has its mode, and its owner and group if this process may set them; a new one
 * has the mode of the umask. Returns a descriptor to write to; or -errno, and nothing is left. */
int ctl_file_open(const char *path, bool replace, char ret_part[PATH_MAX]);

/* Make such a file with this text, on the disk. Returns 0; or -errno, and nothing is left. */
int ctl_file_prepare(
    const char *path, const char *text, size_t bytes, bool replace, char ret_part[PATH_MAX]);

/* Give it its name. Returns 0; -EEXIST if a file is there and is not to be replaced; or another
 * -errno. After a failure the temporary file is removed. */
int ctl_file_place(const char *part, const char *path, bool replace);

#endif
