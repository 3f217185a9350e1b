/* SPDX-License-Identifier: Apache-2.0 */
/* Tries the steps of a start; see site.h. */
#include "site.h"

#include "util/socket_file.h"
#include "net/listener.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is wrong with a key. If another user might succeed, that is a warning; else an error. */
static int judge(const struct config *config, enum config_id id, int code, const char *text,
    struct sgp_error *error, struct site *site)
{
    if (code != -EACCES && code != -EPERM)
        return config_fail(config, id, error, code, "%s", text);
    struct sgp_error warning = {0};
    (void)config_fail(
        config, id, &warning, code, "%s; check again as the user that sgpd will run as", text);
    sgp_assert(site->warning_count < SITE_WARNINGS_MAX);
    memcpy(site->warnings[site->warning_count++], warning.text, sizeof warning.text);
    return 0;
}

/* Directories that StateDirectory= and RuntimeDirectory= of the unit make. */
static bool is_of_the_unit(const char *path)
{
    return strncmp(path, "/var/lib/sgpd/", 14) == 0 || strncmp(path, "/run/sgpd/", 10) == 0;
}

/* Whether a file can be created at `path`: its directory exists and is writable. */
static int try_parent(const struct config *config, enum config_id id, const char *path,
    struct sgp_error *error, struct site *site)
{
    char parent[CONFIG_TEXT_BYTES];
    struct sgp_error why = {0};
    const char *slash = strrchr(path, '/');
    size_t length = slash && slash > path ? (size_t)(slash - path) : 1;
    (void)snprintf(parent, sizeof parent, "%.*s", (int)length, slash ? path : ".");
    if (access(parent, W_OK | X_OK) == 0 || (errno == ENOENT && is_of_the_unit(path)))
        return 0;
    int code = sgp_fail(&why, -errno, "%.300s: %s; make the directory, or give another path",
        parent, strerror(errno));
    return judge(config, id, code, why.text, error, site);
}

static int try_state_directory(
    const struct config *config, struct sgp_error *error, struct site *site)
{
    const char *path = config->state_directory;
    struct sgp_error why = {0};
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT)
        return try_parent(config, CONFIG_ID_STATE_DIRECTORY, path, error, site);
    int code = descriptor < 0 || access(path, W_OK | X_OK) < 0 ? -errno : 0;
    if (descriptor >= 0) { /* shared: two concurrent checks do not take each other for a daemon */
        site->running = flock(descriptor, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
        (void)close(descriptor);
    }
    if (code == 0)
        return 0;
    (void)sgp_fail(
        &why, code, "%.300s: %s; give a directory that sgpd may write to", path, strerror(-code));
    return judge(config, CONFIG_ID_STATE_DIRECTORY, code, why.text, error, site);
}

static int try_port(const struct config *config, struct sgp_error *error, struct site *site)
{
    /* no event follows before it is closed */
    static const struct listener_events nobody = {.context = NULL};
    struct sgp_error why = {0};
    struct listener listener;
    uv_loop_t loop;
    int code = uv_loop_init(&loop);
    if (code < 0)
        return sgp_fail(error, code, "cannot make an event loop: %s", uv_strerror(code));
    code = listener_open(&listener, &loop, config->listen, &nobody, NULL, &why);
    if (code == 0)
        listener_close(&listener);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    sgp_assert(uv_loop_close(&loop) == 0);
    bool own = code == UV_EADDRINUSE && site->running;
    return code == 0 || own ? 0 : judge(config, CONFIG_ID_LISTEN, code, why.text, error, site);
}

static int try_socket(const struct config *config, struct sgp_error *error, struct site *site)
{
    struct sgp_error why = {0};
    int code = socket_file_try(config->socket, SOCK_STREAM, "[control] socket", &why);
    if (code == -EADDRINUSE && site->running)
        return 0;
    if (code < 0)
        return judge(config, CONFIG_ID_SOCKET, code, why.text, error, site);
    return try_parent(config, CONFIG_ID_SOCKET, config->socket, error, site);
}

/* A file that is appended to, if the configuration names it. */
static int try_file(const struct config *config, enum config_id id, const char *path,
    struct sgp_error *error, struct site *site)
{
    struct sgp_error why = {0};
    if (path[0] == '\0')
        return 0;
    int descriptor = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (descriptor >= 0)
        return close(descriptor);
    if (errno == ENOENT)
        return try_parent(config, id, path, error, site);
    int code = sgp_fail(
        &why, -errno, "%.300s: %s; give a file that sgpd may write to", path, sgp_strerror(-errno));
    return judge(config, id, code, why.text, error, site);
}

int site_check(const struct config *config, struct sgp_error *error, struct site *ret_site)
{
    struct site site = {.running = false};
    int code = try_state_directory(config, error, &site);
    if (code == 0)
        code = try_port(config, error, &site);
    if (code == 0)
        code = try_socket(config, error, &site);
    if (code == 0)
        code = try_file(config, CONFIG_ID_EVENTS, config->events, error, &site);
    if (code == 0)
        code = try_file(config, CONFIG_ID_TRACE, config->trace, error, &site);
    if (code < 0)
        return code;
    unit_check(config, &site);
    *ret_site = site;
    return 0;
}
