/* SPDX-License-Identifier: Apache-2.0 */
/* Questions from one host to another, each on its own connection. The answer takes two round trips
 * if the network passes it and the process runs. Otherwise there is no answer, and the core's
 * timeout passes. */
#include "sim/world.h"

#include <string.h>

void sgp_sim_inquire(void *context, uint32_t peer, const struct sgp_inquire *question)
{
    struct sgp_sim_host *host = context;
    struct sgp_sim_question *asked = &host->question;
    asked->asked = true;
    asked->serial++;
    asked->whom = host->file->hosts[peer];
    asked->inquire = *question;
    memcpy(asked->source, question->source, strlen(question->source) + 1);
    memcpy(asked->target, question->target, strlen(question->target) + 1);
    asked->inquire.source = asked->source;
    asked->inquire.target = asked->target;
    sgp_time due = host->sim->now + 4 * host->sim->options.latency_ns;
    sgp_sim_push(host->sim, due, SGP_SIM_INQUIRED, asked->serial, host->index);
}

void sgp_sim_inquired(struct sgp_sim *sim, struct sgp_sim_host *host, uint32_t serial)
{
    struct sgp_sim_question *asked = &host->question;
    const struct sgp_sim_host *whom = &sim->hosts[asked->whom];
    if (host->dead || !asked->asked || asked->serial != serial)
        return;
    asked->asked = false;
    bool passes = sgp_sim_passable(sim, host->index, whom->index) <= sim->now &&
                  sgp_sim_passable(sim, whom->index, host->index) <= sim->now &&
                  sgp_sim_ready(sim, whom->index) <= sim->now && !whom->gone;
    if (!passes)
        return;
    struct sgp_message message = {.type = SGP_ANSWER};
    bool refused = whom->dead || whom->drained;
    bool answers = !refused && sgp_node_answer(whom->node, &asked->inquire, &message.answer);
    struct sgp_event event = {.type = SGP_EVENT_ANSWER, .message = answers ? &message : NULL};
    sgp_sim_post(sim, host, &event);
}
