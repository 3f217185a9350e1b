/* SPDX-License-Identifier: Apache-2.0 */
/* Which peers the topology file admits, and how its links are ciphered (docs/SECURITY.md). Thread:
 * the loop thread. */
#ifndef SGPD_TRUST_H
#define SGPD_TRUST_H

#include "state.h"

/* For the listener: accept every key that the file names, and while a machine may join any key. */
enum sgp_tls trust_listening(void *context, struct sgp_cipher_settings *ret_settings);
bool trust_expects(void *context, const struct sockaddr *address);

/* For the dialers: accept the key of this peer. A peer that was ciphered before is not dialled
 * without ciphering while the file offers it. */
enum sgp_tls trust_dialling(void *context, uint32_t peer, struct sgp_cipher_settings *ret_settings);

/* Whether a caller is `source`, as it claims. False: the reason is in `text`. */
bool trust_is(
    struct daemon *daemon, const struct link *link, uint32_t source, char text[SGP_TEXT_BYTES]);

/* Whether the present file allows a question of this caller to be answered. */
bool trust_answers(const struct daemon *daemon, const struct link *link);

/* A connection became a neighbour's: note how it is ciphered, and log if that is not as it should
 * be. */
void trust_note(struct daemon *daemon, const struct link *link);

/* After a reload: end the links that the new file would not admit. */
void trust_reloaded(struct daemon *daemon);

#endif
