/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a configuration against the restrictions of the unit; see unit.h. */
#include "unit.h"

#include "scaling.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "/etc/sgpd"
#define USER "sgpd"
#define GROUPS_MAX 1024

#define NO_KEY CONFIG_KEY_COUNT /* of the file as a whole */

static void __attribute__((format(printf, 4, 5)))
warn(const struct config *config, enum config_id id, struct site *site, const char *format, ...)
{
    char text[SGP_TEXT_BYTES];
    struct sgp_error warning = {0};
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (id == NO_KEY)
        (void)sgp_fail(&warning, SGP_E_CONFIG, "%s: %s", config->file, text);
    else
        (void)config_fail(config, id, &warning, SGP_E_CONFIG, "%s", text);
    sgp_assert(site->warning_count < SITE_WARNINGS_MAX);
    memcpy(site->warnings[site->warning_count++], warning.text, sizeof warning.text);
}

static bool is_below(const char *path, const char *directory)
{
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* Where a path leads. If its end does not exist, glibc keeps the part at which it fails. For a
 * symbolic link, that is a part of its target. */
static void resolve(const char *path, char real[PATH_MAX])
{
    real[0] = '\0';
    if (!realpath(path, real) && (real[0] != '/' || is_below(path, real)))
        (void)snprintf(real, PATH_MAX, "%s", path);
}

/* The setting of the unit that hides a path. NULL: the path is not hidden. */
static const char *hidden_by(const char *path)
{
    static const char *const homes[] = {"/home", "/root", "/run/user"};
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++)
        if (is_below(path, homes[i]))
            return "ProtectHome=";
    return is_below(path, "/tmp") || is_below(path, "/var/tmp") ? "PrivateTmp=" : NULL;
}

/* The system's answer if a user opens a file to read: 0, or -errno. Only root may ask. */
static int open_as(const struct passwd *user, const char *path)
{
    gid_t groups[GROUPS_MAX];
    int count = getgroups(GROUPS_MAX, groups);
    int code = 0;
    if (count < 0 || initgroups(user->pw_name, user->pw_gid) < 0)
        return 0;
    if (setegid(user->pw_gid) == 0 && seteuid(user->pw_uid) == 0) {
        int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        code = descriptor < 0 ? -errno : 0;
        if (descriptor >= 0)
            (void)close(descriptor);
    }
    sgp_assert(seteuid(0) == 0 && setegid(0) == 0 && setgroups((size_t)count, groups) == 0);
    return code;
}

/* user: NULL if the permissions of the user cannot be determined. */
static void look_at_file(const struct config *config, enum config_id id, const char *path,
    const struct passwd *user, struct site *site)
{
    char real[PATH_MAX];
    resolve(path, real);
    const char *hidden = hidden_by(real);
    int code = !hidden && user ? open_as(user, real) : 0;
    if (hidden)
        warn(config, id, site,
            "%.200s: sgpd@.service does not see it (%s); keep it in /srv or /var/lib", real,
            hidden);
    else if (code == -EACCES)
        warn(config, id, site,
            "%.200s: the user " USER " of sgpd@.service may not read it; let its group, or "
            "everybody, and let them through the directories above it",
            real);
}

#define FILES 7u

/* A file that a daemon reads, by the key that names it. "": no file. */
struct named_file {
    enum config_id id;
    const char *path;
};

static void name_files(const struct config *config, struct named_file files[FILES])
{
    const struct named_file all[FILES] = {{NO_KEY, config->file},
        {CONFIG_ID_TOPOLOGY, config->topology}, {CONFIG_ID_TRAIN, config->train},
        {CONFIG_ID_LABELS, config->labels}, {CONFIG_ID_TEST, config->test},
        {CONFIG_ID_TEST_LABELS, config->test_labels}, {CONFIG_ID_SCALE, config->scale}};
    for (size_t i = 0; i < FILES; i++) {
        files[i] = all[i];
        if (strcmp(files[i].path, "none") == 0 ||
            (files[i].id == CONFIG_ID_SCALE && scaling_is_of_fleet(config)))
            files[i].path = "";
    }
}

