/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator: real cores in virtual time, on virtual links, with deliberate faults.
 *
 * It runs one struct sgp_node per node of a topology, each behind the same driver as in the daemon,
 * and carries their effects out itself. Messages and payloads take latency and bandwidth, jobs take
 * compute time, connections break, machines stop and networks are cut. The daemon uses sockets and
 * a compute thread for that; the simulator uses one thread, in an order that follows from the seed
 * alone: equal options give equal digests.
 *
 * After every event it checks that no mass was lost or made, that every share was accepted at most
 * once and against a credit, and that no buffer was used twice. Once a round it counts everything
 * again from the nodes' own state. A violation ends the run with one line that names the invariant,
 * the place and the time.
 *
 * Thread: all calls on one simulation come from one thread. Time is virtual and starts at 0. */
#ifndef SGP_SIM_H
#define SGP_SIM_H

#include "sgp/choose.h"
#include "sgp/node.h"
#include "sgp/sink.h"
#include "sgp/trainer.h"

#define SGP_SIM_MESSAGE_BYTES 128u /* the size of a message without payload on a link */
#define SGP_SIM_DIMENSION_MAX 16777216u
#define SGP_SIM_FAULTS_MAX 65536u             /* of each kind */
#define SGP_SIM_TIME_MAX (SGP_TIME_NEVER / 4) /* greatest time and span of the options; 73 years */
/* Dialling a machine that does not answer ends after this. */
#define SGP_SIM_CONNECT_NS (3 * SGP_SECOND)
#define SGP_SIM_HEARD_NS (100 * SGP_MILLISECOND) /* interval of SGP_EVENT_HEARD in a long payload */
#define SGP_SIM_STALL_NS (600 * SGP_SECOND)      /* no node advanced for this long: a failure */
#define SGP_SIM_SETTLE_NS                                                                          \
    (60 * SGP_SECOND)            /* after the last round, for acknowledgements under way */
#define SGP_SIM_MASS_SLACK 1e-12 /* per node: how far the total weight may be from exact */

/* A node whose training steps take `factor` times as long (> 0). */
struct sgp_sim_straggler {
    uint32_t node;
    double factor;
};

/* A node that is stopped (as by SIGSTOP) while from <= time < to. Its machine still accepts bytes
 * and connections, and its process does nothing until `to`. With to == SGP_TIME_NEVER the machine
 * is gone for good: nothing reaches it, and dialling it fails. */
struct sgp_sim_absence {
    uint32_t node;
    sgp_time from;
    sgp_time to;
};

enum sgp_sim_way {
    SGP_SIM_BOTH_WAYS = 0,
    SGP_SIM_OUTWARD, /* only messages of the nodes to the others are held */
    SGP_SIM_INWARD,  /* only messages of the others to the nodes are held */
};

/* While from <= time < to nothing passes between `nodes` and all the others. Data under way arrives
 * after `to`, as TCP would send it again, unless an end hung up before. */
struct sgp_sim_cut {
    const uint32_t *nodes;
    uint32_t node_count;
    sgp_time from;
    sgp_time to;
    enum sgp_sim_way way;
};

/* A cut of one connection: data from `source` to `target` while from <= time < to is held, and
 * arrives afterwards in order. */
struct sgp_sim_clog {
    uint32_t source;
    uint32_t target;
    sgp_time from;
    sgp_time to;
};

/* A random half of a node's edges is clogged, one after another in the first half of the span, and
 * released in another order in the second half. */
struct sgp_sim_swizzle {
    uint32_t node;
    sgp_time from;
    sgp_time to; /* not NEVER */
};

/* At `at` one node loses its end of every connection with another. The other keeps its ends open:
 * nothing arrives there any more, and no end resets the connections. */
struct sgp_sim_half_open {
    uint32_t loser;
    uint32_t keeper;
    sgp_time at;
};

/* A node's clock, which its events carry, leaps ahead at `at`, or stops from then on for a
 * while. */
struct sgp_sim_clock {
    uint32_t node;
    sgp_time at;
    /* > 0: the clock leaps ahead by this; < 0: it stops for that long, and stays behind */
    sgp_time leap;
};

/* A process that is killed at `at` and started again at `back`. It leaves only its record
 * (sgp/record.h), and its checkpoint if the options make it write any. If it `forgets`, it leaves
 * nothing, as if it died before it had begun: then it begins again with weight 1.
 *
 * If it has `saved`, the record of that moment replaces the last one, as from a backup. The
 * exceptions are a node that had no record then, has forgotten that life, or has left.
 *
 * A node that has drained is started again too. A node whose machine is stopped at `back` is
 * started once the machine continues, and never if it is gone. */
