/* SPDX-License-Identifier: Apache-2.0 */
/* How the effects of a core are performed: the table of operations, and the effect of a note. */
#include "sim/world.h"

static void commit(void *context, const struct sgp_node *node)
{
    struct sgp_sim_host *host = context;
    host->sequence++;
    if (host->mortal)
        sgp_node_record(node, &host->record);
}

static void note(void *context, const struct sgp_effect *effect)
{
    struct sgp_sim_host *host = context;
    struct sgp_sim *sim = host->sim;
    switch (effect->note.what) {
    case SGP_NOTE_LATE:
        sgp_sim_update_late(host, effect->note.slot);
        break;
    case SGP_NOTE_ADDED:
        sgp_sim_update_chosen(
            host, &sim->hosts[host->file->hosts[effect->note.link.peer]], effect->note.amount);
        break;
    case SGP_NOTE_ROUND:
        if (sgp_sim_is_owner(host))
            sgp_sim_step_told(host, effect->note.amount);
        sgp_sim_measure(host, effect->round, effect->weight);
        break;
    case SGP_NOTE_ABSENT:
        sim->summary.absences++;
        break;
    case SGP_NOTE_JUMP:
        sim->summary.jumps++;
        break;
    case SGP_NOTE_REFUSED:
        sim->summary.shares_refused++;
        break;
    case SGP_NOTE_ADOPTED:
        sim->summary.adopted++;
        break;
    case SGP_NOTE_DIVERGED:
        host->diverged = true;
        break;
    case SGP_NOTE_DISSOLVED:
        sgp_sim_check_dissolve(host, effect);
        break;
    case SGP_NOTE_EXCESS:
    case SGP_NOTE_LACK:
        sgp_sim_check_total(host, effect);
        break;
    case SGP_NOTE_RENEWED:
        sim->summary.cycles_renewed++;
        sgp_sim_renewed(host);
        host->mover.synced = false;
        break;
    case SGP_NOTE_DISPUTED:
        sgp_sim_check_dispute(host, effect);
        break;
    case SGP_NOTE_DRAINED:
        host->drained = true;
        if (sim->options.checkpoint_ns > 0)
            sgp_sim_checkpoint(host);
        break;
    default:
        break;
    }
    if (sim->options.note)
        sim->options.note(sim->options.context, host->index, sim->now, effect);
}

const struct sgp_driver_ops sgp_sim_ops = {
    .commit = commit,
    .dial = sgp_sim_dial,
    .send = sgp_sim_send,
    .hang_up = sgp_sim_hang_up,
    .receive = sgp_sim_receive,
    .fold = sgp_sim_fold,
    .curtail = sgp_sim_curtail,
    .work = sgp_sim_work,
    .inquire = sgp_sim_inquire,
    .note = note,
};
