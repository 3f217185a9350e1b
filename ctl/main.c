/* SPDX-License-Identifier: Apache-2.0 */
/* sgpctl: finds the command, and takes the options that all commands share.
 *
 * One thread runs one command, and the process ends. Only effects outside the process are undone at
 * the end: half-written files. */
#include "ctl.h"

#include "base/text.h"

#include "sgp/version.h"
#include "sgp/wire.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct ctl_command *const commands[] = {&ctl_status_command, &ctl_peers_command,
    &ctl_fleet_command, &ctl_history_command, &ctl_topology_command, &ctl_metrics_command,
    &ctl_dashboard_command, &ctl_wait_command, &ctl_watch_command, &ctl_pause_command,
    &ctl_resume_command, &ctl_stop_command, &ctl_leave_command, &ctl_reset_command,
    &ctl_checkpoint_command, &ctl_reload_command, &ctl_evaluate_command, &ctl_report_command,
    &ctl_predict_command, &ctl_export_command, &ctl_card_command, &ctl_topology_check_command,
    &ctl_topology_show_command, &ctl_topology_generate_command, &ctl_topology_sign_command,
    &ctl_topology_verify_command, &ctl_topology_push_command, &ctl_topology_rollback_command,
    &ctl_topology_log_command, &ctl_topology_diff_command, &ctl_key_generate_command,
    &ctl_key_show_command, &ctl_scaling_command, &ctl_scaling_show_command,
    &ctl_scaling_export_command, &ctl_simulate_command, &ctl_compare_command, &ctl_run_command,
    &ctl_launch_command, &ctl_up_command, &ctl_supervise_command, &ctl_replay_command,
    &ctl_token_restore_command, &ctl_config_new_command, &ctl_config_schedule_command,
    &ctl_plan_privacy_command, &ctl_data_describe_command, &ctl_data_statistics_command,
    &ctl_invite_command, &ctl_join_command, &ctl_admit_command};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static enum ctl_exit print_version(const struct ctl *ctl)
{
    if (ctl->json)
        return ctl_print_json(
            json_pack("{s:s, s:i}", "version", sgp_version(), "protocol", SGP_WIRE_VERSION));
    (void)printf("sgpctl %s (protocol %u)\n", sgp_version(), SGP_WIRE_VERSION);
    return CTL_DONE;
}

/* The command with the longest words that begin argv. *ret_words is the number of its words. */
static const struct ctl_command *find(int argc, char **argv, int *ret_words)
{
    char two[64];
    for (int words = argc > 1 ? 2 : argc; words > 0; words--) {
        (void)snprintf(
            two, sizeof two, "%s%s%s", argv[0], words == 2 ? " " : "", words == 2 ? argv[1] : "");
        for (size_t i = 0; i < COMMAND_COUNT; i++)
            if (strcmp(commands[i]->words, two) == 0) {
                *ret_words = words;
                return commands[i];
            }
    }
    return NULL;
}

/* How similar the command is to the typed text: by its first word, or by both words if the command
 * has two. */
static unsigned distance_to(const struct ctl_command *command, int argc, char **argv)
{
    char first[64], two[64];
    (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(command->words, " "), command->words);
    (void)snprintf(
        two, sizeof two, "%.30s%s%.30s", argv[0], argc > 1 ? " " : "", argc > 1 ? argv[1] : "");
    unsigned one = strchr(command->words, ' ') == NULL ? sgp_text_distance(argv[0], command->words)
                                                       : SGP_WORD_BYTES;
    unsigned both = sgp_text_distance(two, command->words);
    one += argc > 1; /* for two typed words, a command of two words is more likely */
    return one < both ? one : both;
}

