/* SPDX-License-Identifier: Apache-2.0 */
/* The incoming payload: where its bytes are stored, and its checksums. Values are checked and
 * folded while they are in the cache; see link.h. */
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

/* If folding begins late, it catches up by so many bytes for each byte that arrives. So the loop is
 * blocked for at most the time to fold some 16 MiB. If at most three quarters of a payload had
 * arrived, nothing is left to fold at its end. */
#define CATCH_UP 4u

/* Check every complete value; if values are folded, complete runs alone. `fresh` values have
 * arrived since the last check. */
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

/* Checking starts again from the beginning, so that runs are complete. */
void link_fold(struct link *link, struct sgp_fold_work *fold)
{
    sgp_assert(fold == NULL || (link->into != NULL && link->fold == NULL));
    link->fold = fold;
    if (fold == NULL) { /* the rest is not checked: the share is refused */
        link->checked = link->decoding.decoded;
        return;
    }
    link->checked = 0;
    link->squares = 0;
}

/* So many bytes stay in the nearest cache until they are read a second time. */
#define LOOK_BYTES 16384u

/* `bytes` more have been read to their final place: sum and check them. */
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
