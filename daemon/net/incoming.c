/* SPDX-License-Identifier: Apache-2.0 */
/* The payload that comes: where it goes, its sums, and what is looked at and folded while it is in the cache; see link.h. */
#include "link.h"

#include "sgp/codec.h"
#include "sgp/kernels.h"

#include <math.h>

void link_receive(struct link *link, float *into)
{
    sgp_assert(link->into == NULL && link->expected > 0 && link->events->payload != NULL);
    link->into = into;
    link->place =
        sgp_decoding_begin(&link->decoding, link->coding, into, link->count, link->expected);
    link->fold = NULL;
    link->received = 0;
    link->checked = 0;
    link->largest = 0;
    link->squares = 0;
}

/* Folding that began late catches up by so many bytes for each that comes. So the loop is held up for as long as it takes to fold some
 * 16 MiB, and of a payload of which no more than three quarters had come nothing is left for its end. */
#define CATCH_UP 4u

/* At every whole value that is there; at whole runs, if they are folded. So many are there since the last look. */
static void look(struct link *link, uint64_t fresh)
{
    uint64_t first = link->checked, values = link->decoding.decoded - first;
    if (link->fold != NULL && link->received < link->expected) {
        uint64_t limit = (1 + CATCH_UP) * fresh;
        limit = limit > SGP_KERNELS_RUN ? limit : SGP_KERNELS_RUN;
        values = values < limit ? values : limit;
        values -= values % SGP_KERNELS_RUN;
    }
    float *begin = link->into + first;
    double squares;
    float most = link->fold != NULL ? sgp_fold_values(link->fold, &squares, begin, first, values)
                                    : sgp_kernels_best()->measure(&squares, begin, values);
    link->squares += squares;
    link->largest = most > link->largest ? most : link->largest;
    link->checked += values;
}

/* Begins anew with looking, so that runs are whole. */
void link_fold(struct link *link, struct sgp_fold_work *fold)
{
    sgp_assert(fold == NULL || (link->into != NULL && link->fold == NULL));
    link->fold = fold;
    if (fold == NULL) { /* what is behind is not looked at: the share is refused */
        link->checked = link->decoding.decoded;
        return;
    }
    link->checked = 0;
    link->squares = 0;
}

/* Bytes that are in the nearest cache when they are looked at a second time. */
#define LOOK_BYTES 16384u

/* `bytes` more have been read to their final place: sum them and look at them. */
int link_look_at(struct link *link, size_t bytes)
{
    const uint8_t *base = link->place;
    bool sums = link->cipher == NULL, sound = true;
    for (size_t block; bytes > 0; bytes -= block) {
        block = bytes < LOOK_BYTES ? bytes : LOOK_BYTES;
        if (sums)
            (void)XXH3_64bits_update(link->hash, base + link->received, block);
        link->received += block;
        link->chunk -= (uint32_t)block;
        uint64_t before = link->decoding.decoded;
        sgp_decoding_go_on(&link->decoding, link->received);
        look(link, link->decoding.decoded - before);
    }
    if (link->chunk == 0 && sums)
        sound = (uint32_t)XXH3_64bits_digest(link->hash) == link->header.checksum;
    if (!sound)
        return SGP_E_CHECKSUM;
    if (link->decoding.malformed && link->chunk == 0)
        return SGP_E_PROTOCOL;
    if (link->received < link->expected)
        return LINK_MORE;
    return isfinite(link->largest) ? 0 : SGP_E_NOT_FINITE;
}
