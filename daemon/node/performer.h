/* SPDX-License-Identifier: Apache-2.0 */
/* The effects of the core in the real world. Thread: the loop thread. */
#ifndef SGPD_PERFORMER_H
#define SGPD_PERFORMER_H

#include "state.h"

/* End the running steps after the present one. A program's turn ends after PROGRAM_YIELD_MS. */
void performer_yield(struct daemon *daemon);

extern const struct sgp_driver_ops performer_ops; /* their context is the struct daemon */

#endif
