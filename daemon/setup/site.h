/* SPDX-License-Identifier: Apache-2.0 */
/* Where a daemon will stand: its state directory, its port, its control socket, tried before it
 * starts.
 *
 * `sgpd --check` asks; nothing is made, changed or left behind. For an instant it holds the port
 * and a shared lock on the state directory, in which a daemon that starts may fail. What a running
 * sgpd with the same state directory holds is no fault. What this user may not do, or the unit
 * refuses (unit.h), is a warning, and directories that the unit makes may be missing. Thread: the
 * caller's. */
#ifndef SGPD_SITE_H
#define SGPD_SITE_H

#include "config.h"

#define SITE_WARNINGS_MAX 20u /* of a place, five; of a unit, one for each path and two */

struct site {
    bool running; /* an sgpd uses the state directory now */
    uint32_t warning_count;
    char warnings[SITE_WARNINGS_MAX][SGP_TEXT_BYTES];
};

/* 0 and *ret_site; or negative, and `FILE:LINE: [section] key: ...` that prevents a start. */
int site_check(const struct config *config, struct sgp_error *error, struct site *ret_site);

#endif
