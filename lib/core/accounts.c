/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts: what a node answers for on behalf of others.
 *
 * A node that leaves for good knows two things that its neighbours may still need. The first is
 * what it accepted last from each source. Without it, a share whose acknowledgement was lost would
 * count twice. The second is what it owes to absent targets, which may have accepted it. The leaver
 * tells both to its heir, one account a message, on the connection on which the bequest follows.
 * The heir stages these accounts. They are in force from the step on in which it accepts the
 * bequest. Accounts for which the leaver itself answered are handed over in the same way.
 *
 * A debt is weight in transit. If the target accepted the share, the weight is the target's,
 * otherwise it is this node's (inquiry.c).
 *
 * The rule: docs/rules/inquiry.md */
#include "core/core.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define INHERITED_MAX (SGP_ACCOUNTS_MAX - 64u) /* the remaining places are for disputes */
#define OLD_MAX 64u                            /* old accounts that one bequest may replace */

/* ---- the table ---- */

static bool in_force(const struct sgp_core_account *entry)
{
    return entry->stager == SGP_SLOT_NONE;
}

static bool is_debt(const struct sgp_core_account *entry)
{
    return entry->account.kind == SGP_ACCOUNT_DEBT;
}

double sgp_core_staged_debts(const struct sgp_node *node, uint32_t stager)
{
    double sum = 0;
    for (uint32_t i = 0; i < node->accounts.count; i++)
        if (node->accounts.entries[i].stager == stager && is_debt(&node->accounts.entries[i]))
            sum += node->accounts.entries[i].account.weight;
    return sum;
}

uint32_t sgp_node_debt_count(const struct sgp_node *node)
{
    return node->accounts.debts;
}

const struct sgp_account *sgp_node_debt(const struct sgp_node *node, uint32_t index)
{
    for (uint32_t i = 0; i < node->accounts.count; i++)
        if (sgp_core_is_debt(&node->accounts.entries[i]) && index-- == 0)
            return &node->accounts.entries[i].account;
    sgp_assert_failed("there are so many debts", __FILE__, __LINE__);
}

static void drop(struct sgp_node *node, uint32_t index)
{
    struct sgp_core_account *entry = &node->accounts.entries[index];
    if (entry->slot != SGP_SLOT_NONE)
        node->layout.snapshot_users[entry->slot]--;
    node->accounts.debts -= sgp_core_is_debt(entry);
    node->accounts.staged -= !in_force(entry);
    node->unrecorded = node->unrecorded || in_force(entry);
    node->accounts.count--; /* keeps the order, in which the oldest comes first */
    memmove(entry, entry + 1, (node->accounts.count - index) * sizeof *entry);
}

void sgp_core_end_debt(struct sgp_node *node, uint32_t index, enum sgp_posting end)
{
    struct sgp_core_account *entry = &node->accounts.entries[index];
    double weight = entry->account.weight;
    if (end == SGP_MASS_RETURN_DEBT && node->role->collective)
        end = SGP_MASS_VOID_DEBT; /* in an exact cycle only the file gives weight */
    if (end == SGP_MASS_RETURN_DEBT) {
        uint32_t slot = entry->slot;
        entry->slot = SGP_SLOT_NONE;
        sgp_core_restore_share(node, slot,
            &(struct sgp_share){.fraction = entry->fraction,
                .compressor = entry->compressor,
                .weight = weight,
                .slice = sgp_core_all(node)});
    }
    drop(node, index);
    sgp_mass_post(node, end, weight);
}

/* All nodes begin again with the weight of the file. A debt that the heir may have received with a
 * bequest stays. */
void sgp_core_void_debts(struct sgp_node *node)
{
    if (sgp_core_has_gone(node) && sgp_core_bequest(node) != NULL)
        return;
    for (uint32_t i = node->accounts.count; node->accounts.debts > 0 && i-- > 0;)
        if (sgp_core_is_debt(&node->accounts.entries[i]))
            sgp_core_end_debt(node, i, SGP_MASS_VOID_DEBT);
    node->inquiry.whom = SGP_SLOT_NONE; /* a reload may give its index to another node */
}

/* If the topology file has the name, its string, which outlives the account. It has the name
 * wherever there was a link. */
