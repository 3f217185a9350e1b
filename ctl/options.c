/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a command: options anywhere among the operands, numbers with their ranges, words
 * out of a list. */
#include "ctl.h"

#include <string.h>

/* The index of the option that an argument names, or `count`. *ret_value is the text after
 * a '='. */
static size_t find(
    const char *argument, const struct ctl_option *options, size_t count, const char **ret_value)
{
    size_t length = strcspn(argument, "="), i = 0;
    *ret_value = argument[length] == '=' ? argument + length + 1 : NULL;
    while (i < count &&
           (strlen(options[i].name) != length || strncmp(options[i].name, argument, length) != 0))
        i++;
    return i;
}

/* Requirements of the command besides its operands. */
static enum ctl_exit require(struct ctl *ctl, const struct ctl_given *given, size_t count)
{
    const struct ctl_option *options = ctl->command->options;
    for (size_t i = 0; i < count; i++)
        if (options[i].required && !given[i].given)
            return ctl_usage(ctl, "%s %s is missing", options[i].name, options[i].value);
    return CTL_DONE;
}

enum ctl_exit ctl_options_take(struct ctl *ctl, int *argc, char **argv, struct ctl_given *given,
    size_t count, int least, int most)
{
    const struct ctl_option *options = ctl->command->options;
    int operands = 0;
    bool ended = false;
    for (size_t i = 0; i < count; i++)
        given[i] = (struct ctl_given){.name = options[i].name, .words = options[i].words};
    sgp_assert(options == NULL ? count == 0 : options[count].name == NULL);
    for (int i = 0; i < *argc; i++) {
        char *argument = argv[i];
        if (ended || argument[0] != '-' || argument[1] == '\0') {
            argv[operands++] = argument;
            continue;
        }
        if (strcmp(argument, "--") == 0) {
            ended = true;
            continue;
        }
        const char *value;
        size_t index = find(argument, options, count, &value);
        if (index == count)
            return ctl_usage(ctl, "unknown option '%s'", argument);
        bool flag = options[index].value == NULL;
        if (flag && value)
            return ctl_usage(ctl, "%s takes no value", options[index].name);
        if (!flag && !value && i + 1 < *argc)
            value = argv[++i];
        if (!flag && !value)
            return ctl_usage(ctl, "%s needs a value", options[index].name);
        given[index].given = true;
        given[index].value = value;
    }
    *argc = operands;
    if (operands < least)
        return ctl_usage(ctl, "an argument is missing");
    if (operands > most)
        return ctl_usage(ctl, "'%s' is one argument too many", argv[most]);
    return require(ctl, given, count);
}

const char *ctl_option_next(int argc, char **argv, const char *name, int *at)
{
    const size_t length = strlen(name);
    while (*at < argc && strcmp(argv[*at], "--") != 0) {
        const char *argument = argv[(*at)++];
        if (strncmp(argument, name, length) != 0)
            continue;
        if (argument[length] == '=')
            return argument + length + 1;
        if (argument[length] == '\0' && *at < argc)
            return argv[(*at)++];
    }
    return NULL;
}

enum ctl_exit ctl_option_u64(struct ctl *ctl, const struct ctl_given *option, uint64_t least,
    uint64_t most, uint64_t *ret_number)
{
    uint64_t number;
    if (!option->given)
        return CTL_DONE;
    if (!ctl_text_u64(option->value, &number) || number < least || number > most)
        return ctl_usage(ctl, "%s is a whole number from %llu to %llu, not '%s'", option->name,
            (unsigned long long)least, (unsigned long long)most, option->value);
    *ret_number = number;
    return CTL_DONE;
}

enum ctl_exit ctl_option_real(
    struct ctl *ctl, const struct ctl_given *option, double least, double most, double *ret_number)
{
    double number;
    if (!option->given)
        return CTL_DONE;
    if (!ctl_text_real(option->value, &number) || number < least || number > most)
        return ctl_usage(ctl, "%s is a number from %g to %g, not '%s'", option->name, least, most,
            option->value);
    *ret_number = number;
    return CTL_DONE;
}

/* The length of the first of these words. The next one begins one byte behind it, unless this is
 * the last. */
static size_t word_length(const char *words)
{
    return strcspn(words, " ");
}

/* "a", "a or b", "a, b or c" */
static void list_words(const char *words, char *text, size_t capacity)
{
    size_t length = 0;
    text[0] = '\0';
    for (const char *before = ""; length < capacity; words += word_length(words) + 1) {
        const char *next = words + word_length(words);
        length += (size_t)snprintf(
            text + length, capacity - length, "%s%.*s", before, (int)(next - words), words);
        if (*next == '\0')
            return;
        before = strchr(next + 1, ' ') ? ", " : " or ";
    }
}

enum ctl_exit ctl_option_word(struct ctl *ctl, const struct ctl_given *option, size_t *ret_index)
{
    char list[CTL_CELL_BYTES];
    size_t index = 0;
    if (!option->given)
        return CTL_DONE;
    for (const char *word = option->words;; word += word_length(word) + 1, index++) {
        size_t length = word_length(word);
        if (strlen(option->value) == length && strncmp(option->value, word, length) == 0) {
            *ret_index = index;
            return CTL_DONE;
        }
        if (word[length] == '\0')
            break;
    }
    list_words(option->words, list, sizeof list);
    return ctl_usage(ctl, "%s is %s, not '%s'", option->name, list, option->value);
}
