/* SPDX-License-Identifier: Apache-2.0 */
/* Where a daemon will run: its state directory, its port and its control socket, tested before the
 * start.
 *
 * `sgpd --check` calls this. It makes, changes and leaves nothing. For an instant it holds the port
 * and a shared lock on the state directory; a daemon that starts at that instant may fail. What a
 * running sgpd with the same state directory holds is no error. If this user lacks a permission, or
 * the unit refuses (unit.h), that is a warning. Directories that the unit makes may be missing.
 * Thread: the caller's. */
#ifndef SGPD_SITE_H
#define SGPD_SITE_H

#include "config.h"

#define SITE_WARNINGS_MAX 20u /* five of a place; of a unit, one for each path and two */

struct site {
    bool running; /* an sgpd is using the state directory */
    uint32_t warning_count;
    char warnings[SITE_WARNINGS_MAX][SGP_TEXT_BYTES];
};

/* Returns 0 and *ret_site. Or negative, and the error that prevents a start: `FILE:LINE: [section]
 * key: ...`. */
int site_check(const struct config *config, struct sgp_error *error, struct site *ret_site);

#endif
