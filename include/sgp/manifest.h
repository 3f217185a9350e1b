/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest: the signed words of a fleet's administrators about one version of its topology file.
 *
 * It is one line of printable ASCII, words in this order with one blank between them:
 *
 *     sgpd-topology-1 fleet=NAME version=N predecessor=HASH|none file=HASH bytes=N
 *     despite=NODE,NODE|none signatures=KEY:SIGNATURE,KEY:SIGNATURE
 *
 * A hash is SHA-256 (FIPS 180-4) in hexadecimal. The file is named by its hash. The predecessor is
 * the manifest of the file that the fleet used when this one was signed. A key and a signature are
 * base64, as sgp/key.h writes them. What is signed is all before ` signatures=`, so the signatures
 * of several administrators can be collected one after the other, and the hash of a manifest does
 * not depend on them.
 *
 * The words of a manifest are of strangers until sgp_manifest_judge has returned 0. Pure functions:
 * any thread. */
#ifndef SGP_MANIFEST_H
#define SGP_MANIFEST_H

#include "sgp/status.h"

#define SGP_HASH_BYTES 65u                        /* with the terminating zero */
#define SGP_MANIFEST_SIGNERS_MAX 16u              /* administrators of a fleet, and signatures */
#define SGP_MANIFEST_DESPITE_MAX 16u              /* nodes that are passed over */
#define SGP_MANIFEST_BYTES 4096u                  /* the longest line, with its terminating zero */
#define SGP_MANIFEST_FILE_MAX ((uint32_t)1 << 20) /* bytes of a topology file */
#define SGP_MANIFEST_KEY_BYTES 45u                /* a public key as text, with its zero */
#define SGP_MANIFEST_SIGNATURE_BYTES 89u          /* a signature as text, with its zero */
#define SGP_MANIFEST_VERSION_MAX (UINT64_C(1) << 60)

struct sgp_manifest_signature {
    char key[SGP_MANIFEST_KEY_BYTES];
    char signature[SGP_MANIFEST_SIGNATURE_BYTES];
};

struct sgp_manifest {
    char fleet[SGP_NAME_BYTES];
    uint64_t version;                 /* 1 .. SGP_MANIFEST_VERSION_MAX */
    char predecessor[SGP_HASH_BYTES]; /* "": none, the file of the configuration is in use */
    char file[SGP_HASH_BYTES];
    uint32_t file_bytes; /* 1 .. SGP_MANIFEST_FILE_MAX */
    uint32_t despite_count;
    char despite[SGP_MANIFEST_DESPITE_MAX][SGP_NAME_BYTES];
    uint32_t signature_count;
    struct sgp_manifest_signature signatures[SGP_MANIFEST_SIGNERS_MAX];
};

/* Whose signatures count. */
struct sgp_administrators {
    char fleet[SGP_NAME_BYTES];
    uint32_t count;                                     /* 1 .. SGP_MANIFEST_SIGNERS_MAX */
    uint32_t threshold;                                 /* of them must sign; 1 .. count */
    char keys[SGP_MANIFEST_SIGNERS_MAX][SGP_KEY_BYTES]; /* SHA256:BASE64; distinct */
    char recovery[SGP_KEY_BYTES]; /* signs alone, when the others are lost; "": there is none */
};

/* Whether the signature is of the holder of this public key, whose hash is then in ret_hash
 * (sgp_key_verify). The texts may be hostile. */
typedef bool sgp_manifest_verify(const char *key, const char *signature, const void *bytes,
    size_t count, char ret_hash[SGP_KEY_BYTES]);

/* The hash of these bytes. */
void sgp_manifest_hash(const void *bytes, size_t count, char ret_hash[SGP_HASH_BYTES]);

/* The line without and with its signatures. Returns its length. */
size_t sgp_manifest_signed(const struct sgp_manifest *manifest, char ret_text[SGP_MANIFEST_BYTES]);
size_t sgp_manifest_write(const struct sgp_manifest *manifest, char ret_text[SGP_MANIFEST_BYTES]);

/* 0, or SGP_E_DATA with *error: `bytes` of text, which may be hostile, are not the one way to write
 * a manifest. */
int sgp_manifest_read(
    const char *text, size_t bytes, struct sgp_error *error, struct sgp_manifest *ret_manifest);

/* The hash by which a later manifest names this one as its predecessor. */
void sgp_manifest_identify(const struct sgp_manifest *manifest, char ret_hash[SGP_HASH_BYTES]);

/* Whether the manifest passes over the node. */
bool sgp_manifest_passes_over(const struct sgp_manifest *manifest, const char *name);

/* Add a signature, unless its key has signed already. 0, or SGP_E_LIMIT. */
int sgp_manifest_add(struct sgp_manifest *manifest, const struct sgp_manifest_signature *signature);

/* Whether the fleet must follow the manifest. 0; or SGP_E_DATA with *error: it is of another fleet,
 * a signature is wrong, a signer is unknown or has signed twice, or too few have signed.
 * ret_recovered: the recovery key has signed. */
int sgp_manifest_judge(const struct sgp_manifest *manifest,
    const struct sgp_administrators *administrators, sgp_manifest_verify *verify,
    struct sgp_error *error, bool *ret_recovered);

#endif
