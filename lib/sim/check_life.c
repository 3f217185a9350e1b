/* SPDX-License-Identifier: Apache-2.0 */
/* What the invariants expect of a process that dies, and of the process that replaces it. */
#include "sim/world.h"

#include <string.h>

void sgp_sim_check_strike(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    memset(sim->count, 0, 2 * sim->options.dimension * sizeof *sim->count);
    sgp_sim_count_host(sim, host);
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        sim->moved[c] -= sim->count[c];
}

/* Add what the host owes of snapshots that were kept. */
static void begin_kept(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    const struct sgp_record *record = &host->record;
    for (uint32_t i = 0; i < record->link_count && record->incarnation == host->incarnation; i++) {
        const struct sgp_record_link *link = &record->links[i];
        if (!link->owed_kept)
            continue;
        struct sgp_sim_link *out = sgp_sim_link_of(host, host->file->hosts[link->peer], SGP_OUT);
        double fraction = (double)(float)link->owed_fraction;
        out->snapshot = link->owed_slot; /* what returns if its target forgets it */
        out->fraction = fraction;
        out->life = host->life;
        if (sim->links[out->other].accepted >= link->number)
            continue;
        const float *given = sgp_sim_given(host, link->owed_slot);
        host->outstanding[link->owed_slot] += fraction;
        for (uint64_t c = 0; c < sim->options.dimension; c++)
            sim->moved[c] += fraction * (double)given[c];
        sim->summary.kept++;
    }
}

void sgp_sim_check_begin(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        sim->moved[c] += (double)sim->after[c];
    begin_kept(sim, host);
}

void sgp_sim_check_exact(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    if (memcmp(sim->after, host->checkpoint.x, sim->options.dimension * sizeof *sim->after) != 0)
        sgp_sim_fail(sim, SGP_E_STATE, "%s goes on from a checkpoint that is superseded",
            sgp_sim_name(sim, host->index));
}

/* The next process of the target has accepted `accepted` shares, whatever the former one had. If
 * the source does not know of later ones, they are still owed, and will return or be sent again. */
static void accept_instead(struct sgp_sim *sim, struct sgp_sim_link *in, uint64_t accepted)
{
    struct sgp_sim_link *out = &sim->links[in->other];
    struct sgp_sim_host *source = &sim->hosts[in->peer];
    bool was_unseen = sgp_sim_is_unseen(sim, source, out);
    in->accepted = accepted;
    sgp_sim_see_link(sim, source, out);
    bool is_unseen = sgp_sim_is_unseen(sim, source, out);
    if (was_unseen == is_unseen || source->dead || source->life != out->life || sim->apart)
        return; /* its snapshot died with it, or is not counted */
    double fraction = is_unseen ? -out->fraction : out->fraction;
    source->outstanding[out->snapshot] += fraction;
    const float *given = sgp_sim_given(source, out->snapshot);
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        sim->moved[c] += fraction * (double)given[c];
}

static double starts(const struct sgp_sim_host *host)
{
    return sgp_topology_starts(host->file->topology, host->file->nodes[host->index]);
}

/* ---- an heir that has lost a bequest ---- */

/* What a host's core knows of the shares that the target of a link accepted from one incarnation of
 * the source: the number of the last one. 0: the core knows of none. */
static uint64_t known_to(struct sgp_sim *sim, const struct sgp_sim_host *host,
    const struct sgp_sim_link *in, uint64_t source_incarnation, uint64_t target_incarnation)
{
    struct sgp_inquire question = {.source = sgp_sim_name(sim, in->peer),
        .target = sgp_sim_name(sim, sim->links[in->other].peer),
        .source_incarnation = source_incarnation,
        .target_incarnation = target_incarnation};
    struct sgp_answer answer;
    (void)sgp_node_answer(host->node, &question, &answer);
    return answer.known ? answer.number : 0;
}

