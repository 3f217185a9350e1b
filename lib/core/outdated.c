/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ends of a link remember of each other, and what follows if one remembers less.
 *
 * A source that greets with another incarnation has lost its past, or another node uses its name.
 * The last number accepted from the former incarnation is kept until a third incarnation has
 * brought weight and is gone too. If the former incarnation greets again, only this number tells
 * which of its shares were accepted.
 *
 * Two observations prove that a record is older than what neighbours have seen, for example because
 * a ledger was restored from a backup. A target has accepted more shares than the record says were
 * given. Or a source knows of more acknowledged shares than the record says were accepted. The node
 * takes over these numbers, so that the links continue. How much weight moved in the meantime is
 * not known. Therefore a note reports that the total may be off, and the bound: the weight of all
 * members for each restored record.
 *
 * The rule: docs/rules/outdated.md */
#include "core/core.h"

/* Called for each link that shows it, but handled once, because a restored record is one event.
 * What this node gave to the present cycle cannot be given again, so that cycle begins anew. */
void sgp_core_find_outdated(struct sgp_node *node, struct sgp_core_link *link)
{
    if (node->past.outdated)
        return;
    node->past.outdated = true;
    sgp_mass_doubt(node, node->mass.members_most);
    sgp_core_forgo_recorded(node);
    if (node->role->collective && !sgp_core_has_gone(node))
        sgp_core_raise_epoch(node);
    node->unrecorded = true;
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_OUTDATED, link->peer);
    note->link.direction = link->direction;
    note->amount = node->mass.unknown;
}

/* An incarnation that brought no weight does not displace another one, because its shares may be
 * accepted again without harm. An impostor that does bring weight gains nothing if a share of
 * another incarnation arrives twice. */
static void change_incarnation(
    struct sgp_node *node, struct sgp_core_link *link, uint64_t incarnation)
{
    uint64_t present = link->memory.incarnation, accepted = link->memory.accepted;
    bool brought = link->memory.brought, returns = link->memory.former_incarnation == incarnation;
    link->memory.incarnation = incarnation;
    link->memory.accepted = returns ? link->memory.former_accepted : 0;
    link->memory.brought = returns;
    if (brought || returns) {
        link->memory.former_incarnation = brought ? present : 0;
        link->memory.former_accepted = brought ? accepted : 0;
    }
    node->unrecorded = true;
}

void sgp_core_know_source(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_hello *hello)
{
    bool first = !link->memory.met;
    link->memory.met = true;
    if (link->memory.incarnation != hello->incarnation)
        change_incarnation(node, link, hello->incarnation);
    bool ours = hello->target_incarnation == node->config.incarnation;
    if (!first || !link->memory.recorded || !ours || hello->acknowledged <= link->memory.accepted)
        return;
    sgp_core_find_outdated(node, link); /* shares that were accepted never arrive again */
    if (!sgp_core_number_is_sound(link->memory.accepted, hello->acknowledged))
        return;
    link->memory.accepted = hello->acknowledged; /* or the source would forget these shares */
    node->unrecorded = true;
}

/* A target whose own ledger was old at its first greeting may come back with a later one. So a link
 * on record may prove to be outdated at any greeting. */
bool sgp_core_know_target(struct sgp_node *node, struct sgp_core_link *link, uint64_t accepted)
{
    bool first = !link->memory.met;
    link->memory.met = true;
    bool beyond = accepted > link->memory.number;
    bool possible =
        sgp_core_number_is_sound(link->memory.number, accepted) && (first || link->memory.recorded);
    if (beyond && !possible)
        return false;
    link->memory.acknowledged = accepted;
    if (!beyond)
        return true;
    link->memory.number = accepted; /* settles what was owed under a smaller number */
    node->unrecorded = true;
    if (link->memory.recorded) /* otherwise the file dropped the edge once, and has it again */
        sgp_core_find_outdated(node, link);
    return true;
}
