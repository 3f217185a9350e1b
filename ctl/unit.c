/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine knows about a node by its name: its configuration, its directory under /run,
 * and its unit.
 *
 * systemd is queried by systemctl, if it is running. Without systemd, or if systemctl fails or
 * takes too long, the unit is unknown. */
#include "ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 2000 /* time for the answer of systemctl */
#define ANSWER_BYTES 512u
#define PATH_BYTES 256u

struct unit { /* "" is unknown */
    char name[SGP_NAME_BYTES + 16];
    char active[32];
    char sub[32];
    char result[32];
};

/* The rest of the line that begins with `key`. */
static void take_value(const char *text, const char *key, char *value, size_t capacity)
{
    const char *line = strstr(text, key);
    if (line != NULL)
        (void)snprintf(
            value, capacity, "%.*s", (int)strcspn(line + strlen(key), "\n"), line + strlen(key));
}

/* Read a pipe to its end, as far as room and time allow. */
static void read_answer(int descriptor, char text[ANSWER_BYTES])
{
    size_t used = 0;
    ssize_t count = 1;
    struct pollfd ready = {.fd = descriptor, .events = POLLIN};
    while (count > 0 && used + 1 < ANSWER_BYTES && poll(&ready, 1, ANSWER_MS) > 0) {
        count = read(descriptor, text + used, ANSWER_BYTES - 1 - used);
        used += count > 0 ? (size_t)count : 0;
    }
    text[used] = '\0';
}

static void ask_systemd(struct unit *unit)
{
    char *arguments[] = {"systemctl", "show", "--property=ActiveState", "--property=SubState",
        "--property=Result", unit->name, NULL};
    extern char **environ;
    char text[ANSWER_BYTES];
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (access("/run/systemd/system", F_OK) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int code = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    if (code == 0) {
        read_answer(ends[0], text);
        (void)kill(child, SIGTERM); /* has ended, or takes too long */
        (void)waitpid(child, NULL, 0);
        take_value(text, "ActiveState=", unit->active, sizeof unit->active);
        take_value(text, "SubState=", unit->sub, sizeof unit->sub);
        take_value(text, "Result=", unit->result, sizeof unit->result);
    }
    (void)close(ends[0]);
}

static bool is_missing(const char *path)
{
    return access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool ctl_has_configuration(const char *name)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "/etc/sgpd/%s.conf", name);
    return !is_missing(path);
}

bool ctl_may_come(const char *name, char *text, size_t capacity)
{
    char place[PATH_BYTES];
    struct unit unit = {0};
    (void)snprintf(text, capacity, "nobody answers");
    if (name[0] == '\0')
        return true;
    (void)snprintf(unit.name, sizeof unit.name, "sgpd@%s.service", name);
    (void)snprintf(place, sizeof place, "/run/sgpd/%s", name);
    ask_systemd(&unit);
    if (strcmp(unit.active, "failed") == 0) {
        (void)snprintf(text, capacity, "%s has failed (%s); see journalctl -u sgpd@%s", unit.name,
            unit.result, name);
        return false;
    }
    bool idle = unit.active[0] == '\0' || strcmp(unit.active, "inactive") == 0;
    if (idle && !ctl_has_configuration(name) && is_missing(place)) {
        (void)snprintf(text, capacity,
            "no node here is called %s: there is neither /etc/sgpd/%s.conf nor %s; sgpctl -n takes "
            "the NAME of /etc/sgpd/NAME.conf",
            name, name, place);
        return false;
    }
    if (unit.active[0] != '\0')
        (void)snprintf(
            text, capacity, "nobody answers; %s is %s (%s)", unit.name, unit.active, unit.sub);
    return true;
}
