/* SPDX-License-Identifier: Apache-2.0 */
/* The internal interfaces of a simulation: its structures, and what its files call of each other.
 *
 *   sim.c            the run: one entry of the queue after another
 *   create.c         begin and end of a simulation
 *   ops.c            how the effects of a core are performed
 *   crash.c          processes that die and start again
 *   reload.c         hosts that get another topology file
 *   inquire.c        questions, each on its own connection
 *   arrive.c         what arrives at a host
 *   compute.c        each host's compute thread: performs its jobs and checks their effect on the
 *                    parameters
 *   event.c          events: passed to a core, whose effects are checked
 *   summary.c        the totals
 *   rows.c           what is reported for every round
 *   check_life.c     the invariants when a process dies or starts
 *   check.c          the invariants: running sums after every event, a full count every round
 *   unseen.c         weight that was accepted while its source still owes it
 *   unowed.c         shares that no node owes any more, and that may still be accepted
 *   send.c           what leaves a host: messages and payloads
 *   connection.c     connections, one for each directed edge
 *   buffers.c        the memory of a host
 *   checkpoint.c     parameters that are saved
 *   chosen.c         coded updates: checks that nothing of them is lost
 *   guarded.c        guarded shares: what of them is taken; compared estimates
 *   owner.c          an owner's steps: which updates were in time, and that their mean is added
 *   stale.c          an owner at its own pace: the staleness of an update, and what is added of it
 *   token.c          the token: its values, and that exactly one node has it
 *   cycle.c          exact cycles: what goes in, and that its mean comes out
 *   job.c            each host's queue of jobs
 *   backup.c         records of an earlier moment
 *   options.c        the options, checked and copied
 *   file.c           topology files: which one each host has
 *   link.c           both ends of every edge of any file
 *   liar.c           shares and estimates that say what their source does not have
 *   lies.c           the values of each lie
 *   knowledge.c      what a liar knows of the other nodes
 *   network_model.c  which faults are active now
 *   stall.c          detection of a stall, and its cause
 *   host.c           the configuration of a host's core
 *   entry.c          entries of the queue
 *   failure.c        how a run fails
 *   compensated_sum.c
 *                    sums without loss of precision
 *
 * A file calls only files below it in this list. It calls upward only through the table of
 * operations and the queue. An operation never posts an event: all that it causes becomes an entry
 * of the queue. The simulation has one thread. */
#ifndef SGP_SIM_WORLD_H
#define SGP_SIM_WORLD_H

#include "base/queue.h"
#include "sgp/driver.h"
#include "sgp/perform.h"
#include "sgp/random.h"
#include "sgp/restart.h"
#include "sgp/sim.h"
#include "sim/lies.h"

/* ---- entries of the queue: kind | detail << 8 | index << 16 ---- */

enum sgp_sim_kind {
    SGP_SIM_START = 1, /* index: host; detail: the number of its life */
    SGP_SIM_TICK,      /* host */
    SGP_SIM_JOB,     /* host; detail: the number of its life; the first job of its queue is done */
    SGP_SIM_COMMAND, /* host; detail: the event's type */
    SGP_SIM_GONE,    /* host */
    SGP_SIM_CRASH,   /* crash */
    SGP_SIM_REBIRTH, /* crash */
    SGP_SIM_SAVE,    /* crash; its record is saved */
    SGP_SIM_RELOAD,  /* reload of the options */
    SGP_SIM_CHECKPOINT, /* host */
    SGP_SIM_LEAP,       /* host; its clock has leapt, so what it waited for may be due */
    SGP_SIM_INQUIRED,   /* host; detail: which of its questions; the question reaches its target */
    SGP_SIM_HALF_OPEN,  /* half-open link of the options */
    SGP_SIM_DIALLED,    /* connection */
    SGP_SIM_ARRIVAL,    /* connection; detail: the side that receives */
    SGP_SIM_PAYLOAD,    /* connection; a part or all of the payload has arrived at the target */
    SGP_SIM_RESET,      /* connection; it breaks now */
    SGP_SIM_BROKEN,     /* connection; detail: the side that learns of the break */
};

/* ---- compute ---- */

enum sgp_sim_job_kind {
    SGP_SIM_WORK = 1,     /* of the core: the performer does it */
    SGP_SIM_CHECKPOINTED, /* of the simulator: parameters are saved */
    SGP_SIM_MEASURE, /* of the simulator: the round is complete once all previous jobs are done */
};

struct sgp_sim_job {
    struct sgp_sim_job *next;
    enum sgp_sim_job_kind kind;
    uint32_t steps; /* of TRAIN; 0: another job, which takes no time */
    uint32_t taken;
    bool curtailed;           /* the present step is the last */
    bool cancelled;           /* the present step is not taken */
    bool of_cycle;            /* PUBLISH: the first of an exact cycle; MEASURE: its last round */
    bool checks, compensated; /* ABSORB of an owner at its own pace: see struct sgp_sim_step */
    uint32_t worker;          /* see struct sgp_sim_step */
    sgp_round label;          /* FOLLOW */
    struct sgp_epoch epoch;   /* the epoch of the cycle that is in force */
    sgp_round start;          /* start of that cycle */
    union {
        struct sgp_work work; /* the job of the core */
        struct {              /* MEASURE */
            sgp_round round;
            double weight;
        } measured;
        struct {
            struct sgp_recovery_point point; /* of a checkpoint */
            uint32_t kept[SGP_KEPT_MAX];     /* the snapshot slots that belong to the checkpoint */
        };
    };
};

/* The first job of a queue. */
struct sgp_sim_running {
    sgp_time since, takes;
    uint32_t taken; /* steps done */
};