static const char *lasting(const struct sgp_node *node, const char *name)
{
    int64_t index = sgp_topology_find(node->config.topology, name);
    return index >= 0 ? node->config.topology->nodes[index].name : name;
}

static void note_dispute(
    struct sgp_node *node, const struct sgp_core_account *entry, uint32_t peer, uint32_t slot)
{
    const struct sgp_account *account = &entry->account;
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_DISPUTED, peer);
    note->slot = slot;
    note->fraction = entry->fraction;
    note->question = (struct sgp_inquire){.source = lasting(node, account->source),
        .target = lasting(node, account->target),
        .source_incarnation = account->source_incarnation,
        .target_incarnation = account->target_incarnation,
        .number = account->number};
}

/* Rounds need the snapshots more than debts do. */
bool sgp_core_let_go(struct sgp_node *node)
{
    for (uint32_t i = 0; node->accounts.debts > 0 && i < node->accounts.count; i++) {
        struct sgp_core_account *entry = &node->accounts.entries[i];
        if (entry->slot == SGP_SLOT_NONE || node->layout.snapshot_users[entry->slot] > 1)
            continue;
        int64_t peer = sgp_topology_find(node->config.topology, entry->account.target);
        note_dispute(node, entry, peer >= 0 ? (uint32_t)peer : SGP_SLOT_NONE, entry->slot);
        node->layout.snapshot_users[entry->slot]--;
        entry->slot = SGP_SLOT_NONE;
        return true;
    }
    return false;
}

/* ---- room ---- */

static uint32_t count_in_force(const struct sgp_node *node)
{
    return node->accounts.count - node->accounts.staged;
}

/* An account of nodes that the file no longer names is hardly ever asked about. */
static bool may_give_way(const struct sgp_node *node, const struct sgp_core_account *entry)
{
    return in_force(entry) && !is_debt(entry) &&
           (sgp_topology_find(node->config.topology, entry->account.source) < 0 ||
               sgp_topology_find(node->config.topology, entry->account.target) < 0);
}

/* Whether this number of accounts of one bequest can be in force. They may take free places except
 * those for disputes, and those of a few old accounts. Staged accounts displace nothing. The old
 * accounts give way only when the bequest has arrived. */
static bool has_room(const struct sgp_node *node, uint32_t count)
{
    uint32_t old = 0, total = count_in_force(node) + count;
    for (uint32_t i = 0; total > INHERITED_MAX + old && old < OLD_MAX && i < node->accounts.count;
         i++)
        old += may_give_way(node, &node->accounts.entries[i]);
    return total <= INHERITED_MAX + old;
}

/* Drop the oldest accounts that may give way, until `count` more fit among `most`. */
static void make_room(struct sgp_node *node, uint32_t count, uint32_t most)
{
    for (uint32_t i = 0; i < node->accounts.count && count_in_force(node) + count > most;)
        if (may_give_way(node, &node->accounts.entries[i]))
            drop(node, i);
        else
            i++;
}

/* Add one entry, all zero. There must be room. */
static struct sgp_core_account *add(struct sgp_node *node, uint32_t stager)
{
    sgp_assert(node->accounts.count < SGP_CORE_ACCOUNTS_MAX);
    struct sgp_core_account *entry = &node->accounts.entries[node->accounts.count++];
    *entry = (struct sgp_core_account){.stager = stager, .slot = SGP_SLOT_NONE};
    node->accounts.staged += !in_force(entry);
    return entry;
}

/* ---- what this node knows ---- */

bool sgp_node_accepted(const struct sgp_node *node, const char *source, uint64_t incarnation,
    uint64_t number, bool *ret_open, uint64_t *ret_accepted)
{
    *ret_open = false;
    SGP_EACH_IN (link, node) {
        if (strcmp(node->config.topology->nodes[link->peer].name, source) != 0)
            continue;
        if (link->memory.former_incarnation == incarnation) {
            *ret_accepted = link->memory.former_accepted;
            return true;
        }
        /* a share sent before the connection ended may still arrive */
        *ret_open = link->memory.incarnation == incarnation && link->connection.id != 0 &&
                    number > link->memory.accepted;
        *ret_accepted = link->memory.accepted;
        return link->memory.incarnation == incarnation || link->memory.incarnation == 0;
    }
    return false;
}

