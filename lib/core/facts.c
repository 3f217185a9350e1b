/* SPDX-License-Identifier: Apache-2.0 */
/* Facts: what follows from the state of a node and its links. Nothing changes here, except that a
 * computed plan is kept. */
#include "core/core.h"

#include <math.h>

/* ---- the node ---- */

enum sgp_node_state sgp_core_state(const struct sgp_node *node)
{
    bool pausable =
        node->state != SGP_NODE_FINISHED && node->state != SGP_NODE_DRAINING && !node->exact.begun;
    return node->paused && pausable ? SGP_NODE_PAUSED : node->state;
}

bool sgp_core_state_is_active(enum sgp_node_state state)
{
    return state == SGP_NODE_JOINING || state == SGP_NODE_TRAINING || state == SGP_NODE_SETTLING;
}

bool sgp_core_active(const struct sgp_node *node)
{
    return sgp_core_state_is_active(sgp_core_state(node));
}

bool sgp_core_at_own_pace(const struct sgp_node *node)
{
    return !sgp_method_waits(node->config.method);
}

bool sgp_core_has_own_buffers(const struct sgp_node *node)
{
    return sgp_method_has_own_buffers(node->config.method);
}

bool sgp_core_grants_all(const struct sgp_node *node)
{
    return sgp_core_has_own_buffers(node) || node->stage == SGP_STAGE_END;
}

/* Shares do not overlap with rounds once the steps are done, because they must arrive before the
 * end. */
sgp_round sgp_core_overlap(const struct sgp_node *node)
{
    bool overdue = sgp_method_overlaps(node->config.method);
    return overdue && node->state == SGP_NODE_TRAINING ? (sgp_round)node->config.overlap : 0;
}

/* Where the next exact cycle begins, if the round is within one. A node with one role has no
 * cycle. */
static sgp_round start_from(const struct sgp_node *node, sgp_round round)
{
    bool some = node->roles[0] != node->roles[1];
    return some ? sgp_topology_start_from(node->config.topology, round) : round;
}

sgp_round sgp_core_train_end(const struct sgp_node *node)
{
    bool early = node->fleet.stop != SGP_ROUND_NONE && node->fleet.stop < node->fleet.ends;
    sgp_round end = early ? node->fleet.stop : node->fleet.ends;
    return start_from(node, end);
}

/* The first round whose exchange mixes all steps that were taken before round `end`, unchanged and
 * together with those of all nodes. It is the round of the last steps, if their result is given
 * there, whole, to every target. */
static sgp_round mixes_from(const struct sgp_node *node, sgp_round end)
{
    const struct sgp_node_config *config = &node->config;
    bool given = !config->method->publishes_first && config->backup_neighbours == 0 &&
                 config->compressor == SGP_COMPRESSOR_NONE;
    return given && end > 0 && !sgp_topology_steps_after(config->topology, end - 1) ? end - 1 : end;
}

/* The end of the mixing after which all models agree by the file, for steps that ended at round
 * `end`. NONE: the file does not say it, or the method mixes in another order than the file. */
static sgp_round agrees_at(const struct sgp_node *node, sgp_round end)
{
    if (sgp_core_at_own_pace(node) || !sgp_method_in_order(node->config.method))
        return SGP_ROUND_NONE;
    if (sgp_core_role_at(node, end)->collective) /* the cycle that ended there gave all the mean */
        return node->config.compressor == SGP_COMPRESSOR_NONE ? end : SGP_ROUND_NONE;
    sgp_round from = mixes_from(node, end);
    sgp_round rounds = sgp_topology_agrees_after(node->config.topology, from);
    return rounds != SGP_ROUND_NONE ? from + rounds : SGP_ROUND_NONE;
}

/* The end of training, as an open node names it whose steps so far end at round `steps`. The next
 * round of each link is promised, which is at most a cycle away, so mixing must not be over before.
 * The mixing after the end may be so long by itself. */
