/* SPDX-License-Identifier: Apache-2.0 */
/* The state that the files of a running node share: one struct, in groups that name the file to
 * which they belong.
 *
 * The loop thread owns the core, the links and the pools. One compute thread writes model vectors.
 * When it has nothing to do, the loop thread may write them (worker.h). Thread: the loop thread. */
#ifndef SGPD_STATE_H
#define SGPD_STATE_H

#include "colocated_owner.h"
#include "net/callers.h"
#include "setup/config.h"
#include "control/control.h"
#include "net/dialer.h"
#include "util/exit_status.h"
#include "util/figures.h"
#include "store/history.h"
#include "store/ledger.h"
#include "store/privacy_account.h"
#include "net/listener.h"
#include "net/pulls.h"
#include "util/log.h"
#include "util/notify.h"
#include "setup/prepare.h"
#include "store/recorder.h"
#include "store/scalars.h"
#include "util/spin.h"
#include "facts.h"
#include "statements.h"
#include "util/view.h"
#include "util/worker.h"

#include "sgp/checkpoint.h"
#include "sgp/driver.h"
#include "sgp/fleet.h"
#include "sgp/perform.h"
#include "sgp/run.h"

/* an end that lasts this long is final; before that, neighbours may still mix */
#define STATE_LASTS_NS (2 * SGP_SECOND)

/* The number of lines of each kind that were logged about a link since `since`. The kind is a hash
 * of the line's content. */
#define LINK_LINES_KINDS 32u
struct link_lines {
    sgp_time since;
    uint64_t dropped;
    uint8_t counts[LINK_LINES_KINDS];
};

/* What the guard has done with the shares of a source (sgp/guard.h). */
struct edge_clips {
    uint64_t judged, clipped;
    double recent; /* the part of the latest shares that were clipped */
    bool told;     /* nearly all of them were, which was logged */
};

/* A link of the core, with all its connections. */
struct edge {
    uint32_t peer;
    /* connections that are closing, the present one, and a pending second one */
    struct link *links;
    uint64_t bytes_sent, bytes_received; /* of closed connections */
    char error[SGP_TEXT_BYTES];          /* the last failure; "": none since the link came up */
    char previous[SGP_TEXT_BYTES];       /* the failure before it */
    /* the peer's message at the end of the last connection: notes.c */
    char farewell[SGP_TEXT_BYTES];
    char unlike[SGP_TEXT_BYTES]; /* how its model differs; "": not known: notes.c */
    struct link_lines lines;
    bool ciphered;     /* one of its connections was ciphered: trust.c */
    bool calling;      /* its source is being called: calls.c */
    bool undialled;    /* there was no memory to dial it, and DOWN must be posted: events.c */
    uint32_t outsized; /* shares that returned as outsized ... */
    uint64_t outsized_accepted; /* ... since this number was accepted */
    struct edge_clips clips;    /* of an in-link */
};

/* What this node has said about itself last. */
struct fleet_own {
    uv_timer_t timer;
    bool publishes;
    uint64_t next; /* turn, in ms by the clock of the loop */
    sgp_time told; /* when, or SGP_TIME_NEVER */
    enum sgp_node_state state;
    uint64_t topology; /* digest */
    sgp_round round;
    bool withheld;    /* what tells of rows of data */
    uint64_t rollout; /* documents_shows */
};

struct reports;    /* what all nodes tell of their models: reports.h */
struct guests;     /* invitations, and machines that use them: guests.c */
struct formers;    /* nodes that were struck: formers.h */
struct rollouts;   /* votes on them: rollouts.c */
struct documents;  /* signed topology files: documents.h */
struct kept;       /* the best model: kept.h */
struct program;    /* a program that trains through this daemon: program.h */
struct task;       /* a job with its arguments: task.h */
struct task_block; /* an array of tasks */

/* The best model, once it takes the place of the last one: after training. */
struct kept_model {
    bool ready;
    uint64_t version; /* grows when it becomes ready, and whenever it is replaced; 0: never */
    char path[CONFIG_TEXT_BYTES]; /* of its file */
    struct view_best best;
};

/* The checkpoint of an earlier process, while the daemon starts. */
struct survive_found {
    struct sgp_checkpoint checkpoint;
    float *memory; /* memory of its vectors; NULL: there is none that can be used */
    bool any;      /* there was a file */
    bool exact;    /* it matches the ledger exactly */
    bool current;  /* it has the residuals of updates up to now */
    /* Round of the parameters, if that is before the ledger's. Otherwise SGP_ROUND_NONE. Until a
     * neighbour's parameters are adopted (milestones.c), or a program was told (turns.c). */
    sgp_round older;
    /* The round at which training went on from the first parameters, because none were left; 0: it
     * did not. Until a neighbour's parameters are adopted (milestones.c), or a program has put its
     * own back (turns.c). */
    sgp_round lost;
};

struct daemon {
    /* daemon.c, at the start; reload.c enlarges it */
    uv_loop_t loop;
    const struct config *config;
    struct prepared *prepared;
    struct log *log;
    uint64_t incarnation;
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
    uv_timer_t second; /* updates STATUS=, and the peer for which the node waits */
    uv_timer_t watchdog;
    uv_signal_t signals[3];
    uv_signal_t colocated_owner_ends;        /* colocated_owner.c */
    uv_poll_t colocated_owner_tells;         /* likewise */
    struct colocated_owner *colocated_owner; /* the co-located owner; NULL: none */
    struct figures figures;
    struct notify notify;
    struct recorder recorder;
    bool signalled; /* by SIGTERM or SIGINT; another signal ends the process at once */
    bool parted;    /* the node has ended */
    bool ending;    /* handles are being closed */
    int exit_status;

