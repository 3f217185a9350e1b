/* SPDX-License-Identifier: Apache-2.0 */
/* One ciphered connection over memory: bytes of the line in, bytes of ours out, and back. TLS 1.3 (RFC 8446) and nothing
 * older, both ends with raw public keys (RFC 7250) of Ed25519, X25519, AES-128-GCM or ChaCha20-Poly1305; no
 * tickets, no early data, no names, no certificate parser. docs/SECURITY.md says what this is for.
 *
 * It touches no socket: its owner feeds what came and carries away what waits. A listener takes at most 4 KiB of handshake from
 * one whom it does not know, answers with at most 1 KiB and one signature, and verifies one of his.
 *
 * Fails: whatever the peer sends that is not this; then it is over, with one line for a person, and what waits may hold an alert.
 * One thread at a time for all ciphers of a key. */
#ifndef SGP_CIPHER_H
#define SGP_CIPHER_H

#include "sgp/key.h"

#include <sys/types.h>

#define SGP_CIPHER_HELLO                                                                           \
    0x16 /* the first byte of whoever wants this; none of our frames begins so */

/* A key is made new after so many bytes sent with it; never sooner than after 1 GiB, which GnuTLS as receiver takes for an
 * attack. AES-GCM would bear some 360 GiB. */
#define SGP_CIPHER_RENEW_BYTES (UINT64_C(64) << 30)
#define SGP_CIPHER_RENEW_LEAST (UINT64_C(1) << 30)

struct sgp_cipher;

struct sgp_cipher_settings {
    struct sgp_key *key; /* own; held as long as the cipher lives */
    bool dials;
    uint64_t renew_bytes; /* 0: SGP_CIPHER_RENEW_BYTES */
    /* What there is to say against a peer that has proved to have this key: a line, borrowed until the next call, or NULL for nothing. */
    const char *(*objection)(void *context, const char *hash);
    void *context;
};

/* 0, -ENOMEM or SGP_E_STATE. */
SGP_API int sgp_cipher_create(
    const struct sgp_cipher_settings *settings, struct sgp_cipher **ret_cipher);
SGP_API void sgp_cipher_destroy(struct sgp_cipher *cipher); /* NULL is fine */

/* These bytes of the line came. They are borrowed until shake or open has returned -EAGAIN, which has used all of them, or
 * anything below that. */
SGP_API void sgp_cipher_feed(struct sgp_cipher *cipher, const void *bytes, size_t count);

/* Go on with the handshake: 0 when the peer is known, -EAGAIN while more has to come, SGP_E_PROTOCOL if it
 * has failed, with why in *error. A dialler is through before the listener has judged its key. */
SGP_API int sgp_cipher_shake(struct sgp_cipher *cipher, struct sgp_error *error);

/* After the handshake: the next bytes of the peer's, at most `capacity`: their number; 0 if it has ended; -EAGAIN if more
 * has to come; SGP_E_PROTOCOL. */
SGP_API ssize_t sgp_cipher_open(
    struct sgp_cipher *cipher, void *into, size_t capacity, struct sgp_error *error);

/* After the handshake: these bytes wait to be carried away. 0, -ENOMEM or SGP_E_STATE; then it is over. */
SGP_API int sgp_cipher_seal(struct sgp_cipher *cipher, const void *bytes, size_t count);

/* All that waits for the line, 0 bytes if nothing does; it stays where it is until the next call. */
SGP_API size_t sgp_cipher_take(struct sgp_cipher *cipher, const uint8_t **ret_bytes);

/* The hash of the peer's key, "" before it has shown one; of the own; the cipher, "AES-128-GCM". Static, or as long as the cipher lives. */
SGP_API const char *sgp_cipher_peer(const struct sgp_cipher *cipher);
SGP_API const char *sgp_cipher_own(const struct sgp_cipher *cipher);
SGP_API const char *sgp_cipher_name(const struct sgp_cipher *cipher);

#endif
