/* SPDX-License-Identifier: Apache-2.0 */
/* The state that survives the process, and a node made from it. A step marks a change of that state
 * (`unrecorded`), and the performer stores the record before it sends anything.
 *
 * The rule: docs/rules/restart.md */
#include "core/record.h"

#include "core/core.h"

#include <math.h>

/* An end that was ordered before the first step counts, too. A relay has no end of its own, and
 * records the end that it has heard. */
static sgp_round recorded_rounds(const struct sgp_node *node)
{
    if (sgp_core_is_relay(node))
        return node->fleet.ends > 0 ? node->fleet.ends : SGP_ROUND_NONE;
    if (node->config.open)
        return 0;
    return node->config.rounds > 0 ? node->config.rounds : SGP_ROUND_NONE;
}

void sgp_node_record(const struct sgp_node *node, struct sgp_record *record)
{
    sgp_assert(record->link_capacity >= node->layout.link_count);
    record->incarnation = node->config.incarnation;
    record->round = node->round;
    record->trained = node->trained;
    record->gave = node->gave;
    record->weight = node->mass.weight + sgp_core_held(node);
    record->surplus = node->mass.surplus;
    record->rounds = recorded_rounds(node);
    record->stop = node->fleet.stop;
    record->mixes = node->ending.mixes;
    record->covered = node->mass.covered;
    record->unknown = node->mass.unknown;
    record->turns = sgp_core_turn(node, node->round);
    record->epoch = node->exact.epoch;
    bool due = sgp_core_epoch_is_below(&node->exact.epoch, &node->exact.heard);
    /* otherwise the cycle would not be renewed */
    record->epoch.topology = due ? 0 : node->config.topology->digest;
    if (!sgp_core_uses_epochs(node) && node->exact.heard.number == 0)
        record->epoch.start = SGP_ROUND_NONE;
    record->leaving = node->leaving.wanted;
    record->left = node->leaving.left;
    record->account_count = 0;
    for (uint32_t i = 0; i < node->accounts.count; i++) {
        if (node->accounts.entries[i].stager != SGP_SLOT_NONE)
            continue;
        sgp_assert(record->account_count < record->account_capacity);
        record->accounts[record->account_count++] = node->accounts.entries[i].account;
    }
    record->link_count = node->layout.link_count;
    for (uint32_t i = 0; i < node->layout.link_count; i++) {
        const struct sgp_core_link *link = &node->layout.links[i];
        bool out = link->direction == SGP_OUT;
        const struct sgp_owed *owed = &link->owed[link->owed[1].exists];
        /* of two shares the last, because both are settled together */
        bool owes = out && owed->exists;
        record->links[i] = (struct sgp_record_link){
            .peer = link->peer,
            .out = out,
            .incarnation = link->memory.incarnation,
            .number = out ? link->memory.number : link->memory.accepted,
            .acknowledged = link->memory.acknowledged,
            .former_incarnation = out ? 0 : link->memory.former_incarnation,
            .former_number = out ? 0 : link->memory.former_accepted,
            .owes = owes,
            .owed_round = owes ? owed->share.round : 0,
            .owed_fraction = owes ? owed->share.fraction : 0,
            .owed_weight = owes ? owed->share.weight : 0,
            .owed_kept = owes && owed->slot != SGP_SLOT_NONE,
            .owed_slot = owes ? owed->slot : SGP_SLOT_NONE,
            .owed_bequest = owes ? owed->share.bequest : 0,
            .owed_compressor = owes ? owed->share.compressor : SGP_COMPRESSOR_NONE,
            .owed_incarnation = owes && link->inquiry.disputed != 0 ? link->inquiry.disputed : 0,
        };
    }
}

bool sgp_node_record_changed(const struct sgp_node *node)
{
    return node->unrecorded;
}

/* ---- schema of a record ---- */

/* The most that a fleet of the greatest size can have. The present number of nodes in the file is
 * no bound. The fleet may have shrunk, and bequests may not be dissolved yet. */
#define WEIGHT_MAX (4u * SGP_NODES_MAX)
#define LABEL_MAX (SGP_ROUND_MAX - 1)

