/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the files prepare*.c: the steps of `prepare`, in their order. Each fills in a part of
 * *p, and returns 0, or negative with *error. */
#ifndef SGPD_PREPARE_INSIDE_H
#define SGPD_PREPARE_INSIDE_H

#include "prepare.h"

/* prepare_place.c: the topology, and the node's place in it */
int prepare_topology(struct prepared *p, struct sgp_error *error);
/* A file that cannot be read, with the line of the configuration that names the file. Returns
 * `code`. */
int prepare_fail_file(
    const struct config *config, int code, const struct sgp_error *why, struct sgp_error *error);

/* prepare_data.c: rows, columns and targets */
int prepare_data(struct prepared *p, struct sgp_error *error);
int prepare_columns(struct prepared *p, struct sgp_error *error);
int prepare_warn_of_columns(struct prepared *p, struct sgp_error *error);
int prepare_warn_of_targets(struct prepared *p, struct sgp_error *error);
bool prepare_is_utf8(const char *text);

/* prepare_model.c: the model, and the settings of its loss */
int prepare_model(struct prepared *p, struct sgp_error *error);

/* prepare_attached.c: all further steps if the model is a program's */
int prepare_attached(struct prepared *p, struct sgp_error *error);

/* prepare_outer.c: warnings of outer steps that raise the loss; after the rounds are known */
int prepare_warn_of_outer(struct prepared *p, struct sgp_error *error);

/* prepare_best.c: whether the keys of the best model make sense here */
int prepare_best(struct prepared *p, struct sgp_error *error);

/* prepare_privacy.c: cost and noise of private steps; after the rounds are known */
int prepare_privacy(struct prepared *p, struct sgp_error *error);

static inline bool prepare_is_relay(const struct prepared *p)
{
    return p->topology->nodes[p->self].relay;
}

#endif
