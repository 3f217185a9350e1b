/* SPDX-License-Identifier: Apache-2.0 */
/* Codings of a payload: the forms in which float32 values travel. The core and the wire need no
 * more than this; sgp/codec.h says what the forms do to values.
 *
 *   NONE     the values as they are
 *   FP16     blocks (sgp/block.h) of kind 16 alone
 *   BLOCKS   blocks of every kind
 *
 * Blocks have SGP_BLOCK_VALUES values each, from the first of the range on; the last block has the
 * rest. Each block names its own kind, so a target decodes a payload without knowing how its source
 * chose the values (sgp/compressor.h).
 *
 * Numbers never change once released: greetings and announcements contain them. NONE is 0, so a
 * message that leaves the coding out means NONE. Pure. Thread: any. */
#ifndef SGP_CODING_H
#define SGP_CODING_H

#include "sgp/compressor.h"
#include "sgp/types.h"

#define SGP_BLOCK_VALUES 256u

enum sgp_coding { SGP_CODING_NONE = 0, SGP_CODING_FP16, SGP_CODING_BLOCKS };
#define SGP_CODING_MOST SGP_CODING_BLOCKS /* the last of them */
/* A set of codings has a bit for each number. NONE needs no bit, because every node reads it. */
#define SGP_CODING_BIT(coding) (1u << (coding))
#define SGP_CODINGS                                                                                \
    (SGP_CODING_BIT(SGP_CODING_FP16) | SGP_CODING_BIT(SGP_CODING_BLOCKS)) /* all codings */

/* The form in which a compressor's values travel. */
enum sgp_coding sgp_coding_of(enum sgp_compressor compressor);

/* The least and the most bytes of a payload of `count` values, at most SGP_PARAMETERS_MAX. Every
 * size of a payload is a multiple of 4. With NONE and FP16 the two are equal. */
uint64_t sgp_coding_bytes_least(enum sgp_coding coding, uint64_t count);
uint64_t sgp_coding_bytes_most(enum sgp_coding coding, uint64_t count);
/* Whether a payload of `count` values may have `bytes` bytes. */
bool sgp_coding_may_have(enum sgp_coding coding, uint64_t count, uint64_t bytes);
/* Whether the longest payload of `count` values is shorter than the plain one. Only then can a
 * target decode it where its values go. False for NONE. */
bool sgp_coding_is_shorter(enum sgp_coding coding, uint64_t count);

#endif
