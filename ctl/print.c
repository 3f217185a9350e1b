/* SPDX-License-Identifier: Apache-2.0 */
/* The output of the commands: errors, JSON, lines and tables.
 *
 * A failed write to standard output is detected once, by main, at the end. */
#include "ctl.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The word for a status. Those of a shell and of a program, above ours, are failures. */
static const char *code_of(enum ctl_exit status)
{
    static const char *const codes[] = {"done", "failed", "usage", "not_running", "not_permitted",
        "timed_out", "invalid", "degraded"};
    return codes[status < sizeof codes / sizeof *codes ? status : CTL_FAILED];
}

static enum ctl_exit fail(struct ctl *ctl, enum ctl_exit status, const char *text)
{
    if (!ctl->json) {
        (void)fprintf(stderr, "sgpctl: %s\n", text);
        return status;
    }
    (void)ctl_print_json(json_pack("{s:{s:i, s:s, s:o}}", "error", "exit_status", (int)status,
        "code", code_of(status), "message", ctl_json_text(text)));
    return status;
}

/* The struct sgp_error removes control characters, because the text may have come from any
 * source. */
enum ctl_exit ctl_fail(struct ctl *ctl, enum ctl_exit status, const char *format, ...)
{
    char text[SGP_TEXT_BYTES];
    struct sgp_error error = {0};
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)sgp_fail(&error, -EINVAL, "%s", text);
    return fail(ctl, status, error.text);
}

enum ctl_exit ctl_usage(struct ctl *ctl, const char *format, ...)
{
    char text[SGP_TEXT_BYTES - 64]; /* leaves room for the text after it */
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *words = ctl->command ? ctl->command->words : "";
    return ctl_fail(
        ctl, CTL_USAGE, "%s; see sgpctl %s%s--help", text, words, words[0] != '\0' ? " " : "");
}

double ctl_real_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

const char *ctl_text_of(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : otherwise;
}

enum ctl_exit ctl_print_json(json_t *value)
{
    if (!value) { /* fails only for a text that is not UTF-8, or without memory */
        (void)fputs("sgpctl: an answer cannot be written as JSON\n", stderr);
        return CTL_FAILED;
    }
    (void)json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    (void)putchar('\n');
    json_decref(value);
    return CTL_DONE;
}

