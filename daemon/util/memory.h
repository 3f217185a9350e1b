/* SPDX-License-Identifier: Apache-2.0 */
/* How much more memory this process can take, by each of the bounds that the system sets.
 *
 * Fails: never. A bound that cannot be read is UINT64_MAX. Blocks on files of /proc and /sys.
 * Thread: any. */
#ifndef SGPD_MEMORY_H
#define SGPD_MEMORY_H

#include <stdint.h>

struct memory_bound {
    uint64_t bytes;    /* UINT64_MAX: no bound */
    const char *where; /* static: where these bytes are left, as "on this machine" */
};

/* The lesser of two bounds: what the machine leaves (MemAvailable and swap, proc_meminfo(5)), and
 * what the control group leaves (memory.max). */
struct memory_bound memory_left(void);

/* What RLIMIT_AS leaves of the address space, minus the needs of threads and connections. */
struct memory_bound memory_address_left(void);

/* What memory.max leaves in the groups at `path` and above, under `root`. Page cache counts as
 * left. */
uint64_t memory_group_left(const char *root, const char *path);

#endif
