/* What survives the process, and a node made from it. A step marks what it changes (`unrecorded`) and
 * the performer stores the record before it lets anything out. */
#include "core/core.h"

#include <math.h>

void sgp_node_record(const struct sgp_node *node, struct sgp_record *record)
{
    sgp_assert(record->link_capacity >= node->link_count);
    record->lineage = node->config.lineage;
    record->round = node->round;
    record->trained = node->trained;
    record->gave = node->gave;
    record->weight = node->weight + sgp_core_held(node);
    record->surplus = node->surplus;
    record->unsettled = node->unsettled;
    record->leaving = node->leaving.wanted;
    record->left = node->leaving.left;
    record->link_count = node->link_count;
    for (uint32_t i = 0; i < node->link_count; i++) {
        const struct sgp_core_link *link = &node->links[i];
        bool out = link->direction == SGP_OUT;
        bool owes = out && link->owed.exists;
        record->links[i] = (struct sgp_record_link){
            .peer = link->peer,
            .out = out,
            .lineage = link->lineage,
            .number = out ? link->number : link->accepted,
            .owes = owes,
            .owed_round = owes ? link->owed.share.round : 0,
            .owed_fraction = owes ? link->owed.share.fraction : 0,
            .owed_weight = owes ? link->owed.share.weight : 0,
            .owed_kept = owes && link->owed.slot != SGP_SLOT_NONE,
            .owed_slot = owes ? link->owed.slot : SGP_SLOT_NONE,
            .owed_bequest = owes ? link->owed.share.bequest : 0,
            .passed = link->passed,
            .uncounted = link->uncounted,
            .former = link->former,
        };
    }
}

bool sgp_node_record_changed(const struct sgp_node *node)
{
    return node->unrecorded;
}

/* Not more than a fleet of the greatest size can have. That the file has fewer nodes now says nothing:
 * it may have shrunk, and what those who left bequeathed may not be dissolved yet. */
#define WEIGHT_MAX (SGP_WEIGHT_PER_NODE * SGP_NODES_MAX)
#define MEMBERS_MAX ((double)SGP_NODES_MAX)

static bool former_is_sound(const struct sgp_record_link *link)
{
    const struct sgp_former *former = &link->former;
    bool none = former->number == 0 && former->passed == 0 && !former->uncounted;
    bool some = !link->out && former->lineage != link->lineage && former->number > 0 &&
                former->number <= SGP_NUMBER_MAX && former->passed >= 0 && isfinite(former->passed);
    return former->lineage == 0 ? none : some;
}

static bool link_is_sound(const struct sgp_record_link *link, uint32_t node_count)
{
    bool owed = link->owed_round >= 0 && link->owed_round < SGP_ROUND_MAX &&
                link->owed_fraction >= 0 && link->owed_fraction <= 1 && link->owed_weight >= 0 &&
                link->owed_weight <= WEIGHT_MAX && link->owed_bequest >= 0 &&
                link->owed_bequest <= MEMBERS_MAX;
    bool nothing = link->owed_round == 0 && link->owed_fraction == 0 && link->owed_weight == 0 &&
                   link->owed_bequest == 0;
    return link->peer < node_count && link->number <= SGP_NUMBER_MAX && link->passed >= 0 &&
           isfinite(link->passed) && former_is_sound(link) &&
           (link->owes ? link->out && link->number > 0 && owed : nothing);
}

bool sgp_record_is_sound(const struct sgp_record *record, uint32_t node_count)
{
    if (record->lineage == 0 || record->round < 0 || record->round >= SGP_ROUND_MAX ||
        !(record->weight >= 0 && record->weight <= WEIGHT_MAX) ||
        !(record->surplus >= 0 && record->surplus <= MEMBERS_MAX) || !isfinite(record->unsettled) ||
        (record->left && !record->leaving) || record->link_count > record->link_capacity)
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

static void restore_link(struct sgp_node *node, const struct sgp_record_link *from)
{
    struct sgp_core_link *link = sgp_core_find(node, from->peer, from->out ? SGP_OUT : SGP_IN);
    link->lineage = from->lineage;
    link->trained = from->number > 0; /* if it is joining too, it will catch up by itself */
    link->doubtful = true;
    link->passed = from->passed;
    link->uncounted = from->uncounted;
    if (!from->out) {
        link->former = from->former;
        link->former_doubtful = from->former.lineage != 0;
        link->accepted = from->number;
        return;
    }
    link->number = from->number;
    link->owed = (struct sgp_owed){
        .exists = from->owes,
        .lost = true,
        .slot = from->owed_kept ? from->owed_slot : SGP_SLOT_NONE,
        .share = {.number = from->number,
            .round = from->owed_round,
            .fraction = from->owed_fraction,
            .weight = from->owed_weight,
            .slice = {.first = 0, .count = node->config.parameters},
            .bequest = from->owed_bequest},
    };
    if (!from->owed_kept)
        return;
    sgp_assert(from->owes && from->owed_slot < node->snapshot_count);
    node->snapshot_users[from->owed_slot]++;
}

void sgp_core_restore(struct sgp_node *node, const struct sgp_record *record)
{
    node->recorded = true;
    node->round = record->round;
    node->trained = record->trained;
    node->gave = record->gave;
    node->weight = record->weight;
    node->surplus = record->surplus;
    node->unsettled = record->unsettled;
    node->leaving.wanted = record->leaving;
    node->leaving.left = record->left;
    node->weight_on_record = record->weight;
    for (uint32_t i = 0; i < record->link_count; i++) {
        restore_link(node, &record->links[i]);
        node->weight_on_record += record->links[i].owed_weight;
    }
}

/* ---- the first round of a restored node ---- */

bool sgp_core_living(const struct sgp_core_link *link)
{
    enum sgp_node_state state = link->pulse.state;
    return link->state == SGP_LINK_UP && !link->absent && state != SGP_NODE_JOINING &&
           state != SGP_NODE_DRAINING;
}

/* Go on with the round on record, or with the fleet's if that is further. Parameters that are exact
 * are worth keeping in step for a cycle; then a neighbour's are better. */
void sgp_core_resume(struct sgp_node *node)
{
    sgp_round furthest = node->round;
    for (uint32_t i = 0; i < node->link_count; i++)
        if (sgp_core_living(&node->links[i]) && node->links[i].pulse.round > furthest)
            furthest = node->links[i].pulse.round;
    node->restored = false;
    node->unrecorded = true;
    if (furthest == node->round)
        return;
    node->round = furthest;
    node->gave = node->trained = false;
    sgp_core_notice(node);
    node->jumps++;
    (void)sgp_core_note(node, SGP_NOTE_JUMP, node->config.self);
}
