/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the service manager; see notify.h. */
#include "notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

void notify_ready(void)
{
    (void)sd_notify(0, "READY=1");
}

void notify_reloading(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
        (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

void notify_status(struct notify *notify, const char *text)
{
    char status[SGP_TEXT_BYTES];
    (void)snprintf(status, sizeof status, "%s", text);
    if (strcmp(notify->status, status) == 0)
        return;
    strcpy(notify->status, status);
    char line[sizeof "STATUS=" + SGP_TEXT_BYTES]; /* sd_notifyf would allocate the line */
    (void)snprintf(line, sizeof line, "STATUS=%s", status);
    (void)sd_notify(0, line);
}

sgp_time notify_watchdog_interval(void)
{
    uint64_t microseconds = 0;
    if (sd_watchdog_enabled(0, &microseconds) <= 0 || microseconds > INT64_MAX / 1000)
        return 0;
    return (sgp_time)microseconds * SGP_MICROSECOND / 4;
}

bool notify_watchdog(struct notify *notify, bool compute_idle, uint64_t compute_spent)
{
    if (!compute_idle && compute_spent == notify->spent)
        return false;
    notify->spent = compute_spent;
    (void)sd_notify(0, "WATCHDOG=1");
    return true;
}

void notify_stopping(void)
{
    (void)sd_notify(0, "STOPPING=1");
}

void notify_extend(sgp_time time)
{
    (void)sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRId64, time / SGP_MICROSECOND);
}
