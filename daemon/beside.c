/* SPDX-License-Identifier: Apache-2.0 */
/* A child that is one more node; see beside.h. */
#include "beside.h"

#include "notes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_BYTES 1024u /* more than a datagram of notify.c has */

/* ---- making it ---- */

/* A socket that the kernel names; *ret_name is that name, as NOTIFY_SOCKET has it. */
static int open_notify(char ret_name[sizeof((struct sockaddr_un *)0)->sun_path])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof address;
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -errno;
    if (bind(descriptor, (const struct sockaddr *)&address, sizeof address.sun_family) < 0 ||
        getsockname(descriptor, (struct sockaddr *)&address, &length) < 0) {
        int code = -errno;
        (void)close(descriptor);
        return code;
    }
    size_t bytes = length - offsetof(struct sockaddr_un, sun_path);
    memcpy(ret_name, address.sun_path, bytes);
    ret_name[0] = '@'; /* abstract */
    ret_name[bytes] = '\0';
    return descriptor;
}

static void become_child(pid_t parent, const struct beside *beside, const char *notify)
{
    char pid[24];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it has ended already */
        _exit(1);
    if (beside->notify < 0)
        return;
    (void)close(beside->notify);
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    (void)setenv("NOTIFY_SOCKET", notify, 1);
    if (getenv("WATCHDOG_PID") != NULL)
        (void)setenv("WATCHDOG_PID", pid, 1);
}

int beside_fork(struct sgp_error *error, struct beside *ret_beside)
{
    char notify[sizeof((struct sockaddr_un *)0)->sun_path] = "";
    struct beside beside = {.notify = -1, .alive = true};
    pid_t parent = getpid();
    if (getenv("NOTIFY_SOCKET") != NULL)
        beside.notify = open_notify(notify);
    if (beside.notify < -1)
        return sgp_fail(error, beside.notify, "cannot make a socket for the owner beside: %s",
            strerror(-beside.notify));
    (void)fflush(NULL); /* or both would write what is in the buffers */
    beside.pid = fork();
    if (beside.pid == 0) {
        become_child(parent, &beside, notify);
        return 1;
    }
    if (beside.pid < 0) {
        int code = -errno;
        if (beside.notify >= 0)
            (void)close(beside.notify);
        return sgp_fail(error, code, "cannot start the owner beside: %s", strerror(-code));
    }
    beside.ready = beside.notify < 0;
    *ret_beside = beside;
    return 0;
}

static void has_ended(struct beside *beside, int status)
{
    beside->pid = 0;
    beside->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void beside_end(struct beside *beside)
{
    int status = 0;
    if (beside->pid > 0 && kill(beside->pid, SIGTERM) == 0 &&
        waitpid(beside->pid, &status, 0) == beside->pid)
        has_ended(beside, status);
    if (beside->notify >= 0)
        (void)close(beside->notify);
    beside->notify = -1;
}

/* ---- what it tells ---- */

static void hear(struct daemon *daemon, const char *words)
{
    struct beside *beside = daemon->beside;
    if (strcmp(words, "READY=1") == 0 && !beside->ready) {
        beside->ready = true;
        notify_ready();
    } else if (strcmp(words, "WATCHDOG=1") == 0) {
        beside->alive = true;
    } else if (strncmp(words, "EXTEND_TIMEOUT_USEC=", 20) == 0) {
        notify_pass_on(words);
    }
}

static void on_words(uv_poll_t *poll, int status, int events)
{
    struct daemon *daemon = poll->data;
    char words[WORDS_BYTES];
    ssize_t bytes;
    (void)events;
    while (status == 0 &&
           (bytes = recv(daemon->beside->notify, words, sizeof words - 1, MSG_DONTWAIT)) >= 0) {
        words[bytes] = '\0';
        hear(daemon, words);
    }
}

/* Whatever comes of it, the service manager shall know. */
static void on_child(uv_signal_t *signal, int number)
{
    struct daemon *daemon = signal->data;
    struct beside *beside = daemon->beside;
    int status;
    (void)number;
    if (beside->pid == 0 || waitpid(beside->pid, &status, WNOHANG) != beside->pid)
        return;
    has_ended(beside, status);
    if (beside->status == 0) {
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=beside ended=1");
    } else {
        notes_error(daemon, "the owner beside this node has ended with status %d", beside->status);
        daemon->exit_status = beside->status;
    }
    daemon->settled(daemon);
}

void beside_open(struct daemon *daemon)
{
    struct beside *beside = daemon->beside;
    (void)uv_signal_init(&daemon->loop, &daemon->beside_ends);
    daemon->beside_ends.data = daemon;
    if (beside == NULL)
        return;
    (void)uv_signal_start(&daemon->beside_ends, on_child, SIGCHLD);
    if (beside->notify >= 0 &&
        uv_poll_init(&daemon->loop, &daemon->beside_tells, beside->notify) == 0) {
        daemon->beside_tells.data = daemon;
        (void)uv_poll_start(&daemon->beside_tells, UV_READABLE, on_words);
    }
    (void)raise(SIGCHLD); /* it may have ended already */
}

void beside_close(struct daemon *daemon)
{
    uv_close((uv_handle_t *)&daemon->beside_ends, NULL);
    if (daemon->beside != NULL && daemon->beside_tells.data == daemon)
        uv_close((uv_handle_t *)&daemon->beside_tells, NULL);
}

/* ---- what it is told ---- */

void beside_stop(struct daemon *daemon)
{
    if (beside_runs(daemon))
        (void)kill(daemon->beside->pid, SIGTERM);
}

void beside_reload(struct daemon *daemon)
{
    if (beside_runs(daemon))
        (void)kill(daemon->beside->pid, SIGHUP);
}

/* ---- what it is ---- */

bool beside_runs(const struct daemon *daemon)
{
    return daemon->beside != NULL && daemon->beside->pid > 0;
}

bool beside_failed(const struct daemon *daemon)
{
    return daemon->beside != NULL && daemon->beside->status != 0;
}

bool beside_is_ready(const struct daemon *daemon)
{
    return daemon->beside == NULL || daemon->beside->ready;
}

bool beside_is_alive(struct daemon *daemon)
{
    struct beside *beside = daemon->beside;
    bool alive = !beside_runs(daemon) || beside->notify < 0 || beside->alive;
    if (beside != NULL)
        beside->alive = false;
    return alive;
}
