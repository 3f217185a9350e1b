/* SPDX-License-Identifier: Apache-2.0 */
/* Cleans up after the launcher, in whatever way it ends; see launch.h. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

/* What the launcher and the watch say to each other. */
struct pipes {
    int answer[2]; /* the watch writes the place, once it is made */
    int groups[2]; /* the launcher writes a number for each group: its leader when the group starts,
                      and a negative number when it has ended */
};

/* The watch makes the place itself. So it knows of it in time, whenever the launcher is killed, and
 * no signal to the launcher's group reaches the watch after that. */
static _Noreturn void run_watch(struct ctl *ctl, const char *keep, const struct pipes *pipes)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct groups groups = {.count = 0};
    struct launch_place place;
    pid_t word;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)signal(ignored[i], SIG_IGN);
    (void)setsid();
    (void)prctl(PR_SET_NAME, "sgpctl-watch");
    enum ctl_exit status = launch_place_make(ctl, keep, &place);
    (void)fflush(stdout);
    if (status != CTL_DONE)
        _exit((int)status);
    (void)!write(pipes->answer[1], &place, sizeof place); /* less than a pipe takes */
    (void)close(pipes->answer[1]);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int descriptor = 0; descriptor < 3 && nothing >= 0; descriptor++)
        (void)dup2(nothing, descriptor);
    ssize_t count;
    while ((count = read(pipes->groups[0], &word, sizeof word)) != 0)
        if (count == (ssize_t)sizeof word)
            take(&groups, word);
        else if (count < 0 && errno != EINTR)
            break;
    _exit(clean_up(&groups, &place) ? 0 : 1);
}

/* Returns its status, as of waitpid. */
static int end(const struct launch_watch *watch)
{
    int status = SIGKILL;
    (void)close(watch->pipe);
    while (waitpid(watch->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static int start(
    struct ctl *ctl, const char *keep, struct pipes *pipes, struct launch_watch *ret_watch)
{
    if (pipe2(pipes->answer, O_CLOEXEC) < 0)
        return -errno;
    int code = pipe2(pipes->groups, O_CLOEXEC) < 0 ? -errno : 0;
    (void)fflush(stdout); /* what is in its buffer would be printed twice */
    pid_t pid = code < 0 ? -1 : fork();
    if (pid == 0) {
        (void)close(pipes->answer[0]);
        (void)close(pipes->groups[1]);
        run_watch(ctl, keep, pipes);
    }
    if (code == 0 && pid < 0) {
        code = -errno;
        (void)close(pipes->groups[0]);
        (void)close(pipes->groups[1]);
    }
    (void)close(pipes->answer[1]);
    if (code < 0) {
        (void)close(pipes->answer[0]);
        return code;
    }
    (void)close(pipes->groups[0]);
    *ret_watch = (struct launch_watch){.pid = pid, .pipe = pipes->groups[1]};
    return 0;
}

enum ctl_exit launch_watch_start(struct ctl *ctl, const char *keep, struct launch_place *ret_place,
    struct launch_watch *ret_watch)
{
    struct pipes pipes;
    size_t used = 0;
    ssize_t count = 1;
    int code = start(ctl, keep, &pipes, ret_watch);
    if (code < 0)
        return ctl_fail(ctl, CTL_FAILED, "a process cannot be started: %s", sgp_strerror(code));
    while (used < sizeof *ret_place && count != 0) {
        count = read(pipes.answer[0], (char *)ret_place + used, sizeof *ret_place - used);
        if (count < 0 && errno != EINTR)
            break;
        used += count > 0 ? (size_t)count : 0;
    }
    (void)close(pipes.answer[0]);
    if (used == sizeof *ret_place)
        return CTL_DONE;
    int status = end(ret_watch);
    return WIFEXITED(status) && WEXITSTATUS(status) != 0 /* the watch has told why */
               ? (enum ctl_exit)WEXITSTATUS(status)
               : ctl_fail(ctl, CTL_FAILED, "the process that would clean up was killed");
}

static void say(const struct launch_watch *watch, pid_t word)
{
    (void)!write(watch->pipe, &word, sizeof word);
}

void launch_watch_add(const struct launch_watch *watch, pid_t leader)
{
    say(watch, leader);
}

void launch_watch_drop(const struct launch_watch *watch, pid_t leader)
{
    say(watch, -leader);
}

bool launch_watch_end(struct launch_watch *watch)
{
    int status = end(watch);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
