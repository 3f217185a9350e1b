/* SPDX-License-Identifier: Apache-2.0 */
/* Secret random numbers for differential privacy: normal noise, and which rows a step takes.
 *
 * The bits are those of AES-256 in counter mode (NIST SP 800-38A), so the noise cannot be taken off
 * without the key. The caller draws a new key from the operating system for each process. No state
 * is stored: after a restart other numbers follow. For tests a known key gives known numbers.
 *
 * Nothing allocates after creation. One thread at a time. */
#ifndef SGP_NOISE_H
#define SGP_NOISE_H

#include "sgp/types.h"

#define SGP_NOISE_KEY_BYTES 32u

struct sgp_noise;

/* Begin the stream of a key, which is copied. Returns 0 or -ENOMEM. */
int sgp_noise_create(const uint8_t key[static SGP_NOISE_KEY_BYTES], struct sgp_noise **ret_noise);
void sgp_noise_destroy(struct sgp_noise *noise); /* NULL is fine; clears the key */

/* values[i] += deviation * a standard normal number, for i < count; deviation >= 0. The numbers are
 * float32 and reach 9 deviations (Box and Muller 1958, of 64 and 32 uniform bits). */
void sgp_noise_add(struct sgp_noise *noise, float *values, double deviation, uint64_t count);

/* 64 uniform bits. */
uint64_t sgp_noise_bits(struct sgp_noise *noise);

/* Choose each of the numbers 0..rows-1 by itself with probability `chance` in (0, 1]. ret_rows has
 * room for all; they are in ascending order. Returns how many were chosen. */
uint32_t sgp_noise_choose(
    struct sgp_noise *noise, double chance, uint32_t rows, uint32_t *ret_rows);

#endif
