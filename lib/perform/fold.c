/* SPDX-License-Identifier: Apache-2.0 */
/* A share that is added to the node's own values while it arrives; see sgp/perform.h. */
#include "sgp/perform.h"

#include "sgp/codec.h"
#include "sgp/kernels.h"

#include <string.h>

/* The snapshot was published in this round. If it is this node's own estimate, the source's
 * estimate is measured against it. Not if the share has no weight, because then its estimate is
 * not known. A guard needs that distance, over all values, to the x that the share is added to. Of
 * coded shares x keeps a rest, so a guard has them absorbed. */
bool sgp_perform_fold(
    struct sgp_performer *performer, const struct sgp_effect *effect, uint64_t bytes, uint64_t all)
{
    const struct sgp_fold *how = &effect->fold.how;
    uint32_t slot = effect->fold.slot;
    if (how->snapshot == SGP_SLOT_NONE)
        return performer->folded == slot;
    bool own = performer->own_slot == how->snapshot && performer->own_round == effect->round &&
               how->weight > 0;
    bool guarded = performer->guard != NULL;
    if (bytes > all / 4 * 3 || (guarded && (!own || how->compressor != SGP_COMPRESSOR_NONE)))
        return false;
    uint64_t stride = sgp_kernels_stride(performer->trainer->parameters);
    performer->folded = slot;
    performer->folding = (struct sgp_fold_work){
        .source = *sgp_pool_place(&performer->snapshots, how->snapshot),
        .keep = (float)how->keep,
        .fraction = (float)how->fraction,
        .codec = sgp_perform_codec(performer, how->compressor),
        .given = (float)(1 - how->keep),
        .stride = own ? stride : 0,
        .their_scale = own ? (float)(how->fraction / how->weight) : 0,
        .own_scale = (float)(1 / performer->own_weight),
        .guarded = guarded,
    };
    return true;
}

/* x is source - given * d, where `d` is what `source` decodes to. The bits equal those of
 * publishing and absorbing, because each product is rounded first. */
static float fold_over_rest(const struct sgp_fold_work *folding, double *ret_squares, float *values,
    uint64_t first, uint64_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    const float *source = folding->source + first;
    float decoded[SGP_KERNELS_RUN], rest[SGP_KERNELS_RUN], largest = 0;
    *ret_squares = 0;
    for (uint64_t at = 0, run; at < count; at += run) {
        run = count - at < SGP_KERNELS_RUN ? count - at : SGP_KERNELS_RUN;
        (void)sgp_codec_project(&folding->codec, decoded, source + at, first + at, run);
        memcpy(rest, source + at, run * sizeof *rest);
        kernels->absorb(rest, decoded, -folding->given, run);
        double squares;
        float most = kernels->fold(&squares, values + at, rest, 1, folding->fraction, run);
        largest = most > largest ? most : largest;
        *ret_squares += squares;
    }
    return largest;
}

float sgp_fold_values(struct sgp_fold_work *folding, double *ret_squares, float *values,
    uint64_t first, uint64_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    for (uint64_t at = 0, run; folding->stride > 0 && at < count; at += run) {
        run = count - at < SGP_KERNELS_RUN ? count - at : SGP_KERNELS_RUN;
        if ((first + at) / SGP_KERNELS_RUN % folding->stride != 0)
            continue;
        double difference, norm;
        kernels->distance(&difference, &norm, values + at, folding->their_scale,
            folding->source + first + at, folding->own_scale, run);
        folding->difference += difference;
        folding->norm += norm;
    }
    if (folding->codec.compressor != SGP_COMPRESSOR_NONE)
        return fold_over_rest(folding, ret_squares, values, first, count);
    const float *source = folding->source + first;
    if (!folding->guarded)
        return kernels->fold(ret_squares, values, source, folding->keep, folding->fraction, count);
    const struct sgp_fold_factors factors = {.keep = folding->keep,
        .fraction = folding->fraction,
        .share_scale = folding->their_scale,
        .x_scale = folding->own_scale};
    double difference;
    float largest =
        kernels->fold_distance(ret_squares, &difference, values, source, &factors, count);
    folding->distance_squared += difference;
    return largest;
}
