/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a command: options anywhere among the operands, numbers with their ranges. */
#include "ctl.h"

#include <string.h>

/* The option that an argument names, or NULL; *ret_value is what follows a '='. */
static struct ctl_option *find(
    const char *argument, struct ctl_option *options, size_t count, const char **ret_value)
{
    size_t length = strcspn(argument, "=");
    *ret_value = argument[length] == '=' ? argument + length + 1 : NULL;
    for (size_t i = 0; i < count; i++)
        if (strlen(options[i].name) == length && strncmp(options[i].name, argument, length) == 0)
            return &options[i];
    return NULL;
}

enum ctl_exit ctl_options_take(struct ctl *ctl, int *argc, char **argv, struct ctl_option *options,
    size_t count, int least, int most)
{
    int operands = 0;
    bool ended = false;
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
        struct ctl_option *option = find(argument, options, count, &value);
        if (!option)
            return ctl_usage(ctl, "unknown option '%s'", argument);
        if (option->flag && value)
            return ctl_usage(ctl, "%s takes no value", option->name);
        if (!option->flag && !value && i + 1 < *argc)
            value = argv[++i];
        if (!option->flag && !value)
            return ctl_usage(ctl, "%s needs a value", option->name);
        option->given = true;
        option->value = value;
    }
    *argc = operands;
    if (operands < least)
        return ctl_usage(ctl, "an argument is missing");
    if (operands > most)
        return ctl_usage(ctl, "'%s' is one argument too many", argv[most]);
    return CTL_DONE;
}

enum ctl_exit ctl_option_u64(struct ctl *ctl, const struct ctl_option *option, uint64_t least,
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
    struct ctl *ctl, const struct ctl_option *option, double least, double most, double *ret_number)
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
