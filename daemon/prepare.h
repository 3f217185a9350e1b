/* SPDX-License-Identifier: Apache-2.0 */
/* From a configuration to everything that a node needs before it may open a socket: topology and
 * own place in it, rows, model, trainer, rounds, fingerprint, and the memory that all this takes.
 *
 * `sgpd --check` and the running daemon go through the same door, so that a file that passes the
 * check also starts. Blocks on files; called before the loop runs. Errors are one line that names
 * the file and the remedy. */
#ifndef SGPD_PREPARE_H
#define SGPD_PREPARE_H

#include "config.h"

#include "sgp/analysis.h"
#include "sgp/dataset.h"
#include "sgp/learner.h"
#include "sgp/model.h"
#include "sgp/topology.h"
#include "sgp/trainer.h"

#include <stdio.h>

#define PREPARE_WARNINGS_MAX 24u
#define PREPARE_TERMS_MAX 12u

struct prepare_term { /* of the sum that is the memory of a node */
    const char *name; /* static */
    uint64_t bytes;
};

struct prepared {
    const struct config *config; /* borrowed */
    struct sgp_topology *topology;
    uint32_t self;
    const struct sgp_method *method;
    struct sgp_analysis analysis;
    struct sgp_data data;
    struct sgp_scaling *scaling; /* NULL: features are taken as they are */
    struct sgp_model model;
    struct sgp_learner_settings settings; /* over the three above */
    struct sgp_blas blas;                 /* what multiplies; main.c */
    struct sgp_learner *learner;          /* owned; NULL before prepared_learn, like the next */
    struct sgp_trainer *trainer;          /* the learner as a trainer */
    char **class_names;                   /* NULL, or one name per output */
    uint32_t class_count;                 /* 0 for regression */
    uint64_t parameters;
    uint64_t steps_per_epoch; /* optimiser steps in which this node sees its rows once */
    double epochs;            /* that `rounds` rounds make */
    sgp_round rounds;         /* rounds in which this node trains */
    struct sgp_fingerprint fingerprint;
    struct sgp_node_needs needs;
    double weight_least;
    struct prepare_term terms[PREPARE_TERMS_MAX];
    uint32_t term_count;
    uint64_t memory_bytes;    /* the sum of the terms */
    uint64_t workspace_bytes; /* of the learner, beside the vectors of the model */
    char warnings[PREPARE_WARNINGS_MAX][SGP_TEXT_BYTES];
    uint32_t warning_count;
};

/* Build everything but the learner, whose parameters may be many. The config is borrowed and must outlive
 * *ret_prepared. Returns 0; on failure a negative code with *error filled, and *ret_prepared untouched. */
int prepare(const struct config *config, struct sgp_error *error, struct prepared *ret_prepared);

/* Then the learner, for a node that runs. 0 or -ENOMEM. */
int prepared_learn(struct prepared *prepared, struct sgp_error *error);

void prepared_finish(struct prepared *prepared);

/* The first part of `prepare` alone, the topology and the node's place in it, for a reload: the fields
 * from `topology` to `analysis`, needs, weight_least and warnings. Ended by prepared_finish. */
int prepare_place(
    const struct config *config, struct sgp_error *error, struct prepared *ret_prepared);

/* Exchange that part, and sum the memory up again with these needs. */
void prepared_swap_place(
    struct prepared *prepared, struct prepared *place, const struct sgp_node_needs *needs);

/* Everything in sgp_node_config but lineage and seed, which are the caller's to draw. */
void prepared_node_config(const struct prepared *prepared, struct sgp_node_config *ret_node_config);

/* What the control server must know of the network; borrows from *prepared. */
struct control_model;
void prepared_control_model(
    const struct prepared *prepared, struct control_model *ret_control_model);

/* Which part of the file this node trains and tests on: "85 of 337 rows (round-robin, part 1 of 4)". */
void prepared_rows_text(const struct prepared *prepared, char text[SGP_TEXT_BYTES]);

/* The summary of `sgpd --check`: what will run, its memory term by term, and every warning. */
void prepared_print(FILE *stream, const struct prepared *prepared);

#endif
