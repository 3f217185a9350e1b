/* SPDX-License-Identifier: Apache-2.0 */
/* SIGTERM and SIGINT before a loop listens to them; see early_stop.h. The handlers decide, not a mask:
 * OpenBLAS has threads of its own before main, and any of them may be given a signal. */
#include "early_stop.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t held, kept; /* whether they are kept; the latest of them, or 0 */

static void on_signal(int number)
{
    if (!held)
        _exit(0);
    kept = number;
}

void early_stop_begin(bool keeps)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    held = keeps;
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
}

void early_stop_release(void)
{
    int number = kept;
    kept = 0;
    if (number != 0)
        (void)raise(number);
}
