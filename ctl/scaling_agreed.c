/* SPDX-License-Identifier: Apache-2.0 */
/* The scaling on which a fleet has agreed, as its daemons have it ([data] scale = fleet). */
#include "ctl.h"

#include "train/scaling.h"

#include <stdlib.h>
#include <string.h>

static enum ctl_exit ask(struct ctl *ctl, struct ctl_reply *ret_reply)
{
    const struct ctl_request request = {.method = "GET", .path = "/v1/scaling"};
    return ctl_ask(ctl, &request, ret_reply);
}

/* ---- show ---- */

static void print_members(const json_t *members)
{
    const char *name;
    json_t *rows;
    size_t printed = 0;
    json_object_foreach((json_t *)(uintptr_t)members, name, rows)(void) printf(
        "%s%s %lld", printed++ > 0 ? ", " : "rows: ", name, (long long)json_integer_value(rows));
    (void)printf("\n\n");
}

/* Values come from the statistics of other nodes, so they are printed as untrusted text. */
static void print_column(const struct ctl *ctl, const json_t *column)
{
    const json_t *values = json_object_get(column, "values");
    char text[CTL_CELL_BYTES];
    size_t index;
    json_t *value;
    ctl_cell(ctl, "name", json_object_get(column, "name"), text);
    if (values == NULL) {
        (void)printf("%-24s %14.9g %14.9g\n", text,
            json_number_value(json_object_get(column, "mean")),
            json_number_value(json_object_get(column, "deviation")));
        return;
    }
    (void)printf("%-24s ", text);
    json_array_foreach(values, index, value)
    {
        ctl_cell(ctl, "value", value, text);
        (void)printf("%s%s", index > 0 ? ", " : "", text);
    }
    (void)printf("\n");
}

static enum ctl_exit show(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_reply reply;
    json_error_t where;
    size_t index;
    json_t *column;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, NULL, 0, 0, 0);
    if (status == CTL_DONE)
        status = ask(ctl, &reply);
    if (status != CTL_DONE)
        return status;
    json_t *root = json_loadb(reply.text, reply.bytes, 0, &where);
    free(reply.text);
    if (root == NULL)
        return ctl_fail(ctl, CTL_FAILED, "the daemon answers no JSON: %s", where.text);
    if (ctl->json)
        return ctl_print_json(root);
    print_members(json_object_get(root, "members"));
    (void)printf("%-24s %14s %14s\n", "column", "mean", "deviation");
    json_array_foreach(json_object_get(root, "columns"), index, column) print_column(ctl, column);
    if (sgp_scaling_scales_targets(root)) {
        (void)printf("\n%-24s %14s %14s\n", "label", "mean", "deviation");
        json_array_foreach(json_object_get(root, "targets"), index, column)
            print_column(ctl, column);
    }
    json_decref(root);
    return CTL_DONE;
}

const struct ctl_command ctl_scaling_show_command = {.words = "scaling show",
    .operands = "",
    .summary = "the scaling on which the fleet has agreed",
    .help =
        "For [data] scale = fleet: how many rows each node has told, and mean and deviation of\n"
        "each column of numbers, or the values of each column of words. Then the same of label\n"
        "columns of numbers. With --json it is the file STATE/scale.json.\n",
    .run = show};

/* ---- export ---- */

static enum ctl_exit export_scaling(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_reply reply;
    struct sgp_error error = {0};
    struct sgp_scaling *scaling = NULL;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, NULL, 0, 1, 1);
    if (status == CTL_DONE)
        status = ask(ctl, &reply);
    if (status != CTL_DONE)
        return status;
    int code = sgp_scaling_parse(reply.text, reply.bytes, "the daemon's answer", &error, &scaling);
    free(reply.text);
    if (code == 0)
        code = sgp_scaling_write(scaling, argv[0], &error);
    const uint32_t features = code == 0 ? sgp_scaling_features(scaling) : 0;
    sgp_scaling_destroy(scaling);
    if (code < 0)
        return ctl_fail(ctl, CTL_FAILED, "%s", error.text);
    if (ctl->json)
        return ctl_print_json(json_pack(
            "{s:o, s:I}", "file", ctl_json_text(argv[0]), "features", (json_int_t)features));
    (void)printf("%s: %u features\n", argv[0], features);
    return CTL_DONE;
}

const struct ctl_command ctl_scaling_export_command = {.words = "scaling export",
    .operands = "JSON",
    .summary = "write that scaling to a file, for [data] scale = FILE",
    .help =
        "Writes the scaling on which the fleet has agreed to the file JSON, as `sgpctl scaling`\n"
        "writes one. A node of another fleet, or a program, can use it.\n",
    .run = export_scaling};
