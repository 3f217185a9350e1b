/* SPDX-License-Identifier: Apache-2.0 */
/* The file of hosts of `sgpctl up`; see launch_up.h. */
#include "launch_up.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define HOST_BYTES 254u /* of a name in DNS, with the zero */
#define FORM "[user@]host[:port] [name=NAME] [address=ADDRESS] [slots=N]"

/* What is wrong with the line that is read. */
struct place {
    struct ctl *ctl;
    const char *path;
    unsigned line;
};

#define fail_at(place, format, ...)                                                                \
    ctl_fail((place)->ctl, CTL_INVALID, "%s:%u: " format, (place)->path, (place)->line, __VA_ARGS__)

/* Whether a text fits and has only these characters. ssh takes a first '-' for an option. */
static bool is_word(const char *text, const char *characters, size_t capacity)
{
    size_t length = strlen(text);
    return length > 0 && length < capacity && text[0] != '-' && strspn(text, characters) == length;
}

static enum ctl_exit take_port(
    const struct place *place, const char *text, struct launch_host *host)
{
    uint64_t port;
    if (!ctl_text_u64(text, &port) || port == 0 || port > 65535)
        return fail_at(place, "the port is a number from 1 to 65535, not '%.100s'", text);
    host->port = (unsigned)port;
    return CTL_DONE;
}

/* [user@]host[:port] or [user@][v6][:port] */
static enum ctl_exit take_host(const struct place *place, char *text, struct launch_host *host)
{
    char *at = strrchr(text, '@'), *name = at ? at + 1 : text, *rest;
    const char *characters = LETTERS ".-_";
    if (at) {
        *at = '\0';
        if (!is_word(text, LETTERS ".-_$@\\", sizeof host->user))
            return fail_at(place, "'%.100s' is no name of a user", text);
        (void)snprintf(host->user, sizeof host->user, "%s", text);
    }
    if (name[0] == '[') {
        characters = LETTERS ".:%-_";
        rest = strchr(++name, ']');
        if (rest == NULL || (rest[1] != '\0' && rest[1] != ':'))
            return fail_at(place, "'[%.100s' lacks its ']', as in [fe80::1]:22", name);
        *rest++ = '\0';
    } else {
        rest = name + strcspn(name, ":");
    }
    bool has_port = *rest == ':';
    *rest = '\0';
    if (!is_word(name, characters, HOST_BYTES))
        return fail_at(place, "'%.100s' is no host; a line is " FORM, name);
    (void)snprintf(host->host, sizeof host->host, "%s", name);
    (void)snprintf(
        host->address, sizeof host->address, strchr(name, ':') ? "[%.253s]" : "%.253s", name);
    return has_port ? take_port(place, rest + 1, host) : CTL_DONE;
}

static enum ctl_exit take_address(
    const struct place *place, const char *text, struct launch_host *host)
{
    char whole[SGP_ADDRESS_BYTES + 8];
    size_t length = strlen(text);
    bool bare = text[0] == '[' ? length > 0 && text[length - 1] == ']' : strchr(text, ':') == NULL;
    struct sgp_error error = {0};
    char name[SGP_ADDRESS_BYTES];
    uint16_t port;
    (void)snprintf(whole, sizeof whole, "%s:1", text);
    if (!bare || length == 0 || length + 8 > sizeof host->address ||
        sgp_address_split(whole, &error, name, &port) < 0)
        return fail_at(place,
            "address=%.100s: a host name, an IPv4 address or an [IPv6] address is wanted, without "
            "a port",
            text);
    (void)snprintf(host->address, sizeof host->address, "%s", text);
    return CTL_DONE;
}