static sgp_round open_end(const struct sgp_node *node, sgp_round steps)
{
    sgp_round cycle = node->config.topology->rounds_per_cycle, end = steps + 2;
    sgp_round agrees = node->config.final_cycles > 0 ? agrees_at(node, end) : SGP_ROUND_NONE;
    return agrees != SGP_ROUND_NONE && agrees > steps + cycle ? end : steps + 1 + cycle;
}

sgp_round sgp_core_open_end(const struct sgp_node *node)
{
    return open_end(node, node->round + (node->trained ? 1 : 0));
}

/* Whether this node has mixed for a cycle when training ends. At its own pace, it may have done so
 * alone. */
static bool has_mixed(const struct sgp_node *node)
{
    sgp_round cycle = node->config.topology->rounds_per_cycle;
    return !node->config.open && !sgp_core_at_own_pace(node) &&
           sgp_core_own_end(node) + cycle <= sgp_core_train_end(node);
}

/* The end of the fleet's steps. An open end was named by the node that took the last of them, so
 * they follow from it (open_end). It may still move until its round. For a node that ended before
 * the others it may also move later, since that node may be rounds ahead of what it has heard. */
static sgp_round steps_end(const struct sgp_node *node)
{
    sgp_round end = sgp_core_train_end(node), named = node->fleet.ends, steps = named - 2;
    if (!node->fleet.endless || node->round < end)
        return end;
    if (open_end(node, steps) != named)
        steps = named - 1 - node->config.topology->rounds_per_cycle;
    return steps < end && steps <= sgp_core_own_end(node) + 1 ? steps : end;
}

/* One past the last round that this node mixes: until models agree by the file, at most for
 * final_cycles. If the file says when, all nodes count from the end of the fleet's steps, so that
 * they name one round. Otherwise a node that has mixed already does not mix again. */
static sgp_round mixes_until(const struct sgp_node *node)
{
    sgp_round end = sgp_core_train_end(node);
    sgp_round most =
        end + (sgp_round)node->config.final_cycles * node->config.topology->rounds_per_cycle;
    if (node->role->one_model)
        return end;
    sgp_round agrees = agrees_at(node, steps_end(node));
    if (agrees == SGP_ROUND_NONE && has_mixed(node))
        return end;
    if (agrees == SGP_ROUND_NONE || agrees > most)
        return most;
    return agrees > end ? agrees : end;
}

/* After that round all compare, and mix on only if models differ. */
sgp_round sgp_core_last(const struct sgp_node *node)
{
    sgp_round last = mixes_until(node);
    bool asked = !node->role->one_model && node->ending.mixes > last;
    return start_from(node, asked ? node->ending.mixes : last);
}

/* Most rounds are of training, and cost nothing more to judge. */
bool sgp_core_is_over(const struct sgp_node *node, sgp_round round)
{
    return round >= sgp_core_train_end(node) && round >= sgp_core_last(node);
}

/* From the end of training on, a node names its own last round. Under another file or configuration
 * its neighbours have other last rounds, and the greatest that is heard counts for all. Before
 * that, an early stop may still bring the last round nearer. */
sgp_round sgp_core_last_named(const struct sgp_node *node)
{
    bool mixes =
        !node->role->one_model && node->fleet.ends > 0 && node->round >= sgp_core_train_end(node);
    return mixes ? sgp_core_last(node) : node->ending.mixes;
}

/* While programs train whose end is open, the end of training moves on in every round. No node has
 * asked for more mixing than follows from it, and the mixing is not over in this round. */
bool sgp_core_last_follows(const struct sgp_node *node)
{
    return node->fleet.endless && node->ending.mixes <= mixes_until(node) &&
           node->round + 1 < sgp_core_last(node);
}

/* Files differ, for example during a reload, so one node's cycle may be longer than another's. Such
 * a node may ask for more mixing than this one would, so a larger value is not a protocol
 * violation. */
sgp_round sgp_core_mixing_end(const struct sgp_node *node)
{
    return node->fleet.ends + 2 * SGP_MIXING_CYCLES_MAX * node->config.topology->rounds_per_cycle;
}

