/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: the training to which the files of a state directory belong.
 *
 * A run is the training of one model, from round 0 on. The file DIRECTORY/run names it by a number
 * and by digests of the model's properties. The same number on all nodes is the same run. Another
 * model is another run, with the next number. The files of the former run then move to
 * DIRECTORY/run-NUMBER, and nothing is overwritten. A run continues with more rounds, another
 * learning rate, another topology, another algorithm, or other rows of the same columns.
 *
 * The file is text: one line `key value` for each field, and `#` begins a comment. It is replaced
 * atomically.
 *
 * It fails on disk errors and on a file that is not sound, with one line that names the file. It
 * blocks on the disk. The caller holds the lock of the directory. Any thread. */
#ifndef SGP_RUN_H
#define SGP_RUN_H

#include "sgp/status.h"

#define SGP_RUN_NAME_BYTES 48u
#define SGP_RUNS_MAX UINT64_C(1000000000) /* greatest number */

struct sgp_run {
    uint64_t number; /* 1, 2, ...; 0: not known yet: the node joins the run of its neighbours */
    bool begun;      /* a round of it is complete */
    /* Of struct sgp_fingerprint: another value means another model. 0 of the last two: not known,
     * since a node that owns or relays has no rows. */
    uint64_t shape, loss, classes, scaling;
    uint64_t data; /* the table of rows; 0: not known */
};

enum sgp_run_kind {
    SGP_RUN_FIRST = 1, /* the directory has no run yet */
    SGP_RUN_GOES_ON,
    SGP_RUN_NEW, /* another model: the files of the former run are moved away */
    /* The model of the run that was moved away last, and the present run has not begun: the former
     * run returns. */
    SGP_RUN_RESUMED,
};

/* The consequences of a start with a certain model. */
struct sgp_run_plan {
    enum sgp_run_kind kind;
    struct sgp_run run;    /* the run in which the node then takes part */
    struct sgp_run former; /* the present run; of GOES_ON the same as `run` */
    bool other_rows;       /* GOES_ON: the table of rows differs */
    const char *why;       /* NEW and RESUMED: the difference, a clause; static */
};

/* Read the state, and change nothing: `model` has the digests of the model that the node would
 * train. A missing directory is FIRST. Returns 0; SGP_E_STATE if a ledger exists without the file
 * `run`; -errno or SGP_E_DATA, with *error. */
int sgp_run_plan(const char *directory, const struct sgp_run *model, struct sgp_error *error,
    struct sgp_run_plan *ret_plan);

/* Carry a plan out: move files, and write DIRECTORY/run. `name`, of NEW and RESUMED, becomes the
 * directory within DIRECTORY that holds the former files; else "". Returns 0 or -errno with *error;
 * called again it continues. */
int sgp_run_follow(const char *directory, const struct sgp_run_plan *plan, struct sgp_error *error,
    char name[SGP_RUN_NAME_BYTES]);

/* Write DIRECTORY/run. Returns 0 or -errno with *error. */
int sgp_run_write(const char *directory, const struct sgp_run *run, struct sgp_error *error);

/* Move the files of the run away, whatever it trains, and also those of inner directories that have
 * a run of their own (an owner's). The next start begins the next run; with `join`, it joins the
 * run of its neighbours. Returns 0; -ENOENT if there is nothing to move; -errno with *error. */
int sgp_run_reset(
    const char *directory, bool join, struct sgp_error *error, char name[SGP_RUN_NAME_BYTES]);

#endif
