/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the running node and its observers.
 *
 * The daemon fills plain structs and performs actions. The control server (and the STATUS= line)
 * renders the structs. This header knows no links, sockets or workers. Strings are copied into the
 * structs. A double that is not known yet is NaN and is rendered as null.
 *
 * Thread: the loop thread, for calls in both directions. */
#ifndef SGPD_VIEW_H
#define SGPD_VIEW_H

#include "sgp/blas.h"
#include "sgp/claim.h"
#include "sgp/dataset.h"
#include "sgp/fleet.h"
#include "sgp/measures.h"
#include "sgp/message.h"
#include "sgp/model.h"
#include "sgp/model_file.h"
#include "sgp/node.h"
#include "sgp/topology.h"
#include "sgp/trainer.h"

#include <stdlib.h>
#include <string.h>

/* What is needed to predict, or to export the model. Borrowed; outlives the server. */
struct view_model {
    const struct sgp_model *model;
    const struct sgp_model_file *layout; /* of a program's model, which has no layers; else NULL */
    char *const *class_names;            /* NULL, or model->outputs names */
    const struct sgp_scaling *scaling;   /* NULL: features are used unchanged */
    /* digest of the required CSV columns (sgp_dataset_scaling_digest), if no scaling finds them by
     * name; 0: any columns */
    uint64_t columns;
    enum sgp_missing missing; /* SGP_MISSING_MEAN, or a missing value is an error */
    bool classifies;          /* outputs are classes: predict names the greatest output */
    /* JSON of the columns (sgp_scaling_columns_text); NULL: there are none */
    const char *columns_text;
    const char *targets_text; /* JSON of how outputs are scaled; NULL: they are not */
    const char *label;        /* from the configuration, for CSV; NULL: none, or not UTF-8 */
    const char *agreed;       /* the scaling file of [data] scale = fleet; NULL: there is none */
    const struct sgp_fingerprint *fingerprint; /* what peers compare; NULL: not known */
};

struct view_program { /* that trains through the daemon */
    bool wanted;      /* the model is a program's */
    bool attached;
    bool turn;          /* the program has its turn */
    int pid;            /* 0: none */
    const char *socket; /* where it attaches; outlives the call */
    uint64_t overflows; /* turns with a step left out because gradients overflowed */
    double seconds;     /* duration of its turn, or of waiting for it; NaN: neither */
    char name[64];      /* "" if none */
};

struct view_best {              /* the best model of the fleet so far: keep_best */
    const char *measure;        /* "accuracy"; NULL: none is kept. Static */
    sgp_round round;            /* SGP_ROUND_NONE: none has been measured by all nodes yet */
    double value;               /* of the measure; NaN: likewise */
    uint64_t count;             /* rows, or values of rows, of all nodes */
    char waits[SGP_TEXT_BYTES]; /* names of nodes whose counts a decision waits for; "": none */
};

/* Of signed topology files (sgp/rollout.h). Without administrators `vote` is NULL. */
#define VIEW_HASH_BYTES 65u
#define VIEW_SIGNERS_MAX 16u
struct view_rollout {
    const char *vote;  /* this node's, on what is proposed; static */
    const char *said;  /* what came of a document that was pushed here; static */
    const char *fleet; /* the name that administrators sign for; borrowed */
    uint64_t active;   /* versions; 0: none */
    uint64_t proposed; /* */
    uint64_t refusals; /* of documents of neighbours */
    bool fork;         /* two files have the version that is proposed */
    bool ready;        /* it has all votes */
    uint32_t accepted; /* votes that count for it */
    uint32_t missing;  /* votes that it needs, of nodes that have not voted */
    uint32_t refused;  /* and of nodes that have refused it */
    char active_identity[VIEW_HASH_BYTES], proposed_identity[VIEW_HASH_BYTES];
    char waits_for[SGP_NAME_BYTES]; /* the first of those nodes; "": none */
    char why[SGP_TEXT_BYTES];       /* of a vote that is not to accept */
    char refused_last
        [SGP_TEXT_BYTES]; /* a neighbour's latest document that was refused, as a line */
};

