/* SPDX-License-Identifier: Apache-2.0 */
/* One ciphered connection over memory: bytes of the connection in, our bytes out, and the reverse.
 * It is TLS 1.3 (RFC 8446) and no older version, with raw public keys (RFC 7250) of Ed25519 at both
 * ends, X25519, and AES-128-GCM or ChaCha20-Poly1305. There are no tickets, no early data, no
 * names, and no certificate parser. docs/SECURITY.md gives the purpose.
 *
 * It touches no socket: its owner feeds received bytes and sends waiting ones. A listener accepts
 * at most 4 KiB of handshake from an unknown caller, answers with at most 1 KiB and one signature,
 * and verifies one signature of the caller.
 *
 * It fails on any other bytes of the peer. The connection is then over, with one line for people,
 * and the waiting bytes may hold an alert. One thread at a time for all ciphers of a key. */
#ifndef SGP_CIPHER_H
#define SGP_CIPHER_H

#include "sgp/key.h"

#include <sys/types.h>

#define SGP_CIPHER_HELLO 0x16 /* The first byte of a TLS handshake; none of our frames begins so. */

/* The number of bytes after which a sending key is renewed. At least 1 GiB, since GnuTLS as
 * receiver takes more frequent renewals for an attack. AES-GCM would allow some 360 GiB. */
#define SGP_CIPHER_RENEW_BYTES (UINT64_C(64) << 30)
#define SGP_CIPHER_RENEW_LEAST (UINT64_C(1) << 30)

struct sgp_cipher;

struct sgp_cipher_settings {
    struct sgp_key *key; /* our own key; held as long as the cipher lives */
    bool dials;
    uint64_t renew_bytes; /* 0: SGP_CIPHER_RENEW_BYTES */
    /* The objection to a peer that has proved to have this key: a line, borrowed until the next
     * call, or NULL for none. */
    const char *(*objection)(void *context, const char *hash);
    void *context;
    /* The reason of a handshake that fails because the peer answers without TLS. NULL: that the
     * topology files of both nodes differ. Borrowed as long as the cipher lives. */
    const char *plain;
};

/* 0, -ENOMEM or SGP_E_STATE. */
int sgp_cipher_create(const struct sgp_cipher_settings *settings, struct sgp_cipher **ret_cipher);
void sgp_cipher_destroy(struct sgp_cipher *cipher); /* NULL is allowed */

/* Pass received bytes. They are borrowed until shake or open has returned -EAGAIN, which has used
 * all of them, or an error. */
void sgp_cipher_feed(struct sgp_cipher *cipher, const void *bytes, size_t count);

/* Continue the handshake. Returns 0 when the peer is authenticated, -EAGAIN while more bytes must
 * come, or SGP_E_PROTOCOL if it has failed, with the reason in *error. A dialler's handshake ends
 * before the listener has judged its key. */
int sgp_cipher_shake(struct sgp_cipher *cipher, struct sgp_error *error);

/* After the handshake: read the next bytes of the peer, at most `capacity`. Returns their number; 0
 * if the peer has ended; -EAGAIN if more bytes must come; SGP_E_PROTOCOL. */
ssize_t sgp_cipher_open(
    struct sgp_cipher *cipher, void *into, size_t capacity, struct sgp_error *error);

/* After the handshake: queue these bytes for sending. Returns 0, -ENOMEM or SGP_E_STATE; after an
 * error the connection is over. */
int sgp_cipher_seal(struct sgp_cipher *cipher, const void *bytes, size_t count);

/* Take all waiting bytes, or 0 bytes if there are none; they stay in place until the next call. */
size_t sgp_cipher_take(struct sgp_cipher *cipher, const uint8_t **ret_bytes);

/* The hash of the peer's key, "" before it has shown one; the hash of our own key; the cipher,
 * "AES-128-GCM". Static, or valid as long as the cipher lives. */
const char *sgp_cipher_peer(const struct sgp_cipher *cipher);
const char *sgp_cipher_own(const struct sgp_cipher *cipher);
const char *sgp_cipher_name(const struct sgp_cipher *cipher);

/* After the handshake: the channel binding of this connection, equal at both ends and different on
 * every other connection (tls-exporter, RFC 9266). 0, or SGP_E_STATE if TLS cannot tell it. */
#define SGP_CIPHER_BINDING_BYTES 32u
int sgp_cipher_binding(struct sgp_cipher *cipher, uint8_t ret_binding[SGP_CIPHER_BINDING_BYTES]);

#endif
