/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of payloads are XXH3-64 as every build of libxxhash computes it, whichever vectors the
 * processor has, in one piece or in many. */
#include "util/checksum.h"

#include "sgp/random.h"

#include <criterion/criterion.h>
#include <assertions.h>

#undef XXH3_64bits /* from here on: the function that every x86-64 can run */

#define BYTES_MAX 5000u

Test(checksum, equals_the_plain_one)
{
    static uint8_t bytes[BYTES_MAX];
    struct sgp_random random;
    sgp_random_init(&random, 1, 0);
    for (size_t i = 0; i < BYTES_MAX; i++)
        bytes[i] = (uint8_t)sgp_random_below(&random, 256);
    XXH3_state_t *state = XXH3_createState();
    for (size_t count = 0; count <= BYTES_MAX; count += 1 + count / 16) {
        (void)XXH3_64bits_reset(state);
        for (size_t done = 0, piece; done < count; done += piece) {
            piece = 1 + sgp_random_below(&random, 1500);
            piece = piece < count - done ? piece : count - done;
            (void)XXH3_64bits_update(state, bytes + done, piece);
        }
        uint64_t plain = XXH3_64bits(bytes, count);
        cr_assert(eq(u64, XXH3_64bits_digest(state), plain), "%zu bytes in pieces", count);
#ifdef SGPD_XXHASH_DISPATCH
        cr_assert(eq(u64, XXH3_64bits_dispatch(bytes, count), plain), "%zu bytes", count);
#endif
    }
    (void)XXH3_freeState(state);
}