/* The same for the source's present incarnation. The target accepted the share in its present
 * incarnation, or in the incarnation in which it left. */
static uint64_t accepted_known_to(
    struct sgp_sim *sim, const struct sgp_sim_host *host, const struct sgp_sim_link *in)
{
    uint64_t source = sim->hosts[in->peer].incarnation;
    uint64_t target = sim->hosts[sim->links[in->other].peer].incarnation;
    uint64_t present = known_to(sim, host, in, source, target);
    uint64_t before = known_to(sim, host, in, source, in->before_incarnation);
    return present > before ? present : before;
}

/* The leaver still owes its bequest, and answers again for what its core knows. */
static void answer_again(struct sgp_sim *sim, struct sgp_sim_host *leaver)
{
    uint32_t heir = leaver->heir;
    leaver->handed = false;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        const struct sgp_sim_host *target = &sim->hosts[i];
        for (uint32_t j = target->out_count; j < target->link_count && i != heir; j++) {
            struct sgp_sim_link *in = &sim->links[target->link_first + j];
            uint64_t incarnation = sim->hosts[in->peer].incarnation;
            if (in->holder == heir && accepted_known_to(sim, leaver, in) >= in->accepted)
                in->holder = leaver->index;
            if (in->before_holder == heir &&
                known_to(sim, leaver, in, incarnation, in->before_incarnation) >= in->before)
                in->before_holder = leaver->index;
        }
    }
    sgp_sim_see_links(sim, leaver);
}

/* The next process of the target has accepted `accepted` shares. The bequest of the source may not
 * be among them. If it is not acknowledged either, the bequest and all that went with it belong to
 * the source again. */
static void lose_bequest(struct sgp_sim *sim, const struct sgp_sim_link *in, uint64_t accepted)
{
    struct sgp_sim_host *source = &sim->hosts[in->peer];
    const struct sgp_sim_link *out = &sim->links[in->other];
    uint64_t number;
    double owed;
    (void)sgp_sim_link_account(source, out, &number, &owed);
    bool was_left = source->handed && source->heir == out->peer && accepted < source->bequest;
    if (was_left && owed > 0 && number == source->bequest)
        answer_again(sim, source);
}

/* A process that has left answers for what it accepted until it ends. */
static bool answers_still(const struct sgp_sim_host *leaver)
{
    struct sgp_node_status status;
    sgp_node_status(leaver->node, &status);
    return status.left && !leaver->dead && !leaver->drained && !leaver->gone;
}

/* Other hosts have left their accounts to this host. It answers for what its next process knows. If
 * that is less than it was, the leaver answers, as long as it runs. */
static void forget_held(struct sgp_sim *sim, const struct sgp_sim_host *host)
{
    for (uint32_t i = 0; i < sim->host_count; i++) {
        const struct sgp_sim_host *target = &sim->hosts[i];
        for (uint32_t j = target->out_count; j < target->link_count && target != host; j++) {
            struct sgp_sim_link *in = &sim->links[target->link_first + j];
            uint64_t incarnation = sim->hosts[in->peer].incarnation;
            if (in->before_holder == host->index)
                in->before = known_to(sim, host, in, incarnation, in->before_incarnation);
            if (in->holder != host->index)
                continue;
            uint64_t accepted = accepted_known_to(sim, host, in);
            uint64_t former = known_to(sim, host, in, in->former_incarnation, target->incarnation);
            bool knows_all = accepted >= in->accepted && former >= in->former;
            if (!knows_all && answers_still(target)) {
                in->holder = target->index;
                continue;
            }
            accept_instead(sim, in, accepted);
            in->former = former;
        }
    }
}

/* ---- a process that starts ---- */

static bool owes(const struct sgp_node *node, const struct sgp_account *debt)
{
    for (uint32_t i = 0; i < sgp_node_debt_count(node); i++) {
        const struct sgp_account *other = sgp_node_debt(node, i);
        if (other->number == debt->number &&
            other->source_incarnation == debt->source_incarnation &&
            other->target_incarnation == debt->target_incarnation &&
            strcmp(other->source, debt->source) == 0 && strcmp(other->target, debt->target) == 0)
            return true;
    }
    return false;
}

