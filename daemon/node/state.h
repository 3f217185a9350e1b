/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a running node share: one struct, in groups that name the file they belong to.
 *
 * A loop thread owns the core, the links and the pools; one compute thread writes model vectors, or the loop thread
 * while the other has nothing to do (worker.h).
 * Thread: the loop thread. */
#ifndef SGPD_STATE_H
#define SGPD_STATE_H

#include "beside.h"
#include "net/callers.h"
#include "setup/config.h"
#include "control/control.h"
#include "net/dialer.h"
#include "util/figures.h"
#include "store/history.h"
#include "store/ledger.h"
#include "net/listener.h"
#include "util/log.h"
#include "util/notify.h"
#include "setup/prepare.h"
#include "store/recorder.h"
#include "util/spin.h"
#include "facts.h"
#include "statements.h"
#include "util/view.h"
#include "util/worker.h"

#include "sgp/checkpoint.h"
#include "sgp/driver.h"
#include "sgp/perform.h"
#include "sgp/run.h"

#define STATE_LASTS_NS                                                                             \
    (2 * SGP_SECOND) /* an end that lasts so long is one: neighbours may yet mix on */

/* How many lines of a kind were told of a link since then: a hash of what they say is the kind. */
#define LINK_LINES_KINDS 32u

struct link_lines {
    sgp_time since;
    uint64_t dropped;
    uint8_t counts[LINK_LINES_KINDS];
};

/* A link of the core, over all its connections. */
struct edge {
    uint32_t peer;
    struct link *links; /* those that still close, the present connection, one that waits aside */
    uint64_t bytes_sent, bytes_received; /* of closed connections */
    char error[SGP_TEXT_BYTES];          /* of the last failure, "" if none since it came up */
    char previous[SGP_TEXT_BYTES];       /* of the last one before that */
    char farewell[SGP_TEXT_BYTES]; /* what the peer said when it ended the last one: notes.c */
    char unlike[SGP_TEXT_BYTES];   /* how its model differs, "" while that is not known: notes.c */
    struct link_lines lines;
    bool ciphered;  /* one of its connections was: trust.c */
    bool calling;   /* its source is being called: calls.c */
    bool undialled; /* there was no memory to dial it, and DOWN is still to be posted: events.c */
    uint32_t outsized;          /* shares returned as outsized ... */
    uint64_t outsized_accepted; /* ... since so many had been accepted */
};

struct program;    /* that trains through this daemon: program.h */
struct task;       /* a job with its arguments: task.h */
struct task_block; /* and many of them */

/* The checkpoint that an earlier process left, while the daemon starts. */
struct survive_found {
    struct sgp_checkpoint checkpoint;
    float *memory; /* of its vectors; NULL: none that can be used */
    bool any;      /* a file was there */
    bool exact;    /* it and the ledger describe one moment */
    bool current;  /* it holds what updates have left out until now */
    sgp_round
        older; /* round of the parameters, if that is before the ledger's; else SGP_ROUND_NONE. Until a neighbour's
                        are adopted (milestones.c), or a program was told (turns.c) */
};

struct daemon {
    /* daemon.c, at the start; reload.c makes more room */
    uv_loop_t loop;
    const struct config *config;
    struct prepared *prepared;
    struct log *log;
    uint64_t lineage;
    uint64_t seed; /* of the core */
    sgp_time started;
    struct sgp_node *node;
    struct sgp_driver driver;
    struct sgp_effects effects;
    struct sgp_performer performer;

    /* daemon.c */
    struct worker worker;
    struct listener listener;
    struct dialer dialer;
    struct control *control;
    uv_timer_t second; /* STATUS=, whom we wait for */
    uv_timer_t watchdog;
    uv_signal_t signals[3];
    uv_signal_t beside_ends; /* beside.c */
    uv_poll_t beside_tells;  /* likewise */
    struct beside *beside;   /* the owner beside this node; NULL: there is none */
    int state_lock;          /* the state directory, locked for this process; -1: not */
    struct figures figures;
    struct notify notify;
    struct recorder recorder;
    bool signalled; /* by SIGTERM or SIGINT: another one ends at once */
    bool parted;    /* the node has ended */
    bool ending;    /* handles are being closed */
    int exit_status;