struct view_status {
    const char *name;      /* the node's; outlives the call */
    const char *algorithm; /* "sgp"; static */
    struct sgp_node_status core;
    uint64_t incarnation; /* random; of the ledger */
    uint64_t run;         /* number of the run; 0: no run yet */
    double uptime_seconds;
    struct sgp_training training; /* the latest round's */
    struct sgp_evaluation test;   /* the latest */
    double epochs;                /* of the configuration; NaN if the end is given in rounds */
    uint64_t samples;
    /* Rounds whose training was lost here, because no parameters of them were left; 0: none. */
    sgp_round lost_rounds;
    double samples_per_second;
    /* The latest model.safetensors: "writing", "written", "failed"; NULL: none was begun.
     * Static. */
    const char *model_file;
    /* What the node has told of one of its rows, in words; "": its steps are not private. */
    char privacy[SGP_TEXT_BYTES];
    double privacy_epsilon; /* so far; NaN: its steps are not private */
    bool privacy_spent;     /* the node takes no more steps */
    bool private_steps;     /* no figure of its rows is in /metrics, which others may read */
    bool claimed;           /* they are only claimed to be private, by the program: */
    struct sgp_claim claim;
    const char *diverging; /* "loss", "test_loss" or "not_finite"; NULL: no divergence. Static */
    double disagreement;   /* largest |z_received - z| / |z| in the latest cycle, or at the end */
    double weight_minted;
    char local[SGP_MODEL_LOCAL_BYTES]; /* sgp_model_local_text; "" also of a program's model */
    double guard;                      /* from the configuration; NaN: off */
    const char *compression;  /* from the configuration: "none", or the compression of its shares */
    double compression_error; /* |s - s'| / |s| of the latest share, decoded as s'; NaN: none */
    uint64_t bytes_spared;    /* that compression saved on the network */
    uint64_t parameters;
    uint64_t memory_bytes;
    double copy_seconds; /* since the worker took its copy */
    /* Statements on the end of training that were refused: wrongly signed, or by a key that the
     * file does not name. */
    uint64_t statements_refused;
    /* Machines that were refused when they asked to join, and those that have joined by an
     * invitation and are in no topology file yet. */
    uint64_t joins_refused;
    uint32_t joins_pending;
    bool hears_nobody; /* has sources and has begun, but receives from none of them */
    char blas[SGP_BLAS_TEXT_BYTES];
    const char *topology_file; /* the path, or "version 7 of mill"; outlives the call */
    /* If a reload made TLS less strict than before, the setting before; else SGP_TLS_UNSAID. */
    enum sgp_tls tls_before;
    uint32_t phase;                   /* index, of the current round */
    const char *waiting;              /* for what: "share"; NULL: for nothing. Static */
    char waiting_for[SGP_NAME_BYTES]; /* the peer, or "" */
    double waiting_seconds;
    char last_error[SGP_TEXT_BYTES]; /* "" if none, or if it was resolved */
    double last_error_seconds;       /* ago; NaN if none */
    struct view_program program;
    struct view_best best;
    struct view_rollout rollout;
    bool best_exported; /* the model that is handed out is the best one */
    /* "awaiting_model", "awaiting_scaling": before the node exists, so most fields are unset; NULL:
     * it exists. Static. */
    const char *awaiting;
};

struct view_peer { /* one link */
    struct sgp_peer_status core;
    char name[SGP_NAME_BYTES];
    char address[SGP_ADDRESS_BYTES];
    bool unheard;              /* a source from which nothing is received, yet or any more */
    int64_t lag_rounds;        /* own round - round; meaningful once round is known */
    double last_heard_seconds; /* ago; NaN if never */
    double rtt_ms;             /* NaN if unknown */
    uint32_t shares_outsized;  /* so many of the latest shares in a row were returned as outsized */
    /* Shares of an in-link that the guard clipped since the start, and their part of the latest;
     * NaN: it has judged none. */
    uint64_t shares_clipped;
    double clipped_share;
    bool clipped;        /* nearly all of the latest */
    bool unlike_privacy; /* its row of the fleet promises another privacy than this node's */
    uint64_t bytes_sent;
    uint64_t bytes_received;
    char cipher[32];                     /* of the present connection; "": none, or plain */
    char key[SGP_KEY_BYTES];             /* the peer's key on that connection; "": none, or plain */
    char last_error[SGP_TEXT_BYTES];     /* since the link came up; "" if none */
    char previous_error[SGP_TEXT_BYTES]; /* before the link came up; "" if none */
};

static inline const char *view_direction(enum sgp_direction direction)
{
    return direction == SGP_OUT ? "out" : "in";
}

