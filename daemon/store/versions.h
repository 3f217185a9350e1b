/* SPDX-License-Identifier: Apache-2.0 */
/* The signed topology files that this node has used, in STATE/versions. There is a file of each of
 * the latest VERSIONS_MAX, named by its version, with the second in which it was used first. People
 * read them, and node/formers.c; no vote depends on them.
 *
 * Blocks on files. Errors are one line. Thread: any, one at a time. */
#ifndef SGPD_VERSIONS_H
#define SGPD_VERSIONS_H

#include "sgp/status.h"

#define VERSIONS_MAX 32u
#define VERSIONS_BYTES_MAX (2u << 20) /* of one document */

/* Keep a document of this version, unless it is there, and remove those beyond the latest. 0, or
 * negative with *error. */
int versions_keep(const char *state_directory, uint64_t version, const char *document,
    uint64_t seconds, struct sgp_error *error);

/* The versions that are there, the latest first. Returns their number. */
uint32_t versions_list(const char *state_directory, uint64_t ret_versions[VERSIONS_MAX]);

/* The document of a version, which the caller frees, and when it was used first (since 1970). 0, or
 * negative: -ENOENT, -errno, -ENOMEM, SGP_E_DATA. */
int versions_read(
    const char *state_directory, uint64_t version, uint64_t *ret_seconds, char **ret_document);

/* The same of the beginning of the document, up to bytes - 1 bytes and a zero. */
int versions_read_beginning(const char *state_directory, uint64_t version, uint64_t *ret_seconds,
    char *ret_text, size_t bytes);

#endif
