/* SPDX-License-Identifier: Apache-2.0 */
/* See claim_file.h. */
#include "claim_file.h"

#include "train/atomic_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES 4096u

static void path_of(const char *directory, char path[static PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "%s/" CLAIM_FILE, directory);
}

int claim_file_write(const char *directory, const struct sgp_claim *claim, struct sgp_error *error)
{
    char path[PATH_BYTES], text[SGP_CLAIM_TEXT_BYTES];
    struct sgp_atomic_file file;
    path_of(directory, path);
    sgp_claim_write(claim, text);
    int code = sgp_atomic_open(&file, path, SGP_ATOMIC_PRIVATE, error);
    if (code < 0)
        return code;
    sgp_atomic_write(&file, text, strlen(text));
    sgp_atomic_write(&file, "\n", 1);
    return sgp_atomic_commit(&file, error);
}

static int fail_damaged(const char *path, const char *why, struct sgp_error *error)
{
    return sgp_fail(error, SGP_E_DATA,
        "%s: damaged, so what this run claims of privacy is unknown (%.200s); remove the file, and "
        "let the program claim again before its first step",
        path, why);
}

int claim_file_read(const char *directory, struct sgp_error *error, struct sgp_claim *ret_claim)
{
    char path[PATH_BYTES], line[SGP_CLAIM_TEXT_BYTES + 2];
    struct sgp_error why = {0};
    path_of(directory, path);
    FILE *file = fopen(path, "re");
    if (file == NULL && errno == ENOENT)
        return 0;
    if (file == NULL)
        return sgp_fail(error, -errno, "%s: cannot be read: %s", path, strerror(errno));
    const bool read = fgets(line, sizeof line, file) != NULL && strchr(line, '\n') != NULL;
    (void)fclose(file);
    if (!read)
        return fail_damaged(path, "it has no line", error);
    line[strcspn(line, "\n")] = '\0';
    return sgp_claim_read(line, &why, ret_claim) == 0 ? 1 : fail_damaged(path, why.text, error);
}
