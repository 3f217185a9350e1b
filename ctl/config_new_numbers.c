/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a new configuration, and the rule of a step; see config_new.h. */
#include "config_new.h"

#include <math.h>
#include <string.h>

#define EPOCHS 20u
#define STEPS 1000u /* at least, also of few rows */
#define BATCH 32u
#define HOLDOUT 0.2
#define RATE 0.02       /* of Nesterov's momentum */
#define RATE_ADAM 0.005 /* of columns that are not scaled */
#define DECAY 0.01
#define DECAY_MOST 0.05
#define DECAY_ROWS 10.0 /* divided by the rows of all nodes: the decay of a label of numbers */

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

/* Ridge regression adds the same to the sum of errors however many rows there are, so to their mean
 * it adds the less the more rows there are. Rows of classes need no such measure. */
double ctl_draft_decay(const struct ctl_draft *draft)
{
    const struct ctl_given *shards = &draft->given[NEW_SHARDS];
    const bool own = !shards->given || strcmp(shards->value, "none") == 0;
    const uint32_t sites = own && draft->topology ? sgp_topology_trainers(draft->topology) : 1;
    const double rows = (double)draft->rows.description->rows * (1 - draft->holdout) * sites;
    return ctl_rows_classify(&draft->rows) ? DECAY
                                           : fmin(fmax(DECAY_ROWS / rows, DECAY), DECAY_MOST);
}
