/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest as text and back, and who must have signed it; see sgp/manifest.h. */
#include "sgp/manifest.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FORM "sgpd-topology-1"
#define NONE "none"

void sgp_manifest_hash(const void *bytes, size_t count, char ret_hash[SGP_HASH_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    struct sha256_ctx state;
    uint8_t hash[SHA256_DIGEST_SIZE];
    sha256_init(&state);
    sha256_update(&state, count, bytes);
    sha256_digest(&state, sizeof hash, hash);
    for (size_t i = 0; i < sizeof hash; i++) {
        ret_hash[2 * i] = digits[hash[i] >> 4];
        ret_hash[2 * i + 1] = digits[hash[i] & 15];
    }
    ret_hash[SGP_HASH_BYTES - 1] = '\0';
}

/* ---- to text ---- */

struct writer {
    char *text;
    size_t bytes;
};

static void put(struct writer *writer, const char *format, ...) SGP_PRINTF(2, 3);
static void put(struct writer *writer, const char *format, ...)
{
    const size_t room = SGP_MANIFEST_BYTES - writer->bytes;
    va_list arguments;
    va_start(arguments, format);
    const int count = vsnprintf(writer->text + writer->bytes, room, format, arguments);
    va_end(arguments);
    /* SGP_MANIFEST_BYTES is enough for all words at their longest */
    sgp_assert(count >= 0 && (size_t)count < room);
    writer->bytes += (size_t)count;
}

static const char *or_none(const char *text)
{
    return text[0] != '\0' ? text : NONE;
}

size_t sgp_manifest_signed(const struct sgp_manifest *manifest, char ret_text[SGP_MANIFEST_BYTES])
{
    struct writer writer = {.text = ret_text};
    put(&writer,
        FORM " fleet=%s version=%" PRIu64 " predecessor=%s file=%s bytes=%" PRIu32 " despite=%s",
        manifest->fleet, manifest->version, or_none(manifest->predecessor), manifest->file,
        manifest->file_bytes, manifest->despite_count > 0 ? manifest->despite[0] : NONE);
    for (uint32_t i = 1; i < manifest->despite_count; i++)
        put(&writer, ",%s", manifest->despite[i]);
    return writer.bytes;
}

size_t sgp_manifest_write(const struct sgp_manifest *manifest, char ret_text[SGP_MANIFEST_BYTES])
{
    struct writer writer = {.text = ret_text, .bytes = sgp_manifest_signed(manifest, ret_text)};
    put(&writer, " signatures=%s", manifest->signature_count > 0 ? "" : NONE);
    for (uint32_t i = 0; i < manifest->signature_count; i++)
        put(&writer, "%s%s:%s", i > 0 ? "," : "", manifest->signatures[i].key,
            manifest->signatures[i].signature);
    return writer.bytes;
}

void sgp_manifest_identify(const struct sgp_manifest *manifest, char ret_hash[SGP_HASH_BYTES])
{
    char text[SGP_MANIFEST_BYTES];
    sgp_manifest_hash(text, sgp_manifest_signed(manifest, text), ret_hash);
}

/* ---- from text ---- */

struct reader {
    const char *at, *end;
};

/* Take these letters. */
static bool skip(struct reader *reader, const char *letters)
{
    const size_t bytes = strlen(letters);
    if ((size_t)(reader->end - reader->at) < bytes || memcmp(reader->at, letters, bytes) != 0)
        return false;
    reader->at += bytes;
    return true;
}

/* Take 1 or more letters up to a blank, a comma or a colon; false: they do not fit. */
static bool take(struct reader *reader, char *word, size_t room)
{
    size_t bytes = 0;
    while (reader->at<reader->end && * reader->at> ' ' && *reader->at <= '~' &&
           *reader->at != ',' && *reader->at != ':' && bytes + 1 < room)
        word[bytes++] = *reader->at++;
    word[bytes] = '\0';
    return bytes > 0 && (reader->at == reader->end || *reader->at == ' ' || *reader->at == ',' ||
                            *reader->at == ':');
}

static bool take_count(struct reader *reader, uint64_t most, uint64_t *ret_count)
{
    char word[21], again[21];
    uint64_t value = 0;
    if (!take(reader, word, sizeof word) || strspn(word, "0123456789") != strlen(word))
        return false;
    for (const char *c = word; *c != '\0'; c++) {
        const uint64_t digit = (uint64_t)(*c - '0');
        if (value > (most - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    (void)snprintf(again, sizeof again, "%" PRIu64, value);
    *ret_count = value;
    return value >= 1 && strcmp(word, again) == 0;
}

static bool take_hash(struct reader *reader, char hash[SGP_HASH_BYTES])
{
    return take(reader, hash, SGP_HASH_BYTES) && strlen(hash) == SGP_HASH_BYTES - 1 &&
           strspn(hash, "0123456789abcdef") == SGP_HASH_BYTES - 1;
}

/* A hash, or none. */
static bool take_predecessor(struct reader *reader, char hash[SGP_HASH_BYTES])
{
    hash[0] = '\0';
    return skip(reader, NONE) || take_hash(reader, hash);
}

/* Nodes, or none. A single node that is called "none" would be read as none. */
static bool take_despite(struct reader *reader, struct sgp_manifest *manifest)
{
    do {
        if (manifest->despite_count == SGP_MANIFEST_DESPITE_MAX)
            return false;
        char *name = manifest->despite[manifest->despite_count];
        if (!take(reader, name, SGP_NAME_BYTES) || sgp_manifest_passes_over(manifest, name))
            return false;
        manifest->despite_count++;
    } while (skip(reader, ","));
    if (manifest->despite_count == 1 && strcmp(manifest->despite[0], NONE) == 0)
        manifest->despite_count = 0;
    return true;
}

static bool take_signatures(struct reader *reader, struct sgp_manifest *manifest)
{
    if (reader->end - reader->at == (ptrdiff_t)strlen(NONE) && skip(reader, NONE))
        return true;
    do {
        if (manifest->signature_count == SGP_MANIFEST_SIGNERS_MAX)
            return false;
        struct sgp_manifest_signature *place = &manifest->signatures[manifest->signature_count++];
        if (!take(reader, place->key, sizeof place->key) || !skip(reader, ":") ||
            !take(reader, place->signature, sizeof place->signature))
            return false;
    } while (skip(reader, ","));
    return true;
}

static bool take_all(struct reader *reader, struct sgp_manifest *manifest)
{
    uint64_t bytes = 0;
    const bool good =
        skip(reader, FORM " fleet=") && take(reader, manifest->fleet, sizeof manifest->fleet) &&
        skip(reader, " version=") &&
        take_count(reader, SGP_MANIFEST_VERSION_MAX, &manifest->version) &&
        skip(reader, " predecessor=") && take_predecessor(reader, manifest->predecessor) &&
        skip(reader, " file=") && take_hash(reader, manifest->file) && skip(reader, " bytes=") &&
        take_count(reader, SGP_MANIFEST_FILE_MAX, &bytes) && skip(reader, " despite=") &&
        take_despite(reader, manifest) && skip(reader, " signatures=") &&
        take_signatures(reader, manifest) && reader->at == reader->end;
    manifest->file_bytes = (uint32_t)bytes;
    return good;
}

int sgp_manifest_read(
    const char *text, size_t bytes, struct sgp_error *error, struct sgp_manifest *ret_manifest)
{
    struct sgp_manifest manifest;
    struct reader reader = {.at = text, .end = text + bytes};
    memset(&manifest, 0, sizeof manifest);
    if (bytes >= SGP_MANIFEST_BYTES)
        return sgp_fail(
            error, SGP_E_DATA, "the manifest is longer than %u bytes", SGP_MANIFEST_BYTES - 1);
    if (!take_all(&reader, &manifest))
        return sgp_fail(error, SGP_E_DATA,
            "byte %zu of the manifest is not what " FORM " has there; sgpctl topology sign writes "
            "one",
            (size_t)(reader.at - text) + 1);
    *ret_manifest = manifest;
    return 0;
}

bool sgp_manifest_passes_over(const struct sgp_manifest *manifest, const char *name)
{
    for (uint32_t i = 0; i < manifest->despite_count; i++)
        if (strcmp(manifest->despite[i], name) == 0)
            return true;
    return false;
}

int sgp_manifest_add(struct sgp_manifest *manifest, const struct sgp_manifest_signature *signature)
{
    for (uint32_t i = 0; i < manifest->signature_count; i++)
        if (strcmp(manifest->signatures[i].key, signature->key) == 0)
            return 0;
    if (manifest->signature_count == SGP_MANIFEST_SIGNERS_MAX)
        return SGP_E_LIMIT;
    manifest->signatures[manifest->signature_count++] = *signature;
    return 0;
}

/* ---- who has signed ---- */

/* The place of a signer: an administrator, or `count` for the recovery key. -1: neither. */
static int64_t place_of(const struct sgp_administrators *administrators, const char *hash)
{
    for (uint32_t i = 0; i < administrators->count; i++)
        if (strcmp(administrators->keys[i], hash) == 0)
            return i;
    return strcmp(administrators->recovery, hash) == 0 ? (int64_t)administrators->count : -1;
}

int sgp_manifest_judge(const struct sgp_manifest *manifest,
    const struct sgp_administrators *administrators, sgp_manifest_verify *verify,
    struct sgp_error *error, bool *ret_recovered)
{
    bool signers[SGP_MANIFEST_SIGNERS_MAX + 1] = {false};
    char text[SGP_MANIFEST_BYTES], hash[SGP_KEY_BYTES];
    const size_t bytes = sgp_manifest_signed(manifest, text);
    const uint64_t version = manifest->version;
    if (strcmp(manifest->fleet, administrators->fleet) != 0)
        return sgp_fail(error, SGP_E_DATA,
            "version %" PRIu64 " is of the fleet %s, and this node is of %s", version,
            manifest->fleet, administrators->fleet);
    for (uint32_t i = 0; i < manifest->signature_count; i++) {
        const struct sgp_manifest_signature *it = &manifest->signatures[i];
        if (!verify(it->key, it->signature, text, bytes, hash))
            return sgp_fail(error, SGP_E_DATA,
                "version %" PRIu64 ": the signature of the public key %s is wrong", version,
                it->key);
        const int64_t place = place_of(administrators, hash);
        if (place < 0)
            return sgp_fail(error, SGP_E_DATA,
                "version %" PRIu64 ": %s has signed, and is no administrator of the fleet %s",
                version, hash, administrators->fleet);
        if (signers[place])
            return sgp_fail(
                error, SGP_E_DATA, "version %" PRIu64 ": %s has signed twice", version, hash);
        signers[place] = true;
    }
    const bool recovered = signers[administrators->count];
    const uint32_t count = manifest->signature_count - recovered;
    if (count < administrators->threshold && !recovered)
        return sgp_fail(error, SGP_E_DATA,
            "version %" PRIu64 ": %" PRIu32 " of %" PRIu32 " administrators must sign, and %" PRIu32
            " did; sgpctl topology sign adds one",
            version, administrators->threshold, administrators->count, count);
    *ret_recovered = recovered;
    return 0;
}