/* ---- how the two are shown ----
 *
 * One row a field. This is the only list of the fields in the code. render.c makes JSON of the
 * rows, and metrics.c makes the text of /metrics. `sgpctl status` and `sgpctl peers` take their
 * order and their short views from the rows. A test compares the rows with the tables of
 * docs/CONFIGURATION.md. Columns of a row, where `view` is the struct that it shows:
 *   key    in JSON, in the order of the rows
 *   kind   how the value becomes JSON: as_KIND of render.c
 *   value  in C
 *   place  in `sgpctl status`, ascending
 *   shown  when not all fields are requested: KNOWN, if it is not null; NOTABLE, if it is not null,
 *     false, 0 or empty; ALL, never
 * A METRIC also has its place in /metrics, its type, its name and its help. A DERIVED row has
 * another value there. A value that is not finite is left out. Places leave gaps between them. */

/* Of the node; `view` is a struct view_status, `topology` the topology in use. */
#define STATUS_FIELDS(FIELD, METRIC, DERIVED)                                                      \
    FIELD(schema, count, 1, 480, ALL)                                                              \
    FIELD(version, name, sgp_version(), 460, ALL)                                                  \
    FIELD(protocol, count, SGP_WIRE_VERSION, 470, ALL)                                             \
    FIELD(name, name, view->name, 10, KNOWN)                                                       \
    FIELD(state, name,                                                                             \
        view->awaiting != NULL ? view->awaiting : sgp_node_state_name(view->core.state), 20,       \
        KNOWN)                                                                                     \
    FIELD(incarnation, identity, view->incarnation, 450, ALL)                                      \
    FIELD(run, ordinal, view->run, 440, ALL)                                                       \
    FIELD(algorithm, name, view->algorithm, 390, ALL)                                              \
    METRIC(round, round, view->core.round, 40, KNOWN, 10, gauge, round, "Round the node is in.")   \
    FIELD(rounds, round, view->core.open ? SGP_ROUND_NONE : view->core.rounds, 50, KNOWN)          \
    DERIVED(samples, count, view->samples, 150, ALL, 40, counter, samples_total,                   \
        "Rows trained on.", view->private_steps ? (double)NAN : (double)view->samples)             \
    METRIC(lost_rounds, count, (uint64_t)view->lost_rounds, 140, NOTABLE, 130, gauge, lost_rounds, \
        "Rounds whose training was lost here: no parameters of them were left.")                   \
    METRIC(parameters, count, view->parameters, 400, ALL, 160, gauge, parameters,                  \
        "Parameters of the model.")                                                                \
    METRIC(memory_bytes, count, view->memory_bytes, 410, ALL, 170, gauge, memory_bytes,            \
        "Memory set aside at start.")                                                              \
    FIELD(local, text, view->local, 401, NOTABLE)                                                  \
    FIELD(guard, real, view->guard, 402, ALL)                                                      \
    FIELD(compression, name, view->compression, 405, ALL)                                          \
    METRIC(bytes_spared, count, view->bytes_spared, 345, NOTABLE, 205, counter,                    \
        bytes_spared_total, "Bytes that compression kept off the line.")                           \
    METRIC(jumps, count, view->core.jumps, 330, ALL, 180, counter, round_jumps_total,              \
        "Times the node took a round far ahead.")                                                  \
    METRIC(cycles_renewed, count, view->core.cycles_renewed, 340, ALL, 190, counter,               \
        cycles_renewed_total, "Times the node began an exact cycle again.")                        \
    METRIC(statements_refused, count, view->statements_refused, 350, NOTABLE, 200, counter,        \
        statements_refused_total, "Words on the end of training refused: wrongly signed.")         \
    METRIC(joins_refused, count, view->joins_refused, 352, NOTABLE, 202, counter,                  \
        joins_refused_total, "Machines refused that asked to join.")                               \
    METRIC(joins_pending, count, view->joins_pending, 354, NOTABLE, 204, gauge, joins_pending,     \
        "Machines that have joined and are in no topology file yet.")                              \
    METRIC(starving, flag, view->core.starving, 240, NOTABLE, 210, gauge, starving,                \
        "1 while the node gives less than the file says because it holds too little.")             \
    DERIVED(diverging, text, view->diverging, 120, NOTABLE, 220, gauge, diverging,                 \
        "1 while a loss is far above its early level, or not finite.",                             \
        view->private_steps ? (double)NAN : (double)(view->diverging != NULL))                     \
    DERIVED(model_file, text, view->model_file, 130, NOTABLE, 230, gauge, model_unwritten,         \
        "1 while the latest try to write model.safetensors has failed.",                           \
        view->model_file != NULL && strcmp(view->model_file, "failed") == 0)                       \
    FIELD(hears_nobody, flag, view->hears_nobody, 250, NOTABLE)                                    \
    FIELD(blas, name, view->blas, 420, ALL)                                                        \
    FIELD(topology, json, render_place(view, topology), 430, ALL)                                  \
    FIELD(rollout, json, render_rollout(&view->rollout), 432, NOTABLE)                             \
    FIELD(copy, json, render_copy(view), 320, ALL)                                                 \
    FIELD(owns, json, render_owns(topology, view->name), 310, ALL)                                 \
    DERIVED(waiting, json, render_waiting(view), 30, NOTABLE, 240, gauge, waiting_seconds,         \
        "Seconds the node has been waiting for a neighbour.",                                      \
        view->waiting_for[0] ? view->waiting_seconds : 0)                                          \
    FIELD(last_error, text, view->last_error, 360, NOTABLE)                                        \
    FIELD(program, json, render_program(&view->program), 490, ALL)                                 \
    DERIVED(epoch, real, view->training.epoch, 60, KNOWN, 20, gauge, epoch,                        \
        "Epochs trained so far.", view->private_steps ? (double)NAN : view->training.epoch)        \
    FIELD(epochs, real, view->epochs, 70, KNOWN)                                                   \
    DERIVED(samples_per_second, real, view->samples_per_second, 160, KNOWN, 50, gauge,             \
        samples_per_second, "Rows trained on per second.",                                         \
        view->private_steps ? (double)NAN : view->samples_per_second)                              \
    DERIVED(loss, real, view->training.loss, 80, KNOWN, 60, gauge, loss,                           \
        "Training loss of the latest round.",                                                      \
        view->private_steps ? (double)NAN : view->training.loss)                                   \
    DERIVED(test_loss, real, view->test.loss, 90, KNOWN, 70, gauge, test_loss,                     \
        "Loss of the latest evaluation.", view->private_steps ? (double)NAN : view->test.loss)     \
    DERIVED(test_accuracy, real, view->test.accuracy, 100, KNOWN, 80, gauge, test_accuracy,        \
        "Accuracy of the latest evaluation, 0 to 1.",                                              \
        view->private_steps ? (double)NAN : view->test.accuracy)                                   \
    FIELD(privacy, text, view->privacy, 116, KNOWN)                                                \
    METRIC(privacy_epsilon, real, view->privacy_epsilon, 117, KNOWN, 222, gauge, privacy_epsilon,  \
        "Epsilon that the counted private steps have cost so far.")                                \
    DERIVED(privacy_claim, json, render_claim(view), 119, KNOWN, 226, gauge,                       \
        privacy_claimed_epsilon, "Epsilon that the program claims; it is not verified.",           \
        view->claimed ? view->claim.epsilon : (double)NAN)                                         \
    METRIC(privacy_spent, flag, view->privacy_spent, 118, NOTABLE, 225, gauge, privacy_spent,      \
        "1 while the node leaves out steps because its epsilon is spent.")                         \
    METRIC(learning_rate, real, view->training.learning_rate, 110, ALL, 90, gauge, learning_rate,  \
        "Learning rate of the latest step.")                                                       \
    METRIC(                                                                                        \
        weight, real, view->core.weight, 170, KNOWN, 100, gauge, weight, "Push-sum weight held.")  \
    METRIC(weight_in_flight, real, view->core.weight_in_flight, 180, ALL, 110, gauge,              \
        weight_in_flight, "Weight given and not yet acknowledged.")                                \
    METRIC(disagreement, real, view->disagreement, 220, KNOWN, 150, gauge, disagreement,           \
        "Largest relative distance to a received model in the latest cycle.")                      \
    METRIC(compression_error, real, view->compression_error, 347, KNOWN, 155, gauge,               \
        compression_error, "Relative error of the latest compressed share.")                       \
    METRIC(weight_minted, real, view->weight_minted, 190, NOTABLE, 120, gauge, weight_minted,      \
        "Weight created by restarts without a ledger.")                                            \
    FIELD(surplus, real, view->core.surplus, 210, ALL)                                             \
    METRIC(weight_unknown, real, view->core.unknown, 200, NOTABLE, 140, gauge, weight_unknown,     \
        "By which the total weight may be off at most: an old ledger, a lie.")                     \
    METRIC(uptime_seconds, real, view->uptime_seconds, 380, KNOWN, 30, gauge, uptime_seconds,      \
        "Seconds since the daemon started.")                                                       \
    FIELD(last_error_seconds, real, view->last_error_seconds, 370, ALL)                            \
    FIELD(best_measure, text, view->best.measure, 112, KNOWN)                                      \
    DERIVED(best_round, round, view->best.round, 113, KNOWN, 250, gauge, best_round,               \
        "Round of the best model so far.",                                                         \
        view->best.round == SGP_ROUND_NONE ? (double)NAN : (double)view->best.round)               \
    METRIC(best_value, real, view->best.value, 114, KNOWN, 260, gauge, best_value,                 \
        "Measure of the best model so far, over the held-out rows of all nodes.")                  \
    FIELD(best_waits, text, view->best.waits, 115, ALL)

