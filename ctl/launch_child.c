/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes and their groups; see launch.h.
 *
 * uv_spawn cannot set the signal that a child gets when its parent dies. Nor can it make a process
 * group without a new session. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_FOUND 127 /* as in a shell */
#define NOT_RUN 126

static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE};

/* In the child: only functions that are safe between fork and exec. */
static _Noreturn void become(
    const struct launch_command *command, pid_t parent, const sigset_t *mask)
{
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent died before prctl */
        _exit(NOT_RUN);
    int input = command->input > 0 ? command->input : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input < 0 || dup2(input, 0) < 0 || dup2(command->output, 1) < 0 ||
        dup2(command->error, 2) < 0)
        _exit(NOT_RUN);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
        (void)signal(handled[i], SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)execve(command->path, command->arguments, command->environment);
    int code = errno;
    const char *why = strerrordesc_np(code);
    (void)!write(2, command->path, strlen(command->path));
    (void)!write(2, ": ", 2);
    (void)!write(2, why, strlen(why));
    (void)!write(2, "\n", 1);
    _exit(code == ENOENT ? NOT_FOUND : NOT_RUN);
}

pid_t launch_start(const struct launch_command *command)
{
    sigset_t all, before;
    pid_t parent = getpid();
    (void)sigfillset(&all);
    /* A handler of libuv that ran in the child would write into the parent's loop. */
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    int code = errno;
    if (pid == 0)
        become(command, parent, &before);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return -code;
    (void)setpgid(pid, pid); /* parent and child both call it, so that a signal finds the group */
    return pid;
}

pid_t launch_reap(int *ret_status, int *ret_signal)
{
    siginfo_t ended = {.si_pid = 0};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) < 0 || ended.si_pid == 0)
        return 0;
    /* Until the process is waited for, no other process gets its number. */
    launch_signal(ended.si_pid, SIGKILL);
    (void)waitpid(ended.si_pid, NULL, 0);
    *ret_signal = ended.si_code == CLD_EXITED ? 0 : ended.si_status;
    *ret_status = *ret_signal == 0 ? ended.si_status : 128 + *ret_signal;
    return ended.si_pid;
}

void launch_signal(pid_t leader, int number)
{
    if (leader > 0)
        (void)kill(-leader, number);
}

/* An older kernel has no such file, and NULL is returned. */
static FILE *open_children(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    return fopen(path, "re");
}

bool launch_adopt(struct launch_children *ret_own)
{
    struct launch_children own = {.count = 0};
    bool complete = true;
    int pid;
    FILE *file = open_children();
    while (complete && file && fscanf(file, "%d", &pid) == 1) {
        pid_t *longer = realloc(own.list, (own.count + 1) * sizeof *longer);
        complete = longer != NULL;
        own.list = complete ? longer : own.list;
        if (complete)
            own.list[own.count++] = pid;
    }
    if (file)
        (void)fclose(file);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    *ret_own = own;
    return complete;
}

void launch_children_free(struct launch_children *children)
{
    free(children->list);
}

static bool is_known(pid_t pid, const pid_t *known, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (known[i] == pid)
            return true;
    return false;
}

void launch_kill_adopted(const struct launch_children *own, const pid_t *known, size_t count)
{
    int pid;
    FILE *file = open_children();
    while (file && fscanf(file, "%d", &pid) == 1)
        if (!is_known(pid, own->list, own->count) && !is_known(pid, known, count))
            (void)kill(pid, SIGKILL);
    if (file)
        (void)fclose(file);
}
