/* SPDX-License-Identifier: Apache-2.0 */
/* What the installed unit sgpd@.service denies to a daemon (systemd/sgpd@.service.in). Home and
 * temporary directories are hidden from the daemon. It may write only to its own directories, and
 * it runs as the user sgpd.
 *
 * `sgpd --check` calls this, mostly as root, who can see and do all of that. Thread: the caller's.
 * During the check as the user sgpd, the effective user of the process is sgpd. */
#ifndef SGPD_UNIT_H
#define SGPD_UNIT_H

#include "site.h"

/* Warn if systemd would deny something that a configuration of /etc/sgpd needs. The unit reads no
 * other configurations. */
void unit_check(const struct config *config, struct site *site);

/* For a daemon that starts: whether its unit hides a file of its configuration. Such a file is
 * absent for this process and present for all others. Returns 0, or SGP_E_CONFIG with *error. */
int unit_sees(const struct config *config, struct sgp_error *error);

#endif
