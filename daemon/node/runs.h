/* SPDX-License-Identifier: Apache-2.0 */
/* The node's run (sgp/run.h): continued, or set aside. Thread: the loop thread. runs_print and
 * runs_goes_on: before the loop. */
#ifndef SGPD_RUNS_H
#define SGPD_RUNS_H

#include "state.h"

#include <stdio.h>

/* At the start, with the state directory locked: continue the run, or begin another one. Sets the
 * node's run number. */
int runs_open(struct daemon *daemon, struct sgp_error *error);

/* After each event: the run has begun, or the node has learnt its number. */
void runs_settle(struct daemon *daemon);

/* At the end, if a reset was ordered: set the files of the run aside. 0, or negative with
 * *error. */
int runs_end(struct daemon *daemon, struct sgp_error *error);

/* For `sgpd --check`: whether a start would go on with a run that has begun. */
bool runs_goes_on(const struct prepared *prepared);

/* For `sgpd --check`: report what a start would do. 0, or negative with *error. */
int runs_print(FILE *stream, const struct prepared *prepared, struct sgp_error *error);

#endif
