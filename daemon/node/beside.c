/* SPDX-License-Identifier: Apache-2.0 */
/* The co-located owner as a child process; see beside.h. */
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
#include <time.h>
#include <unistd.h>

#define END_NS (5 * SGP_SECOND)
#define END_PACE_NS (10 * SGP_MILLISECOND)
#define WORDS_BYTES 1024u /* more than a datagram of notify.c has */

/* ---- starting the child ---- */

/* A socket that the kernel names. *ret_name is that name, in the form of NOTIFY_SOCKET. */
static int open_notify(char ret_name[sizeof((struct sockaddr_un *)0)->sun_path])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof address;
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -errno;
    /* the kernel reports the sender, because every user of this machine may send */
    const int yes = 1;
    if (setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) < 0 ||
        bind(descriptor, (const struct sockaddr *)&address, sizeof address.sun_family) < 0 ||
        getsockname(descriptor, (struct sockaddr *)&address, &length) < 0) {
        int code = -errno;
        (void)close(descriptor);
        return code;
    }
    size_t bytes = length - offsetof(struct sockaddr_un, sun_path);
    memcpy(ret_name, address.sun_path, bytes);
    ret_name[0] = '@'; /* an abstract name */
    ret_name[bytes] = '\0';
    return descriptor;
}

static void become_child(pid_t parent, const struct beside *beside, const char *notify)
{
    char pid[24];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent has ended already */
        _exit(1);
    (void)setpgid(0, 0); /* signals of a terminal are for the parent, which sends its own */
    (void)close(beside->notify);
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    (void)setenv("NOTIFY_SOCKET", notify, 1);
    if (getenv("WATCHDOG_PID") != NULL)
        (void)setenv("WATCHDOG_PID", pid, 1);
}

int beside_fork(struct sgp_error *error, struct beside *ret_beside)
{
    char notify[sizeof((struct sockaddr_un *)0)->sun_path] = "";
    struct beside beside = {.notify = open_notify(notify), .alive = true};
    pid_t parent = getpid();
    if (beside.notify < 0)
        return sgp_fail(error, beside.notify, "cannot make a socket for the owner beside: %s",
            strerror(-beside.notify));
    (void)signal(SIGCHLD, SIG_DFL); /* otherwise its end could go unnoticed */
    (void)fflush(NULL);             /* otherwise both processes would write the buffered output */
    beside.pid = fork();
    if (beside.pid == 0) {
        become_child(parent, &beside, notify);
        return 1;
    }
    if (beside.pid < 0) {
        int code = -errno;
        (void)close(beside.notify);
        return sgp_fail(error, code, "cannot start the owner beside: %s", strerror(-code));
    }
    *ret_beside = beside;
    return 0;
}

/* A second SIGTERM kills the child while it ends. This end was ordered, so the status is 0. */
static void has_ended(struct beside *beside, int status)
{
    bool ours = beside->stops && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
    beside->pid = 0;
    beside->status = WIFEXITED(status) ? WEXITSTATUS(status) : !ours;
}

/* Whether the child has ended within `time`. */
static bool ends_within(struct beside *beside, sgp_time time)
{
    const struct timespec pace = {.tv_nsec = END_PACE_NS};
    int status = 0;
    for (sgp_time waited = 0; waited <= time; waited += END_PACE_NS) {
        if (waitpid(beside->pid, &status, WNOHANG) == beside->pid) {
            has_ended(beside, status);
            return true;
        }
        (void)nanosleep(&pace, NULL);
    }
    return false;
}

void beside_end(struct beside *beside)
{
    static const int numbers[] = {SIGTERM, SIGKILL};
    beside->stops = true;
    for (size_t i = 0; i < 2 && beside->pid > 0; i++) {
        (void)kill(beside->pid, numbers[i]);
        (void)ends_within(beside, END_NS);
    }
    (void)close(beside->notify);
}

/* ---- messages of the child ---- */

static void hear(struct daemon *daemon, const char *words)
{
    struct beside *beside = daemon->beside;
    if (strcmp(words, "READY=1") == 0 && !beside->ready) {
        beside->ready = true;
        notify_ready();
        if (beside->reads)
            (void)kill(beside->pid, SIGHUP);
    } else if (strcmp(words, "WATCHDOG=1") == 0) {
        beside->alive = true;
    } else if (strncmp(words, "EXTEND_TIMEOUT_USEC=", 20) == 0) {
        notify_extend((sgp_time)strtoll(words + 20, NULL, 10) * SGP_MICROSECOND);
    }
}

/* The next message, or false; and the process that sent it. */
static bool next_words(int notify, char words[WORDS_BYTES], pid_t *ret_pid)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec into = {words, WORDS_BYTES - 1};
    struct msghdr message = {.msg_iov = &into,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control};
    struct ucred sender = {.pid = 0};
    ssize_t bytes = recvmsg(notify, &message, MSG_DONTWAIT);
    if (bytes < 0)
        return false;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_type == SCM_CREDENTIALS)
        memcpy(&sender, CMSG_DATA(header), sizeof sender);
    words[bytes] = '\0';
    *ret_pid = sender.pid;
    return true;
}

static void on_words(uv_poll_t *poll, int status, int events)
{
    struct daemon *daemon = poll->data;
    char words[WORDS_BYTES];
    pid_t sender;
    (void)events;
    while (status == 0 && next_words(daemon->beside->notify, words, &sender))
        if (sender == daemon->beside->pid)
            hear(daemon, words);
}

/* Whatever the consequence, the service manager must be told. */
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
        notes_error(daemon,
            WIFSIGNALED(status) ? "the owner beside this node was ended by signal %d"
                                : "the owner beside this node has ended with status %d",
            WIFSIGNALED(status) ? WTERMSIG(status) : beside->status);
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
    if (uv_poll_init(&daemon->loop, &daemon->beside_tells, beside->notify) == 0) {
        daemon->beside_tells.data = daemon;
        (void)uv_poll_start(&daemon->beside_tells, UV_READABLE, on_words);
    }
    (void)raise(SIGCHLD); /* the child may have ended already */
}

void beside_close(struct daemon *daemon)
{
    uv_close((uv_handle_t *)&daemon->beside_ends, NULL);
    if (daemon->beside != NULL && daemon->beside_tells.data == daemon)
        uv_close((uv_handle_t *)&daemon->beside_tells, NULL);
}

/* ---- orders to the child ---- */

void beside_stop(struct daemon *daemon)
{
    if (!beside_runs(daemon))
        return;
    daemon->beside->stops = true;
    (void)kill(daemon->beside->pid, SIGTERM);
}

void beside_reload(struct daemon *daemon)
{
    if (beside_runs(daemon) && daemon->beside->ready)
        (void)kill(daemon->beside->pid, SIGHUP);
    else if (beside_runs(daemon))
        daemon->beside->reads = true;
}

/* ---- state of the child ---- */

bool beside_runs(const struct daemon *daemon)
{
    return daemon->beside != NULL && daemon->beside->pid > 0;
}

bool beside_is_missed(const struct daemon *daemon)
{
    const struct beside *beside = daemon->beside;
    bool serves = daemon->config->when_done == CONFIG_SERVE; /* otherwise its work may be done */
    return beside != NULL && beside->pid == 0 && (serves || beside->status != 0);
}

bool beside_is_ready(const struct daemon *daemon)
{
    return daemon->beside == NULL || daemon->beside->ready;
}

bool beside_is_alive(struct daemon *daemon)
{
    struct beside *beside = daemon->beside;
    bool alive = !beside_runs(daemon) || beside->alive;
    if (beside != NULL)
        beside->alive = false;
    return alive;
}