    /* events.c */
    uv_timer_t tick;                        /* the core's deadline */
    uv_prepare_t turn;                      /* before the loop waits */
    struct spin spin;                       /* while it waits */
    void (*settled)(struct daemon *daemon); /* called after each event, to decide whether to end */
    /* called before the loop waits, to fill the queues of links */
    void (*turned)(struct daemon *daemon);

    /* edges.c */
    /* in the order of sgp_node_link_status: out-edges by peer, then in-edges by peer */
    struct edge *edges;
    /* for connections that are closing and whose peer is not in the topology any more */
    struct edge gone;
    uint32_t edge_count;
    uint32_t out_count;
    struct link *unsent; /* links with messages that edges_flush writes */

    /* neighbours.c */
    uint64_t connections;
    struct link *failed_links; /* DOWN must be posted for these, by events.c */
    bool undialled;            /* one or more edges are `undialled` */
    bool unasked; /* there was no memory to inquire, so an empty answer must be posted */

    /* calls.c */
    struct dialer caller;
    struct link *calls; /* outgoing calls without a greeting */
    uv_timer_t call_timer;

    /* trust.c */
    struct callers callers;

    /* bulletins.c */
    struct sgp_survey *survey; /* of the scaling; NULL: no scaling of the fleet is used */
    struct pulls pulls;

    /* reports.c */
    struct reports *reports; /* NULL: none are collected */

    /* documents.c */
    struct documents *documents; /* NULL: the configuration names no administrators */

    /* formers.c */
    struct formers *formers; /* NULL likewise */

    /* rollouts.c */
    struct rollouts *rollouts; /* NULL likewise */
    bool struck;               /* the version in use does not name this node: it is silent */

    /* kept.c */
    struct kept *kept;            /* NULL: no best model is kept */
    struct kept_model kept_model; /* background_jobs.c saves and hands out this one */

    /* guests.c */
    struct guests *guests; /* NULL until guests_open */

    /* inquiry.c */
    struct dialer inquirer; /* for the last question */
    struct link *inquiry;   /* the link of the last question, until it is answered; or NULL */
    struct sgp_inquire question;
    char question_source[SGP_NAME_BYTES], question_target[SGP_NAME_BYTES];

    /* performer.c */
    struct {
        struct job_kind work[SGP_EFFECT_CURTAIL + 1]; /* for each effect */
        struct job_kind take;                         /* for ABSORB of a folded share: whole, */
        struct job_kind clip;                         /* or clipped by the guard */
        struct job_kind hand_out, take_back;          /* of turns.c */
    } kinds;
    bool measure_due; /* an epoch has ended: milestones.c evaluates when this round is complete */

    /* reload.c */
    /* the strictest of the files of this process before its last reload */
    enum sgp_tls tls_strictest;

    /* statements.c */
    struct statements statements;
    uint64_t statements_refused;

    /* facts.c; decision.c: decided, asks; attachments.c: asks */
    struct facts facts;

    /* fleet_rows.c */
    struct sgp_fleet *fleet; /* NULL until fleet_rows_open */

    /* fleet_own.c */
    struct fleet_own fleet_own;

    /* program.c */
    struct program *program; /* NULL: the model is built in */
    bool programless;        /* steps are due, and no program is attached */

    /* milestones.c */
    sgp_time finished_since; /* the latest time */
    bool drained;            /* the core has ended */
    /* the round at which the running step asks to stop; 0: it does not. daemon.c too */
    sgp_round asks_stop;

    /* task.c */
    struct task_block *task_blocks;
    uint32_t task_count;
    struct task *free_tasks;
    struct task *training; /* TRAIN, while it is running; or NULL */

    /* background_jobs.c */
    struct history history;
    struct scalars scalars;   /* the same rows for TensorBoard */
    sgp_time row_told;        /* when a row of the history was last logged */
    uint32_t background_jobs; /* running jobs for users */
    sgp_time evaluation_took; /* the latest one for a user; reports.c reads it */
    uint32_t saves;           /* running saves; a checkpoint is one */
    bool changed;             /* x may have changed since the model was saved */
    enum model_file {
        MODEL_NONE, /* this process has not begun to save */
        MODEL_WRITING,
        MODEL_WRITTEN,
        MODEL_FAILED,
    } model_file; /* the latest attempt to save the model */

    /* runs.c */
    struct sgp_run run;
    bool resets; /* orders.c, attachments.c: once the node has ended, its run is set aside */
    bool joins;  /* ... and the next start joins the run of the neighbours */

    /* survive.c */
    struct ledger ledger;
    struct survive_found found;
    uv_timer_t checkpoint_timer;
    bool checkpointing; /* a checkpoint is being written */

    /* privacy.c */
    struct privacy_account privacy; /* all zero without [privacy] */
    bool privacy_spent;             /* the latest steps were not taken: epsilon is spent */
    struct sgp_claim claim;         /* of the run's program, if `claimed` */
    bool claimed;

    /* orders.c */
    bool stopping;     /* a clean end was requested, or the work is done; */
    atomic_bool hurry; /* the compute thread leaves out what nobody needs then */
    view_left left;    /* called for the user who waits for the node to leave; NULL: none */
    void *left_argument;

    /* notes.c */
    char last_error[SGP_TEXT_BYTES]; /* "": none, or its subject is resolved */
    sgp_time last_error_at;
    sgp_time wait_told; /* waiting_since of the wait that was logged last */
    bool deaf_told;     /* the last log line on this says that no source is heard */
    bool divergence_told;
};

/* What the core reports of itself, and of a link, now. */
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
