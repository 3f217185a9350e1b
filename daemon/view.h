/* SPDX-License-Identifier: Apache-2.0 */
/* The seam between the running node and those who look at it from outside.
 *
 * The daemon fills plain structs and carries actions out; the control server (and the STATUS= line)
 * renders them. Nobody here knows links, sockets or workers. Strings are copied into the structs.
 * A double that is not known yet is NaN and is rendered as null.
 *
 * Thread: the loop thread, for calls in both directions. */
#ifndef SGPD_VIEW_H
#define SGPD_VIEW_H

#include "sgp/blas.h"
#include "sgp/message.h"
#include "sgp/node.h"
#include "sgp/topology.h"
#include "sgp/trainer.h"

struct view_program { /* that trains through the daemon */
    bool wanted;      /* the model is a program's */
    bool attached;
    bool turn;          /* it has its turn */
    int pid;            /* 0: none */
    const char *socket; /* where it attaches; outlives the call */
    double seconds;     /* that it has had its turn, or is waited for; NaN: neither */
    char name[64];      /* "" if none */
};

struct view_status {
    const char *name;      /* the node's; outlives the call */
    const char *algorithm; /* "sgp"; static */
    enum sgp_node_state state;
    uint64_t incarnation; /* the lineage */
    uint64_t run;         /* number of the run; 0: of none yet */
    double uptime_seconds;
    sgp_round round;  /* the round the node is in */
    sgp_round rounds; /* rounds in which the fleet trains, as far as known */
    double epoch;
    double epochs; /* of the configuration; NaN if the end is given in rounds */
    uint64_t samples;
    sgp_round
        lost_rounds; /* which the ledger counts, and of which no parameters were left; 0: none */
    double samples_per_second;
    double loss;          /* of the latest training round */
    double test_loss;     /* of the latest evaluation */
    double test_accuracy; /* of the latest evaluation, in [0, 1] */
    double learning_rate;
    const char *
        model_file; /* what became of the latest model.safetensors: "writing", "written", "failed"; NULL: none
                             * was begun by this process. Static */
    const char *diverging; /* "loss", "test_loss" or "not_finite"; NULL: nothing does. Static */
    double weight;
    double weight_in_flight;
    double disagreement; /* largest |z_received - z| / |z| in the latest cycle, or at the end */
    double weight_minted;
    double
        weight_unknown; /* by which the total may be off at most: its ledger was outdated, or somebody lied */
    double surplus; /* members whose mass it inherited and has not dissolved yet */
    uint64_t parameters;
    uint64_t memory_bytes;
    uint64_t jumps; /* times this node took a round far ahead */
    sgp_round
        copy_label; /* of a worker: the steps that its owner had closed; SGP_ROUND_NONE: it has no copy */
    double copy_seconds; /* since it took that */
    uint64_t
        statements_refused; /* words on the end of training, wrongly signed or by a key that the file does not give */
    uint64_t
        cycles_renewed; /* times it began an exact cycle again, since one had lost its part of it */
    bool starving;
    bool hears_nobody; /* has sources, has begun, and none of them is heard */
    char blas[SGP_BLAS_TEXT_BYTES];
    const char *topology_file; /* outlives the call */
    enum sgp_tls
        tls_before; /* stricter than the file is now: it was so, and a reload changed it; else
                                * SGP_TLS_UNSAID */
    uint32_t phase; /* index, of the current round */
    enum sgp_waiting waiting;
    char waiting_for[SGP_NAME_BYTES]; /* the peer, or "" */
    double waiting_seconds;
    char last_error[SGP_TEXT_BYTES]; /* "" if none, or if it was mended */
    double last_error_seconds;       /* ago; NaN if none */
    struct view_program program;
    bool unlaid; /* no program has brought a model yet: the rest says little */
};

struct view_peer { /* one link */
    bool retired;  /* no edge of the topology any more; kept for what may be left to settle */
    char name[SGP_NAME_BYTES];
    char address[SGP_ADDRESS_BYTES];
    enum sgp_direction direction;
    enum sgp_link_state state;
    enum sgp_node_state peer_state; /* 0 until first heard */
    bool absent;
    bool unheard; /* a source that is not heard: not yet, or no longer */
    bool slow;    /* as in struct sgp_peer_status */
    bool overdue;
    double absent_after_seconds; /* of silence */
    sgp_round round;             /* SGP_ROUND_NONE until first heard: rendered as null */
    int64_t lag_rounds;          /* own round - round; meaningful once round is known */
    double last_heard_seconds;   /* ago; NaN if never */
    double rtt_ms;               /* NaN if unknown */
    uint64_t shares_sent;
    uint64_t shares_received;
    uint64_t shares_returned;
    uint64_t shares_late;     /* updates that came too late to be added */
    sgp_round staleness;      /* of the last update that was added; SGP_ROUND_NONE: none was */
    uint32_t shares_outsized; /* the latest so many in a row, returned as out of all proportion */
    double weight_owed;
    uint64_t bytes_sent;
    uint64_t bytes_received;
    double distance;          /* of its estimate from ours at the end, |z - z'|; NaN: not known */
    double distance_relative; /* to the longer of the two */
    bool disagrees;           /* it is further away than finished neighbours may be */
    bool mismatch;            /* its topology digest, learning rate, batch or data differ */
    bool same_updates;        /* as in struct sgp_peer_status, like the next */
    double learning_rate;     /* NaN: not known */
    char cipher[32];          /* of the connection that stands; "": none, or plain */
    char key[SGP_KEY_BYTES];  /* the peer's, with which it was opened; "" likewise */
    char last_error[SGP_TEXT_BYTES];     /* since it came up; "" if none */
    char previous_error[SGP_TEXT_BYTES]; /* before that; "" if none */
};