    /* events.c */
    uv_timer_t tick;                        /* the core's deadline */
    uv_prepare_t turn;                      /* before the loop waits */
    struct spin spin;                       /* while it waits */
    void (*settled)(struct daemon *daemon); /* after each event: is it time to end? */

    /* edges.c */
    struct edge *edges; /* as sgp_node_link_status: out-edges by peer, then in-edges by peer */
    struct edge gone;   /* whose peer the topology does not name any more: connections that close */
    uint32_t edge_count;
    uint32_t out_count;
    struct link *unsent; /* with messages that edges_flush writes */

    /* neighbours.c */
    uint64_t connections;
    struct link *failed_links; /* DOWN is still to be posted, by events.c */
    bool undialled;            /* also of edges */
    bool unasked;              /* no memory to inquire: the answer, none, is still to be posted */

    /* calls.c */
    struct dialer caller;
    struct link *calls; /* made, and not greeted yet */
    uv_timer_t call_timer;

    /* trust.c */
    char objection[SGP_TEXT_BYTES]; /* to the latest key */
    struct callers callers;

    /* inquiry.c */
    struct dialer inquirer; /* for the question asked last */
    struct link *inquiry;   /* on which it was asked, until it is answered; or NULL */
    struct sgp_inquire question;
    char question_source[SGP_NAME_BYTES], question_target[SGP_NAME_BYTES];

    /* performer.c */
    struct {
        struct job_kind work[SGP_EFFECT_CURTAIL + 1]; /* by effect, */
        struct job_kind take;                         /* but for ABSORB of what was folded */
        struct job_kind hand_out, take_back;          /* of turns.c */
    } kinds;
    bool measure_due; /* an epoch ended: milestones.c evaluates when this round is complete */

    /* reload.c */
    enum sgp_tls tls_strictest; /* that a file of this process said before its last reload */

    /* statements.c */
    struct statements statements;
    uint64_t statements_refused;

    /* facts.c; decision.c: decided, asks; guests.c: asks */
    struct facts facts;

    /* program.c */
    struct program *program; /* NULL: the model is built in */
    bool programless;        /* steps are due, and nobody takes them */

    /* milestones.c */
    sgp_time finished_since; /* the latest time */
    bool drained;            /* the core has ended */
    sgp_round asks_stop;     /* in the step under way; 0: it does not. daemon.c too */

    /* task.c */
    struct task_block *task_blocks;
    uint32_t task_count;
    struct task *free_tasks;
    struct task *training; /* TRAIN, while it is under way; or NULL */

    /* chores.c */
    struct history history;
    sgp_time row_told; /* when a row of the history was last logged */
    uint32_t chores;   /* jobs for onlookers under way */
    uint32_t saves;    /* under way; a checkpoint is one */
    bool changed;      /* x may have changed since the model was saved */
    enum model_file {
        MODEL_NONE, /* this process has not begun one */
        MODEL_WRITING,
        MODEL_WRITTEN,
        MODEL_FAILED,
    } model_file; /* the latest try to save the model */

    /* runs.c */
    struct sgp_run run;
    bool resets; /* orders.c, guests.c: once the node has ended, its run is set aside */
    bool joins;  /* ... and the next start joins the run of the neighbours */

    /* survive.c */
    struct ledger ledger;
    struct survive_found found;
    uv_timer_t checkpoint_timer;
    bool checkpointing; /* one is being written */

    /* orders.c */
    bool stopping;  /* a clean end was asked for, or the work is done */
    view_left left; /* whoever asked the node to leave and waits; NULL: nobody */
    void *left_argument;

    /* notes.c */
    char last_error[SGP_TEXT_BYTES]; /* "" if none, or if what it begins with was mended */
    sgp_time last_error_at;
    sgp_time wait_told; /* waiting_since of the wait last told */
    bool deaf_told;     /* the log's last word is that nobody is heard */
    bool divergence_told;
};

/* What the core says of itself, and of a link, now. */
static inline struct sgp_node_status daemon_status(const struct daemon *daemon)
{
    struct sgp_node_status status;
    sgp_node_status(daemon->node, &status);
    return status;
}

static inline struct sgp_peer_status daemon_peer(const struct daemon *daemon, uint32_t index)
{
    struct sgp_peer_status peer;
    sgp_node_link_status(daemon->node, index, &peer);
    return peer;
}

#endif
