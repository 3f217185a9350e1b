/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of all nodes (sgp/report.h): this node measures its model and tells the others, hears
 * what they tell, and keeps what is said of the final model.
 *
 * A node tells when it has finished, and when it hears of a wish for reports of now (struct
 * sgp_pull). It asks its neighbours with the wish, which so reaches all nodes along the graph. A
 * report names the wishes that its author knew when it began to measure, and answers no others.
 *
 * A node asks a few neighbours at a time for what it lacks, ever more rarely while nothing comes. A
 * node that has finished asks on when it lacks nothing, so that it hears of a report that was told
 * again. A question names what the asker has. If the asker has more, the node that it asks soon
 * asks in its turn, and not more often than every REPORTS_POLL_NS if it lacks nothing. A node that
 * cannot be dialled asks so often in any case, because no neighbour can ask it.
 *
 * Measuring for wishes takes at most a part of REPORTS_PART of the time. Memory: of each node that
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
#define REPORTS_POLL_NS (5 * SGP_SECOND)        /* at least, of a node that lacks nothing */
#define REPORTS_ASKED 4u                        /* neighbours at a time */
#define REPORTS_PART 16u                        /* of the time is spent on measuring for wishes */
#define REPORTS_CLOCK_MS (UINT64_C(24) * 3600 * 1000) /* stamps further ahead are not heard */
#define REPORTS_LASTS_NS (10 * SGP_SECOND)            /* a node waits for reports before it exits */
#define REPORTS_SAVE_NS (10 * SGP_SECOND)             /* between two writes of the file */

/* 0, or negative with *error. The reports of an earlier life are read. */
int reports_open(struct daemon *daemon, struct sgp_error *error);

/* The survey of reports; NULL: none are collected. */
struct sgp_survey *reports_survey(const struct daemon *daemon);

/* For the exchange. The wish that a question names: */
void reports_wish(struct daemon *daemon, struct sgp_pull *pull);
/* A caller has named a wish, or has what this node lacks: */
void reports_wished(struct daemon *daemon, uint32_t peer, const struct sgp_pull *pull);
void reports_ahead(struct daemon *daemon, uint32_t peer);
/* A report has come; a question to a node has ended. */
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
