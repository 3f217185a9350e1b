/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl topology log`: the signed versions that this node has used, or the document of one. */
#include "rollout.h"

#include <stdlib.h>
#include <string.h>

#define MARK_BYTES 17u /* of a hash that a person compares */

static json_t *mark_of(const json_t *version, const char *key)
{
    char mark[MARK_BYTES];
    (void)snprintf(mark, sizeof mark, "%s", ctl_text_of(version, key, ""));
    return mark[0] != '\0' ? json_string(mark) : json_null();
}

static void print_versions(const struct ctl *ctl, const json_t *versions)
{
    static const char *const columns[] = {"version", "used_at", "manifest", "predecessor", "bytes",
        "recovered", "despite", "signers"};
    json_t *rows = json_array(), *version;
    size_t index;
    json_array_foreach((json_t *)versions, index, version)
    {
        json_t *row = json_copy(version);
        (void)json_object_set_new(row, "manifest", mark_of(version, "identity"));
        (void)json_object_set_new(row, "predecessor", mark_of(version, "predecessor"));
        (void)json_array_append_new(rows, row);
    }
    ctl_print_table(ctl, rows, columns, sizeof columns / sizeof *columns);
    json_decref(rows);
}

static enum ctl_exit print_document(struct ctl *ctl, const char *version)
{
    char *text = NULL;
    if (!ctl_is_version(version))
        return ctl_usage(ctl, "'%s' is no version; give a number, active or proposed", version);
    enum ctl_exit status = ctl_rollout_text(ctl, version, &text);
    if (status == CTL_DONE && ctl->json)
        status = ctl_print_json(
            json_pack("{s:s, s:o}", "version", version, "document", ctl_json_text(text)));
    else if (status == CTL_DONE)
        (void)printf("%s%s", text, text[0] != '\0' && text[strlen(text) - 1] == '\n' ? "" : "\n");
    free(text);
    return status;
}

static enum ctl_exit run_log(struct ctl *ctl, int argc, char **argv)
{
    json_t *log = NULL;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, NULL, 0, 0, 1);
    if (status == CTL_DONE && argc > 0)
        return print_document(ctl, argv[0]);
    if (status == CTL_DONE)
        status = ctl_rollout_log(ctl, &log);
    if (status != CTL_DONE)
        return status;
    if (ctl->json)
        return ctl_print_json(log);
    print_versions(ctl, json_object_get(log, "versions"));
    json_decref(log);
    return CTL_DONE;
}

const struct ctl_command ctl_topology_log_command = {.words = "topology log",
    .operands = "[VERSION]",
    .summary = "show the signed versions that the node has used, or the document of one",
    .help =
        "The latest is first; a node keeps 32. Manifest and predecessor are the beginnings of the\n"
        "hashes that `topology verify` prints. `recovered`: the recovery key has signed.\n"
        "\n"
        "With VERSION, a number, `active` or `proposed`, it prints the signed document, one line\n"
        "for `topology sign --after` and `topology verify`. With --json the hashes are whole.\n",
    .run = run_log};
