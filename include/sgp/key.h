/* SPDX-License-Identifier: Apache-2.0 */
/* The secret key of a node, and the hash by which others identify it: Ed25519 (RFC 8032), in a
 * PKCS#8 file (RFC 8410) in PEM.
 *
 * The secret lies in a page of its own. The page is locked in memory where the system allows it, is
 * left out of core dumps, and is wiped when the last holder releases it. The libraries copy the
 * secret while they read the file and while they sign, and do not wipe all of these copies.
 *
 * One thread at a time for one key. Errors are one line that begins with the file and ends with the
 * remedy. */
#ifndef SGP_KEY_H
#define SGP_KEY_H

#include "sgp/status.h"

struct sgp_key;

/* Make a new key in a new file of mode 0600, which must not exist; its hash in ret_hash. Returns 0,
 * SGP_E_FILE, -EEXIST or -errno. */
int sgp_key_generate(const char *path, struct sgp_error *error, char ret_hash[SGP_KEY_BYTES]);

/* Read a key. A file that others than its owner may read is refused (-EPERM). It must belong to the
 * caller or to root, or lie in $CREDENTIALS_DIRECTORY, whose access systemd controls. SGP_E_FILE:
 * the file holds no such key. */
int sgp_key_read(const char *path, struct sgp_error *error, struct sgp_key **ret_key);

/* Add a holder, and remove one; NULL is allowed. */
struct sgp_key *sgp_key_hold(struct sgp_key *key);
void sgp_key_release(struct sgp_key *key);

/* "SHA256:" and the base64 of the hash of its SubjectPublicKeyInfo: the node's key in a topology
 * file. */
const char *sgp_key_hash(const struct sgp_key *key);

/* A public key and a signature as text: base64. */
#define SGP_PUBLIC_BYTES 45u /* with the zero */
#define SGP_SIGNATURE_BYTES 89u

/* The public half. 0 or -ENOMEM. */
int sgp_key_public(const struct sgp_key *key, char ret_public[SGP_PUBLIC_BYTES]);

/* Sign these bytes (Ed25519, RFC 8032). 0 or -ENOMEM. */
int sgp_key_sign(const struct sgp_key *key, const void *bytes, size_t count,
    char ret_signature[SGP_SIGNATURE_BYTES]);

/* The hash of a public key; false: it is none, or no memory. The text may be hostile. */
bool sgp_key_hash_public(const char *public_key, char ret_hash[SGP_KEY_BYTES]);

/* Whether the signature is of the holder of this public key, whose hash is then in ret_hash. Both
 * texts may be hostile. */
bool sgp_key_verify(const char *public_key, const char *signature, const void *bytes, size_t count,
    char ret_hash[SGP_KEY_BYTES]);

#endif
