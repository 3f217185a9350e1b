/* The roster: which links have something to do, so that a step looks at these and not at all of them.
 *
 * A node may have dozens of links, and in a round most of them do nothing. Whatever changes a link marks
 * it as touched; until the end of the step everybody looks at it. Then it is filed: into the sets of those
 * who must look at it in later steps too, and under the time by which something is due on it. A set may
 * hold more than it needs, never less, and who walks one still asks the link itself. What holds for all
 * links at once (`facts`) is compared when it can have changed: a new round concerns the neighbours that
 * it passes, anything else all links. */
#include "core/core.h"

#include <errno.h>
#include <stdlib.h>

/* ---- life ---- */

int sgp_core_roster_init(struct sgp_roster *roster, uint32_t link_count)
{
    uint32_t words = link_count / 64 + 1;
    *roster = (struct sgp_roster){.words = words};
    roster->sets = calloc((size_t)words * SGP_SET_COUNT, sizeof(*roster->sets));
    roster->due = calloc(link_count + 1u, sizeof(*roster->due));
    roster->promised = calloc(link_count + 1u, sizeof(*roster->promised));
    roster->peers = calloc(link_count + 1u, sizeof(*roster->peers));
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

/* ---- looking ---- */

uint32_t sgp_core_next(const struct sgp_node *node, enum sgp_set set, uint32_t from)
{
    const struct sgp_roster *roster = &node->roster;
    const uint64_t *touched = roster->sets + (size_t)SGP_SET_TOUCHED * roster->words;
    const uint64_t *members = roster->sets + (size_t)set * roster->words;
    uint64_t ahead = ~(uint64_t)0 << from % 64;
    for (uint32_t word = from / 64; word < roster->words; word++, ahead = ~(uint64_t)0) {
        uint64_t found = (touched[word] | members[word]) & ahead;
        if (found != 0)
            return word * 64 + (uint32_t)__builtin_ctzll(found);
    }
    return node->link_count;
}

/* ---- touching ---- */

static void touch(struct sgp_node *node, uint32_t index)
{
    uint64_t *touched = node->roster.sets + (size_t)SGP_SET_TOUCHED * node->roster.words;
    touched[index / 64] |= (uint64_t)1 << index % 64;
}

void sgp_core_touch(struct sgp_node *node, const struct sgp_core_link *link)
{
    touch(node, (uint32_t)(link - node->links));
}

void sgp_core_touch_all(struct sgp_node *node)
{
    for (uint32_t i = 0; i < node->link_count; i++)
        touch(node, i);
}

static struct sgp_facts facts_of(const struct sgp_node *node)
{
    sgp_round from = node->round + (node->gave ? 1 : 0);
    return (struct sgp_facts){.state = sgp_core_state(node),
        .drained = node->drained,
        .leaving = node->leaving.wanted,
        .left = node->leaving.left,
        .pledges = sgp_core_has_gone(node) && sgp_core_bequest(node) != NULL,
        .chooses = sgp_core_chooses(node, from),
        .heir = node->leaving.heir,
        .bequest_round = node->leaving.round,
        .last = sgp_core_last(node),
        .round = node->round,
        .from = from};
}

/* The turn of round `passed` is over: to those who were in it another one is promised now. */
static void touch_neighbours(struct sgp_node *node, sgp_round passed)
{
    uint32_t count;
    const struct sgp_phase *phase = sgp_topology_phase(node->config.topology, passed);
    const struct sgp_edge *edges = sgp_phase_out(phase, node->config.self, &count);
    for (uint32_t e = 0; e < count; e++)
        sgp_core_touch(node, sgp_core_find(node, edges[e].target, SGP_OUT));
}

/* Whose share is near now, and was not before. */
static void touch_promised(struct sgp_node *node)
{
    for (uint32_t i = node->out_count; i < node->link_count; i++)
        if (node->roster.promised[i] <= node->round + 1)
            touch(node, i);
}

void sgp_core_notice(struct sgp_node *node)
{
    struct sgp_facts facts = facts_of(node), *former = &node->roster.facts;
    bool all = facts.state != former->state || facts.drained != former->drained ||
               facts.leaving != former->leaving || facts.left != former->left ||
               facts.pledges != former->pledges || facts.chooses != former->chooses ||
               facts.heir != former->heir || facts.bequest_round != former->bequest_round ||
               facts.last != former->last;
    bool turned = facts.from != former->from;
    if (all || node->changed || (turned && (facts.chooses || facts.from != former->from + 1)))
        sgp_core_touch_all(node);
    else if (turned)
        touch_neighbours(node, former->from);
    if (facts.round != former->round)
        touch_promised(node);
    node->roster.facts = facts;
}

void sgp_core_touch_due(struct sgp_node *node)
{
    if (sgp_core_due(node) > node->now)
        return;
    for (uint32_t i = 0; i < node->link_count; i++)
        if (node->roster.due[i] <= node->now)
            touch(node, i);
}

/* ---- filing ---- */

static bool promises(const struct sgp_core_link *link)
{
    return link->direction == SGP_IN && link->promise != SGP_ROUND_NONE;
}

static bool is_near(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return promises(link) && link->promise <= node->round + 1;
}

/* The sets in which a link must be, bit by bit. */
static uint32_t sets_of(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool near = is_near(node, link);
    bool granted_soon = near || (promises(link) && sgp_core_has_own_buffers(node));
    bool without = granted_soon && link->slot == SGP_SLOT_NONE && link->state == SGP_LINK_UP;
    bool ending = link->retired && link->connection != 0;
    return (uint32_t)link->owed.exists << SGP_SET_OWING | (uint32_t)link->asks << SGP_SET_ASKING |
           (uint32_t)link->answer_due << SGP_SET_TO_ANSWER | (uint32_t)near << SGP_SET_NEAR |
           (uint32_t)without << SGP_SET_WITHOUT_BUFFER | (uint32_t)ending << SGP_SET_ENDING;
}

static void file(struct sgp_node *node, uint32_t index)
{
    const struct sgp_core_link *link = &node->links[index];
    struct sgp_roster *roster = &node->roster;
    uint64_t sets = sets_of(node, link), *word = roster->sets + index / 64;
    for (uint32_t set = 0; set < SGP_SET_COUNT; set++, word += roster->words)
        *word = (*word & ~((uint64_t)1 << index % 64)) | (sets >> set & 1) << index % 64;
    bool later = promises(link) && !is_near(node, link);
    roster->promised[index] = later ? link->promise : SGP_ROUND_MAX;
    roster->due[index] = sgp_core_link_deadline(node, link);
}

void sgp_core_file(struct sgp_node *node)
{
    struct sgp_roster *roster = &node->roster;
    sgp_time least = sgp_core_due(node);
    bool again = false;
    for (uint32_t i = sgp_core_next(node, SGP_SET_TOUCHED, 0); i < node->link_count;
         i = sgp_core_next(node, SGP_SET_TOUCHED, i + 1)) {
        file(node, i);
        again = again || i == roster->first_due;
        if (roster->due[i] < roster->due[roster->first_due])
            roster->first_due = i;
    }
    if (!again || sgp_core_due(node) <= least)
        return;
    for (uint32_t i = 0; i < node->link_count; i++) /* what was due first is due later now */
        if (roster->due[i] < roster->due[roster->first_due])
            roster->first_due = i;
}

sgp_time sgp_core_due(const struct sgp_node *node)
{
    return node->link_count > 0 ? node->roster.due[node->roster.first_due] : SGP_TIME_NEVER;
}

bool sgp_core_is_filed(const struct sgp_node *node)
{
    for (uint32_t i = 0; i < node->link_count; i++) {
        const struct sgp_core_link *link = &node->links[i];
        for (enum sgp_set set = 0; set < SGP_SET_COUNT; set++)
            if ((sets_of(node, link) >> set & 1) != 0 && sgp_core_next(node, set, i) != i)
                return false;
        if (node->roster.due[i] != sgp_core_link_deadline(node, link) ||
            node->roster.due[i] < sgp_core_due(node))
            return false;
    }
    return true;
}
