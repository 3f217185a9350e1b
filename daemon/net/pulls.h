/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange of bulletins (sgp/survey.h): questions to other nodes and answers to theirs, each on
 * a connection of its own, about one subject.
 *
 *     asker -> answerer   PULL, so many BULLETINs that name what the asker holds
 *     answerer -> asker   BULLETINs in pieces, PULL
 *
 * A node that cannot be dialled sends CALL after the answer to its question, and, when it trains,
 * on a connection of its own. On this connection it is then asked.
 *
 * Memory: a question has what it names, and one bulletin that arrives. Where bulletins are long,
 * the number of questions is limited. If all of these are taken, one whose answer is slower than
 * PULLS_BYTES_PER_SECOND ends, so that slow peers keep no other from being asked. Of answers there
 * are at most PULLS_ANSWERS at a time, one for each asker. One more ends the oldest of those that
 * are said, wait for the asker, or began PULLS_PATIENCE_NS ago. If there is none, the asker must
 * ask again, so that a long text comes to its end however many ask.
 *
 * Fails: a peer that cannot be dialled, breaks the protocol, or is silent for PULLS_PATIENCE_NS
 * costs its one question or answer. Thread: the loop thread. */
#ifndef SGPD_PULLS_H
#define SGPD_PULLS_H

#include "dialer.h"
#include "listener.h"

#include "sgp/survey.h"

#define PULLS_ANSWERS 16u
#define PULLS_PATIENCE_NS (10 * SGP_SECOND)
#define PULLS_BYTES_PER_SECOND 16384u
#define PULLS_TICK_MS 20u /* while something is being sent */
#define PULLS_BURST 64u   /* messages of one connection in a tick */

struct question;
struct answer;

struct pulls_events {
    void *context;
    /* How to dial a peer: see struct dialer_events. */
    enum sgp_tls (*tls)(void *context, uint32_t peer, struct sgp_cipher_settings *ret_settings);
    /* The place in the file of a caller that says this name and asks about this subject; or a
     * number of its own behind the nodes. Negative: it is not answered, and the reason is in
     * `text`. */
    int64_t (*admits)(void *context, uint32_t subject, const struct link *link, const char *source,
        char text[SGP_TEXT_BYTES]);
    /* Name a wish in a question about measures (struct sgp_pull). NULL: there are none. */
    void (*wish)(void *context, struct sgp_pull *pull);
    /* A caller has named a wish. NULL: nobody cares. */
    void (*wished)(void *context, uint32_t peer, const struct sgp_pull *pull);
    /* A caller holds what the survey of this subject lacks: it is to be asked. Called while it is
     * being answered. NULL: nobody cares. */
    void (*ahead)(void *context, enum sgp_subject subject, uint32_t peer);
    /* Whether a caller that cannot be dialled, and would be asked, is asked now. NULL: yes. */
    bool (*asks)(void *context, enum sgp_subject subject, uint32_t peer);
    /* The survey of this subject has learned something. */
    void (*changed)(void *context, enum sgp_subject subject);
    /* A question has ended: NULL, or why it failed. */
    void (*ended)(void *context, enum sgp_subject subject, uint32_t peer, const char *why);
};

struct pulls {
    uv_timer_t timer;
    struct dialer dialer;
    struct pulls_events events;
    struct sgp_survey *surveys[SGP_SUBJECTS]; /* borrowed; NULL: questions about it are refused */
    uint32_t questions_max[SGP_SUBJECTS];     /* at a time; 0: no limit */
    const struct sgp_topology *topology;      /* borrowed */
    struct listener *listener;                /* borrowed; for the log of refused callers */
    const char *name;                         /* of this node; borrowed */
    LIST_HEAD(, question) questions;
    LIST_HEAD(, answer) answers; /* the latest first */
    uint32_t answer_count;
};

/* The clock in ms, to which stamps are compared (sgp/survey.h). */
uint64_t pulls_stamp(void);

/* Without surveys and topology at first. */
void pulls_open(struct pulls *pulls, uv_loop_t *loop, const char *name, struct listener *listener,
    const struct pulls_events *events);

/* Ask a node about a subject that has a survey, unless a question to it, or too many about the
 * subject, are under way. Returns whether it asks: then `ended` follows, never from within. With
 * `calls` the node is to ask in its turn, because this node cannot be dialled. */
bool pulls_ask(struct pulls *pulls, enum sgp_subject subject, uint32_t peer,
    const struct sgp_topology_node *node, bool calls);

/* For the listener: a caller began with this PULL. Takes the link over. */
void pulls_answer(struct pulls *pulls, struct link *link, const struct sgp_message *message);

/* For the listener: a caller that cannot be dialled began with this CALL. Asks it on its link. */
void pulls_called(struct pulls *pulls, struct link *link, const struct sgp_message *message);

/* Use a topology file, before the surveys do. All questions and answers end, without `ended`. */
void pulls_use(struct pulls *pulls, const struct sgp_topology *topology);

/* The same for good. The loop must run until the handles are closed. */
void pulls_close(struct pulls *pulls);

#endif
