/* SPDX-License-Identifier: Apache-2.0 */
/* Compressors: the names of the lossy forms in which a source can send float32 values. sgp/block.h
 * says what each of them does to values and to bytes.
 *
 *   none      float32
 *   fp16      binary16
 *   bf16      bfloat16
 *   int8      for a block of 256 values a scale, and for each value an integer of 8 bits; int6,
 *             int4 and int2 likewise
 *   int4:64   as int4, with a scale for each 64 values
 *   sign      for a block a magnitude, and for each value a sign
 *   sparse    for a block a magnitude, and a sign for each value that is not 0; which values those
 *             are is chosen before (sgp/choose.h)
 *
 * Numbers never change once released: ledgers store them. NONE is 0, so a record that leaves the
 * compressor out means NONE. What follows from a number is in one table (lib/base/coding.c), so a
 * new compressor has the next number, whatever it is for. Pure. Thread: any. */
#ifndef SGP_COMPRESSOR_H
#define SGP_COMPRESSOR_H

#include "sgp/types.h"

enum sgp_compressor {
    SGP_COMPRESSOR_NONE = 0,
    SGP_COMPRESSOR_FP16 = 1,
    SGP_COMPRESSOR_BF16 = 2,
    SGP_COMPRESSOR_INT8 = 3,
    SGP_COMPRESSOR_INT6 = 4,
    SGP_COMPRESSOR_INT4 = 5,
    SGP_COMPRESSOR_INT4_64 = 6,
    SGP_COMPRESSOR_INT2 = 7,
    SGP_COMPRESSOR_SIGN = 8,
    SGP_COMPRESSOR_SPARSE = 9,
};
#define SGP_COMPRESSOR_MOST SGP_COMPRESSOR_SPARSE /* the last of them */

/* The words of the compressors that a share with weight may use. */
#define SGP_COMPRESSOR_SHARE_WORDS "none|fp16|bf16|int8|int6|int4|int4:64"

/* The compressor of a word, or -1. */
int sgp_compressor_of(const char *word);

/* ---- properties; a compressor that does not exist is a programmer error ---- */

/* Its word: static storage. */
const char *sgp_compressor_word(enum sgp_compressor compressor);
/* Whether a share with weight may use it. The others are for updates: below 4 bits the error of an
 * estimate is too large. */
bool sgp_compressor_is_of_shares(enum sgp_compressor compressor);
/* The largest rounding error of a value, as a part of the largest magnitude of its block: from 0 to
 * 1. Values that binary16 cannot hold are not considered. */
double sgp_compressor_error(enum sgp_compressor compressor);

#endif