bool sgp_node_answer(
    const struct sgp_node *node, const struct sgp_inquire *question, struct sgp_answer *ret_answer)
{
    const char *name = node->config.topology->nodes[node->config.self].name;
    bool self = strcmp(name, question->target) == 0, open = false;
    *ret_answer = (struct sgp_answer){.known = false};
    if (self && question->target_incarnation == node->config.incarnation) {
        ret_answer->incarnation =
            node->config.incarnation; /* unknown nodes need not learn the incarnation */
        ret_answer->known = sgp_node_accepted(node, question->source, question->source_incarnation,
            question->number, &open, &ret_answer->number);
        return !open;
    }
    for (uint32_t i = 0; i < node->accounts.count; i++) {
        const struct sgp_core_account *entry = &node->accounts.entries[i];
        const struct sgp_account *account = &entry->account;
        if (!in_force(entry) || is_debt(entry) ||
            account->source_incarnation != question->source_incarnation ||
            account->target_incarnation != question->target_incarnation ||
            strcmp(account->source, question->source) != 0 ||
            strcmp(account->target, question->target) != 0)
            continue;
        ret_answer->known = true;
        ret_answer->number = account->number;
    }
    /* the heir has its accounts now, and may have been asked before */
    return ret_answer->known || !node->leaving.left;
}

/* ---- the heir ---- */

static bool is_sound(const struct sgp_bequeath *bequeath)
{
    bool incarnations = bequeath->source_incarnation != 0 && bequeath->target_incarnation != 0;
    bool weight = isfinite(bequeath->weight) && bequeath->weight >= 0;
    if (bequeath->kind == SGP_BEQUEATH_TOLD || bequeath->kind == SGP_BEQUEATH_UNKNOWN)
        return weight && bequeath->weight <= SGP_NODES_MAX;
    return incarnations &&
           (bequeath->kind == SGP_BEQUEATH_ACCEPTED ||
               (weight && bequeath->weight <= 4.0 * SGP_NODES_MAX && bequeath->number > 0));
}

/* No node may take more than half of the remaining places for staged accounts. A node that has gone
 * answers for no other node, because its heir now has all its accounts. */
static bool may_stage(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return !sgp_core_has_gone(node) &&
           link->bequest.staged + 1 <= SGP_CORE_STAGED_MAX - node->accounts.staged &&
           has_room(node, link->bequest.staged + 1);
}

bool sgp_core_has_places(struct sgp_node *node, uint32_t stager)
{
    return has_room(node, sgp_core_find(node, stager, SGP_IN)->bequest.staged);
}

struct sgp_verdict sgp_core_stage(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_bequeath *bequeath)
{
    if (!is_sound(bequeath))
        return sgp_hangs_up(SGP_E_PROTOCOL, SGP_REASON_RANGE);
    struct sgp_core_account *entry = may_stage(node, link) ? add(node, link->peer) : NULL;
    if (entry != NULL) {
        bool debt = bequeath->kind == SGP_BEQUEATH_DEBT;
        link->bequest.staged++;
        entry->told = bequeath->kind == SGP_BEQUEATH_TOLD ? bequeath->weight : 0;
        entry->unknown = bequeath->kind == SGP_BEQUEATH_UNKNOWN ? bequeath->weight : 0;
        entry->account = (struct sgp_account){
            .kind = debt ? SGP_ACCOUNT_DEBT : SGP_ACCOUNT_ACCEPTED,
            .source_incarnation = bequeath->source_incarnation,
            .target_incarnation = bequeath->target_incarnation,
            .number = bequeath->number,
            .weight = debt ? bequeath->weight : 0,
        };
        (void)snprintf(entry->account.source, SGP_NAME_BYTES, "%s", bequeath->source);
        (void)snprintf(entry->account.target, SGP_NAME_BYTES, "%s", bequeath->target);
        entry->search.next = node->now;
    }
    struct sgp_message *message = sgp_core_send(node, link, SGP_ANSWER);
    message->answer = (struct sgp_answer){.known = entry != NULL, .number = link->bequest.staged};
    return sgp_fine();
}

/* The connection of the staged accounts has ended. The leaver sends them again, or chooses another
 * heir. */
