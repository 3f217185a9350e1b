/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory of a process: made, and locked until the process ends. */
#ifndef SGPD_STATE_DIRECTORY_H
#define SGPD_STATE_DIRECTORY_H

#include "sgp/status.h"

#include <stdbool.h>

/* Make the directory if it is missing, lock it, and remove temporary files that a killed process
 * left. Returns a descriptor of the directory, or negative with *error: -EBUSY if another process
 * has locked it. The lock lasts until the descriptor is closed or the process ends. On a file
 * system without locks, the directory is used without a lock. If the program before has handed over
 * this directory, its lock goes on. */
int state_directory_open(const char *path, struct sgp_error *error);

/* Around a start of this program in place of itself. With `on`, the program that is started next
 * takes over the directory that was opened last. Its lock then has no gap, in which another process
 * could take it. */
void state_directory_hand_over(bool on);

#endif
