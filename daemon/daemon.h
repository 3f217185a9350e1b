/* The running node: one loop thread that owns the core, the links and the pools, and one compute
 * thread that alone writes model vectors.
 *
 *   daemon.c    life: open, the loop, timers, signals, the end
 *   performer.c the core's effects carried out, and what comes of them posted back
 *   edges.c     which connection belongs to which edge of the topology
 *   inquiry.c   questions about what a node that is gone has accepted
 *   reload.c    another topology file, without a pause
 *   survive.c   the ledger and the checkpoints: what an earlier process left, and what we leave
 *   chores.c    jobs that the core knows nothing of: evaluate, predict, save
 *   notes.c     lines for people: the log, STATUS=, whom we wait for
 *   inspect.c   what onlookers see and order (view.h)
 *
 * Nothing a peer does ends the process. What does: an order to stop, the end of training with
 * `when_done = exit`, and failures before the loop begins. Thread: the loop thread. */
#ifndef SGPD_DAEMON_H
#define SGPD_DAEMON_H

#include "config.h"
#include "control.h"
#include "dialer.h"
#include "figures.h"
#include "history.h"
#include "ledger.h"
#include "listener.h"
#include "log.h"
#include "notify.h"
#include "prepare.h"
#include "view.h"
#include "worker.h"

#include "sgp/buffer.h"
#include "sgp/checkpoint.h"
#include "sgp/driver.h"

#define DAEMON_CHORES_MAX 16u            /* jobs for onlookers at one time: -EBUSY beyond */
#define DAEMON_WAIT_NS (3 * SGP_SECOND)  /* waiting for longer is said */
#define DAEMON_LASTS_NS (2 * SGP_SECOND) /* an end that lasts so long is one */

/* How many lines of a kind were told of a link since then: a hash of what they say is the kind. */
#define LINK_LINES_KINDS 32u
#define LINK_LINES_MAX 5u /* of a kind in ... */
#define LINK_LINES_NS (10 * SGP_SECOND)
struct link_lines {
    sgp_time since;
    uint64_t dropped;
    uint8_t counts[LINK_LINES_KINDS];
};

/* A link of the core, over all its connections. */
struct edge {
    struct link *links; /* those that still close, the present connection, one that waits aside */
    uint64_t bytes_sent, bytes_received; /* of closed connections */
    char error[SGP_TEXT_BYTES];          /* of the last failure, "" if none since it came up */
    char previous[SGP_TEXT_BYTES];       /* of the last one before that */
    struct link_lines lines;
    uint32_t outsized;          /* shares returned as outsized ... */
    uint64_t outsized_accepted; /* ... since so many had been accepted */
};

struct task;       /* a job with its arguments: task.h */
struct task_block; /* and many of them */

/* The checkpoint that an earlier process left, while the daemon starts. */
struct survive_found {
    struct sgp_checkpoint checkpoint;
    float *memory; /* of its vectors; NULL: none that can be used */
    bool any;      /* a file was there */
    bool exact;    /* it and the ledger describe one moment */
};

struct daemon {
    uv_loop_t loop;
    const struct config *config;
    struct prepared *prepared;
    struct log *log;
    uint64_t lineage;
    sgp_time started;

    struct sgp_node *node;
    struct sgp_driver driver;
    struct sgp_effects effects;
    struct sgp_pool snapshots, receives; /* an index is a slot of the core */
    struct sgp_share *incoming;          /* by receive slot: the share that lies in it */

    /* The node's own estimate when it published last, to measure neighbours against. `weight` follows
     * the core's w from effect to effect; after giving it is not known until the round is complete. */
    double weight;
    uint32_t own_slot; /* SGP_SLOT_NONE before the first */
    sgp_round own_round;
    double own_weight;
    uint64_t published; /* rounds, since the start */
    double own_largest; /* magnitude in our estimate, SGP_LOOK_ROUNDS old at most; 0: none yet */

