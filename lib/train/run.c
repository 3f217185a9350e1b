/* SPDX-License-Identifier: Apache-2.0 */
/* The file `run` of a state directory, and the move of a run's files to and from a directory; see
 * sgp/run.h. */
#include "sgp/run.h"

#include "atomic_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096u
#define LINE_BYTES 256u
#define SUFFIXES_MAX 1000u

/* A run's files. `run` moves last, so that an interrupted move continues with the same names. */
static const char *const files[] = {"ledger", "checkpoint", "checkpoint.1", "model.safetensors",
    "history.csv", "report.json", "best.json", "best.0.safetensors", "best.1.safetensors",
    "best.2.safetensors", "best.3.safetensors", "best.4.safetensors", "layout", "claim",
    "ledger.left", "checkpoint.left", "checkpoint.1.left", "run"};
#define FILES (sizeof files / sizeof *files)

static const struct field {
    const char *key;
    size_t offset;
    bool hexadecimal;
} fields[] = {
    {"number", offsetof(struct sgp_run, number), false},
    {"shape", offsetof(struct sgp_run, shape), true},
    {"loss", offsetof(struct sgp_run, loss), true},
    {"classes", offsetof(struct sgp_run, classes), true},
    {"scaling", offsetof(struct sgp_run, scaling), true},
    {"data", offsetof(struct sgp_run, data), true},
};
#define FIELDS (sizeof fields / sizeof *fields)

/* ---- the file ---- */

static int path_of(
    const char *directory, const char *name, struct sgp_error *error, char path[PATH_BYTES])
{
    int length = snprintf(path, PATH_BYTES, "%s/%s", directory, name);
    return length < (int)PATH_BYTES
               ? 0
               : sgp_fail(error, -ENAMETOOLONG, "%s: the path is too long", directory);
}

static bool take_line(char *line, struct sgp_run *run, unsigned *seen)
{
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '#' || line[0] == '\0')
        return true;
    char *value = strchr(line, ' ');
    if (value == NULL)
        return false;
    *value++ = '\0';
    if (strcmp(line, "begun") == 0) {
        run->begun = strcmp(value, "yes") == 0;
        *seen |= 1u << FIELDS;
        return run->begun || strcmp(value, "no") == 0;
    }
    for (size_t i = 0; i < FIELDS; i++) {
        char *end;
        if (strcmp(line, fields[i].key) != 0)
            continue;
        errno = 0;
        uint64_t number = strtoull(value, &end, fields[i].hexadecimal ? 16 : 10);
        *(uint64_t *)(void *)((char *)run + fields[i].offset) = number;
        *seen |= 1u << i;
        return errno == 0 && end != value && *end == '\0';
    }
    return false;
}

/* Returns 0, -ENOENT, SGP_E_DATA or -errno. */
static int read_run(const char *directory, struct sgp_error *error, struct sgp_run *ret_run)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    struct sgp_run run = {.number = 0};
    unsigned seen = 0;
    bool sound = true;
    int code = path_of(directory, "run", error, path);
    int descriptor = code == 0 ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    if (code == 0 && descriptor < 0)
        return sgp_fail(error, -errno, "%s: cannot be read: %s", path, strerror(errno));
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "r") : NULL;
    if (file == NULL)
        return code < 0 ? code : sgp_fail(error, -errno, "%s: %s", path, strerror(errno));
    for (unsigned i = 0; i < 64 && sound && fgets(line, sizeof line, file) != NULL; i++)
        sound = take_line(line, &run, &seen);
    (void)fclose(file);
    if (!sound || seen != (2u << FIELDS) - 1 || run.number > SGP_RUNS_MAX)
        return sgp_fail(error, SGP_E_DATA,
            "%s: not a file that sgpd wrote, near '%.40s'; `sgpctl reset` sets it and the files "
            "beside it aside",
            path, line);
    *ret_run = run;
    return 0;
}

int sgp_run_write(const char *directory, const struct sgp_run *run, struct sgp_error *error)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    struct stat owner;
    struct sgp_atomic_file file;
    static const char head[] = "# The run that the files of this directory belong to: `sgpctl "
                               "reset` begins another one.\n";
    int code = path_of(directory, "run", error, path);
    if (code == 0)
        code = sgp_atomic_open(&file, path, SGP_ATOMIC_PRIVATE, error);
    if (code < 0)
        return code;
    if (stat(directory, &owner) == 0) /* if root writes the file, the daemon's user must own it */
        (void)!fchown(file.fd, owner.st_uid, owner.st_gid);
    sgp_atomic_write(&file, head, sizeof head - 1);
    for (size_t i = 0; i < FIELDS; i++) {
        uint64_t value = *(const uint64_t *)(const void *)((const char *)run + fields[i].offset);
        int length = fields[i].hexadecimal
                         ? snprintf(line, sizeof line, "%s %016" PRIx64 "\n", fields[i].key, value)
                         : snprintf(line, sizeof line, "%s %" PRIu64 "\n", fields[i].key, value);
        sgp_atomic_write(&file, line, (size_t)length);
    }
    int length = snprintf(line, sizeof line, "begun %s\n", run->begun ? "yes" : "no");
    sgp_atomic_write(&file, line, (size_t)length);
    return sgp_atomic_commit(&file, error);
}

