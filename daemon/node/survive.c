/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory: what an earlier process left there, and what this process leaves. It has the
 * ledger (ledger.h) with the weight, and the checkpoint (sgp/checkpoint.h) with the parameters.
 *
 * A checkpoint has the sequence number that the ledger had when it was written. If the ledger has
 * not changed since, a restart continues exactly from there. The first commit afterwards
 * invalidates the checkpoint without a further write. It is then still an estimate.
 *
 * Fails: a ledger of another node ends the start. Damage is logged and tolerated. Thread: the loop
 * thread, except run_checkpoint. */
#include "survive.h"

#include "background_jobs.h"
#include "events.h"
#include "notes.h"
#include "task.h"

#include "sgp/restart.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PATH_BYTES 4096u

static void path_of(const struct daemon *daemon, const char *suffix, char path[PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "%s/checkpoint%s", daemon->config->state_directory, suffix);
}

/* ---- reading ---- */

/* The last checkpoint, or the previous one. */
static void find_checkpoint(struct daemon *daemon, struct survive_found *found)
{
    static const char *const suffixes[] = {"", ".1"};
    const struct prepared *prepared = daemon->prepared;
    for (size_t i = 0; i < 2 && found->memory == NULL; i++) {
        char path[PATH_BYTES];
        struct sgp_error error = {0};
        path_of(daemon, suffixes[i], path);
        int code = sgp_checkpoint_read(path, prepared->parameters, prepared->fingerprint.shape,
            &error, &found->checkpoint, &found->memory);
        found->any = found->any || code != -ENOENT;
        if (code < 0 && code != -ENOENT)
            sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING, "event=warning text=\"%s\"", error.text);
    }
}

/* Set the initial x, the local layers, and a position in the data that matches the round, because
 * schedules depend on the position. The local layers of a checkpoint are used, whatever its x is
 * worth. */
static void resume(
    struct daemon *daemon, struct survive_found *found, const struct sgp_restart *restart)
{
    struct sgp_trainer *trainer = daemon->prepared->trainer;
    const uint64_t local = daemon->prepared->model.local_parameters;
    const float *values = NULL;
    struct sgp_trainer_state state = {.x = restart->scale > 0 ? found->memory : NULL};
    uint64_t steps = 0;
    if (restart->exact) {
        trainer->methods->resume(trainer, &found->checkpoint.state);
        return;
    }
    if (state.x != NULL)
        steps = sgp_state_counter(&found->checkpoint.state, SGP_STATE_STEPS);
    if (found->memory != NULL && local > 0)
        values = sgp_state_vector(&found->checkpoint.state, SGP_STATE_LOCAL, local);
    if (values != NULL)
        sgp_state_add_vector(&state, SGP_STATE_LOCAL, values, local);
    if (daemon->ledger.found)
        steps = (uint64_t)daemon->ledger.record.turns * daemon->config->local_steps;
    for (uint64_t i = 0; state.x != NULL && i < daemon->prepared->parameters; i++)
        found->memory[i] = (float)((double)found->memory[i] * restart->scale);
    sgp_state_add_counter(&state, SGP_STATE_STEPS, steps);
    trainer->methods->resume(trainer, &state);
}

/* The round of x, if it is not the ledger's. */
static sgp_round older_round(const struct daemon *daemon, const struct survive_found *found)
{
    if (!daemon->ledger.found || found->exact)
        return SGP_ROUND_NONE;
    sgp_round round = found->memory != NULL ? found->checkpoint.point.round : 0;
    return round < daemon->ledger.record.round ? round : SGP_ROUND_NONE;
}

