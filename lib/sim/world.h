/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a simulation: its structures, and what its files ask of each other.
 *
 *   sim.c      the run: one entry of the queue after another
 *   create.c   how a simulation begins and ends
 *   verbs.c    how the effects of a core are carried out
 *   crash.c    processes that die and begin again
 *   reload.c   hosts that get another topology file
 *   inquire.c  questions, each on a connection of its own
 *   arrive.c   what reaches a host
 *   compute.c  each host's compute thread: its jobs are performed, and what they do to the parameters is checked
 *   event.c    events: handed to a core, whose answer is checked
 *   summary.c  the totals
 *   rows.c     what is told of every round
 *   check_life.c  the invariants when a process dies or begins
 *   check.c    the invariants: running sums after every event, the full count every round
 *   unseen.c   weight that was accepted while its source still owes it
 *   send.c     what leaves a host: messages and payloads
 *   connection.c  connections, one per directed edge
 *   buffers.c  the memory of a host
 *   checkpoint.c  parameters that are written down
 *   chosen.c   coded updates: that nothing of them is lost
 *   owner.c    an owner's steps: who came in time, and that the mean is added
 *   stale.c    an owner at its own pace: how stale an update is, and what is made of it
 *   token.c    owning as a token: what it is worth, and that one node has it
 *   cycle.c    exact cycles: what goes in, and that its mean comes out
 *   job.c      each host's queue of jobs
 *   backup.c   records of an earlier moment
 *   options.c  what is asked for, checked and copied
 *   file.c     topology files: which one each host has
 *   link.c     both ends of every edge of any file
 *   network_model.c  which faults are on now
 *   stall.c    nobody advances any more, and why
 *   host.c     what its core is made for
 *   entry.c    entries of the queue
 *   failure.c  how a run fails
 *   sum.c      sums that lose nothing
 *
 * A file calls only those below it; upwards it speaks by the table of verbs and the queue.
 * Verbs never post: whatever they cause becomes an entry of the queue. One thread. */
#ifndef SGP_SIM_WORLD_H
#define SGP_SIM_WORLD_H

#include "base/queue.h"
#include "sgp/driver.h"
#include "sgp/perform.h"
#include "sgp/random.h"
#include "sgp/restart.h"
#include "sgp/sim.h"

/* ---- entries of the queue: kind | detail << 8 | index << 16 ---- */

enum sgp_sim_kind {
    SGP_SIM_START = 1,  /* index: host; detail: its life */
    SGP_SIM_TICK,       /* host */
    SGP_SIM_JOB,        /* host; detail: its life; the first of its queue is done */
    SGP_SIM_COMMAND,    /* host; detail: the event's type */
    SGP_SIM_GONE,       /* host */
    SGP_SIM_CRASH,      /* crash */
    SGP_SIM_REBIRTH,    /* crash */
    SGP_SIM_SAVE,       /* crash; its record is saved */
    SGP_SIM_RELOAD,     /* reload of the options */
    SGP_SIM_CHECKPOINT, /* host */
    SGP_SIM_LEAP,       /* host; its clock has leapt: what it waited for may be due */
    SGP_SIM_INQUIRED,   /* host; detail: which of its questions; it reaches whom it was asked of */
    SGP_SIM_HALF_OPEN,  /* half-open link of the options */
    SGP_SIM_DIALLED,    /* connection */
    SGP_SIM_ARRIVAL,    /* connection; detail: the side that hears */
    SGP_SIM_PAYLOAD,    /* connection; more of it, or all, is at the target */
    SGP_SIM_RESET,      /* connection; it breaks now */
    SGP_SIM_BROKEN,     /* connection; detail: the side that learns of it */
};

/* ---- compute ---- */

enum sgp_sim_job_kind {
    SGP_SIM_WORK = 1,     /* of the core: the performer does it */
    SGP_SIM_CHECKPOINTED, /* our own: parameters are written down */
    SGP_SIM_MEASURE,      /* our own: the round is complete once all before it is done */
};

struct sgp_sim_job {
    struct sgp_sim_job *next;
    enum sgp_sim_job_kind kind;
    uint32_t steps; /* of TRAIN; 0: it is another job, and takes no time */
    uint32_t taken;
    bool curtailed;           /* the present step is the last */
    bool of_cycle;            /* PUBLISH: the first of an exact cycle; MEASURE: its last round */
    bool checks, compensated; /* ABSORB of an owner at its own pace: as in struct sgp_sim_step, */
    uint32_t worker;          /* as this */
    sgp_round label;          /* FOLLOW */
    struct sgp_epoch epoch;   /* of a cycle: in force, */
    sgp_round start;          /* and where that began */
    union {
        struct sgp_work work; /* of the core; MEASURE: of its round and weight */
        struct {
            struct sgp_moment moment;    /* of a checkpoint, */
            uint32_t kept[SGP_KEPT_MAX]; /* and the snapshot slots that belong to it */
        };
    };
};

/* The first job of a queue. */
struct sgp_sim_running {
    sgp_time since, takes;
    uint32_t taken; /* steps */
};

