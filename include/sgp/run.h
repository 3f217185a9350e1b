/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: which training the files of a state directory belong to.
 *
 * A run is the training of one model, from round 0 on. The file DIRECTORY/run names it by a number and by digests of what
 * the model is made for. The same number on all nodes is the same run. Another model is another run, with the next number:
 * the files of the former run move to DIRECTORY/run-NUMBER, and nothing is overwritten. More rounds, another learning rate,
 * another topology, another algorithm and other rows of the same columns continue a run.
 *
 * The file is text: one line `key value` for each field, and `#` begins a comment. It is replaced at once.
 *
 * Fails: what the disk says, and a file that is not sound; one line that names the file. Blocks on the disk. The caller
 * holds the lock of the directory. Any thread. */
#ifndef SGP_RUN_H
#define SGP_RUN_H

#include "sgp/status.h"

#define SGP_RUN_NAME_BYTES 48u
#define SGP_RUNS_MAX UINT64_C(1000000000) /* greatest number */

struct sgp_run {
    uint64_t number; /* 1, 2, ...; 0: not known yet: the node joins the run of its neighbours */
    bool begun;      /* a round of it is complete */
    uint64_t shape, loss, classes,
        scaling;   /* of struct sgp_fingerprint: another one is another model */
    uint64_t data; /* the table of rows; 0: not known */
};

enum sgp_run_kind {
    SGP_RUN_FIRST = 1, /* the directory has no run yet */
    SGP_RUN_GOES_ON,
    SGP_RUN_NEW, /* another model: the former run is set aside */
    SGP_RUN_RESUMED, /* the model of the run that was set aside last, and the present run has not begun: it returns */
};

/* What a start with a certain model does. */
struct sgp_run_plan {
    enum sgp_run_kind kind;
    struct sgp_run run;    /* that the node takes part in then */
    struct sgp_run former; /* the present one; of GOES_ON the same */
    bool other_rows;       /* GOES_ON: the table of rows is another */
    const char *why;       /* NEW and RESUMED: what differs, a clause; static */
};

/* Look, and change nothing: `model` has the digests that the node would train with. A directory that is not there is FIRST.
 * Returns 0; SGP_E_STATE where a ledger lies beside no file `run`; -errno or SGP_E_DATA, with *error. */
SGP_API int sgp_run_plan(const char *directory, const struct sgp_run *model,
    struct sgp_error *error, struct sgp_run_plan *ret_plan);

/* Do what a plan says: move files, and write DIRECTORY/run. `name`, of NEW and RESUMED, becomes the directory, within
 * DIRECTORY, that the former files are in; else "". Returns 0 or -errno with *error; called again it goes on. */
SGP_API int sgp_run_follow(const char *directory, const struct sgp_run_plan *plan,
    struct sgp_error *error, char name[SGP_RUN_NAME_BYTES]);

/* Write DIRECTORY/run. Returns 0 or -errno with *error. */
SGP_API int sgp_run_write(
    const char *directory, const struct sgp_run *run, struct sgp_error *error);

/* Set the run aside whatever it trains, also those of directories within that have a run of their own (an owner's). The
 * next start begins the next run; with `join`, the one that its neighbours are in. Returns 0; -ENOENT where there is nothing
 * to set aside; -errno with *error. */
SGP_API int sgp_run_reset(
    const char *directory, bool join, struct sgp_error *error, char name[SGP_RUN_NAME_BYTES]);

#endif
