/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the daemon on standard error; see log.h. */
#include "log.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX_BYTES 160u /* time, level and node */

static int priority_of(enum sgp_level level)
{
    switch (level) {
    case SGP_LEVEL_ERROR:
        return 3;
    case SGP_LEVEL_WARNING:
        return 4;
    case SGP_LEVEL_INFO:
        return 6;
    default:
        return 7;
    }
}

static const char *name_of(enum sgp_level level)
{
    static const char *const names[] = {[SGP_LEVEL_ERROR] = "error",
        [SGP_LEVEL_WARNING] = "warning",
        [SGP_LEVEL_INFO] = "info",
        [SGP_LEVEL_DEBUG] = "debug",
        [SGP_LEVEL_TRACE] = "trace"};
    return names[level];
}

static void print_prefix(const struct log *log, enum sgp_level level, char text[PREFIX_BYTES])
{
    const char *key = log->node[0] ? "node=" : "";
    const char *space = log->node[0] ? " " : "";
    if (log->journal) {
        (void)snprintf(text, PREFIX_BYTES, "<%d>%s%s%s", priority_of(level), key, log->node, space);
        return;
    }
    struct timespec now;
    struct tm utc;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    char date[32];
    (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(text, PREFIX_BYTES, "%s.%03dZ %s %s%s%s", date, (int)(now.tv_nsec / 1000000),
        name_of(level), key, log->node, space);
}

/* A pipe that is full, a terminal that is held, a journal that has fallen behind do not take one. */
static bool takes_a_line(const struct log *log)
{
    struct pollfd descriptor = {.fd = log->descriptor, .events = POLLOUT};
    return poll(&descriptor, 1, 0) == 1 && (descriptor.revents & POLLOUT) != 0;
}

static void put_line(struct log *log, enum sgp_level level, const char *text)
{
    char prefix[PREFIX_BYTES];
    print_prefix(log, level, prefix);
    char line[PREFIX_BYTES + SGP_TEXT_BYTES + 1];
    int length = snprintf(line, sizeof line, "%s%s\n", prefix, text);
    if (!takes_a_line(log) || write(log->descriptor, line, (size_t)length) < 0)
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

/* Whether standard error is the journal itself: JOURNAL_STREAM is "DEVICE:INODE" of it. */
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

void log_init_to(
    struct log *log, enum sgp_level level, const char *node, int descriptor, bool journal)
{
    *log = (struct log){.descriptor = descriptor, .journal = journal};
    log->sink = (struct sgp_sink){.line = write_line, .context = log, .level = level};
    (void)snprintf(log->node, sizeof log->node, "%s", node);
}

void log_init(struct log *log, enum sgp_level level, const char *node)
{
    log_init_to(log, level, node, STDERR_FILENO, is_journal());
}
