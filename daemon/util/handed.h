/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that stays open when this program starts again in the same process (execve). An
 * environment variable, one for each use, tells its number to the next start. Thread: the only
 * thread, before the loop runs. */
#ifndef SGPD_HANDED_H
#define SGPD_HANDED_H

#include <stdbool.h>

/* With `on`, the next start of this program finds the descriptor; without, it is closed by then, as
 * every other. `descriptor` stays the caller's. Negative: nothing is done. */
void handed_over(const char *variable, int descriptor, bool on);

/* The descriptor that the start before has handed over by this name, once; it is the caller's, and
 * the next start does not get it. -1: there is none, or the variable names no open descriptor. */
int handed_take(const char *variable);

#endif