#define RECORD(member, ...) SGP_FIELD(struct sgp_record, #member, member, __VA_ARGS__)
static const struct sgp_schema_field record_fields[] = {
    RECORD(incarnation, 1, UINT64_MAX),
    RECORD(round, 0, LABEL_MAX),
    RECORD(trained, SGP_SCHEMA_ANY),
    RECORD(gave, SGP_SCHEMA_ANY),
    RECORD(weight, 0, WEIGHT_MAX),
    RECORD(surplus, 0, SGP_NODES_MAX),
    RECORD(rounds, SGP_ROUND_NONE, LABEL_MAX),
    RECORD(stop, SGP_ROUND_NONE, LABEL_MAX),
    RECORD(mixes, 0, LABEL_MAX),
    RECORD(covered, 0, SGP_NODES_MAX),
    RECORD(unknown, 0, UINT64_MAX),
    RECORD(turns, 0, LABEL_MAX),
    RECORD(epoch.number, SGP_SCHEMA_ANY),
    RECORD(epoch.start, SGP_ROUND_NONE, LABEL_MAX),
    RECORD(epoch.topology, SGP_SCHEMA_ANY),
    RECORD(leaving, SGP_SCHEMA_ANY),
    RECORD(left, SGP_SCHEMA_ANY),
    RECORD(link_count, SGP_SCHEMA_ANY),
    RECORD(account_count, 0, SGP_ACCOUNTS_MAX),
};
const struct sgp_schema sgp_record_schema = SGP_SCHEMA(struct sgp_record, record_fields);

#define LINK(member, ...) SGP_FIELD(struct sgp_record_link, #member, member, __VA_ARGS__)
static const struct sgp_schema_field link_fields[] = {
    LINK(peer, SGP_SCHEMA_ANY),
    LINK(out, SGP_SCHEMA_ANY),
    LINK(incarnation, SGP_SCHEMA_ANY),
    LINK(number, SGP_SCHEMA_ANY),
    LINK(acknowledged, SGP_SCHEMA_ANY),
    LINK(former_incarnation, SGP_SCHEMA_ANY),
    LINK(former_number, SGP_SCHEMA_ANY),
    LINK(owes, SGP_SCHEMA_ANY),
    LINK(owed_round, 0, LABEL_MAX),
    LINK(owed_fraction, 0, 1),
    LINK(owed_weight, 0, WEIGHT_MAX),
    LINK(owed_kept, SGP_SCHEMA_ANY),
    LINK(owed_slot, SGP_SCHEMA_ANY),
    LINK(owed_bequest, 0, SGP_NODES_MAX),
    LINK(owed_compressor, SGP_COMPRESSOR_NONE, SGP_COMPRESSOR_MOST),
    LINK(owed_incarnation, SGP_SCHEMA_ANY),
};
const struct sgp_schema sgp_record_link_schema = SGP_SCHEMA(struct sgp_record_link, link_fields);

#define ACCOUNT(member, ...) SGP_FIELD(struct sgp_account, #member, member, __VA_ARGS__)
static const struct sgp_schema_field account_fields[] = {
    ACCOUNT(kind, SGP_ACCOUNT_ACCEPTED, SGP_ACCOUNT_DEBT),
    ACCOUNT(source, SGP_SCHEMA_ANY),
    ACCOUNT(target, SGP_SCHEMA_ANY),
    ACCOUNT(source_incarnation, 1, UINT64_MAX),
    ACCOUNT(target_incarnation, 1, UINT64_MAX),
    ACCOUNT(number, SGP_SCHEMA_ANY),
    ACCOUNT(weight, 0, WEIGHT_MAX),
};
const struct sgp_schema sgp_account_schema = SGP_SCHEMA(struct sgp_account, account_fields);

/* ---- checks of a file's content ---- */

static bool link_is_sound(const struct sgp_record_link *link, uint32_t node_count)
{
    bool owed =
        link->out && link->number > 0 && (link->owed_incarnation == 0 || link->owed_bequest > 0);
    bool nothing = link->owed_round == 0 && link->owed_fraction == 0 && link->owed_weight == 0 &&
                   link->owed_bequest == 0 && link->owed_incarnation == 0 &&
                   link->owed_compressor == SGP_COMPRESSOR_NONE;
    return sgp_schema_holds(&sgp_record_link_schema, link) && link->peer < node_count &&
           (link->owes ? owed : nothing);
}

static bool account_is_sound(const struct sgp_account *account)
{
    return sgp_schema_holds(&sgp_account_schema, account) &&
           (account->kind == SGP_ACCOUNT_DEBT ? account->number > 0 : account->weight == 0);
}

