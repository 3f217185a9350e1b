/* SPDX-License-Identifier: Apache-2.0 */
/* Files of used versions; see versions.h. */
#include "versions.h"

#include "train/atomic_file.h"

#include "sgp/status.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORM "sgpd-used-1 %" PRIu64 "\n"
#define HEAD_BYTES 40u

static void path_of(const char *state_directory, uint64_t version, char path[PATH_MAX])
{
    (void)snprintf(path, PATH_MAX, "%s/versions/%" PRIu64, state_directory, version);
}

/* The version that a file is named by; 0: it is none. */
static uint64_t version_of(const char *name)
{
    char *end;
    if (name[0] < '1' || name[0] > '9' || strspn(name, "0123456789") != strlen(name))
        return 0;
    errno = 0;
    const uint64_t version = strtoull(name, &end, 10);
    return errno == 0 && *end == '\0' ? version : 0;
}

/* Into a list that is sorted, the latest first; the earliest falls out, and is returned; 0: none
 * does. */
static uint64_t insert(uint64_t versions[VERSIONS_MAX], uint32_t *count, uint64_t version)
{
    uint32_t place = *count;
    while (place > 0 && versions[place - 1] < version)
        place--;
    if (place == VERSIONS_MAX)
        return version;
    const uint64_t out = *count == VERSIONS_MAX ? versions[VERSIONS_MAX - 1] : 0;
    *count += *count < VERSIONS_MAX;
    memmove(&versions[place + 1], &versions[place], (*count - place - 1) * sizeof *versions);
    versions[place] = version;
    return out;
}

static uint32_t list(const char *state_directory, bool removes, uint64_t versions[VERSIONS_MAX])
{
    char path[PATH_MAX];
    uint32_t count = 0;
    (void)snprintf(path, sizeof path, "%s/versions", state_directory);
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        const uint64_t version = version_of(entry->d_name);
        const uint64_t out = version != 0 ? insert(versions, &count, version) : 0;
        if (out == 0 || !removes)
            continue;
        path_of(state_directory, out, path);
        (void)unlink(path);
    }
    if (directory != NULL)
        (void)closedir(directory);
    return count;
}

uint32_t versions_list(const char *state_directory, uint64_t ret_versions[VERSIONS_MAX])
{
    return list(state_directory, false, ret_versions);
}

/* The first line. Its bytes; 0: it is damaged. */
static size_t read_head(const char *text, uint64_t *ret_seconds)
{
    char head[HEAD_BYTES];
    uint64_t seconds;
    if (sscanf(text, FORM, &seconds) != 1)
        return 0;
    (void)snprintf(head, sizeof head, FORM, seconds);
    if (strncmp(text, head, strlen(head)) != 0)
        return 0;
    *ret_seconds = seconds;
    return strlen(head);
}

/* The beginning of a file, up to `most` bytes; a zero is put behind them. The caller frees it. */
static int read_text(
    const char *state_directory, uint64_t version, size_t most, char **ret_text, size_t *ret_bytes)
{
    char path[PATH_MAX];
    path_of(state_directory, version, path);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -errno;
    char *text = malloc(most + 1);
    const size_t bytes = text != NULL ? fread(text, 1, most, file) : 0;
    const bool failed = ferror(file) != 0;
    (void)fclose(file);
    if (text == NULL || failed) {
        free(text);
        return failed ? -EIO : -ENOMEM;
    }
    text[bytes] = '\0';
    *ret_text = text;
    *ret_bytes = bytes;
    return 0;
}

int versions_read(
    const char *state_directory, uint64_t version, uint64_t *ret_seconds, char **ret_document)
{
    char *text = NULL;
    size_t bytes = 0;
    uint64_t seconds = 0;
    int code = read_text(state_directory, version, HEAD_BYTES + VERSIONS_BYTES_MAX, &text, &bytes);
    if (code < 0)
        return code;
    sgp_assert(text != NULL);
    const size_t begin = read_head(text, &seconds), length = strcspn(text + begin, "\n");
    char *document = NULL;
    if (begin == 0 || length == 0 || begin + length + 1 != bytes || text[begin + length] != '\n')
        code = SGP_E_DATA;
    else if ((document = strndup(text + begin, length)) == NULL)
        code = -ENOMEM;
    free(text);
    if (code < 0)
        return code;
    *ret_seconds = seconds;
    *ret_document = document;
    return 0;
}

int versions_read_beginning(const char *state_directory, uint64_t version, uint64_t *ret_seconds,
    char *ret_text, size_t bytes)
{
    char *text = NULL;
    size_t count = 0;
    int code = read_text(state_directory, version, HEAD_BYTES + bytes, &text, &count);
    if (code < 0)
        return code;
    sgp_assert(text != NULL);
    const size_t begin = read_head(text, ret_seconds);
    if (begin > 0)
        (void)snprintf(ret_text, bytes, "%.*s", (int)strcspn(text + begin, "\n"), text + begin);
    free(text);
    return begin > 0 ? 0 : SGP_E_DATA;
}

static bool has(const char *state_directory, uint64_t version, const char *document)
{
    uint64_t seconds;
    char *text = NULL;
    const bool same = versions_read(state_directory, version, &seconds, &text) == 0 &&
                      strcmp(text, document) == 0;
    free(text);
    return same;
}

int versions_keep(const char *state_directory, uint64_t version, const char *document,
    uint64_t seconds, struct sgp_error *error)
{
    uint64_t versions[VERSIONS_MAX];
    char path[PATH_MAX], head[HEAD_BYTES];
    struct sgp_atomic_file file;
    (void)snprintf(path, sizeof path, "%s/versions", state_directory);
    if (mkdir(path, 0750) < 0 && errno != EEXIST)
        return sgp_fail(error, -errno, "%s: %s", path, strerror(errno));
    path_of(state_directory, version, path);
    if (has(state_directory, version, document))
        return 0;
    int code = sgp_atomic_open(&file, path, SGP_ATOMIC_PRIVATE, error);
    if (code < 0)
        return code;
    (void)snprintf(head, sizeof head, FORM, seconds);
    sgp_atomic_write(&file, head, strlen(head));
    sgp_atomic_write(&file, document, strlen(document));
    sgp_atomic_write(&file, "\n", 1);
    code = sgp_atomic_commit(&file, error);
    (void)list(state_directory, true, versions);
    return code;
}
