/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the node for its users (view.h). Thread: the loop thread. */
#ifndef SGPD_INSPECT_H
#define SGPD_INSPECT_H

#include "state.h"

/* Fill in status, peers, history and topology. */
void inspect_offer(struct view_actions *actions);

#endif
