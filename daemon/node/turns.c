/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of the program that trains through this daemon. A turn fills its memory with the estimate,
 * and takes back the result of the program; see program_inside.h. Jobs touch nothing of a program
 * but its memory, which outlives them. */
#include "program_inside.h"

#include "background_jobs.h"
#include "edges.h"
#include "notes.h"

#include "sgp/attached.h"
#include "sgp/update.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

bool turns_push(struct program *program, struct job_kind *kind, void (*run)(struct job *),
    void (*done)(struct job *, bool))
{
    struct daemon *daemon = program->daemon;
    const struct sgp_node_status status = daemon_status(daemon);
    bool can = status.weight_estimate > 0 && !daemon->ending;
    struct task *task = can ? task_take(daemon, run, done) : NULL;
    if (task == NULL)
        return false;
    task->job.kind = kind;
    task->round = status.round;
    task->weight = status.weight_estimate;
    task->entered = background_jobs_entered(daemon, status.estimate_slot);
    task->argument = program;
    program->job = true;
    worker_push(&daemon->worker, &task->job);
    return true;
}

struct task turns_end_job(struct job *job)
{
    struct task task = *(struct task *)job;
    struct program *program = task.argument;
    program->job = false;
    program->jumped = program->jumped || task.jumped;
    task_give((struct task *)job);
    return task;
}

static void hand_out(struct task *task)
{
    struct program *program = task->argument;
    task->jumped = sgp_attached_hand_out(
        program->daemon->prepared->attached, task->weight, program->attachment.shared.values);
}

static void run_hand_out(struct job *job)
{
    hand_out((struct task *)job);
}

/* During an exact cycle the estimate is the snapshot with which the node entered the cycle. */
void turns_run_show(struct job *job)
{
    struct task *task = (struct task *)job;
    struct program *program = task->argument;
    if (task->entered == NULL)
        hand_out(task);
    else
        memcpy(program->attachment.shared.values, *task->entered,
            task->trainer->parameters * sizeof(float));
}

uint32_t turns_flags_since(struct program *program)
{
    uint32_t flags =
        (program->jumped ? SGP_ATTACH_JUMPED : 0) | (program->skipped ? SGP_ATTACH_SKIPPED : 0);
    program->jumped = program->skipped = false;
    return flags;
}

/* For example after a power cut, the program may continue from later parameters than the daemon's.
 * Told once. */
static void tell_older(struct program *program, struct sgp_attach_frame *frame)
{
    struct daemon *daemon = program->daemon;
    sgp_round older = daemon->found.older;
    daemon->found.older = SGP_ROUND_NONE;
    if (older == SGP_ROUND_NONE)
        return;
    frame->rows = (uint64_t)older + 1;
    sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
        "event=older round=%" PRId64 " parameters_round=%" PRId64
        " text=\"the parameters are those of an earlier round: no checkpoint is later, and no "
        "neighbour has any\"",
        sgp_node_round(daemon->node), older);
}

/* The program gets one of the due turns. */
static void done_hand_out(struct job *job, bool cancelled)
{
    struct task task = turns_end_job(job);
    struct program *program = task.argument;
    if (program->dead || cancelled || program->steps == 0) {
        program->bury(program);
        return;
    }
    sgp_round round = sgp_node_round(program->daemon->node);
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_TURN,
        .turn = ++program->turn,
        .flags = turns_flags_since(program) | (round != program->told ? SGP_ATTACH_EXCHANGED : 0)};
    program->turn_out = true;
    program->told = round;
    program->weight = task.weight;
    program->since = events_now();
    tell_older(program, &frame);
    if (program->same &&
        edges_name(program->daemon, edges_trains_alike, ", ", frame.text, sizeof frame.text))
        frame.flags |= SGP_ATTACH_SAME_UPDATES;
    program->same = false;
    program_say(program, &frame);
}

bool turns_is_idle(const struct program *program)
{
    return program->present && !program->dead && !program->turn_out && !program->late &&
           !program->job && !program->questions.out;
}

static void done_show(struct job *job, bool cancelled)
{
    struct task task = turns_end_job(job);
    struct program *program = task.argument;
    struct sgp_attach_frame frame;
    int descriptor = -1;
    if (program->dead || cancelled) {
        program->bury(program);
        return;
    }
    if (questions_ask(&program->questions, task.round, &frame, &descriptor) == 0)
        program_say_with(program, &frame, descriptor);
    else
        turns_give(program);
    if (descriptor >= 0)
        (void)close(descriptor);
}

void turns_give(struct program *program)
{
    bool listens = program->finishing ? !program->answered : !program->stopped;
    if (!turns_is_idle(program))
        return;
    if (listens && questions_wait(&program->questions))
        (void)turns_push(program, NULL, turns_run_show, done_show);
    else if (program->steps > 0 && !program->finishing)
        (void)turns_push(program, &program->daemon->kinds.hand_out, run_hand_out, done_hand_out);
}