static void look_at_files(const struct config *config, const struct passwd *user, struct site *site)
{
    struct named_file files[FILES];
    name_files(config, files);
    for (size_t i = 0; i < FILES; i++)
        if (*files[i].path)
            look_at_file(config, files[i].id, files[i].path, user, site);
}

/* Whether systemd has replaced this directory with an inaccessible empty one (ProtectHome=yes). */
static bool is_covered(const char *path)
{
    struct stat top;
    char directory[PATH_MAX];
    (void)snprintf(directory, sizeof directory, "%s", path);
    for (char *slash = directory + strlen(directory); slash != NULL && slash > directory;
         slash = strrchr(directory, '/')) {
        *slash = '\0';
        if (stat(directory, &top) == 0)
            return S_ISDIR(top.st_mode) && (top.st_mode & 0777) == 0;
    }
    return false;
}

int unit_sees(const struct config *config, struct sgp_error *error)
{
    struct named_file files[FILES];
    char real[PATH_MAX];
    name_files(config, files);
    for (size_t i = 0; i < FILES; i++) {
        if (!*files[i].path || files[i].id == NO_KEY || access(files[i].path, F_OK) == 0)
            continue;
        resolve(files[i].path, real);
        if (hidden_by(real) && is_covered(real))
            return config_fail(config, files[i].id, error, SGP_E_CONFIG,
                "%.200s: this service does not see it, whoever may read it: its unit hides home "
                "directories (ProtectHome=); keep it in /srv or /var/lib",
                real);
    }
    return 0;
}

/* ProtectSystem= leaves only the directories of StateDirectory= and RuntimeDirectory= writable. */
static void look_at_directories(
    const struct config *config, const char *instance, struct site *site)
{
    const struct {
        enum config_id id;
        const char *path, *parent;
    } places[] = {{CONFIG_ID_STATE_DIRECTORY, config->state_directory, "/var/lib/sgpd"},
        {CONFIG_ID_SOCKET, config->socket, "/run/sgpd"},
        {CONFIG_ID_ATTACH, config->kind == CONFIG_ATTACHED ? config->attach : "", "/run/sgpd"},
        {CONFIG_ID_EVENTS, config->events, "/var/lib/sgpd"},
        {CONFIG_ID_TRACE, config->trace, "/var/lib/sgpd"},
        {CONFIG_ID_TENSORBOARD, config->tensorboard, "/var/lib/sgpd"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (places[i].path[0] == '\0')
            continue;
        char own[PATH_MAX];
        (void)snprintf(own, sizeof own, "%s/%s", places[i].parent, instance);
        if (!is_below(places[i].path, own))
            warn(config, places[i].id, site,
                "%.150s: sgpd@%.64s.service may write to %.150s alone (ProtectSystem=); give a "
                "place there",
                places[i].path, instance, own);
    }
}

void unit_check(const struct config *config, struct site *site)
{
    char file[PATH_MAX];
    if (is_below(config->file, DIRECTORY))
        (void)snprintf(file, sizeof file, "%s", config->file);
    else
        resolve(config->file, file);
    char *instance = strrchr(file, '/');
    char *end = instance ? strstr(instance, ".conf") : NULL;
    if (!is_below(file, DIRECTORY) || !end || end[5] != '\0')
        return;
    *end = '\0';
    const struct passwd *user = geteuid() == 0 ? getpwnam(USER) : NULL;
    if (geteuid() == 0 && !user)
        warn(config, NO_KEY, site,
            "there is no user " USER " for sgpd@.service to run as; run systemd-sysusers");
    look_at_files(config, user, site);
    look_at_directories(config, instance + 1, site);
    if (config->precision == 1 + (int)SGP_PRECISION_BF16)
        warn(config, CONFIG_ID_PRECISION, site,
            "sgpd@.service does not let oneDNN run the code that it makes; unless you have done "
            "so, "
            "write MemoryDenyWriteExecute=no into a drop-in: systemctl edit sgpd@.service");
}