void sgp_core_unstage(struct sgp_node *node, struct sgp_core_link *link)
{
    for (uint32_t i = node->accounts.count; link->bequest.staged > 0 && i-- > 0;)
        if (node->accounts.entries[i].stager == link->peer && link->direction == SGP_IN)
            drop(node, i);
    link->bequest.staged = 0;
}

/* The bequest is accepted, and with it all accounts that preceded it. */
static void enforce(struct sgp_node *node, struct sgp_core_link *link)
{
    make_room(node, link->bequest.staged, INHERITED_MAX);
    for (uint32_t i = node->accounts.count; link->bequest.staged > 0 && i-- > 0;) {
        struct sgp_core_account *entry = &node->accounts.entries[i];
        if (entry->stager != link->peer)
            continue;
        if (entry->told > 0 || entry->unknown > 0) {
            sgp_mass_inherit(node, entry->told, 0);
            sgp_mass_doubt(node, entry->unknown);
            drop(node, i);
            continue;
        }
        entry->stager = SGP_SLOT_NONE;
        node->accounts.staged--;
        node->accounts.debts += is_debt(entry);
        sgp_mass_post(node, SGP_MASS_TAKE_DEBT, entry->account.weight);
    }
    link->bequest.staged = 0;
}

void sgp_core_inherit(struct sgp_node *node, struct sgp_core_link *link)
{
    const struct sgp_share *share = &link->receiving.incoming;
    sgp_mass_inherit(node, share->bequest, fmin(share->bequest, share->weight));
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_INHERITED, link->peer);
    note->link.direction = link->direction;
    note->amount = link->receiving.incoming.weight;
    enforce(node, link);
}

/* ---- the leaver ---- */

static void take_account(const struct sgp_core_account *entry, struct sgp_bequeath *ret_item)
{
    const struct sgp_account *account = &entry->account;
    *ret_item =
        (struct sgp_bequeath){.kind = is_debt(entry) ? SGP_BEQUEATH_DEBT : SGP_BEQUEATH_ACCEPTED,
            .source = account->source,
            .target = account->target,
            .source_incarnation = account->source_incarnation,
            .target_incarnation = account->target_incarnation,
            .number = account->number,
            .weight = account->weight};
}

/* Either the share that a link owes, or the last accepted number of its source or of the former
 * incarnation. False: there is nothing to tell. */
static bool take_link(const struct sgp_node *node, const struct sgp_core_link *link, bool former,
    struct sgp_bequeath *ret_item)
{
    const struct sgp_topology_node *nodes = node->config.topology->nodes;
    const char *self = nodes[node->config.self].name, *peer = nodes[link->peer].name;
    if (link->direction == SGP_IN) {
        *ret_item = (struct sgp_bequeath){.kind = SGP_BEQUEATH_ACCEPTED,
            .source = peer,
            .target = self,
            .source_incarnation =
                former ? link->memory.former_incarnation : link->memory.incarnation,
            .target_incarnation = node->config.incarnation,
            .number = former ? link->memory.former_accepted : link->memory.accepted};
        return ret_item->source_incarnation != 0;
    }
    *ret_item = (struct sgp_bequeath){.kind = SGP_BEQUEATH_DEBT,
        .source = self,
        .target = peer,
        .source_incarnation = node->config.incarnation,
        .target_incarnation = link->memory.incarnation,
        .number = link->owed[0].share.number,
        .weight = link->owed[0].share.weight};
    return !former && link->memory.incarnation != 0 && sgp_core_is_pledged(node, link);
}

/* What is not an account: members whose mass never arrived, or the bound for the error of the
 * total. */
static bool take_rest(
    const struct sgp_node *node, enum sgp_bequeath_kind kind, struct sgp_bequeath *ret_item)
{
    bool told = kind == SGP_BEQUEATH_TOLD;
    const char *name = node->config.topology->nodes[node->config.self].name;
    *ret_item = (struct sgp_bequeath){.kind = kind,
        .source = name,
        .target = name,
        .source_incarnation = node->config.incarnation,
        .target_incarnation = node->config.incarnation,
        .weight = told ? node->mass.surplus - node->mass.covered
                       : fmin(node->mass.unknown, SGP_NODES_MAX)};
    return ret_item->weight > 0;
}

