/* SPDX-License-Identifier: Apache-2.0 */
/* A program's answers to EVALUATE and PREDICT, which the daemon forwards from its users; see struct
 * sgp_answers. On the attachment's thread. */
#ifndef SGP_LIB_ATTACH_ANSWER_H
#define SGP_LIB_ATTACH_ANSWER_H

#include "sgp/attach.h"

/* The flags of HELLO for the questions that are answered. */
uint32_t sgp_answers_flags(const struct sgp_answers *answers);

/* Answer an EVALUATE or a PREDICT for the estimate z. `rows` is the descriptor that arrived with
 * the question, or -1. The caller owns it, and also *ret_outputs, which is -1 if there is none.
 * Failures are reported in the answer. */
void sgp_answer(const struct sgp_answers *answers, const float *z,
    const struct sgp_attach_frame *question, int rows, struct sgp_attach_frame *ret_answer,
    int *ret_outputs);

#endif