/* The status's fields after these: lists of the neighbours for which a condition holds. A neighbour
 * with two links is in a list once. Columns: key; how a neighbour is named (told_KIND of
 * endpoints.c); the condition, where `view` is its struct view_peer; place; shown. */
#define NEIGHBOUR_FIELDS(X)                                                                        \
    X(unheard, name, view->unheard, 260, NOTABLE)                                                  \
    X(mismatch, name, view->core.mismatch, 270, NOTABLE)                                           \
    X(same_updates, name, view->core.same_updates, 280, ALL)                                       \
    X(disagrees, distance, view->core.disagrees, 230, NOTABLE)                                     \
    X(unlike_privacy, name, view->unlike_privacy, 275, NOTABLE)                                    \
    X(clipped, name, view->clipped, 285, NOTABLE)                                                  \
    X(slow, name, view->core.slow, 290, NOTABLE)                                                   \
    X(overdue, name, view->core.overdue, 300, NOTABLE)

/* Of a link; `view` is a struct view_peer. The columns are those above without places. Names begin
 * with link_. */
#define PEER_FIELDS(FIELD, METRIC, DERIVED)                                                        \
    FIELD(name, name, view->name, KNOWN)                                                           \
    FIELD(address, name, view->address, ALL)                                                       \
    FIELD(direction, name, view_direction(view->core.direction), KNOWN)                            \
    DERIVED(state, name, link_state_name(view), KNOWN, gauge, up, "1 if the link stands.",         \
        view->core.state == SGP_LINK_UP)                                                           \
    FIELD(node_state, text,                                                                        \
        view->core.peer_state ? sgp_node_state_name(view->core.peer_state) : NULL, KNOWN)          \
    METRIC(absent, flag, view->core.absent, ALL, gauge, absent,                                    \
        "1 if the peer is no longer waited for.")                                                  \
    FIELD(round, round, view->core.round, KNOWN)                                                   \
    DERIVED(lag_rounds, json,                                                                      \
        view->core.round == SGP_ROUND_NONE ? json_null() : json_integer(view->lag_rounds), KNOWN,  \
        gauge, lag_rounds, "Rounds that the peer is behind.",                                      \
        view->core.round == SGP_ROUND_NONE ? (double)NAN : (double)view->lag_rounds)               \
    METRIC(last_heard_seconds, real, view->last_heard_seconds, KNOWN, gauge, last_heard_seconds,   \
        "Seconds since the peer was last heard.")                                                  \
    FIELD(absent_after_seconds, real, (double)view->core.silence_bound / (double)SGP_SECOND, ALL)  \
    DERIVED(rtt_ms, real, view->rtt_ms, KNOWN, gauge, rtt_seconds, "Round trip time.",             \
        view->rtt_ms / 1000)                                                                       \
    METRIC(shares_sent, count, view->core.shares_sent, KNOWN, counter, shares_sent_total,          \
        "Shares sent.")                                                                            \
    METRIC(shares_received, count, view->core.shares_received, KNOWN, counter,                     \
        shares_received_total, "Shares accepted.")                                                 \
    METRIC(shares_returned, count, view->core.shares_returned, KNOWN, counter,                     \
        shares_returned_total, "Shares that came back, or were refused.")                          \
    FIELD(shares_late, count, view->core.shares_late, ALL)                                         \
    FIELD(staleness, round, view->core.staleness, ALL)                                             \
    FIELD(shares_outsized, count, view->shares_outsized, ALL)                                      \
    METRIC(shares_clipped, count, view->shares_clipped, ALL, counter, shares_clipped_total,        \
        "Shares of the peer that the guard clipped.")                                              \
    METRIC(clipped_share, real, view->clipped_share, ALL, gauge, clipped_share,                    \
        "Part of the peer's latest shares that the guard clipped, 0 to 1.")                        \
    METRIC(weight_owed, real, view->core.weight_owed, ALL, gauge, weight_owed,                     \
        "Weight given to the peer and not acknowledged.")                                          \
    METRIC(bytes_sent, count, view->bytes_sent, KNOWN, counter, bytes_sent_total, "Bytes sent.")   \
    METRIC(bytes_received, count, view->bytes_received, KNOWN, counter, bytes_received_total,      \
        "Bytes received.")                                                                         \
    FIELD(distance, real, view->core.distance, ALL)                                                \
    FIELD(disagrees, flag, view->core.disagrees, ALL)                                              \
    FIELD(mismatch, flag, view->core.mismatch, ALL)                                                \
    FIELD(same_updates, flag, view->core.same_updates, ALL)                                        \
    FIELD(learning_rate, real,                                                                     \
        view->core.learning_rate > 0 ? view->core.learning_rate : (double)NAN, ALL)                \
    FIELD(retired, flag, view->core.retired, ALL)                                                  \
    FIELD(slow, flag, view->core.slow, ALL)                                                        \
    FIELD(overdue, flag, view->core.overdue, ALL)                                                  \
    FIELD(cipher, text, view->cipher, KNOWN)                                                       \
    FIELD(key, text, view->key, ALL)                                                               \
    FIELD(last_error, text, view->last_error, KNOWN)                                               \
    FIELD(previous_error, text, view->previous_error, ALL)

