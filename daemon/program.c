/* SPDX-License-Identifier: Apache-2.0 */
/* Turns, and the life of the program behind them; see program.h. Jobs touch nothing of a program but its memory, which
 * outlives them: who is gone while one is under way is buried when that is done. */
#include "program.h"

#include "chores.h"
#include "edges.h"
#include "events.h"
#include "facts.h"
#include "notes.h"
#include "questions.h"
#include "survive.h"
#include "task.h"

#include "sgp/attached.h"
#include "sgp/update.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct program {
    struct daemon *daemon;
    struct door *door;
    uv_timer_t patience; /* of an order that wants x back */
    uv_timer_t forgets;  /* the model that no neighbour has */

    /* who is there */
    bool present;
    bool dead; /* gone, while a job of its own is under way */
    struct guest guest;
    struct guest next; /* came meanwhile: `waits` */
    bool waits;
    uv_poll_t *poll;
    char name[64];

    /* what it has, and is to do */
    bool turn_out;  /* the memory is its own */
    bool job;       /* one of its memory is under way */
    bool keeps;     /* it has said KEEP, and no checkpoint has been begun since */
    bool finishing; /* it has said FINISH */
    bool ended;     /* ... and the core knows */
    bool enough;    /* it has said ENOUGH */
    bool stopped;   /* it was told STOP */
    bool answered;  /* it was told FINISHED */
    bool late;      /* a turn was taken back, and it may still write there: until its DONE */
    bool skipped;   /* the step of the turn before did not count */
    bool jumped;    /* x is no continuation of the estimate of the turn before */
    bool same;      /* it is to hear of neighbours that make the same updates */
    uint64_t turn;
    sgp_time since;                    /* of the turn, or of its absence */
    sgp_round told;                    /* round of the turn before */
    struct sgp_attach_frame done;      /* of the turn that is taken back */
    double weight;                     /* of the turn */
    struct questions questions;        /* in the place of a turn */
    uv_timer_t decision;               /* of a program that waits in a decision; */
    bool undecided;                    /* the node pauses meanwhile */
    char words[SGP_ATTACH_TEXT_BYTES]; /* of a decision: the next frame that tells them */

    /* what the core wants */
    uint32_t steps;               /* turns until TRAINED; 0: none is due */
    uint32_t taken;               /* turns of the round that came to something, */
    struct sgp_training training; /* and what they came to */
    double pace;
    bool holds; /* an order pauses the node; daemon->programless is the other reason */
};

static struct sgp_attached *attached(const struct program *program)
{
    return program->daemon->prepared->attached;
}

static enum sgp_node_state state_of(const struct program *program)
{
    struct sgp_node_status status;
    sgp_node_status(program->daemon->node, &status);
    return status.state;
}

static bool is_over(enum sgp_node_state state)
{
    return state == SGP_NODE_SETTLING || state == SGP_NODE_FINISHED || state == SGP_NODE_DRAINING;
}

static void post(struct program *program, enum sgp_event_type type, int code)
{
    events_post(program->daemon, (struct sgp_event){.type = type, .code = code});
}

/* ---- frames to it ---- */

static void lose(struct program *program, const char *why);
static void end_decision(struct program *program);

static void say_with(struct program *program, struct sgp_attach_frame *frame, int descriptor)
{
    struct sgp_node_status status;
    sgp_node_status(program->daemon->node, &status);
    frame->round = status.round;
    frame->rounds = status.open ? -1 : status.rounds;
    frame->weight = status.weight_estimate;
    if (frame->type == SGP_ATTACH_WELCOME || frame->type == SGP_ATTACH_TURN) {
        frame->index = prepared_rank(program->daemon->prepared);
        frame->size = sgp_topology_trainers(program->daemon->prepared->topology);
    }
    if (!program->dead && sgp_attach_send(program->guest.socket, frame, descriptor) < 0)
        lose(program, "its socket takes no more");
}

