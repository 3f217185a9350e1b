/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's reactions to notes of the core; see milestones.h. */
#include "milestones.h"

#include "background_jobs.h"
#include "edges.h"
#include "events.h"
#include "kept.h"
#include "notes.h"
#include "program.h"
#include "fleet_rows.h"
#include "statements.h"
#include "survive.h"

#include <inttypes.h>

#define LOST                                                                                       \
    "the parameters contain no training, because this node, or the one from which they came, has " \
    "lost it: "

/* Save the model, unless that would replace a better one by an untrained one. */
static void save(struct daemon *daemon, const struct sgp_effect *effect)
{
    const struct sgp_node_status status = daemon_status(daemon);
    if (!survive_is_untrained(&status)) {
        background_jobs_save(daemon, effect->round, effect->weight);
        return;
    }
    sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
        "event=untrained lost_rounds=%" PRId64 " text=\"" LOST
        "model.safetensors stays as it was; sgpctl reset %s begins a new run\"",
        status.round, daemon->config->name);
}

/* The core has ended: save now. A node that left for good saved its model before it gave its mass
 * away. */
static void on_drained(struct daemon *daemon, const struct sgp_effect *effect)
{
    const struct sgp_node_status status = daemon_status(daemon);
    daemon->drained = true;
    (void)uv_timer_stop(&daemon->checkpoint_timer);
    if (status.left)
        return;
    if (daemon->changed && !status.leaving)
        save(daemon, effect);
    (void)survive_checkpoint(daemon);
}

/* The node begins to train. Warn if it does so at a later round with its first parameters. Its
 * steps have the learning rate of that round, which may be too small for them. A node of weight 0
 * has no model, unless it has an owner's copy. Neighbours that kept theirs may bring the model
 * back, by averaging, but no node can tell whether they did. */
static void on_training(struct daemon *daemon, const struct sgp_node_status *status)
{
    bool has_model = status->weight > 0 || status->copy_label != SGP_ROUND_NONE;
    if (!status->fresh || status->round <= 0 || !has_model)
        return;
    daemon->found.lost = status->round;
    sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
        "event=untrained lost_rounds=%" PRId64 " text=\"" LOST "training goes on at round %" PRId64
        " from the first parameters; if a checkpoint exists elsewhere, stop all nodes and bring it "
        "back; sgpctl reset %s begins a new run\"",
        status->round, status->round, daemon->config->name);
}

static void on_state(struct daemon *daemon, const struct sgp_effect *effect)
{
    const struct sgp_node_status status = daemon_status(daemon);
    if (status.state == SGP_NODE_TRAINING)
        on_training(daemon, &status);
    if (status.state == SGP_NODE_FINISHED) {
        daemon->finished_since = events_now();
        if (!kept_finished(daemon, effect))
            background_jobs_measure(daemon, effect->round, effect->weight);
        save(daemon, effect);
        /* a restart from it is finished again, however the process ends */
        (void)survive_checkpoint(daemon);
    } else if (status.state == SGP_NODE_DRAINING && status.leaving && effect->weight > 0 &&
               !status.seeks) {
        background_jobs_save(daemon, effect->round, effect->weight);
    }
    notes_status_line(daemon);
}

static void on_round(struct daemon *daemon, const struct sgp_effect *effect)
{
    if (kept_round(daemon, effect))
        return;
    bool amid = effect->weight <= 0 && sgp_topology_has_exact(daemon->prepared->topology);
    if (!daemon->measure_due || amid) /* measuring can wait for the end of the cycle */
        return;
    daemon->measure_due = false;
    background_jobs_measure(daemon, effect->round, effect->weight);
}

static void on_up(struct daemon *daemon, const struct sgp_effect *effect)
{
    struct link *link = edges_link(daemon, &effect->note.link);
    if (link == NULL)
        return;
    statements_tell(daemon, link);
    fleet_rows_greet(daemon, link);
}

/* If the checkpoint lacked parameters, the neighbour's model has them, unless the neighbour has
 * lost its own, too. */
static void on_adopted(struct daemon *daemon)
{
    if (daemon_status(daemon).fresh)
        return;
    daemon->found.older = SGP_ROUND_NONE;
    daemon->found.lost = 0;
}

void milestones_reached(struct daemon *daemon, const struct sgp_effect *effect)
{
    if (effect->note.reason == SGP_REASON_OUTSIZED) /* it was refused here, or returned */
        edges_count_outsized(daemon, effect->note.link.peer,
            effect->note.link.direction == SGP_IN ? SGP_IN : SGP_OUT);
    if (effect->note.what == SGP_NOTE_STATE)
        on_state(daemon, effect);
    else if (effect->note.what == SGP_NOTE_ROUND)
        on_round(daemon, effect);
    else if (effect->note.what == SGP_NOTE_DRAINED)
        on_drained(daemon, effect);
    else if (effect->note.what == SGP_NOTE_ADOPTED)
        on_adopted(daemon);
    else if (effect->note.what == SGP_NOTE_UP)
        on_up(daemon, effect);
    else if (effect->note.what == SGP_NOTE_SAME_UPDATES)
        program_same_updates(daemon);
    else if (effect->note.what == SGP_NOTE_ENOUGH)
        daemon->asks_stop = effect->note.until;
}