enum sgp_sim_receive_state {
    SGP_SIM_RECEIVE_FREE = 0,
    SGP_SIM_RECEIVE_FILLING, /* a payload is on its way into it */
    SGP_SIM_RECEIVE_HELD,    /* the payload is whole */
    SGP_SIM_RECEIVE_TAKEN,   /* its ABSORB job is queued */
};

struct sgp_sim_receive {
    enum sgp_sim_receive_state state;
    struct sgp_share share;
    struct sgp_epoch epoch;
    bool told;  /* that the payload may be folded, */
    bool folds; /* and it is: then what came is `came` of the host */
};

/* ---- one machine ---- */

struct sgp_sim_checkpoint {
    float *x;    /* `dimension` values; NULL: the options want none */
    float *rest; /* behind it, as many: what updates have left out */
    float *kept; /* behind that, SGP_KEPT_MAX x dimension, */
    enum sgp_compressor compressors[SGP_KEPT_MAX]; /* and by which each was given */
    bool written;
    struct sgp_moment moment;
};

/* A topology file. Hosts are those of the first; another may call them by other indices. */
struct sgp_sim_file {
    const struct sgp_topology *topology;
    uint32_t *hosts;                    /* by node of the file */
    uint32_t *nodes;                    /* by host; SGP_SLOT_NONE: it is not in the file */
    double *weight_least, *weight_most; /* by node of the file */
};

struct sgp_sim_question { /* the one that a host asked last */
    bool asked;
    uint8_t serial;
    uint32_t whom; /* host */
    char source[SGP_NAME_BYTES], target[SGP_NAME_BYTES];
    struct sgp_inquire inquire; /* whose names are these */
};

#define SGP_SIM_LABELS 1024u

/* An owner's step, counted and added up apart from its core. owner.c */
struct sgp_sim_step {
    sgp_round label; /* of the step that is open, */
    uint32_t
        *from; /* by host: one past the label of the last step for which its update came in time */
    uint32_t came; /* of these, those of the open step */
    uint64_t
        received; /* updates by this process: that came in time and were added, or wait for the end of their step, */
    uint64_t late; /* or came too late */
    uint64_t added;
    uint32_t taken;  /* ABSORBs since the last step, */
    double fraction; /* each with this fraction */
    uint32_t told;   /* how many the core says that it has added; 0: no step was closed */
    bool closed;
    uint32_t counted;   /* updates in the sums since the last step: */
    double *sum, *size; /* of the updates that were added, and of their magnitudes */
    double *before;     /* x before */
    sgp_round labels
        [SGP_SIM_LABELS]; /* of estimates that were handed out, one above each at its remainder, */
    uint64_t digests[SGP_SIM_LABELS]; /* and what they were */
    bool forgot; /* its ledger was lost, or put back: it may use a label again */
    /* at its own pace, of the update that is added next: */
    uint64_t version; /* updates before it; */
    uint32_t worker;  /* host of which it is, */
    uint64_t
        stale;   /* and how many were added since the copy was made from which it was computed, */
    bool checks; /* if that is known; */
    bool first;  /* from that copy: the owner has it still, to compensate */
    bool compensates;
};

/* Of a worker: which estimate of an owner it has, counted apart from any core. */
struct sgp_sim_view {
    uint64_t
        coming;    /* updates that the owner had added when the copy was made that was sent last, */
    uint64_t has;  /* that which was taken last, */
    uint64_t gave; /* and that from which the last update was computed; */
    bool fresh;    /* nothing was added yet that was computed from what it has */
};

/* Of a worker: its views, and what it trained. stale.c */
struct sgp_sim_stand {
    struct sgp_sim_view *views; /* by host that is an owner */
    float *from;                /* the copy from which the last update was computed; */
    sgp_round turn;             /* that it trained last, one past, */
    uint8_t life;               /* in this one */
};

/* Where owning is a token: what a host has moved by itself, added up apart from core and trainer. token.c */
struct sgp_sim_mover {
    double *moved;              /* that the token has not taken up: */
    double *told;               /* what it has told, */
    uint32_t steps, told_steps; /* TRAIN jobs in these */
    bool synced;                /* it has had the token in this life, and knows what it is */
};

struct sgp_sim_host {
    struct sgp_sim *sim;
    uint32_t index;
    const struct sgp_sim_file *file;      /* of the core */
    const struct sgp_sim_file *file_next; /* for the next process, or NULL: the same */
    struct sgp_node *node;
    struct sgp_driver driver;
    struct sgp_trainer *trainer;
    struct sgp_random random; /* of its compute jitter */
    double compute_factor;

    uint32_t link_first; /* of sim->links: out-links by host, then in-links, of all files */
    uint32_t out_count, link_count;
    struct sgp_performer performer; /* its vectors */
    uint64_t *digests;              /* of the snapshots, when they were published */
    double *outstanding; /* per snapshot: the fraction of it that nobody has accepted yet, as the
                            sum of the float32 fractions that trainers work with */
    enum sgp_compressor *compressors; /* per snapshot: by which it was given */
    struct sgp_sim_receive *receives;
    float *came; /* `dimension` values: the payload that was folded last, as it came */