static void say(struct program *program, struct sgp_attach_frame *frame)
{
    say_with(program, frame, -1);
}

static void welcome(struct program *program, bool resumed)
{
    const struct prepared *prepared = program->daemon->prepared;
    bool over = resumed && state_of(program) == SGP_NODE_FINISHED;
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_WELCOME,
        .flags = (resumed ? SGP_ATTACH_RESUMED : 0u) | (over ? SGP_ATTACH_OVER : 0u),
        .parameters = prepared->parameters,
        .local_steps = (uint32_t)program->daemon->config->local_steps,
        .seed = program->daemon->config->seed};
    (void)snprintf(frame.text, sizeof frame.text, "%s", program->daemon->config->name);
    say(program, &frame);
}

/* ---- its memory, by jobs ---- */

static void on_entered(void *context, struct guest *guest);

/* The last thing that is done of it: who came meanwhile takes its place. */
static void bury(struct program *program)
{
    if (!program->dead || program->job)
        return;
    shared_close(&program->guest.shared);
    program->dead = program->present = false;
    if (!program->waits)
        return;
    program->waits = false;
    struct guest next = program->next;
    on_entered(program, &next);
}

static bool push(struct program *program, struct job_kind *kind, void (*run)(struct job *),
    void (*done)(struct job *, bool))
{
    struct daemon *daemon = program->daemon;
    struct sgp_node_status status;
    sgp_node_status(daemon->node, &status);
    bool can = status.weight_estimate > 0 && !daemon->ending;
    struct task *task = can ? task_take(daemon, run, done) : NULL;
    if (task == NULL)
        return false;
    task->job.kind = kind;
    task->round = status.round;
    task->weight = status.weight_estimate;
    task->entered = chores_entered(daemon);
    task->argument = program;
    program->job = true;
    worker_push(&daemon->worker, &task->job);
    return true;
}

static struct task end_job(struct job *job)
{
    struct task task = *(struct task *)job;
    struct program *program = task.argument;
    program->job = false;
    program->jumped = program->jumped || task.compared;
    task_give((struct task *)job);
    return task;
}

static void hand_out(struct task *task)
{
    struct program *program = task->argument;
    task->compared =
        sgp_attached_hand_out(attached(program), task->weight, program->guest.shared.values);
}

static void run_hand_out(struct job *job)
{
    hand_out((struct task *)job);
}

/* Amid an exact cycle the estimate is the snapshot with which that was entered. */
static void run_show(struct job *job)
{
    struct task *task = (struct task *)job;
    struct program *program = task->argument;
    if (task->entered == NULL)
        hand_out(task);
    else
        memcpy(program->guest.shared.values, *task->entered,
            task->trainer->parameters * sizeof(float));
}

/* What a frame tells of the turn before; each of it once. */
static uint32_t flags_since(struct program *program)
{
    uint32_t flags =
        (program->jumped ? SGP_ATTACH_JUMPED : 0) | (program->skipped ? SGP_ATTACH_SKIPPED : 0);
    program->jumped = program->skipped = false;
    return flags;
}

/* After a power cut, say: the program may go on elsewhere than its parameters do. Told once. */
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

/* The steps that are due, one turn each. */
static void done_hand_out(struct job *job, bool cancelled)
{
    struct task task = end_job(job);
    struct program *program = task.argument;
    if (program->dead || cancelled || program->steps == 0) {
        bury(program);
        return;
    }
    sgp_round round = sgp_node_round(program->daemon->node);
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_TURN,
        .turn = ++program->turn,
        .flags = flags_since(program) | (round != program->told ? SGP_ATTACH_EXCHANGED : 0)};
    program->turn_out = true;
    program->told = round;
    program->weight = task.weight;
    program->since = events_now();
    tell_older(program, &frame);
    if (program->same && edges_same_updates(program->daemon, frame.text, sizeof frame.text))
        frame.flags |= SGP_ATTACH_SAME_UPDATES;
    program->same = false;
    say(program, &frame);
}

