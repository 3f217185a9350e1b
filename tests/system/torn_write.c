/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: the process is killed while it writes a record of an event file of TensorBoard.
 * TORN_RECORD is the number of the record, from 1, and TORN_BYTES says how much of it is written,
 * or how much is missing at its end, if it is negative. */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_event_file(int descriptor)
{
    char link[64], path[4096];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t bytes = readlink(link, path, sizeof path - 1);
    path[bytes > 0 ? bytes : 0] = '\0';
    return strstr(path, "tfevents") != NULL;
}

ssize_t write(int descriptor, const void *bytes, size_t count)
{
    static long records;
    __typeof__(&write) function;
    void *symbol = dlsym(RTLD_NEXT, "write");
    memcpy(&function, &symbol, sizeof function);
    const char *record = getenv("TORN_RECORD"), *torn = getenv("TORN_BYTES");
    if (record == NULL || torn == NULL || !is_event_file(descriptor) ||
        ++records != strtol(record, NULL, 10))
        return function(descriptor, bytes, count);
    const long written = strtol(torn, NULL, 10);
    if (function(descriptor, bytes, written < 0 ? count - (size_t)-written : (size_t)written) > 0)
        (void)kill(getpid(), SIGKILL);
    return -1;
}