/* ---- the move of a run's files ---- */

static bool has(const char *directory, const char *within, const char *name)
{
    char path[PATH_BYTES];
    struct stat found;
    (void)snprintf(path, sizeof path, "%s/%s/%s", directory, within, name);
    return lstat(path, &found) == 0;
}

/* Whether an interrupted move made this directory, and the rest of the files can go there. */
static bool goes_on_there(const char *directory, const char *name)
{
    bool clash = has(directory, name, "run");
    for (size_t i = 0; i < FILES; i++)
        clash = clash || (has(directory, name, files[i]) && has(directory, ".", files[i]));
    return !clash;
}

/* Create a directory for the run, with a name that no other run has. */
static int make_room(const char *directory, const struct sgp_run *run, struct sgp_error *error,
    char name[SGP_RUN_NAME_BYTES])
{
    char path[PATH_BYTES];
    struct stat owner;
    for (unsigned i = 0; i < SUFFIXES_MAX; i++) {
        int length = snprintf(name, SGP_RUN_NAME_BYTES, "run-%" PRIu64 "%s", run->number,
            run->begun ? "" : ".unbegun");
        if (i > 0)
            (void)snprintf(name + length, SGP_RUN_NAME_BYTES - (size_t)length, ".%u", i);
        int code = path_of(directory, name, error, path);
        if (code < 0)
            return code;
        bool made = mkdir(path, 0750) == 0;
        if (!made && errno != EEXIST)
            return sgp_fail(error, -errno, "%s: cannot be made: %s", path, strerror(errno));
        if (made && stat(directory, &owner) == 0)
            (void)!chown(path, owner.st_uid, owner.st_gid);
        if (made || goes_on_there(directory, name))
            return 0;
    }
    return sgp_fail(
        error, SGP_E_LIMIT, "%s: too many directories %s.N; remove some", directory, name);
}

static int move_files(const char *from, const char *to, bool with_run, struct sgp_error *error)
{
    char source[PATH_BYTES], target[PATH_BYTES];
    for (size_t i = 0; i < FILES - !with_run; i++) {
        int code = path_of(from, files[i], error, source);
        if (code == 0)
            code = path_of(to, files[i], error, target);
        if (code < 0)
            return code;
        if (renameat2(AT_FDCWD, source, AT_FDCWD, target, RENAME_NOREPLACE) < 0 && errno != ENOENT)
            return sgp_fail(
                error, -errno, "%s: cannot be moved to %s: %s", source, target, strerror(errno));
    }
    return 0;
}

static int set_aside(const char *directory, const struct sgp_run *run, struct sgp_error *error,
    char name[SGP_RUN_NAME_BYTES])
{
    char there[PATH_BYTES];
    int code = make_room(directory, run, error, name);
    if (code == 0)
        code = path_of(directory, name, error, there);
    return code < 0 ? code : move_files(directory, there, true, error);
}

/* ---- plans ---- */

/* 0: not known, because the node has no rows */
static bool differs(uint64_t digest, uint64_t other)
{
    return digest != 0 && other != 0 && digest != other;
}

/* The difference that makes this another model, or NULL. A run that a reset began has no model
 * yet. */
static const char *difference(const struct sgp_run *run, const struct sgp_run *model)
{
    return run->shape == 0                         ? NULL
           : run->shape != model->shape            ? "the model has other layers"
           : run->loss != model->loss              ? "the model has another loss"
           : differs(run->classes, model->classes) ? "the classes are others"
           : differs(run->scaling, model->scaling) ? "the columns or their scaling are others"
                                                   : NULL;
}

static void keep_known(uint64_t *digest, uint64_t former)
{
    *digest = *digest != 0 ? *digest : former;
}

/* Find the run that the present run replaced, if that run was of this model. */
static bool find_former(const char *directory, const struct sgp_run *present,
    const struct sgp_run *model, struct sgp_run *ret_former)
{
    char path[PATH_BYTES];
    struct sgp_error ignored = {0};
    (void)snprintf(path, sizeof path, "%s/run-%" PRIu64, directory, present->number - 1);
    return present->number > 1 && read_run(path, &ignored, ret_former) == 0 &&
           ret_former->number == present->number - 1 && difference(ret_former, model) == NULL;
}