/* The first item that the heir was not told on this connection, and its mark. NULL: none. */
static uint64_t *next_item(
    struct sgp_node *node, uint64_t connection, struct sgp_bequeath *ret_item)
{
    for (uint32_t i = 0; i < node->accounts.count; i++) {
        struct sgp_core_account *entry = &node->accounts.entries[i];
        if (entry->told_on == connection || !in_force(entry))
            continue;
        take_account(entry, ret_item);
        return &entry->told_on;
    }
    for (uint32_t i = 0; i < 2 * node->layout.link_count; i++) {
        struct sgp_core_link *link = &node->layout.links[i / 2];
        uint64_t *mark = &link->bequest.told_on[i % 2];
        if (*mark != connection && take_link(node, link, i % 2 == 1, ret_item))
            return mark;
    }
    static const enum sgp_bequeath_kind rest[] = {SGP_BEQUEATH_TOLD, SGP_BEQUEATH_UNKNOWN};
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t *mark = &node->leaving.told_on[i];
        if (*mark != connection && take_rest(node, rest[i], ret_item))
            return mark;
    }
    return NULL;
}

bool sgp_core_has_handed(struct sgp_node *node, const struct sgp_core_link *heir)
{
    struct sgp_bequeath item;
    return heir->bequest.staged == heir->bequest.handed &&
           next_item(node, heir->connection.id, &item) == NULL;
}

/* Send the heir as many accounts as may be in transit. */
void sgp_core_hand_accounts(struct sgp_node *node)
{
    struct sgp_core_link *heir = sgp_core_has_gone(node) ? sgp_core_bequest(node) : NULL;
    if (heir == NULL || heir->connection.state != SGP_LINK_UP || heir->owed[0].sent ||
        heir->inquiry.disputed != 0)
        return;
    struct sgp_bequeath item;
    uint64_t *mark;
    while (heir->bequest.handed - heir->bequest.staged < SGP_CORE_WINDOW &&
           (mark = next_item(node, heir->connection.id, &item)) != NULL) {
        *mark = heir->connection.id;
        heir->bequest.handed++;
        struct sgp_message *message = sgp_core_send(node, heir, SGP_BEQUEATH);
        message->bequeath = item;
    }
}

/* An heir without room gets no bequest. It may say so for each account in transit. */
struct sgp_verdict sgp_core_staged(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_answer *answer)
{
    if (link->bequest.declined)
        return sgp_fine();
    bool ours = sgp_core_bequest(node) == link && !link->owed[0].sent &&
                link->bequest.staged < link->bequest.handed;
    if (!ours || (answer->known && answer->number != link->bequest.staged + 1))
        return sgp_hangs_up(SGP_E_PROTOCOL, SGP_REASON_PROTOCOL);
    if (answer->known) {
        link->bequest.staged++;
    } else {
        link->bequest.declined = true;
        sgp_core_take_back(node, link, SGP_REASON_RANGE);
    }
    return sgp_fine();
}

void sgp_core_bequest_accepted(struct sgp_node *node, const struct sgp_core_link *link)
{
    node->leaving.left = true;
    node->leaving.patience = node->now + SGP_DRAIN_NS;
    node->leaving.heir = link->peer;
    node->leaving.weight = link->owed[0].share.weight;
    node->leaving.owed = sgp_core_in_flight(node) - link->owed[0].share.weight;
    /* debts, and all that follows, went to the heir with the bequest */
    double debts = sgp_core_debts(node);
    sgp_mass_post(node, SGP_MASS_PAY, debts);
    sgp_mass_post(node, SGP_MASS_ACKNOWLEDGE, node->leaving.owed - debts);
    sgp_mass_set_members(node, 0, 0);
    sgp_mass_doubt(node, -node->mass.unknown);
    SGP_EACH_IN (other, node)
        sgp_core_unstage(node, other);
    while (node->accounts.count > 0)
        drop(node, node->accounts.count - 1);
    for (uint32_t i = 0; i < node->layout.out_count; i++)
        while (sgp_core_is_pledged(node, &node->layout.links[i]))
            sgp_core_forget_owed(node, &node->layout.links[i]);
}

/* ---- a target that returned with another incarnation ---- */

