/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are appended to; see recorder.h. */
#include "recorder.h"

#include "sgp/version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- a file ---- */

static bool is_open(const struct recorder_file *file)
{
    return file->path != NULL;
}

static void close_file(struct recorder_file *file)
{
    if (is_open(file))
        (void)close(file->descriptor);
    file->path = NULL;
}

/* Append all bytes or nothing, as far as the file can be truncated again. Returns 0 or -errno. */
static int append(struct recorder_file *file, const void *bytes, size_t count)
{
    size_t done = 0;
    ssize_t written = 0;
    /* a disk that fills up takes a part first, then says why */
    while (done < count && written >= 0) {
        written = write(file->descriptor, (const char *)bytes + done, count - done);
        done += written > 0 ? (size_t)written : 0;
    }
    if (written >= 0) {
        file->end += (off_t)count;
        return 0;
    }
    int code = -errno;
    (void)!ftruncate(file->descriptor, file->end);
    return code;
}

static int cannot(const struct recorder_file *file, int code, struct sgp_error *error)
{
    return sgp_fail(error, code, "%.300s: cannot be written: %s; [log] %s names it", file->path,
        sgp_strerror(code), file->key);
}

/* Open at the end of the file, for this process alone. If *path is "", nothing is opened. */
static int open_file(
    struct recorder_file *file, const char *path, const char *key, struct sgp_error *error)
{
    struct stat info = {0};
    *file = (struct recorder_file){.key = key};
    if (path[0] == '\0')
        return 0;
    file->path = path;
    file->descriptor =
        open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0640);
    int code = file->descriptor < 0 || fstat(file->descriptor, &info) < 0 ? -errno : 0;
    if (code == 0 && flock(file->descriptor, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        code = -EBUSY;
    if (code == 0) {
        file->end = info.st_size;
        return 0;
    }
    code = cannot(file, code, error);
    if (file->descriptor >= 0)
        (void)close(file->descriptor);
    file->path = NULL;
    return code;
}

/* There is no more room for the file. This is reported once. */
static void stop(struct recorder *recorder, struct recorder_file *file, int code)
{
    sgp_log(recorder->log, SGP_LEVEL_WARNING,
        "event=warning text=\"%.300s: cannot be written: %s; it ends here, and training goes on\"",
        file->path, sgp_strerror(code));
    close_file(file);
}

/* ---- the trace ---- */

static int write_line(struct recorder *recorder, const char *text)
{
    char line[SGP_TEXT_BYTES + 1];
    int length = snprintf(line, sizeof line, "%s\n", text);
    return append(&recorder->trace_file, line, (size_t)length);
}

static void trace_line(void *context, enum sgp_level level, const char *text)
{
    struct recorder *recorder = context;
    sgp_log(recorder->log, level, "%s", text);
    int code = is_open(&recorder->trace_file) ? write_line(recorder, text) : 0;
    if (code < 0)
        stop(recorder, &recorder->trace_file, code);
}

/* ---- the journal ---- */

/* Write the buffered records to the file. */
static void flush(struct recorder *recorder, int code)
{
    if (code == 0)
        code = append(&recorder->journal_file, recorder->journal.bytes, recorder->journal.count);
    recorder->journal.count = 0;
    if (code < 0)
        stop(recorder, &recorder->journal_file, code);
}

void recorder_event(struct recorder *recorder, const struct sgp_event *event)
{
    if (is_open(&recorder->journal_file))
        flush(recorder, sgp_journal_put_event(&recorder->journal, event));
}

void recorder_reload(struct recorder *recorder, sgp_time now, const struct sgp_node_change *change)
{
    if (is_open(&recorder->journal_file))
        flush(recorder, sgp_journal_put_reload(&recorder->journal, now, change));
}

/* ---- opening and closing ---- */

/* A file of another kind is left unchanged. */
static int check_journal(const struct recorder *recorder, struct sgp_error *error)
{
    const struct recorder_file *file = &recorder->journal_file;
    uint8_t bytes[sizeof SGP_JOURNAL_MARK - 1];
    ssize_t count = file->end > 0 ? pread(file->descriptor, bytes, sizeof bytes, 0) : 0;
    struct sgp_error why = {0};
    if (count < 0)
        return cannot(file, -errno, error);
    if (sgp_journal_check(bytes, (size_t)count, file->path, &why) == 0)
        return 0;
    return sgp_fail(error, why.code, "%.400s; [log] events needs a file of its own", why.text);
}

static int write_start(
    struct recorder *recorder, const struct sgp_journal_start *start, struct sgp_error *error)
{
    struct recorder_file *file = &recorder->journal_file;
    int code = is_open(file) ? check_journal(recorder, error) : 0;
    if (code < 0 || !is_open(file))
        return code;
    code = sgp_journal_put_start(&recorder->journal, start);
    if (code == 0)
        code = append(file, recorder->journal.bytes, recorder->journal.count);
    recorder->journal.count = 0;
    return code < 0 ? cannot(file, code, error) : 0;
}

static int write_head(
    struct recorder *recorder, const struct sgp_journal_start *start, struct sgp_error *error)
{
    char line[SGP_TEXT_BYTES];
    sgp_journal_head(line, start);
    sgp_log(recorder->log, SGP_LEVEL_TRACE, "%s", line);
    int code = is_open(&recorder->trace_file) ? write_line(recorder, line) : 0;
    return code < 0 ? cannot(&recorder->trace_file, code, error) : 0;
}

int recorder_open(struct recorder *recorder, const struct config *config,
    const struct sgp_node_config *node, sgp_time now, const struct sgp_sink *log,
    struct sgp_error *error)
{
    struct timespec date;
    (void)clock_gettime(CLOCK_REALTIME, &date);
    const struct sgp_journal_start start = {.version = sgp_version(),
        .date = (int64_t)date.tv_sec * SGP_SECOND + date.tv_nsec,
        .now = now,
        .config = node};
    recorder->log = log;
    int code = open_file(&recorder->journal_file, config->events, "events", error);
    if (code == 0)
        code = open_file(&recorder->trace_file, config->trace, "trace", error);
    bool traces = is_open(&recorder->trace_file);
    recorder->trace = (struct sgp_sink){
        .line = trace_line, .context = recorder, .level = traces ? SGP_LEVEL_TRACE : log->level};
    if (code == 0)
        code = write_start(recorder, &start, error);
    if (code == 0)
        code = write_head(recorder, &start, error);
    if (code < 0)
        recorder_close(recorder);
    return code;
}

void recorder_close(struct recorder *recorder)
{
    close_file(&recorder->journal_file);
    close_file(&recorder->trace_file);
    free(recorder->journal.bytes);
    recorder->journal = (struct sgp_journal){.bytes = NULL};
}
