/* SPDX-License-Identifier: Apache-2.0 */
/* The job ABSORB of a performer (sgp/perform.h): x += fraction * share, as far as the guard admits
 * it (sgp/guard.h). */
#ifndef SGP_ABSORB_H
#define SGP_ABSORB_H

#include "sgp/perform.h"

/* Begin the job: set the place of the share, whether it was folded, and what it is compared with.
 * Thread: the loop thread. */
void sgp_absorb_begin(
    struct sgp_performer *performer, const struct sgp_effect *effect, struct sgp_work *work);

/* Run the job. Thread: that of sgp_perform_run. */
void sgp_absorb_run(const struct sgp_performer *performer, struct sgp_work *work);

#endif
