/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of one node: an INI file turned into plain values, checked while it is read.
 *
 * One table names every key with its section, type, default, range and meaning. The parser, the
 * listing for people and the test of the documents all iterate over it. Checks that need the data
 * or the topology (do the layers fit the features?) are in prepare.h and the files prepare_*.c.
 *
 * Any thread; no function keeps state. Errors are SGP_E_CONFIG, -ENOMEM or -errno of the file, with
 * one line `FILE:LINE: what was wrong; what would be right`. */
#ifndef SGPD_CONFIG_H
#define SGPD_CONFIG_H

#include "sgp/best.h"
#include "sgp/choose.h"
#include "sgp/dataset.h"
#include "sgp/guard.h"
#include "sgp/model.h"
#include "sgp/node.h"
#include "sgp/optimizer.h"
#include "sgp/outer.h"
#include "sgp/precision.h"
#include "sgp/privacy.h"
#include "sgp/schedule.h"
#include "sgp/sink.h"
#include "sgp/status.h"

#include <stdio.h>

#define CONFIG_BYTES_MAX 262144u /* a larger file is refused unread */
#define CONFIG_LINES 96u         /* room for the keys of the table */
#define CONFIG_TEXT_BYTES 8192u  /* a value with its continuation lines and terminating zero */

enum config_type {
    CONFIG_TEXT = 1,     /* char *, owned; "" if not given */
    CONFIG_PATH,         /* the same; made absolute from the directory of the configuration */
    CONFIG_LIST,         /* char *, and indented lines below continue it */
    CONFIG_NAME,         /* char *: letters, digits and . _ -, shorter than SGP_NAME_BYTES */
    CONFIG_ADDRESS,      /* char *: HOST:PORT, shorter than SGP_ADDRESS_BYTES */
    CONFIG_COUNT,        /* uint64_t, with k, M, G for thousands; least and most are its range */
    CONFIG_REAL,         /* double, finite; NaN if not given; least and most are its range */
    CONFIG_CHOICE,       /* an enumeration of int's size, counted from 1 in the order of `words` */
    CONFIG_START,        /* uint32_t for sgp_node_config: all, now, or a number of nodes */
    CONFIG_SHARDS,       /* struct sgp_shards */
    CONFIG_CHOOSER,      /* struct sgp_chooser */
    CONFIG_REAL_OR_WORD, /* double: 0 for the word in `words`, or a number from least to most */
};

/* Words of the table below, counted from 1 in their order there. */
enum config_when_done { CONFIG_SERVE = 1, CONFIG_EXIT };
enum config_yes { CONFIG_NO = 1, CONFIG_YES };
enum config_noise { CONFIG_NOISE_NODE = 1, CONFIG_NOISE_FLEET };
enum config_kind { CONFIG_LAYERED = 1, CONFIG_ATTACHED };

struct config {
    char *file; /* as given to config_load; for messages */

    char *name;
    char *state_directory; /* default: /var/lib/sgpd/NAME */
    char *key;             /* "": none */

    char *topology;

    char *fleet;          /* "": not given */
    char *administrators; /* keys; "": the topology file is not signed */
    uint64_t threshold;
    char *recovery; /* "": none */

    int algorithm;   /* index of its method (sgp_method_at), from 1 */
    uint32_t start;  /* SGP_START_ALL, or a number of nodes */
    uint64_t epochs; /* 0 when `rounds` is given */
    uint64_t rounds; /* 0 when `epochs` decides */
    uint64_t overlap;
    uint64_t backup_neighbours;
    uint64_t patience; /* seconds; 0: for ever */
    double guard;      /* 0: off */
    enum config_yes step_by_rate;
    uint64_t local_steps;
    uint64_t batch;
    uint64_t threads;
    int precision; /* 1 + enum sgp_precision */
    uint64_t seed;
    double stop_at_accuracy;     /* NaN: no goal */
    int keep_best;               /* 1 + enum sgp_best_measure; 1: none */
    uint64_t evaluate_every;     /* rounds; 0: not given */
    uint64_t best_patience;      /* evaluations; 0: for ever */
    uint64_t checkpoint_seconds; /* 0: only on request and at the end */
    enum config_when_done when_done;
    uint64_t final_cycles;

    enum config_kind kind;
    char *layers;
    char *local;
    uint64_t inputs; /* 0: the columns of the data say */
    enum sgp_loss loss;
    double label_smoothing;
    double huber_delta;
    char *class_weights;

