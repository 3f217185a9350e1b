/* SPDX-License-Identifier: Apache-2.0 */
/* The driver: steps a node and carries its effects out through a table of operations.
 *
 * The daemon and the simulator each fill in the operations. All code above the operations is
 * common, so the simulator checks the code that the daemon runs. An operation must not post:
 * completions come as later events. Thread: the thread that posts. */
#ifndef SGP_DRIVER_H
#define SGP_DRIVER_H

#include "sgp/node.h"
#include "sgp/sink.h"

/* The event that answers a job, or 0: none does. *ret_slot is the slot that it names, or
 * SGP_SLOT_NONE. */
enum sgp_event_type sgp_effect_answer(const struct sgp_effect *effect, uint32_t *ret_slot);

/* An operation that is NULL does nothing. */
struct sgp_driver_ops {
    /* The step whose effects follow changed the result of sgp_node_record: store the record
     * first. */
    void (*commit)(void *context, const struct sgp_node *node);
    void (*dial)(void *context, uint32_t peer);
    /* `snapshot` is the slot whose content follows a share or an estimate, or SGP_SLOT_NONE. */
    void (*send)(
        void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot);
    void (*hang_up)(
        void *context, struct sgp_link link, int code, const struct sgp_message *goodbye);
    void (*receive)(void *context, struct sgp_link link, uint32_t slot);
    /* Effects are borrowed for the call. */
    void (*fold)(void *context, const struct sgp_effect *fold);
    /* End the TRAIN under way with the present step, at once. It does nothing if the steps are
     * over. */
    void (*curtail)(void *context);
    /* A job: TRAIN, PUBLISH, and any other effect without an operation of its own. Append it to one
     * queue, and run the jobs in this order (sgp/perform.h). */
    void (*work)(void *context, const struct sgp_effect *job);
    /* The question's strings are borrowed for the call. */
    void (*inquire)(void *context, uint32_t peer, const struct sgp_inquire *question);
    void (*note)(void *context, const struct sgp_effect *note);
};

struct sgp_driver {
    struct sgp_node *node; /* borrowed */
    const struct sgp_driver_ops *ops;
    void *context;               /* passed to the operations */
    const struct sgp_sink *sink; /* gets TRACE lines for each step, key=value; may be NULL */
    const char *name;            /* of the node, for that line */
    struct sgp_effects *effects; /* borrowed scratch; may be shared by drivers of one thread */
    bool stepping;
    /* The wait that the trace printed last; 0 before the first. */
    enum sgp_waiting waiting;
    uint32_t waiting_peer;
};

/* Perform one event. */
void sgp_driver_post(struct sgp_driver *driver, const struct sgp_event *event);

/* Change the topology (sgp/node.h: sgp_node_reload) and perform the effects. The record is
 * committed with the new indices, and then the operations are called with the former ones. */
void sgp_driver_reload(struct sgp_driver *driver, sgp_time now, struct sgp_reload *reload);

#endif
