/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: somebody stops the process at a place of its start, SIGTERM, once. STAND_IN_STOP
 * names the function that is called there. A child of it is not stopped: the process does that. */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

static pid_t process;

static void __attribute__((constructor)) begin(void)
{
    process = getpid();
}

static void *real(const char *name)
{
    static bool done;
    const char *place = getenv("STAND_IN_STOP");
    if (!done && getpid() == process && place != NULL && strcmp(place, name) == 0) {
        done = true;
        (void)kill(getpid(), SIGTERM);
    }
    return dlsym(RTLD_NEXT, name);
}

#define CALL(name, ...)                                                                            \
    __typeof__(&name) function;                                                                    \
    void *symbol = real(#name);                                                                    \
    memcpy(&function, &symbol, sizeof function);                                                   \
    return function(__VA_ARGS__)

FILE *fopen(const char *path, const char *mode)
{
    CALL(fopen, path, mode);
}

int flock(int descriptor, int operation)
{
    CALL(flock, descriptor, operation);
}

int listen(int descriptor, int most)
{
    CALL(listen, descriptor, most);
}
