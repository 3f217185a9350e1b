/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a child; see launch.h. */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

void launch_environment_set(
    struct launch_environment *environment, const char *name, const char *text)
{
    char *variable = NULL;
    sgp_assert(environment->count < LAUNCH_VARIABLES_MAX);
    if (asprintf(&variable, "%s=%s", name, text) > 0)
        environment->own[environment->count++] = variable;
}

void launch_environment_set_number(
    struct launch_environment *environment, const char *name, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    launch_environment_set(environment, name, text);
}

bool launch_environment_inherit(struct launch_environment *environment)
{
    size_t count = 0, kept = environment->count;
    while (environ[count])
        count++;
    environment->all = calloc(count + environment->count + 1, sizeof *environment->all);
    if (environment->all == NULL)
        return false;
    memcpy(environment->all, environment->own, kept * sizeof *environment->own);
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(environ[i], "=") + 1, j = 0;
        while (j < environment->count && strncmp(environment->own[j], environ[i], length) != 0)
            j++;
        if (j == environment->count)
            environment->all[kept++] = environ[i];
    }
    return true;
}

void launch_environment_free(struct launch_environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->own[i]);
    free(environment->all);
}
