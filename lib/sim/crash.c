/* Crashes: a process dies with everything but its record, or with that too, and is started again.
 *
 * Until then its core stays as it was, so that its weight is still counted: exactly that must come
 * back out of the record. Parameters are another matter: those that die are struck from the sums, and
 * those with which it begins anew, or that it adopts, are added. */
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void drop_jobs(struct sgp_sim_host *host)
{
    while (host->job_first) {
        struct sgp_sim_job *job = host->job_first;
        host->job_first = job->next;
        free(job);
    }
    host->job_last = NULL;
}

void sgp_sim_commit(void *context, const struct sgp_node *node)
{
    struct sgp_sim_host *host = context;
    host->sequence++;
    if (host->mortal)
        sgp_node_record(node, &host->record);
}

/* ---- checkpoints ---- */

void sgp_sim_checkpoint(struct sgp_sim_host *host)
{
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    sgp_sim_append(
        host, (struct sgp_sim_job){.work = SGP_SIM_CHECKPOINTED,
                  .round = status.round,
                  .weight = status.weight_estimate,
                  .sequence = status.seeks ? 0 : host->sequence}); /* no guess is exact */
}

void sgp_sim_checkpointed(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    struct sgp_sim_checkpoint *checkpoint = &host->checkpoint;
    host->trainer->methods->estimate(host->trainer, 1.0, checkpoint->x);
    checkpoint->written = true;
    checkpoint->lineage = host->lineage;
    checkpoint->sequence = job->sequence;
    checkpoint->round = job->round;
    checkpoint->weight = job->weight;
}

/* Whether it describes the same moment as the record, as in daemon/survive.c. */
static bool is_exact(const struct sgp_sim_host *host)
{
    const struct sgp_sim_checkpoint *checkpoint = &host->checkpoint;
    return checkpoint->written && checkpoint->sequence == host->sequence &&
           checkpoint->lineage == host->record.lineage && checkpoint->round == host->record.round &&
           checkpoint->weight == host->record.weight;
}

/* Parameters to begin anew with: those of the checkpoint, or its estimate at weight 1. */
static void resume(const struct sgp_sim_host *host, struct sgp_trainer *trainer, bool exact)
{
    const struct sgp_sim_checkpoint *checkpoint = &host->checkpoint;
    if (exact)
        trainer->methods->adopt(trainer, checkpoint->x, 1);
    else if (checkpoint->written && checkpoint->weight > 0)
        trainer->methods->adopt(trainer, checkpoint->x, 1 / checkpoint->weight);
}

/* ---- backups ---- */

static void *copy_of(const void *items, size_t count, size_t bytes)
{
    void *copy = calloc(count + 1u, bytes);
    if (copy && count > 0)
        memcpy(copy, items, count * bytes);
    return copy;
}

void sgp_sim_save(struct sgp_sim *sim, const struct sgp_sim_crash *crash)
{
    const struct sgp_sim_host *host = &sim->hosts[crash->node];
    struct sgp_sim_backup *backup = &sim->backups[crash - sim->options.crashes];
    const struct sgp_record *record = &host->record;
    backup->record = *record;
    backup->record.links = copy_of(record->links, record->link_count, sizeof *record->links);
    backup->record.accounts =
        copy_of(record->accounts, record->account_count, sizeof *record->accounts);
    backup->file = host->file;
    if (!backup->record.links || !backup->record.accounts)
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
}

/* The saved record in the place of the last one. Returns whether there was one of this life. */
static bool put_back(struct sgp_sim_host *host, const struct sgp_sim_backup *backup)
{
    struct sgp_record *record = &host->record, last = *record;
    const struct sgp_record *saved = &backup->record;
    if (saved->lineage == 0 || saved->lineage != last.lineage || host->handed)
        return false;
    *record = *saved;
    record->links = last.links;
    record->link_capacity = last.link_capacity;
    record->accounts = last.accounts;
    record->account_capacity = last.account_capacity;
    if (saved->link_count > 0)
        memcpy(record->links, saved->links, saved->link_count * sizeof *saved->links);
    if (saved->account_count > 0)
        memcpy(record->accounts, saved->accounts, saved->account_count * sizeof *saved->accounts);
    sgp_sim_translate(record, backup->file, host->file);
    return true;
}

/* ---- death and birth ---- */

void sgp_sim_die(struct sgp_sim *sim, const struct sgp_sim_crash *crash)
{
    struct sgp_sim_host *host = &sim->hosts[crash->node];
    if (host->gone || host->dead)
        return;
    sgp_sim_check_strike(sim, host);
    sgp_sim_network_die(sim, host->index);
    drop_jobs(host);
    for (uint32_t i = 0; i < host->snapshot_count; i++)
        host->outstanding[i] = 0;
    memset(host->receives, 0, host->receive_count * sizeof *host->receives);
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

int sgp_sim_rebirth(struct sgp_sim *sim, const struct sgp_sim_crash *crash)
{
    struct sgp_sim_host *host = &sim->hosts[crash->node];
    struct sgp_node *node;
    struct sgp_trainer *trainer;
    struct sgp_node_config config;
    bool rejoins = host->record.left; /* its ledger was put aside */
    bool forgets = !rejoins && (crash->forgets || host->record.lineage == 0); /* or had not begun */
    uint64_t former_lineage = host->lineage;
    double covered = host->record.covered;
    bool restores =
        !rejoins && !forgets && put_back(host, &sim->backups[crash - sim->options.crashes]);
    sgp_sim_take_file(host);
    sgp_sim_node_config(sim, host, &config);
    if (forgets || rejoins)
        config.lineage = sgp_random_next(&sim->random) | 1;
    else
        config.record = &host->record;
    for (uint32_t i = 0; i < host->record.link_count; i++)
        host->record.links[i].owed_kept = false; /* snapshots died with the process */
    bool exact = !forgets && !rejoins && !restores && is_exact(host);
    if (forgets || rejoins)
        host->checkpoint.written = false;
    config.seeks = !exact && !rejoins;
    int status = sgp_node_create(&config, &node);
    if (status < 0)
        return status;
    struct sgp_node_needs needs;
    sgp_node_counts(node, &needs);
    status = sgp_sim_make_room(sim, host, &needs);
    if (status == 0)
        status = sim->options.trainer(sim->options.context, host->index, &trainer);
    if (status < 0) {
        sgp_node_destroy(node);
        return status;
    }
    resume(host, trainer, exact);
    sim->summary.exact += exact;
    sim->summary.restored += restores;
    sgp_node_destroy(host->node);
    host->trainer->methods->destroy(host->trainer);
    host->node = host->driver.node = node;
    host->trainer = trainer;
    host->lineage = config.lineage;
    host->dead = false;
    if (forgets)
        sgp_sim_check_forget(sim, host);
    if (rejoins)
        sgp_sim_check_rejoin(sim, host, former_lineage);
    if (restores)
        sgp_sim_check_restore(sim, host, covered);
    sgp_sim_check_begin(sim, host);
    struct sgp_event event = {.type = SGP_EVENT_START};
    sgp_sim_post(sim, host, &event);
    return 0;
}
