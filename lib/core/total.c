/* SPDX-License-Identifier: Apache-2.0 */
/* The total weight of the fleet: how a node finds out that a member has made weight or lost it, and heals that.
 *
 * A member can name another weight in a share than belongs to its x, and one neighbour alone cannot prove that. All members
 * together can. If each of them has more than its part of all the weight that there can be, round after round, then there is too
 * much in total. If each of them has less than its least weight, then weight is lost. So each share says for how many rounds its
 * source, and everybody of whom the source has heard, has been so: the least that is heard, and one, is the next node's own count. A
 * node that has other weight, or a neighbour that is away or has another topology file, says 0. A count above `window` has been
 * around the fleet.
 *
 * Then the node scales x and w by one factor, which leaves the estimate x / w as it is. As long as there was too much of late, it keeps
 * its weight within its part of the bound: a sink for its neighbours' excess, so that one such node heals all. What is lost it makes
 * good once for each count that has been around: its own weight rises to the least.
 * The rule: docs/rules/mass.md */
#include "core/core.h"

#include <math.h>

#define WINDOWS                                                                                    \
    4 /* cycles that what a source said counts for, and as many times a count has been around */
#define CALM 16    /* windows without anything to scale: the total is as it should be */
#define SPECK 1e-6 /* of the node's weight: less is not worth a pass over x */

/* Where the weight of a node follows from the file alone nothing that is named counts. */
static bool is_named(const struct sgp_node *node)
{
    return !node->role->counts_steps && !node->role->collective && !node->exact.begun &&
           !node->leaving.wanted;
}

/* The node's part of the most that there can be: of what it has at most by the file, as much more as the slack is of all. */
static double part_of_most(const struct sgp_node *node)
{
    double of_file = fmax(node->config.weight_most, 1);
    return of_file * sgp_core_weight_most(node) / node->config.topology->node_count;
}

/* What of its weight a node has when a round begins. At its own pace it has just given, and the rest is elsewhere, unless it chooses:
 * then it was given about as much. */
static double kept(const struct sgp_node *node)
{
    bool has_given = sgp_core_at_own_pace(node) && !sgp_method_chooses(node->config.method);
    return has_given ? node->total.kept : 1;
}

/* How old what a source said may be: it speaks once in each cycle of the file, or a few times as rarely at another pace. */
static sgp_round recent(const struct sgp_node *node)
{
    return WINDOWS * (sgp_round)node->config.topology->rounds_per_cycle;
}

/* News of each member has come here by then: it takes fewer hops than there are members, each of them recent. So of a member that
 * has other weight no node counts so far. */
static sgp_round window(const struct sgp_node *node)
{
    return (sgp_round)node->config.topology->node_count * recent(node);
}

/* ---- scaling ---- */

/* How far the total is off is not known any more, but not by more than all that there can be. */
static void book(struct sgp_node *node, double amount)
{
    double room = sgp_core_weight_most(node) - node->mass.unknown;
    if (room > 0)
        sgp_mass_doubt(node, fmin(fabs(amount), room));
}

/* Bring the weight of x to this. */
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
    double own = node->mass.weight + sgp_core_held(node) + sgp_core_owed(node);
    double over = own - sgp_core_weight_most(node);
    if (!(over > 0) || !is_named(node))
        return;
    if (!node->total.excess)
        node->total.calm_from = node->round;
    node->total.excess = true;
    if (over < node->mass.weight)
        scale_to(node, node->mass.weight - over);
}

/* ---- what shows it ---- */

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

/* By another file it may have unknown neighbours, or lack members that this node counts upon. */
static bool has_same_file(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->greeting.topology == node->config.fingerprint.topology;
}

/* The counts of this round, if all neighbours are active, have the same file, and have said of late
 * what they know. Otherwise a member that has other weight may not have been heard of. */
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

/* Whether what a node gives in one round is in its target's weight when that begins the next. */
static bool absorbs_at_once(const struct sgp_node *node)
{
    return sgp_method_in_order(node->config.method) && node->config.backup_neighbours == 0 &&
           node->config.patience == 0;
}

/* Whether weight that this node has given or taken is in nobody's when all begin this round. What it gave in an earlier one over an
 * edge of the file is in its target's by then, and what came for this one is still in its source's. */
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

/* Whether the node has so little that weight is lost if all members do. By the file a node never begins a round with less than its
 * least weight. Where a share may be in nobody's weight for longer, a node has too little if it starves, and nothing is under way. */
static bool is_light(const struct sgp_node *node)
{
    if (absorbs_at_once(node))
        return node->mass.weight < (1 - SPECK) * node->config.weight_least && !hides_weight(node);
    return node->giving.nothing && sgp_core_held(node) <= 0 && sgp_core_owed(node) <= 0;
}

/* Weight that no other node counts as its own at that time. Where shares are absorbed in the order of rounds, the weights with which
 * nodes begin one round add up. Else what a node gives may be in another's weight before that begins its round. */
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

/* Once for each count that has been around. What comes later of a weight below its least may lie with a neighbour: then nothing is
 * lost, and nothing is to be made. */
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
