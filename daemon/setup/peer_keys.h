/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys the topology file admits, and how links are ciphered by it (docs/SECURITY.md). Thread:
 * the loop thread. */
#ifndef SGPD_PEER_KEYS_H
#define SGPD_PEER_KEYS_H

#include "net/link.h"
#include "prepare.h"

/* For a listener: accept every key that the file names. The settings borrow *prepared. */
enum sgp_tls peer_keys_listening(
    struct prepared *prepared, struct sgp_cipher_settings *ret_settings);

/* Why a caller with this key is not let in; NULL: the file names it. Valid until the next call on
 * this thread. */
const char *peer_keys_object(const struct prepared *prepared, const char *hash);

/* For a dialer: accept the keys of the node that is dialled. */
enum sgp_tls peer_keys_dialling(
    const struct prepared *prepared, struct sgp_cipher_settings *ret_settings);

/* Whether a caller may be `source`, as it claims: its key is one of that node's, or links may be
 * plain. False: the reason is in `text`. */
bool peer_keys_allow(const struct prepared *prepared, const struct link *link, uint32_t source,
    char text[SGP_TEXT_BYTES]);

/* The place of the node that a caller says it is; -1: the file does not name it, and `text` says
 * so. */
int64_t peer_keys_find(
    const struct prepared *prepared, const char *source, char text[SGP_TEXT_BYTES]);

#endif