enum sgp_sim_receive_state {
    SGP_SIM_RECEIVE_FREE = 0,
    SGP_SIM_RECEIVE_FILLING, /* a payload is arriving */
    SGP_SIM_RECEIVE_HELD,    /* the payload is complete */
    SGP_SIM_RECEIVE_TAKEN,   /* its ABSORB job is queued */
};

struct sgp_sim_receive {
    enum sgp_sim_receive_state state;
    struct sgp_share share;
    struct sgp_epoch epoch;
    bool told;  /* the core said that the payload may be folded */
    bool folds; /* the payload is folded, and `came` of the host has its original */
};

/* ---- one machine ---- */

struct sgp_sim_checkpoint {
    float *x;    /* `dimension` values; NULL: the options ask for no checkpoints */
    float *rest; /* follows x, of the same length: the residuals of updates */
    float *kept; /* follows that, SGP_KEPT_MAX x dimension */
    /* the compressor with which each snapshot was given */
    enum sgp_compressor compressors[SGP_KEPT_MAX];
    bool written;
    struct sgp_recovery_point point;
};

/* A topology file. Hosts are the nodes of the first file. Another file may give them other
 * indices. */
struct sgp_sim_file {
    const struct sgp_topology *topology;
    uint32_t *hosts; /* for each node of the file: its host */
    /* for each host: its node in the file; SGP_SLOT_NONE: the file does not have it */
    uint32_t *nodes;
    double *weight_least, *weight_most; /* for each node of the file */
};

struct sgp_sim_question { /* the last question of a host */
    bool asked;
    uint8_t serial;
    uint32_t whom; /* host */
    char source[SGP_NAME_BYTES], target[SGP_NAME_BYTES];
    struct sgp_inquire inquire; /* its names are these */
};

#define SGP_SIM_LABELS 1024u

/* An owner's step, counted and summed independently of its core. owner.c */
struct sgp_sim_step {
    sgp_round label; /* label of the open step */
    /* for each host: one past the label of the last step for which its update was in time */
    uint32_t *from;
    uint32_t came; /* number of these updates in the open step */
    /* Updates that this process received in time, and that were added or wait for the end of their
     * step. */
    uint64_t received;
    uint64_t late; /* updates that were too late */
    uint64_t added;
    uint32_t taken;  /* ABSORB jobs since the last step */
    double fraction; /* fraction of each of these */
    uint32_t told;   /* number of updates that the core says it added; 0: no step was closed */
    bool closed;
    uint32_t counted;   /* updates in the sums since the last step */
    double *sum, *size; /* the sum of the added updates, and of their magnitudes */
    double *before;     /* x before */
    /* one past the label of each estimate handed out, at the index of its remainder */
    sgp_round labels[SGP_SIM_LABELS];
    uint64_t digests[SGP_SIM_LABELS]; /* the digests of these estimates */
    bool forgot; /* its ledger was lost or replaced by a backup, so it may use a label again */
    /* The following members belong to an owner at its own pace. They describe the update that is
     * added next. */
    uint64_t version; /* number of updates before it */
    uint32_t worker;  /* its host */
    uint64_t stale;   /* number of updates added since the copy from which it was computed */
    bool checks;      /* that number is known */
    /* the first update from that copy, which the owner still has for the compensation */
    bool first;
    bool compensates;
};

/* A worker's view: which estimate of an owner it has, counted independently of any core. */
struct sgp_sim_view {
    uint64_t coming; /* number of updates in the copy that was sent last */
    uint64_t has;    /* number of updates in the copy that was taken last */
    uint64_t gave;   /* number of updates in the copy from which the last update was computed */
    bool fresh;      /* nothing computed from the present copy was added yet */
};

/* The state of a worker: its views, and what it trained. stale.c */
struct sgp_sim_stand {
    struct sgp_sim_view *views; /* for each host that is an owner */
    float *from;                /* the copy from which the last update was computed */
    sgp_round turn;             /* one past the turn that it trained last */
    uint8_t life;               /* the life in which it trained that */
};

/* For a token: the change that a host's own steps made, summed independently of core and trainer.
 * token.c */
struct sgp_sim_mover {
    double *moved;                 /* the change that the token has not taken */
    double *offered;               /* the change that was published */
    uint32_t steps, offered_steps; /* number of TRAIN jobs in these two */
    bool synced;   /* the host has had the token in this life, so its values are known */
    uint32_t part; /* of the fleet: the least host to which links lead (sgp_sim_check_one_token) */
};

/* The distances of what a host's sources have said, computed independently of its performer.
 * guarded.c */
struct sgp_sim_guarded {
    struct sgp_sim_word *words; /* NULL: the host has no guard */
    uint32_t count;
    uint64_t files; /* the performer's count of files */
};

struct sgp_sim_host {
    /* What each event reads comes first, in few cache lines. */
    struct sgp_sim *sim;
    uint32_t index;
    const struct sgp_sim_file *file;      /* file of the core */
    const struct sgp_sim_file *file_next; /* file for the next process; NULL: the same */
    struct sgp_node *node;
    struct sgp_driver driver;

    sgp_time clock; /* as its process saw it last */
    bool gone, diverged, done;
    /* Its process has left or was stopped, and has ended. No process accepts a connection at its
     * address, until one is started there again. */
    bool drained;
    bool dead;     /* between a crash and its restart, or not started yet */
    uint8_t life;  /* number of its life: jobs of an earlier life are not done */
    bool indebted; /* it has debts, or had some when it was checked last */
    bool handed;   /* its heir has accepted its bequest, and now owes what it still owed */