sgp_round sgp_core_far_ahead(const struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    return (sgp_round)topology->node_count + topology->rounds_per_cycle;
}

uint32_t sgp_core_unused(const struct sgp_node *node)
{
    for (uint32_t i = 0; i < node->layout.snapshot_count; i++)
        if (node->layout.snapshot_users[i] == 0)
            return i;
    return SGP_SLOT_NONE;
}

bool sgp_core_computes(const struct sgp_node *node)
{
    return node->stage == SGP_STAGE_TRAIN || node->stage == SGP_STAGE_PUBLISHING;
}

bool sgp_core_chooses(const struct sgp_node *node, sgp_round round)
{
    bool early = node->fleet.stop != SGP_ROUND_NONE && round >= node->fleet.stop;
    return sgp_method_chooses(node->config.method) && round < sgp_core_own_end(node) && !early;
}

/* ---- turns and exact cycles ---- */

bool sgp_core_is_relay(const struct sgp_node *node)
{
    return node->config.topology->nodes[node->config.self].relay;
}

/* For an owner at its own pace, a round is one worker's update. A turn of all workers has as many
 * rounds as there are workers. */
sgp_round sgp_core_rounds_of_turn(const struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    return sgp_core_shares_label(node) ? (sgp_round)sgp_topology_trainers(topology) : 1;
}

sgp_round sgp_core_turn(const struct sgp_node *node, sgp_round round)
{
    const struct sgp_topology *topology = node->config.topology;
    sgp_round rounds =
        sgp_topology_turns(topology, round) - sgp_topology_turns(topology, node->turns.round);
    sgp_round turn = node->turns.count + rounds / sgp_core_rounds_of_turn(node);
    return turn > 0 ? turn : 0; /* an adopted label may precede the file */
}

sgp_round sgp_core_own_end(const struct sgp_node *node)
{
    if (sgp_core_is_relay(node)) /* takes part as long as any node */
        return node->fleet.ends;
    if (node->config.open)
        return sgp_core_open_end(node);
    sgp_round before = sgp_topology_turns(node->config.topology, node->turns.round);
    sgp_round left = node->config.rounds - node->turns.count, each = sgp_core_rounds_of_turn(node);
    left =
        /* below 0: the rounds are over */
        left > SGP_ROUND_MAX / each ? SGP_ROUND_MAX - 1 : left * each;
    return sgp_topology_after_turns(node->config.topology, before + left > 0 ? before + left : 0);
}

bool sgp_core_knows_end(const struct sgp_node *node)
{
    return node->fleet.ends > 0 || !sgp_core_is_relay(node) || node->layout.link_count == 0;
}

const struct sgp_role *sgp_core_role_at(const struct sgp_node *node, sgp_round round)
{
    bool one = node->roles[0] == node->roles[1];
    return node->roles[!one && sgp_topology_is_exact(node->config.topology, round, NULL)];
}

void sgp_core_set_round(struct sgp_node *node, sgp_round round)
{
    node->round = round;
    node->role = sgp_core_role_at(node, round);
}

bool sgp_core_trains_in(const struct sgp_node *node, sgp_round round)
{
    return !sgp_core_is_relay(node) && !sgp_topology_phase(node->config.topology, round)->exchanges;
}

bool sgp_core_uses_epochs(const struct sgp_node *node)
{
    bool begun = node->role->unique && node->exact.heard.number > 0;
    return begun || node->exact.heeds > 0 || sgp_topology_has_exact(node->config.topology);
}

bool sgp_core_compares_epochs(const struct sgp_node *node)
{
    bool own = sgp_topology_has_exact(node->config.topology) || node->role->unique;
    return own && sgp_core_uses_epochs(node);
}

bool sgp_core_epoch_is_below(const struct sgp_epoch *a, const struct sgp_epoch *b)
{
    return a->number != b->number ? a->number < b->number : a->start < b->start;
}