static void run_take_back(struct job *job)
{
    struct task *task = (struct task *)job;
    struct program *program = task->argument;
    bool assigned = (program->done.flags & SGP_ATTACH_ASSIGNED) != 0;
    task->code = sgp_attached_take_back(program->daemon->prepared->attached, program->weight,
        program->pace, assigned, program->attachment.shared.values, &task->update, &task->rows);
    if (task->code < 0) /* so that it may continue from a valid estimate */
        hand_out(task);
}

static void count_step(struct program *program, uint64_t update)
{
    struct daemon *daemon = program->daemon;
    const struct sgp_attach_frame *done = &program->done;
    const struct sgp_training training = {.samples = done->rows,
        .loss = done->loss,
        .epoch = done->epoch,
        .learning_rate = done->learning_rate,
        .update = sgp_update_chain(program->training.update, update)};
    program->taken++;
    program->overflows += (done->flags & SGP_ATTACH_OVERFLOWED) != 0;
    program->training.samples += done->rows;
    program->training.learning_rate = done->learning_rate;
    program->training.update = training.update;
    if (figures_trained(&daemon->figures, &training, events_now()))
        daemon->measure_due = true;
    daemon->changed = true;
}

static void refuse_step(struct program *program, uint64_t first)
{
    const struct sgp_model_file *layout = program->daemon->prepared->layout;
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_TURN, .code = SGP_E_DIVERGED};
    for (uint32_t i = 0; i < layout->tensor_count; i++)
        if (first >= layout->tensors[i].first &&
            first - layout->tensors[i].first < layout->tensors[i].count)
            (void)snprintf(frame.text, sizeof frame.text, "%s", layout->tensors[i].name);
    notes_error(program->daemon,
        "the program's step is not finite in tensor %s; nothing of it was taken", frame.text);
    program_say(program, &frame);
}

static void end_steps(struct program *program, int code)
{
    program->steps = 0;
    (void)uv_timer_stop(&program->patience); /* the timer was for these steps */
    events_post(program->daemon, sgp_perform_trained(code, &program->training, program->taken));
}

static void done_take_back(struct job *job, bool cancelled)
{
    struct task task = turns_end_job(job);
    struct program *program = task.argument;
    program->daemon->figures.failed = task.code != 0;
    if (task.code == 0 && !cancelled)
        count_step(program, task.update);
    if (program->dead || cancelled) {
        program->bury(program);
        return;
    }
    if (task.code != 0)
        refuse_step(program, task.rows);
    if (program->steps == 0)
        return;
    program->steps--;
    const bool ends = task.code != 0 || program->steps == 0;
    if (task.code == 0 && (program->done.flags & SGP_ATTACH_RENEWS) != 0) {
        program->daemon->found.lost = 0; /* the program has put its own values back */
        events_post(program->daemon,
            (struct sgp_event){.type = SGP_EVENT_RENEW, .bytes = (uint64_t)program->done.round});
    }
    if (ends)
        end_steps(program, task.code);
    else
        turns_give(program);
}

void turns_cancel(struct program *program)
{
    /* FINISH: the program has ended its steps */
    program->late = program->turn_out && !program->finishing;
    program->skipped = program->skipped || program->turn_out;
    program->turn_out = false;
    if (program->steps > 0) /* of the steps of this round, some may have been taken */
        end_steps(program, program->taken > 0 ? 0 : -ECANCELED);
}

void turns_wait(struct program *program)
{
    if (!program->daemon->programless) {
        program->daemon->programless = true;
        program->since = events_now();
        sgp_log(&program->daemon->log->sink, SGP_LEVEL_INFO,
            "event=waiting for=program socket=\"%s\"", program->daemon->config->attach);
        if (!program->holds)
            program_post(program, SGP_EVENT_PAUSE, 0);
    }
    turns_cancel(program);
}

void turns_on_done(struct program *program, const struct sgp_attach_frame *frame)
{
    if (frame->turn == 0 || frame->turn > program->turn) {
        program->lose(program, "it ended a turn that it was not given");
        return;
    }
    const bool renews = (frame->flags & SGP_ATTACH_RENEWS) != 0;
    const bool assigned = (frame->flags & SGP_ATTACH_ASSIGNED) != 0;
    if (renews && !(assigned && frame->round >= 0 && frame->round < SGP_ROUND_MAX)) {
        program->lose(program, "it renews a round that there is not, or without values");
        return;
    }
    if (frame->turn == program->turn)
        program->late = false;
    if (!program->turn_out || frame->turn != program->turn)
        return; /* taken back meanwhile */
    program->turn_out = false;
    program->done = *frame;
    if (!turns_push(program, &program->daemon->kinds.take_back, run_take_back, done_take_back))
        program->lose(program, "the node has no weight left to train with");
}
