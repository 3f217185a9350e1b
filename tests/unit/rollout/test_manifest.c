/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests as text, and who must have signed them. */
#include "rollout_keys.h"

#include <assertions.h>

#define FILE_TEXT "digraph g { a -> b; b -> a }\n"

static int judge(const struct sgp_manifest *manifest, char text[SGP_TEXT_BYTES])
{
    const struct sgp_administrators administrators = keys_administrators();
    struct sgp_error error = {0};
    bool recovered = false;
    const int code = sgp_manifest_judge(manifest, &administrators, keys_verify, &error, &recovered);
    (void)snprintf(
        text, SGP_TEXT_BYTES, "%s", code == 0 ? recovered ? "recovered" : "" : error.text);
    return code;
}

static struct sgp_manifest signed_by(const char *signers)
{
    struct sgp_manifest manifest = keys_manifest(7, "", FILE_TEXT);
    for (const char *c = signers; *c != '\0'; c++)
        keys_sign(&manifest, (const char[]){*c, '\0'});
    return manifest;
}

Test(manifest, hash_is_that_of_fips_180_4)
{
    char hash[SGP_HASH_BYTES];
    sgp_manifest_hash("abc", 3, hash);
    cr_assert(
        strcmp(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") == 0);
}

Test(manifest, text_is_read_back)
{
    char text[SGP_MANIFEST_BYTES], again[SGP_MANIFEST_BYTES];
    struct sgp_manifest manifest = signed_by("ab"), read;
    manifest.despite_count = 2;
    (void)snprintf(manifest.despite[0], SGP_NAME_BYTES, "n3");
    (void)snprintf(manifest.despite[1], SGP_NAME_BYTES, "n10");
    const size_t bytes = sgp_manifest_write(&manifest, text);
    cr_assert(sgp_manifest_read(text, bytes, NULL, &read) == 0);
    cr_assert(sgp_manifest_write(&read, again) == bytes);
    cr_assert(strcmp(text, again) == 0);
    cr_assert(sgp_manifest_passes_over(&read, "n10") && !sgp_manifest_passes_over(&read, "n1"));
}

/* Each change of a byte is refused, or is another manifest whose signatures do not hold. */
Test(manifest, no_changed_byte_is_taken)
{
    char text[SGP_MANIFEST_BYTES], why[SGP_TEXT_BYTES];
    const struct sgp_manifest manifest = signed_by("ab");
    const size_t bytes = sgp_manifest_write(&manifest, text);
    for (size_t i = 0; i < bytes; i++) {
        for (int change = 1; change < 128; change++) {
            struct sgp_manifest read;
            text[i] ^= (char)change;
            if (sgp_manifest_read(text, bytes, NULL, &read) == 0)
                cr_assert(judge(&read, why) == SGP_E_DATA, "byte %zu", i);
            text[i] ^= (char)change;
        }
        struct sgp_manifest read;
        if (sgp_manifest_read(text, i, NULL, &read) == 0)
            cr_assert(judge(&read, why) == SGP_E_DATA, "cut at byte %zu", i);
    }
}

Test(manifest, the_longest_one_fits)
{
    char text[SGP_MANIFEST_BYTES];
    struct sgp_manifest manifest = keys_manifest(SGP_MANIFEST_VERSION_MAX, "", FILE_TEXT), read;
    memset(manifest.fleet, 'f', SGP_NAME_BYTES - 1);
    memset(manifest.predecessor, 'a', SGP_HASH_BYTES - 1);
    manifest.file_bytes = SGP_MANIFEST_FILE_MAX;
    manifest.despite_count = SGP_MANIFEST_DESPITE_MAX;
    manifest.signature_count = SGP_MANIFEST_SIGNERS_MAX;
    for (uint32_t i = 0; i < SGP_MANIFEST_DESPITE_MAX; i++)
        memset(manifest.despite[i], 'a' + (char)i, SGP_NAME_BYTES - 1);
    for (uint32_t i = 0; i < SGP_MANIFEST_SIGNERS_MAX; i++) {
        memset(manifest.signatures[i].key, 'k', SGP_MANIFEST_KEY_BYTES - 1);
        memset(manifest.signatures[i].signature, 's', SGP_MANIFEST_SIGNATURE_BYTES - 1);
    }
    const size_t bytes = sgp_manifest_write(&manifest, text);
    cr_assert(sgp_manifest_read(text, bytes, NULL, &read) == 0);
    cr_assert(read.despite_count == SGP_MANIFEST_DESPITE_MAX);
    cr_assert(read.signature_count == SGP_MANIFEST_SIGNERS_MAX);
}

Test(manifest, enough_administrators_must_sign)
{
    static const struct {
        const char *signers, *why;
    } cases[] = {
        {"ab", ""},
        {"cb", ""},
        {"abc", ""},
        {"r", "recovered"},
        {"ra", "recovered"},
        {"",
            "version 7: 2 of 3 administrators must sign, and 0 did; sgpctl topology sign adds one"},
        {"b",
            "version 7: 2 of 3 administrators must sign, and 1 did; sgpctl topology sign adds one"},
        {"abx", "version 7: SHA256:x has signed, and is no administrator of the fleet mill"},
        {"x", "version 7: SHA256:x has signed, and is no administrator of the fleet mill"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char why[SGP_TEXT_BYTES];
        const struct sgp_manifest manifest = signed_by(cases[i].signers);
        (void)judge(&manifest, why);
        cr_assert(strcmp(why, cases[i].why) == 0, "%s: %s", cases[i].signers, why);
    }
}

Test(manifest, what_is_not_signed_for_this_is_refused)
{
    char why[SGP_TEXT_BYTES];
    struct sgp_manifest manifest = signed_by("ab");
    manifest.version = 8;
    cr_assert(judge(&manifest, why) == SGP_E_DATA);
    cr_assert(strcmp(why, "version 8: the signature of the public key a is wrong") == 0, "%s", why);
    manifest = signed_by("ab");
    manifest.signatures[1] = manifest.signatures[0];
    cr_assert(judge(&manifest, why) == SGP_E_DATA);
    cr_assert(strcmp(why, "version 7: SHA256:a has signed twice") == 0, "%s", why);
    manifest = signed_by("");
    (void)snprintf(manifest.fleet, sizeof manifest.fleet, "barn");
    keys_sign(&manifest, "a");
    keys_sign(&manifest, "b");
    cr_assert(judge(&manifest, why) == SGP_E_DATA);
    cr_assert(
        strcmp(why, "version 7 is of the fleet barn, and this node is of mill") == 0, "%s", why);
}

Test(manifest, identity_does_not_depend_on_signers)
{
    char first[SGP_HASH_BYTES], second[SGP_HASH_BYTES];
    struct sgp_manifest a = signed_by("ab"), b = signed_by("ca");
    sgp_manifest_identify(&a, first);
    sgp_manifest_identify(&b, second);
    cr_assert(strcmp(first, second) == 0);
    b.version = 8;
    sgp_manifest_identify(&b, second);
    cr_assert(strcmp(first, second) != 0);
}

Test(manifest, a_document_has_the_file_that_its_manifest_names)
{
    struct sgp_error error = {0};
    struct sgp_document document;
    char *text = keys_document(keys_manifest(7, "", FILE_TEXT), FILE_TEXT, "ab");
    cr_assert(sgp_document_read(text, &error, &document) == 0);
    cr_assert(strcmp(document.file, FILE_TEXT) == 0);
    sgp_document_finish(&document);
    char *last = strrchr(text, '=') - 2; /* of the file */
    *last = *last == 'A' ? 'B' : 'A';
    cr_assert(sgp_document_read(text, &error, &document) == SGP_E_DATA);
    cr_assert(strstr(error.text, "another file than its manifest names") != NULL, "%s", error.text);
    free(text);
}

Test(manifest, a_file_of_another_size_is_refused)
{
    struct sgp_manifest manifest = {.version = 1};
    struct sgp_error error = {0};
    cr_assert(sgp_document_name_file(&manifest, "", 0, &error) == SGP_E_LIMIT);
    cr_assert(strcmp(error.text, "the topology file has 0 bytes; it must have 1 to 1048576 to be "
                                 "signed") == 0);
    cr_assert(sgp_document_name_file(&manifest, NULL, (size_t)SGP_MANIFEST_FILE_MAX + 1, NULL) ==
              SGP_E_LIMIT);
}

Test(manifest, of_a_document_is_read_from_the_beginning)
{
    static const char file[] = "digraph { x -> y -> x }";
    struct sgp_manifest read;
    struct sgp_error error = {0};
    struct sgp_manifest manifest = keys_manifest(7, "", file);
    char *text = keys_document(manifest, file, "ab"), *end = strstr(text, " content=");
    cr_assert(end != NULL);
    end[strlen(" content=") + 3] = '\0';
    cr_assert(eq(int, sgp_document_read_manifest(text, &error, &read), 0), "%s", error.text);
    cr_assert(read.version == 7 && read.signature_count == 2);
    end[4] = '\0';
    cr_assert(eq(int, sgp_document_read_manifest(text, &error, &read), SGP_E_DATA));
    cr_assert(strstr(error.text, "the document has no file") != NULL, "%s", error.text);
    free(text);
}