bool sgp_core_is_in_force(const struct sgp_node *node, const struct sgp_epoch *epoch)
{
    return epoch->number == node->exact.epoch.number && epoch->start == node->exact.epoch.start;
}

bool sgp_core_is_current(const struct sgp_node *node, const struct sgp_epoch *epoch)
{
    return sgp_core_is_in_force(node, epoch) || sgp_core_epoch_is_below(&node->exact.heard, epoch);
}

/* ---- an owner and its workers ---- */

/* Which node has the weight. */
bool sgp_core_leads(const struct sgp_node *node)
{
    enum sgp_part part = node->role->part;
    return part == SGP_PART_LEADS || (part == SGP_PART_BY_WEIGHT && node->mass.weight > 0);
}

bool sgp_core_follows(const struct sgp_node *node)
{
    return node->role->part != SGP_PART_NONE && !sgp_core_leads(node);
}

bool sgp_core_shares_label(const struct sgp_node *node)
{
    return node->role->counts_steps && sgp_core_at_own_pace(node);
}

double sgp_core_weight_of_estimate(const struct sgp_node *node)
{
    return node->copy.exists ? 1 : node->mass.weight;
}

bool sgp_core_is_guess(const struct sgp_node *node)
{
    return node->seeking.wants && !node->copy.exists;
}

uint64_t sgp_core_x_digest(const struct sgp_node *node)
{
    bool begins = node->config.one_beginning && node->round == 0;
    bool alone = node->role->part == SGP_PART_NONE && fabs(node->mass.weight - 1) <= 0;
    return begins && alone ? node->config.x_digest : 0;
}

bool sgp_core_has_model(const struct sgp_node *node)
{
    return !node->exact.begun && !sgp_topology_owns_parts(node->config.topology, node->config.self);
}

bool sgp_core_copies_from(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return node->role->gives_updates && node->config.topology->nodes[link->peer].owns;
}

struct sgp_slice sgp_core_values(const struct sgp_node *node, const struct sgp_core_link *link)
{
    const struct sgp_topology *topology = node->config.topology;
    uint32_t self = node->config.self, whose = topology->nodes[self].owns ? self : link->peer;
    if (!topology->nodes[whose].owns)
        return sgp_core_all(node);
    return sgp_topology_owned(topology, whose, node->config.parameters);
}

sgp_round sgp_core_label(const struct sgp_node *node, const struct sgp_core_link *link)
{
    if (!sgp_core_copies_from(node, link))
        return node->round;
    const struct sgp_core_link *in = sgp_core_from(node, link->peer);
    return in != NULL && in->work.copy != SGP_ROUND_NONE ? in->work.copy : node->round;
}

const struct sgp_core_link *sgp_core_asked(const struct sgp_node *node)
{
    SGP_EACH_IN (link, node)
        if (link->question.slot != SGP_SLOT_NONE && !link->question.whole)
            return link;
    return NULL;
}

bool sgp_core_is_weightless(const struct sgp_share *share)
{
    return share->fraction > 0 && share->weight <= 0;
}

bool sgp_core_proves(const struct sgp_node *node)
{
    return node->config.topology->tls == SGP_TLS_REQUIRE;
}

bool sgp_core_says_ended(const struct sgp_node *node)
{
    return node->stage == SGP_STAGE_END && node->ending.fresh &&
           sgp_core_is_over(node, node->round);
}

/* ---- a link ---- */

