/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a token. Its values are computed in double precision, from the changes that each host
 * made and published. A token that arrives at a host must equal them to the bit, and must not be
 * outdated. Exactly one node has the token. No core and no copy is used. */
#include "sim/world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* of the additions when a token arrives, relative to the magnitudes that went in */
#define ROUNDING 0x1p-19

bool sgp_sim_has_token(const struct sgp_sim_host *host)
{
    return sgp_topology_has_token(host->file->topology);
}

int sgp_sim_create_mover(struct sgp_sim_host *host)
{
    uint64_t dimension = host->sim->options.dimension;
    struct sgp_sim_mover *mover = &host->mover;
    if (!host->sim->token)
        host->sim->token = calloc(dimension, sizeof *host->sim->token);
    host->sim->doubled_since = SGP_TIME_NEVER;
    mover->moved = calloc(2 * dimension, sizeof *mover->moved);
    if (!host->sim->token || !mover->moved)
        return -ENOMEM;
    mover->offered = mover->moved + dimension;
    return 0;
}

void sgp_sim_free_mover(struct sgp_sim_host *host)
{
    free(host->mover.moved);
}

void sgp_sim_forget_moved(struct sgp_sim_host *host)
{
    struct sgp_sim_mover *mover = &host->mover;
    memset(mover->moved, 0, 2 * host->sim->options.dimension * sizeof *mover->moved);
    mover->steps = mover->offered_steps = 0;
    mover->synced = false;
}

/* ---- changes of a host, and those that it publishes ---- */

void sgp_sim_count_moved(struct sgp_sim_host *host)
{
    struct sgp_sim *sim = host->sim;
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        host->mover.moved[c] += (double)sim->after[c] - (double)sim->before[c];
    host->mover.steps++;
}

void sgp_sim_count_offered(struct sgp_sim_host *host)
{
    struct sgp_sim_mover *mover = &host->mover;
    memcpy(mover->offered, mover->moved, host->sim->options.dimension * sizeof *mover->offered);
    mover->offered_steps = mover->steps;
}

static bool is_above(const struct sgp_epoch *a, const struct sgp_epoch *b)
{
    return a->number != b->number ? a->number > b->number : a->start > b->start;
}

/* Only the token of the highest epoch is known. */
static bool is_known(struct sgp_sim_host *host)
{
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    if (is_above(&status.epoch, &host->sim->token_epoch)) {
        host->sim->token_epoch = status.epoch;
        host->mover.synced = false;
    }
    return !is_above(&host->sim->token_epoch, &status.epoch);
}

/* A published change counts once. */
static void take_up(struct sgp_sim_host *host, const float *token)
{
    struct sgp_sim_mover *mover = &host->mover;
    bool known = is_known(host);
    for (uint64_t c = 0; c < host->sim->options.dimension; c++) {
        if (known)
            host->sim->token[c] = (double)token[c]; /* so that rounding does not accumulate */
        mover->moved[c] -= mover->offered[c];
        mover->offered[c] = 0;
    }
    mover->steps -= mover->offered_steps;
    mover->offered_steps = 0;
    mover->synced = true;
}

/* ---- the values of the token ---- */

static void check_sum(struct sgp_sim_host *host, const float *token, const char *when)
{
    struct sgp_sim *sim = host->sim;
    const struct sgp_sim_mover *mover = &host->mover;
    bool mean = host->file->topology->phases[0].delay.mean && mover->offered_steps > 0;
    double part = mean ? 1.0 / mover->offered_steps : 1;
    for (uint64_t c = 0; c < sim->options.dimension; c++) {
        double expected = sim->token[c] + part * mover->offered[c];
        double size = fabs(sim->token[c]) + fabs(mover->offered[c]) * (1 + mover->offered_steps) +
                      /* the copy from which the steps were taken */
                      fabs((double)host->performer.copy[c]);
        if (fabs((double)token[c] - expected) <= ROUNDING * size || !isfinite(expected))
            continue;
        sgp_sim_fail(sim, SGP_E_STATE,
            "%s %s a token with %.9g in x[%llu]; with %u updates of its own it is %.9g",
            sgp_sim_name(sim, host->index), when, (double)token[c], (unsigned long long)c,
            mover->offered_steps, expected);
        return;
    }
}

/* A host that has not received the token in this life has only its weight, and the values are the
 * host's own. */
void sgp_sim_check_token(struct sgp_sim_host *host, const float *token)
{
    sgp_sim_count_offered(host);
    if (is_known(host) && host->mover.synced && !host->sim->remade)
        check_sum(host, token, "publishes");
    take_up(host, token);
}

/* If a ledger is outdated, a token that its node had may arrive again, and no host knows of
 * that. */
