/* SPDX-License-Identifier: Apache-2.0 */
/* From a configuration to all that a node needs before it may open a socket. That is the topology
 * and the node's place in it, rows, model, trainer, rounds, fingerprint, and the memory that all
 * this takes.
 *
 * `sgpd --check` and the running daemon use the same functions, so that a file that passes the
 * check also starts. Blocks on files; called before the loop runs. Errors are one line that names
 * the file and the remedy. */
#ifndef SGPD_PREPARE_H
#define SGPD_PREPARE_H

#include "config.h"
#include "signed_file.h"

#include "sgp/analysis.h"
#include "sgp/attached.h"
#include "sgp/dataset.h"
#include "sgp/key.h"
#include "sgp/learner.h"
#include "sgp/model.h"
#include "sgp/model_file.h"
#include "sgp/topology.h"
#include "sgp/trainer.h"

#include <stdio.h>

#define PREPARE_WARNINGS_MAX 24u
#define PREPARE_TERMS_MAX 24u

struct prepare_term { /* one term of a node's memory */
    const char *name; /* static */
    uint64_t bytes;
};

struct prepared_privacy {
    bool on;        /* the steps of this node are private */
    double chance;  /* of each row to be in a step */
    double noise;   /* as a multiple of the clipping length */
    uint64_t steps; /* of all rounds */
    double epsilon; /* of the steps of all rounds, if nothing was spent before */
    struct sgp_privacy_cost step;
};

struct prepared {
    const struct config *config;         /* borrowed */
    const struct sgp_data_cache *cache;  /* borrowed until `prepare` returns */
    const struct signed_file_wish *wish; /* borrowed until `prepare_place` returns; else NULL */
    struct sgp_topology *topology;
    /* Of a signed file (signed_file.h), which must be stored before it is used; NULL: the file is
     * plain. The daemon changes it: node/documents.c. */
    struct sgp_rollout *rollout;
    char version[SIGNED_FILE_NAME_BYTES]; /* "version 7 of mill"; "": what [topology] file has */
    uint32_t self;
    struct sgp_key *key; /* NULL: the configuration names none */
    const struct sgp_method *method;
    struct sgp_analysis analysis;
    struct sgp_data data;
    struct sgp_scaling *scaling; /* NULL: features are used unchanged */
    char *scaling_text;          /* of a scaling of the fleet; NULL: the scaling is none of it */
    char **told_classes;         /* in it: the classes that some node has told; or NULL */
    uint32_t told_class_count;
    bool scaling_alone; /* of this node's rows alone; all nodes have still to agree on another */
    struct sgp_model model;
    struct sgp_learner_settings settings; /* refers to the three above */
    struct sgp_blas blas;                 /* the matrix multiplication; main.c */
    struct sgp_learner *learner;          /* owned; NULL before prepared_learn, like `attached` */
    struct sgp_model_file *layout; /* of a program's model; NULL: built in, or not known yet */
    struct sgp_attached *attached; /* then in place of the learner */
    bool awaiting_model;           /* a program must bring its model first: prepared_lay */
    bool begins;                   /* x is what the program brought */
    bool open;                     /* the program decides on the end of training */
    struct sgp_trainer *trainer;   /* the learner, or the attached one, as a trainer */
    struct sgp_tensor_end *ends;   /* the ends of its tensors; owned, */
    struct sgp_tensors tensors;    /* and the tensors, which refer to them */
    char **class_names;            /* NULL, or one name per output */
    uint32_t class_count;          /* 0: label columns hold numbers */
    float *class_weights;          /* NULL, or one per output; of the model's loss */
    char *columns_text;            /* of CSV, for the model's file; NULL: none is available */
    char *targets_text;            /* the same of scaled label columns; NULL: none is scaled */
    uint64_t parameters;
    uint64_t steps_per_epoch; /* optimiser steps in which this node sees its rows once */
    double epochs;            /* that `rounds` rounds take */
    sgp_round rounds;         /* rounds in which this node trains */
    struct prepared_privacy privacy;
    struct sgp_fingerprint fingerprint;
    struct sgp_node_needs needs;
    double weight_least, weight_most;
    struct prepare_term terms[PREPARE_TERMS_MAX];
    uint32_t term_count;
    uint64_t memory_bytes;    /* the sum of the terms */
    uint64_t fresh_bytes;     /* the part of it that prepared_learn and the daemon allocate */
    uint64_t address_bytes;   /* the address space of this part: whole receive buffers */
    uint64_t workspace_bytes; /* of the learner, beside the vectors of the model */
    char warnings[PREPARE_WARNINGS_MAX][SGP_TEXT_BYTES];
    uint32_t warning_count;
};

/* Build everything but the learner, whose parameters may be many. The config is borrowed and must
 * outlive *ret_prepared. The rows of large CSV files go through the cache, unless it is NULL.
 * Returns 0. On failure, returns a negative code with *error filled, and leaves *ret_prepared
 * untouched. */
int prepare(const struct config *config, const struct sgp_data_cache *cache,
    struct sgp_error *error, struct prepared *ret_prepared);

/* Whether a table of the configuration is so large that its rows go through a cache. */
bool prepare_wants_cache(const struct config *config);

