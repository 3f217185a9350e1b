/* What both ends of a link know of each other, and a record that is older than what the neighbours have
 * seen: a ledger that was put back from a backup.
 *
 * Both ends count the weight of all shares that were accepted over a link, in the same order, so that
 * their sums are equal to the bit. A node that comes back with an old record learns at the first
 * greeting of each link what passed there since, out and in, and takes numbers and sums from there; what
 * it holds too much or too little in all is known once every link has greeted. Then it corrects itself:
 * what is missing is made at its own estimate, what is too much is dissolved like an inherited surplus.
 * Two such records at the ends of one link agree on the younger of the two. What passed there since is
 * known to neither: what one has too much the other misses, and the sum over the fleet is right.
 *
 * Only a link that stands on record, and has not greeted since, can be outdated. Of any other a peer's
 * word that more has passed is no reason to make weight. */
#include "core/core.h"

#include <math.h>

/* ---- whom a source was, and is ---- */

/* The source has forgotten its past, or somebody greets in its name. What was accepted from the former
 * lineage is kept: only that tells, if it greets again, what it owes and what has come. */
static void change_lineage(struct sgp_node *node, struct sgp_core_link *link, uint64_t lineage)
{
    struct sgp_former present = {link->lineage, link->accepted, link->passed, link->uncounted};
    struct sgp_former next = {.lineage = lineage};
    bool returns = link->former.lineage == lineage, doubtful = link->doubtful;
    if (returns) {
        next = link->former;
        link->doubtful = link->former_doubtful;
    }
    if (returns || present.number > 0) {
        link->former = present.number > 0 ? present : (struct sgp_former){.lineage = 0};
        link->former_doubtful = doubtful && present.number > 0;
    }
    link->lineage = next.lineage;
    link->accepted = next.number;
    link->passed = next.passed;
    link->uncounted = next.uncounted;
    node->unrecorded = true;
}

bool sgp_node_accepted(
    const struct sgp_node *node, uint32_t peer, uint64_t lineage, uint64_t *ret_number)
{
    for (uint32_t i = node->out_count; i < node->link_count; i++) {
        const struct sgp_core_link *link = &node->links[i];
        bool former = link->lineage != lineage;
        if (link->peer != peer || lineage == 0 || (former && link->former.lineage != lineage))
            continue;
        *ret_number = former ? link->former.number : link->accepted;
        return true;
    }
    return false;
}

/* ---- the first greeting of a link on record ---- */

/* So much more has left this node than its record says; or come, if it is less than nothing. */
static void differ(struct sgp_node *node, struct sgp_core_link *link, double more)
{
    node->unsettled += more;
    node->unrecorded = true;
    struct sgp_effect *note = sgp_core_note(node, SGP_NOTE_OUTDATED, link->peer);
    note->link.direction = link->direction;
    note->factor = more;
}

bool sgp_core_can_have_passed(uint64_t number, double passed)
{
    return number <= SGP_NUMBER_MAX && passed >= 0 && passed <= SGP_PASSED_MAX;
}

void sgp_core_know_source(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_hello *hello)
{
    if (link->lineage != hello->lineage)
        change_lineage(node, link, hello->lineage);
    bool knows_us = hello->target_lineage == node->config.lineage;
    /* if we have accepted what is owed there, it will be settled by our answer */
    bool owed_is_here = link->accepted > hello->settled;
    double passed = hello->settled_weight + (owed_is_here ? hello->owed_weight : 0);
    double more = passed - link->passed;
    if (link->doubtful && !link->uncounted && knows_us && fabs(more) > 0) {
        differ(node, link, -more);
        link->accepted = owed_is_here ? link->accepted : hello->settled;
        link->passed = passed;
    }
    node->unrecorded = node->unrecorded || link->uncounted;
    link->uncounted = false; /* the source takes our sum from the answer */
    link->doubtful = false;
}

void sgp_core_know_target(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_welcome *welcome)
{
    bool forgot = link->lineage != 0 && link->lineage != welcome->lineage;
    node->unrecorded = node->unrecorded || link->lineage != welcome->lineage;
    link->lineage = welcome->lineage;
    sgp_core_settle(node, link, welcome->accepted, forgot);
    if (forgot) {
        link->passed = 0;
        link->uncounted = false;
    }
    double more = welcome->accepted_weight - link->passed;
    bool counts = welcome->accepted == 0 || welcome->accepted_weight > 0;
    if (link->doubtful && !link->uncounted && counts && fabs(more) > 0)
        differ(node, link, more);
    node->unrecorded =
        node->unrecorded || fabs(more) > 0 || link->uncounted || welcome->accepted > link->number;
    if (welcome->accepted > link->number)
        link->number = welcome->accepted;
    link->passed = welcome->accepted_weight;
    link->uncounted = false;
    link->doubtful = false;
}

/* ---- correcting ---- */

static bool is_in_doubt(const struct sgp_node *node)
{
    for (uint32_t i = 0; i < node->link_count; i++)
        if (node->links[i].doubtful && !node->links[i].retired)
            return true;
    return false;
}

/* When this process began, the node had at least nothing, and at most what the fleet has; a former process
 * of it may have given a little that it had not. A difference beyond that is not its own: of what passed
 * between two outdated nodes neither knows, so one misses what the other has too much; or a link on which
 * much has passed is gone from the file. It is told. */
static bool is_possible(const struct sgp_node *node)
{
    double weight = node->weight_on_record - node->unsettled;
    double most = (double)node->config.topology->node_count + node->surplus;
    return weight >= -1 && weight <= most &&
           node->surplus + node->unsettled <= (double)SGP_NODES_MAX - 1;
}

void sgp_core_correct(struct sgp_node *node)
{
    double off = node->unsettled;
    if (!(fabs(off) > 0) || node->leaving.left || is_in_doubt(node) || !is_possible(node))
        return;
    node->unsettled = 0;
    node->unrecorded = true;
    struct sgp_effect *note = sgp_core_note(node, SGP_NOTE_CORRECTED, node->config.self);
    note->factor = -off;
    if (off > 0) {
        node->surplus += off;
        sgp_core_dissolve(node);
    } else {
        sgp_core_grow(node, -off);
    }
}