/* One line of history: the daemon keeps the latest VIEW_HISTORY_MAX and writes history.csv. */
#define VIEW_HISTORY_MAX 4096u
struct view_history_row {
    sgp_round round;
    double seconds; /* since the start */
    double epoch;
    double loss;
    double test_loss;
    double test_accuracy;
    double disagreement;
    double weight;
    uint64_t bytes_sent;
    uint64_t bytes_received;
};

/* What a reload changed, counted; an edge is one of a phase, and phases are compared in their order. */
struct view_reload {
    uint64_t digest; /* of the topology now */
    uint32_t nodes, phases;
    uint32_t nodes_added, nodes_removed, addresses_changed, keys_changed;
    uint32_t phases_changed; /* that came, went, or hold for another time */
    uint64_t edges_added, edges_removed, fractions_changed;
    enum sgp_tls tls, tls_before;           /* as in struct view_status */
    const char (*warnings)[SGP_TEXT_BYTES]; /* of the new file; outlive the call */
    uint32_t warning_count;
};

/* Ends of asynchronous actions. Each is called exactly once, on the loop thread, never from within
 * the call that asked, also when the daemon stops before the job was done (code -ECANCELED).
 * Pointers are valid during the call only, unless said; on failure (code < 0) they are NULL. `error` is there always; its
 * text is a line for whoever asked, or "": the code says all. */
typedef void (*view_evaluated)(void *argument, const struct sgp_error *error,
    const struct sgp_evaluation *evaluation, sgp_round round);
/* `estimate` is the callee's to free(): a model is too large to be copied on the loop thread. */
typedef void (*view_estimated)(
    void *argument, int code, float *estimate, uint64_t parameters, sgp_round round, double weight);
typedef void (*view_predicted)(void *argument, const struct sgp_error *error, const float *outputs,
    uint64_t rows, uint64_t output_count);

/* It has left for good: who has its mass ("" if an earlier process of it had left), how much, and how much
 * more was owed to absent nodes, which the heir settles with them. */
typedef void (*view_left)(void *argument, int code, const char *heir, double weight, double owed);

/* What the daemon offers. `context` is handed back as the first argument. Asynchronous actions and
 * the orders return 0, or a negative code when they cannot begin (then `done` is not called):
 * SGP_E_STATE for an order that makes no sense now, -EBUSY when too many jobs wait. An *error, zero at first, may get a
 * line. */
struct view_actions {
    void *context;
    void (*status)(void *context, struct view_status *ret_status);
    uint32_t (*peer_count)(void *context);
    void (*peer)(void *context, uint32_t index, struct view_peer *ret_peer);
    uint64_t (*history_total)(
        void *context); /* rows added since the start; the latest VIEW_HISTORY_MAX are kept */
    void (*history)(void *context, uint64_t number,
        struct view_history_row *ret_row);                 /* 0: the first; one kept */
    const struct sgp_topology *(*topology)(void *context); /* in use; borrowed for the call */
    int (*pause)(void *context);
    int (*resume)(void *context);
    int (*stop)(void *context);
    int (*reset)(void *context, bool join);       /* end, set the run aside, and start anew */
    int (*checkpoint)(void *context);             /* begin to write one */
    const char *(*leave_obstacle)(void *context); /* a clause, or NULL: it can leave */
    int (*leave)(void *context, view_left done, void *argument);
    const char *(*token_obstacle)(void *context); /* the same of making a lost token anew */
    int (*restore_token)(void *context);
    /* Read the topology file again. Any other failure than SGP_E_STATE and -ENOMEM is the file's, told
     * in *error in one line. */
    int (*reload)(void *context, struct view_reload *ret_reload, struct sgp_error *error);
    int (*evaluate)(void *context, view_evaluated done, void *argument, struct sgp_error *error);
    int (*estimate)(void *context, view_estimated done, void *argument, struct sgp_error *error);
    /* features: rows x columns, as the model takes them; stay valid until `done`. outputs: rows x
     * units of the last layer, probabilities for cross-entropy; or what a program makes of them. */
    int (*predict)(void *context, const float *features, uint64_t rows, uint32_t columns,
        view_predicted done, void *argument, struct sgp_error *error);
};

#endif