    char *train;
    char *labels;
    char *test;
    char *test_labels;
    struct sgp_shards shards;
    double holdout;
    char *label;
    char *classes;
    char *scale;
    char *categories;
    char *ignore;
    uint64_t min_count;
    enum sgp_missing missing;

    enum sgp_optimizer_kind optimizer;
    double learning_rate;
    double momentum;
    double weight_decay;
    double beta1;
    double beta2;
    double alpha;
    double epsilon;
    double trust;
    double clip_norm;
    double clip_value;
    enum config_noise noise;
    enum sgp_schedule_kind schedule;
    double warmup_epochs;
    uint64_t base_batch; /* 0: learning_rate is not scaled */
    char *milestones;
    double factor;
    uint64_t growths;
    double final_fraction;
    double low_fraction;
    double period_epochs; /* NaN: not given */

    double privacy_epsilon; /* NaN: steps are not private */
    double privacy_delta;
    double privacy_clip;
    double privacy_noise; /* 0: the least for epsilon */

    int outer; /* 1 + enum sgp_outer_kind */
    double outer_learning_rate;
    double outer_momentum;

    char *listen;
    struct sgp_chooser compression, copies;

    char *socket; /* default: /run/sgpd/NAME/control.sock */
    char *attach; /* default: attach.sock beside it */

    enum sgp_level log_level;
    char *events;
    char *trace;
    char *tensorboard;

    bool colocated; /* of an owner co-located with a node that trains: config_colocated */

    unsigned lines[CONFIG_LINES]; /* by enum config_id: the line of the key; 0: it is absent */
    bool changed[CONFIG_LINES];   /* by enum config_id: present, and not its default */
};

/* id, section, key, type, field of struct config, default (NULL: must be given), least, most,
 * words, meaning. */
