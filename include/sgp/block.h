/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: the bytes in which 1 to SGP_BLOCK_VALUES float32 values travel.
 *
 * The source chooses the form of each block. The target decodes every form and needs to know only
 * the number of values. A new compressor is therefore new code at the source alone.
 *
 * `project` gives what the target decodes. The rest, values - projected, stays at the source: this
 * is error feedback (Seide et al., Interspeech 2014; Karimireddy et al., ICML 2019). Packing loses
 * nothing more. To the bit and on every processor, except for the payload of a NaN:
 *
 *   unpack(pack(v)) = project(v)    project(project(v)) = project(v)    pack(project(v)) = pack(v)
 *
 * ---- bytes ----
 *
 * A block begins with a word of 32 bits, little-endian. The low byte of the word is the kind. The
 * high 24 bits are the scale s, a float32 whose low byte is 0. The product of s and an integer of
 * 8 bits is therefore exact.
 *
 *   kind      after the word                                   a value
 *   0         nothing                                          0
 *   1         1 bit for each value                             -s if the bit is set, else s
 *   2 to 8    `kind` bits for each value                       k s
 *   16, 17    2 bytes for each value                           that binary16, bfloat16
 *   64 + b    3 more scales, then b bits for each value        k s, a scale for each 64 values
 *   128 + b   a count in 1 byte, as many rising places of 8    k s at the places (b = 1: -s or s),
 *             bits, then b bits for each place                 else 0
 *   192 + b   a bitmap of 32 bytes, then b bits for each       likewise, where a bit is set
 *             bit that is set
 *
 * b is 2 to 8; in kinds 128 and 192 it may be 1. k is an integer of b bits in two's complement.
 * Integers form a little-endian bit stream: integer i has the bits i b to i b + b - 1. Value i has
 * bit i of a bitmap. Zeros pad the block to 4 bytes.
 *
 * A scale is finite and at least 2^-110. A kind without a scale has 0 there. In kind 64 the scale
 * of 64 zeros may be 0, and the scale of values beyond the last is 0. The low byte of the three
 * further words is 0.
 *
 * No block is larger than the binary16 block of as many values. A payload of blocks therefore fits
 * the memory that its values go to, and can be decoded there from its end. For that reason there is
 * no kind for float32.
 *
 * ---- values ----
 *
 * Let m be the largest magnitude of a block and L = 2^(b-1) - 1.
 *
 *   integers  s = m / L, rounded up to a float32 whose low byte is 0; k = v (1 / s), rounded to the
 *             nearest integer, to even. Each quotient and product is rounded to float32 first.
 *             k = 0 decodes to +0. A source never writes k = -L - 1; a target reads it.
 *   signs     s = the mean of |v|, rounded up likewise. float64 sums in 8 lanes, value i in lane i
 *             modulo 8, are added pairwise. Both zeros count as positive.
 *   16 bits   the nearest, to even. A finite value beyond the greatest finite number becomes that
 *             number. Infinities stay, -0 stays, and a NaN becomes quiet.
 *
 * int4:64 of at most 64 values is kind 4. What integers and signs cannot express travels in
 * another kind:
 *
 *   a NaN or an infinity                    16, so that the target receives it too
 *   m, s or s L is 2^127 or more            17, because s k might be infinite
 *   s is below 2^-110                       0, or scale 0 in kind 64
 *
 * Source: QSGD (Alistarh et al., NeurIPS 2017) with the largest magnitude as its norm, and scaled
 * signs (Bernstein et al., ICML 2018), each for blocks of 256 values.
 *
 * Pure; nothing allocates. Thread: any. */
#ifndef SGP_BLOCK_H
#define SGP_BLOCK_H

#include "sgp/coding.h"
#include "sgp/status.h"

#define SGP_BLOCK_BYTES_MOST (4u + 2u * SGP_BLOCK_VALUES)
#define SGP_BLOCK_HEAD_BYTES 36u                       /* say how long a block is */
#define SGP_BLOCK_PLACE_WORDS (SGP_BLOCK_VALUES / 64u) /* words of 64 bits in a set of places */

/* ---- the source: `count` is 1 to SGP_BLOCK_VALUES, the compressor is not NONE ---- */

/* projected[i] = what a target decodes of values[i]; both may be the same vector. Returns the bytes
 * that the packed block has: a multiple of 4, at most those of a binary16 block.
 *
 * `fine` protects small values beside large ones. It is for a block that holds values of several
 * tensors, or of a small or one-dimensional one. Such a block has kind 16, or kind 17 if a finite
 * magnitude exceeds 65504. Compressor FP16 always gives kind 16, and BF16 without `fine` kind 17,
 * zeros included. */
size_t sgp_block_project(float *projected, enum sgp_compressor compressor, bool fine,
    const float *values, uint32_t count);

/* Write the block of these values, raw or projected. Returns its bytes, as project does. The bytes
 * must not overlap the values. */
size_t sgp_block_pack(
    uint8_t *bytes, enum sgp_compressor compressor, bool fine, const float *values, uint32_t count);

/* As project and pack, of some values alone: value i is chosen if bit i % 64 of chosen[i / 64] is
 * set. The other values decode to 0. Bits beyond `count` are ignored, and a chosen 0 counts as not
 * chosen.
 *
 * `bits` is 1 to 8. With 1 bit s is the mean magnitude of the chosen values. With more bits a
 * chosen value whose k would be 0 has k = 1 or -1, so that the decoded values have the same places.
 * The block has a list of places, or a bitmap, or is dense, whichever is the shortest. */
size_t sgp_block_project_chosen(float *projected, uint32_t bits,
    const uint64_t chosen[static SGP_BLOCK_PLACE_WORDS], const float *values, uint32_t count);
size_t sgp_block_pack_chosen(uint8_t *bytes, uint32_t bits,
    const uint64_t chosen[static SGP_BLOCK_PLACE_WORDS], const float *values, uint32_t count);

/* ---- the target: `count` is 1 to SGP_BLOCK_VALUES; nothing in the bytes is trusted ---- */

/* The bytes of the block of `count` values that begins here, a multiple of 4. `have` bytes are
 * available. Returns 0 if the size depends on further bytes; SGP_BLOCK_HEAD_BYTES always suffice.
 * Returns SGP_E_FRAME if the word, the count or the bitmap is malformed, or if the block is larger
 * than a binary16 block. */
int sgp_block_bytes(const uint8_t *bytes, size_t have, uint32_t count);

/* Decode a block of exactly `size` bytes. The bytes must not overlap the values. Returns 0, or
 * SGP_E_FRAME if the block is malformed or has another size; some values may then be written. */
int sgp_block_unpack(float *values, const uint8_t *bytes, size_t size, uint32_t count);

#endif
