/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs: how a compressor (sgp/compressor.h) codes a range of values, and how a payload is
 * decoded.
 *
 * `project` computes the values that a target will decode. The part that it leaves out stays at the
 * source: a source that gives the fraction P of s keeps s - P project(s), so the sum over all nodes
 * is unchanged (error feedback, as conserved mass). Packing loses nothing more: decoding the bytes
 * of pack(s) gives project(s), and project(project(s)) = project(s), to the bit, on every
 * processor.
 *
 * A range is coded in blocks (sgp/block.h) from its first value on. Values of different magnitude
 * must not share a scale, or the small ones round to 0 while their weight travels. So a block has
 * 16-bit floats if two tensors meet in it, or if its tensor has fewer than two dimensions.
 *
 * SPARSE has a sign for each value that is not 0. These values were chosen before (sgp/choose.h),
 * so projecting and packing expect chosen values.
 *
 * Pure, nothing allocates. Thread: any. */
#ifndef SGP_CODEC_H
#define SGP_CODEC_H

#include "sgp/coding.h"
#include "sgp/status.h"

/* The end of a tensor in the vector of all parameters. */
struct sgp_tensor_end {
    uint64_t end;     /* the first value after it */
    bool has_columns; /* two dimensions or more */
};

/* The tensors of a vector, in their order: they tile it. All zero means one tensor with columns. */
struct sgp_tensors {
    const struct sgp_tensor_end *ends; /* borrowed */
    uint32_t count;
};

struct sgp_codec {
    enum sgp_compressor compressor;
    struct sgp_tensors tensors;
};

/* projected[i] = the value that a target decodes of values[i], i < count; both may be the same
 * vector. values[0] is value number `first` of all parameters. Returns the number of bytes when
 * packed. */
uint64_t sgp_codec_project(const struct sgp_codec *codec, float *projected, const float *values,
    uint64_t first, uint64_t count);

/* Write the bytes of `count` values and return their number, at most sgp_coding_bytes_most. A range
 * may be projected or packed piece by piece: then every piece but the last must have whole
 * blocks. */
uint64_t sgp_codec_pack(const struct sgp_codec *codec, uint8_t *bytes, const float *values,
    uint64_t first, uint64_t count);

/* The number of bytes when packed. With NONE and FP16 it depends on `count` alone. */
uint64_t sgp_codec_bytes(
    const struct sgp_codec *codec, const float *values, uint64_t first, uint64_t count);

/* A payload that is decoded while it arrives. Its bytes lie at the end of the memory of its values,
 * where a plain payload also lies. */
struct sgp_decoding {
    enum sgp_coding coding;
    float *values;    /* borrowed */
    uint64_t count;   /* of them */
    uint64_t size;    /* bytes of the payload */
    uint64_t used;    /* the number of decoded bytes */
    uint64_t decoded; /* the number of decoded values, which lie in their final place */
    bool malformed;   /* the next bytes are not a block */
    bool kept;        /* the last block, of one value, is in `last` */
    uint8_t last[8];
};

/* Begin to decode a payload of `size` bytes with `count` values; sgp_coding_may_have must allow
 * that. Returns the place for its bytes. */
uint8_t *sgp_decoding_begin(struct sgp_decoding *decoding, enum sgp_coding coding, float *values,
    uint64_t count, uint64_t size);

/* Decode the first `received` bytes. If all bytes are there, `decoded` is `count` afterwards. If
 * the payload is `malformed`, some values before the malformed block are decoded, and no more will
 * be. */
void sgp_decoding_go_on(struct sgp_decoding *decoding, uint64_t received);

#endif
