/* SPDX-License-Identifier: Apache-2.0 */
/* The total weight of the fleet: how a node detects that a member created or lost weight, and heals
 * that.
 *
 * A member can state a weight in a share that does not belong to its x. One neighbour alone cannot
 * prove that, but all members together can. If each of them has more than its part of the maximum
 * of all weight, round after round, then the total is too great. If each of them has less than its
 * least weight, then weight is lost. So each share states a count. It is the number of rounds for
 * which its source has been so, and every node of which the source has heard. A node's own count is
 * the least that it hears, plus one. A node that has other weight says 0. So does a node with a
 * neighbour that is absent or has another topology file. A count above `window` has been around the
 * fleet.
 *
 * Then the node scales x and w by one factor, which leaves the estimate x / w unchanged. After an
 * excess it keeps its weight within its part of the bound for a time. It acts as a sink for its
 * neighbours' excess, so one such node heals all. Lost weight is restored once for each count that
 * has been around the fleet: the node's own weight rises to its least weight.
 *
 * The rule: docs/rules/mass.md */
#include "core/core.h"

#include <math.h>

/* cycles for which a stated count is valid, and multiple of the time for a count to go around */
#define WINDOWS 4
#define CALM 16    /* windows without scaling after which the total is correct */
#define SPECK 1e-6 /* relative to the node's weight; less is not worth a pass over x */

/* Where the file alone determines the weight of a node, stated weights do not count. */
static bool is_named(const struct sgp_node *node)
{
    return !node->role->counts_steps && !node->role->collective && !node->exact.begun &&
           !node->leaving.wanted;
}

/* The node's part of the maximum: its own maximum by the file, raised by the same ratio as the
 * slack raises the total. */
static double part_of_most(const struct sgp_node *node)
{
    double of_file = fmax(node->config.weight_most, 1);
    return of_file * sgp_core_weight_most(node) / node->config.topology->node_count;
}

/* The part of its weight that a node has when a round begins. At its own pace it has just given the
 * rest away. A node that chooses its targets received about as much as it gave. */
static double kept(const struct sgp_node *node)
{
    bool has_given = sgp_core_at_own_pace(node) && !sgp_method_chooses(node->config.method);
    return has_given ? node->total.kept : 1;
}

/* The greatest age of a stated count. A source states it once in each cycle of the file, or a few
 * times more rarely at another pace. */
static sgp_round recent(const struct sgp_node *node)
{
    return WINDOWS * (sgp_round)node->config.topology->rounds_per_cycle;
}

/* The time after which news of each member has arrived. The news takes fewer hops than there are
 * members, and each hop is recent. So if one member has other weight, no node reaches this
 * count. */
static sgp_round window(const struct sgp_node *node)
{
    return (sgp_round)node->config.topology->node_count * recent(node);
}

/* ---- scaling ---- */

/* The error of the total is not known any more, but it is at most all the weight that there can
 * be. */
static void book(struct sgp_node *node, double amount)
{
    double room = sgp_core_weight_most(node) - node->mass.unknown;
    if (room > 0)
        sgp_mass_doubt(node, fmin(fabs(amount), room));
}

/* Set the weight of x to `weight`. */
static void scale_to(struct sgp_node *node, double weight)
{
    double amount = weight - node->mass.weight;
    if (!(node->mass.weight > 0) || !(fabs(amount) > SPECK * node->mass.weight))
        return;
    sgp_core_scale(node, weight / node->mass.weight, sgp_core_all(node));
    sgp_mass_set(node, weight);
    book(node, amount);
    node->unrecorded = true;
    node->total.calm_from = node->round;
    struct sgp_noted *note =
        sgp_core_note(node, amount < 0 ? SGP_NOTE_EXCESS : SGP_NOTE_LACK, node->config.self);
    note->amount = fabs(amount);
    note->first = node->now >= node->total.quiet_until;
    if (note->first)
        node->total.quiet_until = node->now + SGP_QUIET_NS;
}

void sgp_core_shed(struct sgp_node *node)
{
    double own = node->mass.weight + sgp_core_held(node) + sgp_core_in_flight(node);
    double over = own - sgp_core_weight_most(node);
    if (!(over > 0) || !is_named(node))
        return;
    if (!node->total.excess)
        node->total.calm_from = node->round;
    node->total.excess = true;
    if (over < node->mass.weight)
        scale_to(node, node->mass.weight - over);
}

/* ---- detection ---- */

void sgp_core_total_hears(struct sgp_node *node, struct sgp_core_link *link)
{
    link->news.round = node->round;
    link->news.heavy = link->receiving.incoming.heavy;
    link->news.light = link->receiving.incoming.light;
}

static sgp_round least_of(sgp_round a, sgp_round b)
{
    return a < b ? a : b;
}

