/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ends of a link remember of each other, and where one of them remembers less.
 *
 * A source that greets under another lineage has forgotten its past, or somebody greets in its name. What was
 * accepted from the former lineage is kept until another one has brought weight and gone too: only that
 * tells, should it greet again, what has come from it and what has not.
 *
 * A target that has accepted more than this node's record says was given, or a source that knows of more
 * acknowledged shares than it says was accepted, is a certain sign that the record is older than what the
 * neighbours have seen: a ledger that was put back from a backup. Numbers are taken from there, so that
 * the links go on. How much weight passed since is not known; that the total may be off, and by how much
 * at most, is told: the members' weight for each record that was put back.
 * The rule: docs/rules/outdated.md */
#include "core/core.h"

/* Found out on one link, it is known: a record that was put back is one event, however many see it. */
void sgp_core_find_outdated(struct sgp_node *node, struct sgp_core_link *link)
{
    if (node->past.outdated)
        return;
    node->past.outdated = true;
    sgp_mass_doubt(node, node->mass.members_most);
    sgp_core_forgo_recorded(node);
    node->unrecorded = true;
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_OUTDATED, link->peer);
    note->link.direction = link->direction;
    note->amount = node->mass.unknown;
}

/* A lineage that has brought no weight is not worth another's place: what was accepted from it may be
 * accepted again. Whoever does bring some in a neighbour's name needs no share of another to come twice. */
static void change_lineage(struct sgp_node *node, struct sgp_core_link *link, uint64_t lineage)
{
    uint64_t present = link->memory.lineage, accepted = link->memory.accepted;
    bool brought = link->memory.brought, returns = link->memory.former_lineage == lineage;
    link->memory.lineage = lineage;
    link->memory.accepted = returns ? link->memory.former_accepted : 0;
    link->memory.brought = returns;
    if (brought || returns) {
        link->memory.former_lineage = brought ? present : 0;
        link->memory.former_accepted = brought ? accepted : 0;
    }
    node->unrecorded = true;
}

void sgp_core_know_source(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_hello *hello)
{
    bool first = !link->memory.met;
    link->memory.met = true;
    if (link->memory.lineage != hello->lineage)
        change_lineage(node, link, hello->lineage);
    bool ours = hello->target_lineage == node->config.lineage;
    if (!first || !link->memory.recorded || !ours || hello->acknowledged <= link->memory.accepted)
        return;
    sgp_core_find_outdated(node, link); /* what has passed never comes again, */
    if (sgp_core_number_is_sound(link, hello->acknowledged))
        link->memory.accepted =
            hello->acknowledged; /* and the source must not forget that it has */
}

bool sgp_core_know_target(struct sgp_node *node, struct sgp_core_link *link, uint64_t accepted)
{
    bool first = !link->memory.met;
    link->memory.met = true;
    bool beyond = accepted > link->memory.number;
    if (beyond && (!first || accepted > SGP_NUMBER_MAX))
        return false;
    link->memory.acknowledged = accepted;
    if (!beyond)
        return true;
    link->memory.number = accepted; /* what was owed under a lesser number is settled by it */
    node->unrecorded = true;
    if (link->memory.recorded) /* else an edge that was gone from the file, and is back */
        sgp_core_find_outdated(node, link);
    return true;
}
