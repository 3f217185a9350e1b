/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a configuration that every node of a fleet has: what an inviter sends to a joiner
 * (config.h). */
#include "config.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

/* Keys of one machine: its names, paths, addresses, threads and logs, and when it begins and
 * ends. */
static const enum config_id own[] = {CONFIG_ID_NAME, CONFIG_ID_STATE_DIRECTORY, CONFIG_ID_KEY,
    CONFIG_ID_TOPOLOGY, CONFIG_ID_START, CONFIG_ID_THREADS, CONFIG_ID_CHECKPOINT_SECONDS,
    CONFIG_ID_WHEN_DONE, CONFIG_ID_TRAIN, CONFIG_ID_LABELS, CONFIG_ID_TEST, CONFIG_ID_TEST_LABELS,
    CONFIG_ID_LISTEN, CONFIG_ID_SOCKET, CONFIG_ID_ATTACH, CONFIG_ID_LOG_LEVEL, CONFIG_ID_EVENTS,
    CONFIG_ID_TRACE, CONFIG_ID_TENSORBOARD};

static bool is_shared(const char *section, const char *key)
{
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(config_keys[own[i]].section, section) == 0 &&
            strcmp(config_keys[own[i]].key, key) == 0)
            return false;
    return true;
}

/* Whether a value is a file of one machine. */
static bool is_file(const char *section, const char *key, const char *value)
{
    const size_t length = strcspn(value, " \t");
    const char *rest = value + length + strspn(value + length, " \t"); /* a comment, or nothing */
    const bool word = (length == 4 && strncmp(value, "none", length) == 0) ||
                      (length == 5 && strncmp(value, "fleet", length) == 0);
    return strcmp(section, "data") == 0 && strcmp(key, "scale") == 0 &&
           !(word && (*rest == '\0' || *rest == '#' || *rest == ';'));
}

/* ---- what is sent ---- */

struct copying {
    FILE *into;
    char section[SGP_NAME_BYTES], key[SGP_NAME_BYTES]; /* of the line before */
};

/* inih's handler. A file of this machine is copied as a comment, since the joiner has another path.
 * The same key again is a line that continues its value, since a reader of configurations
 * refuses a key that is given twice. */
static int on_pair(void *user, const char *section, const char *key, const char *value)
{
    struct copying *copying = user;
    const bool same = strcmp(copying->section, section) == 0;
    if (!is_shared(section, key))
        return 1;
    if (same && strcmp(copying->key, key) == 0) {
        (void)fprintf(copying->into, "    %s\n", value);
        return 1;
    }
    if (!same)
        (void)fprintf(copying->into, "[%s]\n", section);
    (void)fprintf(
        copying->into, "%s%s = %s\n", is_file(section, key, value) ? "; " : "", key, value);
    (void)snprintf(copying->section, sizeof copying->section, "%s", section);
    (void)snprintf(copying->key, sizeof copying->key, "%s", key);
    return 1;
}

int config_shared(const char *file, struct sgp_error *error, char **ret_text)
{
    char *text = NULL;
    size_t bytes = 0;
    struct copying copying = {.into = open_memstream(&text, &bytes)};
    if (copying.into == NULL)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", file);
    const int line = ini_parse(file, on_pair, &copying);
    const bool whole = fclose(copying.into) == 0;
    if (line == 0 && whole) {
        *ret_text = text;
        return 0;
    }
    free(text);
    if (line > 0)
        return sgp_fail(error, SGP_E_CONFIG,
            "%s:%d: not a line of a configuration; sgpd --check -c names the mistake", file, line);
    return sgp_fail(error, line < 0 ? -EIO : -ENOMEM,
        "%s: cannot be read now; the joiner gets its "
        "settings from it",
        file);
}

/* ---- what has come ---- */

struct judging {
    struct sgp_error *error;
    int code;
};

/* inih's handler. */
static int judge_pair(void *user, const char *section, const char *key, const char *value)
{
    struct judging *judging = user;
    if (judging->code < 0)
        return 0;
    if (section[0] == '\0' || !is_shared(section, key))
        judging->code = sgp_fail(judging->error, SGP_E_CONFIG,
            "[%s] %s is for each node to set, and must not be sent", section, key);
    else if (is_file(section, key, value))
        judging->code = sgp_fail(judging->error, SGP_E_CONFIG,
            "[%s] %s is a file of another machine; only none and fleet can be sent", section, key);
    return judging->code == 0;
}

int config_shared_check(const char *text, struct sgp_error *error)
{
    struct judging judging = {.error = error};
    const size_t bytes = strlen(text);
    if (bytes == 0)
        return 0;
    if (text[0] != '[' || text[bytes - 1] != '\n')
        return sgp_fail(
            error, SGP_E_CONFIG, "they must begin with a [section], and end with a whole line");
    FILE *file = fmemopen((char *)(uintptr_t)text, bytes, "r");
    if (file == NULL)
        return sgp_fail(error, -ENOMEM, "out of memory");
    const int line = ini_parse_file(file, judge_pair, &judging);
    (void)fclose(file);
    if (judging.code < 0)
        return judging.code;
    return line == 0 ? 0
                     : sgp_fail(error, line < 0 ? -ENOMEM : SGP_E_CONFIG,
                           "line %d is not a line of a configuration", line);
}
