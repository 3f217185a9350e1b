/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl compare`: a table of rows is rehearsed here (rehearsal.h). For a plan this executes a
 * program in Python, in `compare/` beside this program, or in the folder of shared files
 * (ctl/compare/__main__.py). */
#include "rehearsal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"

/* The folder of the Python program, and the path of this program. Returns whether the folder
 * exists. */
static bool find_program(char own[PATH_MAX], char folder[PATH_MAX])
{
    static const char *const places[] = {"compare", "../share/sgpd/compare"};
    ssize_t length = readlink("/proc/self/exe", own, PATH_MAX - 1);
    if (length <= 0)
        return false;
    own[length] = '\0';
    int end = (int)(strrchr(own, '/') - own);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char main[PATH_MAX]; /* other programs have that name, too */
        int bytes = snprintf(main, sizeof main, "%.*s/%s/__main__.py", end, own, places[i]);
        if (bytes >= PATH_MAX || access(main, R_OK) != 0)
            continue;
        (void)snprintf(folder, PATH_MAX, "%.*s/%s", end, own, places[i]);
        return true;
    }
    return false;
}

static const struct ctl_option compare_options[COMPARE_COUNT + 1] = {
    [COMPARE_NODES] = {"--nodes", .value = "N",
        .summary = "of rows: how many sites. Default: 4. Of a plan: of the base, whatever it says; "
                   "a variant may say nodes = +1"},
    [COMPARE_RESULTS] = {"--results", .value = "DIRECTORY",
        .summary = "of a plan: where results are kept"},
    [COMPARE_PICTURE] = {"--picture", .value = "FILE",
        .summary = "of a plan: where the picture goes (comparison.svg among the results)"},
    [COMPARE_AGAIN] = {"--again", .summary = "of a plan: run also what has a result"},
    [COMPARE_LABEL] = {"--label", .value = "COLUMN", .summary = "of rows: the column to predict"},
    [COMPARE_IGNORE] = {"--ignore", .value = "COLUMNS",
        .summary = "of rows: columns that are to be no features, separated by commas"},
    [COMPARE_SHARDS] = {"--shards", .value = "HOW",
        .summary =
            "of rows: how sites get them. iid: by lot, in equal parts; sorted: by the label, "
            "so that a site has few classes; dirichlet:A: by the label, the less alike the "
            "smaller A is. Default: iid",
        .words = "iid sorted dirichlet: round-robin contiguous"},
    [COMPARE_METHODS] = {"--methods", .value = "NAMES",
        .summary = "of rows: the methods, separated by commas. Default: all"},
    [COMPARE_SEED] = {"--seed", .value = "SEED",
        .summary = "of rows: of the division, the held-out rows and the first parameters. "
                   "Default: 1"},
    [COMPARE_HOLDOUT] = {"--holdout", .value = "PART",
        .summary = "of rows: the part that no site gets, on which models are measured. Default: "
                   "0.2"},
    [COMPARE_LAYERS] = {"--layers", .value = "LAYERS",
        .summary = "of rows: the layers of the model. Default: dense 32 relu, and one dense unit "
                   "for each output"},
    [COMPARE_EPOCHS] = {"--epochs", .value = "COUNT",
        .summary = "of rows: passes of a site over its rows. Default: 20, or as many as make 1000 "
                   "steps of that site"},
    [COMPARE_BATCH] = {"--batch", .value = "ROWS",
        .summary = "of rows: rows of a step. Default: 32"},
    [COMPARE_RATE] = {"--learning-rate", .value = "RATE",
        .summary = "of rows: step size. Default: 0.02"},
};

/* Run the plan in FILE by the program in Python. Returns only if that cannot be run. */
static enum ctl_exit compare_plan(struct ctl *ctl, char *file, const struct ctl_given *options)
{
    char own[PATH_MAX], folder[PATH_MAX];
    if (!find_program(own, folder))
        return ctl_fail(ctl, CTL_FAILED,
            "the program that compares is not there; it is installed in share/sgpd/compare");
    /* -I: ignore the environment and the user's packages. -B: write no files beside the program. */
    char *words[20] = {PYTHON, "-I", "-B", folder, "--sgpctl", own};
    int count = 6;
    for (int i = 0; i < COMPARE_ROWS; i++) {
        if (!options[i].given)
            continue;
        words[count++] = (char *)(uintptr_t)options[i].name;
        if (options[i].value)
            words[count++] = (char *)(uintptr_t)options[i].value;
    }
    if (ctl->json)
        words[count++] = "--json";
    words[count++] = "--";
    words[count++] = file;
    (void)execv(PYTHON, words);
    return ctl_fail(ctl, CTL_FAILED, "%s cannot be run: %s; install Debian's python3", PYTHON,
        sgp_strerror(-errno));
}

static bool holds_rows(const char *file)
{
    return ctl_ends_in(file, ".csv") || ctl_ends_in(file, ".csv.gz");
}

/* Whether the options are for the kind of the file. */
static enum ctl_exit check_kind(
    struct ctl *ctl, const char *file, const struct ctl_given *options, bool rows)
{
    for (int i = COMPARE_RESULTS; i < COMPARE_COUNT; i++)
        if (options[i].given && rows != (i >= COMPARE_ROWS))
            return rows ? ctl_usage(ctl, "%s is for plans, and %s holds rows; leave it out",
                              options[i].name, file)
                        : ctl_usage(ctl,
                              "%s is for rows, and %s is taken for a plan, because its name does "
                              "not end in .csv or .csv.gz",
                              options[i].name, file);
    return CTL_DONE;
}

static enum ctl_exit compare(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given options[COMPARE_COUNT] = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, options, COMPARE_COUNT, 1, 1);
    const bool rows = status == CTL_DONE && holds_rows(argv[0]);
    if (status == CTL_DONE)
        status = check_kind(ctl, argv[0], options, rows);
    if (status != CTL_DONE)
        return status;
    return rows ? ctl_rehearse(ctl, argv[0], options) : compare_plan(ctl, argv[0], options);
}

const struct ctl_command ctl_compare_command = {.words = "compare",
    .operands = "FILE",
    .options = compare_options,
    .summary = "train by several methods in turn, here, and tell which did best",
    .help =
        "FILE holds rows (.csv, .csv.gz), or is a plan (any other name).\n"
        "\n"
        "Rows are divided among the simulated sites of a rehearsal, each with a real learner and\n"
        "the configuration that `sgpctl config new` would write for it. A part is held out "
        "before.\n"
        "\n"
        "  sgpctl compare rows.csv --label diagnosis --nodes 50 --shards dirichlet:0.1\n"
        "\n"
        "For each method the table says how good the models of the sites are on the held-out\n"
        "rows: the mean, the worst, the best, and the distance of these two. Then come the "
        "rounds,\n"
        "the megabytes that a site sends and that the busiest node sends, and the topology as\n"
        "`sgpctl topology generate` makes it. The methods are\n"
        "\n"
        "  pooled      all rows at one site, which needs no network\n"
        "  alone       each site for itself\n"
        "  sgp         gossip of (parameters, weight) to one site in turn\n"
        "  osgp        the same; shares may be late\n"
        "  agp         the same; no site waits\n"
        "  dpsgd       symmetric gossip of parameters\n"
        "  adpsgd      halves with a site drawn by lot; no site waits\n"
        "  all-reduce  the exact mean of all sites after each step (algorithm sgp)\n"
        "  local       the exact mean after every 8 steps (algorithm sgp, local_steps 8)\n"
        "  backup      a parameter server that waits for all sites\n"
        "  downpour    a parameter server that waits for no site\n"
        "\n"
        "Bytes are those of float32. Time is virtual: a step takes 10 ms, a fifth more or less.\n"
        "Nothing leaves this process, and no daemon is needed.\n"
        "\n"
        "A plan is INI: [base] says what all have in common, every other section is a variant\n"
        "and says what it changes:\n"
        "\n"
        "  [compare]\n"
        "  run = daemons                  ; or simulated\n"
        "  goal = 0.88                    ; a test accuracy; or an error, if simulated\n"
        "  [base]\n"
        "  nodes = 4\n"
        "  topology = one-peer-exponential\n"
        "  train.epochs = 10              ; SECTION.KEY of sgpd.conf(5)\n"
        "  [one-peer]\n"
        "  [all-reduce]\n"
        "  topology = all-reduce-direct   ; as `sgpctl topology generate`, or a DOT file\n"
        "\n"
        "Daemons run here, on loopback; with run = simulated `simulate` names the options of\n"
        "sgpctl simulate. All variants are checked before the first one runs. Progress and time\n"
        "left go to standard error. Prints a table, with what it took until the last node was at\n"
        "the goal, if there is one, and draws test accuracy and loss of the worst and the best\n"
        "node by epoch, seconds and bytes (SVG). Every result is kept in\n"
        "FILE.results (without .ini): interrupted, it ends with 130, and the\n"
        "same command goes on with what is left. It needs Debian's python3.\n",
    .run = compare};