struct sgp_sim_crash {
    uint32_t node;
    sgp_time at;
    sgp_time back;
    bool forgets;
    sgp_time saved; /* the time of the restored record, before `at`; 0: none is restored */
};

enum sgp_sim_lie {
    SGP_SIM_LIE_FLIP = 1, /* the negative of its values */
    SGP_SIM_LIE_SCALE,    /* ten times its values */
    SGP_SIM_LIE_NOISE,    /* its values, and normal noise that is about as long as they are */
    /* The estimates for nodes that ask are the negative of its own. Its shares are honest. */
    SGP_SIM_LIE_ESTIMATE,
    /* One share of 16 has weight 0 and values that are far too large. The weight that it should
     * have is lost. */
    SGP_SIM_LIE_WEIGHTLESS,
    /* The following say a model that is made of the models which the honest nodes gave last. Let m
     * be their mean, and z the one of the target. */
    SGP_SIM_LIE_ALIE,      /* m less 1.5 times the deviation of each coordinate */
    SGP_SIM_LIE_IPM,       /* m less 10 times its change since the round before */
    SGP_SIM_LIE_DRIFT,     /* z, moved against the latest steps of all by 0.9 times the reach */
    SGP_SIM_LIE_DISSENSUS, /* z + 10 (z - m) */
    SGP_SIM_LIE_MOST = SGP_SIM_LIE_DISSENSUS,
};

/* A node whose shares carry other values than it has, or whose estimates do. But for
 * SGP_SIM_LIE_WEIGHTLESS their weights are right, and so are its messages.
 *
 * The liar is omniscient: it reads the models and steps of honest nodes from the simulator. The
 * reach of SGP_SIM_LIE_DRIFT is the bound of the target's guard, or without a guard twice the
 * median distance of the target from the other honest nodes. SGP_SIM_LIE_ALIE and those after it
 * need nodes that mix: they are refused if the vector has an owner. */
struct sgp_sim_liar {
    uint32_t node;
    enum sgp_sim_lie lie;
};

/* A topology file for a node, in force from `at` on. A node starts with its first file, at that
 * file's time, and reloads the others, in order of time. A file that comes while the process is
 * dead, or has drained or diverged, is for the next process. */
struct sgp_sim_reload {
    uint32_t node;
    sgp_time at;
    const struct sgp_topology *topology; /* borrowed; names the node, and only nodes of the fleet */
};

/* The state when the last present node has completed a round. */
struct sgp_sim_row {
    sgp_round round;
    sgp_time time;  /* virtual, when the last node completed the round */
    uint32_t nodes; /* how many completed this round (a node that was away may skip it) */
    /* Max over nodes i and coordinates of |z_i - mean z|, absolute, of the estimates z with which
     * the nodes left this round. */
    double disagreement;
    const double *least, *greatest; /* of these z, `dimension` values each; borrowed for the call */
    /* Sum of w over all nodes, including weight in flight: the number of nodes, as changed by nodes
     * that forgot or left. */
    double weight;
    double weight_least; /* least w of a node leaving this round */
    uint64_t bytes;      /* handed to the network since the start, payloads and messages */
    uint64_t shares;     /* accepted since the start, empty ones included */
};

