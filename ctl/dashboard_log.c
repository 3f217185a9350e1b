/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of the daemon's log. tail or journalctl follows it in a process of its own, whose
 * output is read here. If the log cannot be followed, there are no lines. */
#include "dashboard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAKE_BYTES_MAX (1u << 20) /* at a time, from a log that grows fast */

/* In the child. */
static void become(const char *const *command, int output, pid_t parent)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0)
        _exit(1);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    (void)execvp(command[0], (char *const *)(uintptr_t)command);
    _exit(1);
}

static int follow(struct dashboard_log *log, const char *const *command)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(command, ends[1], parent);
    int code = pid < 0 ? -errno : 0;
    (void)close(ends[1]);
    if (code < 0) {
        (void)close(ends[0]);
        return code;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    log->follower = pid;
    log->descriptor = ends[0];
    return 0;
}

int dashboard_log_open(struct dashboard_log *log, const char *path, const char *name)
{
    static char unit[SGP_NAME_BYTES + 16];
    char lines[16];
    log->descriptor = -1;
    if (!path && name[0] == '\0')
        return 0;
    (void)snprintf(lines, sizeof lines, "%u", DASHBOARD_LOG_LINES);
    (void)snprintf(unit, sizeof unit, "sgpd@%s.service", name);
    const char *const of_file[] = {"tail", "-n", lines, "-F", "--", path, NULL};
    const char *const of_unit[] = {
        "journalctl", "-q", "-f", "-n", lines, "-o", "short-iso", "-u", unit, NULL};
    log->source = path ? path : unit;
    return follow(log, path ? of_file : of_unit);
}

/* The line is complete: it takes the place of the oldest one. */
static void keep_line(struct dashboard_log *log)
{
    char **place = &log->lines[log->total % DASHBOARD_LOG_LINES];
    char *copy = strndup(log->line, log->line_bytes);
    log->line_bytes = 0;
    if (!copy)
        return;
    free(*place);
    *place = copy;
    log->total++;
}

static void take(struct dashboard_log *log, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == '\n')
            keep_line(log);
        else if (text[i] != '\0' && log->line_bytes < sizeof log->line)
            log->line[log->line_bytes++] = text[i];
}

void dashboard_log_take(struct dashboard_log *log)
{
    char text[8192];
    for (size_t taken = 0; log->descriptor >= 0 && taken < TAKE_BYTES_MAX;) {
        ssize_t bytes = read(log->descriptor, text, sizeof text);
        if (bytes < 0)
            return; /* nothing more for now */
        if (bytes == 0) {
            (void)close(log->descriptor);
            log->descriptor = -1;
            return;
        }
        take(log, text, (size_t)bytes);
        taken += (size_t)bytes;
    }
}

json_t *dashboard_log_json(const struct dashboard_log *log)
{
    json_t *lines = json_array();
    uint64_t first = log->total > DASHBOARD_LOG_LINES ? log->total - DASHBOARD_LOG_LINES : 0;
    for (uint64_t i = first; i < log->total; i++)
        (void)json_array_append_new(lines, ctl_json_text(log->lines[i % DASHBOARD_LOG_LINES]));
    return json_pack("{s:o, s:I, s:o}", "source",
        log->source ? ctl_json_text(log->source) : json_null(), "total", (json_int_t)log->total,
        "lines", lines);
}

void dashboard_log_close(struct dashboard_log *log)
{
    if (log->descriptor >= 0)
        (void)close(log->descriptor);
    if (log->follower > 0) {
        (void)kill(log->follower, SIGTERM);
        (void)waitpid(log->follower, NULL, 0);
    }
    for (size_t i = 0; i < DASHBOARD_LOG_LINES; i++)
        free(log->lines[i]);
}
