/* SPDX-License-Identifier: Apache-2.0 */
/* The precision in which the built-in model multiplies matrices: mixed precision.
 *
 * Parameters, gradients, the optimiser, biases, activation functions and the loss are float32 in
 * every precision. Under BF16 each operand of a matrix product is rounded to bfloat16 (1 sign, 8
 * exponent and 7 fraction bits), to nearest, ties to even; the product is accumulated in float32
 * and not rounded. A finite value beyond the largest finite bfloat16 becomes that. The float32
 * parameters are the master copy of Micikevicius et al. 2017, "Mixed Precision Training", section
 * 3.1. bfloat16 has the exponents of float32, so the loss needs no scale (section 3.2 is for
 * binary16; Kalamkar et al. 2019, "A Study of BFLOAT16 for Deep Learning Training", section 3).
 *
 * Any thread; no state. */
#ifndef SGP_PRECISION_H
#define SGP_PRECISION_H

#include "sgp/status.h"

enum sgp_precision {
    SGP_PRECISION_FLOAT32,
    SGP_PRECISION_BF16, /* by oneDNN, on a processor with AVX512-BF16 or AMX */
    /* The same operands multiplied as float32: slow, on every processor. For tests and benchmarks;
     * no configuration names it. It differs from BF16 only by the order of the float32
     * additions. */
    SGP_PRECISION_BF16_REFERENCE,
};

/* Those that a configuration may name, in the order of the enumeration. */
#define SGP_PRECISION_WORDS "float32|bf16"

/* Whether products of this precision can run here. BF16 is tried: oneDNN is loaded and multiplies
 * once, a few milliseconds. Returns 0, or SGP_E_CONFIG with *error (may be NULL) filled: what is
 * missing (the processor's instructions, oneDNN in this build, its library, the right to run code
 * that it makes), and what to write instead. -ENOMEM. */
int sgp_precision_check(enum sgp_precision precision, struct sgp_error *error);

#endif
