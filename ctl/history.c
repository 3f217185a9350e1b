/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl history`: the rows of the history, from a daemon or a history.csv, as a table, as CSV, as
 * JSON, or as an event file of TensorBoard. */
#include "ctl.h"

#include "sgp/tensorboard.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PAGE 1024 /* rows of one answer */
#define COLUMNS_MAX CTL_COLUMNS_MAX
#define NUMBER_BYTES 40

/* In the order of the words of --format. */
enum format { TABLE, CSV, JSON, TENSORBOARD };

/* Rows from whatever source. */
struct course {
    json_t *rows; /* objects: column -> number or null, in the order of the columns */
    double ended; /* time of the last row, since 1970 */
};

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- from a daemon ---- */

/* The answers repeat the number of a row, which is no column. */
static enum ctl_exit ask_rows(struct ctl *ctl, json_t *rows)
{
    json_int_t next = 0, total = 1;
    while (next < total) {
        char path[64];
        json_t *page = NULL, *row;
        size_t index;
        (void)snprintf(path, sizeof path, "/v1/history?since=%lld&limit=%d", (long long)next, PAGE);
        enum ctl_exit status =
            ctl_ask_json(ctl, &(struct ctl_request){.method = "GET", .path = path}, &page);
        if (status != CTL_DONE)
            return status;
        json_array_foreach(json_object_get(page, "rows"), index, row)
        {
            (void)json_object_del(row, "number");
            (void)json_array_append(rows, row);
        }
        const json_int_t before = next;
        next = json_integer_value(json_object_get(page, "next"));
        total = next > before ? json_integer_value(json_object_get(page, "total")) : next;
        json_decref(page);
    }
    return CTL_DONE;
}

static enum ctl_exit ask(struct ctl *ctl, struct course *course)
{
    json_t *node = NULL;
    enum ctl_exit status = ask_rows(ctl, course->rows);
    if (status == CTL_DONE)
        status =
            ctl_ask_json(ctl, &(struct ctl_request){.method = "GET", .path = "/v1/status"}, &node);
    if (status != CTL_DONE)
        return status;
    const size_t count = json_array_size(course->rows);
    const json_t *last = count > 0 ? json_array_get(course->rows, count - 1) : NULL;
    const double since = ctl_real_of(last, "seconds"), uptime = ctl_real_of(node, "uptime_seconds");
    course->ended = now() - (isnan(since) || isnan(uptime) ? 0 : uptime - since);
    json_decref(node);
    return CTL_DONE;
}

/* ---- from a file ---- */

/* A field of the file as JSON; NULL: neither a number nor empty. */
static json_t *field_json(const char *text)
{
    double real;
    char *end = NULL;
    errno = 0;
    const long long whole = strtoll(text, &end, 10);
    if (*text == '\0')
        return json_null();
    if (*end == '\0' && errno == 0)
        return json_integer(whole);
    return ctl_text_real(text, &real) ? json_real(real) : NULL;
}

/* One line, which is changed. Returns a text that says what is wrong, or NULL. */
static const char *read_row(char *line, char *const *names, size_t count, json_t *rows)
{
    json_t *row = json_object();
    (void)json_array_append_new(rows, row);
    for (size_t i = 0; i < count; i++) {
        char *field = strsep(&line, ",");
        json_t *value = field ? field_json(field) : NULL;
        if (!field)
            return "fewer fields than the first line has columns";
        if (!value)
            return "a field that is no number";
        (void)json_object_set_new(row, names[i], value);
    }
    return line ? "more fields than the first line has columns" : NULL;
}

/* The columns in the first line, which is changed and whose texts are borrowed; 0: it is no head of
 * a history. */
static size_t read_head(char *line, char *names[COLUMNS_MAX])
{
    size_t count = 0;
    for (char *name; count < COLUMNS_MAX && (name = strsep(&line, ","));)
        names[count++] = name;
    return !line && count >= 2 && strcmp(names[0], "round") == 0 && strcmp(names[1], "seconds") == 0
               ? count
               : 0;
}

/* The last line may lack its end: it is being written, or its writer was killed. It is left out. */
static enum ctl_exit read_lines(struct ctl *ctl, const char *path, FILE *file, json_t *rows)
{
    char *head = NULL, *line = NULL, *names[COLUMNS_MAX];
    size_t head_room = 0, room = 0, count = 0, number = 1;
    ssize_t length = getline(&head, &head_room, file);
    enum ctl_exit status = CTL_DONE;
    if (length > 0 && head[length - 1] == '\n') {
        head[length - 1] = '\0';
        count = read_head(head, names);
    }
    if (count == 0)
        status = ctl_fail(ctl, CTL_INVALID,
            "%s:1: no history.csv of sgpd: its first line begins with round,seconds", path);
    while (status == CTL_DONE && (length = getline(&line, &room, file)) > 0 &&
           line[length - 1] == '\n') {
        line[length - 1] = '\0';
        number++;
        const char *wrong = read_row(line, names, count, rows);
        if (wrong)
            status = ctl_fail(ctl, CTL_INVALID, "%s:%zu: %s", path, number, wrong);
    }
    free(head);
    free(line);
    return status;
}

static enum ctl_exit read_file(struct ctl *ctl, const char *path, struct course *course)
{
    struct stat info;
    FILE *file = fopen(path, "r");
    if (!file || fstat(fileno(file), &info) < 0)
        return ctl_fail(ctl, CTL_FAILED, "%s: cannot be read: %s", path, strerror(errno));
    course->ended = (double)info.st_mtim.tv_sec;
    enum ctl_exit status = read_lines(ctl, path, file, course->rows);
    if (status == CTL_DONE && ferror(file))
        status = ctl_fail(ctl, CTL_FAILED, "%s: cannot be read", path);
    (void)fclose(file);
    return status;
}

/* ---- to text ---- */

/* The shortest of 9 and 17 digits that gives the same number. */
static void print_number(const json_t *value)
{
    char text[NUMBER_BYTES] = "";
    if (json_is_integer(value))
        (void)snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value)) {
        const double real = json_real_value(value);
        (void)snprintf(text, sizeof text, "%.9g", real);
        if (strtod(text, NULL) != real)
            (void)snprintf(text, sizeof text, "%.17g", real);
    }
    (void)fputs(text, stdout);
}

static void print_csv(const json_t *rows)
{
    size_t index;
    json_t *row, *value;
    json_array_foreach(rows, index, row)
    {
        const char *name, *before = "";
        if (index == 0)
            json_object_foreach(row, name, value)
            {
                (void)printf("%s%s", before, name);
                before = ",";
            }
        (void)printf(index == 0 ? "\n" : "");
        before = "";
        json_object_foreach(row, name, value)
        {
            (void)fputs(before, stdout);
            print_number(value);
            before = ",";
        }
        (void)putchar('\n');
    }
}

static void print_table(const struct ctl *ctl, const json_t *rows)
{
    const char *names[COLUMNS_MAX], *name;
    size_t count = 0;
    json_t *value;
    json_object_foreach(json_array_get(rows, 0), name, value)
    {
        if (count < COLUMNS_MAX)
            names[count++] = name;
    }
    ctl_print_table(ctl, rows, names, count);
}

/* ---- to an event file ---- */

/* When each row was added, from the last one back. `seconds` of a row count from the start of its
 * process, so a process ends where the next one begins. */
static double *times_of(const struct course *course)
{
    const size_t count = json_array_size(course->rows);
    double *times = calloc(count + 1, sizeof *times);
    for (size_t i = count; times && i-- > 0;) {
        const double own = ctl_real_of(json_array_get(course->rows, i), "seconds");
        const double next =
            i + 1 < count ? ctl_real_of(json_array_get(course->rows, i + 1), "seconds") : NAN;
        const double apart = isnan(next) || isnan(own) ? 0 : next >= own ? next - own : next;
        times[i] = i + 1 < count ? times[i + 1] - apart : course->ended;
    }
    return times;
}

static int add_row(
    struct sgp_tensorboard *file, double time, const json_t *row, struct sgp_error *error)
{
    struct sgp_tensorboard_scalar scalars[COLUMNS_MAX];
    size_t count = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)row, name, value)
    {
        if (json_is_number(value) && count < COLUMNS_MAX && strcmp(name, "round") != 0)
            scalars[count++] = (struct sgp_tensorboard_scalar){name, json_number_value(value)};
    }
    return sgp_tensorboard_add(
        file, time, json_integer_value(json_object_get(row, "round")), scalars, count, error);
}

static enum ctl_exit write_events(
    struct ctl *ctl, const struct course *course, const char *directory)
{
    struct sgp_error error = {0};
    struct sgp_tensorboard *file = NULL;
    const size_t count = json_array_size(course->rows);
    double *times = times_of(course);
    if (!times)
        return ctl_fail(ctl, CTL_FAILED, "out of memory");
    int code = sgp_tensorboard_open(directory, now(), &error, &file);
    for (size_t i = 0; i < count && code == 0; i++)
        code = add_row(file, times[i], json_array_get(course->rows, i), &error);
    free(times);
    enum ctl_exit status = CTL_DONE;
    if (code < 0)
        status = ctl_fail(ctl, CTL_FAILED, "%s", error.text);
    else if (ctl->json)
        status = ctl_print_json(json_pack("{s:o, s:I}", "file",
            ctl_json_text(sgp_tensorboard_path(file)), "rows", (json_int_t)count));
    else
        (void)printf("%s: %zu rows\n", sgp_tensorboard_path(file), count);
    sgp_tensorboard_close(file);
    return status;
}

/* ---- the command ---- */

enum { FORMAT, OUTPUT, OPTIONS };

static enum ctl_exit understand(
    struct ctl *ctl, const struct ctl_given *given, bool from_file, enum format *ret_format)
{
    size_t format = ctl->json ? JSON : TABLE;
    enum ctl_exit status = ctl_option_word(ctl, &given[FORMAT], &format);
    if (status != CTL_DONE)
        return status;
    if (format == TENSORBOARD && !given[OUTPUT].given)
        return ctl_usage(ctl, "--format tensorboard needs --output DIRECTORY");
    if (format != TENSORBOARD && given[OUTPUT].given)
        return ctl_usage(
            ctl, "--output is for --format tensorboard; the other formats are printed");
    if (from_file && (ctl->name || ctl->socket))
        return ctl_usage(ctl, "a FILE asks no daemon; leave it out, or -n and -s");
    *ret_format = (enum format)format;
    return CTL_DONE;
}

static enum ctl_exit print_course(
    struct ctl *ctl, const struct course *course, enum format format, const char *directory)
{
    switch (format) {
    case CSV:
        print_csv(course->rows);
        return CTL_DONE;
    case JSON:
        return ctl_print_json(json_incref(course->rows));
    case TENSORBOARD:
        return write_events(ctl, course, directory);
    default:
        print_table(ctl, course->rows);
        return CTL_DONE;
    }
}

static enum ctl_exit history(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    enum format format = TABLE;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 0, 1);
    if (status == CTL_DONE)
        status = understand(ctl, given, argc > 0, &format);
    if (status != CTL_DONE)
        return status;
    struct course course = {.rows = json_array()};
    status = argc > 0 ? read_file(ctl, argv[0], &course) : ask(ctl, &course);
    if (status == CTL_DONE)
        status = print_course(ctl, &course, format, given[OUTPUT].value);
    json_decref(course.rows);
    return status;
}

static const struct ctl_option history_options[] = {
    [FORMAT] = {"--format", .value = "FORMAT", .words = "table csv json tensorboard",
        .summary = "table, csv, json, or tensorboard; table if not given"},
    [OUTPUT] = {"--output", .value = "DIRECTORY",
        .summary = "of --format tensorboard: where the event file is written"},
    [OPTIONS] = {0}};

const struct ctl_command ctl_history_command = {.words = "history",
    .operands = "[FILE]",
    .options = history_options,
    .summary = "the course of the training, a row at each evaluation",
    .help =
        "Without FILE the rows are those that the daemon has added since it started. FILE is the\n"
        "history.csv of a state directory, with the rows of all its processes; no daemon is\n"
        "needed then. A line of FILE that is no row ends the command with 6.\n"
        "\n"
        "With --format tensorboard the rows are written to a new event file in DIRECTORY, which\n"
        "TensorBoard shows as one run. Each column is a scalar, and the round is the step.\n",
    .run = history};
