/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes: a process dies with everything except its record, or with its record too, and is started
 * again.
 *
 * Until the restart its core stays unchanged, so that its weight is still counted. Exactly that
 * weight must return from the record. Parameters are handled differently. Those of the dead process
 * are removed from the sums, and those with which it restarts, or that it adopts, are added. */
#include "sim/world.h"

#include <string.h>

void sgp_sim_die(struct sgp_sim *sim, const struct sgp_sim_crash *crash)
{
    struct sgp_sim_host *host = &sim->hosts[crash->node];
    if (host->gone || host->dead)
        return;
    sgp_sim_check_strike(sim, host);
    sgp_sim_network_die(sim, host->index);
    sgp_sim_drop_jobs(host);
    for (uint32_t i = 0; i < host->performer.snapshots.count; i++)
        host->outstanding[i] = 0;
    memset(host->receives, 0, host->performer.receives.count * sizeof *host->receives);
    host->tick_at = SGP_TIME_NEVER;
    host->question.asked = false;
    bool left = host->diverged || host->drained;
    host->dead = true;
    host->diverged = host->drained = false;
    host->life++;
    sim->summary.crashes++;
    if (left)
        sgp_sim_rows_recount(sim);
    sgp_sim_push(sim, crash->back, SGP_SIM_REBIRTH, 0, (uint32_t)(crash - sim->options.crashes));
}

/* The state with which a host restarts. */
struct rebirth {
    bool rejoins;  /* it had left, and its ledger was put aside */
    bool forgets;  /* its ledger is lost, or it had not started */
    bool restores; /* its ledger is from a backup */
    uint64_t former_incarnation;
    double covered; /* as its last record said */
    struct sgp_restart restart;
};

static void look_back(
    struct sgp_sim *sim, const struct sgp_sim_crash *crash, struct rebirth *ret_rebirth)
{
    struct sgp_sim_host *host = &sim->hosts[crash->node];
    bool rejoins = host->record.left;
    bool forgets = !rejoins && (crash->forgets || host->record.incarnation == 0);
    *ret_rebirth = (struct rebirth){.rejoins = rejoins,
        .forgets = forgets,
        .former_incarnation = host->incarnation,
        .covered = host->record.covered};
    if (!rejoins && !forgets)
        ret_rebirth->restores = sgp_sim_put_back(host, &sim->backups[crash - sim->options.crashes]);
    sgp_sim_take_file(host);
    if (rejoins || forgets)
        host->checkpoint.written = false;
    struct sgp_past past = {.record = rejoins || forgets ? NULL : &host->record,
        .sequence = host->sequence,
        .evident = crash->forgets,
        .point = host->checkpoint.written ? &host->checkpoint.point : NULL};
    uint64_t fresh = past.record ? 0 : sgp_random_next(&sim->random) | 1;
    sim->restart(&past, fresh, host->performer.snapshots.count, &ret_rebirth->restart);
}

static void resume(
    struct sgp_sim_host *host, const struct sgp_restart *restart, struct sgp_trainer *trainer)
{
    if (restart->scale > 0)
        trainer->methods->adopt(trainer, host->checkpoint.x, restart->scale);
    if (restart->exact)
        sgp_sim_restore_kept(host);
}

static int create_again(struct sgp_sim *sim, struct sgp_sim_host *host,
    const struct rebirth *rebirth, struct sgp_node **ret_node, struct sgp_trainer **ret_trainer)
{
    struct sgp_node_config config;
    sgp_sim_node_config(sim, host, &config);
    config.incarnation = rebirth->restart.incarnation;
    config.record = rebirth->rejoins || rebirth->forgets ? NULL : &host->record;
    config.one_beginning = config.one_beginning && config.record == NULL;
    config.seeks = rebirth->restart.seeks || (config.one_beginning && host->index > 0);
    int status = sgp_node_create(&config, ret_node);
    if (status < 0)
        return status;
    struct sgp_node_needs needs;
    sgp_node_counts(*ret_node, &needs);
    status = sgp_sim_make_room(sim, host, &needs);
    if (status >= 0)
        status = sim->options.trainer(sim->options.context, host->index, ret_trainer);
    if (status < 0)
        sgp_node_destroy(*ret_node);
    return status;
}

static int begin_again(struct sgp_sim *sim, const struct sgp_sim_crash *crash)
{
    struct sgp_sim_host *host = &sim->hosts[crash->node];
    struct rebirth rebirth;
    struct sgp_node *node = NULL;
    struct sgp_trainer *trainer = NULL;
    look_back(sim, crash, &rebirth);
    int status = create_again(sim, host, &rebirth, &node, &trainer);
    if (status < 0)
        return status;
    if (rebirth.restart.exact && !rebirth.restores)
        sgp_sim_check_exact(sim, host);
    resume(host, &rebirth.restart, trainer);
    sim->summary.exact += rebirth.restart.exact;
    sim->summary.restored += rebirth.restores;
    sgp_sim_check_debts(sim, host, node);
    sgp_node_destroy(host->node);
    host->trainer->methods->destroy(host->trainer);
    host->node = host->driver.node = node;
    host->trainer = trainer;
    sgp_performer_begin(&host->performer, trainer);
    sgp_performer_resume(&host->performer, rebirth.restart.current ? host->checkpoint.rest : NULL);
    host->incarnation = rebirth.restart.incarnation;
    host->dead = false;
    if (rebirth.forgets)
        sgp_sim_check_forget(sim, host);
    if (rebirth.rejoins)
        sgp_sim_check_rejoin(sim, host, rebirth.former_incarnation);
    if (rebirth.restores)
        sgp_sim_check_restore(sim, host, rebirth.covered);
    sgp_sim_check_begin(sim, host);
    sgp_sim_check_unowned(host);
    sgp_sim_forget_updates(host);
    sgp_sim_begin_step(host);
    if (sgp_sim_has_token(host)) {
        sgp_sim_forget_moved(host);
        sim->remade = sim->remade || rebirth.forgets || rebirth.restores || rebirth.rejoins;
    }
    host->step.forgot = host->step.forgot || rebirth.forgets || rebirth.restores;
    struct sgp_event event = {.type = SGP_EVENT_START};
    sgp_sim_post(sim, host, &event);
    return 0;
}

void sgp_sim_rebirth(struct sgp_sim *sim, const struct sgp_sim_crash *crash)
{
    uint32_t index = (uint32_t)(crash - sim->options.crashes);
    sgp_time ready = sgp_sim_ready(sim, crash->node);
    if (ready > sim->now) {
        if (ready != SGP_TIME_NEVER)
            sgp_sim_push(sim, ready, SGP_SIM_REBIRTH, 0, index);
        return;
    }
    int status = begin_again(sim, crash);
    if (status < 0)
        sgp_sim_fail(sim, status, "%s cannot be started again: %s", sgp_sim_name(sim, crash->node),
            sgp_strerror(status));
}
