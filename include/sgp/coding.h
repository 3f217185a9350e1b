/* SPDX-License-Identifier: Apache-2.0 */
/* Codings of a payload: in which form float32 values travel. All that the core and the wire need to know of them; what
 * they do to values is in sgp/codec.h.
 *
 * NONE is the values as they are. Every other form is blocks of SGP_CODING_BLOCK values from the first of the range on,
 * the last of what is left, padded with zeros to 4 bytes. A block begins with a word of 32 bits, little-endian, whose low
 * byte is its kind; of kind 16 the rest of the word is 0, and a binary16 number for each value follows.
 *
 * Numbers never change once released: greetings, announcements and records say them. NONE is 0, so a message that leaves
 * the form out means NONE. Pure. Thread: any. */
#ifndef SGP_CODING_H
#define SGP_CODING_H

#include "sgp/types.h"

#define SGP_CODING_BLOCK 256u /* values */

enum sgp_coding { SGP_CODING_NONE = 0, SGP_CODING_FP16 };
#define SGP_CODING_WORDS "none|fp16" /* their names, in the same order */
/* A set of forms beside the first, which everybody reads: bits by number. */
#define SGP_CODING_BIT(coding) (1u << (coding))
#define SGP_CODINGS SGP_CODING_BIT(SGP_CODING_FP16) /* all that there are */

/* Bytes of so many values, at most SGP_PARAMETERS_MAX: what a payload of NONE and FP16 has, a multiple of 4. */
SGP_API uint64_t sgp_coding_bytes_most(enum sgp_coding coding, uint64_t count);

#endif
