/* SPDX-License-Identifier: Apache-2.0 */
/* Cleans up after the launcher, in whatever way it ends; see launch.h. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GROUPS_MAX (2u * LAUNCH_NODES_MAX) /* a daemon and a program for each node */
#define RETRY_NS 10000000L                 /* between two attempts to remove the place */
#define RETRIES_MAX 100u

/* The groups that are running. */
struct groups {
    pid_t leader[GROUPS_MAX];
    size_t count;
};

static void take(struct groups *groups, pid_t word)
{
    pid_t leader = word < 0 ? -word : word;
    for (size_t i = 0; i < groups->count; i++)
        if (groups->leader[i] == leader) {
            groups->leader[i] = groups->leader[--groups->count];
            break;
        }
    if (word > 0 && groups->count < GROUPS_MAX)
        groups->leader[groups->count++] = leader;
}

/* Kill the remaining groups, and remove the place. A dying process may still write a file, so
 * removal is repeated. */
static bool clean_up(const struct groups *groups, const struct launch_place *place)
{
    const struct timespec pause = {.tv_nsec = RETRY_NS};
    bool gone = false;
    for (unsigned i = 0; i < RETRIES_MAX && !gone; i++) {
        for (size_t j = 0; j < groups->count; j++)
            launch_signal(groups->leader[j], SIGKILL);
        if (i > 0)
            (void)nanosleep(&pause, NULL);
        gone = launch_place_remove(place);
    }
    return gone;
}

/* The launcher writes a number for each group: its leader when the group starts, and a negative
 * number when it has ended. */
static _Noreturn void guard(int pipe, const struct launch_place *place)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct groups groups = {.count = 0};
    pid_t word;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)signal(ignored[i], SIG_IGN);
    (void)setsid();
    (void)prctl(PR_SET_NAME, "sgpctl-guard");
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int descriptor = 0; descriptor < 3 && nothing >= 0; descriptor++)
        (void)dup2(nothing, descriptor);
    ssize_t count;
    while ((count = read(pipe, &word, sizeof word)) != 0)
        if (count == (ssize_t)sizeof word)
            take(&groups, word);
        else if (count < 0 && errno != EINTR)
            break;
    _exit(clean_up(&groups, place) ? 0 : 1);
}

int launch_guard_start(const struct launch_place *place, struct launch_guard *ret_guard)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[1]);
        guard(ends[0], place);
    }
    int code = errno;
    (void)close(ends[0]);
    if (pid < 0) {
        (void)close(ends[1]);
        return -code;
    }
    *ret_guard = (struct launch_guard){.pid = pid, .pipe = ends[1]};
    return 0;
}

static void say(const struct launch_guard *guard, pid_t word)
{
    (void)!write(guard->pipe, &word, sizeof word);
}

void launch_guard_add(const struct launch_guard *guard, pid_t leader)
{
    say(guard, leader);
}

void launch_guard_drop(const struct launch_guard *guard, pid_t leader)
{
    say(guard, -leader);
}

bool launch_guard_end(struct launch_guard *guard)
{
    int status = 1;
    (void)close(guard->pipe);
    while (waitpid(guard->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
