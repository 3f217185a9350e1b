/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors for the next start of this program; see handed.h. */
#include "handed.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void handed_over(const char *variable, int descriptor, bool on)
{
    char text[16];
    if (descriptor < 0)
        return;
    (void)snprintf(text, sizeof text, "%d", descriptor);
    (void)fcntl(descriptor, F_SETFD, on ? 0 : FD_CLOEXEC);
    (void)(on ? setenv(variable, text, 1) : unsetenv(variable));
}

int handed_take(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    const long number = text != NULL ? strtol(text, &end, 10) : -1;
    const bool sound = number > STDERR_FILENO && number < INT_MAX && *end == '\0';
    (void)unsetenv(variable);
    return sound && fcntl((int)number, F_SETFD, FD_CLOEXEC) == 0 ? (int)number : -1;
}