/* Whether the memory is the daemon's, and nobody uses it. */
static bool is_idle(const struct program *program)
{
    return program->present && !program->dead && !program->turn_out && !program->late &&
           !program->job && !program->questions.out;
}

static void give_turn(struct program *program);

static void done_show(struct job *job, bool cancelled)
{
    struct task task = end_job(job);
    struct program *program = task.argument;
    struct sgp_attach_frame frame;
    int descriptor = -1;
    if (program->dead || cancelled) {
        bury(program);
        return;
    }
    if (questions_ask(&program->questions, task.round, &frame, &descriptor) == 0)
        say_with(program, &frame, descriptor);
    else
        give_turn(program);
    if (descriptor >= 0)
        (void)close(descriptor);
}

/* What it waits for, once the memory is the daemon's: a question in the place of a turn, or the turn. */
static void give_turn(struct program *program)
{
    bool listens = program->finishing ? !program->answered : !program->stopped;
    if (!is_idle(program))
        return;
    if (listens && questions_wait(&program->questions))
        (void)push(program, NULL, run_show, done_show);
    else if (program->steps > 0 && !program->finishing)
        (void)push(program, &program->daemon->kinds.hand_out, run_hand_out, done_hand_out);
}

static void run_take_back(struct job *job)
{
    struct task *task = (struct task *)job;
    struct program *program = task->argument;
    bool assigned = (program->done.flags & SGP_ATTACH_ASSIGNED) != 0;
    task->code = sgp_attached_take_back(attached(program), program->weight, program->pace, assigned,
        program->guest.shared.values, &task->training.update, &task->rows);
    if (task->code < 0) /* so that it may go on from what is sound */
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
    say(program, &frame);
}

static void end_steps(struct program *program, int code)
{
    program->steps = 0;
    (void)uv_timer_stop(&program->patience); /* it was for these */
    events_trained(program->daemon, code, &program->training, program->taken);
}

static void done_take_back(struct job *job, bool cancelled)
{
    struct task task = end_job(job);
    struct program *program = task.argument;
    program->daemon->figures.failed = task.code != 0;
    if (task.code == 0 && !cancelled)
        count_step(program, task.training.update);
    if (program->dead || cancelled) {
        bury(program);
        return;
    }
    if (task.code != 0)
        refuse_step(program, task.rows);
    if (program->steps == 0)
        return;
    program->steps--;
    if (task.code != 0 || program->steps == 0)
        end_steps(program, task.code);
    else
        give_turn(program);
}

/* ---- the end ---- */

/* For a program that has said FINISH: the fleet has finished, or this node leaves it. */
static bool is_end(const struct sgp_node_status *status)
{
    return status->state == SGP_NODE_FINISHED ||
           (status->state == SGP_NODE_DRAINING && status->leaving);
}

static void say_end(struct program *program)
{
    struct sgp_node_status status;
    sgp_node_status(program->daemon->node, &status);
    bool finished = program->finishing && is_end(&status);
    struct sgp_attach_frame frame = {.type = finished ? SGP_ATTACH_FINISHED : SGP_ATTACH_STOP,
        .flags = flags_since(program),
        .distance = NAN};
    if (finished)
        frame.distance = edges_distance(program->daemon);
    if (finished && edges_apart(program->daemon, frame.text, sizeof frame.text))
        frame.flags |= SGP_ATTACH_DISAGREES;
    program->stopped = true;
    program->answered = finished;
    say(program, &frame);
}

static void done_last(struct job *job, bool cancelled)
{
    struct task task = end_job(job);
    struct program *program = task.argument;
    if (program->dead || cancelled)
        bury(program);
    else
        say_end(program);
}

