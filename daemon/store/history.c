/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in memory and in history.csv; see history.h. */
#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096u
#define ROW_BYTES 512u
#define PIECE_BYTES 8192u
#define COLUMNS_MAX 16u
#define FILE_BYTES_MAX                                                                             \
    ((off_t)HISTORY_ROWS_MAX * ROW_BYTES) /* a longer file was not written by sgpd */
#define KEPT_BYTES (FILE_BYTES_MAX / 2)   /* of such a file, from its end */

#define NAME(member, kind) "," #member
static const char names[] = VIEW_HISTORY_COLUMNS(NAME) "\n";
#undef NAME
static const char *const head = names + 1; /* without the first comma */
#define HEAD_BYTES (sizeof names - 2)

int history_open(struct history *history, const char *directory, struct sgp_error *error)
{
    *history = (struct history){.fd = -1, .rows_most = HISTORY_ROWS_MAX};
    history->rows = calloc(VIEW_HISTORY_MAX, sizeof *history->rows);
    if (asprintf(&history->path, "%s/history.csv", directory) < 0)
        history->path = NULL;
    if (history->rows != NULL && history->path != NULL)
        return 0;
    history_close(history);
    return sgp_fail(error, -ENOMEM, "not enough memory for the history");
}

void history_close(struct history *history)
{
    if (history->path != NULL && history->fd >= 0)
        (void)close(history->fd);
    free(history->path);
    free(history->rows);
    *history = (struct history){.fd = -1};
}

/* ---- the file ---- */

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno != EINTR)
            return -errno;
        bytes += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static int count_lines(struct history *history)
{
    char piece[PIECE_BYTES];
    off_t at = 0;
    ssize_t count;
    history->lines = 0;
    history->torn = false;
    while ((count = pread(history->fd, piece, sizeof piece, at)) > 0) {
        for (ssize_t i = 0; i < count; i++)
            history->lines += piece[i] == '\n';
        history->torn = piece[count - 1] != '\n';
        at += count;
    }
    return count < 0 ? -errno : 0;
}

/* Copy the head and every second row. The first and the last row are always kept. */
static int copy_half(const struct history *history, int to)
{
    char from[PIECE_BYTES], kept[PIECE_BYTES];
    uint64_t line = 0; /* 0: the head; 1: the first row */
    off_t at = 0;
    ssize_t count;
    while ((count = pread(history->fd, from, sizeof from, at)) > 0) {
        size_t used = 0;
        for (ssize_t i = 0; i < count; i++) {
            if (line == 0 || line % 2 == 1 || line + 1 == history->lines)
                kept[used++] = from[i];
            line += from[i] == '\n';
        }
        int code = write_all(to, kept, used);
        if (code < 0)
            return code;
        at += count;
    }
    return count < 0 ? -errno : fsync(to) < 0 ? -errno : 0;
}

/* Copy the head, and the complete rows at the end of a file that is too long to be read whole. */
static int copy_end(const struct history *history, int to)
{
    char piece[PIECE_BYTES];
    struct stat info;
    bool within = false; /* after the first end of a line */
    int code = fstat(history->fd, &info) < 0 ? -errno : write_all(to, head, HEAD_BYTES);
    off_t at = code == 0 ? info.st_size - KEPT_BYTES : 0;
    ssize_t count = 0;
    while (code == 0 && (count = pread(history->fd, piece, sizeof piece, at)) > 0) {
        const char *first = within ? piece : memchr(piece, '\n', (size_t)count);
        at += count;
        if (first == NULL)
            continue;
        first += within ? 0 : 1;
        within = true;
        code = write_all(to, first, (size_t)(piece + count - first));
    }
    return code < 0 ? code : count < 0 || fsync(to) < 0 ? -errno : 0;
}

/* How many columns of `head` the file of an earlier version lacks. New columns come last, so its
 * head is the beginning of `head`. Returns 0 if none is missing or the file has another head.
 * Returns -errno if the file cannot be read. */
static int count_missing(const struct history *history)
{
    char line[HEAD_BYTES + 1];
    int missing = 0;
    ssize_t size = pread(history->fd, line, sizeof line, 0);
    const char *end = size > 0 ? memchr(line, '\n', (size_t)size) : NULL;
    size_t length = end != NULL ? (size_t)(end - line) : 0;
    if (length > 0 && memcmp(line, head, length) == 0 && head[length] == ',')
        for (const char *at = head + length; *at != '\0'; at++)
            missing += *at == ',';
    return size < 0 ? -errno : missing;
}

