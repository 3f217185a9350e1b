/* SPDX-License-Identifier: Apache-2.0 */
/* What a private step needs beside a plain one: secret numbers, the lengths of rows' gradients, and
 * the number of rows that pass through the network together. Nothing allocates after init. Thread:
 * the trainer's. */
#ifndef SGP_TRAIN_CLIPPED_H
#define SGP_TRAIN_CLIPPED_H

#include "network.h"
#include "sgp/learner.h"
#include "sgp/noise.h"

struct sgp_clipped {
    double clip;             /* the length of a row's gradient, at most */
    double share;            /* of a row in a step's gradient: 1 / the expected number of rows */
    double deviation;        /* of the noise in a step's gradient: noise * clip * share */
    double chance;           /* of each row to be in a step */
    uint32_t capacity;       /* rows of a pass */
    struct sgp_noise *noise; /* NULL: steps are not private */
    double *squares;
    float *factors;
    float *part; /* the sum of a second or later pass; owned, as the others */
};

/* The rows of a pass: the batch, and four deviations of the number of rows that a step draws. A
 * pass always has so many, so that its time does not tell how many were drawn. */
uint32_t sgp_clipped_capacity(uint32_t batch, uint64_t rows);

/* Begin with a new stream of the settings' key. Returns 0 or -ENOMEM; finish is due in both
 * cases. */
int sgp_clipped_init(struct sgp_clipped *clipped, const struct sgp_learner_settings *settings);
void sgp_clipped_finish(struct sgp_clipped *clipped);

/* Draw the rows of a step into ret_rows, and fill up the last pass with others: room for all rows
 * and `capacity` more. `place` varies the others. Returns how many were drawn. */
uint32_t sgp_clipped_draw(
    struct sgp_clipped *clipped, uint32_t rows, uint64_t place, uint32_t *ret_rows);

/* factors[0..capacity): the share of a row, times what shortens each of the first `drawn` rows'
 * gradients to the clipping length. The factor is 0 for the other rows, and for a row whose
 * gradient is not finite. It is 0, too, for a gradient so long that float32 cannot hold the factor
 * to all digits. The call must follow forward and loss of a pass, and uses up what loss has
 * prepared. `gradient` is scratch. */
void sgp_clipped_measure(struct sgp_clipped *clipped, struct sgp_network *network, float *gradient,
    const float *x, double weight, uint32_t drawn);

#endif