json_t *ctl_json_real(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *ctl_json_text(const char *text)
{
    json_t *string = json_string(text);
    char *plain = string ? NULL : strdup(text);
    for (unsigned char *c = (unsigned char *)plain; c && *c; c++)
        if (*c >= 0x80)
            *c = '?';
    if (plain)
        string = json_string(plain);
    free(plain);
    return string;
}

void ctl_put_word(const char *word, FILE *file)
{
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "%+,-./:=@_";
    if (word[0] != '\0' && word[strspn(word, harmless)] == '\0') {
        (void)fputs(word, file);
        return;
    }
    (void)fputc('\'', file);
    for (; *word; word++)
        (void)(*word == '\'' ? fputs("'\\''", file) : fputc(*word, file));
    (void)fputc('\'', file);
}

/* A text from any source: an escape sequence of a peer must not reach the terminal. */
static void text_cell(const char *from, char text[CTL_CELL_BYTES])
{
    struct sgp_error clean = {0};
    (void)sgp_fail(&clean, -EINVAL, "%.*s", (int)CTL_CELL_BYTES - 1, from);
    (void)snprintf(text, CTL_CELL_BYTES, "%.*s", (int)CTL_CELL_BYTES - 1, clean.text);
    if (text[0] == '\0')
        (void)strcpy(text, "-");
}

/* As many names as fit; or a range of numbers. */
static void names_cell(const json_t *names, char text[CTL_CELL_BYTES])
{
    if (json_is_integer(json_array_get(names, 0)) && json_array_size(names) == 2) {
        (void)snprintf(text, CTL_CELL_BYTES, "%lld-%lld",
            (long long)json_integer_value(json_array_get(names, 0)),
            (long long)json_integer_value(json_array_get(names, 1)));
        return;
    }
    char joined[CTL_CELL_BYTES] = "";
    size_t length = 0, index;
    json_t *name;
    json_array_foreach((json_t *)names, index, name)
    {
        int more = snprintf(joined + length, sizeof joined - length, "%s%s", index > 0 ? "," : "",
            json_is_string(name) ? json_string_value(name) : "?");
        if (more < 0 || (size_t)more >= sizeof joined - length)
            break;
        length += (size_t)more;
    }
    text_cell(joined, text);
}

static void bytes_cell(double bytes, char text[CTL_CELL_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1024;
    (void)snprintf(text, CTL_CELL_BYTES, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

static void seconds_cell(double seconds, char text[CTL_CELL_BYTES])
{
    if (seconds < 60)
        (void)snprintf(text, CTL_CELL_BYTES, "%.1f s", seconds);
    else if (seconds < 3600)
        (void)snprintf(text, CTL_CELL_BYTES, "%d min %02d s", (int)seconds / 60, (int)seconds % 60);
    else
        (void)snprintf(text, CTL_CELL_BYTES, "%.0f h %02d min", floor(seconds / 3600),
            (int)fmod(seconds / 60, 60));
}

/* A number for a person. */
static void number_cell(const char *key, const json_t *value, char text[CTL_CELL_BYTES])
{
    double number = json_number_value(value);
    if (ctl_ends_in(key, "_bytes") || strncmp(key, "bytes_", 6) == 0)
        bytes_cell(number, text);
    else if (ctl_ends_in(key, "_seconds"))
        seconds_cell(number, text);
    else if (json_is_integer(value))
        (void)snprintf(text, CTL_CELL_BYTES, "%lld", (long long)json_integer_value(value));
    else
        (void)snprintf(text, CTL_CELL_BYTES, "%.6g", number);
}

/* The shortest decimal that reads back as the same number. */
static void shortest_cell(double number, char text[CTL_CELL_BYTES])
{
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, CTL_CELL_BYTES, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            return;
    }
}

void ctl_cell(
    const struct ctl *ctl, const char *key, const json_t *value, char text[CTL_CELL_BYTES])
{
    if (json_is_string(value)) {
        text_cell(json_string_value(value), text);
    } else if (json_is_array(value)) {
        names_cell(value, text);
    } else if (json_is_boolean(value)) {
        (void)strcpy(text, json_is_true(value) ? "yes" : "no");
    } else if (json_is_number(value) && ctl->terminal) {
        number_cell(key, value, text);
    } else if (json_is_integer(value)) {
        (void)snprintf(text, CTL_CELL_BYTES, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        shortest_cell(json_real_value(value), text);
    } else {
        (void)strcpy(text, "-");
    }
}

/* The widest key of an object, as ctl_print_object names it. */
static int widest(const json_t *object, size_t outer)
{
    size_t width = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        size_t own = outer + strlen(key);
        if (json_is_object(value))
            own = (size_t)widest(value, own + 1);
        if (own > width)
            width = own;
    }
    return (int)width;
}

static void print_lines(const struct ctl *ctl, const json_t *object, const char *outer, int width)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        char name[CTL_CELL_BYTES], text[CTL_CELL_BYTES];
        (void)snprintf(name, sizeof name, "%s%s%s", outer, outer[0] != '\0' ? "." : "", key);
        if (json_is_object(value)) {
            print_lines(ctl, value, name, width);
            continue;
        }
        ctl_cell(ctl, key, value, text);
        if (ctl->terminal)
            (void)printf("%-*s  %s\n", width, name, text);
        else
            (void)printf("%s %s\n", name, text);
    }
}

void ctl_print_object(const struct ctl *ctl, const json_t *object)
{
    print_lines(ctl, object, "", widest(object, 0));
}

/* Columns on a terminal, as wide as their widest cell. Widths are in characters: continuation bytes
 * of UTF-8 do not count. */
static int columns(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static void print_table(const struct ctl *ctl, const json_t *rows, const char *const *keys,
    size_t key_count, bool aligned)
{
    char text[CTL_CELL_BYTES];
    int widths[CTL_COLUMNS_MAX];
    size_t index;
    json_t *row;
    sgp_assert(key_count <= CTL_COLUMNS_MAX);
    for (size_t k = 0; k < key_count; k++) {
        widths[k] = columns(keys[k]);
        json_array_foreach((json_t *)rows, index, row)
        {
            ctl_cell(ctl, keys[k], json_object_get(row, keys[k]), text);
            if (columns(text) > widths[k])
                widths[k] = columns(text);
        }
    }
    for (size_t line = 0; line <= json_array_size(rows); line++) {
        row = line > 0 ? json_array_get(rows, line - 1) : NULL;
        for (size_t k = 0; k < key_count; k++) {
            if (row)
                ctl_cell(ctl, keys[k], json_object_get(row, keys[k]), text);
            else
                (void)snprintf(text, sizeof text, "%s", keys[k]);
            bool last = k + 1 == key_count;
            bool bold = ctl->colour && !row;
            (void)printf("%s%s%s%*s%s", bold ? "\x1b[1m" : "", text, bold ? "\x1b[0m" : "",
                aligned && !last ? widths[k] - columns(text) + 2 : 0, "",
                last      ? "\n"
                : aligned ? ""
                          : "\t");
        }
    }
}

void ctl_print_table(
    const struct ctl *ctl, const json_t *rows, const char *const *keys, size_t key_count)
{
    print_table(ctl, rows, keys, key_count, ctl->terminal);
}

void ctl_print_aligned(
    const struct ctl *ctl, const json_t *rows, const char *const *keys, size_t key_count)
{
    print_table(ctl, rows, keys, key_count, true);
}

void ctl_print_text(const struct ctl *ctl, const json_t *value, size_t width)
{
    char text[CTL_CELL_BYTES];
    /* of the text; of the part that leaves room for the dots */
    size_t columns = 0, bytes = 0, kept = 0;
    ctl_cell(ctl, "", value, text);
    for (; text[bytes]; bytes++) {
        columns += ((unsigned char)text[bytes] & 0xc0) != 0x80; /* a character's first byte */
        kept = columns <= width - 2 ? bytes + 1 : kept;
    }
    if (columns <= width)
        (void)printf("%s%*s", text, (int)(width - columns), "");
    else
        (void)printf("%.*s..", (int)kept, text);
}

void ctl_print_number(double number, int width, int digits)
{
    if (isnan(number))
        (void)printf("%*s", width, "-");
    else if (number == floor(number) && fabs(number) < 1e6)
        (void)printf("%*.0f", width, number);
    else
        (void)printf("%*.*g", width, digits, number);
}