/* Totals, and the digest of all events. */
struct sgp_sim_summary {
    sgp_time time;
    uint64_t events;
    uint64_t messages;
    uint64_t bytes;
    uint64_t shares;         /* accepted */
    uint64_t shares_empty;   /* of these, with fraction 0 */
    uint64_t shares_refused; /* by their target */
    uint64_t outsized;       /* payloads refused as far too large */
    uint64_t shares_guarded; /* judged by a guard when they were absorbed */
    uint64_t shares_clipped; /* of these, not taken whole */
    uint64_t broken;         /* connections that a node ended because its peer broke the protocol */
    uint64_t changes;        /* coded changes that owners made for the copies of their workers */
    /* Added to x while they arrived, and equal to the result of absorbing later. */
    uint64_t shares_folded;
    uint64_t connections; /* dialled */
    uint64_t resets;      /* connections broken by `loss` */
    uint64_t half_opened; /* connections of which one end was lost */
    uint64_t crashes;
    uint64_t restored; /* crashes after which the record of an earlier moment was restored */
    uint64_t exact;    /* crashes after which a checkpoint was exact */
    uint64_t kept;     /* shares whose content such a checkpoint had kept, to the bit */
    /* Estimates taken from a neighbour, after a crash or by a node that is new to a running
     * fleet. */
    uint64_t adopted;
    uint64_t compared;       /* of these, chosen among several (sgp_guard_choose) */
    uint64_t misled;         /* of these, the estimate of a node that lies about it */
    uint64_t absences;       /* times that a node took a peer for absent */
    uint64_t jumps;          /* times that a node took a round far ahead */
    uint64_t cycles_renewed; /* times that a node began again with a higher epoch */
    uint32_t finished;       /* nodes in state finished */
    uint32_t diverged;       /* nodes that gave up training */
    double weight;           /* of all nodes, including weight in flight */
    double weight_in_flight; /* given and not accepted */
    double weight_least;     /* least w at which any node trained */
    /* Greatest distance of the total weight from the number of nodes, as changed by nodes that
     * forgot or were restored. */
    double mass_error;
    double weight_unknown; /* By how much the total may be off at most, as restored nodes report. */
    /* As in a row, of all nodes that run now: not of those that are gone, killed, drained or
     * diverged, nor of relays that have nothing. It and sgp_sim_estimate are exact only while no
     * job is queued, as at the end. */
    double disagreement;
    uint64_t digest; /* XXH3-64 over every event and the final parameters */
};

struct sgp_sim_options {
    uint64_t seed;
    sgp_round rounds; /* >= 1 */
    /* For each node its own number of rounds, in place of `rounds`; >= 1, and 0 for a relay. NULL:
     * all nodes have `rounds`. */
    const sgp_round *node_rounds;
    /* The end is open: sgp_sim_command posts SGP_EVENT_STEPS_END to each node. A step that is under
     * way then is not taken. */
    bool open;
    bool one_beginning; /* as in struct sgp_node_config; all nodes but the first seek */
    const struct sgp_method *method; /* not NULL */
    uint32_t overlap;                /* as in struct sgp_node_config */
    bool step_by_rate;               /* as in struct sgp_node_config */
    uint32_t backup_neighbours;      /* as in struct sgp_node_config */
    sgp_time patience_ns;            /* likewise */
    /* Of the guard on received shares of every node (sgp/guard.h): 0.1 to 10; 0: none. Each file
     * must then be one with which each node may have a guard. */
    double guard;
    uint32_t local_steps;
    uint32_t final_cycles;
    /* `chooser` is for shares and updates, `copies` for an owner's copies. Their compressors are
     * `compressor` and `copies` of struct sgp_node_config. */
    struct sgp_chooser chooser, copies;
    uint32_t start;        /* as in struct sgp_node_config */
    uint64_t dimension;    /* d: 1 .. SGP_SIM_DIMENSION_MAX */
    sgp_time latency_ns;   /* one way, >= 0 */
    double bandwidth;      /* bytes per second out of a machine; 0 = without limit */
    sgp_time compute_ns;   /* of one local step, >= 0 */
    double compute_jitter; /* each training job takes a random 1 -+ this of its time, 0 <= . < 1 */
    double compute_tail;   /* > 0: times a Pareto draw of this shape, at least 1 */
    double compute_tail_max; /* and at most this (>= 1); 0: no tail */
    /* The interval at which every node saves its parameters; it also saves them when it has
     * drained. 0: never. */
    sgp_time checkpoint_ns;
    sgp_time linger_ns; /* the run continues for this long after all nodes are done, >= 0 */
    double loss;        /* 0 <= . < 1: the probability that a message breaks its connection */
    bool through_wire;  /* encode and decode every message */
    const struct sgp_sim_straggler *stragglers;
    uint32_t straggler_count;
    const struct sgp_sim_absence *absences;
    uint32_t absence_count;
    const struct sgp_sim_cut *cuts;
    uint32_t cut_count;
    const struct sgp_sim_crash *crashes;
    uint32_t crash_count;
    const struct sgp_sim_clog *clogs;
    uint32_t clog_count;
    const struct sgp_sim_swizzle *swizzles;
    uint32_t swizzle_count;
    const struct sgp_sim_half_open *half_opens;
    uint32_t half_open_count;
    const struct sgp_sim_clock *clocks;
    uint32_t clock_count;
    const struct sgp_sim_liar *liars;
    uint32_t liar_count;
    const struct sgp_sim_reload *reloads;
    uint32_t reload_count;
    const struct sgp_sink *sink; /* gets the drivers' TRACE lines; may be NULL */