/* Training is over, or the whole: the memory is the program's for good, with the estimate in it. */
static void tell_end(struct program *program)
{
    struct sgp_node_status status;
    sgp_node_status(program->daemon->node, &status);
    bool lasts = status.state != SGP_NODE_FINISHED ||
                 events_now() - program->daemon->finished_since >= STATE_LASTS_NS;
    bool finished = program->finishing && !program->answered && is_end(&status) && lasts;
    bool over = !program->finishing && !program->stopped && is_over(status.state);
    if (!is_idle(program) || program->steps > 0 || !(finished || over))
        return;
    if (status.weight_estimate > 0)
        (void)push(program, NULL, run_show, done_last);
    else if (status.state == SGP_NODE_DRAINING) /* it has given all away, and gets none */
        say_end(program);
}

/* ---- coming and going ---- */

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

static void cancel_steps(struct program *program)
{
    program->late =
        program->turn_out && !program->finishing; /* who says FINISH is through with it */
    program->skipped = program->skipped || program->turn_out;
    program->turn_out = false;
    if (program->steps > 0)
        end_steps(program, -ECANCELED);
}

/* Steps are due, and nobody takes them: others shall not wait. */
static void wait_for_program(struct program *program)
{
    if (!program->daemon->programless) {
        program->daemon->programless = true;
        program->since = events_now();
        sgp_log(&program->daemon->log->sink, SGP_LEVEL_INFO,
            "event=waiting for=program socket=\"%s\"", program->daemon->config->attach);
        if (!program->holds)
            post(program, SGP_EVENT_PAUSE, 0);
    }
    cancel_steps(program);
}

static void lose(struct program *program, const char *why)
{
    if (program->dead || !program->present)
        return;
    sgp_log(&program->daemon->log->sink, program->answered ? SGP_LEVEL_INFO : SGP_LEVEL_WARNING,
        "event=detached program=\"%s\" pid=%d reason=\"%s\"", program->name, program->guest.pid,
        why);
    (void)uv_poll_stop(program->poll);
    uv_close((uv_handle_t *)program->poll, on_poll_closed);
    program->poll = NULL;
    (void)close(program->guest.socket);
    program->dead = true;
    program->finishing = false;
    program->words[0] = '\0';
    facts_forget_program(program->daemon);
    end_decision(program);
    bury(program);
    questions_fail(&program->questions, program->daemon->ending ? -ECANCELED : SGP_E_STATE,
        program->daemon->ending ? "" : "the program has gone, and with it whoever could answer");
    if (program->daemon->ending)
        return;
    program->skipped = program->skipped || program->turn_out;
    program->turn_out = program->late = false;
    if (program->steps > 0) /* else the next that are due will not find it */
        wait_for_program(program);
}

static void on_readable(uv_poll_t *poll, int status, int events);

static void take_in(struct program *program, struct guest *guest, bool resumed)
{
    struct daemon *daemon = program->daemon;
    program->poll = calloc(1, sizeof *program->poll);
    if (program->poll == NULL || uv_poll_init(&daemon->loop, program->poll, guest->socket) < 0) {
        free(program->poll);
        door_refuse(guest, -ENOMEM, "out of memory");
        return;
    }
    program->guest = *guest;
    program->present = true;
    program->turn_out = program->late = program->finishing = program->ended = false;
    program->stopped = program->answered = program->enough = false;
    program->same = true; /* whoever was there before may have heard of it */
    program->skipped = program->skipped && program->turn > 0;
    (void)snprintf(program->name, sizeof program->name, "%.63s", guest->hello.text);
    program->poll->data = program;
    (void)uv_poll_start(program->poll, UV_READABLE | UV_DISCONNECT, on_readable);
    sgp_log(&daemon->log->sink, SGP_LEVEL_INFO,
        "event=attached program=\"%s\" pid=%d parameters=%" PRIu64 " resumed=%d", program->name,
        guest->pid, daemon->prepared->parameters, resumed);
    welcome(program, resumed);
    if (!program->present || program->dead || !program->daemon->programless)
        return;
    program->daemon->programless = false;
    if (!program->holds && !is_over(state_of(program)))
        post(program, SGP_EVENT_RESUME, 0);
}

