/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of secret bits, beside numbers of the standard and nettle's own counter mode. */
#include "sgp/noise.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <nettle/aes.h>
#include <nettle/ctr.h>
#include <string.h>

#define DRAWN 3072u /* bytes of the stream that one draw takes */

static uint64_t bits_at(const uint8_t *stream)
{
    uint32_t words[2];
    memcpy(words, stream, sizeof words);
    return (uint64_t)words[0] << 32 | words[1];
}

/* AES-256 of a zero block under a zero key begins so (AESAVS, NIST 2002, appendix B). */
Test(noise, begins_with_the_cipher_of_zero)
{
    static const uint8_t key[SGP_NOISE_KEY_BYTES] = {0};
    static const uint8_t first[8] = {0xdc, 0x95, 0xc0, 0x78, 0xa2, 0x40, 0x89, 0x89};
    struct sgp_noise *noise;
    cr_assert(zero(int, sgp_noise_create(key, &noise)));
    cr_assert(eq(u64, sgp_noise_bits(noise), bits_at(first)));
    sgp_noise_destroy(noise);
}

static void encrypt(const void *cipher, size_t bytes, uint8_t *to, const uint8_t *from)
{
    aes256_encrypt(cipher, bytes, to, from);
}

/* 400 draws, so that the counter takes more than two bytes. */
Test(noise, is_the_counter_mode_of_nettle)
{
    struct aes256_ctx cipher;
    uint8_t key[SGP_NOISE_KEY_BYTES], counter[AES_BLOCK_SIZE] = {0};
    static uint8_t stream[DRAWN];
    struct sgp_noise *noise;
    for (uint8_t i = 0; i < sizeof key; i++)
        key[i] = i;
    aes256_set_encrypt_key(&cipher, key);
    cr_assert(zero(int, sgp_noise_create(key, &noise)));
    for (uint32_t i = 0; i < 400; i++) {
        memset(stream, 0, sizeof stream);
        ctr_crypt(&cipher, encrypt, AES_BLOCK_SIZE, counter, sizeof stream, stream, stream);
        cr_assert(eq(u64, sgp_noise_bits(noise), bits_at(stream)), "draw %u", i);
    }
    sgp_noise_destroy(noise);
}
