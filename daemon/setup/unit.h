/* SPDX-License-Identifier: Apache-2.0 */
/* What the installed unit sgpd@.service keeps from a daemon (systemd/sgpd@.service.in): home and temporary
 * directories are not there for it, it may write to its own directories alone, and it runs as the user sgpd.
 *
 * `sgpd --check` asks, mostly as root, who sees and may do all of that. Thread: the caller's; while it looks
 * as the user sgpd the effective user of the process is another. */
#ifndef SGPD_UNIT_H
#define SGPD_UNIT_H

#include "site.h"

/* Warn of what systemd would refuse in a configuration of /etc/sgpd. No unit reads others. */
void unit_check(const struct config *config, struct site *site);

/* Of a daemon that starts: whether a file of its configuration is hidden by its unit, so that it is not there for this
 * process and is for everybody else. Returns 0, or SGP_E_CONFIG with *error. */
int unit_sees(const struct config *config, struct sgp_error *error);

#endif