static void forget_model(struct program *program)
{
    (void)uv_timer_stop(&program->forgets);
    program->daemon->resets = true;
}

static void on_forgets(uv_timer_t *timer)
{
    struct program *program = timer->data;
    if (program->daemon->run.begun || program->daemon->ending || program->daemon->stopping)
        return;
    forget_model(program);
    events_settle(program->daemon); /* daemon.c orders the end */
}

void program_mismatch(struct daemon *daemon, const char *text)
{
    struct program *program = daemon->program;
    if (program == NULL || !program->present || program->dead ||
        state_of(program) != SGP_NODE_JOINING)
        return;
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_REFUSED, .code = SGP_E_MODEL};
    (void)snprintf(frame.text, sizeof frame.text, "%.375s", text);
    say(program, &frame);
    lose(program, "a neighbour trains another model");
    if (!daemon->run.begun)
        (void)uv_timer_start(&program->forgets, on_forgets, PROGRAM_FORGET_MS, 0);
}

static int check_guest(
    const struct program *program, const struct guest *guest, struct sgp_error *error)
{
    const struct daemon *daemon = program->daemon;
    if (program->present)
        return sgp_fail(error, -EBUSY, "%s: program '%s' (pid %d) is attached; one at a time",
            daemon->config->name, program->name, program->guest.pid);
    if (daemon->resets)
        return sgp_fail(
            error, -EAGAIN, "%s: the node begins another run; attach again", daemon->config->name);
    if (daemon->stopping || daemon->ending)
        return sgp_fail(error, SGP_E_STATE, "%s: the node stops", daemon->config->name);
    int64_t rounds = guest->hello.rounds, own = daemon->prepared->rounds;
    if (rounds >= 0 && !daemon->prepared->open &&
        rounds != own) /* an open end the program counts itself */
        return sgp_fail(error, SGP_E_CONFIG,
            "%s: the program asks for %" PRId64 " rounds, and [train] rounds is %" PRId64
            "; leave it out in one of the two",
            daemon->config->name, rounds, own);
    return shared_compare(daemon->prepared->layout, guest->shared.layout, error);
}

/* The program wants another run than the one that this node has trained, or is about to train. */
static bool asks_for_reset(const struct program *program, const struct guest *guest)
{
    const struct daemon *daemon = program->daemon;
    struct sgp_error ignored = {0};
    bool fresh = (guest->hello.flags & SGP_ATTACH_FRESH) != 0 && !program->present;
    if (uv_is_active((const uv_handle_t *)&program->forgets) && !daemon->stopping)
        return true;
    return fresh && !daemon->stopping && !daemon->ending &&
           (daemon->run.begun ||
               shared_compare(daemon->prepared->layout, guest->shared.layout, &ignored) < 0);
}

static void on_entered(void *context, struct guest *guest)
{
    struct program *program = context;
    struct sgp_error error = {0};
    if (program->dead && !program->waits) {
        program->next = *guest;
        program->waits = true;
        return;
    }
    if (asks_for_reset(program, guest)) {
        forget_model(program);
        sgp_log(&program->daemon->log->sink, SGP_LEVEL_INFO, "event=anew program=\"%.63s\" pid=%d",
            guest->hello.text, guest->pid);
    }
    int code = check_guest(program, guest, &error);
    if (code == 0) {
        take_in(program, guest, true);
        program_settle(program->daemon);
        return;
    }
    sgp_log(&program->daemon->log->sink, SGP_LEVEL_WARNING,
        "event=refused program=\"%.63s\" pid=%d reason=\"%s\"", guest->hello.text, guest->pid,
        error.text);
    door_refuse(guest, code, error.text);
    if (program->daemon->resets)
        events_settle(program->daemon); /* daemon.c orders the end */
}

/* ---- frames from it ---- */

