/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the service manager (sd_notify(3)). Without a manager, nothing is sent.
 *
 * Thread: the loop thread. No function fails: a manager that does not listen is no reason to stop.
 */
#ifndef SGPD_NOTIFY_H
#define SGPD_NOTIFY_H

#include "sgp/status.h"

struct notify {
    char status[SGP_TEXT_BYTES]; /* the last STATUS= sent */
    uint64_t spent;              /* by the compute thread when WATCHDOG=1 was last sent */
};

/* READY=1: the sockets listen and the configuration is valid. */
void notify_ready(void);

/* RELOADING=1 with the time; READY=1 must follow. */
void notify_reloading(void);

/* STATUS=text, if it differs from the last one. */
void notify_status(struct notify *notify, const char *text);

/* The interval for notify_watchdog: a quarter of the manager's time limit. 0: the manager does not
 * watch. */
sgp_time notify_watchdog_interval(void);

/* WATCHDOG=1, unless the compute thread has a job and spent no time on it since the last one. If
 * the compute thread hangs, the process is not alive, though the loop turns. Returns whether it was
 * sent. */
bool notify_watchdog(struct notify *notify, bool compute_idle, uint64_t compute_spent);

/* STOPPING=1. */
void notify_stopping(void);

/* Ask for `time` more to start or stop. */
void notify_extend(sgp_time time);

#endif
