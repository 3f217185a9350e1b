/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the reports (reports.h). Each file calls only the files below it:
 *
 *   reports.c          what the rest of the daemon calls: wishes, clients, the life
 *   reports_keep.c     reports of others and of an earlier life, the file
 *   reports_ask.c      questions to neighbours
 *   reports_tell.c     the report of this node
 *   reports_known.c    what is known now
 *
 * Thread: the loop thread. */
#ifndef SGPD_REPORTS_INSIDE_H
#define SGPD_REPORTS_INSIDE_H

#include "reports.h"

#include "events.h"
#include "notes.h"

#include "sgp/report.h"

/* A client that waits for the reports of all. */
struct waiter {
    LIST_ENTRY(waiter) next;
    uint64_t stamp;
    sgp_time deadline;
    view_reported done;
    void *argument;
};

struct report_peer {   /* by its place in the topology file */
    uint32_t failures; /* of the latest questions to it */
    sgp_time next;     /* it is not asked before */
};

struct saving; /* reports_keep.c */

struct reports {
    struct daemon *daemon;
    struct sgp_survey *survey;
    uv_timer_t timer;
    uv_timer_cb look; /* of the timer: do what is due */
    bool closing;
    char path[CONFIG_TEXT_BYTES];

    uint64_t wanted;     /* the greatest stamp for which anybody has asked; */
    sgp_time wanted_at;  /* since when that is known */
    uint64_t own_wanted; /* the greatest of clients of this node */
    LIST_HEAD(, waiter) waiters;

    bool measuring;
    struct sgp_report measured; /* what is being measured, without its measures */
    uint64_t measured_stamp;    /* the stamp that was wanted when it began */
    sgp_time earliest;          /* of the next one for others */

    struct report_peer *peers;
    uint32_t peer_count;
    uint32_t turn;         /* the edge that is asked next */
    sgp_time asked;        /* latest */
    sgp_time news;         /* when a report, or a wish, came last */
    bool unsaved;          /* a final report has come since the file was written */
    struct saving *saving; /* NULL: nothing is being written */
};

/* ---- what is known (reports_known.c) ---- */

struct moment { /* of this node */
    bool finished;
    uint64_t run;
    sgp_round label;
};

struct moment reports_moment(const struct daemon *daemon);

/* Which reports a reader wants. */
struct choice {
    uint64_t stamp; /* of this stamp or a later one */
    bool final;     /* of the final model of this label; */
    sgp_round label;
};

/* Whether the report of a member is there, and of these. */
bool reports_chosen(const struct reports *reports, uint32_t member, const struct choice *choice);
bool reports_all_chosen(const struct reports *reports, const struct choice *choice);

/* Whether all members have told of the final model of this moment. */
bool reports_complete(const struct reports *reports, const struct moment *moment);

/* The last label of which a final report is known. SGP_ROUND_NONE: none is. */
sgp_round reports_last_label(const struct reports *reports);

/* The reports of all members, with copies of the texts that are chosen. NULL: no memory. */
struct view_reports *reports_copy(const struct reports *reports, const struct choice *choice);

/* Whether a wish is young enough to be followed. */
bool reports_live(const struct reports *reports);

/* A report has come: look soon at what is due. */
void reports_note(struct reports *reports);

/* ---- the report of this node (reports_tell.c) ---- */

/* Tell if the model is final and that was not told, or if somebody wants to know. */
void reports_tell(struct reports *reports, const struct moment *moment);

/* ---- questions (reports_ask.c) ---- */

/* Ask if that is due. Returns whether reports are being waited for. */
bool reports_ask(struct reports *reports, const struct moment *moment);

/* ---- what is kept (reports_keep.c) ---- */

/* As `judge` of struct sgp_survey_judge. */
int reports_judge(void *context, const struct sgp_bulletin *bulletin);

/* Read the file of an earlier life. */
void reports_restore(struct reports *reports);

/* Write the file once all have told, or when no more has come for a while. */
void reports_save(struct reports *reports, const struct moment *moment);

/* At the end: write what has come since. Blocks on the file. */
void reports_save_last(struct reports *reports);

#endif
