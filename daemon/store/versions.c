/* SPDX-License-Identifier: Apache-2.0 */
/* Files of used versions; see versions.h. */
#include "versions.h"

#include "train/atomic_file.h"

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

/* The first line and the second of a text that ends with a zero. Other lines are damage. */
static int split(const char *text, size_t bytes, uint64_t *ret_seconds, char **ret_document)
{
    char head[HEAD_BYTES];
    uint64_t seconds;
    if (sscanf(text, FORM, &seconds) != 1)
        return SGP_E_DATA;
    (void)snprintf(head, sizeof head, FORM, seconds);
    const size_t begin = strlen(head);
    const char *document = text + begin;
    if (strncmp(text, head, begin) != 0 || strlen(text) != bytes)
        return SGP_E_DATA;
    const size_t length = strcspn(document, "\n");
    if (length == 0 || begin + length + 1 != bytes)
        return SGP_E_DATA;
    *ret_seconds = seconds;
    *ret_document = strndup(document, length);
    return *ret_document != NULL ? 0 : -ENOMEM;
}

int versions_read(
    const char *state_directory, uint64_t version, uint64_t *ret_seconds, char **ret_document)
{
    char path[PATH_MAX];
    path_of(state_directory, version, path);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -errno;
    const size_t most = HEAD_BYTES + VERSIONS_BYTES_MAX;
    char *text = malloc(most + 1);
    const size_t bytes = text != NULL ? fread(text, 1, most, file) : 0;
    const bool failed = ferror(file) != 0;
    (void)fclose(file);
    int code = text == NULL ? -ENOMEM : failed ? -EIO : 0;
    if (code == 0) {
        text[bytes] = '\0';
        code = split(text, bytes, ret_seconds, ret_document);
    }
    free(text);
    return code;
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