/* Copy `head`, and the rows of an earlier version with an empty field for each missing column. */
static int copy_widened(const struct history *history, int to)
{
    char from[PIECE_BYTES / COLUMNS_MAX], kept[PIECE_BYTES];
    int missing = count_missing(history), code = write_all(to, head, HEAD_BYTES);
    bool within = false; /* after the file's own head */
    off_t at = 0;
    ssize_t count = 0;
    while (code == 0 && (count = pread(history->fd, from, sizeof from, at)) > 0) {
        size_t used = 0;
        for (ssize_t i = 0; i < count; i++) {
            for (int field = 0; within && from[i] == '\n' && field < missing; field++)
                kept[used++] = ',';
            if (within)
                kept[used++] = from[i];
            within |= from[i] == '\n';
        }
        code = write_all(to, kept, used);
        at += count;
    }
    return code < 0 ? code : count < 0 || fsync(to) < 0 ? -errno : 0;
}

static int have_file(struct history *history);

/* Replace the open file by a new file, which contains what `copy` takes from the open one. */
static int replace(struct history *history, int (*copy)(const struct history *history, int to))
{
    char temporary[PATH_BYTES];
    if (snprintf(temporary, sizeof temporary, "%s.new", history->path) >= (int)sizeof temporary)
        return -ENAMETOOLONG;
    (void)unlink(temporary); /* left by a process that was killed */
    int to = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (to < 0)
        return -errno;
    int code = copy(history, to);
    if (code == 0 && rename(temporary, history->path) < 0)
        code = -errno;
    (void)close(to);
    if (code < 0) {
        (void)unlink(temporary);
        return code;
    }
    (void)close(history->fd);
    history->fd = -1;
    return have_file(history);
}

/* Prepare an open file: give it a head and a size to which rows can be added, and count
 * its lines. */
static int prepare_file(struct history *history)
{
    struct stat info;
    if (fstat(history->fd, &info) < 0)
        return -errno;
    if (info.st_size > FILE_BYTES_MAX)
        return replace(history, copy_end);
    int missing = count_missing(history);
    if (missing > 0)
        return replace(history, copy_widened);
    return missing < 0 ? missing : count_lines(history);
}

static int have_file(struct history *history)
{
    if (history->fd >= 0)
        return 0;
    history->fd = open(
        history->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0640);
    int code = history->fd < 0 ? -errno : prepare_file(history);
    if (code < 0 && history->fd >= 0) {
        (void)close(history->fd);
        history->fd = -1;
    }
    return code;
}

static int print_digits(char *text, double value, int digits)
{
    return isfinite(value) ? sprintf(text, "%.*g,", digits, value) : sprintf(text, ",");
}

static int print_real(char *text, double value)
{
    return print_digits(text, value, 9);
}
static int print_exact(char *text, double value)
{
    return print_digits(text, value, 17);
}
static int print_seconds(char *text, double value)
{
    return sprintf(text, "%.3f,", value);
}
static int print_round(char *text, sgp_round value)
{
    return sprintf(text, "%" PRId64 ",", value);
}
static int print_count(char *text, uint64_t value)
{
    return sprintf(text, "%" PRIu64 ",", value);
}

static size_t print_row(char text[ROW_BYTES], const struct view_history_row *row)
{
    char *at = text;
#define PRINT(member, kind) at += print_##kind(at, row->member);
    VIEW_HISTORY_COLUMNS(PRINT)
#undef PRINT
    at[-1] = '\n';
    return (size_t)(at - text);
}

/* Append the whole row, or nothing. */
static int append(struct history *history, const struct view_history_row *row)
{
    char text[HEAD_BYTES + 2 + ROW_BYTES];
    size_t used = history->torn ? (size_t)sprintf(text, "\n") : 0;
    uint64_t lines = history->lines + history->torn;
    if (lines == 0) {
        used += (size_t)sprintf(text + used, "%s", head);
        lines++;
    }
    used += print_row(text + used, row);
    struct stat info;
    int code = fstat(history->fd, &info) < 0 ? -errno : write_all(history->fd, text, used);
    if (code < 0) {
        history->torn = history->torn || ftruncate(history->fd, info.st_size) < 0;
        return code;
    }
    history->torn = false;
    history->lines = lines + 1;
    return 0;
}

static int write_row(struct history *history, const struct view_history_row *row)
{
    int code = have_file(history);
    while (code == 0 && history->lines > history->rows_most)
        code = replace(history, copy_half);
    return code < 0 ? code : append(history, row);
}

/* ---- interface ---- */

int history_add(
    struct history *history, const struct view_history_row *row, struct sgp_error *error)
{
    uint32_t place = (history->first + history->count) % VIEW_HISTORY_MAX;
    if (history->count == VIEW_HISTORY_MAX)
        history->first = (history->first + 1) % VIEW_HISTORY_MAX;
    else
        history->count++;
    history->rows[place] = *row;
    history->added++;
    int code = write_row(history, row);
    bool told = history->failed;
    history->failed = code < 0;
    if (code == 0 || told)
        return 0;
    return sgp_fail(error, code, "%s: cannot be written: %s", history->path, sgp_strerror(code));
}

const struct view_history_row *history_row(const struct history *history, uint32_t index)
{
    sgp_assert(index < history->count);
    return &history->rows[(history->first + index) % VIEW_HISTORY_MAX];
}