struct sgp_core_link *sgp_core_find(
    struct sgp_node *node, uint32_t peer, enum sgp_direction direction)
{
    const uint32_t *peers = node->layout.link_index.peers;
    uint32_t low = direction == SGP_OUT ? 0 : node->layout.out_count;
    uint32_t end = direction == SGP_OUT ? node->layout.out_count : node->layout.link_count;
    uint32_t high = end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (peers[middle] < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && peers[low] == peer ? &node->layout.links[low] : NULL;
}

const struct sgp_core_link *sgp_core_from(const struct sgp_node *node, uint32_t peer)
{
    return sgp_core_find((struct sgp_node *)(uintptr_t)node, peer, SGP_IN);
}

/* A peer that joins for the second time has restarted. A peer that joins far behind is new to the
 * file. Either catches up by itself, and the fleet does not wait for it. */
bool sgp_core_rejoining(const struct sgp_core_link *link)
{
    return link->pulse.state == SGP_NODE_JOINING && link->greeting.trained;
}

bool sgp_core_peer_active(const struct sgp_core_link *link)
{
    return link->liveness.heard != SGP_TIME_NEVER && !link->liveness.absent &&
           sgp_core_state_is_active(link->pulse.state) && !sgp_core_rejoining(link);
}

bool sgp_core_decodes(const struct sgp_core_link *link, enum sgp_coding coding)
{
    return coding == SGP_CODING_NONE || (link->connection.codings & SGP_CODING_BIT(coding)) != 0;
}

bool sgp_core_is_up(const struct sgp_core_link *link)
{
    return link->connection.state == SGP_LINK_UP;
}

bool sgp_core_living(const struct sgp_core_link *link)
{
    enum sgp_node_state state = link->pulse.state;
    return link->connection.state == SGP_LINK_UP && !link->liveness.absent &&
           state != SGP_NODE_JOINING && state != SGP_NODE_DRAINING;
}

/* The greatest round of the neighbours that count, at least `least`. No neighbour can take this
 * node beyond the end of mixing. */
sgp_round sgp_core_furthest(
    const struct sgp_node *node, sgp_round least, bool (*counts)(const struct sgp_core_link *))
{
    sgp_round furthest = least, most = sgp_core_mixing_end(node);
    SGP_EACH_LINK (link, node) {
        sgp_round round = link->pulse.round < most ? link->pulse.round : most;
        if (counts(link) && round > furthest)
            furthest = round;
    }
    return furthest;
}

/* A neighbour with links in both directions counts once, at the greater of its rounds. */
sgp_round sgp_core_followed(
    const struct sgp_node *node, sgp_round least, bool (*counts)(const struct sgp_core_link *))
{
    sgp_round first = SGP_ROUND_NONE, second = SGP_ROUND_NONE, most = sgp_core_mixing_end(node);
    uint32_t whose = SGP_SLOT_NONE;
    SGP_EACH_LINK (link, node) {
        sgp_round round = link->pulse.round < most ? link->pulse.round : most;
        if (!counts(link))
            continue;
        if (link->peer != whose && round > first) {
            second = first;
            whose = link->peer;
        } else if (link->peer != whose && round > second) {
            second = round;
        }
        first = round > first ? round : first;
    }
    bool alone = second == SGP_ROUND_NONE || first <= second + sgp_core_far_ahead(node);
    sgp_round followed = alone ? first : second;
    return followed > least ? followed : least;
}

sgp_round sgp_core_reached(const struct sgp_node *node, sgp_round least)
{
    return node->role->part == SGP_PART_LEADS ? sgp_core_furthest(node, least, sgp_core_is_up)
                                              : sgp_core_followed(node, least, sgp_core_living);
}

sgp_time sgp_core_silence(const struct sgp_core_link *link)
{
    sgp_time longest = link->liveness.longest[0] > link->liveness.longest[1]
                           ? link->liveness.longest[0]
                           : link->liveness.longest[1];
    if (longest > SGP_SILENCE_MAX_NS / SGP_SILENCE_FACTOR)
        return SGP_SILENCE_MAX_NS;
    sgp_time bound = SGP_SILENCE_FACTOR * longest;
    return bound > SGP_SILENCE_MIN_NS ? bound : SGP_SILENCE_MIN_NS;
}

bool sgp_core_is_late(const struct sgp_core_link *link)
{
    return link->patience.overdue || link->patience.trickles;
}

bool sgp_core_is_waited_for(const struct sgp_core_link *link)
{
    return sgp_core_peer_active(link) && !sgp_core_is_late(link);
}

bool sgp_core_may_be_greeted(const struct sgp_node *node)
{
    return node->now - node->stage_since < SGP_SILENCE_MIN_NS;
}

bool sgp_core_others_train(const struct sgp_node *node)
{
    SGP_EACH_IN (link, node) {
        enum sgp_node_state state = link->pulse.state;
        if (sgp_core_is_waited_for(link) &&
            (state == SGP_NODE_TRAINING || state == SGP_NODE_JOINING))
            return true;
    }
    return false;
}

sgp_round sgp_core_round_of_others(const struct sgp_node *node)
{
    return sgp_core_followed(node, node->round, sgp_core_living);
}

/* ---- leaving for good ---- */

bool sgp_core_accumulates(const struct sgp_node *node)
{
    return node->leaving.wanted && node->state != SGP_NODE_DRAINING;
}

bool sgp_core_has_gone(const struct sgp_node *node)
{
    return node->leaving.wanted && node->state == SGP_NODE_DRAINING;
}

static bool is_heir(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return sgp_core_has_gone(node) && !node->leaving.left && node->leaving.heir == link->peer &&
           link->direction == SGP_OUT && !link->owed[0].exists;
}

/* The link that owes the bequest, or NULL. */
struct sgp_core_link *sgp_core_bequest(const struct sgp_node *node)
{
    SGP_EACH_OF (link, node, SGP_SET_OWING)
        if (link->owed[0].exists && link->owed[0].share.bequest > 0)
            return link;
    return NULL;
}

/* Whether the heir may already answer for the share. Then the target is not contacted. */
bool sgp_core_is_pledged(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->direction == SGP_OUT && link->owed[0].exists && link->owed[0].share.bequest <= 0 &&
           sgp_core_has_gone(node) && sgp_core_bequest(node) != NULL;
}

/* ---- shares ---- */

/* Whether a credit of round `granted` covers a share of `round`. A node that has jumped may still
 * hold a credit of an earlier round. If every link has its own buffer, that is harmless. */
bool sgp_core_covers(const struct sgp_node *node, sgp_round granted, sgp_round round)
{
    return granted != SGP_ROUND_NONE && (sgp_core_has_own_buffers(node) || granted == round);
}

/* Whether a credit for promise `old` is valid for `new`. A changed plan voids it at both ends, so
 * that buffers are granted in round order. If every link has its own buffer, only the end of all
 * promises voids it. */
bool sgp_core_credit_holds(const struct sgp_node *node, sgp_round old, sgp_round new)
{
    return new == old || (sgp_core_has_own_buffers(node) && new != SGP_ROUND_NONE);
}

bool sgp_core_may_pass_on(const struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    return node->stage == SGP_STAGE_GATHER && node->state == SGP_NODE_SETTLING && !node->paused &&
           !node->leaving.wanted && sgp_core_at_own_pace(node) &&
           !sgp_method_chooses(node->config.method) && !node->role->counts_steps &&
           !sgp_topology_has_exact(topology);
}

/* The next round of this link according to the file. A node that chooses its targets may choose
 * this one in its next turn. */
sgp_round sgp_core_plan(struct sgp_node *node, struct sgp_core_link *link, sgp_round from)
{
    if (!sgp_core_active(node) || node->role->gives_nothing)
        return SGP_ROUND_NONE;
    if (sgp_core_chooses(node, from))
        return link->retired ? SGP_ROUND_NONE : from;
    bool still_next = link->giving.plan_from != SGP_ROUND_NONE && from >= link->giving.plan_from &&
                      (link->giving.plan == SGP_ROUND_NONE || from <= link->giving.plan);
    if (!still_next) {
        link->giving.plan =
            sgp_topology_next_round(node->config.topology, node->config.self, link->peer, from);
        link->giving.plan_from = from;
    }
    /* A node that passes mass on needs credits until the end. No node awaits a round beyond the
     * end. */
    bool gives = !sgp_core_is_over(node, link->giving.plan) || sgp_core_may_pass_on(node);
    return gives ? link->giving.plan : SGP_ROUND_NONE;
}

/* A share that is owed but not sent comes first. */
sgp_round sgp_core_promise(struct sgp_node *node, struct sgp_core_link *link)
{
    for (uint32_t k = 0; k < 2; k++)
        if (link->owed[k].exists && !link->owed[k].sent)
            return link->owed[k].share.round;
    if (is_heir(node, link))
        return node->leaving.round;
    if (node->role->promise != NULL)
        return node->role->promise(node, link);
    return sgp_core_plan(node, link, node->round + (node->gave ? 1 : 0));
}

/* Whether a credit for round `then` may be granted together with that for a promise. That is so in
 * exact cycles, where the file fixes what follows, and no weight is in transit. */
bool sgp_core_may_follow(const struct sgp_node *node, sgp_round promise, sgp_round then)
{
    return promise != SGP_ROUND_NONE && then > promise && !sgp_core_has_own_buffers(node) &&
           sgp_core_role_at(node, promise)->collective && sgp_core_role_at(node, then)->collective;
}

/* The round after that of the promise, if both credits may be granted together. */
sgp_round sgp_core_promise_then(
    const struct sgp_node *node, const struct sgp_core_link *link, sgp_round promise)
{
    const struct sgp_topology *topology = node->config.topology;
    if (promise == SGP_ROUND_NONE || !sgp_core_role_at(node, promise)->collective)
        return SGP_ROUND_NONE; /* nor searched for */
    sgp_round then = sgp_topology_next_round(topology, node->config.self, link->peer, promise + 1);
    return sgp_core_may_follow(node, promise, then) && !sgp_core_is_over(node, then)
               ? then
               : SGP_ROUND_NONE;
}

sgp_round sgp_core_lacks_buffer(const struct sgp_core_link *link)
{
    for (uint32_t k = 0; k < 2; k++)
        if (link->receiving.promise[k] != SGP_ROUND_NONE &&
            link->receiving.slot[k] == SGP_SLOT_NONE)
            return link->receiving.promise[k];
    return SGP_ROUND_NONE;
}

/* Whether a share may be given while another is in transit. Within an exact cycle one may. */
bool sgp_core_may_owe(const struct sgp_node *node, const struct sgp_core_link *link)
{
    const struct sgp_owed *owed = &link->owed[0];
    return !owed->exists ||
           (node->role->collective && owed->sent && !owed->is_void && !link->owed[1].exists &&
               owed->share.weight <= 0 && owed->share.bequest <= 0);
}

const struct sgp_core_link *sgp_core_missing_of(const struct sgp_node *node, sgp_round round)
{
    uint32_t count;
    const struct sgp_phase *phase = sgp_topology_phase(node->config.topology, round);
    const struct sgp_edge *edges = sgp_phase_in(phase, node->config.self, &count);
    for (uint32_t e = 0; e < count; e++) {
        const struct sgp_core_link *link = sgp_core_from(node, edges[e].source);
        if (link->receiving.latest < round)
            return link;
    }
    return NULL;
}

bool sgp_core_answer_due(struct sgp_node *node, uint32_t peer)
{
    const struct sgp_core_link *back = sgp_core_find(node, peer, SGP_OUT);
    return back != NULL && back->giving.answer_due;
}

bool sgp_core_is_kept(struct sgp_node *node, const struct sgp_receive *receive)
{
    return receive->state == SGP_RECEIVE_HELD && receive->share.asks &&
           sgp_core_answer_due(node, receive->peer);
}

bool sgp_core_folds(const struct sgp_node *node)
{
    return node->folding.pinned != SGP_SLOT_NONE && !node->folding.changed &&
           node->state != SGP_NODE_DRAINING;
}

/* ---- numbers of shares ---- */

bool sgp_core_number_is_sound(uint64_t last, uint64_t number)
{
    return number > last && number <= SGP_NUMBER_MAX && number - last <= SGP_NUMBER_GAP_MAX;
}
