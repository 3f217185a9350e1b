/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs: what a coding (sgp/coding.h) makes of values, and back.
 *
 * `project` says what a target will decode. What it leaves out stays at the source: where a source gives the part P of s
 * away it keeps s - P project(s), so that the sum over all nodes is as it was (error feedback, as conserved mass). Packing
 * loses nothing beyond that: unpack(pack(s)) = project(s), and project(project(s)) = project(s), to the bit, on every processor.
 *
 *   none   the values
 *   fp16   the nearest binary16, to even; finite values beyond 65504 are taken for that, infinities and NaNs stay what they are
 *
 * Pure, nothing allocates. Thread: any. */
#ifndef SGP_CODEC_H
#define SGP_CODEC_H

#include "sgp/coding.h"
#include "sgp/status.h"

struct sgp_codec {
    const char *name;
    /* projected[i] = what becomes of values[i], i < count; both may be the same vector. */
    void (*project)(float *projected, const float *values, uint64_t count);
    /* Write the bytes of `count` values, sgp_coding_bytes_most of them. Of a vector packed piece by piece every piece but
     * the last has whole blocks. */
    void (*pack)(uint8_t *bytes, const float *values, uint64_t count);
    /* The reverse, of exactly `size` bytes. They may lie in the memory of the values, at its end or behind: nothing is
     * written over what is not read. Returns 0; SGP_E_FRAME where the bytes are not what pack writes, with some values
     * written or none. */
    int (*unpack)(float *values, const uint8_t *bytes, size_t size, uint64_t count);
};

/* Static storage; never NULL. */
SGP_API const struct sgp_codec *sgp_codec_of(enum sgp_coding coding);

#endif
