/* SPDX-License-Identifier: Apache-2.0 */
/* A program's answer to what an onlooker asks the daemon; see struct sgp_answers. Thread: the attachment's. */
#ifndef SGP_LIB_ATTACH_ANSWER_H
#define SGP_LIB_ATTACH_ANSWER_H

#include "sgp/attach.h"

/* The flags of HELLO for what is answered. */
uint32_t sgp_answers_flags(const struct sgp_answers *answers);

/* Answer an EVALUATE or a PREDICT of the estimate z. `rows` is the descriptor that came with it, or -1; it stays the
 * caller's, and so becomes *ret_outputs, -1 where there is none. What fails is in the answer. */
void sgp_answer(const struct sgp_answers *answers, const float *z,
    const struct sgp_attach_frame *question, int rows, struct sgp_attach_frame *ret_answer,
    int *ret_outputs);

#endif