static void on_done(struct program *program, const struct sgp_attach_frame *frame)
{
    if (frame->turn == 0 || frame->turn > program->turn) {
        lose(program, "it ended a turn that it was not given");
        return;
    }
    if (frame->turn == program->turn)
        program->late = false;
    if (!program->turn_out || frame->turn != program->turn)
        return; /* taken back meanwhile */
    program->turn_out = false;
    program->done = *frame;
    if (!push(program, &program->daemon->kinds.take_back, run_take_back, done_take_back))
        lose(program, "the node has no weight left to train with");
}

static void on_report(struct program *program, const struct sgp_attach_frame *frame)
{
    if (isnan(frame->test_loss) && isnan(frame->test_accuracy))
        return;
    chores_reported(program->daemon,
        &(struct sgp_evaluation){
            .samples = 1, .loss = frame->test_loss, .accuracy = frame->test_accuracy});
}

/* ---- decisions of all programs ---- */

static void send_words(struct program *program, uint32_t count)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_TOLD, .size = count};
    memcpy(frame.text, program->words, sizeof frame.text);
    program->words[0] = '\0';
    say(program, &frame);
}

/* A node whose program waits in a decision is waited for in its round; and a member that was started again may need that round for
 * its program's first turn, and so for its word. So such a node pauses after a while. Its turn stays its own. */
#define DECISION_PATIENCE_MS 5000

static void on_undecided(uv_timer_t *timer)
{
    struct program *program = timer->data;
    if (!program->daemon->facts.asks || program->holds || program->daemon->programless)
        return;
    program->undecided = true;
    post(program, SGP_EVENT_PAUSE, 0);
}

static void end_decision(struct program *program)
{
    (void)uv_timer_stop(&program->decision);
    bool resumes = program->undecided && !program->holds && !program->daemon->programless;
    program->undecided = false;
    if (resumes && !program->daemon->ending && !is_over(state_of(program)))
        post(program, SGP_EVENT_RESUME, 0);
}

/* As many words to a frame as it holds. */
static void decided(
    struct daemon *daemon, const char *author, const char *text, uint32_t index, uint32_t count)
{
    struct program *program = daemon->program;
    size_t used = strlen(program->words), more = strlen(author) + strlen(text) + 2;
    if (used + more + 1 > sizeof program->words) {
        send_words(program, count);
        used = 0;
    }
    (void)snprintf(program->words + used, sizeof program->words - used, "%s %s\n", author, text);
    if (index + 1 < count)
        return;
    send_words(program, count);
    end_decision(program);
}

static void on_tell(struct program *program, const struct sgp_attach_frame *frame)
{
    struct sgp_error error = {0};
    struct sgp_attach_frame answer = {.type = SGP_ATTACH_TOLD};
    program->daemon->facts.decided = decided;
    if (frame->code != 0) {
        answer.code = -EAGAIN;
        if (!facts_missing(program->daemon, answer.text, sizeof answer.text))
            return; /* all was told meanwhile */
        facts_forget_program(program->daemon);
        end_decision(program);
        say(program, &answer);
        return;
    }
    size_t length = strlen(frame->text), printable = 0;
    while (printable < length && frame->text[printable] >= ' ' && frame->text[printable] <= '~')
        printable++;
    if (length == 0 || length >= SGP_FACT_BYTES || printable < length) {
        lose(program, "its word in a decision is not 1 to 199 printable characters");
        return;
    }
    (void)uv_timer_start(&program->decision, on_undecided, DECISION_PATIENCE_MS, 0);
    answer.code = facts_tell(program->daemon, frame->text, &error);
    (void)snprintf(answer.text, sizeof answer.text, "%.370s", error.text);
    if (answer.code < 0) {
        end_decision(program);
        say(program, &answer);
    }
}

/* Whom a node that has not begun waits for. */
static void say_awaited(struct program *program)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_AWAITED};
    edges_awaited(program->daemon, frame.text, sizeof frame.text);
    say(program, &frame);
}