/* A node of the fleet, as it says itself. */
struct view_node {
    char name[SGP_NAME_BYTES];
    double age;                    /* of the row in seconds; NaN: none has come */
    bool stale;                    /* the row, or there is none */
    char text[SGP_ROW_TEXT_BYTES]; /* sgp_fleet_row_read; "": none */
};

/* Of a node of the fleet; `view` is the struct sgp_fleet_row that it has published. Keys and kinds
 * as above. The names are those of the status. */
#define NODE_FIELDS(FIELD)                                                                         \
    FIELD(state, text, view->state)                                                                \
    FIELD(round, round, view->round)                                                               \
    FIELD(rounds, round, view->rounds)                                                             \
    FIELD(epoch, real, view->epoch)                                                                \
    FIELD(loss, real, view->loss)                                                                  \
    FIELD(test_loss, real, view->test_loss)                                                        \
    FIELD(test_accuracy, real, view->test_accuracy)                                                \
    FIELD(weight, real, view->weight)                                                              \
    FIELD(disagreement, real, view->disagreement)                                                  \
    FIELD(waiting, json, render_node_waiting(view))                                                \
    FIELD(rounds_per_second, real, view->rounds_per_second)                                        \
    FIELD(samples_per_second, real, view->samples_per_second)                                      \
    FIELD(uptime_seconds, real, view->uptime_seconds)                                              \
    FIELD(topology, json, render_node_topology(view))                                              \
    FIELD(version, text, view->version)                                                            \
    FIELD(device, text, view->device)                                                              \
    FIELD(promised, text, sgp_fleet_promised_word(view->promised))                                 \
    FIELD(promised_epsilon, real, view->promised_epsilon)                                          \
    FIELD(promised_delta, real, view->promised_delta)                                              \
    FIELD(rollout, json, render_node_rollout(view))                                                \
    FIELD(interval_seconds, real, view->interval_ms / 1000.0)