void sgp_sim_check_debts(
    struct sgp_sim *sim, const struct sgp_sim_host *host, const struct sgp_node *next)
{
    for (uint32_t i = 0; i < sgp_node_debt_count(host->node); i++) {
        const struct sgp_account *debt = sgp_node_debt(host->node, i);
        int64_t source = sgp_topology_find(sim->topology, debt->source);
        int64_t target = sgp_topology_find(sim->topology, debt->target);
        if (source < 0 || target < 0 || owes(next, debt))
            continue;
        struct sgp_sim_link *in = sgp_sim_link_of(&sim->hosts[target], (uint32_t)source, SGP_IN);
        sgp_sim_unowe(sim, &(struct sgp_sim_unowed){in, debt->number, debt->source_incarnation});
    }
}

void sgp_sim_check_forget(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    for (uint32_t i = host->out_count; i < host->link_count; i++)
        lose_bequest(sim, &sim->links[host->link_first + i], 0);
    for (uint32_t i = host->out_count; i < host->link_count; i++) {
        struct sgp_sim_link *in = &sim->links[host->link_first + i];
        in->before = in->before_holder == host->index ? 0 : in->before;
        if (in->holder == host->index) {
            accept_instead(sim, in, 0);
            in->former = 0;
        }
    }
    forget_held(sim, host);
    for (uint32_t i = 0; i < host->link_count; i++) {
        struct sgp_sim_link *link = &sim->links[host->link_first + i];
        link->said = 0;
        sgp_sim_add(&sim->weight_unseen, -link->weight_unseen);
        link->weight_unseen = 0;
        link->owed_before = 0; /* it owes nothing, and its numbers start again */
        if (i < host->out_count)
            sim->links[link->other].accepted = sim->links[link->other].former = 0;
    }
    host->handed = false;
    sgp_sim_see_debts(sim, host);
    double weight = starts(host);
    sgp_sim_add(&sim->weight, weight - host->weight);
    sgp_sim_add(&sim->weight_in_flight, -host->weight_in_flight);
    host->weight = weight;
    host->weight_in_flight = 0;
    sim->expected = sgp_sim_weight(sim);
}

/* The number of the last share that the record of a target says it accepted from this
 * incarnation. */
static uint64_t accepted_on_record(
    const struct sgp_sim_host *host, uint32_t source, uint64_t incarnation)
{
    uint32_t peer = host->file->nodes[source];
    for (uint32_t i = 0; i < host->record.link_count; i++) {
        const struct sgp_record_link *link = &host->record.links[i];
        if (link->peer != peer || link->out)
            continue;
        return link->incarnation == incarnation          ? link->number
               : link->former_incarnation == incarnation ? link->former_number
                                                         : 0;
    }
    return 0;
}

/* A target that has started again since the record was saved lacks the share that the record owes
 * it, and all later ones. */
static void owe_before(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    for (uint32_t i = 0; i < host->record.link_count; i++) {
        const struct sgp_record_link *link = &host->record.links[i];
        uint32_t target = host->file->hosts[link->peer];
        if (!link->out || link->incarnation == sim->hosts[target].incarnation)
            continue;
        struct sgp_sim_link *out = sgp_sim_link_of(host, target, SGP_OUT);
        struct sgp_sim_link *in = &sim->links[out->other];
        if (link->owes)
            out->owed_before = link->number;
        if (in->said == 0)
            in->accepted = 0;
    }
}

