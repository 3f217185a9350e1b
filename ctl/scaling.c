/* SPDX-License-Identifier: Apache-2.0 */
/* How the columns of a CSV file become features, without a daemon: the file that [data] scale
 * names. */
#include "ctl.h"

#include "sgp/dataset.h"

static enum ctl_exit make(struct ctl *ctl, int argc, char **argv)
{
    enum { LABEL, IGNORE, COUNT };
    struct ctl_given given[COUNT] = {0};
    struct sgp_scaling *scaling = NULL;
    struct sgp_error error = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, COUNT, 2, 2);
    if (status != CTL_DONE)
        return status;
    int code =
        sgp_scaling_compute(argv[0], given[LABEL].value, given[IGNORE].value, &error, &scaling);
    if (code < 0)
        return ctl_fail(ctl, CTL_INVALID, "%s", error.text);
    uint32_t features = sgp_scaling_features(scaling);
    uint32_t targets;
    (void)sgp_scaling_targets(scaling, &targets);
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
        return ctl_print_json(json_pack("{s:o, s:I, s:I}", "file", ctl_json_text(argv[1]),
            "features", (json_int_t)features, "targets", (json_int_t)targets));
    (void)printf("%s: %u features", argv[1], features);
    if (targets > 0)
        (void)printf(", %u scaled label column%s", targets, targets == 1 ? "" : "s");
    (void)putchar('\n');
    return CTL_DONE;
}

static const struct ctl_option scaling_options[] = {
    {"--label", .value = "COLUMNS",
        .summary = "what is to be predicted, separated by commas: no feature, and scaled if it "
                   "holds numbers alone. Without it every column is a feature"},
    {"--ignore", .value = "COLUMNS",
        .summary = "columns that are to be no features, separated by commas"},
    {0}};

const struct ctl_command ctl_scaling_command = {.words = "scaling",
    .operands = "CSV JSON",
    .options = scaling_options,
    .summary = "compute how the columns of a table become features, for [data] scale",
    .help =
        "Reads the table CSV, and writes mean and deviation of each column of numbers, and the\n"
        "values of each column of words, to the file JSON; so, too, of label columns of numbers,\n"
        "by which a model with loss = mse or huber learns. All nodes need the same file: make it\n"
        "once, on the rows of one node if those of all are nowhere together, and copy it. It may\n"
        "be edited: a column that it does not name is not used. No daemon is needed.\n",
    .run = make};
