/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the program (program.h). Each file calls only the files below it:
 *
 *   program.c      what the rest of the daemon calls
 *   attachments.c  programs attach and leave, and send frames
 *   due.c          after each event: a turn, or the end
 *   decision.c     words in decisions of all programs
 *   turns.c        the memory, by jobs of the compute thread
 *   frames.c       frames to the program
 *
 * questions.c is separate: what clients ask between two turns. Thread: the loop thread. */
#ifndef SGPD_PROGRAM_INSIDE_H
#define SGPD_PROGRAM_INSIDE_H

#include "program.h"

#include "events.h"
#include "facts.h"
#include "questions.h"
#include "task.h"

struct program {
    struct daemon *daemon;
    struct attach_socket *attach_socket;
    uv_timer_t patience; /* of an order that needs x */
    uint8_t passed;      /* rounds without steps since the loop paused */
    uv_timer_t forgets;  /* the model, if no neighbour has it */
    unsigned timers;     /* open timers: these two and `decision` */

    /* the attached program */
    bool present;
    bool dead; /* gone, while a job uses its memory */
    struct attachment attachment;
    struct attachment next; /* attached meanwhile: `waits` */
    bool waits;
    uv_poll_t *poll;
    char name[64];

    /* its state and its work */
    bool turn_out;  /* the program may write its memory */
    bool job;       /* a job uses its memory */
    bool keeps;     /* it has said KEEP, and no checkpoint began since */
    bool finishing; /* it has said FINISH */
    bool ended;     /* ... and the core was told */
    bool enough;    /* it has said ENOUGH */
    bool stopped;   /* it was told STOP */
    bool answered;  /* it was told FINISHED */
    bool late;      /* a turn was taken back, but it may write until its DONE */
    bool skipped;   /* the step of the previous turn did not count */
    bool jumped;    /* x does not continue the previous turn's estimate */
    bool same;      /* must be told that neighbours make the same updates */
    uint64_t turn;
    uint64_t overflows;                /* turns in which it left out a step: OVERFLOWED */
    sgp_time since;                    /* start of the turn, or of the program's absence */
    sgp_round told;                    /* round of the previous turn */
    struct sgp_attach_frame done;      /* of the turn that is taken back */
    double weight;                     /* of the turn */
    struct questions questions;        /* instead of a turn */
    uv_timer_t decision;               /* of a program that waits in a decision; */
    bool undecided;                    /* the node is paused meanwhile */
    char words[SGP_ATTACH_TEXT_BYTES]; /* of a decision: the next frame with them */

    /* the core's request */
    uint32_t steps;               /* turns until TRAINED; 0: none is due */
    uint32_t taken;               /* turns of the round that had a result, */
    struct sgp_training training; /* and the sum of their results */
    double pace;
    bool holds; /* an order pauses the node; the other reason is daemon->programless */

    /* attachments.c, for the files below it */
    /* it is gone, or violates the protocol */
    void (*lose)(struct program *program, const char *why);
    void (*bury)(struct program *program); /* a job of its memory is done: bury it if it is gone */
};

static inline enum sgp_node_state program_state(const struct program *program)
{
    return daemon_status(program->daemon).state;
}

static inline bool program_is_over(enum sgp_node_state state)
{
    return state == SGP_NODE_SETTLING || state == SGP_NODE_FINISHED || state == SGP_NODE_DRAINING;
}

static inline void program_post(struct program *program, enum sgp_event_type type, int code)
{
    events_post(program->daemon, (struct sgp_event){.type = type, .code = code});
}

/* ---- frames.c ---- */

/* The round, its weight and its number are filled in. A frame that cannot be sent is lost. */
void program_say(struct program *program, struct sgp_attach_frame *frame);
void program_say_with(struct program *program, struct sgp_attach_frame *frame, int descriptor);

/* ---- turns.c ---- */

/* Whether the daemon has the memory, and no job uses it. */
bool turns_is_idle(const struct program *program);

/* Begin a job that uses its memory. Returns false if the node has no weight, or ends. */
bool turns_push(struct program *program, struct job_kind *kind, void (*run)(struct job *),
    void (*done)(struct job *, bool));
void turns_run_show(struct job *job);
/* The task of a job; each `done` begins with this call. */
struct task turns_end_job(struct job *job);

/* What a frame tells about the previous turn; each flag is told once. */
uint32_t turns_flags_since(struct program *program);

/* Once the daemon has the memory: send a question, or the turn. */
void turns_give(struct program *program);

/* Take the turn back, and end the due steps. */
void turns_cancel(struct program *program);
/* Steps are due and no program takes them: pause, so that neighbours do not wait. */
void turns_wait(struct program *program);

void turns_on_done(struct program *program, const struct sgp_attach_frame *frame);

/* ---- decision.c ---- */

void decision_on_tell(struct program *program, const struct sgp_attach_frame *frame);
/* All words were told, or the program is gone. */
void decision_end(struct program *program);

/* ---- attachments.c ---- */

void attachments_take_in(struct program *program, struct attachment *attachment, bool resumed);
void attachments_on_entered(void *context, struct attachment *attachment);
void attachments_identify(void *context, struct sgp_attach_frame *frame);
void attachments_lose(struct program *program, const char *why);
/* The last step for a program that is gone. A program that attached meanwhile takes its place. */
void attachments_bury(struct program *program);

#endif
