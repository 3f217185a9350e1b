/* SPDX-License-Identifier: Apache-2.0 */
/* What is told to the program that trains through this daemon; see program_inside.h. */
#include "program_inside.h"

#include <stdio.h>

void program_say_with(struct program *program, struct sgp_attach_frame *frame, int descriptor)
{
    const struct sgp_node_status status = daemon_status(program->daemon);
    frame->round = status.round;
    frame->rounds = status.open ? -1 : status.rounds;
    frame->weight = status.weight_estimate;
    if (frame->type == SGP_ATTACH_WELCOME || frame->type == SGP_ATTACH_TURN) {
        frame->index = prepared_rank(program->daemon->prepared);
        frame->size = sgp_topology_trainers(program->daemon->prepared->topology);
    }
    if (!program->dead && sgp_attach_send(program->attachment.socket, frame, descriptor) < 0)
        program->lose(program, "its socket takes no more");
}

void program_identify(
    const struct config *config, const struct prepared *prepared, struct sgp_attach_frame *frame)
{
    frame->index = prepared_rank(prepared);
    frame->size = sgp_topology_trainers(prepared->topology);
    frame->rounds = prepared->rounds > 0 ? prepared->rounds : -1;
    frame->local_steps = (uint32_t)config->local_steps;
    frame->seed = config->seed;
    (void)snprintf(frame->text, sizeof frame->text, "%s", config->name);
}

void program_say(struct program *program, struct sgp_attach_frame *frame)
{
    program_say_with(program, frame, -1);
}
