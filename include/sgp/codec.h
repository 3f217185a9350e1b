/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs: what a compressor (sgp/compressor.h) makes of a range of values, and how a payload
 * becomes values again.
 *
 * `project` says what a target will decode. What it leaves out stays at the source: where a source
 * gives the part P of s away it keeps s - P project(s), so that the sum over all nodes is as it was
 * (error feedback, as conserved mass). Packing loses nothing beyond that: decoding what pack(s)
 * wrote gives project(s), and project(project(s)) = project(s), to the bit, on every processor.
 *
 * A range is coded in blocks (sgp/block.h) from its first value on. Values of unlike magnitude must
 * not share a scale, or the small ones round to 0 while their weight travels. So 16-bit
 * floats fill a block if two tensors meet in it, or if its tensor has fewer than two dimensions.
 *
 * SPARSE has a sign for each value that is not 0. Which values those are was chosen before
 * (sgp/choose.h), so projecting and packing expect what was chosen.
 *
 * Pure, nothing allocates. Thread: any. */
#ifndef SGP_CODEC_H
#define SGP_CODEC_H

#include "sgp/coding.h"
#include "sgp/status.h"

/* Where a tensor ends in the vector of all parameters. */
struct sgp_tensor_end {
    uint64_t end;     /* the first value behind it */
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

/* projected[i] = what a target decodes of values[i], i < count; both may be the same vector. values[0] is value number
 * `first` of all parameters. Returns the bytes that packing them takes. */
SGP_API uint64_t sgp_codec_project(const struct sgp_codec *codec, float *projected,
    const float *values, uint64_t first, uint64_t count);

/* Write the bytes of `count` values and return how many there are, at most sgp_coding_bytes_most. A
 * range may be projected or packed piece by piece: then every piece but the last must have whole
 * blocks. */
SGP_API uint64_t sgp_codec_pack(const struct sgp_codec *codec, uint8_t *bytes, const float *values,
    uint64_t first, uint64_t count);

/* The bytes that packing takes. With NONE and FP16 they depend on `count` alone. */
SGP_API uint64_t sgp_codec_bytes(
    const struct sgp_codec *codec, const float *values, uint64_t first, uint64_t count);

/* A payload that is decoded while it comes. Its bytes lie at the end of the memory of its values, where a plain payload
 * lies too. */
struct sgp_decoding {
    enum sgp_coding coding;
    float *values;    /* borrowed */
    uint64_t count;   /* of them */
    uint64_t size;    /* bytes of the payload */
    uint64_t used;    /* so many of them are decoded, */
    uint64_t decoded; /* to so many values, which lie where they belong */
    bool malformed;   /* what follows is not what pack writes */
    bool kept;        /* the last block, of one value, is in `last` */
    uint8_t last[8];
};

/* Begin to decode a payload of `size` bytes with `count` values; sgp_coding_may_have must allow
 * that. Returns the place for its bytes. */
SGP_API uint8_t *sgp_decoding_begin(struct sgp_decoding *decoding, enum sgp_coding coding,
    float *values, uint64_t count, uint64_t size);

/* Decode what the first `received` bytes hold. If all bytes are there, `decoded` is `count`
 * afterwards. If the payload is `malformed`, some values before the malformed block are decoded,
 * and no more will be. */
SGP_API void sgp_decoding_go_on(struct sgp_decoding *decoding, uint64_t received);

#endif