#define CONFIG_TABLE(X)                                                                            \
    X(NAME, "node", "name", CONFIG_NAME, name, NULL, 0, 0, NULL,                                   \
        "name of this node, as in the topology file")                                              \
    X(STATE_DIRECTORY, "node", "state_directory", CONFIG_PATH, state_directory, "", 0, 0, NULL,    \
        "where the model and the history are written; /var/lib/sgpd/NAME if not given")            \
    X(KEY, "node", "key", CONFIG_PATH, key, "", 0, 0, NULL,                                        \
        "file of this node's secret key, for ciphered links; empty: where it usually lies")        \
    X(TOPOLOGY, "topology", "file", CONFIG_PATH, topology, NULL, 0, 0, NULL,                       \
        "the Graphviz DOT file of who gives to whom; the same on every node")                      \
    X(FLEET, "administrators", "fleet", CONFIG_TEXT, fleet, "", 0, 0, NULL,                        \
        "name of the fleet, which its signed topology files carry; the same on every node")        \
    X(ADMINISTRATORS, "administrators", "keys", CONFIG_LIST, administrators, "", 0, 0, NULL,       \
        "keys of those who sign the topology file, which must then be a signed document; empty: "  \
        "it is not signed")                                                                        \
    X(THRESHOLD, "administrators", "threshold", CONFIG_COUNT, threshold, "1", 1, 16, NULL,         \
        "so many of them must sign")                                                               \
    X(RECOVERY, "administrators", "recovery", CONFIG_TEXT, recovery, "", 0, 0, NULL,               \
        "key that signs alone, when the others are lost; empty: none")                             \
    X(ALGORITHM, "train", "algorithm", CONFIG_CHOICE, algorithm, "sgp", 0, 0,                      \
        SGP_METHOD_NAMES("|"),                                                                     \
        "how nodes train together: sgp, in rounds; osgp, rounds that overlap; agp, at their own "  \
        "pace; dpsgd, on symmetric topologies, publishing before the step; adpsgd, half each way " \
        "with one neighbour by lot; backup, for an owner that waits for all but some; downpour, "  \
        "for "                                                                                     \
        "one that adds updates as they come; cyclic, for owning as a token that goes round")       \
    X(OVERLAP, "train", "overlap", CONFIG_COUNT, overlap, "1", 0, 64, NULL,                        \
        "osgp: rounds that a share may be late before it is waited for")                           \
    X(BACKUP_NEIGHBOURS, "train", "backup_neighbours", CONFIG_COUNT, backup_neighbours, "0", 0,    \
        65535, NULL, "go on while the shares of so many neighbours are still awaited")             \
    X(PATIENCE, "train", "patience", CONFIG_COUNT, patience, "0", 0, 1e6, NULL,                    \
        "seconds that a neighbour may stay in one round before it is not waited for; 0: for ever") \
    X(GUARD, "train", "guard", CONFIG_REAL_OR_WORD, guard, "off", SGP_GUARD_MULTIPLE_LEAST,        \
        SGP_GUARD_MULTIPLE_MOST, "off",                                                            \
        "where nodes mix: no share moves this node's estimate further than so many times the "     \
        "usual distance of its neighbours; 1 is recommended; off: shares are taken whole")         \
    X(STEP_BY_RATE, "train", "step_by_rate", CONFIG_CHOICE, step_by_rate, "no", 0, 0, "no|yes",    \
        "agp, adpsgd: divide the learning rate by this node's pace, relative to its neighbours'")  \
    X(START, "train", "start", CONFIG_START, start, "all", 1, SGP_NODES_MAX, NULL,                 \
        "when round 0 begins: all neighbours have said hello, now, or a number of nodes")          \
    X(EPOCHS, "train", "epochs", CONFIG_COUNT, epochs, "10", 1, 1e6, NULL,                         \
        "passes over this node's rows; not together with rounds")                                  \
    X(ROUNDS, "train", "rounds", CONFIG_COUNT, rounds, "", 1, 1e12, NULL,                          \
        "rounds of training, instead of epochs")                                                   \
    X(LOCAL_STEPS, "train", "local_steps", CONFIG_COUNT, local_steps, "1", 1, 1e6, NULL,           \
        "optimiser steps in a round, between two exchanges")                                       \
    X(BATCH, "train", "batch", CONFIG_COUNT, batch, "32", 1, 65536, NULL,                          \
        "rows in one step of this node")                                                           \
    X(THREADS, "train", "threads", CONFIG_COUNT, threads, "1", 1, 256, NULL,                       \
        "threads of the linear algebra library")                                                   \
    X(PRECISION, "train", "precision", CONFIG_CHOICE, precision, "float32", 0, 0,                  \
        SGP_PRECISION_WORDS,                                                                       \
        "of the operands of matrix products; parameters and sums are float32 in any case")         \
    X(SEED, "train", "seed", CONFIG_COUNT, seed, "1", 0, 1e15, NULL,                               \
        "seed of the first parameters and of the shards; the same on every node")                  \
    X(STOP_AT_ACCURACY, "train", "stop_at_accuracy", CONFIG_REAL, stop_at_accuracy, "", 0, 1,      \
        NULL, "ask the fleet to stop training when this test accuracy is reached; empty: never")   \
    X(KEEP_BEST, "train", "keep_best", CONFIG_CHOICE, keep_best, "none", 0, 0,                     \
        "none|" SGP_BEST_MEASURE_WORDS,                                                            \
        "the measure of the held-out rows of all nodes by which all nodes keep the best model; "   \
        "the same on every node")                                                                  \
    X(EVALUATE_EVERY, "train", "evaluate_every", CONFIG_COUNT, evaluate_every, "", 2, 1e12, NULL,  \
        "keep_best: rounds from one evaluation to the next, of which the last cycle takes no "     \
        "steps; the same on every node")                                                           \
    X(BEST_PATIENCE, "train", "best_patience", CONFIG_COUNT, best_patience, "0", 0, 1e6, NULL,     \
        "keep_best: all nodes stop training after so many evaluations without a better model; "    \
        "0: never")                                                                                \
    X(CHECKPOINT_SECONDS, "train", "checkpoint_seconds", CONFIG_COUNT, checkpoint_seconds, "300",  \
        0, 1e6, NULL,                                                                              \
        "seconds between two checkpoints in the state directory; 0: only on request and at the "   \
        "end")                                                                                     \
    X(WHEN_DONE, "train", "when_done", CONFIG_CHOICE, when_done, "serve", 0, 0, "serve|exit",      \
        "after training: serve keeps answering, exit ends the process")                            \
    X(FINAL_CYCLES, "train", "final_cycles", CONFIG_COUNT, final_cycles, "2", 0, 1000, NULL,       \
        "cycles of the topology mixed at the end, at most")                                        \
    X(KIND, "model", "kind", CONFIG_CHOICE, kind, "layers", 0, 0, "layers|attached",               \
        "layers: trained by sgpd itself; attached: by a program, which brings the model")          \
    X(LAYERS, "model", "layers", CONFIG_LIST, layers, "", 0, 0, NULL,                              \
        "layers from input to output, separated by commas: dense UNITS [relu|tanh|sigmoid], "      \
        "conv, pool, norm, dropout, embedding, residual")                                          \
    X(LOCAL, "model", "local", CONFIG_LIST, local, "", 0, 0, NULL,                                 \
        "layers that stay on this node, which trains them alone: head, a kind such as norm, or "   \
        "layers.N; the same on every node; empty: none")                                           \
    X(INPUTS, "model", "inputs", CONFIG_COUNT, inputs, "", 1, 16777216, NULL,                      \
        "a relay: how many values a row of the others has; all other nodes have rows to count")    \
    X(LOSS, "model", "loss", CONFIG_CHOICE, loss, "cross-entropy", 0, 0, SGP_LOSS_WORDS,           \
        "what is made small: cross-entropy for classes, mse or huber for numbers, "                \
        "binary-cross-entropy for label columns of 0 and 1")                                       \
    X(LABEL_SMOOTHING, "model", "label_smoothing", CONFIG_REAL, label_smoothing, "0", 0,           \
        SGP_LABEL_SMOOTHING_MAX, NULL,                                                             \
        "cross-entropy: the part of a label that all classes share; 0.1 is usual")                 \
    X(HUBER_DELTA, "model", "huber_delta", CONFIG_REAL, huber_delta, "1", SGP_HUBER_DELTA_MIN,     \
        SGP_HUBER_DELTA_MAX, NULL,                                                                 \
        "huber: the error from which the loss grows no longer with its square")                    \
    X(CLASS_WEIGHTS, "model", "class_weights", CONFIG_LIST, class_weights, "", 0, 0, NULL,         \
        "cross-entropy: what a row of each class counts; binary-cross-entropy: what a 1 of each "  \
        "label column counts; numbers in the order of the outputs; balanced: by the rows of all "  \
        "nodes, with [data] scale = fleet; empty: 1 each")                                         \
    X(TRAIN, "data", "train", CONFIG_PATH, train, "", 0, 0, NULL,                                  \
        "rows to train on: IDX or CSV, plain or .gz; only a relay has none")                       \
    X(LABELS, "data", "labels", CONFIG_PATH, labels, "", 0, 0, NULL,                               \
        "labels of train, for IDX files")                                                          \
    X(TEST, "data", "test", CONFIG_PATH, test, "", 0, 0, NULL,                                     \
        "rows to test on, in the format of train")                                                 \
    X(TEST_LABELS, "data", "test_labels", CONFIG_PATH, test_labels, "", 0, 0, NULL,                \
        "labels of test, for IDX files")                                                           \
    X(SHARDS, "data", "shards", CONFIG_SHARDS, shards, "round-robin", 0, 0, NULL,                  \
        "this node's part of train: round-robin, contiguous, sorted, dirichlet:A, or none for a "  \
        "file of its own")                                                                         \
    X(HOLDOUT, "data", "holdout", CONFIG_REAL, holdout, "0", 0, 0.9, NULL,                         \
        "part of this node's rows kept for testing when test is not given")                        \
    X(LABEL, "data", "label", CONFIG_LIST, label, "", 0, 0, NULL,                                  \
        "CSV: the column to predict; several, of numbers or of 0 and 1, separated by commas")      \
    X(CLASSES, "data", "classes", CONFIG_LIST, classes, "", 0, 0, NULL,                            \
        "names of the classes in the order of the outputs, separated by spaces, those with a "     \
        "space in \"quotes\"; for CSV the values of the label column")                             \
    X(SCALE, "data", "scale", CONFIG_PATH, scale, "none", 0, 0, NULL,                              \
        "CSV: file with mean and deviation of each column, the same on every node; fleet: all "    \
        "nodes agree on it before they train; or none")                                            \
    X(CATEGORIES, "data", "categories", CONFIG_LIST, categories, "", 0, 0, NULL,                   \
        "scale = fleet: the columns of words, separated by commas")                                \
    X(IGNORE, "data", "ignore", CONFIG_LIST, ignore, "", 0, 0, NULL,                               \
        "scale = fleet: the columns that are not used, separated by commas")                       \
    X(MIN_COUNT, "data", "min_count", CONFIG_COUNT, min_count, "10", 1, 1000000, NULL,             \
        "a value or a sum of numbers (scale = fleet), or measures of held-out rows, are told to "  \
        "other nodes only if so many rows of this node have them")                                 \
    X(MISSING, "data", "missing", CONFIG_CHOICE, missing, "error", 0, 0, "error|drop|mean",        \
        "CSV: what to do with a row that lacks a value")                                           \
    X(OPTIMIZER, "optimizer", "kind", CONFIG_CHOICE, optimizer, "nesterov", 0, 0,                  \
        SGP_OPTIMIZER_WORDS, "rule of a step")                                                     \
    X(LEARNING_RATE, "optimizer", "learning_rate", CONFIG_REAL, learning_rate, "0.05", 1e-12, 1e6, \
        NULL, "step size at full height")                                                          \
    X(MOMENTUM, "optimizer", "momentum", CONFIG_REAL, momentum, "0.9", 0, 0.9999, NULL,            \
        "momentum, nesterov, lars: part of the last step kept")                                    \
    X(WEIGHT_DECAY, "optimizer", "weight_decay", CONFIG_REAL, weight_decay, "0", 0, 1, NULL,       \
        "pull of the parameters towards zero, times the step size")                                \
    X(BETA1, "optimizer", "beta1", CONFIG_REAL, beta1, "0.9", 0, 0.9999, NULL,                     \
        "adam, adamw, lamb: part of the mean of gradients kept")                                   \
    X(BETA2, "optimizer", "beta2", CONFIG_REAL, beta2, "0.999", 0, 0.999999, NULL,                 \
        "adam, adamw, lamb: part of the mean of squares kept")                                     \
    X(ALPHA, "optimizer", "alpha", CONFIG_REAL, alpha, "0.99", 0, 0.999999, NULL,                  \
        "rmsprop: part of the mean of squares kept")                                               \
    X(EPSILON, "optimizer", "epsilon", CONFIG_REAL, epsilon, "1e-8", SGP_EPSILON_MIN, 1, NULL,     \
        "adam, adamw, rmsprop, lamb: added to the root that a step is divided by")                 \
    X(TRUST, "optimizer", "trust", CONFIG_REAL, trust, "1e-3", SGP_TRUST_MIN, SGP_TRUST_MAX, NULL, \
        "lars: length of a tensor's step, as a part of the tensor's norm, at a step size of 1")    \
    X(CLIP_NORM, "optimizer", "clip_norm", CONFIG_REAL, clip_norm, "0", 0, SGP_CLIP_MAX, NULL,     \
        "longest gradient; a longer one is shortened to this; 0: any")                             \
    X(CLIP_VALUE, "optimizer", "clip_value", CONFIG_REAL, clip_value, "0", 0, SGP_CLIP_MAX, NULL,  \
        "largest value of a gradient, either way; 0: any")                                         \
    X(NOISE, "optimizer", "noise", CONFIG_CHOICE, noise, "node", 0, 0, "node|fleet",               \
        "adam, adamw, rmsprop, lars, lamb: whose noise the gradient has that a step is scaled "    \
        "by: "                                                                                     \
        "node, this node's; fleet, that of the mean over all nodes")                               \
    X(SCHEDULE, "optimizer", "schedule", CONFIG_CHOICE, schedule, "constant", 0, 0,                \
        SGP_SCHEDULE_WORDS, "how the step size, or the batch, changes over the epochs")            \
    X(WARMUP_EPOCHS, "optimizer", "warmup_epochs", CONFIG_REAL, warmup_epochs, "0", 0, 1e6, NULL,  \
        "epochs over which the step size rises to learning_rate")                                  \
    X(BASE_BATCH, "optimizer", "base_batch", CONFIG_COUNT, base_batch, "", 1, 1e9, NULL,           \
        "rows of a step that learning_rate is meant for; it is multiplied by the rows of a step "  \
        "of all nodes, divided by these; empty: it is not")                                        \
    X(MILESTONES, "optimizer", "milestones", CONFIG_LIST, milestones, "", 0, 0, NULL,              \
        "step, growing-batch: the epochs at which the step size falls or the batch grows, "        \
        "separated by spaces")                                                                     \
    X(FACTOR, "optimizer", "factor", CONFIG_REAL, factor, "0.1", 1e-6, 1, NULL,                    \
        "step, growing-batch: what the step size is multiplied with at each milestone, or the "    \
        "batch divided by")                                                                        \
    X(GROWTHS, "optimizer", "growths", CONFIG_COUNT, growths, "32", 1, 32, NULL,                   \
        "growing-batch: at how many milestones the batch grows; at the later ones the step size "  \
        "falls")                                                                                   \
    X(FINAL_FRACTION, "optimizer", "final_fraction", CONFIG_REAL, final_fraction, "0", 0, 1, NULL, \
        "linear, one-cycle: the part of learning_rate that is left at the end")                    \
    X(LOW_FRACTION, "optimizer", "low_fraction", CONFIG_REAL, low_fraction, "0.1", 0, 1, NULL,     \
        "cyclic, one-cycle: the part of learning_rate from which a cycle rises, and to which it "  \
        "falls")                                                                                   \
    X(PERIOD_EPOCHS, "optimizer", "period_epochs", CONFIG_REAL, period_epochs, "", 1e-6, 1e6,      \
        NULL, "cyclic, one-cycle: the epochs of a cycle, up and down")                             \
    X(PRIVACY_EPSILON, "privacy", "epsilon", CONFIG_REAL, privacy_epsilon, "",                     \
        SGP_PRIVACY_EPSILON_MIN, SGP_PRIVACY_EPSILON_MAX, NULL,                                    \
        "what all steps of this node may tell about one of its rows; when it is spent, the node "  \
        "takes no more steps; empty: steps are not private")                                       \
    X(PRIVACY_DELTA, "privacy", "delta", CONFIG_REAL, privacy_delta, "1e-5",                       \
        SGP_PRIVACY_DELTA_MIN, SGP_PRIVACY_DELTA_MAX, NULL,                                        \
        "probability with which epsilon may fail; far below 1 / rows")                             \
    X(PRIVACY_CLIP, "privacy", "clip", CONFIG_REAL, privacy_clip, "1", 1e-6, 1e6, NULL,            \
        "greatest length of the gradient of a row")                                                \
    X(PRIVACY_NOISE, "privacy", "noise", CONFIG_REAL_OR_WORD, privacy_noise, "auto",               \
        SGP_PRIVACY_NOISE_MIN, SGP_PRIVACY_NOISE_MAX, "auto",                                      \
        "deviation of the noise of a step, as a multiple of clip; auto: the least with which "     \
        "epsilon is enough for all rounds")                                                        \
    X(OUTER, "outer", "kind", CONFIG_CHOICE, outer, "none", 0, 0, "none|slowmo|nesterov",          \
        "the step after each digraph with outer=true, on what it changed: none, slowmo, or "       \
        "nesterov, as in DiLoCo; the same on every node")                                          \
    X(OUTER_LEARNING_RATE, "outer", "learning_rate", CONFIG_REAL, outer_learning_rate, "1", 1e-12, \
        SGP_OUTER_RATE_MAX, NULL, "size of that step; 1 goes where training went")                 \
    X(OUTER_MOMENTUM, "outer", "momentum", CONFIG_REAL, outer_momentum, "0.5", 0, 0.9999, NULL,    \
        "part of the last such step kept")                                                         \
    X(LISTEN, "network", "listen", CONFIG_ADDRESS, listen, NULL, 0, 0, NULL,                       \
        "HOST:PORT to listen on for neighbours; exactly this is bound; none where nobody dials "   \
        "it")                                                                                      \
    X(COMPRESSION, "network", "compression", CONFIG_CHOOSER, compression, "none", 0, 0,            \
        SGP_CHOOSER_WORDS,                                                                         \
        "how the shares that this node gives while it trains are made smaller; from int2 on only " \
        "updates to owners")                                                                       \
    X(COPIES, "network", "copies", CONFIG_CHOOSER, copies, "none", 0, 0, SGP_CHOOSER_COPY_WORDS,   \
        "how the copies that an owner gives its workers while they train are made smaller")        \
    X(SOCKET, "control", "socket", CONFIG_PATH, socket, "", 0, 0, NULL,                            \
        "Unix socket of sgpctl and curl; /run/sgpd/NAME/control.sock if not given")                \
    X(ATTACH, "control", "attach", CONFIG_PATH, attach, "", 0, 0, NULL,                            \
        "kind = attached: Unix socket of the program; attach.sock beside socket if not given")     \
    X(LOG_LEVEL, "log", "level", CONFIG_CHOICE, log_level, "info", 0, 0,                           \
        "error|warning|info|debug|trace", "how much is written to the journal")                    \
    X(EVENTS, "log", "events", CONFIG_PATH, events, "", 0, 0, NULL,                                \
        "file to which everything that the node was told is appended, for sgpctl replay; empty: "  \
        "none")                                                                                    \
    X(TRACE, "log", "trace", CONFIG_PATH, trace, "", 0, 0, NULL,                                   \
        "file to which a line for every step of the node is appended, as sgpctl replay prints "    \
        "it; empty: none")                                                                         \
    X(TENSORBOARD, "log", "tensorboard", CONFIG_PATH, tensorboard, "", 0, 0, NULL,                 \
        "directory in which each process begins an event file of TensorBoard with the rows of "    \
        "the history; empty: none")