void sgp_sim_check_restore(struct sgp_sim *sim, struct sgp_sim_host *host, double covered)
{
    double owed;
    owe_before(sim, host);
    for (uint32_t i = host->out_count; i < host->link_count; i++) {
        struct sgp_sim_link *in = &sim->links[host->link_first + i];
        uint64_t incarnation = sim->hosts[in->peer].incarnation;
        uint64_t accepted = accepted_on_record(host, in->peer, incarnation);
        lose_bequest(sim, in, accepted);
        accept_instead(sim, in, accepted);
        in->former = accepted_on_record(host, in->peer, in->former_incarnation);
        (void)sgp_sim_link_account(host, in, &in->said, &owed);
    }
    forget_held(sim, host);
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    sgp_sim_add(&sim->weight, status.weight - host->weight);
    sgp_sim_add(&sim->weight_in_flight, status.weight_in_flight - host->weight_in_flight);
    host->weight = status.weight;
    host->weight_in_flight = status.weight_in_flight;
    sgp_sim_see_links(sim, host);
    sgp_sim_see_debts(sim, host);
    sim->bequeathed += host->record.covered - covered;
    sim->expected = sgp_sim_weight(sim);
}

/* The heir had forgotten what the process accepted that has left, and no process answers for it
 * any more. What its sources still owe it will return. */
static void forget_unheld(struct sgp_sim *sim, const struct sgp_sim_host *host)
{
    double before = sgp_sim_weight(sim);
    for (uint32_t i = host->out_count; i < host->link_count; i++) {
        struct sgp_sim_link *in = &sim->links[host->link_first + i];
        if (in->holder != host->index)
            continue;
        accept_instead(sim, in, 0);
        in->former = 0;
    }
    sim->expected += sgp_sim_weight(sim) - before;
}

/* A source with a ledger from a backup gives its next share a number that the former process had
 * accepted already. The new process has accepted no share. */
static void count_anew(struct sgp_sim *sim, struct sgp_sim_host *host, struct sgp_sim_link *in)
{
    struct sgp_sim_host *source = &sim->hosts[in->peer];
    struct sgp_sim_link *out = &sim->links[in->other];
    uint64_t number;
    double owed;
    if (source->dead)
        return;
    (void)sgp_sim_link_account(source, out, &number, &owed);
    if (number >= in->accepted)
        return;
    if (owed > 0)
        out->owed_before = number;
    in->accepted = 0;
    in->holder = host->index;
}

void sgp_sim_check_rejoin(
    struct sgp_sim *sim, struct sgp_sim_host *host, uint64_t former_incarnation)
{
    forget_unheld(sim, host);
    for (uint32_t i = 0; i < host->link_count; i++) {
        struct sgp_sim_link *link = &sim->links[host->link_first + i];
        link->said = 0;
        link->owed_before = 0; /* it owes nothing, and its numbers start again */
        if (i >= host->out_count) {
            link->before = link->accepted;
            link->before_incarnation = former_incarnation;
            link->before_holder = link->holder;
            count_anew(sim, host, link);
            continue;
        }
        struct sgp_sim_link *in = &sim->links[link->other];
        in->former = in->accepted;
        in->former_incarnation = former_incarnation;
        in->accepted = 0;
    }
    host->handed = false;
    sgp_sim_see_links(sim, host);
    sgp_sim_see_debts(sim, host);
    double weight = starts(host);
    sgp_sim_add(&sim->weight, weight - host->weight);
    sgp_sim_add(&sim->weight_in_flight, -host->weight_in_flight);
    host->weight = weight;
    host->weight_in_flight = 0;
    sim->expected += weight;
}

void sgp_sim_check_unowned(struct sgp_sim_host *host)
{
    struct sgp_sim *sim = host->sim;
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    bool owned = host->file->topology->owner != SGP_NODE_NONE && !sgp_sim_has_token(host);
    if (!owned || sgp_sim_is_owner(host) || status.weight >= host->weight)
        return;
    sgp_sim_add(&sim->weight, status.weight - host->weight);
    host->weight = status.weight;
    sim->expected = sgp_sim_weight(sim);
}