/* Why rows of the fleet were refused; `view` is a struct sgp_fleet_counts. X(key) */
#define ROWS_REFUSED_FIELDS(X)                                                                     \
    X(strangers)                                                                                   \
    X(earlier)                                                                                     \
    X(ahead)                                                                                       \
    X(forged)                                                                                      \
    X(malformed)

/* One row of the history. The daemon keeps the latest VIEW_HISTORY_MAX and writes history.csv. */
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
    uint64_t bytes_sent; /* this and the next since the start */
    uint64_t bytes_received;
    double compression_error; /* these two as in struct view_status */
    uint64_t bytes_spared;
    double best_value; /* of the best model before this row (struct view_best); NaN: none */
};

/* The columns of a row, in the order of history.csv. New columns come last. X(member, kind), where
 * the kind is `round`, `seconds`, `real`, `exact` (a real number to its last bit) or `count`. */
#define VIEW_HISTORY_COLUMNS(X)                                                                    \
    X(round, round)                                                                                \
    X(seconds, seconds)                                                                            \
    X(epoch, real)                                                                                 \
    X(loss, real)                                                                                  \
    X(test_loss, real)                                                                             \
    X(test_accuracy, real)                                                                         \
    X(disagreement, real)                                                                          \
    X(weight, exact)                                                                               \
    X(bytes_sent, count)                                                                           \
    X(bytes_received, count)                                                                       \
    X(compression_error, real)                                                                     \
    X(bytes_spared, count)                                                                         \
    X(best_value, real)

/* The changes by a reload, counted. An edge belongs to a phase; phases are compared in
 * their order. */
