/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the program (program.h). Each file calls those below it alone:
 *
 *   program.c    what the rest of the daemon asks
 *   guests.c     programs that come and go, and what they say
 *   due.c        after each event: a turn, or the end
 *   decision.c   words in decisions of all programs
 *   turns.c      the memory, by jobs of the compute thread
 *   frames.c     what is told to the program
 *
 * questions.c stands apart: what onlookers ask between two turns. Thread: the loop thread. */
#ifndef SGPD_PROGRAM_INSIDE_H
#define SGPD_PROGRAM_INSIDE_H

#include "program.h"

#include "events.h"
#include "facts.h"
#include "questions.h"
#include "task.h"

struct program {
    struct daemon *daemon;
    struct door *door;
    uv_timer_t patience; /* of an order that wants x back */
    uv_timer_t forgets;  /* the model that no neighbour has */
    unsigned timers;     /* these two and `decision`, until they have closed */

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
    uint64_t overflows;                /* turns in which it left out a step: OVERFLOWED */
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

    /* guests.c, for the files below it */
    void (*lose)(struct program *program, const char *why); /* it is gone, or does not behave */
    void (*bury)(struct program *program); /* a job of its memory is done: if it is gone */
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

/* The round, its weight and its number are filled in. One that cannot be told is lost. */
void program_say(struct program *program, struct sgp_attach_frame *frame);
void program_say_with(struct program *program, struct sgp_attach_frame *frame, int descriptor);

/* ---- turns.c ---- */

/* Whether the memory is the daemon's, and nobody uses it. */
bool turns_is_idle(const struct program *program);

/* Begin a job of its memory; false: the node has no weight, or ends. */
bool turns_push(struct program *program, struct job_kind *kind, void (*run)(struct job *),
    void (*done)(struct job *, bool));
void turns_run_show(struct job *job);
/* What the job was; each `done` begins with this. */
struct task turns_end_job(struct job *job);

/* What a frame tells of the turn before; each of it once. */
uint32_t turns_flags_since(struct program *program);

/* Once the memory is the daemon's: a question in the place of a turn, or the turn. */
void turns_give(struct program *program);

/* Take the turn back, and end the steps that are due. */
void turns_cancel(struct program *program);
/* Steps are due, and nobody takes them: others shall not wait. */
void turns_wait(struct program *program);

void turns_on_done(struct program *program, const struct sgp_attach_frame *frame);

/* ---- decision.c ---- */

void decision_on_tell(struct program *program, const struct sgp_attach_frame *frame);
/* All was told, or the program is gone. */
void decision_end(struct program *program);

/* ---- guests.c ---- */

void guests_take_in(struct program *program, struct guest *guest, bool resumed);
void guests_on_entered(void *context, struct guest *guest);
void guests_identify(void *context, struct sgp_attach_frame *frame);
void guests_lose(struct program *program, const char *why);
/* The last that is done of one that is gone: who came meanwhile takes its place. */
void guests_bury(struct program *program);

#endif
