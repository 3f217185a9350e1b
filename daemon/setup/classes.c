/* SPDX-License-Identifier: Apache-2.0 */
/* Names of classes to a text and back; see classes.h. */
#include "classes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS " \t,"

/* The name behind an opening quote at *text, into `name`, which is as long as the rest of the text. */
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
    if (*at && !strchr(SEPARATORS, *at))
        return sgp_fail(error, SGP_E_CONFIG,
            "'%.40s' follows a closing quote; a blank or a comma would be right, and a quote "
            "within quotes is written twice",
            at);
    if (length == 0)
        return sgp_fail(error, SGP_E_CONFIG, "a name is empty; name the class");
    *text = at;
    return 0;
}

/* The name at *text, which is not at its end. */
static int read_name(const char **text, struct sgp_error *error, char *name)
{
    if (**text == '"')
        return read_quoted(text, error, name);
    size_t length = strcspn(*text, SEPARATORS);
    memcpy(name, *text, length);
    name[length] = '\0';
    *text += length;
    return 0;
}

int classes_split(const char *text, struct sgp_error *error, char ***ret_names, uint32_t *ret_count)
{
    size_t length = strlen(text);
    char *name = malloc(length + 1);
    char **names = calloc(length / 2 + 1, sizeof *names); /* of two bytes with a separator */
    uint32_t count = 0;
    int code = name && names ? 0 : sgp_fail(error, -ENOMEM, "out of memory");
    while (code == 0 && *(text += strspn(text, SEPARATORS))) {
        code = read_name(&text, error, name);
        if (code == 0 && !(names[count] = strdup(name)))
            code = sgp_fail(error, -ENOMEM, "out of memory");
        count += code == 0;
    }
    free(name);
    if (code < 0 || count == 0) {
        classes_free(names, count);
        names = NULL;
    }
    if (code < 0)
        return code;
    *ret_names = names;
    *ret_count = count;
    return 0;
}

void classes_free(char **names, uint32_t count)
{
    for (uint32_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

static void put(char *text, size_t capacity, size_t *used, char character)
{
    sgp_assert(*used + 1 < capacity);
    text[(*used)++] = character;
}

void classes_join(char *const *names, uint32_t count, char *text, size_t capacity)
{
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool quoted = names[i][0] == '"' || names[i][strcspn(names[i], SEPARATORS)] != '\0';
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
    text[used] = '\0';
}