bool sgp_record_is_sound(const struct sgp_record *record, uint32_t node_count)
{
    if (!sgp_schema_holds(&sgp_record_schema, record) || record->turns > record->round ||
        record->covered > record->surplus || (record->left && !record->leaving) ||
        record->link_count > record->link_capacity ||
        record->account_count > record->account_capacity)
        return false;
    for (uint32_t i = 0; i < record->account_count; i++)
        if (!account_is_sound(&record->accounts[i]))
            return false;
    for (uint32_t i = 0; i < record->link_count; i++) {
        const struct sgp_record_link *link = &record->links[i];
        if (!link_is_sound(link, node_count))
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (record->links[j].peer == link->peer && record->links[j].out == link->out)
                return false;
    }
    return true;
}

/* ---- restoring a node ---- */

static void restore_link(struct sgp_node *node, const struct sgp_record_link *from)
{
    struct sgp_core_link *link = sgp_core_find(node, from->peer, from->out ? SGP_OUT : SGP_IN);
    link->memory.incarnation = from->incarnation;
    link->memory.recorded = true;
    /* if the peer is joining too, it catches up by itself */
    link->greeting.trained = from->number > 0;
    if (!from->out) {
        link->memory.accepted = from->number;
        link->memory.brought = from->number > 0;
        link->memory.former_incarnation = from->former_incarnation;
        link->memory.former_accepted = from->former_number;
        return;
    }
    link->memory.number = from->number;
    link->memory.acknowledged = from->acknowledged;
    link->inquiry.disputed = from->owed_incarnation;
    link->owed[0] = (struct sgp_owed){
        .exists = from->owes,
        .lost = true,
        .slot = from->owed_kept ? from->owed_slot : SGP_SLOT_NONE,
        .share = {.number = from->number,
            .round = from->owed_round,
            .fraction = from->owed_fraction,
            .weight = from->owed_weight,
            .slice = sgp_core_values(node, link),
            .bequest = from->owed_bequest,
            .coding = sgp_coding_of(from->owed_compressor),
            .compressor = from->owed_compressor},
    };
    if (from->owes)
        sgp_mass_post(node, SGP_MASS_OWE_STILL, from->owed_weight);
    if (!from->owed_kept)
        return;
    sgp_assert(from->owes && from->owed_slot < node->layout.snapshot_count);
    node->layout.snapshot_users[from->owed_slot]++;
}

void sgp_core_restore(struct sgp_node *node, const struct sgp_record *record)
{
    node->past.recorded = true;
    sgp_core_set_round(node, record->round);
    node->turns.round = record->round;
    node->turns.count = record->turns;
    bool used_epochs = record->epoch.start != SGP_ROUND_NONE;
    node->exact.epoch = node->exact.heard = (struct sgp_epoch){
        .number = record->epoch.number, .start = used_epochs ? record->epoch.start : 0};
    if (node->config.open && record->rounds != 0) { /* the node had reached its end */
        node->config.open = false;
        node->config.rounds = record->rounds > 0 ? record->rounds : 0;
    }
    node->fleet.ends = sgp_core_own_end(node);
    node->past.another_file = record->epoch.topology != node->config.topology->digest;
    if ((node->past.another_file && used_epochs) || record->epoch.number > 0)
        sgp_core_expect_epochs(node);
    if (sgp_core_is_relay(node) && !node->past.another_file && record->rounds > 0)
        node->fleet.ends = record->rounds;
    node->trained = record->trained;
    node->gave = record->gave;
    node->past.weight = record->weight;
    const struct sgp_topology *topology = node->config.topology;
    sgp_mass_set(node, node->role->weight_by_file ? sgp_topology_starts(topology, node->config.self)
                                                  : record->weight);
    node->token.of_record = node->role->unique && record->weight > 0;
    sgp_mass_set_members(node, record->surplus, record->covered);
    /* otherwise the user has configured another end */
    if (record->rounds == recorded_rounds(node)) {
        node->fleet.stop = record->stop;
        node->ending.mixes = record->mixes;
    }
    sgp_mass_doubt(node, record->unknown);
    sgp_mass_know_members(node,
        fmin(ceil(record->weight), node->config.topology->node_count + ceil(record->surplus)));
    node->leaving.wanted = record->leaving;
    node->leaving.left = record->left;
    for (uint32_t i = 0; i < record->link_count; i++)
        restore_link(node, &record->links[i]);
    sgp_core_restore_accounts(node, record);
}
