/* SPDX-License-Identifier: Apache-2.0 */
/* Private steps of the running node: charged before they are taken, and done when epsilon is spent;
 * or what the program of the run claims of its own steps (sgp/claim.h). In both cases what tells of
 * the node's rows of data stays on the machine.
 *
 * Fails: no account, or a damaged claim, at the start. Thread: the loop thread. */
#ifndef SGPD_PRIVACY_H
#define SGPD_PRIVACY_H

#include "state.h"

#include "sgp/fleet.h"

/* Open the account, before anything else is written to the state directory. 0, or negative with
 * *error. Without [privacy] there is none, and a former one is an error, except at a relay. */
int privacy_open(struct daemon *daemon, struct sgp_error *error);

/* Read what the program of this run has claimed before, once the run is known. 0, or negative with
 * *error. A built-in model has no claim. */
int privacy_recall(struct daemon *daemon, struct sgp_error *error);

/* The program of this name claims the text. Returns 0 once the claim is on the disk and in force.
 * SGP_E_DATA: the text is no claim. SGP_E_CONFIG: epsilon or delta is below that of the former
 * claim of this run, or the configuration lets measures leave the node. -errno: the disk does not
 * take it. *error has a line. */
int privacy_claim(
    struct daemon *daemon, const char *program, const char *text, struct sgp_error *error);

/* Whether losses, accuracy and numbers of rows of data must not leave the node. This is the only
 * place that decides it. */
bool privacy_withholds(const struct daemon *daemon);

/* Fill in what the node tells the fleet of its privacy. */
void privacy_tell(const struct daemon *daemon, struct sgp_fleet_row *row);

/* Once the node knows its round, and before its first event. Warn if epsilon ends before the rounds
 * do. If an earlier process left out the latest step because epsilon was spent, say so again. */
void privacy_begin(struct daemon *daemon);

/* Whether so many steps may be taken now; then they are charged. False if epsilon is spent, or if
 * the disk does not take the charge. Always true without [privacy]. */
bool privacy_may_step(struct daemon *daemon, uint32_t steps);

/* Fill in what the status shows. */
void privacy_view(const struct daemon *daemon, struct view_status *view);

void privacy_close(struct daemon *daemon);

#endif
