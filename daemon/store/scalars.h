/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the history as event files of TensorBoard (sgp/tensorboard.h), if [log] tensorboard
 * names a directory. Each column of a row is a scalar with the name of the column, and the row's
 * round is its step. Unknown values are left out. Each process begins a new file.
 *
 * Fails: at the start, with one line. If a row cannot be written later, the file lacks it, and the
 * next row tries again. Thread: the loop thread. */
#ifndef SGPD_SCALARS_H
#define SGPD_SCALARS_H

#include "setup/config.h"
#include "util/view.h"

struct sgp_tensorboard;

struct scalars {
    struct sgp_tensorboard *file; /* NULL: none is wanted */
    bool failed;                  /* the failure was reported */
};

/* Begin a file if the configuration wants one. Returns 0; or -errno or -ENOMEM with *error. */
int scalars_open(struct scalars *scalars, const struct config *config, struct sgp_error *error);

/* Append a row. Returns 0; or -errno or -ENOMEM with *error, but only for the first failure in a
 * row. */
int scalars_add(
    struct scalars *scalars, const struct view_history_row *row, struct sgp_error *error);

void scalars_close(struct scalars *scalars); /* an all-zero struct is fine */

#endif
