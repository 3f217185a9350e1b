/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256++ 1.0 seeded by splitmix64 (Blackman and Vigna, "Scrambled linear pseudorandom number
 * generators", 2019). Any thread, one stream per thread. */
#include "sgp/random.h"
#include "sgp/status.h"

#include <math.h>

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

void sgp_random_init(struct sgp_random *random, uint64_t seed, uint64_t stream)
{
    /* Both words pass through the mixer before they are combined. So no two pairs share a state,
     * such as (1, 2) and (2, 1), or neighbouring seeds with neighbouring streams. */
    uint64_t state = splitmix64(&seed) + rotate_left(splitmix64(&stream), 32);
    for (int i = 0; i < 4; i++)
        random->state[i] = splitmix64(&state);
}

/* The key is mixed first, so the places of neighbouring keys do not overlap. */
uint64_t sgp_random_at(uint64_t key, uint64_t place)
{
    uint64_t state = splitmix64(&key) + place * UINT64_C(0x9e3779b97f4a7c15);
    return splitmix64(&state);
}

uint64_t sgp_random_next(struct sgp_random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t sgp_random_below(struct sgp_random *random, uint64_t bound)
{
    sgp_assert(bound >= 1);
    /* the lowest 2^64 mod bound values would make the low remainders more likely: draw again */
    uint64_t surplus = (0 - bound) % bound;
    for (;;) {
        uint64_t value = sgp_random_next(random);
        if (value >= surplus)
            return value % bound;
    }
}

double sgp_random_double(struct sgp_random *random)
{
    return (double)(sgp_random_next(random) >> 11) * 0x1.0p-53;
}

double sgp_random_normal(struct sgp_random *random)
{
    for (;;) {
        double x = 2.0 * sgp_random_double(random) - 1.0;
        double y = 2.0 * sgp_random_double(random) - 1.0;
        double square = x * x + y * y;
        if (square > 0.0 && square < 1.0)
            return x * sqrt(-2.0 * log(square) / square);
    }
}

void sgp_random_shuffle(struct sgp_random *random, uint32_t *values, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)sgp_random_below(random, i);
        uint32_t kept = values[i - 1];
        values[i - 1] = values[j];
        values[j] = kept;
    }
}
