/* SPDX-License-Identifier: Apache-2.0 */
/* The link index: an index of the links that have something to do, so that a step does not scan all
 * links.
 *
 * A node may have dozens of links, and in a round most of them do nothing. Whatever changes a link
 * marks it dirty, and a dirty link is a member of every set until the end of the step. Then it is
 * indexed (watch.c). That puts it into the sets of the loops that need it in later steps, and
 * records when something is due on it. A set may contain too many links, but never too few, so a
 * loop over a set still checks each link. Conditions that hold for all links at once are compared
 * when they can have changed (notice.c).
 *
 * The rule: docs/rules/silence.md */
#include "core/core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

void *sgp_core_lines(size_t bytes)
{
    const size_t line = SGP_CORE_CACHE_LINE, whole = (bytes + line - 1) / line * line;
    void *lines = aligned_alloc(line, whole);
    if (lines != NULL)
        memset(lines, 0, whole);
    return lines;
}

int sgp_core_link_index_init(struct sgp_link_index *link_index, uint32_t link_count)
{
    const uint32_t words = link_count / 64 + 1, count = link_count + 1;
    const size_t words_of_sets = (size_t)words * SGP_SET_COUNT;
    const size_t bytes = words_of_sets * sizeof *link_index->sets +
                         count * (sizeof *link_index->due + sizeof *link_index->promised +
                                     sizeof *link_index->peers);
    uint64_t *room = sgp_core_lines(bytes);
    *link_index = (struct sgp_link_index){.words = words, .sets = room};
    if (room == NULL)
        return -ENOMEM;
    link_index->due = (sgp_time *)(room + words_of_sets);
    link_index->promised = link_index->due + count;
    link_index->peers = (uint32_t *)(link_index->promised + count);
    return 0;
}

void sgp_core_link_index_finish(struct sgp_link_index *link_index)
{
    free(link_index->sets); /* and the arrays behind them */
    *link_index = (struct sgp_link_index){.words = 0};
}

/* ---- marking ---- */

static void mark_dirty(struct sgp_node *node, uint32_t index)
{
    uint64_t *dirty =
        node->layout.link_index.sets + (size_t)SGP_SET_DIRTY * node->layout.link_index.words;
    dirty[index / 64] |= (uint64_t)1 << index % 64;
}

void sgp_core_mark_dirty(struct sgp_node *node, const struct sgp_core_link *link)
{
    mark_dirty(node, (uint32_t)(link - node->layout.links));
}

void sgp_core_mark_all_dirty(struct sgp_node *node)
{
    for (uint32_t i = 0; i < node->layout.link_count; i++)
        mark_dirty(node, i);
}

void sgp_core_mark_due_dirty(struct sgp_node *node)
{
    if (sgp_core_due(node) > node->now)
        return;
    for (uint32_t i = 0; i < node->layout.link_count; i++)
        if (node->layout.link_index.due[i] <= node->now)
            mark_dirty(node, i);
}

sgp_time sgp_core_due(const struct sgp_node *node)
{
    return node->layout.link_count > 0
               ? node->layout.link_index.due[node->layout.link_index.first_due]
               : SGP_TIME_NEVER;
}
