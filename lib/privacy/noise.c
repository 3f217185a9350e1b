/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the key stream and the block of bits that was drawn last. One thread at a time.
 *
 * Each loop of make_normals calls at most one function of libm, so that the compiler makes vectors
 * of it. This file is compiled with -ffast-math, which that needs: no value here is infinite or not
 * a number. */
#include "sgp/noise.h"

#include "sgp/status.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <nettle/aes.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS 256u         /* of normal numbers, in a block */
#define WORDS (3u * PAIRS) /* a pair takes 64 bits for its length and 32 for its angle */
#define PI 3.14159265358979f

struct sgp_noise {
    struct aes256_ctx cipher;
    uint64_t counter; /* of blocks; the key is never used for another stream, so it begins at 0 */
    uint32_t words[WORDS];
    float normals[2 * PAIRS], lengths[PAIRS];
};

int sgp_noise_create(const uint8_t key[static SGP_NOISE_KEY_BYTES], struct sgp_noise **ret_noise)
{
    struct sgp_noise *noise = calloc(1, sizeof *noise);
    _Static_assert(SGP_NOISE_KEY_BYTES == AES256_KEY_SIZE, "the key of the cipher");
    if (noise == NULL)
        return -ENOMEM;
    aes256_set_encrypt_key(&noise->cipher, key);
    *ret_noise = noise;
    return 0;
}

void sgp_noise_destroy(struct sgp_noise *noise)
{
    if (noise != NULL)
        explicit_bzero(noise, sizeof *noise);
    free(noise);
}

/* The next words of the stream: the encrypted counters, which are big-endian. To add them to zeros,
 * as nettle's ctr_crypt does, takes as long as the cipher. */
static void draw(struct sgp_noise *noise)
{
    uint8_t *block = (uint8_t *)noise->words;
    memset(block, 0, sizeof noise->words);
    for (size_t at = 0; at < sizeof noise->words; at += AES_BLOCK_SIZE) {
        const uint64_t counter = htobe64(noise->counter++);
        memcpy(block + at + AES_BLOCK_SIZE - sizeof counter, &counter, sizeof counter);
    }
    aes256_encrypt(&noise->cipher, sizeof noise->words, block, block);
}

/* The upper 31 bits of a word as a float. Vector units convert signed numbers alone. */
static float upper(uint32_t word)
{
    return (float)(int32_t)(word >> 1);
}

/* gcc makes a second variant for wider vectors, and the loader takes the one that fits. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) &&    \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

/* Fill `normals`. A length comes from 62 bits, so that its tail ends at 9.2 and not at 6.7, which
 * 32 bits would give: the noise of a long training would tell values beyond its end apart. */
WIDE static void make_normals(const uint32_t *words, float *lengths, float *normals)
{
    const uint32_t *high = words, *low = high + PAIRS, *angles = low + PAIRS;
    for (size_t i = 0; i < PAIRS; i++)
        lengths[i] = logf(upper(high[i]) * 0x1p-31f + (upper(low[i]) + 0.5f) * 0x1p-62f);
    for (size_t i = 0; i < PAIRS; i++) /* rounding may give 1, whose log is 0 */
        lengths[i] = sqrtf(fmaxf(-2.0f * lengths[i], 0.0f));
    for (size_t i = 0; i < PAIRS; i++)
        normals[i] = lengths[i] * cosf((float)(int32_t)angles[i] * (PI * 0x1p-31f));
    for (size_t i = 0; i < PAIRS; i++)
        normals[PAIRS + i] = lengths[i] * sinf((float)(int32_t)angles[i] * (PI * 0x1p-31f));
}

WIDE static void add(float *values, const float *normals, float factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] += factor * normals[i];
}

void sgp_noise_add(struct sgp_noise *noise, float *values, double deviation, uint64_t count)
{
    const float factor = (float)deviation;
    sgp_assert(deviation >= 0);
    for (uint64_t first = 0; first < count; first += 2 * PAIRS) {
        uint64_t run = count - first < 2 * PAIRS ? count - first : 2 * PAIRS;
        draw(noise);
        make_normals(noise->words, noise->lengths, noise->normals);
        add(values + first, noise->normals, factor, run);
    }
}

uint64_t sgp_noise_bits(struct sgp_noise *noise)
{
    draw(noise);
    return (uint64_t)noise->words[0] << 32 | noise->words[1];
}

/* The rows between two chosen rows have a geometric distribution: `gap` and more of them have the
 * probability (1 - chance)^gap. So the cost is that of the rows that are chosen. */
uint32_t sgp_noise_choose(struct sgp_noise *noise, double chance, uint32_t rows, uint32_t *ret_rows)
{
    uint32_t count = 0, word = WORDS;
    double row = 0;
    sgp_assert(chance > 0 && chance <= 1);
    for (;;) {
        if (word == WORDS) {
            draw(noise);
            word = 0;
        }
        const uint32_t *pair = noise->words + word;
        double uniform = (pair[0] + (pair[1] + 0.5) * 0x1p-32) * 0x1p-32;
        row += chance < 1 ? floor(log(uniform) / log1p(-chance)) : 0;
        if (row >= rows)
            return count;
        ret_rows[count++] = (uint32_t)row++;
        word += 2;
    }
}