static void tell(const struct daemon *daemon, const struct survive_found *found)
{
    const struct ledger *ledger = &daemon->ledger;
    const struct sgp_sink *sink = &daemon->log->sink;
    bool owns = daemon->prepared->topology->nodes[daemon->prepared->self].owns;
    bool lost = owns && found->memory == NULL && !found->exact; /* workers may have a copy */
    if (ledger->damaged)
        sgp_log(sink, SGP_LEVEL_WARNING, "event=warning text=\"%s; its weight is lost\"",
            ledger->reason.text);
    if (ledger->orphaned > 0)
        sgp_log(sink, SGP_LEVEL_WARNING,
            "event=warning text=\"weight %.17g was owed to nodes that the topology does not name "
            "any more; it is taken back\"",
            ledger->orphaned);
    if (ledger->found)
        sgp_log(sink, lost ? SGP_LEVEL_WARNING : SGP_LEVEL_INFO,
            "event=restored round=%" PRId64 " weight=%.17g parameters=%s", ledger->record.round,
            ledger->record.weight,
            found->exact            ? "exact"
            : found->memory != NULL ? "checkpoint"
                                    : "none");
    else if (ledger->minted > 0)
        sgp_log(sink, SGP_LEVEL_WARNING,
            "event=minted weight=1 text=\"an earlier run is evident and its ledger is not: this "
            "node begins anew with weight 1\"");
}

static int draw(uint64_t *ret_number, struct sgp_error *error)
{
    do {
        if (getrandom(ret_number, sizeof *ret_number, 0) < 0)
            return sgp_fail(
                error, -errno, "no random number for the incarnation: %s", strerror(errno));
    } while (*ret_number == 0);
    return 0;
}

int survive_open(struct daemon *daemon, struct sgp_node_config *config, struct sgp_error *error)
{
    const struct prepared *prepared = daemon->prepared;
    struct ledger *ledger = &daemon->ledger;
    int code = ledger_open(ledger, daemon->config->state_directory, prepared->topology,
        prepared->self, prepared->needs.links, error);
    if (code == 0)
        code = draw(&config->seed, error);
    if (code < 0)
        return code;
    struct survive_found *found = &daemon->found;
    find_checkpoint(daemon, found);
    const struct sgp_past past = {.record = ledger->found ? &ledger->record : NULL,
        .sequence = ledger->sequence,
        .altered = ledger->orphaned > 0,
        .evident = ledger->damaged || found->any,
        .point = found->memory != NULL ? &found->checkpoint.point : NULL};
    struct sgp_restart restart;
    sgp_restart(&past, config->seed, prepared->needs.snapshots, &restart);
    found->exact = restart.exact;
    found->current = restart.current && restart.scale > 0;
    resume(daemon, found, &restart);
    if (!(restart.scale > 0)) {
        free(found->memory);
        found->memory = NULL;
    }
    ledger->minted += restart.minted;
    config->record = past.record;
    config->incarnation = restart.incarnation;
    config->seeks = restart.seeks;
    found->older = older_round(daemon, found);
    config->fresh = found->memory == NULL && !found->exact;
    tell(daemon, found);
    return 0;
}

void survive_restore(struct daemon *daemon)
{
    const struct sgp_checkpoint *checkpoint = &daemon->found.checkpoint;
    for (uint32_t j = 0; daemon->found.exact && j < checkpoint->point.kept_count; j++)
        if (j < daemon->performer.snapshots.count)
            memcpy(*sgp_pool_place(&daemon->performer.snapshots, j), checkpoint->kept[j],
                checkpoint->parameters * sizeof(float));
    if (daemon->found.current) /* residuals of an older checkpoint have been given since */
        sgp_performer_resume(&daemon->performer,
            sgp_state_vector(&checkpoint->state, SGP_STATE_REST, checkpoint->parameters));
    free(daemon->found.memory);
    daemon->found.memory = NULL;
}

/* ---- writing ---- */

static void run_checkpoint(struct job *job)
{
    struct task *task = (struct task *)job;
    const struct daemon *daemon = task->daemon;
    char path[PATH_BYTES];
    path_of(daemon, "", path);
    task->trainer->methods->state(task->trainer, &task->checkpoint.state);
    if (daemon->performer.rest != NULL)
        sgp_state_add_vector(&task->checkpoint.state, SGP_STATE_REST, daemon->performer.rest,
            task->checkpoint.parameters);
    if (task->entered != NULL) /* during an exact cycle, this vector is the estimate */
        task->checkpoint.state.x = *task->entered;
    for (uint32_t j = 0; j < task->checkpoint.point.kept_count; j++)
        task->checkpoint.kept[j] = *task->kept[j];
    task->code = sgp_checkpoint_write(path, &task->checkpoint, &task->error);
}

