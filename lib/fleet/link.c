/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the exchange on each link; see sgp/fleet.h. */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

static uint32_t words_of(const struct sgp_fleet *fleet)
{
    return (fleet->settings.rows_max + SGP_FLEET_BITS - 1) / SGP_FLEET_BITS;
}

struct sgp_fleet_link *sgp_fleet_open(struct sgp_fleet *fleet, sgp_time now)
{
    struct sgp_fleet_link *link = calloc(1, sizeof *link);
    uint64_t *bits = calloc(2u * words_of(fleet) + 1u, sizeof *bits);
    if (link == NULL || bits == NULL) {
        free(link);
        free(bits);
        return NULL;
    }
    *link = (struct sgp_fleet_link){.fleet = fleet,
        .next = fleet->links,
        .number = ++fleet->opened,
        .lacks = bits,
        .wanted = bits + words_of(fleet),
        .allowance = SGP_FLEET_LINK_BURST,
        .refilled = now,
        .patience = SGP_FLEET_ROWS_BURST,
        .came = now};
    fleet->links = link;
    sgp_fleet_link_forget(link);
    return link;
}

void sgp_fleet_close(struct sgp_fleet_link *link)
{
    if (link == NULL)
        return;
    struct sgp_fleet_link **place = &link->fleet->links;
    while (*place != link)
        place = &(*place)->next;
    *place = link->next;
    if (link->fleet->due == link)
        link->fleet->due = link->next;
    free(link->lacks);
    free(link);
}

void sgp_fleet_link_forget(struct sgp_fleet_link *link)
{
    const struct sgp_fleet *fleet = link->fleet;
    memset(link->lacks, 0, 2u * words_of(fleet) * sizeof *link->lacks);
    link->offers = true;
    link->told = 0;
    link->cursor = NO_ROW;
    /* each link gives other rows first, so that a peer gets few rows twice */
    link->turn = fleet->count > 0 ? link->number * 40503u % fleet->count : 0;
}

void sgp_fleet_link_lack(struct sgp_fleet_link *link)
{
    const struct sgp_fleet *fleet = link->fleet;
    for (uint32_t i = 0; i < fleet->count; i++)
        if (fleet->rows[i].version == 0 && i != fleet->self)
            sgp_fleet_set(link->lacks, i);
}
