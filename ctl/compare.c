/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl compare` executes a program in Python. It is in `compare/` beside this program, or in the
 * folder of shared files (ctl/compare/__main__.py). */
#include "ctl.h"

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

static const struct ctl_option compare_options[] = {
    {"--nodes", .value = "N",
        .summary = "of the base, whatever it says; a variant may say nodes = +1"},
    {"--results", .value = "DIRECTORY", .summary = "where results are kept"},
    {"--picture", .value = "FILE",
        .summary = "where the picture goes (comparison.svg among the results)"},
    {"--again", .summary = "run also what has a result"}, {0}};

static enum ctl_exit compare(struct ctl *ctl, int argc, char **argv)
{
    char own[PATH_MAX], folder[PATH_MAX];
    struct ctl_given options[4] = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, options, 4, 1, 1);
    if (status != CTL_DONE)
        return status;
    if (!find_program(own, folder))
        return ctl_fail(ctl, CTL_FAILED,
            "the program that compares is not there; it is installed in share/sgpd/compare");
    /* -I: ignore the environment and the user's packages. -B: write no files beside the program. */
    char *words[20] = {PYTHON, "-I", "-B", folder, "--sgpctl", own};
    int count = 6;
    for (int i = 0; i < 3; i++)
        if (options[i].given) {
            words[count++] = (char *)options[i].name;
            words[count++] = (char *)options[i].value;
        }
    if (options[3].given)
        words[count++] = (char *)options[3].name;
    if (ctl->json)
        words[count++] = "--json";
    words[count++] = "--";
    words[count++] = argv[0];
    (void)execv(PYTHON, words);
    return ctl_fail(ctl, CTL_FAILED, "%s cannot be run: %s; install Debian's python3", PYTHON,
        sgp_strerror(-errno));
}

const struct ctl_command ctl_compare_command = {.words = "compare",
    .operands = "FILE",
    .options = compare_options,
    .summary = "train every variant of a plan, one after another, and tell which did best",
    .help =
        "FILE is INI: [base] says what all have in common, every other section is a variant and\n"
        "says what it changes:\n"
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
