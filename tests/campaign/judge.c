/* SPDX-License-Identifier: Apache-2.0 */
/* The run of a campaign, and what must hold whatever happened in it.
 *
 * Safety is the simulator's own: mass, exactly once, credits, buffers, weight floors, after every event.
 * Liveness is judged here: everybody who stays has finished, in time, owing nothing, and of one mind. */
#include "campaign.h"

#include "core/core.h"
#include "sim/world.h"

#include "sgp/guard.h"

#include <math.h>
#include <stdio.h>

/* Whether a node should be there when the fleet is done. */
static bool stays(const struct campaign *campaign, uint32_t node, sgp_time end)
{
    const struct sgp_sim_options *options = &campaign->options;
    for (uint32_t i = 0; i < options->absence_count; i++)
        if (options->absences[i].node == node && options->absences[i].to == SGP_TIME_NEVER)
            return false;
    for (uint32_t i = 0; i < options->crash_count; i++)
        if (options->crashes[i].node == node && options->crashes[i].back > end)
            return false;
    bool ends = false;
    for (uint32_t i = 0; i < campaign->command_count; i++) {
        const struct campaign_command *command = &campaign->commands[i];
        bool for_good = command->type == SGP_EVENT_STOP || command->type == SGP_EVENT_LEAVE;
        ends |= command->node == node && for_good;
    }
    return !ends || campaign->whole; /* of a whole fleet, it is started again */
}

/* Those who stay have all finished. One who drained, and is not started again before the others have, is
 * forgiven. So is one whose neighbours have left, or missed the reload that named it. */
static int judge_ends(const struct campaign *campaign, const struct sgp_sim *sim, sgp_time end,
    struct sgp_error *error)
{
    for (uint32_t i = 0; i < campaign->topology->node_count; i++) {
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(sim, i), &status);
        bool cut_off = !campaign->whole && sgp_sim_is_cut_off(sim, i);
        if (stays(campaign, i, end) && status.state != SGP_NODE_FINISHED && !cut_off)
            return sgp_fail(error, SGP_E_STATE, "%s ends %s in round %lld, not finished",
                campaign->topology->nodes[i].name, sgp_node_state_name(status.state),
                (long long)status.round);
        static float estimate[CAMPAIGN_VALUES_MAX];
        sgp_sim_estimate(sim, i, estimate);
        for (uint32_t c = 0; c < campaign->options.dimension && status.weight_estimate > 0; c++)
            if (!isfinite(estimate[c]))
                return sgp_fail(error, SGP_E_STATE, "%s ends with a model that is not finite",
                    campaign->topology->nodes[i].name);
    }
    return 0;
}

/* How far two values of neighbours that agree may be apart. A liar that gives multiples of its model makes models long. */
static float apart_at_most(const float *model, uint32_t count)
{
    double squares = 0;
    for (uint32_t c = 0; c < count; c++)
        squares += (double)model[c] * (double)model[c];
    return fmaxf(CAMPAIGN_AGREED, (float)(SGP_AGREED * sqrt(squares)));
}

/* Finished means agreed: neighbours that both are there at the end hold one model, or say that they do not. */
static int judge_agreement(
    const struct campaign *campaign, const struct sgp_sim *sim, struct sgp_error *error)
{
    for (uint32_t i = 0; i < campaign->topology->node_count; i++) {
        const struct sgp_node *node = sgp_sim_node(sim, i);
        struct sgp_node_status status;
        sgp_node_status(node, &status);
        if (status.state != SGP_NODE_FINISHED || sgp_node_disagreeing(node) > 0 ||
            !(status.weight_estimate > 0))
            continue;
        for (uint32_t k = 0; k < sgp_node_link_count(node); k++) {
            struct sgp_peer_status peer;
            struct sgp_node_status theirs;
            static float own[CAMPAIGN_VALUES_MAX], other[CAMPAIGN_VALUES_MAX];
            sgp_node_link_status(node, k, &peer);
            sgp_node_status(sgp_sim_node(sim, peer.peer), &theirs);
            if (peer.state != SGP_LINK_UP ||
                sgp_node_disagreeing(sgp_sim_node(sim, peer.peer)) > 0 ||
                theirs.state != SGP_NODE_FINISHED || !(theirs.weight_estimate > 0))
                continue;
            sgp_sim_estimate(sim, i, own);
            sgp_sim_estimate(sim, peer.peer, other);
            const float most = apart_at_most(own, (uint32_t)campaign->options.dimension);
            for (uint32_t c = 0; c < campaign->options.dimension; c++)
                if (!isfinite(most) || !(fabsf(own[c] - other[c]) <= most))
                    return sgp_fail(error, SGP_E_STATE,
                        "%s and %s have finished, and their models differ by %.3g",
                        campaign->topology->nodes[i].name,
                        campaign->topology->nodes[peer.peer].name,
                        (double)fabsf(own[c] - other[c]));
        }
    }
    return 0;
}

