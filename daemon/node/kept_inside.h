/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the kept model (kept.h). Each file calls only the files below it:
 *
 *   kept.c           what the rest of the daemon calls, and what is due now
 *   kept_copy.c      the copy of one node at all nodes
 *   kept_decide.c    words and decisions
 *   kept_measure.c   the measures of this node, and its model as a file
 *   kept_file.c      what is kept, as a file
 *
 * Thread: the loop thread, except for the functions named run_*. */
#ifndef SGPD_KEPT_INSIDE_H
#define SGPD_KEPT_INSIDE_H

#include "kept.h"

#include "events.h"
#include "notes.h"

#include "sgp/survey.h"

struct kept_words;  /* kept_decide.c */
struct kept_saving; /* kept_file.c */

struct kept {
    struct daemon *daemon;
    struct sgp_best rule;
    sgp_round models[KEPT_MODELS]; /* the label of the model in each file; SGP_ROUND_NONE: free */
    uint32_t writing;              /* the file that is being written; KEPT_MODELS: none */
    bool measuring;                /* it is of a label that this node measures */
    uv_timer_t timer;
    uv_timer_cb look; /* of the timer: do what is due */
    bool closing;

    /* kept_file.c */
    struct kept_saving *saving; /* best.json is being written; NULL: it is not */
    uint64_t changes;           /* of what it has to say, and */
    uint64_t written;           /* how many of them the disk has */
    sgp_time unwritten;         /* when it could not be written; 0: it could */

    /* kept_decide.c */
    uint64_t said;            /* the change that began the word, which is told once it is written */
    struct kept_words *words; /* of a decision, as they come; NULL: none */
    bool stops;               /* the fleet has decided to stop */
    sgp_time logged;          /* when a decision was logged last */
    bool refused;             /* that no word can be told was logged */

    /* kept_copy.c */
    struct sgp_survey *survey; /* NULL: the model is too large to be copied */
    uint64_t digest;           /* of the offer that the best model's file equals; 0: none */
    bool copying;              /* a job of it is under way */
    sgp_time uncopied;         /* when a job of it failed; 0: it did not */
    uint32_t turn;             /* the edge that is asked next */
    sgp_time asked;            /* latest */
    sgp_time news;             /* when the copy changed last */

    /* kept.c */
    bool has_finished;
    sgp_round final_label; /* the last model is still to be measured; SGP_ROUND_NONE: it is not */
    sgp_round shown;       /* the label of what background_jobs.c hands out */
    sgp_round saved;       /* the label in model.safetensors; SGP_ROUND_NONE: the last model */
    uint64_t saved_digest; /* of the copy there */
};

/* Do what is due, soon. */
static inline void kept_wake(struct kept *kept)
{
    if (!kept->closing)
        (void)uv_timer_start(&kept->timer, kept->look, 0, 0);
}

/* ---- the file (kept_file.c) ---- */

/* Read STATE/best.json, if it is of this run and of these settings. A damaged one is logged. */
void kept_read(struct kept *kept);
/* What it has to say has changed: a job writes it. A failure is logged, and it is tried again. */
void kept_write(struct kept *kept);
/* Try again, if that is due. */
void kept_write_again(struct kept *kept);

/* The path of a model. */
void kept_path(const struct kept *kept, uint32_t model, char path[CONFIG_TEXT_BYTES]);
/* The file of the model of this label; KEPT_MODELS: there is none. */
uint32_t kept_find(const struct kept *kept, sgp_round label);
/* A file that may be written; KEPT_MODELS: there is none. Files of labels that do not count any
 * more become free. */
uint32_t kept_free(struct kept *kept);

/* ---- measuring (kept_measure.c) ---- */

/* Whether nothing was told of this label or a later one. */
bool kept_is_new(const struct kept *kept, sgp_round label);
/* Measure the estimate as it is at this place in the queue, and write it. `slot` is the estimate's,
 * as in the node's status; SGP_SLOT_NONE: x / weight is it. */
void kept_measure(struct kept *kept, sgp_round label, double weight, uint32_t slot);

/* ---- decisions (kept_decide.c) ---- */

/* Hear decisions from now on. */
void kept_listen(struct kept *kept);
/* Tell the word of this node, if it has something to say. */
void kept_tell(struct kept *kept);
void kept_drop_words(struct kept *kept);

/* ---- the copy (kept_copy.c) ---- */

/* As `judge` of struct sgp_survey_judge. */
int kept_judge(void *context, const struct sgp_bulletin *bulletin);
/* Offer the own copy, take that of another node, and ask for it, if that is due. */
void kept_copy(struct kept *kept);

#endif
