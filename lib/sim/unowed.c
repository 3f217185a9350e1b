/* SPDX-License-Identifier: Apache-2.0 */
/* Shares that no node owes any more. Several may be on one link: one for each incarnation of the
 * target to which the source owed a share. */
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>

static struct sgp_sim_unowed *find(struct sgp_sim *sim, const struct sgp_sim_unowed *share)
{
    for (size_t i = 0; i < sim->unowed_count; i++) {
        struct sgp_sim_unowed *other = &sim->unowed[i];
        if (other->in == share->in && other->number == share->number &&
            other->source_incarnation == share->source_incarnation)
            return other;
    }
    return NULL;
}

void sgp_sim_unowe(struct sgp_sim *sim, const struct sgp_sim_unowed *share)
{
    if (find(sim, share))
        return;
    size_t bytes = (sim->unowed_count + 1) * sizeof *sim->unowed;
    struct sgp_sim_unowed *more = realloc(sim->unowed, bytes);
    if (!more) {
        sgp_sim_fail(sim, -ENOMEM, "%s", sgp_strerror(-ENOMEM));
        return;
    }
    sim->unowed = more;
    sim->unowed[sim->unowed_count++] = *share;
}

bool sgp_sim_take_unowed(struct sgp_sim *sim, const struct sgp_sim_link *in, uint64_t number)
{
    struct sgp_sim_unowed share = {in, number, sim->hosts[in->peer].incarnation};
    struct sgp_sim_unowed *found = find(sim, &share);
    if (!found)
        return false;
    *found = sim->unowed[--sim->unowed_count];
    return true;
}

void sgp_sim_forget_unowed(struct sgp_sim *sim)
{
    free(sim->unowed);
}
