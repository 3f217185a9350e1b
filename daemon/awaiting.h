/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon waits for before its node exists, on a loop of its own: a program's model, or a
 * scaling on which all nodes agree. Meanwhile signals, the control socket and the service manager
 * are served as later. Thread: the loop thread, which is the only thread. */
#ifndef SGPD_AWAITING_H
#define SGPD_AWAITING_H

#include "control/control.h"
#include "setup/prepare.h"
#include "util/log.h"
#include "util/notify.h"

struct awaiting {
    uv_loop_t loop;
    const struct config *config;
    const struct prepared *prepared; /* what is known already: the place, at least */
    struct log *log;
    const char *state; /* "awaiting_model"; static */
    /* Close what the owner of this structure has opened. */
    void (*close)(struct awaiting *awaiting);
    /* SIGHUP. NULL: nothing is read again. */
    void (*hang_up)(struct awaiting *awaiting);

    /* awaiting.c */
    struct control *control;
    uv_signal_t signals[3];
    uv_timer_t watchdog;
    struct notify notify;
    sgp_time started;
    bool ended;
    int result;
    int socket; /* with result 0: the control socket, for the node (control_keep); else -1 */
};

/* What a wait leaves open for the node. Negative: nothing. */
struct opened {
    int directory; /* the state directory (store/state_directory.h) */
    int socket;    /* the control socket, on which clients wait (control_keep) */
};

/* Begin, with the fields above the line set. The control server offers these actions, and `context`
 * of them begins with a struct awaiting. 0, or negative with *error, and nothing is open. */
int awaiting_open(
    struct awaiting *awaiting, const struct view_actions *actions, struct sgp_error *error);

/* All is open: tell the service manager, and let signals come. */
void awaiting_start(struct awaiting *awaiting);

/* Close everything, once; awaiting_run then returns this result. */
void awaiting_end(struct awaiting *awaiting, int result);

/* For the actions: end with result 1. */
int awaiting_stop(void *context);

/* Turn the loop until awaiting_end; returns its result. */
int awaiting_run(struct awaiting *awaiting);

/* What every wait shows; the other fields are unknown. */
void awaiting_status(const struct awaiting *awaiting, struct view_status *ret_status);

double awaiting_seconds(const struct awaiting *awaiting);

#endif