/* One whose sources have gone for good, or have other files, agrees with nobody: only the bound of all mixing ends that. */
static double mixing_rounds(const struct campaign *campaign)
{
    sgp_round cycle = campaign->topology->rounds_per_cycle;
    if (campaign->apart && campaign->other->rounds_per_cycle > cycle)
        cycle = campaign->other->rounds_per_cycle;
    bool guarded = campaign->options.guard > 0; /* which slows mixing down */
    bool agrees = campaign->whole && !campaign->apart && !guarded;
    return agrees ? (double)campaign->mixing_rounds : (double)(SGP_MIXING_CYCLES_MAX * cycle);
}

/* The work that may be left when the last fault ends, one thing after another, with grace. */
static sgp_time latest_end(const struct campaign *campaign)
{
    const struct sgp_sim_options *options = &campaign->options;
    double turns = (double)options->rounds;
    if (campaign->topology->owner != SGP_NODE_NONE && !sgp_method_waits(options->method))
        turns *= campaign->topology->node_count; /* the last of them may do what is left of all */
    double training = turns * (double)campaign->longest;
    double shares = 4.0 * (double)options->dimension * campaign->targets_most;
    double bytes = 64.0 * SGP_SIM_MESSAGE_BYTES + shares;
    double transfer = options->bandwidth > 0 ? bytes / options->bandwidth * (double)SGP_SECOND : 0;
    double cycle = campaign->exact ? (double)campaign->topology->rounds_per_cycle : 1;
    double rounds = mixing_rounds(campaign) + turns * cycle;
    double exchange = rounds * (8 * (double)options->latency_ns + transfer);
    return 2 * campaign->window + (sgp_time)(training + exchange) + CAMPAIGN_GRACE_NS;
}

/* In every round: what the cores keep of their links is what looking at all of them finds. */
static void check_link_indices(void *context, const struct sgp_sim_row *row)
{
    struct campaign *campaign = context;
    (void)row;
    for (uint32_t i = 0; i < campaign->topology->node_count; i++)
        if (!sgp_core_is_indexed(sgp_sim_node(campaign->sim, i)))
            campaign->misfiled = i;
}

/* Whether it can be told: a liar loses weight, somebody who left took accounts along, and of what passed between
 * two that were put back neither knows. Where files differ a node that was put back may never meet those who know. */
static bool is_weight_known(const struct campaign *campaign)
{
    const struct sgp_sim_options *options = &campaign->options;
    const struct sgp_sim_crash *restored = NULL;
    if (options->liar_count > 0 && options->liars->lie == SGP_SIM_LIE_WEIGHTLESS)
        return false;
    for (uint32_t i = 0; i < options->crash_count; i++) {
        const struct sgp_sim_crash *crash = &options->crashes[i];
        if (crash->forgets || (crash->saved > 0 && campaign->apart) ||
            (crash->saved > 0 && restored && restored->node != crash->node))
            return false;
        restored = crash->saved > 0 ? crash : restored;
    }
    for (uint32_t i = 0; i < campaign->command_count; i++)
        if (campaign->commands[i].type == SGP_EVENT_LEAVE)
            return false;
    return true;
}

/* All weight is there; where a ledger was put back it is off by no more than its node says, each time. */
static int judge_weight(
    const struct campaign *campaign, const struct sgp_sim_summary *summary, struct sgp_error *error)
{
    double nodes = 0;
    for (uint32_t i = 0; i < campaign->topology->node_count; i++)
        nodes += sgp_topology_starts(campaign->topology, i);
    double told = summary->weight_unknown * (double)summary->restored;
    if (is_weight_known(campaign) &&
        !(fabs(summary->weight - nodes) <= SGP_SIM_MASS_SLACK * nodes + told))
        return sgp_fail(error, SGP_E_STATE,
            "the weight is %.17g in the end; known to be off: %.17g", summary->weight, told);
    return 0;
}