    void *context; /* passed to the callbacks */
    /* Make the trainer of a node, with `dimension` parameters; the simulation destroys it. Called
     * for each node in order, and again for each process that is started again. Must not be NULL.
     * Returns 0 or a negative code, which sgp_sim_create returns. */
    int (*trainer)(void *context, uint32_t node, struct sgp_trainer **ret_trainer);
    /* One call per round, in order of rounds. If NULL, the estimates of open rounds are not summed
     * up, which spares three vectors of doubles for each. */
    void (*row)(void *context, const struct sgp_sim_row *row);
    /* One call per node and completed round: the weight and estimate (dimension values) with which
     * it leaves the round. May be NULL. */
    void (*left)(
        void *context, uint32_t node, sgp_round round, double weight, const float *estimate);
    /* A note of a core for people. May be NULL. */
    void (*note)(void *context, uint32_t node, sgp_time now, const struct sgp_effect *note);
};

/* Defaults: seed 1, sgp, 100 rounds of one step, two final cycles, start all, dimension 8, latency
 * 1 ms, 125 MB/s, 10 ms a step, no jitter, no faults, no callbacks. */
SGP_API void sgp_sim_options_init(struct sgp_sim_options *options);

struct sgp_sim;

/* Create a simulation at time 0. The topology names every node that will ever take part; nodes
 * without reloads start with it at once. All functions and options here use its index of a node; a
 * note names a peer by the index in the node's own file. The topology is borrowed and must outlive
 * the simulation. Options are copied, with the arrays that they point to. Returns 0; -EINVAL with
 * the reason in *error (may be NULL) for an option out of range; -ENOMEM; or the code of the
 * trainer callback. */
SGP_API int sgp_sim_create(const struct sgp_topology *topology,
    const struct sgp_sim_options *options, struct sgp_error *error, struct sgp_sim **ret_sim);
SGP_API void sgp_sim_destroy(struct sgp_sim *sim); /* NULL is allowed */

/* Post SGP_EVENT_PAUSE, RESUME, STOP, LEAVE or ENOUGH to a node at a virtual time not yet past. */
SGP_API int sgp_sim_command(
    struct sgp_sim *sim, sgp_time time, uint32_t node, enum sgp_event_type type);

/* Run until every node that is not gone has finished (or diverged, or drained) and all their owed
 * shares are settled, or until virtual time `until`, whichever comes first. It may be called again
 * to continue. Returns 0, or with one line in *error: SGP_E_STATE if an invariant broke, no node
 * can advance (the line says which node waits for which) or something would end after
 * SGP_SIM_TIME_MAX; SGP_E_FRAME from the wire; -ENOMEM. After a failure the simulation can only be
 * inspected and destroyed. */
SGP_API int sgp_sim_run(struct sgp_sim *sim, sgp_time until, struct sgp_error *error);

/* What a node has come to. */
struct sgp_sim_node_summary {
    sgp_round rounds; /* that it has completed, without training included */
    double weight;    /* with which its trainer's x is its estimate; 0: it has none */
    uint64_t bytes;   /* that it handed to the network, payloads and messages */
    /* float32 values of its core's vectors that are touched without failures, at most: snapshots,
     * receive buffers, and the copy of a worker. Those of its trainer come on top. */
    uint64_t values;
    bool diverged; /* it gave up training */
};
SGP_API void sgp_sim_node_summary(
    const struct sgp_sim *sim, uint32_t node, struct sgp_sim_node_summary *ret_summary);

/* Whether every node that is not gone has finished, diverged or drained. */
SGP_API bool sgp_sim_done(const struct sgp_sim *sim);

SGP_API void sgp_sim_summary(const struct sgp_sim *sim, struct sgp_sim_summary *ret_summary);
/* A node's core and its trainer; borrowed. */
SGP_API const struct sgp_node *sgp_sim_node(const struct sgp_sim *sim, uint32_t node);
SGP_API struct sgp_trainer *sgp_sim_trainer(const struct sgp_sim *sim, uint32_t node);
/* A node's estimate z = x / w now: ret_estimate has `dimension` values. Exact only while the node
 * has no job queued: its weight is the core's, which is ahead of its parameters. */
SGP_API void sgp_sim_estimate(const struct sgp_sim *sim, uint32_t node, float *ret_estimate);

#endif
