/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and locks a state directory; see state_directory.h. A second process would replace the
 * ledger, and the first process would commit to a file without a name. */
#include "state_directory.h"

#include "util/handed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* The descriptor of this directory that the start before has handed over; -1: there is none. */
static int take_over(const char *path)
{
    struct stat handed, wanted;
    const int descriptor = handed_take(HANDED);
    if (descriptor < 0 || fstat(descriptor, &handed) < 0)
        return -1;
    if (S_ISDIR(handed.st_mode) && stat(path, &wanted) == 0 && wanted.st_dev == handed.st_dev &&
        wanted.st_ino == handed.st_ino)
        return descriptor;
    (void)close(descriptor); /* of another configuration */
    return -1;
}

void state_directory_hand_over(bool on)
{
    handed_over(HANDED, held, on);
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
