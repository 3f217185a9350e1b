/* SPDX-License-Identifier: Apache-2.0 */
/* Options that `sgpctl launch` and `sgpctl up` share; see launch.h. */
#include "launch.h"

#include <string.h>

/* Each --set; the parser of options keeps only the last one. */
enum ctl_exit launch_take_settings(struct ctl *ctl, int argc, char **argv, struct launch_plan *plan)
{
    enum ctl_exit status = CTL_DONE;
    const char *text;
    int at = 0;
    while (status == CTL_DONE && (text = ctl_option_next(argc, argv, "--set", &at)) != NULL) {
        char label[128], section[64], key[64];
        const char *dot = strchr(text, '.'), *equals = strchr(text, '=');
        if (dot == NULL || equals == NULL || dot > equals || dot == text || equals == dot + 1)
            return ctl_usage(ctl, "--set takes SECTION.KEY=VALUE, not '%.100s'", text);
        (void)snprintf(label, sizeof label, "--set %.100s", text);
        (void)snprintf(section, sizeof section, "%.*s", (int)(dot - text), text);
        (void)snprintf(key, sizeof key, "%.*s", (int)(equals - dot - 1), dot + 1);
        status = launch_plan_set(ctl, plan, label, section, key, equals + 1);
    }
    return status;
}

enum ctl_exit launch_take_key(
    struct ctl *ctl, const struct ctl_given *option, const char *key, struct launch_plan *plan)
{
    char label[128];
    if (!option->given)
        return CTL_DONE;
    (void)snprintf(label, sizeof label, "%s %.100s", option->name, option->value);
    return launch_plan_set(ctl, plan, label, "train", key, option->value);
}
