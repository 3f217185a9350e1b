/* SPDX-License-Identifier: Apache-2.0 */
/* What two neighbours say of their rows to each other; see sgp/fleet.h. */
#include "inside.h"

#define BITS SGP_FLEET_BITS

static void clear(uint64_t *bits, uint32_t index)
{
    bits[index / BITS] &= ~((uint64_t)1 << index % BITS);
}

/* The first index from `from` on that is set; `count`: none. */
static uint32_t find_set(const uint64_t *bits, uint32_t from, uint32_t count)
{
    for (uint32_t i = from; i < count; i++) {
        if (i % BITS == 0 && bits[i / BITS] == 0)
            i += BITS - 1;
        else if ((bits[i / BITS] >> i % BITS & 1) != 0)
            return i;
    }
    return count;
}

/* ---- sending ---- */

/* A token bucket: what is left of it now. */
static double refilled(double left, sgp_time since, sgp_time now, double rate, double most)
{
    left += (double)(now - since) / (double)SGP_SECOND * rate;
    return left < most ? left : most;
}

void sgp_fleet_sent(struct sgp_fleet_link *link, size_t bytes)
{
    link->allowance -= (double)bytes;
}

void sgp_fleet_turn(struct sgp_fleet *fleet)
{
    struct sgp_fleet_link *link = fleet->due != NULL ? fleet->due : fleet->links;
    if (link == NULL)
        return;
    link->offers = true;
    fleet->due = link->next;
}

void sgp_fleet_hurry(struct sgp_fleet *fleet)
{
    for (struct sgp_fleet_link *link = fleet->links; link != NULL; link = link->next)
        link->offers = true;
}

/* Ask for rows that the peer has offered. */
static bool want(struct sgp_fleet_link *link, struct sgp_summary *summary)
{
    const struct sgp_fleet *fleet = link->fleet;
    uint32_t used = 0;
    for (uint32_t i = 0; used < SGP_SUMMARY_ENTRIES; i++) {
        i = find_set(link->lacks, i, fleet->count);
        if (i == fleet->count)
            break;
        clear(link->lacks, i);
        summary->nodes[used] = fleet->rows[i].digest;
        summary->versions[used++] = i == fleet->self ? fleet->version : fleet->rows[i].version;
    }
    summary->wants = true;
    return used > 0;
}

/* The earliest row that was not offered on this link; NO_ROW: none. It is behind the row that was
 * offered last, unless that has changed since; then it is looked for from the end. */
static uint32_t first_untold(const struct sgp_fleet_link *link)
{
    const struct sgp_fleet *fleet = link->fleet;
    const struct sgp_fleet_held *rows = fleet->rows;
    uint32_t found = NO_ROW;
    if (link->cursor != NO_ROW && rows[link->cursor].sequence == link->told)
        return rows[link->cursor].after;
    if (fleet->first != NO_ROW && rows[fleet->first].sequence > link->told)
        return fleet->first;
    for (uint32_t i = fleet->last; i != NO_ROW && rows[i].sequence > link->told; i = rows[i].before)
        found = i;
    return found;
}

/* Say which rows have changed, except those that the peer has sent itself. */
static bool offer(struct sgp_fleet_link *link, struct sgp_summary *summary)
{
    const struct sgp_fleet *fleet = link->fleet;
    uint32_t used = 0;
    for (uint32_t i = first_untold(link); i != NO_ROW && used < SGP_SUMMARY_ENTRIES;
         i = fleet->rows[i].after) {
        const struct sgp_fleet_held *held = &fleet->rows[i];
        link->told = held->sequence;
        link->cursor = i;
        if (held->source == link->number)
            continue;
        summary->nodes[used] = held->digest;
        summary->versions[used++] = held->version;
    }
    return used > 0;
}

/* Give a row that the peer wants. */
static bool give(struct sgp_fleet_link *link, sgp_time now, struct sgp_row *ret_row)
{
    const struct sgp_fleet *fleet = link->fleet;
    uint32_t index = find_set(link->wanted, link->turn, fleet->count);
    if (index == fleet->count)
        index = find_set(link->wanted, 0, fleet->count);
    if (index == fleet->count)
        return false;
    clear(link->wanted, index);
    link->turn = index + 1;
    *ret_row = sgp_fleet_row_of(&fleet->rows[index], now);
    return true;
}

enum sgp_fleet_message sgp_fleet_next(struct sgp_fleet_link *link, sgp_time now,
    struct sgp_summary *ret_summary, struct sgp_row *ret_row)
{
    link->allowance =
        refilled(link->allowance, link->refilled, now, SGP_FLEET_LINK_RATE, SGP_FLEET_LINK_BURST);
    link->refilled = now;
    if (link->allowance <= 0)
        return SGP_FLEET_NOTHING;
    *ret_summary = (struct sgp_summary){.wants = false};
    if (want(link, ret_summary))
        return SGP_FLEET_SUMMARY;
    ret_summary->wants = false;
    if (link->offers && offer(link, ret_summary))
        return SGP_FLEET_SUMMARY;
    link->offers = false;
    return give(link, now, ret_row) ? SGP_FLEET_ROW : SGP_FLEET_NOTHING;
}

/* ---- receiving ---- */

void sgp_fleet_hear(struct sgp_fleet_link *link, const struct sgp_summary *summary)
{
    const struct sgp_fleet *fleet = link->fleet;
    for (uint32_t k = 0; k < SGP_SUMMARY_ENTRIES && summary->nodes[k] != 0; k++) {
        const uint32_t index = sgp_fleet_find(fleet, summary->nodes[k]);
        if (index == NO_ROW)
            continue;
        const uint64_t held = index == fleet->self ? fleet->version : fleet->rows[index].version;
        const uint64_t theirs = summary->versions[k];
        if (summary->wants && fleet->rows[index].version > theirs)
            sgp_fleet_set(link->wanted, index);
        else if (!summary->wants && theirs > held)
            sgp_fleet_set(link->lacks, index);
        else if (!summary->wants && theirs == held)
            clear(link->wanted, index);
    }
}

int sgp_fleet_take(
    struct sgp_fleet_link *link, const struct sgp_row *row, sgp_time now, uint64_t seconds)
{
    link->patience =
        refilled(link->patience, link->came, now, SGP_FLEET_ROWS_RATE, SGP_FLEET_ROWS_BURST) - 1;
    link->came = now;
    return link->patience < 0 ? SGP_E_PROTOCOL
                              : sgp_fleet_judge(link->fleet, row, link->number, now, seconds);
}
