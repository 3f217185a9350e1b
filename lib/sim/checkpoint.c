/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: the parameters that a host saves, and the snapshots saved with them. */
#include "sim/world.h"

#include <string.h>
#include <xxhash.h>

void sgp_sim_checkpoint(struct sgp_sim_host *host)
{
    struct sgp_sim_job *job = sgp_sim_new_job(host, SGP_SIM_CHECKPOINTED);
    if (!job)
        return;
    sgp_node_recovery_point(host->node, &host->record, host->sequence, &job->point, job->kept);
    sgp_sim_append(host, job);
}

void sgp_sim_checkpointed(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    struct sgp_sim_checkpoint *checkpoint = &host->checkpoint;
    uint64_t dimension = host->sim->options.dimension;
    host->trainer->methods->estimate(host->trainer, 1.0, checkpoint->x);
    if (host->performer.rest != NULL)
        memcpy(checkpoint->rest, host->performer.rest, dimension * sizeof *checkpoint->rest);
    checkpoint->written = true;
    checkpoint->point = job->point;
    for (uint32_t j = 0; j < job->point.kept_count; j++) {
        checkpoint->compressors[j] = host->compressors[job->kept[j]];
        memcpy(checkpoint->kept + j * dimension, sgp_sim_snapshot(host, job->kept[j]),
            dimension * sizeof *checkpoint->kept);
    }
}

void sgp_sim_restore_kept(struct sgp_sim_host *host)
{
    const struct sgp_sim_checkpoint *checkpoint = &host->checkpoint;
    size_t dimension = host->sim->options.dimension, bytes = dimension * sizeof *checkpoint->kept;
    for (uint32_t j = 0; j < checkpoint->point.kept_count && j < host->performer.snapshots.count;
         j++) {
        float *snapshot = sgp_sim_snapshot(host, j);
        memcpy(snapshot, checkpoint->kept + j * dimension, bytes);
        host->digests[j] = XXH3_64bits(snapshot, bytes);
        host->compressors[j] = checkpoint->compressors[j];
    }
}
