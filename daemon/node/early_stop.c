/* SPDX-License-Identifier: Apache-2.0 */
/* SIGTERM and SIGINT before a loop handles them; see early_stop.h. Signal handlers decide, not a
 * signal mask, because OpenBLAS begins threads of its own before the loop runs, and each of them
 * may receive a signal. */
#include "early_stop.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

/* whether signals are kept; the latest kept signal, or 0 */
static volatile sig_atomic_t held, kept;

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
