/* SPDX-License-Identifier: Apache-2.0 */
/* The signed topology files that this node holds (sgp/rollout.h): stored, shown in its row of the
 * fleet, given to neighbours and asked of them. rollouts.c decides what follows from them.
 *
 * A node asks a neighbour at once if the neighbour's row shows a later version, or another file of
 * one. From time to time it asks a neighbour to which no link is up.
 *
 * Nothing is accepted before it is stored. A document that is refused costs a neighbour its
 * connection. It costs this node a line and 2 * SGP_MANIFEST_SIGNERS_MAX signatures at most. This
 * node then pauses before it asks that neighbour again, for up to half a minute.
 *
 * Thread: the loop thread. */
#ifndef SGPD_DOCUMENTS_H
#define SGPD_DOCUMENTS_H

#include "state.h"

#include "sgp/rollout.h"

#define DOCUMENTS_QUESTIONS 2u /* at a time, of each slot: each holds a document that arrives */

/* Nothing happens without administrators. 0 or -ENOMEM; documents_close is due in both cases. */
int documents_open(struct daemon *daemon);
void documents_close(struct daemon *daemon);
void documents_finish(struct daemon *daemon);

/* Call this from the timer whenever something has happened. */
void documents_listen(struct daemon *daemon, uv_timer_cb look);
/* Call it soon; after this time. */
void documents_wake(struct daemon *daemon, uint64_t milliseconds);
/* A row of the fleet has come. */
void documents_row(struct daemon *daemon);

/* Of questions about the documents of a slot. */
enum sgp_subject documents_subject(enum sgp_rollout_slot slot);
/* The present document of a slot, for neighbours. NULL: there are no administrators. */
struct sgp_survey *documents_survey(const struct daemon *daemon, enum sgp_rollout_slot slot);
/* Whether this node asks a neighbour that calls, or pauses after its latest answers. */
bool documents_may_ask(const struct daemon *daemon, uint32_t peer);
/* A question about a document has ended; NULL, or why it failed. */
void documents_answered(struct daemon *daemon, uint32_t peer, const char *why);

/* The rollout was changed here, and must be stored. */
void documents_changed(struct daemon *daemon);
/* How often it was. */
uint64_t documents_changes(const struct daemon *daemon);
/* Store what has changed, and show it. False: it is not stored yet, which was logged. Then the node
 * shows that it refuses what is proposed, with that reason. */
bool documents_settle(struct daemon *daemon);
/* Ask neighbours for what this node lacks. */
void documents_ask(struct daemon *daemon);

/* What this node shows; NULL: there are no administrators. */
const struct sgp_rollout_view *documents_shown(const struct daemon *daemon);
/* Grows with each change of that. */
uint64_t documents_shows(const struct daemon *daemon);

/* The latest document of a neighbour that was refused, as a line with its name; "": none was. */
const char *documents_refused(const struct daemon *daemon, uint64_t *ret_count);

/* What a node of the present file shows in its row. False: nothing, or no row has come. */
bool documents_row_of(const struct daemon *daemon, uint32_t node, struct sgp_fleet_row *ret_row);

/* Another file is used, and the rollout is stored. */
void documents_reloaded(struct daemon *daemon);

#endif
