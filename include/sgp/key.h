/* SPDX-License-Identifier: Apache-2.0 */
/* The secret key of a node, and the hash by which others know it: Ed25519 (RFC 8032), in a file PKCS#8 (RFC 8410)
 * in PEM.
 *
 * The secret lies in a page of its own, which is locked in memory where the system allows it, is no part of a core dump, and
 * is wiped when the last holder lets go. The libraries copy of it while the file is read and
 * while they sign, and do not wipe all of that.
 *
 * One thread at a time for one key. Errors are one line that begins with the file and ends with the remedy. */
#ifndef SGP_KEY_H
#define SGP_KEY_H

#include "sgp/status.h"

struct sgp_key;

/* A new key in a new file of mode 0600, which must not be there yet; its hash in ret_hash. SGP_E_FILE, -EEXIST, -errno. */
SGP_API int sgp_key_generate(
    const char *path, struct sgp_error *error, char ret_hash[SGP_KEY_BYTES]);

/* Read one. A file that its owner alone may not be said to read is refused (-EPERM); it is the caller's or root's, or it lies in
 * $CREDENTIALS_DIRECTORY, where systemd sees to that. SGP_E_FILE: it is no such key. */
SGP_API int sgp_key_read(const char *path, struct sgp_error *error, struct sgp_key **ret_key);

/* One holder more, and one less; NULL is fine. */
SGP_API struct sgp_key *sgp_key_hold(struct sgp_key *key);
SGP_API void sgp_key_release(struct sgp_key *key);

/* "SHA256:" and the base64 of the hash of its SubjectPublicKeyInfo: what a topology file calls the node's key. */
SGP_API const char *sgp_key_hash(const struct sgp_key *key);

/* A public key and a signature as text: base64. */
#define SGP_PUBLIC_BYTES 45u /* with the zero */
#define SGP_SIGNATURE_BYTES 89u

/* The public half. 0 or -ENOMEM. */
SGP_API int sgp_key_public(const struct sgp_key *key, char ret_public[SGP_PUBLIC_BYTES]);

/* Sign these bytes (Ed25519, RFC 8032). 0 or -ENOMEM. */
SGP_API int sgp_key_sign(const struct sgp_key *key, const void *bytes, size_t count,
    char ret_signature[SGP_SIGNATURE_BYTES]);

/* Whether that is the signature of whoever has this public key, whose hash is then in ret_hash. Both texts may be anything. */
SGP_API bool sgp_key_verify(const char *public_key, const char *signature, const void *bytes,
    size_t count, char ret_hash[SGP_KEY_BYTES]);

#endif