    struct edge *edges; /* in the order of sgp_node_link_status */
    struct edge gone;   /* whose peer the topology does not name any more: connections that close */
    uint32_t edge_count;
    uint32_t out_count;
    uint32_t *peers; /* by edge; out-edges by peer, then in-edges by peer */
    uint64_t connections;
    struct link *failed_links; /* DOWN is still to be posted */

    struct worker worker;
    struct task_block *task_blocks;
    uint32_t task_count;
    struct task *free_tasks;
    uint32_t chores; /* jobs for onlookers under way */

    struct listener listener;
    struct dialer dialer;
    struct dialer inquirer; /* for the question asked last */
    struct link *inquiry;   /* on which it was asked, until it is answered; or NULL */
    struct sgp_inquire question;
    char question_source[SGP_NAME_BYTES], question_target[SGP_NAME_BYTES];
    struct control *control;
    uv_timer_t tick;   /* the core's deadline */
    uv_timer_t second; /* STATUS=, whom we wait for */
    uv_timer_t watchdog;
    uv_signal_t signals[3];

    int state_lock; /* the state directory, locked for this process; -1: not */
    struct ledger ledger;
    struct survive_found found;
    uv_timer_t checkpoint_timer;
    bool checkpointing; /* one is being written */

    view_left left; /* whoever asked the node to leave and waits; NULL: nobody */
    void *left_argument;

    struct figures figures;
    struct history history;
    struct notify notify;
    char last_error[SGP_TEXT_BYTES];
    sgp_time wait_told; /* waiting_since of the wait last told */
    bool deaf_told;     /* the log's last word is that nobody is heard */
    bool divergence_told;
    sgp_time row_told;       /* when a row of the history was last logged */
    sgp_time finished_since; /* the latest time */
    bool measure_due;        /* an epoch ended: evaluate when this round is complete */
    bool changed;            /* x may have changed since the model was saved */
    uint32_t saves;          /* under way */
    bool unsaved;            /* the latest try to save the model failed */
    bool stopping;           /* a clean end was asked for, or the work is done */
    bool signalled;          /* by SIGTERM or SIGINT: another one ends at once */
    bool drained;            /* the core has ended */
    bool ending;             /* handles are being closed */
    int exit_status;
};

/* Run a prepared node until it is told to stop. Returns the exit status of the process; what failed
 * has been logged. */
int daemon_run(const struct config *config, struct prepared *prepared, struct log *log);

/* ---- daemon.c, for the other files ---- */

sgp_time daemon_now(void);

/* Give the core an event (its `now` is filled in), then settle what came of it. Never from a verb. */
void daemon_post(struct daemon *daemon, struct sgp_event event);

/* After links failed outside of a step: tell the core, end if it is time, and set the clock. */
void daemon_settle(struct daemon *daemon);

/* What this node says of itself to one that is no neighbour. */
void daemon_pulse(void *context, struct sgp_pulse *ret_pulse);

/* Ask for a clean end, as SIGTERM does. */
void daemon_stop(struct daemon *daemon);

/* ---- performer.c ---- */

extern const struct sgp_driver_verbs daemon_verbs;
/* ---- edges.c ---- */

int edges_init(struct daemon *daemon);
void edges_finish(struct daemon *daemon);
/* Lay out the edges of the core's links of now in these arrays (one element for each link, all zero),
 * and carry connections and figures over from the former ones, by name; frees those. */
void edges_remap(struct daemon *daemon, const struct sgp_topology *former,
    const struct sgp_topology *topology, struct edge *edges, uint32_t *peers);
struct edge *edges_find(struct daemon *daemon, uint32_t peer, enum sgp_direction direction);
struct link *edges_link(struct daemon *daemon, const struct sgp_link *id);
struct link *edges_present(const struct edge *edge); /* NULL: none */
void edges_on_hello(void *context, struct link *link, const struct sgp_message *hello);
void edges_on_dialled(void *context, uint32_t peer, struct link *link, int code);
void edges_close(struct daemon *daemon);
void edges_bytes(const struct edge *edge, uint64_t *ret_sent, uint64_t *ret_received);
/* A share came back, or was refused, as outsized. */
void edges_note_outsized(struct edge *edge, const struct sgp_peer_status *status);
/* How many of the latest shares were, none having been accepted between. */
uint32_t edges_outsized(const struct edge *edge, const struct sgp_peer_status *status);