static void on_frame(struct program *program, const struct sgp_attach_frame *frame, int descriptor)
{
    switch (frame->type) {
    case SGP_ATTACH_DONE:
        on_done(program, frame);
        break;
    case SGP_ATTACH_FINISH:
        program->finishing = true;
        program->late = false;
        /* program_settle sees to what follows */
        break;
    case SGP_ATTACH_REPORT:
        on_report(program, frame);
        break;
    case SGP_ATTACH_ENOUGH:
        if (!program->enough) /* once is all that it can say */
            sgp_log(&program->daemon->log->sink, SGP_LEVEL_INFO,
                "event=enough program=\"%s\" reason=\"%.200s\"", program->name, frame->text);
        program->enough = true;
        post(program, SGP_EVENT_ENOUGH, 0);
        break;
    case SGP_ATTACH_TELL:
        on_tell(program, frame);
        break;
    case SGP_ATTACH_AWAITS:
        say_awaited(program);
        break;
    case SGP_ATTACH_KEEP:
        program->keeps = true; /* program_settle writes it */
        break;
    case SGP_ATTACH_EVALUATED:
    case SGP_ATTACH_PREDICTED:
        if (questions_take(&program->questions, frame, descriptor) < 0)
            lose(program, "it answered what it was not asked");
        break;
    case SGP_ATTACH_DETACH:
        lose(program, "it detached");
        break;
    default:
        lose(program, "it said what a program does not say");
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct program *program = poll->data;
    struct sgp_attach_frame frame;
    int descriptor = -1;
    int code = sgp_attach_receive(program->guest.socket, &frame, &descriptor);
    if (code == -EAGAIN || code == -EINTR)
        return;
    if (code < 0)
        lose(program, code == SGP_E_CLOSED ? "its end" : sgp_strerror(code));
    else
        on_frame(program, &frame, descriptor);
    if (descriptor >= 0)
        (void)close(descriptor);
    program_settle(program->daemon);
}

/* ---- what the rest of the daemon asks ---- */

void program_same_updates(struct daemon *daemon)
{
    if (daemon->program != NULL)
        daemon->program->same = true;
}

void program_train(struct daemon *daemon, uint32_t steps, double pace)
{
    daemon->program->steps = steps;
    daemon->program->taken = 0;
    daemon->program->training = (struct sgp_training){.samples = 0};
    daemon->program->pace = pace;
    give_turn(daemon->program); /* program_settle sees to it if nobody is there */
}

static void on_patience(uv_timer_t *timer)
{
    struct program *program = timer->data;
    if (program->steps > 0)
        cancel_steps(program);
    program_settle(program->daemon);
}

void program_settle(struct daemon *daemon)
{
    struct program *program = daemon->program;
    if (program == NULL || daemon->ending)
        return;
    if (program->keeps) /* one that is under way may be of an earlier round: another follows it */
        program->keeps = survive_checkpoint(daemon) == -EBUSY;
    if (program->finishing && !program->ended && !program->job) {
        program->ended =
            true; /* first of all: at its own pace a node begins the next round at once */
        post(program, SGP_EVENT_STEPS_END, 0); /* ignored where the end is configured */
    }
    if (program->steps > 0 && (!program->present || program->dead))
        wait_for_program(program);
    else if (program->steps > 0 && program->finishing && !program->job)
        (void)uv_timer_start(
            &program->patience, on_patience, 0, 0); /* not from here: the next TRAIN may follow */
    give_turn(program);
    tell_end(program);
}

void program_yield(struct daemon *daemon)
{
    struct program *program = daemon->program;
    if (program != NULL && program->steps > 0)
        (void)uv_timer_start(&program->patience, on_patience, PROGRAM_YIELD_MS, 0);
}

void program_holds(struct daemon *daemon, bool paused)
{
    if (daemon->program != NULL)
        daemon->program->holds = paused;
}

bool program_is_busy(const struct daemon *daemon)
{
    const struct program *program = daemon->program;
    return program != NULL && program->present && !program->answered;
}

void program_view(const struct daemon *daemon, struct view_program *ret_view)
{
    const struct program *program = daemon->program;
    *ret_view = (struct view_program){.wanted = program != NULL, .socket = daemon->config->attach};
    if (program == NULL)
        return;
    ret_view->attached = program->present && !program->dead;
    ret_view->turn = program->turn_out;
    ret_view->pid = ret_view->attached ? program->guest.pid : 0;
    ret_view->seconds = program->turn_out || program->daemon->programless
                            ? (double)(events_now() - program->since) / (double)SGP_SECOND
                            : NAN;
    (void)snprintf(
        ret_view->name, sizeof ret_view->name, "%s", ret_view->attached ? program->name : "");
}

/* ---- what onlookers ask of it ---- */

static int ask(struct daemon *daemon, uint32_t offer, const char *what,
    const struct question *question, struct sgp_error *error)
{
    struct program *program = daemon->program;
    if (daemon->ending)
        return SGP_E_STATE;
    if (!program->present || program->dead)
        return sgp_fail(
            error, SGP_E_STATE, "the model is a program's, and none is attached; start it");
    if (!(program->guest.hello.flags & offer))
        return sgp_fail(error, SGP_E_STATE, "program '%s' was attached without on_%s: it cannot",
            program->name, what);
    if (program->answered)
        return sgp_fail(
            error, SGP_E_STATE, "program '%s' has finished: it answers no more", program->name);
    int code = questions_add(&program->questions, question);
    if (code == 0)
        give_turn(program);
    return code;
}

static int evaluate(void *context, view_evaluated done, void *argument, struct sgp_error *error)
{
    const struct question question = {.evaluated = done, .argument = argument};
    return ask(context, SGP_ATTACH_EVALUATES, "evaluate", &question, error);
}

static int predict(void *context, const float *features, uint64_t rows, uint32_t columns,
    view_predicted done, void *argument, struct sgp_error *error)
{
    const struct question question = {.predicted = done,
        .argument = argument,
        .features = features,
        .rows = rows,
        .columns = columns};
    return ask(context, SGP_ATTACH_PREDICTS, "predict", &question, error);
}

void program_offer(const struct prepared *prepared, struct view_actions *actions)
{
    if (prepared->attached == NULL)
        return;
    actions->evaluate = evaluate;
    actions->predict = predict;
}

int program_open(struct daemon *daemon, struct guest *guest, struct sgp_error *error)
{
    if (daemon->prepared->attached == NULL)
        return 0;
    struct program *program = calloc(1, sizeof *program);
    if (program == NULL)
        return sgp_fail(error, -ENOMEM, "out of memory");
    *program = (struct program){
        .daemon = daemon, .told = SGP_ROUND_NONE, .questions.figures = &daemon->figures};
    int code = door_open(
        &daemon->loop, daemon->config->attach, on_entered, program, error, &program->door);
    if (code < 0) {
        free(program);
        return code;
    }
    (void)uv_timer_init(&daemon->loop, &program->patience);
    program->patience.data = program;
    (void)uv_timer_init(&daemon->loop, &program->decision);
    program->decision.data = program;
    (void)uv_timer_init(&daemon->loop, &program->forgets);
    program->forgets.data = program;
    daemon->program = program;
    if (guest != NULL)
        take_in(program, guest, false);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_decision_closed(uv_handle_t *handle)
{
    struct program *program = handle->data;
    uv_close((uv_handle_t *)&program->forgets, on_closed);
}

static void on_patience_closed(uv_handle_t *handle)
{
    struct program *program = handle->data;
    uv_close((uv_handle_t *)&program->decision, on_decision_closed);
}

void program_close(struct daemon *daemon)
{
    struct program *program = daemon->program;
    if (program == NULL)
        return;
    lose(program, "the daemon ends");
    if (program->waits)
        door_refuse(&program->next, SGP_E_STATE, "the daemon ends");
    door_close(program->door);
    daemon->program = NULL;
    uv_close((uv_handle_t *)&program->patience, on_patience_closed);
}
