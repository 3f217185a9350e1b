/* SPDX-License-Identifier: Apache-2.0 */
/* The best model of the fleet, which this node keeps (sgp/best.h, docs/rules/best.md).
 *
 * At each label the node measures its model on its held-out rows and writes it to a file of the
 * state directory. Then it tells its counts in a decision of all nodes (facts.h). The decision says
 * which label is the best, and whether training is to stop. After training all nodes take the copy
 * of one node, so that they keep the same bits, and model.safetensors is that copy.
 *
 * Files: best.json says what is decided, and best.N.safetensors are the models. A process that was
 * killed continues from them.
 *
 * Fails: a file that cannot be written, or no memory: logged. Then the label has no word of this
 * node, and is not closed. Thread: the loop thread. */
#ifndef SGPD_KEPT_H
#define SGPD_KEPT_H

#include "state.h"

#define KEPT_MODELS (SGP_BEST_PENDING + 2u) /* the best, the pending, and the next to write */
#define KEPT_PACE_NS SGP_SECOND             /* of questions for the copy, while it changes */
#define KEPT_PACE_MAX_NS (60 * SGP_SECOND)  /* while it does not */
/* So many neighbours are asked for the copy at a time, each of whose texts takes memory. */
#define KEPT_QUESTIONS 2u
/* A finished node exits when neither a word nor a copy has come for so long. */
#define KEPT_LASTS_NS (10 * SGP_SECOND)

/* 0, or negative with *error. What an earlier process has kept is read. */
int kept_open(struct daemon *daemon, struct sgp_error *error);

/* The survey of the copy; NULL: no best model is kept, or none is copied. */
struct sgp_survey *kept_survey(const struct daemon *daemon);

/* Whether no step is to be taken in this round. */
bool kept_is_quiet(const struct daemon *daemon, sgp_round round);

/* A round is complete (SGP_NOTE_ROUND): measure if that is due. Whether it measures in place of
 * milestones.c. */
bool kept_round(struct daemon *daemon, const struct sgp_effect *effect);

/* The node has finished. Whether it measures in place of milestones.c. */
bool kept_finished(struct daemon *daemon, const struct sgp_effect *effect);

/* Now and then: tell, stop, ask, copy, or save, if that is due. */
void kept_settle(struct daemon *daemon);

/* A neighbour's copy has come. */
void kept_changed(struct daemon *daemon);

/* Whether the best model will take the place of the last one, and does not yet. */
bool kept_is_awaited(const struct daemon *daemon);

/* Whether a finished node waits with its end for the copy. */
bool kept_hold(const struct daemon *daemon);

/* The node ends, since its work is done. If others may keep a better model, it says so, and ends
 * with EXIT_STATUS_OUTDATED. */
void kept_end(struct daemon *daemon);

/* The topology file has changed. */
void kept_reload(struct daemon *daemon);

void kept_view(const struct daemon *daemon, struct view_best *ret_best);

/* The loop must run until the handles are closed. */
void kept_close(struct daemon *daemon);
void kept_finish(struct daemon *daemon);

#endif