struct view_reload {
    uint64_t digest; /* of the topology now */
    uint32_t nodes, phases;
    uint32_t nodes_added, nodes_removed, addresses_changed, keys_changed;
    uint32_t phases_changed; /* added, removed, or with another duration */
    uint64_t edges_added, edges_removed, fractions_changed;
    enum sgp_tls tls, tls_before;           /* as in struct view_status */
    const char (*warnings)[SGP_TEXT_BYTES]; /* of the new file; outlive the call */
    uint32_t warning_count;
};

/* An invitation to another machine (sgp/invitation.h); also the wish for one, with name, seconds
 * and address. */
#define VIEW_INVITATION_BYTES 512u /* as text, with its zero */
struct view_invitation {
    const char *state; /* "open", "pending" or "expired"; static */
    double seconds;    /* left */
    char name[SGP_NAME_BYTES];
    /* Of the joiner, once it has joined; else "". Of a wish the inviter's, or "" for the one in the
     * topology file. */
    char address[SGP_ADDRESS_BYTES];
    char key[SGP_KEY_BYTES]; /* of the joiner */
};
#define VIEW_INVITATIONS_MAX 64u

#define VIEW_MEASURED_OUTPUTS 100u /* an evaluation of more outputs has no measures */

/* What a node of the file shows of its rollout. */
struct view_rollout_node {
    char name[SGP_NAME_BYTES];
    uint64_t active; /* 0: it shows nothing */
    uint64_t mark;   /* of what it votes on; 0: nothing */
    const char *vote;
    char why[SGP_NAME_BYTES]; /* the beginning */
};

/* A version that this node has used. */
struct view_version {
    uint64_t version, bytes, seconds; /* in which it was used first, since 1970 */
    bool recovered;                   /* the recovery key has signed */
    char identity[VIEW_HASH_BYTES], predecessor[VIEW_HASH_BYTES], file[VIEW_HASH_BYTES];
    uint32_t signer_count, despite_count;
    char signers[VIEW_SIGNERS_MAX][SGP_KEY_BYTES];
    char despite[VIEW_SIGNERS_MAX][SGP_NAME_BYTES];
};
#define VIEW_VERSIONS_MAX 32u
enum view_document { VIEW_DOCUMENT_ACTIVE = 1, VIEW_DOCUMENT_PROPOSED, VIEW_DOCUMENT_VERSION };

/* The reports of all members of the fleet (sgp/report.h), each with its text, or without. */
struct view_report {
    char name[SGP_NAME_BYTES];
    uint64_t stamp; /* of the text, as its author has told it */
    char *text;     /* owned; NULL: it has not told */
};

struct view_reports {
    sgp_round best; /* of the model that all nodes keep after training; SGP_ROUND_NONE: none */
    uint32_t count;
    struct view_report reports[];
};

/* Any thread; NULL is fine. */
/* Whether the row says that its node has finished or drains: it is expected to be unheard-of. */
static inline bool view_has_ended(const struct sgp_fleet_row *row)
{
    return strcmp(row->state, sgp_node_state_name(SGP_NODE_FINISHED)) == 0 ||
           strcmp(row->state, sgp_node_state_name(SGP_NODE_DRAINING)) == 0;
}

static inline void view_reports_free(struct view_reports *reports)
{
    for (uint32_t i = 0; reports != NULL && i < reports->count; i++)
        free(reports->reports[i].text);
    free(reports);
}

#define VIEW_FLEET_SECONDS 10u      /* an evaluation of the fleet waits so long for reports; */
#define VIEW_FLEET_SECONDS_MAX 300u /* or so long, at most */

/* Ends of asynchronous actions. Each is called exactly once, on the loop thread, never from within
 * the call that began the action. If the daemon stops before the job is done, the code is
 * -ECANCELED. Pointers are valid only during the call, unless said otherwise; on failure (code < 0)
 * they are NULL. `error` is never NULL. Its text is a line for the client, or "" if the code says
 * all. `measures`: NULL if the model has too many outputs for an answer, or is a program's. `best`:
 * it is the best model that all nodes keep, and not the present one. */
typedef void (*view_evaluated)(void *argument, const struct sgp_error *error,
    const struct sgp_evaluation *evaluation, const struct sgp_measures *measures, sgp_round round,
    bool best);
/* `estimate` is the callee's to free(), because a model is too large to be copied on the loop
 * thread. */
typedef void (*view_estimated)(
    void *argument, int code, float *estimate, uint64_t parameters, sgp_round round, double weight);
typedef void (*view_predicted)(void *argument, const struct sgp_error *error, const float *outputs,
    uint64_t rows, uint64_t output_count);

