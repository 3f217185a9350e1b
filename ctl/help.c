/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a table of commands: for a person as --help, for a machine as JSON. `pages.py`
 * makes the man pages and the completions from the JSON, so that there is no second text. */
#include "ctl.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH 80
#define COLUMN_MAX 28 /* where summaries begin at the most */
#define USAGE_OPTIONS_MAX 9

static const struct ctl_option shared_options[] = {
    {"-n", .value = "NAME",
        .summary = "the daemon of this name: /run/sgpd/NAME/control.sock; or NAME.owner"},
    {"-s", .value = "SOCKET",
        .summary = "the daemon behind this socket; by default the only one under /run/sgpd"},
    {"--json", .summary = "answer with JSON, one value on a line, errors included"},
    {"--help", .summary = "what a command does"},
    {"--version", .summary = "of this program and of the protocol"}, {0}};

static const char *const exits[] = {[CTL_DONE] = "done",
    [CTL_FAILED] = "failed",
    [CTL_USAGE] = "wrong command line",
    [CTL_NOT_RUNNING] = "the daemon is not running",
    [CTL_NOT_PERMITTED] = "not permitted",
    [CTL_TIMED_OUT] = "timed out",
    [CTL_INVALID] = "invalid file",
    [CTL_DEGRADED] = "degraded (status --check, wait)"};
#define EXIT_COUNT (sizeof exits / sizeof *exits)

static const char patience[] =
    "A request that is not answered within 30 s is given up, with 5. But wait asks again, and "
    "leave, reload, "
    "evaluate, predict and export wait for as long as the daemon computes.";

/* ---- for a person ---- */

/* Print words from column `at` on, where the cursor is. Further lines begin at `column`. */
static void fill(const char *text, int at, int column)
{
    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        if (at > column && at + 1 + length > WIDTH) {
            (void)printf("\n%*s", column, "");
            at = column;
        }
        at += printf("%s%.*s", at > column ? " " : "", length, text);
        text += length + (text[length] == ' ');
    }
    (void)putchar('\n');
}

static int left_length(const char *left, const char *value)
{
    return (int)(strlen(left) + (value ? strlen(value) + 1 : 0));
}

/* `  LEFT VALUE  summary`. The summary begins at the column, and on a line of its own if the left
 * part is too long. */
static void print_entry(const char *left, const char *value, const char *summary, int column)
{
    (void)printf("  %s%s%s", left, value ? " " : "", value ? value : "");
    int at = 2 + left_length(left, value);
    if (at > column - 2)
        (void)printf("\n%*s", column, "");
    else
        (void)printf("%*s", column - at, "");
    fill(summary, column, column);
}

static int widen(int column, int length)
{
    return length + 4 > column && length + 4 <= COLUMN_MAX ? length + 4 : column;
}

static void print_options(const struct ctl_option *options)
{
    int column = 0;
    for (const struct ctl_option *option = options; option->name; option++)
        column = widen(column, left_length(option->name, option->value));
    for (const struct ctl_option *option = options; option->name; option++)
        print_entry(option->name, option->value, option->summary, column ? column : COLUMN_MAX);
}