static enum ctl_exit refuse_command(struct ctl *ctl, int argc, char **argv)
{
    const struct ctl_command *nearest = NULL;
    unsigned best = 3; /* a word of another meaning has a greater distance */
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (distance_to(commands[i], argc, argv) < best) {
            best = distance_to(commands[i], argc, argv);
            nearest = commands[i];
        }
    if (nearest != NULL)
        return ctl_usage(ctl, "'%s' is not a command; did you mean %s?", argv[0], nearest->words);
    return ctl_usage(ctl, "'%s' is not a command", argv[0]);
}

/* Print the help of the commands that begin with this word, such as `key generate` and `key show`.
 * Returns whether there are any. */
static bool help_group(const struct ctl *ctl, const char *word)
{
    size_t length = strlen(word), count = 0;
    const struct ctl_command *group[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strncmp(commands[i]->words, word, length) == 0 && commands[i]->words[length] == ' ')
            group[count++] = commands[i];
    if (count > 0)
        (void)ctl_help_all(ctl, group, count);
    return count > 0;
}

/* What the shared options request, besides a command. */
struct asked {
    bool help;
    bool version;
};

/* Take the shared options out of argv, wherever they are before a `--`. */
static enum ctl_exit take_shared(struct ctl *ctl, int *argc, char **argv, struct asked *asked)
{
    int kept = 0, i = 0;
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        const char **value = strcmp(argv[i], "-n") == 0   ? &ctl->name
                             : strcmp(argv[i], "-s") == 0 ? &ctl->socket
                                                          : NULL;
        if (value && i + 1 == *argc)
            return ctl_usage(ctl, "%s needs a value", argv[i]);
        if (value)
            *value = argv[++i];
        else if (strcmp(argv[i], "--json") == 0)
            ctl->json = true;
        else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            asked->help = true;
        else if (strcmp(argv[i], "--version") == 0)
            asked->version = true;
        else
            argv[kept++] = argv[i];
    }
    while (i < *argc)
        argv[kept++] = argv[i++];
    *argc = kept;
    if (ctl->name && ctl->socket)
        return ctl_usage(ctl, "-n and -s both name a daemon; give one of them");
    return CTL_DONE;
}

static enum ctl_exit run(struct ctl *ctl, int argc, char **argv)
{
    /* Errors on the command line are also reported as JSON, wherever --json is. */
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        ctl->json |= strcmp(argv[i], "--json") == 0;
    struct asked asked = {0};
    int words = 0;
    enum ctl_exit status = take_shared(ctl, &argc, argv, &asked);
    if (status != CTL_DONE)
        return status;
    if (asked.version)
        return print_version(ctl);
    /* the following words are not options of sgpctl */
    if (argc > 0 && strcmp(argv[0], "--") == 0) {
        argc--;
        argv++;
    }
    ctl->command = argc > 0 ? find(argc, argv, &words) : NULL;
    if (!ctl->command && argc > 0 && argv[0][0] == '-')
        return ctl_usage(ctl, "unknown option '%s'; those of a command stand behind it", argv[0]);
    if (!ctl->command && argc == 1 && asked.help && help_group(ctl, argv[0]))
        return CTL_DONE;
    if (!ctl->command && argc > 0)
        return refuse_command(ctl, argc, argv);
    if (asked.help)
        return ctl->command ? ctl_help(ctl, ctl->command)
                            : ctl_help_all(ctl, commands, COMMAND_COUNT);
    if (!ctl->command)
        return ctl_usage(ctl, "a command is missing");
    return ctl->command->run(ctl, argc - words, argv + words);
}

int main(int argc, char **argv)
{
    (void)setlocale(LC_CTYPE, ""); /* LC_NUMERIC stays: numbers are the same everywhere */
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    struct ctl ctl = {.terminal = isatty(STDOUT_FILENO) == 1};
    ctl.colour = ctl.terminal && !(no_colour && no_colour[0] != '\0') &&
                 !(term && strcmp(term, "dumb") == 0);
    enum ctl_exit status = run(&ctl, argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void)fputs("sgpctl: standard output cannot be written\n", stderr);
        if (status == CTL_DONE)
            status = CTL_FAILED;
    }
    return (int)status;
}