/* To a guard, a group that holds another model looks as liars do. So the groups stay apart, and say so (docs/rules/guard.md).
 * Each node then agrees with most of its sources, and its bound is a multiple of the usual distance to these. */
static bool is_split_by_guards(const struct campaign *campaign, const struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < campaign->topology->node_count; i++) {
        const struct sgp_guard *guard = sim->hosts[i].performer.guard;
        static float own[CAMPAIGN_VALUES_MAX];
        sgp_sim_estimate(sim, i, own);
        const float most = apart_at_most(own, (uint32_t)campaign->options.dimension);
        if (guard == NULL || !(sgp_guard_bound(guard) <= guard->multiple * (double)most))
            return false;
    }
    return true;
}

/* The run of a fleet that has such a node ends when nothing happens any more. */
static bool has_cut_off(const struct campaign *campaign, const struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < campaign->topology->node_count; i++)
        if (sgp_sim_is_cut_off(sim, i))
            return true;
    return false;
}

static int judge(const struct campaign *campaign, const struct sgp_sim *sim,
    const struct sgp_sim_summary *summary, struct sgp_error *error)
{
    int status = judge_ends(campaign, sim, summary->time, error);
    if (status == 0)
        status = judge_agreement(campaign, sim, error);
    if (status < 0)
        return status;
    if (campaign->misfiled != SGP_SLOT_NONE)
        return sgp_fail(error, SGP_E_STATE, "%s overlooked one of its links",
            campaign->topology->nodes[campaign->misfiled].name);
    bool lies = campaign->options.liar_count > 0;
    if (summary->outsized > 0 && !lies)
        return sgp_fail(error, SGP_E_STATE, "%llu payloads of honest nodes are out of proportion",
            (unsigned long long)summary->outsized);
    bool hostile = campaign->plant && campaign->plant->harmless;
    if (summary->broken > 0 && !hostile)
        return sgp_fail(error, SGP_E_STATE, "honest nodes broke the protocol on %llu connections",
            (unsigned long long)summary->broken);
    if (summary->time > latest_end(campaign) && !has_cut_off(campaign, sim))
        return sgp_fail(error, SGP_E_STATE, "the fleet ends at %.6g s, later than %.6g s",
            (double)summary->time * 1e-9, (double)latest_end(campaign) * 1e-9);
    if (!campaign->whole)
        return 0;
    if (fabs(summary->weight_in_flight) > SGP_SIM_MASS_SLACK)
        return sgp_fail(
            error, SGP_E_STATE, "weight %.17g is owed in the end", summary->weight_in_flight);
    status = judge_weight(campaign, summary, error);
    if (status < 0)
        return status;
    bool agrees = campaign->recovers && !campaign->apart && !lies &&
                  campaign->options.patience_ns == 0; /* else some end apart */
    if (agrees && !(summary->disagreement <= CAMPAIGN_DISAGREEMENT_MAX) &&
        !is_split_by_guards(campaign, sim))
        return sgp_fail(error, SGP_E_STATE, "estimates end %.6g apart, more than %g",
            summary->disagreement, CAMPAIGN_DISAGREEMENT_MAX);
    return 0;
}

int campaign_run(
    struct campaign *campaign, struct sgp_error *error, struct sgp_sim_summary *ret_summary)
{
    struct sgp_sim *sim;
    campaign->options.row = check_link_indices;
    int status = sgp_sim_create(campaign->topology, &campaign->options, error, &sim);
    if (status < 0)
        return status;
    campaign->sim = sim;
    campaign->misfiled = SGP_SLOT_NONE;
    if (campaign->plant)
        campaign->plant->put(campaign->plant, sim);
    for (uint32_t i = 0; i < campaign->command_count && status == 0; i++) {
        const struct campaign_command *command = &campaign->commands[i];
        status = sgp_sim_command(sim, command->time, command->node, command->type);
    }
    if (status == 0)
        status = sgp_sim_run(sim, SGP_TIME_NEVER, error);
    sgp_sim_summary(sim, ret_summary);
    if (status == 0)
        status = judge(campaign, sim, ret_summary, error);
    sgp_sim_destroy(sim);
    return status;
}
