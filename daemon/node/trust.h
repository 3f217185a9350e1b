/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the topology file lets in, and how its links are ciphered (docs/SECURITY.md). Thread: the loop thread. */
#ifndef SGPD_TRUST_H
#define SGPD_TRUST_H

#include "state.h"

/* For the listener: anybody's key whom the file names. */
enum sgp_tls trust_listening(void *context, struct sgp_cipher_settings *ret_settings);
bool trust_expects(void *context, const struct sockaddr *address);

/* For the dialers: the key of this peer. One that was ciphered is not dialled without while the file offers ciphers. */
enum sgp_tls trust_dialling(void *context, uint32_t peer, struct sgp_cipher_settings *ret_settings);

/* Whether a caller is `source`, as it says: false, and why in `text`. */
bool trust_is(
    struct daemon *daemon, const struct link *link, uint32_t source, char text[SGP_TEXT_BYTES]);

/* Whether a question of this caller is answered by the file as it is now. */
bool trust_answers(const struct daemon *daemon, const struct link *link);

/* A connection became a neighbour's: how it is ciphered is kept, and told if it is not as it should be. */
void trust_note(struct daemon *daemon, const struct link *link);

/* After a reload: end the links that would not come to be by the new file. */
void trust_reloaded(struct daemon *daemon);

#endif