/* Turn the share that the link owes into a debt, which frees the link. NULL: there is no room. */
static struct sgp_core_account *keep(struct sgp_node *node, struct sgp_core_link *link)
{
    const struct sgp_owed *owed = &link->owed[0];
    make_room(node, 1, SGP_ACCOUNTS_MAX);
    if (count_in_force(node) == SGP_ACCOUNTS_MAX)
        return NULL;
    struct sgp_core_account *entry = add(node, SGP_SLOT_NONE);
    const struct sgp_topology_node *nodes = node->config.topology->nodes;
    entry->account = (struct sgp_account){.kind = SGP_ACCOUNT_DEBT,
        .source_incarnation = node->config.incarnation,
        .target_incarnation = link->memory.incarnation,
        .number = owed->share.number,
        .weight = owed->share.weight};
    (void)snprintf(entry->account.source, SGP_NAME_BYTES, "%s", nodes[node->config.self].name);
    (void)snprintf(entry->account.target, SGP_NAME_BYTES, "%s", nodes[link->peer].name);
    entry->search.next = node->now;
    entry->told_on = link->bequest.told_on[0];
    node->accounts.debts++;
    entry->slot = owed->slot;
    entry->fraction = owed->share.fraction;
    entry->compressor = owed->share.compressor;
    sgp_mass_post(node, SGP_MASS_DISPUTE, owed->share.weight);
    sgp_core_owe_next(node, link);
    return entry;
}

/* The former target may have left its account to an heir, so other nodes are asked. False: there is
 * no room, or the share was never accepted. */
bool sgp_core_dispute(struct sgp_node *node, struct sgp_core_link *link)
{
    const struct sgp_owed *owed = &link->owed[0];
    if (!owed->exists || owed->publishing || !(owed->told || owed->lost) ||
        !(owed->share.weight > 0))
        return false;
    const struct sgp_core_account *entry = keep(node, link);
    if (entry != NULL)
        note_dispute(node, entry, link->peer, SGP_SLOT_NONE);
    return entry != NULL;
}

/* The heir may already answer for the share. False: it does not, or there is no room. */
bool sgp_core_keep_pledged(struct sgp_node *node, struct sgp_core_link *link)
{
    return sgp_core_is_pledged(node, link) && link->memory.incarnation != 0 &&
           keep(node, link) != NULL;
}

/* ---- restart and reload ---- */

void sgp_core_restore_accounts(struct sgp_node *node, const struct sgp_record *record)
{
    for (uint32_t i = 0; i < record->account_count; i++) {
        struct sgp_core_account *entry = add(node, SGP_SLOT_NONE);
        entry->account = record->accounts[i];
        node->accounts.debts += is_debt(entry);
        sgp_mass_post(node, SGP_MASS_TAKE_DEBT, entry->account.weight);
    }
}

/* If the new file does not name the target of a debt, the target can never be asked, as with a link
 * to it. A debt that the heir may have received with a bequest stays until that is settled. */
void sgp_core_move_accounts(
    struct sgp_node *node, const struct sgp_topology *topology, const uint32_t *index)
{
    double returned = 0;
    bool frozen = sgp_core_has_gone(node) && sgp_core_bequest(node) != NULL;
    for (uint32_t i = node->accounts.count;
         i-- > 0;) { /* debts without a snapshot cause one SCALE at most */
        struct sgp_core_account *entry = &node->accounts.entries[i];
        if (!in_force(entry)) {
            entry->stager = index[entry->stager];
            continue;
        }
        /* the search begins again, among other nodes */
        entry->search = (struct sgp_search){.next = node->now};
        if (frozen || !is_debt(entry) || sgp_topology_find(topology, entry->account.target) >= 0)
            continue;
        if (node->role->unique || node->role->collective) { /* a token may have been handed on */
            sgp_core_end_debt(node, i, node->role->unique ? SGP_MASS_PAY : SGP_MASS_VOID_DEBT);
            continue;
        }
        if (entry->slot != SGP_SLOT_NONE) {
            sgp_core_end_debt(node, i, SGP_MASS_RETURN_DEBT);
            continue;
        }
        returned += entry->account.weight;
        drop(node, i);
    }
    sgp_core_scale_for_return(node, returned);
    sgp_mass_post(node, SGP_MASS_RETURN_DEBT, returned);
    node->inquiry.whom = SGP_SLOT_NONE; /* a reload may give its index to another node */
}