/* ---- inquiry.c ---- */

void inquiry_init(struct daemon *daemon);
/* Ask it of this peer, instead of the question before; SGP_EVENT_ANSWER follows, never from within. */
void inquiry_ask(struct daemon *daemon, uint32_t peer, const struct sgp_inquire *question);
/* A stranger asks: answer, and end the connection. */
void inquiry_answer(void *context, struct link *link, const struct sgp_message *message);
void inquiry_close(struct daemon *daemon);

/* ---- reload.c ---- */

/* Read the topology file again and go on with it: all or nothing. Returns 0, or why the former one was
 * kept: SGP_E_STATE when the node ends, -ENOMEM, else the file's fault, with one line in *error. */
int reload_topology(struct daemon *daemon, struct view_reload *ret_reload, struct sgp_error *error);

/* ---- survive.c ---- */

/* Open the ledger, read the last checkpoint, and decide with what lineage, weight and parameters the
 * node goes on: completes *config and puts the parameters into the learner. */
int survive_open(struct daemon *daemon, struct sgp_node_config *config, struct sgp_error *error);
/* Once there are snapshot slots: put back what is owed since then, and forget the checkpoint. */
void survive_restore(struct daemon *daemon);
void survive_start_timer(struct daemon *daemon);
/* The node has left for good: put its ledger and its checkpoints aside, so that a later start is that
 * of a new member. The model stays. */
void survive_retire(struct daemon *daemon);
/* Write a checkpoint of this place in the queue of jobs: 0, -EBUSY or SGP_E_STATE. */
int survive_checkpoint(struct daemon *daemon);

/* ---- chores.c: 0, or -EBUSY, -ENOMEM, SGP_E_STATE when it cannot begin ---- */

/* Evaluate x / weight as it is at this place in the queue, then add a row to the history. */
void chores_measure(struct daemon *daemon, sgp_round round, double weight);
/* Write x / weight to STATE/model.safetensors. */
void chores_save(struct daemon *daemon, sgp_round round, double weight);
int chores_evaluate(void *context, view_evaluated done, void *argument);
int chores_estimate(void *context, view_estimated done, void *argument);
int chores_predict(
    void *context, const float *features, uint64_t rows, view_predicted done, void *argument);

/* ---- notes.c ---- */

void notes_note(struct daemon *daemon, const struct sgp_effect *note);
void notes_status_line(struct daemon *daemon);
/* Say that training diverges, and that it has come back, once each. */
void notes_divergence(struct daemon *daemon);
/* We end a connection: why. */
void notes_hang_up(
    struct daemon *daemon, const struct sgp_link *link, int code, enum sgp_reason reason);
/* A node called, and has been given to this edge: is there another of its name? */
void notes_namesake(struct daemon *daemon, struct edge *edge, const struct link *caller);
/* Tell what was left out about links, once that is some time ago. */
void notes_lines_dropped(struct daemon *daemon);
/* A connection failed; fills edge->error. */
void notes_link_failed(
    struct daemon *daemon, const struct link *link, struct edge *edge, int code, const char *text);
void notes_error(struct daemon *daemon, const char *format, ...) SGP_PRINTF(2, 3);

/* ---- inspect.c ---- */

/* Whether a link is from a source that is not heard (not yet, or no longer). */
bool inspect_unheard(const struct sgp_peer_status *peer);

/* Whether a node that has begun hears none of the sources that its file names. */
bool inspect_hears_nobody(const struct daemon *daemon);

void inspect_actions(struct daemon *daemon, struct view_actions *ret_actions);

#endif