enum config_id {
#define X(id, ...) CONFIG_ID_##id,
    CONFIG_TABLE(X)
#undef X
        CONFIG_KEY_COUNT,
};

/* One row of the table. */
struct config_key {
    const char *section;
    const char *key;
    enum config_type type;
    size_t offset;            /* of the field in struct config */
    const char *default_text; /* as it would stand in the file; NULL: required; "": not given */
    double least;
    double most;
    const char *words; /* of a choice, separated by '|' */
    const char *meaning;
};
extern const struct config_key config_keys[CONFIG_KEY_COUNT];

/* Read FILE. On success the caller owns *ret_config and ends it with config_finish; on failure it
 * is untouched. */
int config_load(const char *file, struct sgp_error *error, struct config *ret_config);

/* The same from text[0..bytes). `file` is for messages and relative paths. */
int config_parse(const char *file, const char *text, size_t bytes, struct sgp_error *error,
    struct config *ret_config);

void config_finish(struct config *config);

/* The configuration of the owner `name` colocated with a node that trains on rows of `inputs`
 * values. It is the same configuration without rows. Its state is in STATE/owner, its control
 * socket is SOCKET.owner; the journal and the trace follow the same rule.
 *
 * The owner takes over the address on which `config` listens; `config` listens nowhere from now on.
 * The caller owns *ret_owner as after config_load. Returns 0 or -ENOMEM. */
