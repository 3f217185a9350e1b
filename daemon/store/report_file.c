/* SPDX-License-Identifier: Apache-2.0 */
/* See report_file.h. */
#include "report_file.h"

#include "train/atomic_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FORM 1

static json_t *render(const struct view_reports *reports)
{
    json_t *nodes = json_array();
    for (uint32_t i = 0; i < reports->count; i++) {
        const struct view_report *report = &reports->reports[i];
        if (report->text != NULL)
            (void)json_array_append_new(
                nodes, json_pack("{s:s, s:I, s:s}", "name", report->name, "stamp",
                           (json_int_t)report->stamp, "report", report->text));
    }
    return json_pack("{s:i, s:o}", "sgp_reports", FORM, "nodes", nodes);
}

int report_file_write(const char *path, const struct view_reports *reports, struct sgp_error *error)
{
    struct sgp_atomic_file file;
    json_t *root = render(reports);
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(root);
    if (text == NULL)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    int code = sgp_atomic_open(&file, path, SGP_ATOMIC_PRIVATE, error);
    if (code == 0) {
        sgp_atomic_write(&file, text, strlen(text));
        sgp_atomic_write(&file, "\n", 1);
        code = sgp_atomic_commit(&file, error);
    }
    free(text);
    return code;
}

/* One entry; false: it is none. */
static bool take(const json_t *entry, struct view_report *report)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *text = json_string_value(json_object_get(entry, "report"));
    const json_t *stamp = json_object_get(entry, "stamp");
    if (name == NULL || strlen(name) >= sizeof report->name || text == NULL ||
        !json_is_integer(stamp) || json_integer_value(stamp) < 0)
        return false;
    (void)snprintf(report->name, sizeof report->name, "%s", name);
    report->stamp = (uint64_t)json_integer_value(stamp);
    report->text = strdup(text);
    return report->text != NULL;
}

static struct view_reports *take_all(const json_t *nodes)
{
    const size_t count = json_array_size(nodes);
    struct view_reports *reports =
        calloc(1, sizeof *reports + (count + 1) * sizeof *reports->reports);
    if (reports == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++, reports->count++)
        if (!take(json_array_get(nodes, i), &reports->reports[i])) {
            view_reports_free(reports);
            return NULL;
        }
    return reports;
}

int report_file_read(const char *path, struct sgp_error *error, struct view_reports **ret_reports)
{
    struct stat status;
    if (stat(path, &status) < 0 && errno == ENOENT)
        return 0;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    const json_t *nodes = json_object_get(root, "nodes");
    const bool known = json_integer_value(json_object_get(root, "sgp_reports")) == FORM;
    *ret_reports = known && json_is_array(nodes) ? take_all(nodes) : NULL;
    json_decref(root);
    return *ret_reports != NULL
               ? 1
               : sgp_fail(error, SGP_E_FILE,
                     "%s: not the reports of a fleet; the nodes tell them again", path);
}