/* With another file the peer may have unknown neighbours, or lack members that this node counts. */
static bool has_same_file(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->greeting.topology == node->config.fingerprint.topology;
}

/* The counts of this round. They are valid if all neighbours are active, have the same file, and
 * stated their counts recently. Otherwise a member with other weight may not have been heard of. */
static void hear_all(struct sgp_node *node, sgp_round *heavy, sgp_round *light)
{
    bool complete = node->layout.link_count > node->layout.out_count;
    for (uint32_t i = 0; i < node->layout.link_count && complete; i++) {
        const struct sgp_core_link *link = &node->layout.links[i];
        if (link->retired)
            continue;
        sgp_round since = node->round - link->news.round;
        bool in = link->direction == SGP_IN;
        complete = sgp_core_peer_active(link) && has_same_file(node, link) &&
                   (!in || (link->news.round != SGP_ROUND_NONE && since <= recent(node)));
        *heavy = in ? least_of(*heavy, link->news.heavy + since) : *heavy;
        *light = in ? least_of(*light, link->news.light + since) : *light;
    }
    if (!complete)
        *heavy = *light = 0;
}

/* Whether the mass that a node gives in one round is in its target's weight when the target begins
 * the next round. */
static bool absorbs_at_once(const struct sgp_node *node)
{
    return sgp_method_in_order(node->config.method) && node->config.backup_neighbours == 0 &&
           node->config.patience == 0;
}

/* Whether weight that this node gave or received is in no node's weight when all begin this round.
 * Mass that it gave earlier over an edge of the file is in its target's weight by then. Mass that
 * arrived for this round is still counted by its source. */
static bool hides_weight(const struct sgp_node *node)
{
    bool hides = sgp_core_debts(node) > 0;
    SGP_EACH_OF (link, node, SGP_SET_OWING)
        hides = hides || (link->retired && link->owed[0].exists && link->owed[0].share.weight > 0);
    for (uint32_t i = 0; i < node->layout.receive_count; i++) {
        const struct sgp_receive *receive = &node->layout.receives[i];
        hides = hides || (receive->state == SGP_RECEIVE_HELD && receive->share.weight > 0 &&
                             receive->share.round < node->round);
    }
    return hides;
}

/* Whether the node has so little that weight is lost if that holds for all members. By the file, a
 * node never begins a round with less than its least weight. If a share may be in no node's weight
 * for longer, a node has too little when it starves and none of its shares is in transit. */
static bool is_light(const struct sgp_node *node)
{
    if (absorbs_at_once(node))
        return node->mass.weight < (1 - SPECK) * node->config.weight_least && !hides_weight(node);
    return node->giving.nothing && sgp_core_held(node) <= 0 && sgp_core_in_flight(node) <= 0;
}

/* Weight that no other node counts at that time. If shares are absorbed in the order of rounds, the
 * weights with which nodes begin a round add up. Otherwise, mass that a node gives may be in
 * another node's weight before that node begins its round. */
static double own_alone(const struct sgp_node *node)
{
    return sgp_method_in_order(node->config.method) ? node->mass.weight
                                                    : fmin(node->mass.weight, node->total.left);
}

static void count_round(struct sgp_node *node)
{
    bool heavy = own_alone(node) > (1 + SPECK) * part_of_most(node);
    bool light = is_light(node);
    sgp_round heavy_for = heavy ? node->total.heavy + 1 : 0;
    sgp_round light_for = light ? node->total.light + 1 : 0;
    if (heavy || light)
        hear_all(node, &heavy_for, &light_for);
    node->total.heavy = heavy_for;
    node->total.light = light_for;
    node->total.counted = node->round;
}

/* ---- at the start of each round ---- */

static void heal(struct sgp_node *node)
{
    double most = part_of_most(node) * kept(node);
    if (node->total.excess && node->mass.weight > most)
        scale_to(node, most);
    else if (node->round - node->total.calm_from > CALM * window(node))
        node->total.excess = false;
}

/* Called once for each count that has been around the fleet. If the weight falls below the least
 * later, a neighbour may have it. Then no weight is lost, and none must be created. */
static void make_good(struct sgp_node *node)
{
    double least = node->config.weight_least * kept(node);
    node->total.light = 0;
    if (node->mass.weight < least)
        scale_to(node, least);
}

void sgp_core_keep_total(struct sgp_node *node)
{
    if (node->round == node->total.counted)
        return;
    if (!is_named(node)) {
        node->total.heavy = node->total.light = 0;
        node->total.excess = false;
        return;
    }
    bool healed = node->total.excess;
    count_round(node);
    node->total.excess = node->total.excess || node->total.heavy > window(node);
    if (!healed)
        node->total.calm_from = node->round;
    if (node->total.excess)
        heal(node);
    if (node->total.light > window(node))
        make_good(node);
}