static struct sgp_run next_of(const struct sgp_run *former, const struct sgp_run *model)
{
    struct sgp_run next = *model;
    next.number = former->number + former->begun;
    next.begun = false;
    return next;
}

int sgp_run_plan(const char *directory, const struct sgp_run *model, struct sgp_error *error,
    struct sgp_run_plan *ret_plan)
{
    struct sgp_run_plan plan = {.kind = SGP_RUN_FIRST, .run = next_of(&(struct sgp_run){0}, model)};
    struct sgp_error why = {0};
    int code = read_run(directory, &why, &plan.former);
    if (code == -ENOENT && has(directory, ".", "ledger"))
        return sgp_fail(error, SGP_E_STATE,
            "%s: a ledger is there, and no file `run` that says what it trains: an earlier sgpd "
            "wrote it; `sgpctl reset` sets it aside, and the node begins anew",
            directory);
    if (code < 0 && code != -ENOENT)
        return sgp_fail(error, code, "%s", why.text);
    if (code == 0 && (plan.why = difference(&plan.former, model)) == NULL) {
        plan.kind = SGP_RUN_GOES_ON;
        plan.run.number = plan.former.number;
        plan.run.begun = plan.former.begun;
        plan.other_rows = differs(plan.former.data, model->data);
        keep_known(&plan.run.classes, plan.former.classes);
        keep_known(&plan.run.scaling, plan.former.scaling);
        keep_known(&plan.run.data, plan.former.data);
    } else if (code == 0 && !plan.former.begun &&
               find_former(directory, &plan.former, model, &plan.run)) {
        plan.kind = SGP_RUN_RESUMED;
    } else if (code == 0) {
        plan.kind = SGP_RUN_NEW;
        plan.run = next_of(&plan.former, model);
    }
    *ret_plan = plan;
    return 0;
}

static bool is_same(const struct sgp_run *a, const struct sgp_run *b)
{
    return a->number == b->number && a->begun == b->begun && a->shape == b->shape &&
           a->loss == b->loss && a->classes == b->classes && a->scaling == b->scaling &&
           a->data == b->data;
}

int sgp_run_follow(const char *directory, const struct sgp_run_plan *plan, struct sgp_error *error,
    char name[SGP_RUN_NAME_BYTES])
{
    char former[PATH_BYTES];
    int code = 0;
    name[0] = '\0';
    if (plan->kind == SGP_RUN_NEW || plan->kind == SGP_RUN_RESUMED)
        code = set_aside(directory, &plan->former, error, name);
    if (code == 0 && plan->kind == SGP_RUN_RESUMED) {
        (void)snprintf(former, sizeof former, "%s/run-%" PRIu64, directory, plan->run.number);
        code = move_files(former, directory, true, error);
        if (code == 0)
            (void)rmdir(former); /* fails if the directory has other files, which are kept */
    }
    /* A run that continues unchanged is not written again, so it works with a full disk. */
    if (code < 0 || is_same(&plan->run, &plan->former))
        return code;
    return sgp_run_write(directory, &plan->run, error);
}

/* ---- reset ---- */

static int reset_one(
    const char *directory, bool join, struct sgp_error *error, char name[SGP_RUN_NAME_BYTES])
{
    struct sgp_run former = {.number = 0}, next;
    struct sgp_error why = {0};
    int code = read_run(directory, &why, &former);
    if (code < 0 && code != -ENOENT && code != SGP_E_DATA)
        return sgp_fail(error, code, "%s", why.text);
    bool left = false;
    for (size_t i = 0; i < FILES; i++)
        left = left || has(directory, ".", files[i]);
    if (!left)
        return sgp_fail(error, -ENOENT, "%s: there is no run to set aside", directory);
    next = next_of(&former, &(struct sgp_run){.number = 0});
    if (join)
        next.number = 0;
    code = set_aside(directory, &former, error, name);
    return code < 0 ? code : sgp_run_write(directory, &next, error);
}

int sgp_run_reset(
    const char *directory, bool join, struct sgp_error *error, char name[SGP_RUN_NAME_BYTES])
{
    DIR *listing = opendir(directory);
    if (listing == NULL)
        return sgp_fail(error, -errno, "%s: cannot be opened: %s", directory, strerror(errno));
    int code = 0;
    const struct dirent *entry;
    while (code == 0 && (entry = readdir(listing)) != NULL) {
        char within[PATH_BYTES], ignored[SGP_RUN_NAME_BYTES];
        bool owner = entry->d_name[0] != '.' && strncmp(entry->d_name, "run-", 4) != 0 &&
                     has(directory, entry->d_name, "run");
        if (owner && (code = path_of(directory, entry->d_name, error, within)) == 0)
            code = reset_one(within, join, error, ignored);
    }
    (void)closedir(listing);
    return code < 0 ? code : reset_one(directory, join, error, name);
}
