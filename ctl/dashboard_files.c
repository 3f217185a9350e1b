/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page: in `page/` beside this program, or in the folder of shared files. */
#include "dashboard.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX (1u << 20)

#define SCRIPT "text/javascript; charset=utf-8"
static const struct dashboard_file parts[] = {{"index.html", "text/html; charset=utf-8", NULL, 0},
    {"style.css", "text/css; charset=utf-8", NULL, 0}, {"icon.svg", "image/svg+xml", NULL, 0},
    {"main.js", SCRIPT, NULL, 0}, {"transport.js", SCRIPT, NULL, 0},
    {"document.js", SCRIPT, NULL, 0}, {"numbers.js", SCRIPT, NULL, 0},
    {"history.js", SCRIPT, NULL, 0}, {"curves.js", SCRIPT, NULL, 0}, {"graph.js", SCRIPT, NULL, 0},
    {"tables.js", SCRIPT, NULL, 0}, {"versions.js", SCRIPT, NULL, 0}};
#define PART_COUNT (sizeof parts / sizeof *parts)

/* The folder that has the page. Returns false if there is none. */
static bool find_folder(char folder[PATH_MAX])
{
    static const char *const places[] = {"page", "../share/sgpd/page"};
    char own[PATH_MAX], index[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length <= 0)
        return false;
    own[length] = '\0';
    int end = (int)(strrchr(own, '/') - own);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int bytes = snprintf(index, sizeof index, "%.*s/%s/index.html", end, own, places[i]);
        if (bytes >= PATH_MAX || access(index, R_OK) != 0)
            continue;
        (void)snprintf(folder, PATH_MAX, "%.*s/%s", end, own, places[i]);
        return true;
    }
    return false;
}

static int read_file(const char *path, struct dashboard_file *file)
{
    FILE *stream = fopen(path, "re");
    if (!stream)
        return -errno;
    file->text = malloc(FILE_BYTES_MAX);
    file->bytes = file->text ? fread(file->text, 1, FILE_BYTES_MAX, stream) : 0;
    int code = !file->text                     ? -ENOMEM
               : ferror(stream)                ? -EIO
               : file->bytes == FILE_BYTES_MAX ? -EFBIG
                                               : 0;
    (void)fclose(stream);
    char *fitting = code == 0 ? realloc(file->text, file->bytes + 1) : NULL;
    file->text = fitting ? fitting : file->text;
    return code;
}

enum ctl_exit dashboard_files_read(struct ctl *ctl, struct dashboard_files *files)
{
    char folder[PATH_MAX], path[PATH_MAX + 32];
    sgp_assert(PART_COUNT <= DASHBOARD_FILES_MAX);
    if (!find_folder(folder))
        return ctl_fail(
            ctl, CTL_FAILED, "the page is not there; it is installed in share/sgpd/page");
    for (size_t i = 0; i < PART_COUNT; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, parts[i].name);
        files->files[i] = parts[i];
        int code = read_file(path, &files->files[i]);
        if (code < 0)
            return ctl_fail(ctl, CTL_FAILED, "%s: %s", path, sgp_strerror(code));
        files->count = i + 1;
    }
    return CTL_DONE;
}

const struct dashboard_file *dashboard_files_find(
    const struct dashboard_files *files, const char *path)
{
    const char *name = path[0] == '\0' ? "index.html" : path;
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->files[i].name, name) == 0)
            return &files->files[i];
    return NULL;
}
