/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded before the C library (LD_PRELOAD): no file gets a second name, as on vfat. */
#include <errno.h>

int link(const char *from, const char *to)
{
    (void)from;
    (void)to;
    errno = EPERM;
    return -1;
}
