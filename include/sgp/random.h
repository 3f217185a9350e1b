/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers from a seed: the only source of randomness in the library.
 *
 * splitmix64 spreads a seed, xoshiro256++ makes the stream (Blackman and Vigna, 2019). The same
 * seed gives the same stream on every machine: initial parameters, shards and simulations rely on
 * that. */
#ifndef SGP_RANDOM_H
#define SGP_RANDOM_H

#include "sgp/types.h"

struct sgp_random {
    uint64_t state[4];
};

/* Start a stream. `stream` separates independent uses of one seed (a node's index, a purpose). */
SGP_API void sgp_random_init(struct sgp_random *random, uint64_t seed, uint64_t stream);

/* The 64 bits at a place of a stream, by splitmix64, without a state: the same key and place always
 * give the same bits. */
SGP_API uint64_t sgp_random_at(uint64_t key, uint64_t place);

/* The next 64 bits. */
SGP_API uint64_t sgp_random_next(struct sgp_random *random);

/* Uniform in [0, bound), without bias; bound >= 1. */
SGP_API uint64_t sgp_random_below(struct sgp_random *random, uint64_t bound);

/* Uniform in [0, 1), 53 bits. */
SGP_API double sgp_random_double(struct sgp_random *random);

/* Standard normal, by the Marsaglia polar method; consumes a varying number of draws. */
SGP_API double sgp_random_normal(struct sgp_random *random);

/* Permute values[0..count) uniformly (Fisher-Yates). */
SGP_API void sgp_random_shuffle(struct sgp_random *random, uint32_t *values, size_t count);

#endif
