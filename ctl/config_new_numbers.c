/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a new configuration, and the rule of a step; see config_new.h. */
#include "config_new.h"

#include <math.h>

#define EPOCHS 20u
#define STEPS 1000u /* at least, also of few rows */
#define BATCH 32u
#define HOLDOUT 0.2
#define RATE 0.02       /* of Nesterov's momentum */
#define RATE_ADAM 0.005 /* of columns that are not scaled */

enum ctl_exit ctl_draft_take_numbers(struct ctl_draft *draft)
{
    struct ctl *ctl = draft->ctl;
    const struct ctl_given *given = draft->given;
    draft->batch = BATCH;
    draft->holdout = HOLDOUT;
    enum ctl_exit status = ctl_option_u64(ctl, &given[NEW_BATCH], 1, 1000000, &draft->batch);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[NEW_RATE], 1e-12, 1e6, &draft->rate);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[NEW_HOLDOUT], 0, 0.9, &draft->holdout);
    return status;
}

uint64_t ctl_draft_epochs(const struct ctl_draft *draft, double rows)
{
    const double steps = ceil(rows / (double)draft->batch);
    const double least = ceil(STEPS / (steps > 0 ? steps : 1));
    return least > EPOCHS ? (uint64_t)least : EPOCHS;
}

/* Momentum is linear in the gradients, so nodes with unlike rows come to the model of all rows.
 * Adam divides each node's by their own size, and does not; but it learns from columns of any
 * size. */
void ctl_draft_choose_rule(struct ctl_draft *draft, bool scaled)
{
    draft->scaled = scaled;
    if (!draft->given[NEW_RATE].given)
        draft->rate = draft->scaled ? RATE : RATE_ADAM;
}
