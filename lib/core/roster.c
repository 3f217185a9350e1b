/* SPDX-License-Identifier: Apache-2.0 */
/* The roster: an index of the links that have something to do, so that a step does not scan all
 * links.
 *
 * A node may have dozens of links, and in a round most of them do nothing. Whatever changes a link
 * touches it, and a touched link is a member of every set until the end of the step. Then it is
 * enrolled (watch.c). That puts it into the sets of the loops that need it in later steps, and
 * records when something is due on it. A set may contain too many links, but never too few, so a
 * loop over a set still checks each link. Conditions that hold for all links at once are compared
 * when they can have changed (notice.c).
 *
 * The rule: docs/rules/silence.md */
#include "core/core.h"

#include <errno.h>
#include <stdlib.h>

/* ---- life ---- */

int sgp_core_roster_init(struct sgp_roster *roster, uint32_t link_count)
{
    uint32_t words = link_count / 64 + 1;
    *roster = (struct sgp_roster){.words = words};
    roster->sets = calloc((size_t)words * SGP_SET_COUNT, sizeof *roster->sets);
    roster->due = calloc(link_count + 1u, sizeof *roster->due);
    roster->promised = calloc(link_count + 1u, sizeof *roster->promised);
    roster->peers = calloc(link_count + 1u, sizeof *roster->peers);
    if (roster->sets != NULL && roster->due != NULL && roster->promised != NULL &&
        roster->peers != NULL)
        return 0;
    sgp_core_roster_finish(roster);
    return -ENOMEM;
}

void sgp_core_roster_finish(struct sgp_roster *roster)
{
    free(roster->sets);
    free(roster->due);
    free(roster->promised);
    free(roster->peers);
    *roster = (struct sgp_roster){.words = 0};
}

/* ---- touching ---- */

static void touch(struct sgp_node *node, uint32_t index)
{
    uint64_t *touched =
        node->layout.roster.sets + (size_t)SGP_SET_TOUCHED * node->layout.roster.words;
    touched[index / 64] |= (uint64_t)1 << index % 64;
}

void sgp_core_touch(struct sgp_node *node, const struct sgp_core_link *link)
{
    touch(node, (uint32_t)(link - node->layout.links));
}

void sgp_core_touch_all(struct sgp_node *node)
{
    for (uint32_t i = 0; i < node->layout.link_count; i++)
        touch(node, i);
}

void sgp_core_touch_due(struct sgp_node *node)
{
    if (sgp_core_due(node) > node->now)
        return;
    for (uint32_t i = 0; i < node->layout.link_count; i++)
        if (node->layout.roster.due[i] <= node->now)
            touch(node, i);
}

sgp_time sgp_core_due(const struct sgp_node *node)
{
    return node->layout.link_count > 0 ? node->layout.roster.due[node->layout.roster.first_due]
                                       : SGP_TIME_NEVER;
}
