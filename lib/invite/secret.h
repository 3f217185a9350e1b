/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/invite: the digests of sgp/invitation.h. */
#ifndef SGP_INVITE_SECRET_H
#define SGP_INVITE_SECRET_H

#include "sgp/invitation.h"

/* What the inviter keeps of a secret. */
void sgp_secret_store(const uint8_t secret[SGP_SECRET_BYTES], uint8_t ret_stored[SGP_PROOF_BYTES]);

/* The number of an invitation, from what is kept of its secret. */
uint64_t sgp_secret_number(const uint8_t stored[SGP_PROOF_BYTES]);

/* Whether the claim proves the secret of which this is kept, in a time that no proof changes. */
bool sgp_secret_is_proved(
    const struct sgp_join_claim *claim, const uint8_t stored[SGP_PROOF_BYTES]);

#endif
