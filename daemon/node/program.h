/* SPDX-License-Identifier: Apache-2.0 */
/* The program that trains through this daemon (sgp/attach.h): its turns, its coming and going.
 *
 * The core's TRAIN becomes turns, one for each local step. A turn is no job: while the program has
 * its estimate, jobs that only read x run, and shares are absorbed. If steps are due and no program
 * is there, the node pauses until one attaches, so nobody waits for it. A stop, a pause or a leave
 * takes the turn back after PROGRAM_YIELD_MS, and the program's end at once.
 *
 * Everything here does nothing where the model is built in. Thread: the loop thread. */
#ifndef SGPD_PROGRAM_H
#define SGPD_PROGRAM_H

#include "state.h"

#include "attach/door.h"

#define PROGRAM_YIELD_MS 1000u
#define PROGRAM_FORGET_MS 2000u

/* Open the door; take a guest in that came before the node was laid out (NULL: none). */
int program_open(struct daemon *daemon, struct guest *guest, struct sgp_error *error);
void program_close(struct daemon *daemon); /* after worker_stop */

/* Fill in which node this is: IDENTITY, but for its rounds. Also before a program has brought its model. */
void program_identify(
    const struct config *config, const struct prepared *prepared, struct sgp_attach_frame *frame);

/* Fill in evaluate and predict: the program is asked between two of its turns. */
void program_offer(const struct prepared *prepared, struct view_actions *actions);

/* Neighbours make the same updates: the program hears of it with its next turn. */
void program_same_updates(struct daemon *daemon);

/* A neighbour trains another model, as the text says. If training has not begun here, the program is told and let go; a node that has
 * trained nothing forgets the model PROGRAM_FORGET_MS later, when other neighbours have heard of it, too. */
void program_mismatch(struct daemon *daemon, const char *text);

/* The core's TRAIN: `steps` turns, then TRAINED. */
void program_train(struct daemon *daemon, uint32_t steps, double pace);

/* After each event: what the program has to be told, and whether the node has to wait for one. */
void program_settle(struct daemon *daemon);

/* x is wanted back, by an order, or because the steps come too late. */
void program_yield(struct daemon *daemon);

/* Whether an order pauses the node; a program that attaches does not end that. */
void program_holds(struct daemon *daemon, bool paused);

/* One is there, and has not been told FINISHED. */
bool program_is_busy(const struct daemon *daemon);

/* For onlookers. */
void program_view(const struct daemon *daemon, struct view_program *ret_view);

#endif