    struct sgp_sim_job *job_first, *job_last;
    struct sgp_sim_running running; /* the first */
    sgp_time tick_at;               /* of the one valid TICK in the queue; NEVER if none */
    uint32_t ticks_here;            /* ticks in a row without time passing, */
    sgp_time ticked_at;             /* the last of them then */
    sgp_time busy_until;            /* its network card */
    struct sgp_sim_question question;

    bool gone, diverged, drained, done;
    bool mortal;  /* it will crash: only then is its record ever read */
    bool dead;    /* between a crash and its rebirth, or not yet born */
    uint8_t life; /* a number of it: jobs of a former one are not done */
    uint64_t lineage;
    double weight_least;
    struct sgp_record record; /* of a mortal, as last committed; owns its links */
    uint64_t sequence;        /* how often it was committed */
    struct sgp_sim_checkpoint checkpoint;
    sgp_time clock; /* as its process has last seen it */
    sgp_round left; /* one past the last round that it completed */

    double weight, weight_in_flight; /* as last seen */
    double debts_unseen;             /* of its debts, those whose target had accepted them */
    bool indebted;                   /* it has debts, or had when it was looked at last */
    bool handed;        /* its heir has accepted its bequest: what it still owes is the heir's */
    uint32_t heir;      /* then, the host that has accepted it, */
    uint64_t bequest;   /* and the number of that share */
    double guard;       /* the least weight at which it may ever train */
    uint64_t *versions; /* of an owner, by snapshot: updates that it had added when that was made */
    struct sgp_sim_step step;   /* of an owner */
    struct sgp_sim_stand stand; /* of a worker */
    struct sgp_sim_mover mover;
};

/* One end of a directed edge of any file. */
struct sgp_sim_link {
    uint32_t peer;     /* host */
    uint32_t other;    /* the same edge at the peer, an index of sim->links */
    uint64_t accepted; /* IN: number of the last accepted share of the source's lineage */
    uint64_t said;     /* IN: the same, as the core said last */
    uint64_t former, former_lineage; /* IN: the same, of the source's lineage before */
    uint64_t before;                 /* IN: `accepted` when the target left last, */
    uint64_t before_lineage;         /* as this one */
    uint32_t holder, before_holder;  /* IN: who has what was accepted: the target, or its heir */
    uint64_t
        owed_before; /* OUT: number of a share on record that is owed to the target's process before */
    double weight_unseen; /* OUT: accepted by the target while the source still owes it */
    uint32_t snapshot;    /* OUT: of the share accepted last, */
    double fraction;      /* its fraction, */
    uint8_t life;         /* and the source's life */
};

/* ---- the network ---- */

enum sgp_sim_side { SGP_SIM_SOURCE, SGP_SIM_TARGET };
enum sgp_sim_end { SGP_SIM_END_NONE, SGP_SIM_END_OPEN, SGP_SIM_END_CLOSED };

struct sgp_sim_flight { /* a message under way */
    struct sgp_sim_flight *next;
    sgp_time due;
    bool last;                  /* the end of the connection; no message */
    struct sgp_message message; /* unless it goes through the wire */
    size_t tail_bytes;
    unsigned char tail[]; /* the frame, or the text of a goodbye */
};

struct sgp_sim_pipe { /* towards one side, first in, first out */
    struct sgp_sim_flight *first, *last;
    sgp_time last_due;
    bool scheduled;
};

struct sgp_sim_payload { /* under way */
    uint32_t snapshot;   /* of the source */
    sgp_time begun;      /* when it was announced at the target */
    sgp_time sent;       /* when its last byte has left the source */
    sgp_time due;        /* when it is at the target */
};

struct sgp_sim_connection {
    uint64_t id; /* serial << 32 | index; never used twice */
    uint32_t hosts[2];
    uint32_t links[2];   /* of sim->links */
    uint32_t references; /* entries of the queue that speak of it */
    bool broken;         /* nothing passes any more; an end may not know */
    sgp_time give_up;    /* dialling */
    enum sgp_sim_end ends[2];
    struct sgp_sim_pipe pipes[2];
    sgp_round credits[2]; /* the latest that have come to the source, NONE once used */

    struct sgp_share share;             /* announced last at the target, */
    struct sgp_epoch epoch;             /* in this one */
    struct sgp_sim_payload payloads[2]; /* the first is that of `share`, once this was announced */
    uint32_t payload_count;
    uint32_t snapshot; /* of the source: that of the payload that came last */
    float *
        estimate; /* of `dimension` values, as it left: its snapshot is free once the source hangs up; or NULL */
    enum sgp_compressor estimate_compressor; /* of that, if it is a change */
    uint32_t slot;                           /* of the target, SGP_SLOT_NONE: it does not want it */
};

/* ---- sums ---- */

struct sgp_sim_sum { /* Neumaier's compensated sum */
    double value, rest;
};