    double weight, weight_in_flight; /* as seen last */
    double debts_unseen;             /* debts whose targets had accepted the share */
    sgp_time tick_at;                /* time of the one valid TICK in the queue; NEVER: none */
    sgp_time ticked_at;              /* time of the last one without a change of time, */
    uint32_t ticks_here;             /* and the number of these */

    uint32_t link_first; /* index in sim->links: out-links by host, then in-links, of all files */
    uint32_t out_count, link_count;
    uint64_t bytes;      /* handed to the network */
    sgp_time busy_until; /* until then its network card is busy */
    uint64_t sequence;   /* number of commits */
    struct sgp_trainer *trainer;
    struct sgp_sim_job *job_first, *job_last;
    struct sgp_sim_running running; /* the first job */
    struct sgp_sim_stand stand;     /* of a worker */

    uint64_t *digests; /* digest of each snapshot when it was published */
    /* For each snapshot: the fraction of it that no target has accepted yet. It is a sum of the
     * float32 fractions that trainers use. */
    double *outstanding;
    /* for each snapshot: the compressor with which it was given */
    enum sgp_compressor *compressors;
    struct sgp_sim_receive *receives;
    float *came; /* `dimension` values: the payload that was folded last, as it arrived */
    struct sgp_performer performer; /* its vectors */
    struct sgp_random random;       /* for its compute jitter */
    double compute_factor;
    double weight_least;
    double weight_floor; /* the least weight at which it may ever train */
    sgp_round left;      /* one past the last round that it completed */
    struct sgp_sim_question question;

    bool mortal; /* it will crash; only then is its record ever read */
    uint64_t incarnation;
    struct sgp_record record; /* of a mortal host, as committed last; owns its links */
    struct sgp_sim_checkpoint checkpoint;
    uint32_t heir;      /* the host that accepted its bequest */
    uint64_t bequest;   /* number of that share */
    uint64_t *versions; /* of an owner, for each snapshot: number of updates in it */
    struct sgp_sim_mover mover;
    struct sgp_sim_guarded guarded;
    struct sgp_sim_step step; /* of an owner, and large */
};

/* One end of a directed edge of any file. */
struct sgp_sim_link {
    uint32_t peer;       /* host */
    uint32_t other;      /* the other end of the edge, an index of sim->links */
    uint64_t accepted;   /* IN: number of the last accepted share of the source's incarnation */
    uint64_t said;       /* IN: the same, as the core said it last */
    uint64_t taken_over; /* IN: the same, before the target took the number of its source */
    uint64_t former, former_incarnation; /* IN: the same for the source's previous incarnation */
    uint64_t before;                     /* IN: `accepted` when the target left last */
    uint64_t before_incarnation;         /* IN: its incarnation then */
    /* IN: the host that answers for accepted shares: the target, or its heir */
    uint32_t holder, before_holder;
    /* OUT: number of a share on record that is owed to the target's previous process */
    uint64_t owed_before;
    /* OUT: weight that the target has accepted while the source still owes it */
    double weight_unseen;
    uint32_t snapshot; /* OUT: snapshot of the share accepted last */
    double fraction;   /* OUT: its fraction */
    uint8_t life;      /* OUT: the source's life */
};

/* A share that an heir owed on behalf of its source until the heir's ledger was lost. The share may
 * still be on its way. */
struct sgp_sim_unowed {
    const struct sgp_sim_link *in;
    uint64_t number, source_incarnation;
};

/* ---- the network ---- */

enum sgp_sim_side { SGP_SIM_SOURCE, SGP_SIM_TARGET };
enum sgp_sim_end { SGP_SIM_END_NONE, SGP_SIM_END_OPEN, SGP_SIM_END_CLOSED };

struct sgp_sim_flight { /* a message in transit */
    struct sgp_sim_flight *next;
    sgp_time due;
    bool last;                  /* the end of the connection, without a message */
    struct sgp_message message; /* unless the message passes through the wire format */
    size_t tail_bytes;
    unsigned char tail[]; /* the frame, or the text of a goodbye */
};

struct sgp_sim_pipe { /* messages toward one side, first in, first out */
    struct sgp_sim_flight *first, *last;
    sgp_time last_due;
    bool scheduled;
};

struct sgp_sim_payload { /* a payload in transit */
    uint32_t snapshot;   /* snapshot of the source */
    sgp_time begun;      /* when it was announced at the target */
    sgp_time from;       /* when its first byte leaves the source */
    sgp_time sent;       /* when its last byte has left the source */
    sgp_time announced;  /* when the message before it arrives at the target, at the earliest */
    sgp_time due;        /* when it arrives at the target */
};

struct sgp_sim_connection {
    uint64_t id; /* serial << 32 | index; never used twice */
    uint32_t hosts[2];
    uint32_t links[2];   /* indices of sim->links */
    uint32_t references; /* number of queue entries that refer to the connection */
    bool broken;         /* nothing passes any more; one end may not know yet */
    sgp_time give_up;    /* timeout of dialling */
    enum sgp_sim_end ends[2];
    struct sgp_sim_pipe pipes[2];
    sgp_round credits[2]; /* the latest credits that reached the source, NONE once used */

    struct sgp_share share; /* announced last at the target */
    struct sgp_epoch epoch; /* epoch of that share */
    /* the first is the payload of `share`, once this was announced */
    struct sgp_sim_payload payloads[2];
    uint32_t payload_count;
    uint32_t snapshot; /* snapshot of the source whose payload arrived last */
    float *
        /* `dimension` values of the estimate as it was sent, or NULL. Its snapshot is free once the
         * source hangs up. */
        estimate;
    enum sgp_compressor estimate_compressor; /* its compressor, if it is a difference */
    uint32_t slot; /* of the target; SGP_SLOT_NONE: the target does not want the payload */
};

