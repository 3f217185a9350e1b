/* SPDX-License-Identifier: Apache-2.0 */
/* A host gets another topology file: its core reloads, or the host starts with it. */
#include "sim/world.h"

#include <math.h>

static int change(struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_sim_file *file)
{
    struct sgp_node_change change = {.topology = file->topology,
        .self = file->nodes[host->index],
        .weight_least = file->weight_least[file->nodes[host->index]],
        .weight_most = file->weight_most[file->nodes[host->index]]};
    struct sgp_node_needs needs;
    struct sgp_reload *plan;
    int status = sgp_reload_prepare(host->node, &change, &needs, &plan);
    if (status < 0)
        return status;
    status = sgp_sim_make_room(sim, host, &needs);
    if (status < 0) {
        sgp_reload_cancel(plan);
        return status;
    }
    sgp_sim_give_up_dials(sim, host->index);
    sgp_performer_renumber(&host->performer);
    sgp_driver_reload(&host->driver, sgp_sim_clock(sim, host), plan);
    host->file = file;
    host->weight_least = change.weight_least;
    /* its weight may still be below the new floor */
    host->weight_floor = fmin(host->weight_floor, sgp_sim_weight_floor(sim, host));
    struct sgp_event event = {.type = SGP_EVENT_TICK};
    sgp_sim_post(sim, host, &event);
    return 0;
}

static void begin(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    host->dead = false;
    host->file_next = NULL; /* the file was there before the first start */
    sgp_sim_check_begin(sim, host);
    struct sgp_event event = {.type = SGP_EVENT_START};
    sgp_sim_post(sim, host, &event);
}

void sgp_sim_reload(struct sgp_sim *sim, const struct sgp_sim_reload *reload)
{
    struct sgp_sim_host *host = &sim->hosts[reload->node];
    sgp_time ready = sgp_sim_ready(sim, host->index);
    if (host->gone)
        return;
    if (ready > sim->now) { /* its process is suspended */
        if (ready != SGP_TIME_NEVER)
            sgp_sim_push(sim, ready, SGP_SIM_RELOAD, 0, (uint32_t)(reload - sim->options.reloads));
        return;
    }
    if (host->dead && sgp_sim_first_reload(sim, host->index) == reload) {
        begin(sim, host);
        return;
    }
    if (host->dead || host->drained || host->diverged) {
        host->file_next = sgp_sim_file_of(sim, reload->topology);
        return;
    }
    int status = change(sim, host, sgp_sim_file_of(sim, reload->topology));
    if (status < 0)
        sgp_sim_fail(sim, status, "%s cannot reload: %s", sgp_sim_name(sim, host->index),
            sgp_strerror(status));
}
