/* SPDX-License-Identifier: Apache-2.0 */
/* The proof of a secret, after SCRAM (RFC 5802, section 3) without salt and iterations; see
 * sgp/invitation.h. */
#include "invite/secret.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>

#include <string.h>

_Static_assert(SGP_PROOF_BYTES == SHA256_DIGEST_SIZE, "a proof is a digest");

#define JOINER "sgpd joiner"
#define NUMBER "sgpd invitation"
#define CLAIM "sgpd join\n"

static void digest(
    const char *label, const uint8_t bytes[SGP_PROOF_BYTES], uint8_t ret_digest[SGP_PROOF_BYTES])
{
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, strlen(label), (const uint8_t *)label);
    sha256_update(&hash, SGP_PROOF_BYTES, bytes);
    sha256_digest(&hash, SGP_PROOF_BYTES, ret_digest);
}

/* "ClientKey" of RFC 5802. */
static void derive(const uint8_t secret[SGP_SECRET_BYTES], uint8_t ret_key[SGP_PROOF_BYTES])
{
    struct hmac_sha256_ctx mac;
    hmac_sha256_set_key(&mac, SGP_SECRET_BYTES, secret);
    hmac_sha256_update(&mac, strlen(JOINER), (const uint8_t *)JOINER);
    hmac_sha256_digest(&mac, SGP_PROOF_BYTES, ret_key);
    explicit_bzero(&mac, sizeof mac);
}

static void add_line(struct hmac_sha256_ctx *mac, const char *text)
{
    hmac_sha256_update(mac, strlen(text), (const uint8_t *)text);
    hmac_sha256_update(mac, 1, (const uint8_t *)"\n");
}

/* "ClientSignature": of everything that the joiner says. No text has a newline, so no two claims
 * give the same bytes. */
static void sign(const struct sgp_join_claim *claim, const uint8_t stored[SGP_PROOF_BYTES],
    uint8_t ret_signature[SGP_PROOF_BYTES])
{
    struct hmac_sha256_ctx mac;
    hmac_sha256_set_key(&mac, SGP_PROOF_BYTES, stored);
    hmac_sha256_update(&mac, strlen(CLAIM), (const uint8_t *)CLAIM);
    add_line(&mac, claim->fleet);
    add_line(&mac, claim->name);
    add_line(&mac, claim->address);
    add_line(&mac, claim->key);
    hmac_sha256_update(&mac, SGP_BINDING_BYTES, claim->binding);
    hmac_sha256_digest(&mac, SGP_PROOF_BYTES, ret_signature);
}

void sgp_secret_store(const uint8_t secret[SGP_SECRET_BYTES], uint8_t ret_stored[SGP_PROOF_BYTES])
{
    uint8_t key[SGP_PROOF_BYTES];
    derive(secret, key);
    digest("", key, ret_stored);
    explicit_bzero(key, sizeof key);
}

uint64_t sgp_secret_number(const uint8_t stored[SGP_PROOF_BYTES])
{
    uint8_t hash[SGP_PROOF_BYTES];
    uint64_t number = 0;
    digest(NUMBER, stored, hash);
    for (size_t i = 0; i < sizeof number; i++)
        number = number << 8 | hash[i];
    return number;
}

bool sgp_secret_is_proved(const struct sgp_join_claim *claim, const uint8_t stored[SGP_PROOF_BYTES])
{
    uint8_t key[SGP_PROOF_BYTES], hash[SGP_PROOF_BYTES];
    sign(claim, stored, key);
    for (size_t i = 0; i < SGP_PROOF_BYTES; i++)
        key[i] ^= claim->proof[i];
    digest("", key, hash);
    explicit_bzero(key, sizeof key);
    return memeql_sec(hash, stored, SGP_PROOF_BYTES) == 1;
}

void sgp_join_claim_prove(struct sgp_join_claim *claim, const uint8_t secret[SGP_SECRET_BYTES])
{
    uint8_t key[SGP_PROOF_BYTES], stored[SGP_PROOF_BYTES];
    derive(secret, key);
    digest("", key, stored);
    claim->number = sgp_secret_number(stored);
    sign(claim, stored, claim->proof);
    for (size_t i = 0; i < SGP_PROOF_BYTES; i++)
        claim->proof[i] ^= key[i];
    explicit_bzero(key, sizeof key);
}
