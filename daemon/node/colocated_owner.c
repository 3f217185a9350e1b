/* SPDX-License-Identifier: Apache-2.0 */
/* The co-located owner as a child process; see colocated_owner.h. */
#include "colocated_owner.h"

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

static void become_child(pid_t parent, const struct colocated_owner *owner, const char *notify)
{
    char pid[24];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent has ended already */
        _exit(1);
    (void)setpgid(0, 0); /* signals of a terminal are for the parent, which sends its own */
    (void)close(owner->notify);
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    (void)setenv("NOTIFY_SOCKET", notify, 1);
    if (getenv("WATCHDOG_PID") != NULL)
        (void)setenv("WATCHDOG_PID", pid, 1);
}

int colocated_owner_fork(struct sgp_error *error, struct colocated_owner *ret_owner)
{
    char notify[sizeof((struct sockaddr_un *)0)->sun_path] = "";
    struct colocated_owner owner = {.notify = open_notify(notify), .alive = true};
    pid_t parent = getpid();
    if (owner.notify < 0)
        return sgp_fail(error, owner.notify, "cannot make a socket for the co-located owner: %s",
            strerror(-owner.notify));
    (void)signal(SIGCHLD, SIG_DFL); /* otherwise its end could go unnoticed */
    (void)fflush(NULL);             /* otherwise both processes would write the buffered output */
    owner.pid = fork();
    if (owner.pid == 0) {
        become_child(parent, &owner, notify);
        return 1;
    }
    if (owner.pid < 0) {
        int code = -errno;
        (void)close(owner.notify);
        return sgp_fail(error, code, "cannot start the co-located owner: %s", strerror(-code));
    }
    *ret_owner = owner;
    return 0;
}

/* A second SIGTERM kills the child while it ends. This end was ordered, so the status is 0. */
static void has_ended(struct colocated_owner *owner, int status)
{
    bool ours = owner->stops && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
    owner->pid = 0;
    owner->status = WIFEXITED(status) ? WEXITSTATUS(status) : !ours;
}

/* Whether the child has ended within `time`. */
static bool ends_within(struct colocated_owner *owner, sgp_time time)
{
    const struct timespec pace = {.tv_nsec = END_PACE_NS};
    int status = 0;
    for (sgp_time waited = 0; waited <= time; waited += END_PACE_NS) {
        if (waitpid(owner->pid, &status, WNOHANG) == owner->pid) {
            has_ended(owner, status);
            return true;
        }
        (void)nanosleep(&pace, NULL);
    }
    return false;
}

void colocated_owner_end(struct colocated_owner *owner)
{
    static const int numbers[] = {SIGTERM, SIGKILL};
    owner->stops = true;
    for (size_t i = 0; i < 2 && owner->pid > 0; i++) {
        (void)kill(owner->pid, numbers[i]);
        (void)ends_within(owner, END_NS);
    }
    (void)close(owner->notify);
}

/* ---- messages of the child ---- */

static void hear(struct daemon *daemon, const char *words)
{
    struct colocated_owner *owner = daemon->colocated_owner;
    if (strcmp(words, "READY=1") == 0 && !owner->ready) {
        owner->ready = true;
        notify_ready();
        if (owner->reads)
            (void)kill(owner->pid, SIGHUP);
    } else if (strcmp(words, "WATCHDOG=1") == 0) {
        owner->alive = true;
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
    while (status == 0 && next_words(daemon->colocated_owner->notify, words, &sender))
        if (sender == daemon->colocated_owner->pid)
            hear(daemon, words);
}

/* Whatever the consequence, the service manager must be told. */
static void on_child(uv_signal_t *signal, int number)
{
    struct daemon *daemon = signal->data;
    struct colocated_owner *owner = daemon->colocated_owner;
    int status;
    (void)number;
    if (owner->pid == 0 || waitpid(owner->pid, &status, WNOHANG) != owner->pid)
        return;
    has_ended(owner, status);
    if (owner->status == 0) {
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=beside ended=1");
    } else {
        notes_error(daemon,
            WIFSIGNALED(status) ? "the co-located owner was ended by signal %d"
                                : "the co-located owner has ended with status %d",
            WIFSIGNALED(status) ? WTERMSIG(status) : owner->status);
        daemon->exit_status = owner->status;
    }
    daemon->settled(daemon);
}

void colocated_owner_open(struct daemon *daemon)
{
    struct colocated_owner *owner = daemon->colocated_owner;
    (void)uv_signal_init(&daemon->loop, &daemon->colocated_owner_ends);
    daemon->colocated_owner_ends.data = daemon;
    if (owner == NULL)
        return;
    (void)uv_signal_start(&daemon->colocated_owner_ends, on_child, SIGCHLD);
    if (uv_poll_init(&daemon->loop, &daemon->colocated_owner_tells, owner->notify) == 0) {
        daemon->colocated_owner_tells.data = daemon;
        (void)uv_poll_start(&daemon->colocated_owner_tells, UV_READABLE, on_words);
    }
    (void)raise(SIGCHLD); /* the child may have ended already */
}

void colocated_owner_close(struct daemon *daemon)
{
    uv_close((uv_handle_t *)&daemon->colocated_owner_ends, NULL);
    if (daemon->colocated_owner != NULL && daemon->colocated_owner_tells.data == daemon)
        uv_close((uv_handle_t *)&daemon->colocated_owner_tells, NULL);
}

/* ---- orders to the child ---- */

void colocated_owner_stop(struct daemon *daemon)
{
    if (!colocated_owner_runs(daemon))
        return;
    daemon->colocated_owner->stops = true;
    (void)kill(daemon->colocated_owner->pid, SIGTERM);
}

void colocated_owner_reload(struct daemon *daemon)
{
    if (colocated_owner_runs(daemon) && daemon->colocated_owner->ready)
        (void)kill(daemon->colocated_owner->pid, SIGHUP);
    else if (colocated_owner_runs(daemon))
        daemon->colocated_owner->reads = true;
}

/* ---- state of the child ---- */

bool colocated_owner_runs(const struct daemon *daemon)
{
    return daemon->colocated_owner != NULL && daemon->colocated_owner->pid > 0;
}

bool colocated_owner_is_missed(const struct daemon *daemon)
{
    const struct colocated_owner *owner = daemon->colocated_owner;
    bool serves = daemon->config->when_done == CONFIG_SERVE; /* otherwise its work may be done */
    return owner != NULL && owner->pid == 0 && (serves || owner->status != 0);
}

bool colocated_owner_is_ready(const struct daemon *daemon)
{
    return daemon->colocated_owner == NULL || daemon->colocated_owner->ready;
}

bool colocated_owner_is_alive(struct daemon *daemon)
{
    struct colocated_owner *owner = daemon->colocated_owner;
    bool alive = !colocated_owner_runs(daemon) || owner->alive;
    if (owner != NULL)
        owner->alive = false;
    return alive;
}