static enum ctl_exit take_field(
    const struct place *place, const char *text, struct launch_host *host)
{
    uint64_t slots;
    if (strncmp(text, "name=", 5) == 0) {
        if (!sgp_topology_name_is_good(text + 5) || text[5] == '.')
            return fail_at(
                place, "name=%.100s: a name has letters, digits, '_', '-' and '.'", text + 5);
        (void)snprintf(host->name, sizeof host->name, "%s", text + 5);
        return CTL_DONE;
    }
    if (strncmp(text, "address=", 8) == 0)
        return take_address(place, text + 8, host);
    if (strncmp(text, "slots=", 6) != 0)
        return fail_at(place, "'%.100s' is unknown; a line is " FORM, text);
    if (!ctl_text_u64(text + 6, &slots) || slots == 0 || slots > LAUNCH_NODES_MAX)
        return fail_at(place, "slots=%.100s: a whole number from 1 to %u is wanted", text + 6,
            LAUNCH_NODES_MAX);
    host->slots = (uint32_t)slots;
    return CTL_DONE;
}

/* The nodes of a host are called n4, NAME, or NAME-0, NAME-1 and so on. */
static enum ctl_exit name_nodes(
    const struct place *place, struct launch_list *list, const struct launch_host *host)
{
    for (uint32_t i = 0; i < host->slots; i++) {
        char *name = list->names[list->nodes];
        int length = host->name[0] == '\0' ? snprintf(name, SGP_NAME_BYTES, "n%u", list->nodes)
                                           : snprintf(name, SGP_NAME_BYTES,
                                                 host->slots > 1 ? "%s-%u" : "%s", host->name, i);
        if (length >= (int)SGP_NAME_BYTES)
            return fail_at(place, "name=%s is too long", host->name);
        for (uint32_t j = 0; j < list->nodes; j++)
            if (strcmp(list->names[j], name) == 0)
                return fail_at(place, "another node is called %s, too", name);
        list->nodes++;
    }
    return CTL_DONE;
}

static enum ctl_exit take_line(const struct place *place, char *line, struct launch_list *list)
{
    char *rest = NULL;
    line[strcspn(line, "#")] = '\0';
    char *word = strtok_r(line, " \t\r\n", &rest);
    if (word == NULL)
        return CTL_DONE;
    if (list->count == LAUNCH_NODES_MAX)
        return fail_at(place, "more than %u hosts", LAUNCH_NODES_MAX);
    struct launch_host *host = &list->hosts[list->count];
    *host = (struct launch_host){.line = place->line, .slots = 1, .first = list->nodes};
    enum ctl_exit status = take_host(place, word, host);
    while (status == CTL_DONE && (word = strtok_r(NULL, " \t\r\n", &rest)) != NULL)
        status = take_field(place, word, host);
    if (status == CTL_DONE && list->nodes + host->slots > LAUNCH_NODES_MAX)
        return fail_at(place, "more than %u nodes", LAUNCH_NODES_MAX);
    if (status == CTL_DONE)
        status = name_nodes(place, list, host);
    list->count++;
    return status;
}

enum ctl_exit launch_list_read(struct ctl *ctl, const char *path, struct launch_list *list)
{
    struct place place = {.ctl = ctl, .path = path};
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    enum ctl_exit status = CTL_DONE;
    FILE *file = fopen(path, "re");
    list->path = path;
    if (file == NULL)
        return ctl_fail(ctl, CTL_INVALID, "%s: %s", path, strerror(errno));
    while (status == CTL_DONE && (errno = 0, length = getline(&line, &capacity, file)) >= 0) {
        place.line++;
        status = strlen(line) < (size_t)length
                     ? fail_at(&place, "a byte is zero; a line is " FORM "%s", "")
                     : take_line(&place, line, list);
    }
    int code = status == CTL_DONE && ferror(file) ? errno : 0;
    free(line);
    (void)fclose(file);
    if (code != 0)
        return ctl_fail(ctl, CTL_INVALID, "%s: %s", path, strerror(code));
    if (status == CTL_DONE && list->count == 0)
        return ctl_fail(ctl, CTL_INVALID, "%s: no host; a line is " FORM, path);
    return status;
}