void sgp_sim_check_receive_token(struct sgp_sim_host *host, const float *token)
{
    struct sgp_sim *sim = host->sim;
    if (!is_known(host))
        return;
    for (uint64_t c = 0; c < sim->options.dimension && sim->remade; c++)
        sim->token[c] = (double)token[c];
    for (uint64_t c = 0; c < sim->options.dimension; c++) {
        if ((float)sim->token[c] == token[c] || !isfinite(sim->token[c]))
            continue;
        sgp_sim_fail(sim, SGP_E_STATE, "to %s comes a token with %.9g in x[%llu]; it is %.9g",
            sgp_sim_name(sim, host->index), (double)token[c], (unsigned long long)c, sim->token[c]);
        return;
    }
}

void sgp_sim_check_token_received(struct sgp_sim_host *host, const float *token)
{
    if (is_known(host))
        check_sum(host, token, "hands on");
    take_up(host, token);
}

void sgp_sim_check_stands(struct sgp_sim_host *host)
{
    struct sgp_sim *sim = host->sim;
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    for (uint64_t c = 0; c < sim->options.dimension; c++) {
        double copy = (double)host->performer.copy[c], expected = copy + host->mover.moved[c];
        double size = fabs(copy) + fabs(expected) + fabs((double)sim->before[c]);
        if (fabs((double)sim->after[c] - expected) <= ROUNDING * size || !isfinite(expected))
            continue;
        sgp_sim_fail(sim, SGP_E_STATE,
            "after it has received the token, %s has %.9g in x[%llu]; with its own %u steps since "
            "it is %.9g",
            sgp_sim_name(sim, host->index), (double)sim->after[c], (unsigned long long)c,
            host->mover.steps, expected);
        return;
    }
}

/* ---- at most one token ---- */

/* Time for two tokens of hosts between which there are links to meet. */
#define MEETING_NS (60 * SGP_SECOND)

static struct sgp_epoch highest_epoch(const struct sgp_sim *sim)
{
    struct sgp_epoch epoch = {0};
    for (uint32_t i = 0; i < sim->host_count; i++) {
        struct sgp_node_status status;
        sgp_node_status(sim->hosts[i].node, &status);
        if (is_above(&status.epoch, &epoch))
            epoch = status.epoch;
    }
    return epoch;
}

/* A joining host may still find out that it has no token. A token that was given to a host that has
 * forgotten it belongs to no host, although its source does not know that. */
static double held_by(const struct sgp_sim_host *host, const struct sgp_epoch *epoch)
{
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    bool counts = !is_above(epoch, &status.epoch) && status.state != SGP_NODE_JOINING;
    return counts && !host->dead ? status.weight : 0;
}

/* Give hosts that a link joins the same part. Whether a part has changed. */
static bool join_parts(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    bool changed = false;
    for (uint32_t k = 0; k < sgp_node_link_count(host->node) && !host->dead; k++) {
        struct sgp_peer_status peer;
        sgp_node_link_status(host->node, k, &peer);
        struct sgp_sim_host *other = &sim->hosts[host->file->hosts[peer.peer]];
        if (peer.state != SGP_LINK_UP || other->dead || other->mover.part == host->mover.part)
            continue;
        bool less = host->mover.part < other->mover.part;
        uint32_t part = less ? host->mover.part : other->mover.part;
        host->mover.part = other->mover.part = part;
        changed = true;
    }
    return changed;
}

/* Whether links join two hosts that have a token, directly or over other hosts. */
static bool is_doubled(struct sgp_sim *sim, const struct sgp_epoch *epoch)
{
    bool changed = true;
    for (uint32_t i = 0; i < sim->host_count; i++)
        sim->hosts[i].mover.part = i;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < sim->host_count; i++)
            changed = join_parts(sim, &sim->hosts[i]) || changed;
    }
    for (uint32_t part = 0; part < sim->host_count; part++) {
        double total = 0;
        for (uint32_t i = 0; i < sim->host_count; i++)
            if (sim->hosts[i].mover.part == part)
                total += held_by(&sim->hosts[i], epoch);
        if (!(total <= 1 + SGP_SIM_MASS_SLACK))
            return true;
    }
    return false;
}

/* In the highest epoch at most one host has the token. Only a ledger from a backup may bring one
 * back that has left its host since. If nothing in its part of the fleet shows that, there are two
 * until the parts meet (docs/rules/token.md). */
void sgp_sim_check_one_token(struct sgp_sim *sim)
{
    struct sgp_epoch epoch = highest_epoch(sim);
    double total = 0;
    for (uint32_t i = 0; i < sim->host_count; i++)
        total += held_by(&sim->hosts[i], &epoch);
    bool one = total <= 1 + SGP_SIM_MASS_SLACK;
    if (one || !is_doubled(sim, &epoch))
        sim->doubled_since = SGP_TIME_NEVER;
    else if (sim->doubled_since == SGP_TIME_NEVER)
        sim->doubled_since = sim->now;
    bool meets = sim->doubled_since == SGP_TIME_NEVER || sim->now - sim->doubled_since < MEETING_NS;
    if (!one && !(sim->summary.restored > 0 && meets))
        sgp_sim_fail(sim, SGP_E_STATE, "there are %.17g tokens of one epoch", total);
}
