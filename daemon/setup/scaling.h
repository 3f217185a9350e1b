/* SPDX-License-Identifier: Apache-2.0 */
/* [data] scale = fleet: what this node tells about its rows, and the scaling on which all nodes
 * have agreed, STATE/scale.json. That is a scaling file with the keys of sgp_statistics_combine,
 * and `version`, the version of the topology file whose nodes agreed. Blocks on files. Errors are
 * one line. */
#ifndef SGPD_SCALING_H
#define SGPD_SCALING_H

#include "config.h"

#include "sgp/dataset.h"
#include "sgp/survey.h"
#include "sgp/topology.h"

#define SCALING_FLEET "fleet" /* the value of [data] scale */

/* Whether the nodes agree on the scaling. Never with a program's model, which has no columns. */
bool scaling_is_of_fleet(const struct config *config);

/* Whether the nodes can agree: the rows are CSV, and no node of the file is an owner co-located
 * with another node. Such an owner would have to pass on what it hears before its process exists.
 * 0, or SGP_E_CONFIG with *error. */
int scaling_check(const struct config *config, const struct sgp_topology *topology, bool relay,
    struct sgp_error *error);

/* The path of this node's scaling file: STATE/scale.json with `fleet`, else the configured path. */
void scaling_path(const struct config *config, char path[CONFIG_TEXT_BYTES]);

/* Read the training rows once, and make the text that this node tells. If a column of numbers holds
 * words, *ret_note has the line of the log; else its code is 0. The caller frees *ret_text. */
int scaling_tell(const struct config *config, struct sgp_error *ret_note, struct sgp_error *error,
    char **ret_text);

/* The scaling that follows from the figures of all members of a complete survey. Every node
 * computes the same bits, or fails with the same line. The caller frees *ret_text. */
int scaling_combine(const struct sgp_survey *survey, const struct sgp_topology *topology,
    struct sgp_error *error, char **ret_text);

/* The scaling from scaling_path, and with `fleet` its text, which the caller frees. If all nodes
 * have still to agree on it, it is that of this node's rows alone, to check a configuration
 * (*ret_alone). What this node would not tell is then scaled by its own few values. *ret_note names
 * the first such column; its code is 0 if there is none. A relay has no rows: it then gets no
 * scaling, or fails without `inputs`. A relay also gets no scaling if a configured file does not
 * exist. */
int scaling_read(const struct config *config, bool relay, struct sgp_error *error, bool *ret_alone,
    struct sgp_error *ret_note, char **ret_text, struct sgp_scaling **ret_scaling);

/* The classes in the text of a scaling, which some node has told. The caller calls sgp_names_free.
 * NULL and 0: there are none. 0 or -ENOMEM with *error. */
int scaling_classes(
    const char *text, struct sgp_error *error, char ***ret_names, uint32_t *ret_count);

/* [model] class_weights = balanced: rows / (classes * rows of the class), by the rows of all nodes
 * in the text of a scaling, of which they are told. A class that no node has told weighs as much
 * as the rarest class that was told, and none more than SGP_CLASS_WEIGHT_MAX. Names are in the
 * order of the outputs. The caller frees *ret_weights. SGP_E_DATA if no class was told, -ENOMEM. */
int scaling_balance(const char *text, char *const *names, uint32_t count, struct sgp_error *error,
    float **ret_weights);

/* For the survey (struct sgp_survey_judge): whether a result can be what nodes of its version of
 * the topology file have agreed on. */
int scaling_judge(void *context, const struct sgp_bulletin *bulletin);

/* Whether such a text can be written there: 0, or -errno with *error. Nothing is left behind. */
int scaling_try_to_keep(const struct config *config, struct sgp_error *error);
/* Write the text on which all nodes have agreed to STATE/scale.json. */
int scaling_keep(const struct config *config, const char *text, struct sgp_error *error);

/* Freeze the survey with the kept result. 1, 0 if there is none, or negative with *error. */
int scaling_restore(
    const struct config *config, struct sgp_survey *survey, struct sgp_error *error);

#endif
