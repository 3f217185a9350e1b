/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `sgpctl compare ROWS.csv`: a rehearsal of many sites on this machine, by several methods
 * in turn.
 *
 * Each site has a core of the simulator and a built-in learner, with the settings that
 * `sgpctl config new` would write for its rows. Each file calls only the files below it:
 *
 *   rehearsal.c           the command: its options, the methods in turn, and the answer
 *   rehearsal_run.c       one method: its sites train, and are measured
 *   rehearsal_method.c    the methods and their topologies
 *   rehearsal_data.c      from the CSV file to the rows and the settings of all sites
 *
 * Thread: the only thread. */
#ifndef CTL_REHEARSAL_H
#define CTL_REHEARSAL_H

#include "config_new.h"

#include "sgp/generate.h"
#include "sgp/learner.h"
#include "sgp/sites.h"

#include "../daemon/setup/config.h"

/* The options of `sgpctl compare` in their order; those of a plan come first. */
enum {
    COMPARE_NODES,
    COMPARE_RESULTS,
    COMPARE_PICTURE,
    COMPARE_AGAIN,
    COMPARE_ROWS, /* the first that is only for a table of rows */
    COMPARE_LABEL = COMPARE_ROWS,
    COMPARE_IGNORE,
    COMPARE_SHARDS,
    COMPARE_METHODS,
    COMPARE_SEED,
    COMPARE_HOLDOUT,
    COMPARE_LAYERS,
    COMPARE_EPOCHS,
    COMPARE_BATCH,
    COMPARE_RATE,
    COMPARE_COUNT
};

struct ctl_rehearsal {
    struct ctl *ctl;
    const struct ctl_given *given; /* COMPARE_COUNT options */
    struct ctl_draft draft;        /* the configuration that `sgpctl config new` would write */
    struct config config;          /* the same, as a daemon reads it */
    struct sgp_scaling *scaling;   /* of all rows */
    char **class_names;            /* NULL: the label is a number */
    uint32_t class_count;
    struct sgp_sites_plan plan;
    struct sgp_sites sites;
    struct sgp_model model;
    struct sgp_learner_settings settings; /* of all sites; without rows and schedule */
    uint64_t workspace_bytes;             /* of a learner beside its vectors, at most */
};

/* ---- rehearsal_data.c ---- */

/* Read the file, divide its rows, and make the settings. CTL_DONE, or the error was reported.
 * ctl_rehearsal_finish in any case. */
enum ctl_exit ctl_rehearsal_prepare(struct ctl_rehearsal *rehearsal, const char *file);
void ctl_rehearsal_finish(struct ctl_rehearsal *rehearsal);

/* The settings of a site that trains on `rows`, as site `index` of `count`, and how many steps it
 * takes. Returns 0, or SGP_E_CONFIG with *error. */
int ctl_rehearsal_site(const struct ctl_rehearsal *rehearsal, const struct sgp_dataset *rows,
    uint32_t index, uint32_t count, struct sgp_error *error,
    struct sgp_learner_settings *ret_settings, uint64_t *ret_steps);

/* ---- rehearsal_method.c ---- */

struct ctl_rehearsal_method {
    const char *name;      /* of --methods */
    const char *algorithm; /* NULL: nothing is sent */
    const char *family;    /* of `sgpctl topology generate`; NULL: none */
    uint32_t local_steps;
    bool pooled; /* all rows are at one site */
};

/* By index from 0; NULL after the last. */
const struct ctl_rehearsal_method *ctl_rehearsal_method_at(uint32_t index);

/* The methods that a list separated by commas names; NULL: all. *ret_chosen has bit i for the
 * method at index i. */
enum ctl_exit ctl_rehearsal_choose(struct ctl *ctl, const char *list, uint32_t *ret_chosen);

#define CTL_REHEARSAL_TOPOLOGY_BYTES 96u

/* The topology of a method that has an algorithm, fit for it; the caller destroys it. `words` are
 * those of `sgpctl topology generate` for it. Returns 0, or negative with *error. */
int ctl_rehearsal_topology(const struct ctl_rehearsal_method *method, uint32_t sites,
    char words[CTL_REHEARSAL_TOPOLOGY_BYTES], struct sgp_error *error,
    struct sgp_topology **ret_topology);

/* ---- rehearsal_run.c ---- */

struct ctl_rehearsal_result {
    char topology[CTL_REHEARSAL_TOPOLOGY_BYTES]; /* "": none */
    /* Of the models of all sites, on the held-out rows: accuracy, or squared error. */
    double mean, worst, best;
    uint64_t rounds;          /* of the node that completed most */
    double bytes;             /* that a site sent, on the mean */
    uint64_t bytes_most;      /* that one node sent, an owner included */
    uint64_t vector_bytes;    /* of the vectors of all nodes, together */
    struct sgp_error failure; /* code 0: none */
};

/* Train by a method, and measure. A failure is in the result. */
void ctl_rehearsal_run(const struct ctl_rehearsal *rehearsal,
    const struct ctl_rehearsal_method *method, struct ctl_rehearsal_result *ret_result);

/* ---- rehearsal.c ---- */

enum ctl_exit ctl_rehearse(struct ctl *ctl, const char *file, const struct ctl_given *given);

#endif
