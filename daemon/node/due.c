/* SPDX-License-Identifier: Apache-2.0 */
/* What the program must be sent after each event, and what it must send; see program_inside.h. */
#include "program_inside.h"

#include "edges.h"
#include "survive.h"

#include <errno.h>
#include <math.h>

#define ROUNDS_BETWEEN_PAUSES 64u

/* For a program that has sent FINISH: the fleet has finished, or this node leaves. */
static bool is_end(const struct sgp_node_status *status)
{
    return status->state == SGP_NODE_FINISHED ||
           (status->state == SGP_NODE_DRAINING && status->leaving);
}

static void say_end(struct program *program)
{
    const struct sgp_node_status status = daemon_status(program->daemon);
    bool finished = program->finishing && is_end(&status);
    struct sgp_attach_frame frame = {.type = finished ? SGP_ATTACH_FINISHED : SGP_ATTACH_STOP,
        .flags = turns_flags_since(program),
        .distance = NAN};
    if (finished)
        frame.distance = edges_distance(program->daemon);
    if (finished &&
        edges_name(program->daemon, edges_is_apart, ", ", frame.text, sizeof frame.text))
        frame.flags |= SGP_ATTACH_DISAGREES;
    program->stopped = true;
    program->answered = finished;
    program_say(program, &frame);
}

static void done_last(struct job *job, bool cancelled)
{
    struct task task = turns_end_job(job);
    struct program *program = task.argument;
    if (program->dead || cancelled)
        program->bury(program);
    else
        say_end(program);
}

/* Training or the whole run is over: the memory now belongs to the program, and contains the
 * estimate. */
static void tell_end(struct program *program)
{
    if (!turns_is_idle(program) || program->steps > 0)
        return;
    const struct sgp_node_status status = daemon_status(program->daemon);
    bool lasts = status.state != SGP_NODE_FINISHED ||
                 events_now() - program->daemon->finished_since >= STATE_LASTS_NS;
    bool finished = program->finishing && !program->answered && is_end(&status) && lasts;
    bool over = !program->finishing && !program->stopped && program_is_over(status.state);
    if (!finished && !over)
        return;
    if (status.weight_estimate > 0)
        (void)turns_push(program, NULL, turns_run_show, done_last);
    /* the node has given its mass away, and receives none */
    else if (status.state == SGP_NODE_DRAINING)
        say_end(program);
}

static void on_patience(uv_timer_t *timer)
{
    struct program *program = timer->data;
    if (program->steps > 0)
        turns_cancel(program);
    program_settle(program->daemon);
}

/* A round for which the program takes no more steps. The next TRAIN may follow, at once if nobody
 * is waited for. Timers without delay come before all else in the loop, so there is a pause for
 * sockets and signals after some rounds. */
static void pass_round(struct program *program)
{
    program->passed = (program->passed + 1) % ROUNDS_BETWEEN_PAUSES;
    (void)uv_timer_start(&program->patience, on_patience, program->passed == 0 ? 1 : 0, 0);
}

void program_settle(struct daemon *daemon)
{
    struct program *program = daemon->program;
    if (program == NULL || daemon->ending)
        return;
    if (program->keeps) /* the save that is running may be of an earlier round */
        program->keeps = survive_checkpoint(daemon) == -EBUSY;
    if (program->finishing && !program->ended && !program->job) {
        program->ended = true; /* at its own pace a node begins the next round at once */
        /* ignored if the configuration limits the rounds */
        program_post(program, SGP_EVENT_STEPS_END, 0);
    }
    if (program->steps > 0 && (!program->present || program->dead))
        turns_wait(program);
    else if (program->steps > 0 && program->finishing && !program->job)
        pass_round(program);
    turns_give(program);
    tell_end(program);
}

void program_yield(struct daemon *daemon)
{
    struct program *program = daemon->program;
    if (program != NULL && program->steps > 0)
        (void)uv_timer_start(&program->patience, on_patience, PROGRAM_YIELD_MS, 0);
}
