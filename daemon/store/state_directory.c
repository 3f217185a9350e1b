/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and locks a state directory; see state_directory.h. A second process would replace the
 * ledger, and the first process would commit to a file without a name. */
#include "state_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Temporary files are incomplete and take space. */
static void sweep(int directory)
{
    static const char *const names[] = {"ledger", "checkpoint", "model.safetensors", "history.csv",
        "blas", "privacy", "claim", "run", "report.json", "scale.json", "told", "rollout",
        "train.rows", "test.rows", "best.json", "best.0.safetensors", "best.1.safetensors",
        "best.2.safetensors", "best.3.safetensors", "best.4.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%s.new", names[i]);
        (void)unlinkat(directory, name, 0);
    }
}

#define HANDED "SGPD_STATE_DIRECTORY" /* variable: a descriptor */

static int held = -1; /* opened last */

/* The descriptor of this directory that the program before has handed over; -1: there is none. */
static int take_over(const char *path)
{
    const char *text = getenv(HANDED);
    struct stat handed, wanted;
    char *end = NULL;
    const long number = text != NULL ? strtol(text, &end, 10) : -1;
    const bool sound = number > STDERR_FILENO && number < INT_MAX && *end == '\0';
    (void)unsetenv(HANDED);
    if (!sound || fstat((int)number, &handed) < 0 || !S_ISDIR(handed.st_mode))
        return -1;
    const bool same = stat(path, &wanted) == 0 && wanted.st_dev == handed.st_dev &&
                      wanted.st_ino == handed.st_ino;
    if (same && fcntl((int)number, F_SETFD, FD_CLOEXEC) == 0)
        return (int)number;
    (void)close((int)number); /* of another configuration */
    return -1;
}

void state_directory_hand_over(bool on)
{
    char text[16];
    if (held < 0)
        return;
    (void)snprintf(text, sizeof text, "%d", held);
    (void)fcntl(held, F_SETFD, on ? 0 : FD_CLOEXEC);
    (void)(on ? setenv(HANDED, text, 1) : unsetenv(HANDED));
}

int state_directory_open(const char *path, struct sgp_error *error)
{
    if (mkdir(path, 0750) < 0 && errno != EEXIST)
        return sgp_fail(error, -errno,
            "%s: cannot be made: %s; make the directories above it, or give another [node] "
            "state_directory",
            path, strerror(errno));
    int directory = take_over(path);
    if (directory < 0)
        directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return sgp_fail(error, -errno, "%s: cannot be opened: %s; [node] state_directory names one",
            path, strerror(errno));
    if (flock(directory, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        (void)close(directory);
        return sgp_fail(error, -EBUSY,
            "%s: another sgpd uses this state directory; stop it, or give another [node] "
            "state_directory",
            path);
    }
    sweep(directory);
    return held = directory;
}
