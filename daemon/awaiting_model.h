/* SPDX-License-Identifier: Apache-2.0 */
/* Without a model, a node does not know the length of a vector. Therefore it does not listen for
 * neighbours yet. */
#ifndef SGPD_AWAITING_MODEL_H
#define SGPD_AWAITING_MODEL_H

#include "attach/attach_socket.h"
#include "util/log.h"
#include "setup/prepare.h"

/* Wait for a program whose model the node can take: layout, finite values, memory. Other programs
 * are refused in one line. Returns 0 with *ret_attachment, the model in *prepared and the control
 * socket (control_keep); 1 if told to stop; or negative with *error. */
int awaiting_model_wait(const struct config *config, struct prepared *prepared, struct log *log,
    struct attachment *ret_attachment, int *ret_socket, struct sgp_error *error);

#endif
