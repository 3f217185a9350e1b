/* SPDX-License-Identifier: Apache-2.0 */
/* SIGTERM and SIGINT from the start of the process until a loop handles them.
 *
 * At first nothing can be lost, and they end the process with status 0. Later they are kept until
 * the loop handles them, so that the process ends as usual. Thread: the first thread of the
 * process. */
#ifndef SGPD_EARLY_STOP_H
#define SGPD_EARLY_STOP_H

#include <stdbool.h>

/* No loop handles the signals now. From here on they are kept, or end the process. */
void early_stop_begin(bool keeps);
/* A loop handles the signals now: it gets the kept signal. */
void early_stop_release(void);

#endif
