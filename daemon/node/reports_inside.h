/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the reports (reports.h). Each file calls only the files below it:
 *
 *   reports.c          what the rest of the daemon calls: clients, the life
 *   reports_keep.c     reports of others and of an earlier life, the file
 *   reports_ask.c      questions to neighbours
 *   reports_tell.c     the report of this node
 *   reports_wishes.c   wishes of this node's clients and of other nodes
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
    uint64_t wish; /* reports that answer it */
    sgp_time deadline;
    view_reported done;
    void *argument;
};

struct wish {
    uint64_t number; /* struct sgp_pull; 0: none */
    sgp_time heard;
    sgp_time until;
};

struct report_peer {   /* by its place in the topology file */
    uint32_t failures; /* of the latest questions to it */
    sgp_time next;     /* it is not asked before */
    sgp_time wished;   /* when it brought a new wish */
};

struct saving; /* reports_keep.c */

struct reports {
    struct daemon *daemon;
    struct sgp_survey *survey;
    uv_timer_t timer;
    uv_timer_cb look; /* of the timer: do what is due */
    bool closing;
    char path[CONFIG_TEXT_BYTES];

    struct wish wishes[SGP_REPORT_WISHES]; /* one of each asker, the latest */
    uint64_t own_wish;                     /* the latest of clients of this node */
    uint64_t drawn;                        /* random numbers */
    LIST_HEAD(, waiter) waiters;

    bool measuring;
    struct sgp_report measured; /* what is being measured, without its measures, and */
    uint64_t measured_version;  /* of which kept model (struct kept_model) */
    uint64_t told_version;      /* that of the report */
    sgp_time earliest;          /* of the next one for a wish */

    struct report_peer *peers;
    uint32_t peer_count;
    uint32_t turn;  /* the edge that is asked next */
    sgp_time asked; /* latest */
    sgp_time news;  /* when a report, or a wish, came last */
    bool unsaved;   /* a report has come since the file was compared */
    uint64_t saved; /* digest of what the file says; 0: not known */
    sgp_time saved_at;
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
    uint64_t wish; /* that answer it; 0: any */
    bool final;    /* of the final model of this label; */
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

/* Look soon at what is due, and ask often for a while. */
void reports_stir(struct reports *reports);

/* A report has come. */
void reports_note(struct reports *reports);

/* ---- wishes (reports_wishes.c) ---- */

/* Draw what distinguishes this node's wishes from those of others. */
void reports_draw(struct reports *reports);

/* A new wish, for all clients that wait. Returns its number. */
uint64_t reports_wish_of_clients(struct reports *reports);

/* A question names this wish. */
void reports_hear_of_peer(struct reports *reports, uint32_t peer, const struct sgp_pull *pull);

/* Whether this node, which is a member, has still to answer a wish. */
bool reports_owe(const struct reports *reports);

/* Whether all members have answered all wishes. */
bool reports_all_answered(const struct reports *reports);

/* A measurement that begins now answers these. */
void reports_name_wishes(const struct reports *reports, struct sgp_report *report);

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
