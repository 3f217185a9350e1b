/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory of a process: made, and locked until the process ends. */
#ifndef SGPD_STATE_DIRECTORY_H
#define SGPD_STATE_DIRECTORY_H

#include "sgp/status.h"

/* Make the directory if it is missing, lock it, and remove temporary files that a killed process
 * left. Returns a descriptor of the directory, or negative with *error: -EBUSY if another process
 * has locked it. The lock lasts until the descriptor is closed or the process ends. On a file
 * system without locks, the directory is used without a lock. */
int state_directory_open(const char *path, struct sgp_error *error);

#endif
