/* SPDX-License-Identifier: Apache-2.0 */
/* Votes on a pushed version; see topology_votes.h. */
#include "topology_votes.h"

#include "rollout.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define POLL_NS 200000000

/* ---- one node ---- */

/* Whether the entry of a node is about the version that was pushed. */
static bool votes_on_this(const struct ctl_votes *votes, const json_t *node)
{
    const char *mark = ctl_text_of(node, "mark", "");
    return mark[0] != '\0' && strncmp(mark, votes->document->identity, strlen(mark)) == 0;
}

static bool must_accept(const struct ctl_votes *votes, const json_t *node)
{
    const char *name = ctl_text_of(node, "name", "");
    return sgp_topology_find(votes->topology, name) >= 0 &&
           !sgp_manifest_passes_over(&votes->document->manifest, name);
}

/* A node that is behind refuses until it has followed its neighbours, so that does not count. */
static bool refuses(const struct ctl_votes *votes, const json_t *node)
{
    return votes_on_this(votes, node) && must_accept(votes, node) &&
           strcmp(ctl_text_of(node, "vote", ""), "refused") == 0 &&
           json_integer_value(json_object_get(node, "active")) == (json_int_t)votes->active;
}

/* ---- what a person is told ---- */

/* The nodes whose vote is still waited for: a list for a person, as many as fit. */
static void missing(const struct ctl_votes *votes, const json_t *nodes, char text[CTL_CELL_BYTES])
{
    json_t *names = json_array(), *node;
    const struct ctl plain = {.name = NULL};
    size_t index;
    json_array_foreach((json_t *)nodes, index, node)
    {
        const bool accepts =
            votes_on_this(votes, node) && strcmp(ctl_text_of(node, "vote", ""), "accepted") == 0;
        if (must_accept(votes, node) && !accepts)
            (void)json_array_append(names, json_object_get(node, "name"));
    }
    ctl_cell(&plain, "", names, text);
    json_decref(names);
}

/* Tell a person each vote once. */
static void tell(
    struct ctl *ctl, const struct ctl_votes *votes, json_t *told, const json_t *rollout)
{
    json_t *nodes = json_object_get(rollout, "nodes"), *node;
    char name[CTL_CELL_BYTES], why[CTL_CELL_BYTES];
    size_t index;
    json_array_foreach(nodes, index, node)
    {
        const char *vote = ctl_text_of(node, "vote", "none");
        const char *key = ctl_text_of(node, "name", "");
        if (!votes_on_this(votes, node) || strcmp(vote, "none") == 0 ||
            strcmp(vote, ctl_text_of(told, key, "")) == 0)
            continue;
        (void)json_object_set_new(told, key, json_string(vote));
        ctl_cell(ctl, "", json_object_get(node, "name"), name);
        ctl_cell(ctl, "", json_object_get(node, "why"), why);
        if (!ctl->json)
            (void)fprintf(stderr, "%s: %s%s%s\n", name, vote, strcmp(why, "-") == 0 ? "" : ": ",
                strcmp(why, "-") == 0 ? "" : why);
    }
}

/* ---- the result ---- */

bool ctl_is_in_use(const struct sgp_document *document, const json_t *rollout)
{
    return strcmp(ctl_rollout_identity(rollout, "active"), document->identity) == 0;
}

/* A version that is in the way of this one: it cannot be used any more. */
static enum ctl_exit judge_others(
    struct ctl *ctl, const struct ctl_votes *votes, const json_t *rollout)
{
    const uint64_t version = votes->document->manifest.version;
    const uint64_t active = ctl_rollout_version(rollout, "active");
    const uint64_t proposed = ctl_rollout_version(rollout, "proposed");
    if (active >= version)
        return ctl_fail(ctl, CTL_FAILED,
            "version %" PRIu64 ", %.16s, is in use instead; push the file again", active,
            ctl_rollout_identity(rollout, "active"));
    if (proposed > version)
        return ctl_fail(ctl, CTL_FAILED,
            "version %" PRIu64 ", %.16s, was pushed and takes the place of version %" PRIu64,
            proposed, ctl_rollout_identity(rollout, "proposed"), version);
    if (proposed == version && json_is_true(json_object_get(rollout, "fork")))
        return ctl_fail(ctl, CTL_FAILED,
            "two files have version %" PRIu64
            ", so it is used nowhere; agree on one, and push it again: a higher version ends that",
            version);
    return CTL_DONE;
}

/* *ret_over: the version is in use, or another status is returned, which was reported. */
static enum ctl_exit judge(
    struct ctl *ctl, const struct ctl_votes *votes, const json_t *rollout, bool *ret_over)
{
    json_t *nodes = json_object_get(rollout, "nodes"), *node;
    char name[CTL_CELL_BYTES], why[CTL_CELL_BYTES];
    size_t index;
    *ret_over = true;
    if (ctl_is_in_use(votes->document, rollout))
        return CTL_DONE;
    const enum ctl_exit status = judge_others(ctl, votes, rollout);
    if (status != CTL_DONE)
        return status;
    json_array_foreach(nodes, index, node)
    {
        if (!refuses(votes, node))
            continue;
        /* a row has the beginning of the reason, and the asked node all of its own */
        const char *part = ctl_text_of(node, "why", ""), *own = ctl_text_of(rollout, "why", "");
        const bool mine = strncmp(own, part, strlen(part)) == 0;
        ctl_cell(ctl, "", json_object_get(node, "name"), name);
        ctl_cell(ctl, "", json_object_get(mine ? rollout : node, "why"), why);
        return ctl_fail(ctl, CTL_FAILED, "%s refuses version %" PRIu64 ": %.200s", name,
            votes->document->manifest.version, why);
    }
    *ret_over = false;
    return CTL_DONE;
}

static enum ctl_exit give_up(
    struct ctl *ctl, const struct ctl_votes *votes, double timeout, const json_t *rollout)
{
    char names[CTL_CELL_BYTES];
    missing(votes, json_object_get(rollout, "nodes"), names);
    return ctl_fail(ctl, CTL_TIMED_OUT,
        "version %" PRIu64 " is not in use after %g s: it waits for %s; it stays proposed until "
        "they accept, or push the file again with --despite",
        votes->document->manifest.version, timeout, names);
}

enum ctl_exit ctl_votes_wait(
    struct ctl *ctl, const struct ctl_votes *votes, double timeout, json_t **ret_rollout)
{
    const double end = ctl_now() + timeout;
    json_t *rollout = NULL, *told = json_object();
    bool over = false;
    enum ctl_exit status = ctl_rollout_ask(ctl, false, &rollout);
    while (status == CTL_DONE) {
        tell(ctl, votes, told, rollout);
        status = judge(ctl, votes, rollout, &over);
        if (over)
            break;
        if (ctl_now() >= end) {
            status = give_up(ctl, votes, timeout, rollout);
            break;
        }
        json_decref(rollout);
        rollout = NULL;
        (void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
        status = ctl_rollout_ask(ctl, false, &rollout);
    }
    json_decref(told);
    *ret_rollout = rollout;
    return status;
}

json_t *ctl_votes_behind(const struct ctl_votes *votes, const json_t *rollout)
{
    json_t *names = json_array(), *node;
    size_t index;
    json_array_foreach(json_object_get(rollout, "nodes"), index, node)
    {
        const json_int_t active = json_integer_value(json_object_get(node, "active"));
        if (sgp_topology_find(votes->topology, ctl_text_of(node, "name", "")) >= 0 &&
            active < (json_int_t)votes->document->manifest.version)
            (void)json_array_append(names, json_object_get(node, "name"));
    }
    return names;
}
