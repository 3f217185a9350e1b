/* SPDX-License-Identifier: Apache-2.0 */
/* SIGTERM and SIGINT from the start of the process until a loop listens to them.
 *
 * At first there is nothing to lose, and they end the process with status 0. Then they are kept, and
 * the loop gets them, so that it ends as it does later. Thread: the first of the process. */
#ifndef SGPD_EARLY_STOP_H
#define SGPD_EARLY_STOP_H

#include <stdbool.h>

/* Nobody listens to them yet, or any more: from here on they are kept, or end the process. */
void early_stop_begin(bool keeps);
/* A loop listens to them: it gets what was kept. */
void early_stop_release(void);

#endif