static void print_common(void)
{
    (void)fputs("\nOptions, anywhere on the line:\n", stdout);
    print_options(shared_options);
    (void)fputs("\nExit status: ", stdout);
    char text[512] = "";
    for (size_t i = 0, used = 0; i < EXIT_COUNT; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s%zu %s", i > 0 ? ", " : "", i, exits[i]);
    fill(text, 13, 13);
    fill(patience, 0, 0);
}

/* The line after "usage: ". If there are many options, the line says only that there are some.
 * Operands after a `--` come last. */
static void usage(const struct ctl_command *command, char *text, size_t capacity)
{
    const struct ctl_option *options = command->options;
    bool last = strncmp(command->operands, "--", 2) == 0;
    size_t count = 0, used = 0;
    while (options && options[count].name)
        count++;
    used += (size_t)snprintf(text, capacity, "sgpctl %s%s%s", command->words,
        command->operands[0] && !last ? " " : "", last ? "" : command->operands);
    if (count > USAGE_OPTIONS_MAX)
        used += (size_t)snprintf(text + used, capacity - used, " [OPTION ...]");
    for (size_t i = 0; i < count && count <= USAGE_OPTIONS_MAX; i++)
        used += (size_t)snprintf(text + used, capacity - used, " %s%s%s%s%s",
            options[i].required ? "" : "[", options[i].name, options[i].value ? " " : "",
            options[i].value ? options[i].value : "", options[i].required ? "" : "]");
    if (last)
        (void)snprintf(text + used, capacity - used, " %s", command->operands);
}

static void print_choice(const struct ctl_command *command)
{
    const char *summary;
    int column = 0;
    (void)printf("\n%.*s is one of\n", (int)strcspn(command->operands, " "), command->operands);
    for (size_t i = 0; command->choice(i, &summary); i++)
        column = widen(column, left_length(command->choice(i, &summary), NULL));
    const char *word;
    for (size_t i = 0; (word = command->choice(i, &summary)) != NULL; i++)
        print_entry(word, NULL, summary, column);
}

static void print_command(const struct ctl_command *command)
{
    char text[512];
    usage(command, text, sizeof text);
    (void)fputs("usage: ", stdout);
    fill(text, 7, 7);
    (void)printf("\n%s.\n", command->summary);
    if (command->help)
        (void)printf("\n%s", command->help);
    if (command->choice)
        print_choice(command);
    if (command->options) {
        (void)putchar('\n');
        print_options(command->options);
    }
    print_common();
}

/* ---- for a machine ---- */

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *options_json(const struct ctl_option *options)
{
    json_t *array = json_array();
    for (const struct ctl_option *option = options; option && option->name; option++)
        (void)json_array_append_new(
            array, json_pack("{s:s, s:o, s:s, s:o, s:b, s:b}", "name", option->name, "value",
                       text_or_null(option->value), "summary", option->summary, "words",
                       text_or_null(option->words), "required", option->required, "repeats",
                       option->repeats));
    return array;
}

static json_t *choice_json(const struct ctl_command *command)
{
    json_t *array = json_array();
    const char *word, *summary;
    for (size_t i = 0; command->choice && (word = command->choice(i, &summary)) != NULL; i++)
        (void)json_array_append_new(
            array, json_pack("{s:s, s:s}", "word", word, "summary", summary));
    return array;
}

static json_t *command_json(const struct ctl_command *command)
{
    char text[512];
    usage(command, text, sizeof text);
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "words", command->words, "operands",
        command->operands, "usage", text, "summary", command->summary, "help",
        text_or_null(command->help), "choice", choice_json(command), "options",
        options_json(command->options));
}

/* ---- both ---- */

enum ctl_exit ctl_help(const struct ctl *ctl, const struct ctl_command *command)
{
    if (ctl->json)
        return ctl_print_json(command_json(command));
    print_command(command);
    return CTL_DONE;
}

enum ctl_exit ctl_help_all(
    const struct ctl *ctl, const struct ctl_command *const *commands, size_t count)
{
    if (ctl->json) {
        json_t *all = json_array(), *statuses = json_array();
        for (size_t i = 0; i < count; i++)
            (void)json_array_append_new(all, command_json(commands[i]));
        for (size_t i = 0; i < EXIT_COUNT; i++)
            (void)json_array_append_new(statuses, json_string(exits[i]));
        return ctl_print_json(json_pack("{s:o, s:o, s:o, s:s}", "commands", all, "options",
            options_json(shared_options), "exit_statuses", statuses, "patience", patience));
    }
    (void)fputs("usage: sgpctl [-n NAME | -s SOCKET] [--json] COMMAND ...\n\nCommands:\n", stdout);
    for (size_t i = 0; i < count; i++)
        (void)printf("  %-18s  %s\n", commands[i]->words, commands[i]->summary);
    print_common();
    return CTL_DONE;
}