/* Warn of effects of compression that its user may not expect. */
void prepared_warn_of_compression(struct prepared *prepared);
/* The part of these warnings that needs the model: an exact cycle whose parts are too small to be
 * coded. Returns whether that holds. */
bool prepared_warn_of_parts(struct prepared *prepared);

/* Set `tensors` by the model, or by a program's layout. 0 or -ENOMEM with *error. */
int prepared_name_tensors(struct prepared *prepared, struct sgp_error *error);

/* For a node that is awaiting_model: prepare everything that follows from the layout. The node
 * takes ownership of the layout. Returns 0 or negative with *error. */
int prepared_lay(struct prepared *prepared, struct sgp_model_file *layout, struct sgp_error *error);

/* Undo prepared_lay and drop the learner, because another program may bring another model. */
void prepared_unlay(struct prepared *prepared);

/* Then build the learner, if there is memory for all vectors. Else returns -ENOMEM, and how much is
 * lacking. */
int prepared_learn(struct prepared *prepared, struct sgp_error *error);

/* The most bytes of a node's report on the model (sgp/report.h). 0: none is told, since the model
 * is a program's, or has too many outputs. */
uint32_t prepared_report_bytes(const struct prepared *prepared);

void prepared_finish(struct prepared *prepared);

/* The first part of `prepare` alone, for a reload: the topology and the node's place in it. It sets
 * the fields from `topology` to `analysis`, the key (read anew), needs, weight_least and warnings.
 * `wish` is that of signed_file_read. prepared_finish ends it. */
int prepare_place(const struct config *config, const struct signed_file_wish *wish,
    struct sgp_error *error, struct prepared *ret_prepared);

/* The topology file as errors name it. */
const char *prepared_file(const struct prepared *prepared);

/* Whether the node listens, if others dial it by that part. `prepare` checks this by itself.
 * Returns 0, or negative with *error. */
int prepare_listen(struct prepared *p, struct sgp_error *error);

/* Swap that part, and compute the memory again with these needs. */
void prepared_swap_place(
    struct prepared *prepared, struct prepared *place, const struct sgp_node_needs *needs);

/* Everything in sgp_node_config but incarnation and seed, which the caller must draw. */
void prepared_node_config(const struct prepared *prepared, struct sgp_node_config *ret_node_config);

#define PREPARED_COPIED_MAX 2000000u /* parameters of a best model that is copied */
#define PREPARED_COPY_DIGITS 8u      /* bytes of a parameter in its text */
#define PREPARED_COPY_TEXTS 5u       /* that there are at a time, at most */

/* The measure by which the best model is kept; 0: none is kept. */
enum sgp_best_measure prepared_keeps_best(const struct prepared *prepared);
/* Whether finished nodes take the copy of one node. A copy is a bulletin, so that of a larger model
 * is longer than SGP_BULLETIN_MAX, and each node keeps its own model of that round. */
bool prepared_copies_best(const struct prepared *prepared);
/* When the models are measured for that, by the present topology file. */
struct sgp_best_times prepared_best_times(const struct prepared *prepared);

/* Whether the node sends updates to owners, which may be coded. */
bool prepared_gives_updates(const struct prepared *prepared);

/* Whether this node takes outer steps. In a file with owners, only the owners take them. */
bool prepared_takes_outer_steps(const struct prepared *prepared);

/* Whether the node owns parameters, and codes the changes to its workers' copies. */
bool prepared_codes_copies(const struct prepared *prepared);
/* Whether the node keeps a copy: that of its owner, or that of its workers. */
bool prepared_keeps_copy(const struct prepared *prepared);

/* Whether epsilon ends before so many private steps, with what was spent before; then `text` is the
 * warning. */
bool prepared_lacks_epsilon(const struct prepared *prepared, const struct sgp_privacy_cost *spent,
    uint64_t steps, char text[SGP_TEXT_BYTES]);

/* One more warning. */
void prepared_warn(struct prepared *prepared, const char *format, ...) SGP_PRINTF(2, 3);

/* Sum the terms again, and warn if this machine has less memory. */
void prepared_sum_memory(struct prepared *prepared);
void prepared_warn_of_memory(struct prepared *prepared);

/* Compare the sum with the memory that is left. Returns 0 or -ENOMEM with *error. */
int prepared_check_memory(const struct prepared *prepared, struct sgp_error *error);
/* Report that there is no memory for the model. Returns -ENOMEM. */
int prepared_no_memory(const struct prepared *prepared, struct sgp_error *error);

/* Where the layout of a program's model is kept. */
void prepared_layout_path(const struct config *config, char path[CONFIG_TEXT_BYTES]);

/* What the control server must know about the network. It borrows from *prepared. */
struct view_model;
void prepared_view_model(const struct prepared *prepared, struct view_model *ret_model);

/* Which part of the file this node trains and tests on: "85 of 337 rows (round-robin, part 1 of
 * 4)". */
void prepared_rows_text(const struct prepared *prepared, char text[SGP_TEXT_BYTES]);
/* The rank of this node among the nodes that train, from 0. */
uint32_t prepared_rank(const struct prepared *prepared);

/* The summary of `sgpd --check`: what will run, its memory term by term, and every warning. */
void prepared_print(FILE *stream, const struct prepared *prepared);

#endif