static void done_checkpoint(struct job *job, bool cancelled)
{
    struct task task = *(struct task *)job;
    struct daemon *daemon = task.daemon;
    task_give((struct task *)job);
    daemon->checkpointing = false;
    daemon->saves--;
    if (task.code < 0)
        notes_error(daemon, "the checkpoint was not written: %s", task.error.text);
    else
        notes_mended(daemon, "the checkpoint ");
    if (task.code >= 0 && !cancelled)
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=checkpoint round=%" PRId64,
            task.checkpoint.point.round);
    if (!cancelled)
        events_settle(daemon);
}

bool survive_is_untrained(const struct sgp_node_status *status)
{
    return status->fresh && status->round > 0 && status->state != SGP_NODE_TRAINING;
}

sgp_round survive_lost_rounds(
    const struct survive_found *found, const struct sgp_node_status *status)
{
    return survive_is_untrained(status) ? status->round : found->lost;
}

/* Nothing is worth writing: there is no estimate, or the initial parameters belong to a ledger that
 * counts rounds. */
static bool is_empty(const struct sgp_recovery_point *point, const struct sgp_node_status *status)
{
    bool empty = point->sequence == 0 && point->kept_count == 0 && !(point->weight > 0);
    return empty || (status->fresh && status->round > 0);
}

int survive_checkpoint(struct daemon *daemon)
{
    if (daemon->ending)
        return SGP_E_STATE;
    bool busy = daemon->checkpointing && !daemon->drained; /* the last checkpoint must be written */
    const struct sgp_node_status status = daemon_status(daemon);
    struct sgp_recovery_point point;
    uint32_t slots[SGP_KEPT_MAX];
    sgp_node_recovery_point(
        daemon->node, &daemon->ledger.record, daemon->ledger.sequence, &point, slots);
    if (!busy && is_empty(&point, &status))
        return SGP_E_STATE;
    struct task *task = busy ? NULL : task_take(daemon, run_checkpoint, done_checkpoint);
    if (task == NULL)
        return -EBUSY;
    if (daemon->model_file == MODEL_FAILED && daemon->saves == 0 &&
        status.state == SGP_NODE_FINISHED)
        background_jobs_save(daemon, status.round, status.weight_estimate);
    task->checkpoint = (struct sgp_checkpoint){
        .parameters = daemon->prepared->parameters, .shape = daemon->prepared->fingerprint.shape};
    if (status.estimate_slot != SGP_SLOT_NONE)
        task->entered = sgp_pool_place(&daemon->performer.snapshots, status.estimate_slot);
    if (daemon->training != NULL) /* not exact, because a restart repeats the running steps */
        point.sequence = 0;
    for (uint32_t j = 0; j < point.kept_count; j++)
        task->kept[j] = sgp_pool_place(&daemon->performer.snapshots, slots[j]);
    task->checkpoint.point = point;
    daemon->checkpointing = true;
    daemon->saves++;
    task->job.reads = true;
    worker_push(&daemon->worker, &task->job);
    return 0;
}

void survive_retire(struct daemon *daemon)
{
    static const char *const names[] = {"ledger", "checkpoint", "checkpoint.1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char from[PATH_BYTES], to[PATH_BYTES + sizeof ".left"];
        (void)snprintf(from, sizeof from, "%s/%s", daemon->config->state_directory, names[i]);
        (void)snprintf(to, sizeof to, "%s.left", from);
        if (rename(from, to) == 0 || errno == ENOENT)
            continue;
        daemon->exit_status = EXIT_STATUS_FAILED;
        notes_error(daemon, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
    }
}

static void on_timer(uv_timer_t *timer)
{
    (void)survive_checkpoint(timer->data); /* if one is being written, the next is soon enough */
}

void survive_start_timer(struct daemon *daemon)
{
    uint64_t pace = daemon->config->checkpoint_seconds * 1000;
    (void)uv_timer_init(&daemon->loop, &daemon->checkpoint_timer);
    daemon->checkpoint_timer.data = daemon;
    if (pace > 0)
        (void)uv_timer_start(&daemon->checkpoint_timer, on_timer, pace, pace);
}
