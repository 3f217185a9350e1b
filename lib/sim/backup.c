/* SPDX-License-Identifier: Apache-2.0 */
/* Records of an earlier moment, and how one replaces the last record. */
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sgp_sim_create_backups(struct sgp_sim *sim)
{
    sim->backups = calloc(sim->options.crash_count + 1u, sizeof *sim->backups);
    return sim->backups ? 0 : -ENOMEM;
}

void sgp_sim_save(struct sgp_sim *sim, const struct sgp_sim_crash *crash)
{
    const struct sgp_sim_host *host = &sim->hosts[crash->node];
    struct sgp_sim_backup *backup = &sim->backups[crash - sim->options.crashes];
    const struct sgp_record *record = &host->record;
    backup->record = *record;
    backup->record.links = sgp_sim_copy(record->links, record->link_count, sizeof *record->links);
    backup->record.accounts =
        sgp_sim_copy(record->accounts, record->account_count, sizeof *record->accounts);
    backup->sequence = host->sequence;
    backup->file = host->file;
    if (!backup->record.links || !backup->record.accounts)
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
}

bool sgp_sim_put_back(struct sgp_sim_host *host, const struct sgp_sim_backup *backup)
{
    struct sgp_record *record = &host->record, last = *record;
    const struct sgp_record *saved = &backup->record;
    if (saved->incarnation == 0 || saved->incarnation != last.incarnation || host->handed)
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
    host->sequence = backup->sequence;
    return true;
}

void sgp_sim_free_backups(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->options.crash_count && sim->backups; i++) {
        free(sim->backups[i].record.links);
        free(sim->backups[i].record.accounts);
    }
    free(sim->backups);
}