/* The reports of this moment, which are the callee's to free (view_reports_free). */
typedef void (*view_reported)(
    void *argument, const struct sgp_error *error, struct view_reports *reports);

/* The node has left: its heir ("": of an earlier process), its weight, and the weight still owed to
 * absent nodes. */
typedef void (*view_left)(void *argument, int code, const char *heir, double weight, double owed);

/* What the daemon offers. `context` is passed back as the first argument. Asynchronous actions and
 * orders return 0, or a negative code if they cannot begin (then `done` is not called).
 * SGP_E_STATE: the order is not possible now. -EBUSY: too many jobs wait. An *error, zero at first,
 * may get a line. An order or a job that is NULL is not possible now. Without peer_count or
 * history_total there is nothing to show. */
struct view_actions {
    void *context;
    const char *no_model; /* why evaluate and predict are NULL, as a line */
    void (*status)(void *context, struct view_status *ret_status);
    uint32_t (*peer_count)(void *context);
    void (*peer)(void *context, uint32_t index, struct view_peer *ret_peer);
    /* The nodes of the file that may have a row in the fleet, in their order. NULL: there is no
     * node yet. */
    uint32_t (*node_count)(void *context);
    void (*node)(void *context, uint32_t index, struct view_node *ret_node);
    struct sgp_fleet_counts (*rows_refused)(void *context);
    /* Rows added since the start; the latest VIEW_HISTORY_MAX are kept. */
    uint64_t (*history_total)(void *context);
    /* row 0 is the first; the row must be kept */
    void (*history)(void *context, uint64_t number, struct view_history_row *ret_row);
    const struct sgp_topology *(*topology)(void *context); /* in use; borrowed for the call */
    int (*pause)(void *context);
    int (*resume)(void *context);
    int (*stop)(void *context);
    int (*reset)(void *context);                  /* end, set the run aside, and restart */
    int (*join)(void *context);                   /* the same, in the run of the neighbours */
    int (*checkpoint)(void *context);             /* begin to write one */
    const char *(*leave_obstacle)(void *context); /* a clause, or NULL: the node can leave */
    int (*leave)(void *context, view_left done, void *argument);
    const char *(*token_obstacle)(void *context); /* the same for the renewal of a lost token */
    int (*restore_token)(void *context);
    /* Read the topology file again. *error describes each failure except SGP_E_STATE and
     * -ENOMEM. */
    int (*reload)(void *context, struct view_reload *ret_reload, struct sgp_error *error);
    /* Give an invitation, as text. *error describes each failure. */
    int (*invite)(void *context, const struct view_invitation *wish,
        char ret_text[VIEW_INVITATION_BYTES], struct sgp_error *error);
    /* All that this process has given and not forgotten. Returns their number. */
    uint32_t (*invitations)(void *context, struct view_invitation *ret_invitations, uint32_t most);
    /* Signed topology files. These fail with SGP_E_STATE if there are no administrators; *error
     * describes each failure except -ENOMEM. */
    int (*rollout)(void *context, struct view_rollout *ret_rollout, struct sgp_error *error);
    void (*rollout_node)(void *context, uint32_t index, struct view_rollout_node *ret_node);
    /* Take a document. SGP_E_DATA: it is refused. */
    int (*push)(
        void *context, const char *text, struct view_rollout *ret_rollout, struct sgp_error *error);
    /* A document, which the caller frees. -ENOENT: there is none. */
    int (*document)(void *context, enum view_document which, uint64_t version, char **ret_text,
        struct sgp_error *error);
    /* The latest versions that this node has used, the latest first. *ret_count of them. */
    int (*versions)(void *context, struct view_version ret_versions[VIEW_VERSIONS_MAX],
        uint32_t *ret_count, struct sgp_error *error);
    int (*evaluate)(void *context, view_evaluated done, void *argument, struct sgp_error *error);
    /* All nodes measure their models. `done` comes when all have told, or after these seconds. */
    int (*evaluate_fleet)(
        void *context, double seconds, view_reported done, void *argument, struct sgp_error *error);
    /* The reports of the final model, which the caller frees. SGP_E_STATE, -ENOMEM. */
    int (*report)(void *context, struct view_reports **ret_reports, struct sgp_error *error);
    int (*estimate)(void *context, view_estimated done, void *argument, struct sgp_error *error);
    /* features: rows x columns, valid until `done`. outputs: probabilities for cross-entropy. */
    int (*predict)(void *context, const float *features, uint64_t rows, uint32_t columns,
        view_predicted done, void *argument, struct sgp_error *error);
};

#endif
