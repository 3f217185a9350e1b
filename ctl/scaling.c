/* SPDX-License-Identifier: Apache-2.0 */
/* How the columns of a CSV file become features, without a daemon: the file that [data] scale
 * names. */
#include "ctl.h"

#include "sgp/dataset.h"

#include <errno.h>
#include <stdlib.h>

/* Compute the scaling of all columns but those of --label and --ignore. */
static int compute(const char *csv, const struct ctl_given *label, const struct ctl_given *ignore,
    struct sgp_error *error, struct sgp_scaling **ret_scaling)
{
    char *left_out = NULL;
    if (label->given && ignore->given &&
        asprintf(&left_out, "%s,%s", label->value, ignore->value) < 0)
        return sgp_fail(error, -ENOMEM, "out of memory");
    int code = sgp_scaling_compute(csv,
        left_out        ? left_out
        : label->given  ? label->value
        : ignore->given ? ignore->value
                        : NULL,
        error, ret_scaling);
    free(left_out);
    return code;
}

static enum ctl_exit make(struct ctl *ctl, int argc, char **argv)
{
    enum { LABEL, IGNORE, COUNT };
    struct ctl_given given[COUNT] = {0};
    struct sgp_scaling *scaling = NULL;
    struct sgp_error error = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, COUNT, 2, 2);
    if (status != CTL_DONE)
        return status;
    int code = compute(argv[0], &given[LABEL], &given[IGNORE], &error, &scaling);
    if (code < 0)
        return ctl_fail(ctl, CTL_INVALID, "%s", error.text);
    uint32_t features = sgp_scaling_features(scaling);
    char columns[SGP_TEXT_BYTES / 2];
    sgp_scaling_columns(scaling, columns, sizeof columns);
    if (!given[LABEL].given) {
        struct sgp_error note = {0}; /* removes control characters */
        (void)sgp_fail(&note, SGP_E_DATA,
            "without --label every column of %s is a feature (%s); if [data] label names one of "
            "them, give it with --label",
            argv[0], columns);
        (void)fprintf(stderr, "sgpctl: %s\n", note.text);
    }
    code = sgp_scaling_write(scaling, argv[1], &error);
    sgp_scaling_destroy(scaling);
    if (code < 0)
        return ctl_fail(ctl, CTL_FAILED, "%s", error.text);
    if (ctl->json)
        return ctl_print_json(json_pack(
            "{s:o, s:I}", "file", ctl_json_text(argv[1]), "features", (json_int_t)features));
    (void)printf("%s: %u features\n", argv[1], features);
    return CTL_DONE;
}

static const struct ctl_option scaling_options[] = {
    {"--label", .value = "COLUMNS",
        .summary = "what is to be predicted, separated by commas; it is left out. Without it "
                   "every column is a feature"},
    {"--ignore", .value = "COLUMNS",
        .summary = "columns that are to be no features, separated by commas"},
    {0}};

const struct ctl_command ctl_scaling_command = {.words = "scaling",
    .operands = "CSV JSON",
    .options = scaling_options,
    .summary = "compute how the columns of a table become features, for [data] scale",
    .help =
        "Reads the table CSV, and writes mean and deviation of each column of numbers, and the\n"
        "values of each column of words, to the file JSON. All nodes need the same file: make it\n"
        "once, on the rows of one node if those of all are nowhere together, and copy it. It may\n"
        "be edited: a column that it does not name is not used. No daemon is needed.\n",
    .run = make};
