/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of topology files, by diff(1); see differences.h.
 *
 * Fails: without diff(1), or without memory for what it prints, one line. */
#include "differences.h"

#include "sgp/dot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define DIFFERENT 1 /* exit status of diff(1) */

static enum ctl_exit parse(
    struct ctl *ctl, const char *text, const char *name, struct sgp_topology **ret_topology)
{
    struct sgp_error error = {0};
    const int code = sgp_dot_parse(text, strlen(text), name, &error, ret_topology);
    return code < 0 ? ctl_fail(ctl, CTL_INVALID, "%s",
                          error.text[0] != '\0' ? error.text : sgp_strerror(code))
                    : CTL_DONE;
}

/* ---- nodes ---- */

static bool is_changed(const struct sgp_topology_node *a, const struct sgp_topology_node *b)
{
    return strcmp(a->address, b->address) != 0 || memcmp(a->keys, b->keys, sizeof a->keys) != 0 ||
           a->relay != b->relay || a->owns != b->owns || a->own_part != b->own_part ||
           a->own_part_count != b->own_part_count || a->starts != b->starts;
}

/* Nodes of `a` that are not in `b`; or, with `changed`, those that are in both and differ. */
static json_t *names_of(const struct sgp_topology *a, const struct sgp_topology *b, bool changed)
{
    json_t *names = json_array();
    for (uint32_t i = 0; i < a->node_count; i++) {
        const int64_t at = sgp_topology_find(b, a->nodes[i].name);
        const bool wanted = changed ? at >= 0 && is_changed(&a->nodes[i], &b->nodes[at]) : at < 0;
        if (wanted)
            (void)json_array_append_new(names, json_string(a->nodes[i].name));
    }
    return names;
}

/* ---- lines ---- */

/* The file in the one way, in memory that a child can open. -1: errno says why. */
static int written(const struct sgp_topology *topology)
{
    const int descriptor = memfd_create("topology", 0);
    const int copy = descriptor >= 0 ? dup(descriptor) : -1;
    FILE *file = copy >= 0 ? fdopen(copy, "w") : NULL;
    const int code = file != NULL ? sgp_dot_write(file, topology, NULL) : -errno;
    if (file != NULL && fclose(file) == 0 && code == 0)
        return descriptor;
    if (descriptor >= 0)
        (void)close(descriptor);
    return -1;
}

/* diff(1) of two descriptors into a third. Its exit status, or -errno. */
static int run_diff(const struct ctl_differences *sides, int before, int after, int output)
{
    char paths[2][32], labels[2][SGP_TEXT_BYTES];
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;
    (void)snprintf(paths[0], sizeof paths[0], "/dev/fd/%d", before);
    (void)snprintf(paths[1], sizeof paths[1], "/dev/fd/%d", after);
    (void)snprintf(labels[0], sizeof labels[0], "--label=%s", sides->before_name);
    (void)snprintf(labels[1], sizeof labels[1], "--label=%s", sides->after_name);
    char *arguments[] = {
        "diff", "-U0", "-F^digraph", labels[0], labels[1], "--", paths[0], paths[1], NULL};
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    const int code = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (code != 0)
        return -code;
    if (waitpid(child, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/* The lines of a file as an array; they are of untrusted files. */
static json_t *lines_of(FILE *file)
{
    json_t *lines = json_array();
    char *line = NULL;
    size_t capacity = 0;
    rewind(file);
    while (getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        (void)json_array_append_new(lines, ctl_json_text(line));
    }
    free(line);
    return lines;
}

static enum ctl_exit compare(struct ctl *ctl, const struct ctl_differences *sides,
    const struct sgp_topology *before, const struct sgp_topology *after, json_t **ret_lines)
{
    FILE *output = tmpfile();
    const int one = written(before), other = written(after);
    int code = output != NULL && one >= 0 && other >= 0
                   ? run_diff(sides, one, other, fileno(output))
                   : -ENOMEM;
    if (code == 0 || code == DIFFERENT)
        *ret_lines = lines_of(output);
    if (one >= 0)
        (void)close(one);
    if (other >= 0)
        (void)close(other);
    if (output != NULL)
        (void)fclose(output);
    return code == 0 || code == DIFFERENT
               ? CTL_DONE
               : ctl_fail(ctl, CTL_FAILED, "diff(1) of %s and %s: %s", sides->before_name,
                     sides->after_name, code < 0 ? strerror(-code) : "it has failed");
}

/* ---- all ---- */

enum ctl_exit ctl_differences_json(
    struct ctl *ctl, const struct ctl_differences *sides, json_t **ret_json)
{
    struct sgp_topology *before = NULL, *after = NULL;
    json_t *lines = NULL;
    enum ctl_exit status = parse(ctl, sides->before, sides->before_name, &before);
    if (status == CTL_DONE)
        status = parse(ctl, sides->after, sides->after_name, &after);
    if (status == CTL_DONE)
        status = compare(ctl, sides, before, after, &lines);
    if (status == CTL_DONE)
        *ret_json = json_pack("{s:o, s:o, s:o, s:o}", "added", names_of(after, before, false),
            "struck", names_of(before, after, false), "changed", names_of(after, before, true),
            "differences", lines);
    sgp_topology_destroy(before);
    sgp_topology_destroy(after);
    return status;
}

void ctl_differences_print(const json_t *json, FILE *file)
{
    static const char *const keys[] = {"added", "struck", "changed"};
    const json_t *lines = json_object_get(json, "differences"), *name;
    size_t index;
    if (lines == NULL)
        return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *names = json_object_get(json, keys[i]);
        if (json_array_size(names) > 0)
            (void)fprintf(file, "%-12s", keys[i]);
        json_array_foreach((json_t *)names, index, name)
        {
            (void)fprintf(file, "%s%s", index > 0 ? "," : " ", json_string_value(name));
        }
        (void)fputs(json_array_size(names) > 0 ? "\n" : "", file);
    }
    json_array_foreach((json_t *)lines, index, name)
    {
        (void)fprintf(file, "%s\n", json_string_value(name));
    }
    if (json_array_size(lines) == 0)
        (void)fputs("the two files say the same\n", file);
}
