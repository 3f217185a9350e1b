/* SPDX-License-Identifier: Apache-2.0 */
/* Choosers: which values of an update travel, and how they are rounded. The target needs to know
 * none of this: the chosen values lie on the grid of a compressor (sgp/compressor.h), which packs
 * them without loss. So a chooser is code at the source alone.
 *
 * A chooser makes s of an update u. The rest, u - s, is stored and added to the next update: error
 * feedback (Seide et al. 2014; Stich et al. 2018; Karimireddy et al. 2019). The words are those of
 * `[network] compression`:
 *
 *   none, fp16 ... int4:64   as sgp/compressor.h says
 *   int2, sign               the same, but for updates alone. sign is 1-bit SGD (Seide et al. 2014)
 *   qsgd:S    QSGD (Alistarh et al., NeurIPS 2017): S levels, rounded at random without bias. The
 *             norm of a block is its largest magnitude. S is 1, 7, 31 or 127: 2, 4, 6 or 8 bits.
 *             As in the paper there is no error feedback: the error is 0 on average, and may exceed
 *             u. With feedback it would grow without bound
 *   terngrad  TernGrad (Wen et al., NeurIPS 2017): qsgd:1, without clipping
 *   top:F     the fraction F of each block with the largest magnitudes, at least one value: signs,
 *             and their mean magnitude. 0 < F <= 1
 *   dgc:F     Deep Gradient Compression (Lin et al., ICLR 2018): as top:F. Momentum is that of the
 *             worker's optimiser, so the update contains it: the paper's momentum correction.
 *             Masking of momentum and warm-up of F are left out
 *   adacomp   AdaComp (Chen et al., AAAI 2018, section 3): a value travels if u plus the latest
 *             update reaches the largest magnitude of u in its block: signs, and their mean
 *             magnitude
 *
 * A block has 256 values (sgp/coding.h), which are a bucket of QSGD and a bin of AdaComp. Blocks of
 * 16-bit floats (sgp/codec.h) are chosen whole. Values that are not finite leave no rest.
 *
 * Pure; nothing allocates. Thread: any. */
#ifndef SGP_CHOOSE_H
#define SGP_CHOOSE_H

#include "sgp/codec.h"

enum sgp_choice {
    SGP_CHOICE_NEAREST = 0, /* every value, as the compressor rounds it */
    SGP_CHOICE_CHANCE,      /* every value, rounded up or down at random */
    SGP_CHOICE_LARGEST,     /* the fraction of a block with the largest magnitudes */
    SGP_CHOICE_ADAPTIVE,    /* as AdaComp */
};

#define SGP_CHOOSER_WORDS                                                                          \
    SGP_COMPRESSOR_SHARE_WORDS "|int2|sign|qsgd:S|terngrad|top:F|dgc:F|adacomp"
#define SGP_CHOOSER_COPY_WORDS SGP_COMPRESSOR_SHARE_WORDS "|top:F" /* the words for copies */
#define SGP_CHOOSER_WORD_BYTES 24u

/* All zero: every value as it is. */
struct sgp_chooser {
    enum sgp_choice choice;
    enum sgp_compressor compressor; /* the compressor on whose grid the chosen values lie */
    double part;                    /* F of LARGEST */
    char word[SGP_CHOOSER_WORD_BYTES];
};

/* Read one of SGP_CHOOSER_WORDS. Returns 0, or SGP_E_CONFIG with a clause for people in *error. The
 * clause names `words` to choose from: SGP_CHOOSER_WORDS or SGP_CHOOSER_COPY_WORDS. */
int sgp_chooser_parse(
    const char *text, const char *words, struct sgp_error *error, struct sgp_chooser *ret_chooser);

/* Whether the chooser is for updates alone, because it leaves out too much of an estimate. */
bool sgp_chooser_is_of_updates(const struct sgp_chooser *chooser);

/* Whether the chooser keeps one magnitude for each block: `sign`, and choosers that send few
 * values. */
bool sgp_chooser_is_coarse(const struct sgp_chooser *chooser);

/* Whether the chooser may be used for an owner's copies: 4 bits and more of every value, or the
 * largest fraction. With random rounding or signs the error of a copy grows, because it is not fed
 * back, or is too large. */
bool sgp_chooser_is_of_copies(const struct sgp_chooser *chooser);

struct sgp_chosen {
    uint64_t bytes;          /* of the packed values */
    double difference, norm; /* sums of squares of u - s and of u */
};

/* values = s and rest = u - s, where u = values + rest; after random rounding rest = 0. values[0]
 * is value number `first` of all parameters, and blocks begin with it. Random bits are drawn by
 * `key` and the number of a value, so the same update has the same bits. `rest` may be NULL: then
 * it counts as 0, and the caller keeps track of the rest. */
void sgp_choose(const struct sgp_chooser *chooser, const struct sgp_tensors *tensors, uint64_t key,
    float *values, float *rest, uint64_t first, uint64_t count, struct sgp_chosen *ret_chosen);

#endif