int config_colocated(struct config *config, const char *name, uint64_t inputs,
    struct sgp_error *error, struct config *ret_owner);

/* Read FILE, which config_load has taken before, and write the lines that all nodes of a fleet
 * share: all but names, paths, rows, addresses, threads and logs. A path among them is a comment.
 * Values are not checked again. The caller frees *ret_text. Returns 0, or negative with *error
 * filled (config_shared.c). */
int config_shared(const char *file, struct sgp_error *error, char **ret_text);

/* Whether a text, which may be hostile, has only what config_shared writes: whole lines, the first
 * of them a section, without a key of one machine and without a path. Values and unknown keys are
 * for config_parse to judge. Returns 0, SGP_E_CONFIG with what must not be there, or -ENOMEM. */
int config_shared_check(const char *text, struct sgp_error *error);

/* Report an error that was found in a key after reading. Fill *error with `FILE:LINE: [section]
 * key: ...`, and return code. The message is formatted like printf. A key that is not in the file
 * has no line. */
int config_fail(const struct config *config, enum config_id id, struct sgp_error *error, int code,
    const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The schedule of [optimizer], for a node with `rows` rows in a fleet where `trainers` nodes train.
 * If neither `rounds` nor base_batch is given, both arguments are unused and may be 0. Returns 0,
 * or negative with *error filled. */
int config_schedule(const struct config *config, uint64_t rows, uint32_t trainers,
    struct sgp_error *error, struct sgp_schedule *ret_schedule);

/* The rule of [optimizer], for a step whose gradient has this part of the noise of one node's. */
void config_rule(const struct config *config, double noise_fraction,
    struct sgp_optimizer_settings *ret_settings);

/* Whether the node's steps are private. */
bool config_is_private(const struct config *config);

/* The table for people: under each section its keys with default, range and meaning. */
void config_print_keys(FILE *stream);

#endif
