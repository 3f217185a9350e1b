/* SPDX-License-Identifier: Apache-2.0 */
/* Documents: a manifest with its file, or a fork, as one line; see sgp/rollout.h. */
#include "sgp/rollout.h"

#include <errno.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

#define CONTENT " content="
#define RIVAL " rival "

static int fail(struct sgp_error *error, const char *what)
{
    return sgp_fail(error, SGP_E_DATA, "the document %s; sgpctl topology sign makes one", what);
}

/* The file behind a manifest. */
static int read_file(
    const char *text, struct sgp_error *error, const struct sgp_manifest *manifest, char **ret_file)
{
    struct base64_decode_ctx state;
    char hash[SGP_HASH_BYTES];
    const size_t bytes = strlen(text);
    size_t count = BASE64_DECODE_LENGTH(bytes);
    if (bytes != BASE64_ENCODE_RAW_LENGTH((size_t)manifest->file_bytes))
        return fail(error, "has a file of another size than its manifest says");
    char *file = malloc(count + 1);
    if (file == NULL)
        return -ENOMEM;
    base64_decode_init(&state);
    bool good = base64_decode_update(&state, &count, (uint8_t *)file, bytes, text) == 1 &&
                base64_decode_final(&state) == 1 && count == manifest->file_bytes;
    if (good) {
        sgp_manifest_hash(file, count, hash);
        good = strcmp(hash, manifest->file) == 0;
        file[count] = '\0';
    }
    if (!good || memchr(file, '\0', count) != NULL) {
        free(file);
        return fail(error, "has another file than its manifest names");
    }
    *ret_file = file;
    return 0;
}

/* The second manifest of a fork. Its identity is the greater one, so a fork is written in one
 * way. */
static int read_rival(const char *text, struct sgp_error *error, struct sgp_document *document)
{
    char identity[SGP_HASH_BYTES];
    const int code = sgp_manifest_read(text, strlen(text), error, &document->rival);
    if (code < 0)
        return code;
    sgp_manifest_identify(&document->rival, identity);
    return document->rival.version == document->manifest.version &&
                   strcmp(document->identity, identity) < 0
               ? 0
               : fail(error, "has two manifests that are no fork");
}

int sgp_document_read(const char *text, struct sgp_error *error, struct sgp_document *ret_document)
{
    struct sgp_document document = {.file = NULL};
    const char *content = strstr(text, CONTENT), *rival = strstr(text, RIVAL);
    const char *end = rival != NULL ? rival : content;
    if (end == NULL)
        return fail(error, "has no file");
    int code = sgp_manifest_read(text, (size_t)(end - text), error, &document.manifest);
    if (code < 0)
        return code;
    sgp_manifest_identify(&document.manifest, document.identity);
    code = rival != NULL
               ? read_rival(rival + strlen(RIVAL), error, &document)
               : read_file(content + strlen(CONTENT), error, &document.manifest, &document.file);
    if (code == 0)
        *ret_document = document;
    return code;
}

int sgp_document_read_manifest(
    const char *text, struct sgp_error *error, struct sgp_manifest *ret_manifest)
{
    const char *content = strstr(text, CONTENT);
    return content != NULL ? sgp_manifest_read(text, (size_t)(content - text), error, ret_manifest)
                           : fail(error, "has no file");
}

char *sgp_document_write(const struct sgp_document *document)
{
    const bool forks = document->file == NULL;
    const size_t bytes = forks ? 0 : document->manifest.file_bytes;
    char *text = malloc(
        2 * SGP_MANIFEST_BYTES + BASE64_ENCODE_RAW_LENGTH(bytes) + sizeof RIVAL + sizeof CONTENT);
    if (text == NULL)
        return NULL;
    size_t used = sgp_manifest_write(&document->manifest, text);
    const char *word = forks ? RIVAL : CONTENT;
    memcpy(text + used, word, strlen(word) + 1);
    used += strlen(word);
    if (forks) {
        (void)sgp_manifest_write(&document->rival, text + used);
        return text;
    }
    base64_encode_raw(text + used, bytes, (const uint8_t *)document->file);
    text[used + BASE64_ENCODE_RAW_LENGTH(bytes)] = '\0';
    return text;
}

void sgp_document_finish(struct sgp_document *document)
{
    free(document->file);
    document->file = NULL;
}

int sgp_document_name_file(
    struct sgp_manifest *manifest, const char *file, size_t bytes, struct sgp_error *error)
{
    if (bytes == 0 || bytes > SGP_MANIFEST_FILE_MAX)
        return sgp_fail(error, SGP_E_LIMIT,
            "the topology file has %zu bytes; it must have 1 to %u to be signed", bytes,
            SGP_MANIFEST_FILE_MAX);
    sgp_manifest_hash(file, bytes, manifest->file);
    manifest->file_bytes = (uint32_t)bytes;
    return 0;
}
