/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `sgpctl config new`: the configuration that is being made.
 *
 * Each file calls only the files below it:
 *
 *   config_new.c            the command, its options and its answer
 *   config_new_questions.c  asks for what the command line leaves out; reads rows and topology
 *   config_new_file.c       the file, and the scaling file if there is one
 *   config_new_text.c       the text of the configuration
 *   config_new_numbers.c    its numbers, and the rule of a step
 *
 * Thread: the only thread. Each failure is reported by ctl_fail, in one line. */
#ifndef CTL_CONFIG_NEW_H
#define CTL_CONFIG_NEW_H

#include "rows.h"

#include "sgp/topology.h"

#define CTL_DRAFT_ANSWERS 4u /* rows, label, topology, name */
#define CTL_DRAFT_ANSWER_BYTES 4096u

/* The options, in their order. */
enum {
    NEW_DATA,
    NEW_LABEL,
    NEW_CLASSES,
    NEW_TOPOLOGY,
    NEW_IGNORE,
    NEW_SCALE,
    NEW_SHARDS,
    NEW_HOLDOUT,
    NEW_LAYERS,
    NEW_LOCAL,
    NEW_EPOCHS,
    NEW_KEEP_BEST,
    NEW_EVALUATE_EVERY,
    NEW_BEST_PATIENCE,
    NEW_BATCH,
    NEW_RATE,
    NEW_ALGORITHM,
    NEW_LISTEN,
    NEW_STATE,
    NEW_SOCKET,
    NEW_FORCE,
    NEW_COUNT
};

/* Options point into `answers`, so a draft stays where it is. */
struct ctl_draft {
    struct ctl *ctl;
    struct ctl_given given[NEW_COUNT];
    const char *file;
    char answers[CTL_DRAFT_ANSWERS][CTL_DRAFT_ANSWER_BYTES]; /* of the person at the terminal */
    uint32_t answer_count;
    struct ctl_rows rows;
    struct sgp_topology *topology;
    char topology_path[PATH_MAX];
    char scale[PATH_MAX]; /* the value of the key: a path, "none" or CTL_SCALE_FLEET */
    const struct sgp_topology_node *node;
    const char *algorithm, *listen;
    uint64_t epochs, batch;
    const char *keep_best; /* the measure of the best model; NULL: the last one is kept */
    uint64_t evaluate_every, best_patience;
    double rate, holdout;
    bool scale_made;
    bool scaled; /* the features, and a label of numbers, are near 1 */
};

#define CTL_EPOCHS_MAX 1000000u

/* ---- config_new_numbers.c ---- */

/* Take batch, learning rate and holdout from the options, or their defaults. */
enum ctl_exit ctl_draft_take_numbers(struct ctl_draft *draft);

/* The passes over so many rows, if --epochs does not say them: so many that the model learns from
 * few rows, too. */
uint64_t ctl_draft_epochs(const struct ctl_draft *draft, double rows);

/* The weight decay: of a label of numbers the greater, the fewer rows all nodes have. Other nodes
 * are taken to have as many rows as this one. */
double ctl_draft_decay(const struct ctl_draft *draft);

/* Choose the rule of a step and its size, by whether all columns and the label are scaled. */
void ctl_draft_choose_rule(struct ctl_draft *draft, bool scaled);

/* ---- config_new_questions.c ---- */

/* Take rows and label from the options, or ask for them, and read the rows. */
enum ctl_exit ctl_draft_read_rows(struct ctl_draft *draft);

/* Take rows, label, topology and name from the options, or ask for them if standard input is a
 * terminal. Reads the rows and the topology. */
enum ctl_exit ctl_draft_ask(struct ctl_draft *draft);

/* ---- config_new_file.c ---- */

/* CTL_FAILED if the file is there, and --force is not given. */
enum ctl_exit ctl_draft_refuse_existing(const struct ctl_draft *draft);

/* Set draft->scale: what --scale says, or scale.json beside the configuration. CTL_INVALID if the
 * topology or the rows do not go with CTL_SCALE_FLEET. */
enum ctl_exit ctl_draft_find_scale(struct ctl_draft *draft);

/* Whether draft->scale is a path, or CTL_SCALE_FLEET. */
bool ctl_draft_has_scale_file(const struct ctl_draft *draft);
bool ctl_draft_has_scale_of_fleet(const struct ctl_draft *draft);

/* Whether all columns that the model learns from are scaled, and a label of numbers too. */
bool ctl_draft_scales_all(const struct ctl_draft *draft);

/* Check the text, compute the scaling file unless there is one, and write the configuration. */
enum ctl_exit ctl_draft_write(struct ctl_draft *draft);

/* ---- config_new_text.c ---- */

#define CTL_DRAFT_LAYERS_BYTES 64u

/* --layers, or their default, which is written to ret_layers. */
const char *ctl_draft_layers(
    const struct ctl_draft *draft, char ret_layers[CTL_DRAFT_LAYERS_BYTES]);

void ctl_draft_put(const struct ctl_draft *draft, FILE *file);

#endif