/* ---- sums ---- */

struct sgp_sim_sum { /* Neumaier's compensated sum */
    double value, rest;
};

struct sgp_sim_backup {       /* a record of an earlier moment */
    struct sgp_record record; /* incarnation 0: none; owns its links and accounts */
    uint64_t sequence;
    const struct sgp_sim_file *file;
};

struct sgp_sim_cycle { /* an exact cycle that some host is in */
    struct sgp_epoch epoch;
    sgp_round start;
    /* its file; hosts that complete it may have another file by then */
    const struct sgp_topology *topology;
    uint32_t entered, left;
    unsigned char *hosts; /* hosts that have entered */
    /* for each coordinate: the sum of what they entered with, and of the absolute values */
    double *sum, *size;
};

struct sgp_sim_tally { /* a round that not all hosts have completed */
    uint32_t nodes;
    double weight_least;
    double *sum, *least, *greatest; /* `dimension` values each; one allocation, at sum */
};

struct sgp_sim {
    const struct sgp_topology *topology;
    struct sgp_sim_options options;
    struct sgp_error error;
    struct sgp_random random; /* for the network */
    struct sgp_queue queue;
    sgp_time now;
    sgp_time progressed; /* when any host last completed a round */
    sgp_time faults_end; /* when the last fault that ends does so */
    sgp_time stall_ns;
    sgp_time done_at; /* NEVER until all hosts are done */

    uint32_t host_count, done_count;
    struct sgp_sim_host *hosts;
    struct sgp_sim_file *files; /* the fleet's first */
    uint32_t file_count;
    struct sgp_sim_link *links;
    struct sgp_effects effects;
    struct sgp_sim_job *jobs; /* finished jobs, whose memory is used again */

    struct sgp_sim_connection **connections;
    uint32_t *connections_free;
    uint32_t connection_count, connection_free_count, connection_capacity;
    uint64_t serial;
    unsigned char **cut_sides;  /* for each cut and host: whether the host is inside */
    uint8_t *frame;             /* scratch of the wire format */
    struct sgp_message message; /* the message that is being sent, after the wire format */
    /* the payload's slot while its target is told; otherwise NULL */
    struct sgp_sim_receive *arriving;
    uint8_t *packed; /* the payload that is arriving, in the wire format */
    float *share;    /* `dimension` values: what is absorbed now, as it arrived */
    float *given;    /* `dimension` values: what a snapshot decodes to */

    struct sgp_sim_sum weight, weight_in_flight, weight_unseen;
    uint32_t indebted;             /* number of hosts with debts */
    struct sgp_sim_unowed *unowed; /* in no order */
    size_t unowed_count;
    /* The weight that heirs may still subtract: for each bequest, the weight that arrived with
     * it. */
    double bequeathed;
    double expected; /* the expected total weight: the number of nodes, less what was forgotten */
    bool lies;       /* a host states wrong weights */
    struct sgp_sim_knowledge knowledge; /* of liars; all zero if no lie needs it */
    bool heals;                         /* a host has detected that the total is wrong */
    struct sgp_sim_backup *backups;     /* for each crash */
    /* sgp_restart, unless a bug is planted */
    void (*restart)(const struct sgp_past *, uint64_t, uint32_t, struct sgp_restart *);
    double *moved;    /* for each coordinate: the sum of x at the start and of all training since */
    double *rounding; /* for each coordinate: accumulated rounding */
    double *count;    /* scratch of the full count */
    float *before, *after;
    bool overflown; /* x is not finite any more, so there is nothing to count */
    /* x is not checked here in two cases. If some file has exact cycles, cycle.c checks it. owner.c
     * checks it if parts have owners, or if ledgers of an owner or its workers are restored from a
     * backup. Then shares that were given twice have no weight. */
    bool apart;
    /* Some files have exact cycles and some do not, so weight is created and lost when one replaces
     * another. */
    bool mixed;
    struct sgp_sim_cycle *cycles;
    uint32_t cycle_count;
    double *token;                /* `dimension` values of the token; NULL: there is no token */
    struct sgp_epoch token_epoch; /* epoch of the token */
    /* since links join two hosts that have a token; SGP_TIME_NEVER: they do not */
    sgp_time doubled_since;
    /* The token may have been created again, or a ledger is outdated. Then its weight is not
     * conserved. */
    bool remade;

    struct sgp_sim_tally *tallies; /* of the rounds row_next, row_next + 1, ... */
    uint32_t tally_count, tally_capacity;
    sgp_round row_next;
    uint32_t behind; /* number of hosts that have not completed row_next */

    struct sgp_sim_summary summary;
    uint64_t digest; /* of all events so far */
};

