/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of all nodes (sgp/report.h): this node measures its model and tells the others, hears
 * what they tell, and keeps what is said of the final model.
 *
 * A node tells when it has finished, and when a caller wants reports of now (struct sgp_pull). It
 * then wants them, too, so the wish reaches all nodes along the graph. It asks a few neighbours at
 * a time for what it lacks, ever more rarely while nothing comes. A node that cannot be dialled
 * asks now and then in any case, because no neighbour can ask it.
 *
 * Measuring for others takes at most a part of REPORTS_PART of the time. Memory: of each node that
 * trains one report, of sgp_report_bytes at most.
 *
 * Fails: a program's model, or one of more than SGP_REPORT_OUTPUTS_MAX outputs, has no reports. No
 * memory, or a file that cannot be written: logged, and tried again with the next report. Thread:
 * the loop thread. */
#ifndef SGPD_REPORTS_H
#define SGPD_REPORTS_H

#include "state.h"

#define REPORTS_PACE_NS (250 * SGP_MILLISECOND) /* of questions, while reports come */
#define REPORTS_PACE_MAX_NS (60 * SGP_SECOND)   /* while none does */
#define REPORTS_POLL_NS (5 * SGP_SECOND)        /* of a node that cannot be dialled */
#define REPORTS_ASKED 4u                        /* neighbours at a time */
#define REPORTS_WANTED_NS (60 * SGP_SECOND)     /* so long a wish of others lasts */
#define REPORTS_PART 16u                        /* of the time is spent on measuring for others */
#define REPORTS_CLOCK_MS (UINT64_C(24) * 3600 * 1000) /* stamps further ahead are not heard */
#define REPORTS_LASTS_NS (10 * SGP_SECOND)            /* a node waits for reports before it exits */

/* 0, or negative with *error. The reports of an earlier life are read. */
int reports_open(struct daemon *daemon, struct sgp_error *error);

/* The survey of reports; NULL: none are collected. */
struct sgp_survey *reports_survey(const struct daemon *daemon);

/* For the exchange: a caller wants reports of this stamp; a report has come; a question to a node
 * has ended. */
void reports_wanted(struct daemon *daemon, uint64_t stamp);
void reports_changed(struct daemon *daemon);
void reports_answered(struct daemon *daemon, uint32_t peer, const char *why);

/* Now and then: measure, ask, or write, if that is due. */
void reports_settle(struct daemon *daemon);

/* Whether a finished node waits with its end for the reports of others. */
bool reports_hold(const struct daemon *daemon);

/* The topology file has changed. */
void reports_reload(struct daemon *daemon);

/* Fill in evaluate_fleet and report. */
void reports_offer(struct view_actions *actions);

/* The loop must run until the handles are closed. */
void reports_close(struct daemon *daemon);
void reports_finish(struct daemon *daemon);

#endif
