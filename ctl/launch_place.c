/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of a launch, and the paths of programs; see launch.h. */
#include "launch.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TREE_DESCRIPTORS 16

/* ---- directories ---- */

/* The first of these environment variables that names a directory, or /tmp. */
static const char *temporary(const char *first, const char *second)
{
    const char *const names[] = {first, second};
    for (size_t i = 0; i < 2; i++) {
        const char *path = names[i] != NULL ? getenv(names[i]) : NULL;
        if (path != NULL && path[0] == '/' && access(path, W_OK | X_OK) == 0)
            return path;
    }
    return "/tmp";
}

static enum ctl_exit make_temporary(struct ctl *ctl, const char *parent, char path[PATH_MAX])
{
    if (snprintf(path, PATH_MAX, "%s/sgpctl-XXXXXX", parent) >= PATH_MAX || mkdtemp(path) == NULL) {
        path[0] = '\0';
        return ctl_fail(ctl, CTL_FAILED, "%s: a directory cannot be made there: %s; set TMPDIR",
            parent, strerror(errno));
    }
    return CTL_DONE;
}

static enum ctl_exit make_kept(struct ctl *ctl, const char *keep, char path[PATH_MAX])
{
    if (mkdir(keep, 0700) < 0 && errno != EEXIST)
        return ctl_fail(ctl, CTL_FAILED, "--keep %s: %s", keep, strerror(errno));
    if (realpath(keep, path) == NULL || access(path, W_OK | X_OK) < 0)
        return ctl_fail(ctl, CTL_FAILED, "--keep %s: %s", keep, strerror(errno));
    struct stat found;
    if (stat(path, &found) < 0 || !S_ISDIR(found.st_mode))
        return ctl_fail(ctl, CTL_FAILED, "--keep %s: it is no directory", keep);
    return CTL_DONE;
}

enum ctl_exit launch_place_make(struct ctl *ctl, const char *keep, struct launch_place *ret_place)
{
    struct launch_place place = {.keeps = keep != NULL};
    enum ctl_exit status =
        make_temporary(ctl, temporary("XDG_RUNTIME_DIR", "TMPDIR"), place.sockets);
    /* A checkpoint may be larger than the memory behind XDG_RUNTIME_DIR. */
    if (status == CTL_DONE)
        status = keep ? make_kept(ctl, keep, place.files)
                      : make_temporary(ctl, temporary("TMPDIR", NULL), place.files);
    if (status == CTL_DONE && snprintf(place.topology, sizeof place.topology, "%.*s/topology.dot",
                                  PATH_MAX - 32, place.files) >= PATH_MAX - 32)
        status = ctl_fail(ctl, CTL_FAILED, "%.100s...: the path is too long", place.files);
    if (status != CTL_DONE)
        (void)launch_place_remove(&place);
    else
        *ret_place = place;
    return status;
}

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *where)
{
    (void)found;
    (void)kind;
    (void)where;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

static bool remove_tree(const char *path)
{
    struct stat found;
    if (path[0] != '\0')
        (void)nftw(path, remove_one, TREE_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    return path[0] == '\0' || (lstat(path, &found) < 0 && errno == ENOENT);
}

bool launch_place_remove(const struct launch_place *place)
{
    bool gone = remove_tree(place->sockets);
    return (place->keeps || remove_tree(place->files)) && gone;
}

/* ---- programs ---- */

static bool is_program(const char *path)
{
    struct stat found;
    return access(path, X_OK) == 0 && stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

bool launch_find(const char *name, char path[PATH_MAX])
{
    if (strchr(name, '/') != NULL)
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && is_program(path);
    const char *rest = getenv("PATH");
    for (rest = rest ? rest : "/usr/bin:/bin"; *rest != '\0';) {
        int length = (int)strcspn(rest, ":");
        if (snprintf(path, PATH_MAX, "%.*s/%s", length, rest, name) < PATH_MAX && is_program(path))
            return true;
        rest += length + (rest[length] == ':');
    }
    return false;
}

/* The folder of this program. */
static bool own_folder(char folder[PATH_MAX])
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    (void)snprintf(folder, PATH_MAX, "%s", path);
    return true;
}

bool launch_find_sgpd(char path[PATH_MAX])
{
    static const char *const places[] = {"sgpd", "../daemon/sgpd", "../sbin/sgpd"};
    char folder[PATH_MAX];
    for (size_t i = 0; own_folder(folder) && i < sizeof places / sizeof *places; i++)
        if (snprintf(path, PATH_MAX, "%s/%s", folder, places[i]) < PATH_MAX && is_program(path))
            return true;
    return launch_find("sgpd", path) || launch_find("/usr/sbin/sgpd", path);
}

bool launch_find_package(char path[PATH_MAX])
{
    char folder[PATH_MAX], file[PATH_MAX];
    return own_folder(folder) &&
           snprintf(file, sizeof file, "%s/../../python", folder) < PATH_MAX &&
           realpath(file, path) != NULL &&
           snprintf(file, sizeof file, "%s/sgp/attachment.py", path) < PATH_MAX &&
           access(file, R_OK) == 0;
}