/* failure.c */
void sgp_sim_fail(struct sgp_sim *sim, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* entry.c */
/* A computed span, at most SGP_SIM_TIME_MAX, so that adding it to a time of the queue does not
 * overflow. */
sgp_time sgp_sim_span(double nanoseconds);
/* If the time is beyond SGP_SIM_TIME_MAX, the run fails. */
void sgp_sim_push(
    struct sgp_sim *sim, sgp_time time, enum sgp_sim_kind kind, uint32_t detail, uint32_t index);

/* compensated_sum.c */
void sgp_sim_add(struct sgp_sim_sum *sum, double value);
double sgp_sim_total(const struct sgp_sim_sum *sum);
double sgp_sim_weight(const struct sgp_sim *sim); /* of all hosts, including weight in transit */

/* token.c */
bool sgp_sim_has_token(const struct sgp_sim_host *host);
int sgp_sim_create_mover(struct sgp_sim_host *host);
void sgp_sim_free_mover(struct sgp_sim_host *host);
void sgp_sim_forget_moved(
    struct sgp_sim_host *host); /* it starts again, or with the estimate of another host */
void sgp_sim_count_moved(
    struct sgp_sim_host *host); /* between `before` and `after` of the simulation */
void sgp_sim_count_offered(struct sgp_sim_host *host);
/* the token that is published */
void sgp_sim_check_token(struct sgp_sim_host *host, const float *token);
/* the token that has arrived */
void sgp_sim_check_receive_token(struct sgp_sim_host *host, const float *token);
/* the token that leaves */
void sgp_sim_check_token_received(struct sgp_sim_host *host, const float *token);
void sgp_sim_check_stands(struct sgp_sim_host *host); /* x is the copy plus the host's own change */
void sgp_sim_check_one_token(struct sgp_sim *sim);

/* host.c */
const char *sgp_sim_name(const struct sgp_sim *sim, uint32_t host);
bool sgp_sim_is_owner(const struct sgp_sim_host *host);
float *sgp_sim_snapshot(const struct sgp_sim_host *host, uint32_t slot);
/* The values that were given of the snapshot: what its coding represents. Valid until the next
 * call. */
const float *sgp_sim_given(const struct sgp_sim_host *host, uint32_t slot);
/* The payload of a receive slot as it arrived, even if it was folded. */
const float *sgp_sim_received(const struct sgp_sim_host *host, uint32_t slot);
/* The host whose network card is used: its own, or that of the node with which it is co-located. */
struct sgp_sim_host *sgp_sim_machine(struct sgp_sim_host *host);
/* Whether a connection is between two hosts of one machine, where transfers take no time. Then, the
 * transfer time of a message. */
bool sgp_sim_is_within(struct sgp_sim *sim, const struct sgp_sim_connection *connection);
sgp_time sgp_sim_latency(struct sgp_sim *sim, const struct sgp_sim_connection *connection);
/* The host that owns the values from `first` on, according to the file of `host`. */
struct sgp_sim_host *sgp_sim_owner_of(const struct sgp_sim_host *host, uint64_t first);
void sgp_sim_node_config(
    const struct sgp_sim *sim, const struct sgp_sim_host *host, struct sgp_node_config *ret_config);
/* The least weight at which a node may ever train. It gives nothing below SGP_STARVING * w_min.
 * When it gives, it keeps what its sparsest phase keeps, or sgp_method_keep if it chooses its
 * targets. */
double sgp_sim_weight_floor(const struct sgp_sim *sim, const struct sgp_sim_host *host);

/* buffers.c */
int sgp_sim_create_buffers(struct sgp_sim *sim, struct sgp_sim_host *host); /* 0 or -ENOMEM */
/* Make buffers for a core with these needs. Existing buffers stay. 0 or -ENOMEM. */
int sgp_sim_make_room(
    struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_node_needs *needs);
void sgp_sim_free_buffers(struct sgp_sim_host *host);

/* stall.c */
/* The time without a completed round after which the run counts as stalled. */
sgp_time sgp_sim_stall_time(const struct sgp_sim *sim);
/* next: time of the next event */
bool sgp_sim_is_stalled(const struct sgp_sim *sim, sgp_time next);
/* Whether the host joins, and no host will ever greet it: each neighbour by its file has ended, or
 * has a file without an edge between the two. It has to wait until an administrator corrects a
 * file, and says for whom it waits. */
bool sgp_sim_is_cut_off(const struct sgp_sim *sim, uint32_t host);
/* Fail the run, unless all unfinished hosts are cut off. Name the host that has waited longest, and
 * follow the hosts for which it waits. The chain ends at a host that waits for no other, or in a
 * circle. */
void sgp_sim_fail_stalled(struct sgp_sim *sim);

/* network_model.c */
/* now, or when the host runs again */
sgp_time sgp_sim_ready(const struct sgp_sim *sim, uint32_t host);
/* Now, or when the network passes messages from source to target again. */
sgp_time sgp_sim_passable(const struct sgp_sim *sim, uint32_t source, uint32_t target);
/* The time that a host's clock shows. It never decreases, and is at most twice SGP_SIM_TIME_MAX. */
sgp_time sgp_sim_clock(struct sgp_sim *sim, struct sgp_sim_host *host);
/* Turn swizzles into clogs, and queue the faults that begin at a given time. 0 or -ENOMEM. */
int sgp_sim_schedule_faults(struct sgp_sim *sim);
/* The latest end of a fault that has one. */
sgp_time sgp_sim_faults_end(const struct sgp_sim *sim);

/* liar.c */
/* Prepare what the liars of the options must know. Returns 0 or -ENOMEM. */
int sgp_sim_create_liars(struct sgp_sim *sim);
/* A host has done this job: liars know what an honest one has trained and published. */
void sgp_sim_overhear(const struct sgp_sim_host *host, const struct sgp_work *work);
/* The payload of a share arrives at its target: if its source lies, the values change. */
void sgp_sim_lie(struct sgp_sim *sim, uint32_t source, const struct sgp_sim_host *target,
    const struct sgp_share *share, float *values);
/* A share leaves its source: if that lies about its weight, the weight becomes 0. */
void sgp_sim_lie_of_weight(const struct sgp_sim *sim, uint32_t source, struct sgp_share *share);
bool sgp_sim_lies_of_weight(
    const struct sgp_sim *sim, uint32_t source, const struct sgp_share *share);
/* The same for the payload of an estimate. */
void sgp_sim_lie_of_estimate(
    const struct sgp_sim *sim, uint32_t source, float *values, uint64_t count);
bool sgp_sim_lies_of_estimate(const struct sgp_sim *sim, uint32_t host);
/* The target has accepted a share of that snapshot, in this slot. */
void sgp_sim_count_lie(struct sgp_sim *sim, const struct sgp_sim_host *source, uint32_t snapshot,
    const struct sgp_sim_host *target, uint32_t slot);

/* link.c */
struct sgp_sim_link *sgp_sim_link_of(
    struct sgp_sim_host *host, uint32_t peer, enum sgp_direction direction);
/* What a host's core says of its end of an edge (sgp_node_link_account). False, and both 0, if the
 * core does not have it. */
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
/* The first file of a host, and whether the host starts later than at 0. */
const struct sgp_sim_file *sgp_sim_first_file(
    const struct sgp_sim *sim, uint32_t host, bool *ret_later);
void sgp_sim_schedule_reloads(struct sgp_sim *sim);
/* Translate the peers of a record from one file to another, as daemon/store/ledger.c does by
 * names. */
void sgp_sim_translate(
    struct sgp_record *record, const struct sgp_sim_file *from, const struct sgp_sim_file *to);
/* A process that starts again reads the present file, and its record with it. */
void sgp_sim_take_file(struct sgp_sim_host *host);

/* options.c */
int sgp_sim_check_options(const struct sgp_topology *topology,
    const struct sgp_sim_options *options, struct sgp_error *error);
/* A copy of an array, which the caller frees; without items some memory, too. NULL: no memory. */
void *sgp_sim_copy(const void *items, size_t count, size_t size);
int sgp_sim_copy_faults(struct sgp_sim *sim); /* copies what the options point to; 0 or -ENOMEM */
void sgp_sim_free_faults(struct sgp_sim *sim);

/* backup.c */
int sgp_sim_create_backups(struct sgp_sim *sim); /* 0 or -ENOMEM */
void sgp_sim_save(struct sgp_sim *sim, const struct sgp_sim_crash *crash);
/* Replace the last record by the saved one. Returns whether there was one of this life. */
bool sgp_sim_put_back(struct sgp_sim_host *host, const struct sgp_sim_backup *backup);
void sgp_sim_free_backups(struct sgp_sim *sim);

/* job.c */
/* A job to be filled in and appended. NULL: there is no memory, and the run has failed. */
struct sgp_sim_job *sgp_sim_new_job(struct sgp_sim_host *host, enum sgp_sim_job_kind kind);
void sgp_sim_append(struct sgp_sim_host *host, struct sgp_sim_job *job);
/* The first job is done: take it, and begin the next one. The caller frees it. */
struct sgp_sim_job *sgp_sim_take_job(struct sgp_sim_host *host);
/* A step of the first job has ended. True: there is another one. */
bool sgp_sim_job_goes_on(struct sgp_sim_host *host);
void sgp_sim_curtail(void *context);
/* The program has ended: of the steps under way, those that it has not taken are left out. */
void sgp_sim_cancel(struct sgp_sim_host *host);
void sgp_sim_end_job(struct sgp_sim_host *host, struct sgp_sim_job *job);
void sgp_sim_drop_jobs(struct sgp_sim_host *host);
void sgp_sim_free_jobs(struct sgp_sim *sim); /* of all finished ones */

/* checkpoint.c */
void sgp_sim_checkpoint(struct sgp_sim_host *host); /* queue the saving of a checkpoint */
void sgp_sim_checkpointed(struct sgp_sim_host *host, const struct sgp_sim_job *job);
/* Restore the saved snapshots to their slots. */
void sgp_sim_restore_kept(struct sgp_sim_host *host);

/* chosen.c: before and after a job that chooses the coded range of an update */
void sgp_sim_before_choosing(struct sgp_sim_host *host, const struct sgp_work *work);
void sgp_sim_check_chosen(struct sgp_sim_host *host, const struct sgp_work *work);
/* Whether such a PUBLISH of this host makes an owner's coded copy. */
bool sgp_sim_hands_copy(const struct sgp_sim_host *host, enum sgp_publish purpose);
void sgp_sim_before_change(struct sgp_sim_host *host, const struct sgp_work *work);
void sgp_sim_check_change(struct sgp_sim_host *host, const struct sgp_work *work);
void sgp_sim_check_returned(struct sgp_sim_host *host, const struct sgp_work *work);

/* connection.c */
void sgp_sim_dial(void *context, uint32_t peer);
/* Add a queue entry that refers to the connection, which is kept until then. */
void sgp_sim_network_push(struct sgp_sim *sim, sgp_time time, enum sgp_sim_kind kind, uint32_t side,
    struct sgp_sim_connection *connection);
struct sgp_sim_connection *sgp_sim_connection_of(struct sgp_sim *sim, uint64_t id);
void sgp_sim_network_finish(struct sgp_sim *sim);

/* The process of a host is gone: its connections break, and dialling it is refused. */
void sgp_sim_network_die(struct sgp_sim *sim, uint32_t host);
void sgp_sim_give_up_dials(struct sgp_sim *sim, uint32_t host); /* pending dials are void */
void sgp_sim_pipe_clear(struct sgp_sim_pipe *pipe);
/* Discard all payloads but the first `kept`. If none is kept, the target's buffer is free again.
 * The source's network card is free for the payloads of other connections that wait for it. */
void sgp_sim_drop_payloads(
    struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t kept);
void sgp_sim_half_open(struct sgp_sim *sim, const struct sgp_sim_half_open *half_open);
/* All messages in transit are lost, and each remaining end learns of the break at once. */
void sgp_sim_tear(struct sgp_sim *sim, struct sgp_sim_connection *connection);
/* Free a connection that no end and no queue entry refers to. */
void sgp_sim_release(struct sgp_sim *sim, struct sgp_sim_connection *connection);

/* send.c */
void sgp_sim_send(
    void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot);
void sgp_sim_hang_up(
    void *context, struct sgp_link link, int code, const struct sgp_message *goodbye);
void sgp_sim_receive(void *context, struct sgp_link link, uint32_t slot);
void sgp_sim_fold(void *context, const struct sgp_effect *effect);
/* How much of the first payload has arrived, at the pace at which it will be complete. */
uint64_t sgp_sim_bytes_so_far(
    const struct sgp_sim *sim, const struct sgp_sim_connection *connection);
/* Make the queue entry for the first message of a pipe. */
void sgp_sim_pipe_schedule(
    struct sgp_sim *sim, struct sgp_sim_connection *connection, uint32_t side);
/* The payload that follows a message. An estimate's is represented as a share of number 0 that
 * gives nothing. */
struct sgp_share sgp_sim_cargo(const struct sgp_sim *sim, const struct sgp_message *message);

/* unowed.c */
/* If there is no memory, the run fails. */
void sgp_sim_unowe(struct sgp_sim *sim, const struct sgp_sim_unowed *share);
/* The target has accepted this share of the source's present incarnation. Returns whether no node
 * owed it; the next time it is unknown. */
bool sgp_sim_take_unowed(struct sgp_sim *sim, const struct sgp_sim_link *in, uint64_t number);
void sgp_sim_forget_unowed(struct sgp_sim *sim);

/* unseen.c */
/* The weight that the target of a link, or the source's heir, has accepted while the source still
 * owes it. */
void sgp_sim_see_link(struct sgp_sim *sim, struct sgp_sim_host *source, struct sgp_sim_link *out);
void sgp_sim_see_links(struct sgp_sim *sim, struct sgp_sim_host *source);
/* Whether the target has accepted the share that the source still owes. The share may be an update,
 * which has no weight. */
bool sgp_sim_is_unseen(
    const struct sgp_sim *sim, struct sgp_sim_host *source, const struct sgp_sim_link *out);
/* Count the debts of all hosts after an event at one of them. The debts of other hosts do not
 * change. Few hosts have debts, and usually none has. */
void sgp_sim_see_debts(struct sgp_sim *sim, struct sgp_sim_host *changed);
/* Whether the target of a debt has accepted the share. */
bool sgp_sim_is_paid(struct sgp_sim *sim, const struct sgp_account *debt);
/* The weight that a host owes, as its core says now, except accepted shares. */
double sgp_sim_count_in_flight(struct sgp_sim *sim, struct sgp_sim_host *source);

/* check.c */
int sgp_sim_check_init(struct sgp_sim *sim);
void sgp_sim_check_finish(struct sgp_sim *sim);
void sgp_sim_check_event(
    struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_event *event);
/* A job has changed x, which was sim->before. The expected change is `fraction` times `share`
 * (slice.count values, from x[slice.first] on). A NULL share: the job trained. */
void sgp_sim_check_job(
    struct sgp_sim_host *host, const float *share, double fraction, struct sgp_slice slice);
void sgp_sim_check_all(struct sgp_sim *sim);
/* Add to sim->count the host's x, what is owed of its snapshots, and what its buffers hold for
 * it. */
void sgp_sim_count_host(struct sgp_sim *sim, struct sgp_sim_host *host);
/* An heir dissolves weight that was left to it. */
void sgp_sim_check_dissolve(struct sgp_sim_host *host, const struct sgp_effect *effect);
/* A core created or removed weight. It may only begin to do so if the total is too small, or above
 * the bound. */
void sgp_sim_check_total(struct sgp_sim_host *host, const struct sgp_effect *effect);
/* The core of a host has dropped the snapshot of a share in doubt. */
void sgp_sim_check_dispute(struct sgp_sim_host *host, const struct sgp_effect *effect);

/* check_life.c */
/* Remove the parameters of a host that dies from the count, and add those of a host that starts
 * again. */
void sgp_sim_check_strike(struct sgp_sim *sim, struct sgp_sim_host *host);
void sgp_sim_check_begin(struct sgp_sim *sim, struct sgp_sim_host *host);
/* A host that was an owner restarts with a file in which it is none. Its weight is the new
 * owner's. */
void sgp_sim_check_unowned(struct sgp_sim_host *host);
/* The parameters of a checkpoint that is called exact must equal those with which the last process
 * died. */
void sgp_sim_check_exact(struct sgp_sim *sim, struct sgp_sim_host *host);
/* The next process of a host, whose core is `next`, may not know the debts of the former one. */
void sgp_sim_check_debts(
    struct sgp_sim *sim, const struct sgp_sim_host *host, const struct sgp_node *next);
/* A host restarts without its record. Its weight is gone, it has weight 1, and other hosts still
 * owe it what they owed. */
void sgp_sim_check_forget(struct sgp_sim *sim, struct sgp_sim_host *host);
/* A host restarts with the record of an earlier moment, which replaces a record with the given
 * `covered`. */
void sgp_sim_check_restore(struct sgp_sim *sim, struct sgp_sim_host *host, double covered);
/* A host that has left restarts as a new member. */
void sgp_sim_check_rejoin(
    struct sgp_sim *sim, struct sgp_sim_host *host, uint64_t former_incarnation);

/* owner.c */
int sgp_sim_create_step(struct sgp_sim_host *host); /* 0 or -ENOMEM */
void sgp_sim_free_step(struct sgp_sim_host *host);
void sgp_sim_begin_step(
    struct sgp_sim_host *host); /* x has changed for another reason, or its process starts */
/* the updates that an earlier process had */
void sgp_sim_forget_updates(struct sgp_sim_host *host);
void sgp_sim_update_came(struct sgp_sim *sim, struct sgp_sim_host *owner,
    const struct sgp_sim_link *in, sgp_round round);
void sgp_sim_update_taken(struct sgp_sim_host *owner, double fraction, struct sgp_slice slice);
void sgp_sim_update_added(
    struct sgp_sim_host *owner, const struct sgp_sim_job *job, const float *update);
void sgp_sim_update_late(struct sgp_sim_host *owner, uint32_t slot);
void sgp_sim_step_told(struct sgp_sim_host *owner, double added);
/* called after every event */
void sgp_sim_check_step(struct sgp_sim *sim, struct sgp_sim_host *host);
void sgp_sim_check_mean(struct sgp_sim_host *owner); /* called when its jobs are done */
/* An owner's estimate of a label is copied out, or a worker takes it. `values` are those that it
 * owns, by the host's file, of a vector that begins with `estimate`. */
void sgp_sim_check_label(struct sgp_sim_host *host, sgp_round label, const float *estimate,
    struct sgp_slice values, bool taken);
/* The values that a host owns, according to its file. */
struct sgp_slice sgp_sim_owned(const struct sgp_sim_host *owner);

/* guarded.c */
int sgp_sim_create_words(struct sgp_sim_host *host); /* 0 or -ENOMEM */
void sgp_sim_free_words(struct sgp_sim_host *host);
/* Whether a guard must judge the share of an ABSORB, by the rule. */
bool sgp_sim_is_judged(const struct sgp_sim_host *host, const struct sgp_work *work);
/* A job has absorbed a share that a guard has judged. x was sim->before, and the share is
 * sim->share. */
void sgp_sim_check_guarded(
    struct sgp_sim_host *host, const struct sgp_work *work, const struct sgp_share *share);

/* A job is about to adopt an estimate. x is sim->before. */
void sgp_sim_check_choice(struct sgp_sim_host *host, const struct sgp_adoption *adoption);

/* stale.c */
bool sgp_sim_adds_each(const struct sgp_sim_host *host); /* an owner at its own pace */
void sgp_sim_copy_made(struct sgp_sim_host *owner, uint32_t snapshot);
void sgp_sim_copy_sent(
    const struct sgp_sim_host *owner, uint32_t snapshot, struct sgp_sim_host *worker);
void sgp_sim_copy_taken(struct sgp_sim_host *worker, struct sgp_slice values);
void sgp_sim_check_turn(struct sgp_sim_host *host, sgp_round turn); /* the turn that it trains */
void sgp_sim_update_given(struct sgp_sim_host *worker);             /* a job will make the update */
void sgp_sim_update_leaves(struct sgp_sim_host *worker);            /* the update is made */
/* The update is added next; then, the job that adds it. */
void sgp_sim_update_chosen(struct sgp_sim_host *owner, struct sgp_sim_host *worker, double told);
void sgp_sim_update_next(
    struct sgp_sim_host *owner, double fraction, struct sgp_sim_job *ret_absorb);
void sgp_sim_keep_update(struct sgp_sim_host *owner, const float *update, struct sgp_slice slice);
void sgp_sim_count_compensated(
    struct sgp_sim_host *owner, const float *update, struct sgp_slice slice);
void sgp_sim_check_added(struct sgp_sim_host *owner, const struct sgp_sim_job *absorb);
void sgp_sim_check_late(struct sgp_sim_host *owner);
void sgp_sim_check_taken(struct sgp_sim_host *owner); /* called after every event */

/* cycle.c */
void sgp_sim_enter_cycle(struct sgp_sim_host *host, const struct sgp_sim_job *job, const float *x);
void sgp_sim_leave_cycle(struct sgp_sim_host *host, const struct sgp_sim_job *job);
void sgp_sim_renewed(struct sgp_sim_host *host); /* its core has dropped shares of earlier epochs */
void sgp_sim_forget_cycles(struct sgp_sim *sim);

/* rows.c */
void sgp_sim_rows_leave(
    struct sgp_sim *sim, struct sgp_sim_host *host, sgp_round round, double weight);
void sgp_sim_rows_recount(struct sgp_sim *sim); /* a host does not count any more */
void sgp_sim_rows_finish(struct sgp_sim *sim);
double sgp_sim_rows_disagreement(const struct sgp_sim *sim); /* of all present hosts, now */

/* event.c */
/* Pass an event to a host's core, check the result, and schedule its next tick. */
void sgp_sim_post(struct sgp_sim *sim, struct sgp_sim_host *host, struct sgp_event *event);
/* called for its queue entry */
void sgp_sim_tick(struct sgp_sim *sim, struct sgp_sim_host *host, sgp_time time);
void sgp_sim_wake(struct sgp_sim *sim, struct sgp_sim_host *host); /* a tick is due now */
void sgp_sim_gone(struct sgp_sim *sim, struct sgp_sim_host *host); /* it hears no more events */

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
/* A suspended machine starts nothing until it resumes. A machine that is gone never starts
 * anything. */
void sgp_sim_rebirth(struct sgp_sim *sim, const struct sgp_sim_crash *crash);

/* ops.c */
extern const struct sgp_driver_ops sgp_sim_ops;

#endif
