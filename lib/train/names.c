/* SPDX-License-Identifier: Apache-2.0 */
/* Converts names to a text and back; see names.h. */
#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t"

/* Read the name behind an opening quote at *text into `name`. `name` is as long as the rest of the
 * text. */
static int read_quoted(const char **text, struct sgp_error *error, char *name)
{
    const char *begin = *text + 1;
    const char *at = begin;
    size_t length = 0;
    for (; *at && (*at != '"' || at[1] == '"'); at++) {
        name[length++] = *at;
        at += *at == '"';
    }
    name[length] = '\0';
    if (!*at)
        return sgp_fail(error, SGP_E_CONFIG,
            "the quote before '%.40s' is never closed; close it, and mind that a blank and # or ; "
            "begin a comment",
            begin);
    at++;
    if (*at && !strchr(SGP_NAMES_CLASSES, *at))
        return sgp_fail(error, SGP_E_CONFIG,
            "'%.40s' follows a closing quote; a blank or a comma would be right, and a quote "
            "within quotes is written twice",
            at);
    if (length == 0)
        return sgp_fail(error, SGP_E_CONFIG, "a name is empty; write one between the quotes");
    *text = at;
    return 0;
}

/* Read the name at *text, which is not at its end. */
static int read_name(const char **text, const char *separators, struct sgp_error *error, char *name)
{
    if (**text == '"')
        return read_quoted(text, error, name);
    size_t length = strcspn(*text, separators);
    memcpy(name, *text, length);
    *text += length;
    while (length > 0 && strchr(BLANKS, name[length - 1]))
        length--;
    name[length] = '\0';
    return 0;
}

/* Where the next name begins: behind separators and blanks. */
static const char *skip(const char *text, const char *separators)
{
    size_t length = 0;
    do {
        text += length;
        length = strspn(text, separators);
        length += strspn(text + length, BLANKS);
    } while (length > 0);
    return text;
}

int sgp_names_split(const char *text, const char *separators, struct sgp_error *error,
    char ***ret_names, uint32_t *ret_count)
{
    size_t length = strlen(text);
    char *name = malloc(length + 1);
    /* each name takes at least two bytes with its separator */
    char **names = calloc(length / 2 + 1, sizeof *names);
    uint32_t count = 0;
    int code = name && names ? 0 : sgp_fail(error, -ENOMEM, "out of memory");
    while (code == 0 && *(text = skip(text, separators))) {
        code = read_name(&text, separators, error, name);
        if (code == 0 && !(names[count] = strdup(name)))
            code = sgp_fail(error, -ENOMEM, "out of memory");
        count += code == 0;
    }
    free(name);
    if (code < 0 || count == 0) {
        sgp_names_free(names, count);
        names = NULL;
    }
    if (code < 0)
        return code;
    *ret_names = names;
    *ret_count = count;
    return 0;
}

void sgp_names_free(char **names, uint32_t count)
{
    for (uint32_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

/* Append a character, if there is room for it and the zero at the end. */
static void put(char *text, size_t capacity, size_t *used, char character)
{
    if (*used + 1 < capacity)
        text[*used] = character;
    (*used)++;
}

bool sgp_names_join(char *const *names, uint32_t count, char *text, size_t capacity)
{
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool quoted = names[i][0] == '"' || names[i][strcspn(names[i], SGP_NAMES_CLASSES)] != '\0';
        if (i > 0)
            put(text, capacity, &used, ' ');
        if (quoted)
            put(text, capacity, &used, '"');
        for (const char *c = names[i]; *c; c++) {
            put(text, capacity, &used, *c);
            if (quoted && *c == '"')
                put(text, capacity, &used, '"');
        }
        if (quoted)
            put(text, capacity, &used, '"');
    }
    text[used < capacity ? used : capacity - 1] = '\0';
    return used < capacity;
}
