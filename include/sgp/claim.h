/* SPDX-License-Identifier: Apache-2.0 */
/* A program's claim of differential privacy, and its text.
 *
 * A program that trains by a private method of its own says what that method promises for each row
 * of its node. Nobody can verify that, so a claim is shown as a claim. The text is words of a key
 * and a value, with one blank between them:
 *
 *     epsilon=3 delta=1e-05 noise=1.1 chance=0.05 clip=1
 *
 * epsilon and delta come first. The others may be left out, and then are not known.
 *
 * Pure; any thread. */
#ifndef SGP_CLAIM_H
#define SGP_CLAIM_H

#include "sgp/status.h"

#define SGP_CLAIM_TEXT_BYTES 200u /* the longest text that is written, with its terminating zero */

struct sgp_claim {
    double epsilon; /* 0 to SGP_CLAIM_MAX */
    double delta;   /* 0 to below 1 */
    /* of the mechanism; NaN: not known */
    double noise;  /* deviation of the noise, as a multiple of `clip`; above 0 to SGP_CLAIM_MAX */
    double chance; /* with which a step takes a row; above 0 to 1 */
    double clip;   /* greatest length of the gradient of a row; above 0 to SGP_CLAIM_MAX */
};

#define SGP_CLAIM_MAX 1e9

/* Write the text. It is read back to the same bits. */
void sgp_claim_write(const struct sgp_claim *claim, char ret_text[SGP_CLAIM_TEXT_BYTES]);

/* Read a text, which may be hostile. Returns 0, or SGP_E_DATA with a line that names the word. */
int sgp_claim_read(const char *text, struct sgp_error *error, struct sgp_claim *ret_claim);

#endif