struct sgp_sim_backup {       /* a record of an earlier moment */
    struct sgp_record record; /* lineage 0: none; owns its links and accounts */
    uint64_t sequence;
    const struct sgp_sim_file *file;
};

struct sgp_sim_cycle { /* an exact cycle that is under way somewhere */
    struct sgp_epoch epoch;
    sgp_round start;
    const struct sgp_topology *topology; /* its file; who ends it may have another by then */
    uint32_t entered, left;
    unsigned char *hosts; /* which have entered */
    double *sum, *size;   /* by coordinate: of what they entered with, and of its absolute values */
};

struct sgp_sim_tally { /* a round that is not complete everywhere */
    uint32_t nodes;
    double weight_least;
    double *sum, *least, *greatest; /* dimension each; one allocation, at sum */
};

struct sgp_sim {
    const struct sgp_topology *topology;
    struct sgp_sim_options options;
    struct sgp_error error;
    struct sgp_random random; /* of the network */
    struct sgp_queue queue;
    sgp_time now;
    sgp_time progressed; /* when a round was last completed anywhere */
    sgp_time faults_end; /* of those that end */
    sgp_time stall_ns;
    sgp_time done_at; /* NEVER until all hosts are done */

    uint32_t host_count, done_count;
    struct sgp_sim_host *hosts;
    struct sgp_sim_file *files; /* the fleet's first */
    uint32_t file_count;
    struct sgp_sim_link *links;
    struct sgp_effects effects;
    struct sgp_sim_job *jobs; /* that are done: the memory of the next */

    struct sgp_sim_connection **connections;
    uint32_t *connections_free;
    uint32_t connection_count, connection_free_count, connection_capacity;
    uint64_t serial;
    unsigned char **cut_sides;        /* per cut, per host: inside? */
    uint8_t *frame;                   /* scratch of the wire */
    struct sgp_message message;       /* that goes out now, as the wire has it */
    struct sgp_sim_receive *arriving; /* whose payload is being told to its target; else NULL */
    uint8_t *packed;                  /* the payload that arrives now, as the wire has it */
    float *share;                     /* `dimension` values: what is absorbed now, as it came */
    float *given;                     /* likewise: what a snapshot decodes to */

    struct sgp_sim_sum weight, weight_in_flight, weight_unseen;
    uint32_t indebted; /* how many hosts are */
    double
        bequeathed; /* what heirs may yet take off their weight: of each bequest, what came with it */
    double expected; /* the total weight: the number of nodes, but for what was forgotten */
    bool lies;       /* somebody names other weights than it has: a test's */
    bool heals;      /* somebody has found out that the total is not what it should be */
    struct sgp_sim_backup *backups; /* by crash */
    /* sgp_restart, unless a bug is planted */
    void (*restart)(const struct sgp_past *, uint64_t, uint32_t, struct sgp_restart *);
    double *moved;    /* per coordinate: sum of x at the start, and what was trained since */
    double *rounding; /* per coordinate: what rounding has added */
    double *count;    /* scratch of the full count */
    float *before, *after;
    bool overflown; /* x is no longer finite: nothing to count */
    bool
        apart; /* some file has exact cycles, where x is checked by cycle.c; or owners of parts, or an owner whose or
                   whose workers' ledgers are put back, where what was given twice weighs nothing: x is checked by owner.c */
    bool
        mixed; /* and some have others: weight is made and lost where one takes the other's place */
    struct sgp_sim_cycle *cycles;
    uint32_t cycle_count;
    double *token;                /* `dimension` values: what it is; NULL where there is none */
    struct sgp_epoch token_epoch; /* of that */
    bool
        remade; /* it may have been, or a ledger is older than what it says: its weight is not kept */

    struct sgp_sim_tally *tallies; /* of rounds row_next, row_next + 1, ... */
    uint32_t tally_count, tally_capacity;
    sgp_round row_next;
    uint32_t behind; /* hosts that have not completed row_next */

    struct sgp_sim_summary summary;
    uint64_t digest; /* of all events so far */
};

