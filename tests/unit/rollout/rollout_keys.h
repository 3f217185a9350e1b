/* SPDX-License-Identifier: Apache-2.0 */
/* Keys for tests of rollouts: a signature is the hash of the key's name and of the signed bytes. So
 * a wrong one is refused as that of a real key is, and the tests need no cryptography. */
#ifndef ROLLOUT_KEYS_H
#define ROLLOUT_KEYS_H

#include "sgp/rollout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void keys_sign_bytes(
    const char *key, const void *bytes, size_t count, char ret_signature[SGP_HASH_BYTES])
{
    char text[SGP_MANIFEST_BYTES + SGP_KEY_BYTES];
    const int used = snprintf(text, sizeof text, "%s\n%.*s", key, (int)count, (const char *)bytes);
    sgp_manifest_hash(text, (size_t)used, ret_signature);
}

static inline bool keys_verify(const char *key, const char *signature, const void *bytes,
    size_t count, char ret_hash[SGP_KEY_BYTES])
{
    char right[SGP_HASH_BYTES];
    keys_sign_bytes(key, bytes, count, right);
    (void)snprintf(ret_hash, SGP_KEY_BYTES, "SHA256:%.43s", key);
    return strcmp(signature, right) == 0;
}

static inline void keys_sign(struct sgp_manifest *manifest, const char *key)
{
    char text[SGP_MANIFEST_BYTES];
    struct sgp_manifest_signature signature = {.key = ""};
    const size_t bytes = sgp_manifest_signed(manifest, text);
    (void)snprintf(signature.key, sizeof signature.key, "%s", key);
    keys_sign_bytes(key, text, bytes, signature.signature);
    sgp_assert(sgp_manifest_add(manifest, &signature) == 0);
}

/* The administrators a, b and c, of whom two must sign, and the recovery key r. */
static inline struct sgp_administrators keys_administrators(void)
{
    return (struct sgp_administrators){.fleet = "mill",
        .count = 3,
        .threshold = 2,
        .keys = {"SHA256:a", "SHA256:b", "SHA256:c"},
        .recovery = "SHA256:r"};
}

/* A manifest for this file, without a signature yet. */
static inline struct sgp_manifest keys_manifest(
    uint64_t version, const char *predecessor, const char *file)
{
    struct sgp_manifest manifest = {.fleet = "mill", .version = version};
    (void)snprintf(manifest.predecessor, sizeof manifest.predecessor, "%s", predecessor);
    sgp_assert(sgp_document_name_file(&manifest, file, strlen(file), NULL) == 0);
    return manifest;
}

/* The text of a document that these keys, one letter each, have signed. The caller frees it. */
static inline char *keys_document(
    struct sgp_manifest manifest, const char *file, const char *signers)
{
    for (const char *c = signers; *c != '\0'; c++)
        keys_sign(&manifest, (const char[]){*c, '\0'});
    struct sgp_document document = {.manifest = manifest};
    document.file = strdup(file);
    char *text = sgp_document_write(&document);
    sgp_assert(text != NULL);
    sgp_document_finish(&document);
    return text;
}

#endif
