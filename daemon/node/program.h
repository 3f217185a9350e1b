/* SPDX-License-Identifier: Apache-2.0 */
/* The program that trains through this daemon (sgp/attach.h): its turns, attaching and leaving.
 *
 * The core's TRAIN becomes turns, one for each local step. A turn is not a job. While the program
 * has its estimate, jobs that only read x run, and shares are absorbed. If steps are due and no
 * program is attached, the node pauses until one attaches, so no neighbour waits for it. A stop, a
 * pause or a leave takes the turn back after PROGRAM_YIELD_MS. If the program ends, the turn is
 * taken back at once.
 *
 * If the model is built in, all functions do nothing. Thread: the loop thread. */
#ifndef SGPD_PROGRAM_H
#define SGPD_PROGRAM_H

#include "state.h"

#include "attach/attach_socket.h"

#define PROGRAM_YIELD_MS 1000u
#define PROGRAM_FORGET_MS 2000u

/* Open the socket at which programs attach. Take in a program that attached before the node was
 * laid out (NULL: none). */
int program_open(struct daemon *daemon, struct attachment *attachment, struct sgp_error *error);
void program_close(struct daemon *daemon); /* after worker_stop */

/* Fill in which node this is: IDENTITY, without its rounds. Also used before a program has brought
 * its model. */
void program_identify(
    const struct config *config, const struct prepared *prepared, struct sgp_attach_frame *frame);

/* Fill in evaluate and predict: the program is asked between two of its turns. */
void program_offer(const struct prepared *prepared, struct view_actions *actions);

/* Neighbours make the same updates: the program is told with its next turn. */
void program_same_updates(struct daemon *daemon);

/* A neighbour trains another model, as the text says. If training has not begun here, the program
 * is told and detached. A node that has trained nothing forgets the model PROGRAM_FORGET_MS later.
 * By then other neighbours have received it, too. */
void program_mismatch(struct daemon *daemon, const char *text);

/* The core's TRAIN: `steps` turns, then TRAINED. */
void program_train(struct daemon *daemon, uint32_t steps, double pace);

/* After each event: tell the program what it must know, and decide whether the node must wait for a
 * program. */
void program_settle(struct daemon *daemon);

/* An order needs x, or the steps come too late: take the turn back. */
void program_yield(struct daemon *daemon);

/* Whether an order pauses the node. A program that attaches does not end that pause. */
void program_holds(struct daemon *daemon, bool paused);

/* Whether a program is attached that was not told FINISHED. */
bool program_is_busy(const struct daemon *daemon);

/* For onlookers. */
void program_view(const struct daemon *daemon, struct view_program *ret_view);

#endif
