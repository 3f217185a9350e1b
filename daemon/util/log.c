/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the daemon, on standard error or in the journal; see log.h. */
#include "log.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PREFIX_BYTES 160u   /* time, level and node */
#define VALUE_BYTES_MAX 128 /* of a field taken from a line */
#define LINE_BYTES (PREFIX_BYTES + SGP_TEXT_BYTES + 4 * (16 + VALUE_BYTES_MAX) + 64)
#define JOURNAL_SOCKET "/run/systemd/journal/socket"

static const struct {
    int priority; /* syslog(3) */
    const char *name;
} levels[] = {[SGP_LEVEL_ERROR] = {3, "error"},
    [SGP_LEVEL_WARNING] = {4, "warning"},
    [SGP_LEVEL_INFO] = {6, "info"},
    [SGP_LEVEL_DEBUG] = {7, "debug"},
    [SGP_LEVEL_TRACE] = {7, "trace"}};

/* Print the prefix of a line, or, in the journal's form, of its message. */
static void print_prefix(const struct log *log, enum sgp_level level, char text[PREFIX_BYTES])
{
    const char *key = log->node[0] ? "node=" : "";
    const char *space = log->node[0] ? " " : "";
    if (log->form != LOG_PLAIN) {
        char priority[8] = "";
        if (log->form == LOG_PRIORITY)
            (void)snprintf(priority, sizeof priority, "<%d>", levels[level].priority);
        (void)snprintf(text, PREFIX_BYTES, "%s%s%s%s", priority, key, log->node, space);
        return;
    }
    struct timespec now;
    struct tm utc;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    char date[32];
    (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(text, PREFIX_BYTES, "%s.%03dZ %s %s%s%s", date, (int)(now.tv_nsec / 1000000),
        levels[level].name, key, log->node, space);
}

/* The value of a key, or NULL. The search stops at a quotation mark, because strangers may have
 * written the text after it. */
static const char *value_of(const char *text, const char *key, int *ret_length)
{
    while (*text != '\0') {
        size_t name = strcspn(text, "= ");
        const char *value = text + name + (text[name] == '=');
        size_t length = strcspn(value, " ");
        if (*value == '"')
            return NULL;
        if (text[name] == '=' && name == strlen(key) && strncmp(text, key, name) == 0) {
            *ret_length = (int)length;
            return value;
        }
        text = value + length;
        text += strspn(text, " ");
    }
    return NULL;
}

/* A line in the journal's native protocol: FIELD=VALUE, one field a line. */
static int print_fields(
    const struct log *log, enum sgp_level level, const char *text, char fields[LINE_BYTES])
{
    static const char *const keys[][2] = {
        {"event", "SGP_EVENT"}, {"round", "SGP_ROUND"}, {"peer", "SGP_PEER"}};
    char prefix[PREFIX_BYTES];
    print_prefix(log, level, prefix);
    int used = snprintf(fields, LINE_BYTES,
        "PRIORITY=%d\nSYSLOG_IDENTIFIER=sgpd\nMESSAGE=%s%s\n%s%s%s", levels[level].priority, prefix,
        text, log->node[0] ? "SGP_NODE=" : "", log->node, log->node[0] ? "\n" : "");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int length;
        const char *value = value_of(text, keys[i][0], &length);
        if (value && length < VALUE_BYTES_MAX)
            used += snprintf(
                fields + used, LINE_BYTES - (size_t)used, "%s=%.*s\n", keys[i][1], length, value);
    }
    return used;
}

/* Whether a line can be written now. A full pipe, a stopped terminal, or a journal that is behind
 * cannot take a line. */
static bool takes_a_line(const struct log *log)
{
    struct pollfd descriptor = {.fd = log->descriptor, .events = POLLOUT};
    return poll(&descriptor, 1, 0) == 1 && (descriptor.revents & POLLOUT) != 0;
}

static void put_line(struct log *log, enum sgp_level level, const char *text)
{
    char line[LINE_BYTES];
    ssize_t written = -1;
    if (log->form == LOG_JOURNAL) {
        int length = print_fields(log, level, text, line);
        written = send(log->descriptor, line, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (takes_a_line(log)) {
        char prefix[PREFIX_BYTES];
        print_prefix(log, level, prefix);
        int length = snprintf(line, sizeof line, "%s%s\n", prefix, text);
        written = write(log->descriptor, line, (size_t)length);
    }
    if (written < 0)
        (void)atomic_fetch_add(&log->lost, 1);
}

static void write_line(void *context, enum sgp_level level, const char *text)
{
    struct log *log = context;
    if (atomic_load(&log->lost) > 0 && takes_a_line(log)) {
        char words[64];
        (void)snprintf(words, sizeof words, "event=lost lines=%u", atomic_exchange(&log->lost, 0));
        put_line(log, SGP_LEVEL_WARNING, words);
    }
    put_line(log, level, text);
}

/* Whether standard error is the journal: JOURNAL_STREAM is its "DEVICE:INODE". */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat status;
    if (!stream || fstat(STDERR_FILENO, &status) < 0)
        return false;
    char own[64];
    (void)snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    return strcmp(stream, own) == 0;
}

/* A socket connected to the journal, or -1. */
static int connect_journal(void)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET};
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor >= 0 &&
        connect(descriptor, (const struct sockaddr *)&address, sizeof address) == 0)
        return descriptor;
    if (descriptor >= 0)
        (void)close(descriptor);
    return -1;
}

void log_init_to(
    struct log *log, enum sgp_level level, const char *node, int descriptor, enum log_form form)
{
    *log = (struct log){.descriptor = descriptor, .form = form};
    log->sink = (struct sgp_sink){.line = write_line, .context = log, .level = level};
    (void)snprintf(log->node, sizeof log->node, "%s", node);
}

void log_init(struct log *log, enum sgp_level level, const char *node)
{
    bool journal = is_journal();
    int descriptor = journal ? connect_journal() : -1;
    enum log_form form = descriptor >= 0 ? LOG_JOURNAL : journal ? LOG_PRIORITY : LOG_PLAIN;
    log_init_to(log, level, node, descriptor >= 0 ? descriptor : STDERR_FILENO, form);
}