/* failure.c */
void sgp_sim_fail(struct sgp_sim *sim, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* entry.c */
/* A span that was computed, at most SGP_SIM_TIME_MAX: added to a time of the queue it overflows nothing. */
sgp_time sgp_sim_span(double nanoseconds);
/* Past SGP_SIM_TIME_MAX the run fails. */
void sgp_sim_push(
    struct sgp_sim *sim, sgp_time time, enum sgp_sim_kind kind, uint32_t detail, uint32_t index);

/* sum.c */
void sgp_sim_add(struct sgp_sim_sum *sum, double value);
double sgp_sim_total(const struct sgp_sim_sum *sum);
double sgp_sim_weight(const struct sgp_sim *sim); /* of all, with what is in flight */

/* token.c */
bool sgp_sim_has_token(const struct sgp_sim_host *host);
int sgp_sim_create_mover(struct sgp_sim_host *host);
void sgp_sim_free_mover(struct sgp_sim_host *host);
void sgp_sim_forget_moved(
    struct sgp_sim_host *host); /* it begins anew, or with another's estimate */
void sgp_sim_count_moved(
    struct sgp_sim_host *host); /* between `before` and `after` of the simulation */
void sgp_sim_count_told(struct sgp_sim_host *host);
void sgp_sim_check_token(struct sgp_sim_host *host, const float *token);   /* which is published */
void sgp_sim_check_visit(struct sgp_sim_host *host, const float *token);   /* which has come, */
void sgp_sim_check_visited(struct sgp_sim_host *host, const float *token); /* and goes */
void sgp_sim_check_stands(struct sgp_sim_host *host); /* x is the copy, and what it has moved */
void sgp_sim_check_one_token(struct sgp_sim *sim);

/* host.c */
const char *sgp_sim_name(const struct sgp_sim *sim, uint32_t host);
bool sgp_sim_is_owner(const struct sgp_sim_host *host);
float *sgp_sim_snapshot(const struct sgp_sim_host *host, uint32_t slot);
/* What was given of it: what it decodes to in the form of its shares. Until the next call. */
const float *sgp_sim_given(const struct sgp_sim_host *host, uint32_t slot);
/* The payload of a receive slot as it came, also if it has been folded. */
const float *sgp_sim_received(const struct sgp_sim_host *host, uint32_t slot);
/* The host whose network card it uses: its own, or that of the node beside which it stands. */
struct sgp_sim_host *sgp_sim_machine(struct sgp_sim_host *host);
/* Whether a connection is between two hosts of one machine, where nothing takes time; and how long a message is on its way. */
bool sgp_sim_is_within(struct sgp_sim *sim, const struct sgp_sim_connection *connection);
sgp_time sgp_sim_latency(struct sgp_sim *sim, const struct sgp_sim_connection *connection);
/* The host that owns the values from `first` on, by the file of `host`. */
struct sgp_sim_host *sgp_sim_owner_of(const struct sgp_sim_host *host, uint64_t first);
void sgp_sim_node_config(
    const struct sgp_sim *sim, const struct sgp_sim_host *host, struct sgp_node_config *ret_config);
/* The least weight at which a node may ever train: it gives nothing below SGP_STARVING * w_min, and
 * giving leaves it what its sparsest phase keeps, or sgp_method_keep where it chooses itself. */
double sgp_sim_guard(const struct sgp_sim *sim, const struct sgp_sim_host *host);

/* buffers.c */
int sgp_sim_create_buffers(struct sgp_sim *sim, struct sgp_sim_host *host); /* 0 or -ENOMEM */
/* Buffers for a core of these needs; those that are there stay. 0 or -ENOMEM. */
int sgp_sim_make_room(
    struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_node_needs *needs);
void sgp_sim_free_buffers(struct sgp_sim_host *host);

/* stall.c */
/* How long nobody may complete a round before we say that nobody ever will. */
sgp_time sgp_sim_stall_time(const struct sgp_sim *sim);
bool sgp_sim_is_stalled(const struct sgp_sim *sim, sgp_time next); /* next: when anything happens */
/* Blame whoever has waited longest, and follow whom it waits for: to one who waits for nobody, or
 * round a circle. */
void sgp_sim_fail_stalled(struct sgp_sim *sim);

/* network_model.c */
sgp_time sgp_sim_ready(const struct sgp_sim *sim, uint32_t host); /* now, or when it runs again */
/* Now, or when what one host sends another gets through again. */
sgp_time sgp_sim_passable(const struct sgp_sim *sim, uint32_t source, uint32_t target);
/* What a host's clock shows now; never less than before, at most twice SGP_SIM_TIME_MAX. */
sgp_time sgp_sim_clock(struct sgp_sim *sim, struct sgp_sim_host *host);
/* Turn swizzles into clogs, and put what begins at a time of its own into the queue. 0 or -ENOMEM. */
int sgp_sim_schedule_faults(struct sgp_sim *sim);
/* The latest end of a fault that ends. */
sgp_time sgp_sim_faults_end(const struct sgp_sim *sim);

/* link.c */
struct sgp_sim_link *sgp_sim_link_of(
    struct sgp_sim_host *host, uint32_t peer, enum sgp_direction direction);
/* What a host's core says of its end of an edge (sgp_node_link_account); false, and both 0, if it knows
 * of none. */
bool sgp_sim_link_account(const struct sgp_sim_host *host, const struct sgp_sim_link *link,
    uint64_t *ret_last_number, double *ret_weight_owed);
int sgp_sim_create_links(struct sgp_sim *sim); /* 0 or -ENOMEM */

/* file.c */
int sgp_sim_check_reloads(const struct sgp_topology *topology,
    const struct sgp_sim_options *options, struct sgp_error *error);
int sgp_sim_read_files(struct sgp_sim *sim); /* 0 or -ENOMEM */
void sgp_sim_forget_files(struct sgp_sim *sim);
const struct sgp_sim_file *sgp_sim_file_of(
    const struct sgp_sim *sim, const struct sgp_topology *topology);
const struct sgp_sim_reload *sgp_sim_first_reload(
    const struct sgp_sim *sim, uint32_t host); /* or NULL */
/* The file that a host begins with, and whether it begins later than at 0. */
const struct sgp_sim_file *sgp_sim_first_file(
    const struct sgp_sim *sim, uint32_t host, bool *ret_later);
void sgp_sim_schedule_reloads(struct sgp_sim *sim);
/* Turn the peers of a record from one file to another, as daemon/store/ledger.c does by names. */
void sgp_sim_translate(
    struct sgp_record *record, const struct sgp_sim_file *from, const struct sgp_sim_file *to);
/* The process of a host that begins anew reads the file that is there now: its record with that. */
void sgp_sim_take_file(struct sgp_sim_host *host);

/* options.c */
int sgp_sim_check_options(const struct sgp_topology *topology,
    const struct sgp_sim_options *options, struct sgp_error *error);
int sgp_sim_copy_faults(struct sgp_sim *sim); /* what the options point to; 0 or -ENOMEM */
void sgp_sim_free_faults(struct sgp_sim *sim);

/* backup.c */
int sgp_sim_create_backups(struct sgp_sim *sim); /* 0 or -ENOMEM */
void sgp_sim_save(struct sgp_sim *sim, const struct sgp_sim_crash *crash);
/* The saved record in the place of the last one. Returns whether there was one of this life. */
bool sgp_sim_put_back(struct sgp_sim_host *host, const struct sgp_sim_backup *backup);
void sgp_sim_free_backups(struct sgp_sim *sim);

/* job.c */
/* A job that is still to be filled in and appended; NULL: no memory, and the run has failed. */
struct sgp_sim_job *sgp_sim_new_job(struct sgp_sim_host *host, enum sgp_sim_job_kind kind);
void sgp_sim_append(struct sgp_sim_host *host, struct sgp_sim_job *job);
/* The first is done: the next begins. The caller ends it. */
struct sgp_sim_job *sgp_sim_take_job(struct sgp_sim_host *host);
/* A step of the first job has ended. True: there is another. */
bool sgp_sim_job_goes_on(struct sgp_sim_host *host);
void sgp_sim_curtail(void *context);
void sgp_sim_end_job(struct sgp_sim_host *host, struct sgp_sim_job *job);
void sgp_sim_drop_jobs(struct sgp_sim_host *host);
void sgp_sim_free_jobs(struct sgp_sim *sim); /* of all that are done */

/* checkpoint.c */
void sgp_sim_checkpoint(struct sgp_sim_host *host); /* queue the writing of one */
void sgp_sim_checkpointed(struct sgp_sim_host *host, const struct sgp_sim_job *job);
/* The snapshots that were kept go back to their slots. */
void sgp_sim_restore_kept(struct sgp_sim_host *host);

/* chosen.c: of a job that chooses what a range of an update becomes, before and after it */
void sgp_sim_before_choosing(struct sgp_sim_host *host, const struct sgp_work *work);
void sgp_sim_check_chosen(struct sgp_sim_host *host, const struct sgp_work *work);
/* Whether such a PUBLISH of this host makes an owner's coded copy. */
bool sgp_sim_hands_copy(const struct sgp_sim_host *host, enum sgp_publish purpose);
void sgp_sim_before_change(struct sgp_sim_host *host, const struct sgp_work *work);
void sgp_sim_check_change(struct sgp_sim_host *host, const struct sgp_work *work);
void sgp_sim_check_returned(struct sgp_sim_host *host, const struct sgp_work *work);

/* connection.c */
void sgp_sim_dial(void *context, uint32_t peer);
/* An entry of the queue that speaks of the connection, which is kept until then. */
void sgp_sim_network_push(struct sgp_sim *sim, sgp_time time, enum sgp_sim_kind kind, uint32_t side,
    struct sgp_sim_connection *connection);
struct sgp_sim_connection *sgp_sim_connection_of(struct sgp_sim *sim, uint64_t id);
void sgp_sim_network_finish(struct sgp_sim *sim);

/* A host's process is gone: its connections break, and dialling it is refused. */
void sgp_sim_network_die(struct sgp_sim *sim, uint32_t host);
void sgp_sim_give_up_dials(struct sgp_sim *sim, uint32_t host); /* those under way are void */
void sgp_sim_pipe_clear(struct sgp_sim_pipe *pipe);
/* The target's buffer is free again, and the rest of the payloads goes nowhere. */
void sgp_sim_drop_payloads(struct sgp_sim *sim, struct sgp_sim_connection *connection);
void sgp_sim_half_open(struct sgp_sim *sim, const struct sgp_sim_half_open *half_open);
/* What is under way is lost; who still has an end of it learns that at once. */
void sgp_sim_tear(struct sgp_sim *sim, struct sgp_sim_connection *connection);
/* Forget a connection that no end and no entry of the queue knows any more. */
void sgp_sim_release(struct sgp_sim *sim, struct sgp_sim_connection *connection);

/* send.c */
void sgp_sim_send(
    void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot);
void sgp_sim_hang_up(
    void *context, struct sgp_link link, int code, const struct sgp_message *goodbye);
void sgp_sim_receive(void *context, struct sgp_link link, uint32_t slot);
void sgp_sim_fold(void *context, const struct sgp_effect *effect);
/* How much of the first payload has come, at the pace at which it will have come whole. */
uint64_t sgp_sim_bytes_so_far(
    const struct sgp_sim *sim, const struct sgp_sim_connection *connection);
/* The first message of a pipe is due: see to its entry of the queue. */
void sgp_sim_pipe_schedule(
    struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side);
/* What follows a message: a share's payload; an estimate's, seen as a share of number 0 that gives
 * nothing. */
struct sgp_share sgp_sim_cargo(const struct sgp_sim *sim, const struct sgp_message *message);

/* unseen.c */
/* Weight that the target of a link has accepted, or the source's heir, while the source still owes it. */
void sgp_sim_see_link(struct sgp_sim *sim, struct sgp_sim_host *source, struct sgp_sim_link *out);
void sgp_sim_see_links(struct sgp_sim *sim, struct sgp_sim_host *source);
/* Whether the target has accepted the share that the source still owes. The share may be an update,
 * which weighs nothing. */
bool sgp_sim_is_unseen(
    const struct sgp_sim *sim, struct sgp_sim_host *source, const struct sgp_sim_link *out);
/* The debts of all hosts, after something has happened to one: no other's come or go. Few hold any, and
 * mostly nobody does. */
void sgp_sim_see_debts(struct sgp_sim *sim, struct sgp_sim_host *changed);
/* Whether the target of a debt has accepted the share. */
bool sgp_sim_is_paid(struct sgp_sim *sim, const struct sgp_account *debt);
/* The weight that a host owes, as its core says now, but for what was accepted. */
double sgp_sim_count_in_flight(struct sgp_sim *sim, struct sgp_sim_host *source);

/* check.c */
int sgp_sim_check_init(struct sgp_sim *sim);
void sgp_sim_check_finish(struct sgp_sim *sim);
void sgp_sim_check_event(struct sgp_sim *sim, struct sgp_sim_host *host,
    const struct sgp_event *event, const struct sgp_node_status *status);
/* A job has changed x, which was sim->before: `fraction` times `share` (slice.count values, from
 * x[slice.first] on) was to be added. A NULL share: it was trained. */
void sgp_sim_check_job(
    struct sgp_sim_host *host, const float *share, double fraction, struct sgp_slice slice);
void sgp_sim_check_all(struct sgp_sim *sim);
/* Add to sim->count x of this host, what is owed of its snapshots, and what its buffers hold for it. */
void sgp_sim_count_host(struct sgp_sim *sim, struct sgp_sim_host *host);
/* An heir takes off weight that was left to it. */
void sgp_sim_check_dissolve(struct sgp_sim_host *host, const struct sgp_effect *effect);
/* Weight that a core made or took off: it may begin to if the total is too small, or beyond the bound, and only then. */
void sgp_sim_check_total(struct sgp_sim_host *host, const struct sgp_effect *effect);
/* The core of a host has let go of the snapshot of a share that is in doubt. */
void sgp_sim_check_dispute(struct sgp_sim_host *host, const struct sgp_effect *effect);

/* check_life.c */
/* Parameters leave the count with a host that dies, and enter it with one that begins anew. */
void sgp_sim_check_strike(struct sgp_sim *sim, struct sgp_sim_host *host);
void sgp_sim_check_begin(struct sgp_sim *sim, struct sgp_sim_host *host);
/* A host that owned something is reborn by a file in which it does not: its weight is the new owner's. */
void sgp_sim_check_unowned(struct sgp_sim_host *host);
/* The parameters of a checkpoint that is called exact are those with which the last process died. */
void sgp_sim_check_exact(struct sgp_sim *sim, struct sgp_sim_host *host);
/* A host is reborn without its record: its weight is gone, it has 1, and who owed it still does. */
void sgp_sim_check_forget(struct sgp_sim *sim, struct sgp_sim_host *host);
/* A host is reborn with the record of an earlier moment, put in the place of one that covered so much. */
void sgp_sim_check_restore(struct sgp_sim *sim, struct sgp_sim_host *host, double covered);
/* A host that has left is reborn as a new member. */
void sgp_sim_check_rejoin(struct sgp_sim *sim, struct sgp_sim_host *host, uint64_t former_lineage);

/* owner.c */
int sgp_sim_create_step(struct sgp_sim_host *host); /* 0 or -ENOMEM */
void sgp_sim_free_step(struct sgp_sim_host *host);
void sgp_sim_begin_step(
    struct sgp_sim_host *host); /* x has changed otherwise, or its process begins */
void sgp_sim_forget_updates(struct sgp_sim_host *host); /* those that a former process had */
void sgp_sim_update_came(struct sgp_sim *sim, struct sgp_sim_host *owner,
    const struct sgp_sim_link *in, sgp_round round);
void sgp_sim_update_taken(struct sgp_sim_host *owner, double fraction, struct sgp_slice slice);
void sgp_sim_update_added(
    struct sgp_sim_host *owner, const struct sgp_sim_job *job, const float *update);
void sgp_sim_update_late(struct sgp_sim_host *owner, uint32_t slot);
void sgp_sim_step_told(struct sgp_sim_host *owner, double added);
void sgp_sim_check_step(struct sgp_sim *sim, struct sgp_sim_host *host); /* after every event */
void sgp_sim_check_mean(struct sgp_sim_host *owner);                     /* its jobs are done */
/* An owner's estimate of a label is copied out; or a worker takes it. `values`: those that it owns, by the host's file; of a
 * vector that begins with `estimate`. */
void sgp_sim_check_label(struct sgp_sim_host *host, sgp_round label, const float *estimate,
    struct sgp_slice values, bool taken);
/* What a host owns, by its file. */
struct sgp_slice sgp_sim_owned(const struct sgp_sim_host *owner);

/* stale.c */
bool sgp_sim_adds_each(const struct sgp_sim_host *host); /* an owner at its own pace */
void sgp_sim_copy_made(struct sgp_sim_host *owner, uint32_t snapshot);
void sgp_sim_copy_sent(
    const struct sgp_sim_host *owner, uint32_t snapshot, struct sgp_sim_host *worker);
void sgp_sim_copy_taken(struct sgp_sim_host *worker, struct sgp_slice values);
void sgp_sim_check_turn(struct sgp_sim_host *host, sgp_round turn); /* it trains that */
void sgp_sim_update_given(struct sgp_sim_host *worker);             /* a job will make it, */
void sgp_sim_update_leaves(struct sgp_sim_host *worker);            /* and does */
/* It is added next; then, as which job. */
void sgp_sim_update_chosen(struct sgp_sim_host *owner, struct sgp_sim_host *worker, double told);
void sgp_sim_update_next(
    struct sgp_sim_host *owner, double fraction, struct sgp_sim_job *ret_absorb);
void sgp_sim_keep_update(struct sgp_sim_host *owner, const float *update, struct sgp_slice slice);
void sgp_sim_count_compensated(
    struct sgp_sim_host *owner, const float *update, struct sgp_slice slice);
void sgp_sim_check_added(struct sgp_sim_host *owner, const struct sgp_sim_job *absorb);
void sgp_sim_check_late(struct sgp_sim_host *owner);
void sgp_sim_check_taken(struct sgp_sim_host *owner); /* after every event */

/* cycle.c */
void sgp_sim_enter_cycle(struct sgp_sim_host *host, const struct sgp_sim_job *job, const float *x);
void sgp_sim_leave_cycle(struct sgp_sim_host *host, const struct sgp_sim_job *job);
void sgp_sim_renewed(struct sgp_sim_host *host); /* its core has dropped shares of former epochs */
void sgp_sim_forget_cycles(struct sgp_sim *sim);

/* rows.c */
void sgp_sim_rows_leave(
    struct sgp_sim *sim, struct sgp_sim_host *host, sgp_round round, double weight);
void sgp_sim_rows_recount(struct sgp_sim *sim); /* a host is out of the count */
void sgp_sim_rows_finish(struct sgp_sim *sim);
double sgp_sim_rows_disagreement(const struct sgp_sim *sim); /* of all hosts present, now */

/* event.c */
/* Hand an event to a host's core, then check, then see to its next tick. */
void sgp_sim_post(struct sgp_sim *sim, struct sgp_sim_host *host, struct sgp_event *event);
void sgp_sim_tick(struct sgp_sim *sim, struct sgp_sim_host *host, sgp_time time); /* of its entry */
void sgp_sim_wake(struct sgp_sim *sim, struct sgp_sim_host *host); /* a tick is due now */
void sgp_sim_gone(struct sgp_sim *sim, struct sgp_sim_host *host); /* it hears no event any more */

/* compute.c */
void sgp_sim_work(void *context, const struct sgp_effect *effect);
void sgp_sim_measure(struct sgp_sim_host *host, sgp_round round, double weight);
void sgp_sim_job_done(struct sgp_sim_host *host);

/* arrive.c */
void sgp_sim_network_entry(
    struct sgp_sim *sim, enum sgp_sim_kind kind, uint32_t detail, uint32_t index);

/* inquire.c */
void sgp_sim_inquire(void *context, uint32_t peer, const struct sgp_inquire *question);
void sgp_sim_inquired(struct sgp_sim *sim, struct sgp_sim_host *host, uint32_t serial);

/* reload.c */
void sgp_sim_reload(struct sgp_sim *sim, const struct sgp_sim_reload *reload);

/* crash.c */
void sgp_sim_die(struct sgp_sim *sim, const struct sgp_sim_crash *crash);
/* A machine that is stopped starts nothing until it goes on, and one that is gone never does. */
void sgp_sim_rebirth(struct sgp_sim *sim, const struct sgp_sim_crash *crash);

/* verbs.c */
extern const struct sgp_driver_verbs sgp_sim_verbs;

#endif
