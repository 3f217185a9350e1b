/* SPDX-License-Identifier: Apache-2.0 */
/* Weight in transit, seen globally: a share that its target has accepted belongs to the target,
 * although the source still owes it until the acknowledgement arrives. */
#include "sim/world.h"

/* The number of the last share that was accepted by the process to which this share is owed. */
static uint64_t accepted_of(
    const struct sgp_sim *sim, const struct sgp_sim_link *out, uint64_t number)
{
    const struct sgp_sim_link *in = &sim->links[out->other];
    return number > 0 && number == out->owed_before ? in->before : in->accepted;
}

void sgp_sim_see_link(struct sgp_sim *sim, struct sgp_sim_host *source, struct sgp_sim_link *out)
{
    uint64_t number;
    double owed;
    (void)sgp_sim_link_account(source, out, &number, &owed);
    bool seen = accepted_of(sim, out, number) < number && !source->handed;
    double unseen = seen ? 0 : owed;
    sgp_sim_add(&sim->weight_unseen, unseen - out->weight_unseen);
    out->weight_unseen = unseen;
}

void sgp_sim_see_links(struct sgp_sim *sim, struct sgp_sim_host *source)
{
    for (uint32_t i = 0; i < source->out_count; i++)
        sgp_sim_see_link(sim, source, &sim->links[source->link_first + i]);
}

bool sgp_sim_is_unseen(
    const struct sgp_sim *sim, struct sgp_sim_host *source, const struct sgp_sim_link *out)
{
    for (uint32_t i = sgp_node_next_owing(source->node, 0); i < sgp_node_link_count(source->node);
         i = sgp_node_next_owing(source->node, i + 1)) {
        struct sgp_peer_status here;
        sgp_node_link_status(source->node, i, &here);
        if (here.owes && sgp_sim_link_of(source, source->file->hosts[here.peer], SGP_OUT) == out)
            return accepted_of(sim, out, here.last_number) >= here.last_number;
    }
    return false;
}

bool sgp_sim_is_paid(struct sgp_sim *sim, const struct sgp_account *debt)
{
    int64_t source = sgp_topology_find(sim->topology, debt->source);
    int64_t target = sgp_topology_find(sim->topology, debt->target);
    if (source < 0 || target < 0)
        return false;
    const struct sgp_sim_link *in = sgp_sim_link_of(&sim->hosts[target], (uint32_t)source, SGP_IN);
    uint64_t incarnation =
        debt->target_incarnation; /* what a host has forgotten counts as not accepted */
    bool here = incarnation == sim->hosts[target].incarnation;
    if (debt->source_incarnation == sim->hosts[source].incarnation)
        return (here                                       ? in->accepted
                   : incarnation == in->before_incarnation ? in->before
                                                           : 0) >= debt->number;
    return here && debt->source_incarnation == in->former_incarnation && in->former >= debt->number;
}

static double unseen_debts(struct sgp_sim *sim, const struct sgp_sim_host *host)
{
    double unseen = 0;
    for (uint32_t i = 0; i < sgp_node_debt_count(host->node); i++) {
        const struct sgp_account *debt = sgp_node_debt(host->node, i);
        unseen += host->handed || sgp_sim_is_paid(sim, debt) ? debt->weight : 0;
    }
    return unseen;
}

void sgp_sim_see_debts(struct sgp_sim *sim, struct sgp_sim_host *changed)
{
    bool indebted = sgp_node_debt_count(changed->node) > 0 || changed->debts_unseen > 0;
    if (indebted != changed->indebted)
        sim->indebted += indebted ? 1u : UINT32_MAX; /* plus or minus one */
    changed->indebted = indebted;
    if (sim->indebted == 0)
        return;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        struct sgp_sim_host *host = &sim->hosts[i];
        if (sgp_node_debt_count(host->node) == 0 && host->debts_unseen <= 0)
            continue;
        double unseen = unseen_debts(sim, host);
        sgp_sim_add(&sim->weight_unseen, unseen - host->debts_unseen);
        host->debts_unseen = unseen;
    }
}

double sgp_sim_count_in_flight(struct sgp_sim *sim, struct sgp_sim_host *source)
{
    double sum = 0;
    for (uint32_t i = sgp_node_next_owing(source->node, 0); i < sgp_node_link_count(source->node);
         i = sgp_node_next_owing(source->node, i + 1)) {
        struct sgp_peer_status here;
        sgp_node_link_status(source->node, i, &here);
        const struct sgp_sim_link *out =
            sgp_sim_link_of(source, source->file->hosts[here.peer], SGP_OUT);
        if (accepted_of(sim, out, here.last_number) < here.last_number && !source->handed)
            sum += here.weight_owed;
    }
    struct sgp_node_status status;
    sgp_node_status(source->node, &status);
    return sum + status.weight_debts - unseen_debts(sim, source);
}
