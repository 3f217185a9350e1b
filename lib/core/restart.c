/* SPDX-License-Identifier: Apache-2.0 */
/* What a process takes over from the previous one, and what it leaves to the next in addition to
 * the record.
 *
 * The rule: docs/rules/restart.md */
#include "sgp/restart.h"

#include <string.h>

static bool is_current(const struct sgp_past *past)
{
    const struct sgp_recovery_point *point = past->point;
    const struct sgp_record *record = past->record;
    return point != NULL && record != NULL && !past->altered && point->sequence > 0 &&
           point->sequence == past->sequence && point->incarnation == record->incarnation &&
           point->round == record->round;
}

static bool is_exact(const struct sgp_past *past)
{
    return is_current(past) &&
           memcmp(&past->point->weight, &past->record->weight, sizeof(double)) == 0;
}

static void plan_kept(
    struct sgp_record *record, const struct sgp_recovery_point *point, uint32_t slots)
{
    for (uint32_t i = 0; i < record->link_count; i++) {
        struct sgp_record_link *link = &record->links[i];
        link->owed_kept = false;
        for (uint32_t j = 0; point != NULL && j < point->kept_count && j < slots; j++) {
            if (!link->owes || link->owed_round != point->kept[j] || !(link->owed_fraction > 0))
                continue;
            link->owed_kept = true;
            link->owed_slot = j;
        }
    }
}

void sgp_restart(
    const struct sgp_past *past, uint64_t fresh, uint32_t slots, struct sgp_restart *ret_restart)
{
    const struct sgp_recovery_point *point = past->point;
    bool exact = is_exact(past);
    *ret_restart = (struct sgp_restart){
        .incarnation = past->record != NULL ? past->record->incarnation : fresh,
        .exact = exact,
        .current = is_current(past),
        .minted = past->record == NULL && past->evident,
        .seeks = !exact && (past->record != NULL || past->evident),
    };
    if (exact)
        ret_restart->scale = 1;
    else if (point != NULL && point->weight > 0)
        ret_restart->scale = 1 / point->weight;
    if (past->record != NULL)
        plan_kept(past->record, exact ? point : NULL, slots);
}

static bool makes_rounds(enum sgp_node_state state)
{
    return state == SGP_NODE_TRAINING || state == SGP_NODE_SETTLING;
}

void sgp_node_recovery_point(const struct sgp_node *node, const struct sgp_record *record,
    uint64_t sequence, struct sgp_recovery_point *ret_point, uint32_t ret_slots[SGP_KEPT_MAX])
{
    struct sgp_node_status status;
    sgp_node_status(node, &status);
    *ret_point = (struct sgp_recovery_point){.incarnation = record->incarnation,
        .sequence = status.seeks || status.amid_cycle ? 0 : sequence,
        .round = status.round,
        .weight = status.weight_checkpoint};
    for (uint32_t i = 0; i < record->link_count && !makes_rounds(status.state); i++) {
        const struct sgp_record_link *link = &record->links[i];
        bool fresh = link->owed_kept && ret_point->kept_count < SGP_KEPT_MAX;
        for (uint32_t j = 0; j < ret_point->kept_count; j++)
            fresh = fresh && ret_point->kept[j] != link->owed_round;
        if (!fresh)
            continue;
        ret_slots[ret_point->kept_count] = link->owed_slot;
        ret_point->kept[ret_point->kept_count++] = link->owed_round;
    }
}
