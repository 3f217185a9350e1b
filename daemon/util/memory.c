/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of memory; see memory.h. */
#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PATH_BYTES 4096u
#define LINE_BYTES 512u
#define SPARE_BYTES ((uint64_t)32 << 20) /* stacks of threads, and buffers of connections */
#define GROUPS "/sys/fs/cgroup"

static uint64_t less(uint64_t bound, uint64_t taken)
{
    return bound > taken ? bound - taken : 0;
}

/* The number behind `key` at the start of a line; `missing` if no line has it. An empty key means
 * the first line. */
static uint64_t read_number(const char *path, const char *key, uint64_t missing)
{
    char line[LINE_BYTES];
    uint64_t number = missing;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return missing;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) {
            /* a value of `max` is not a number */
            (void)sscanf(line + strlen(key), "%" SCNu64, &number);
            break;
        }
    (void)fclose(file);
    return number;
}

static uint64_t read_of_group(
    const char *root, const char *path, const char *file, const char *key, uint64_t missing)
{
    char whole[PATH_BYTES];
    int length = snprintf(whole, sizeof whole, "%s%s/%s", root, path, file);
    return length < (int)sizeof whole ? read_number(whole, key, missing) : missing;
}

uint64_t memory_group_left(const char *root, const char *path)
{
    char group[PATH_BYTES];
    uint64_t left = UINT64_MAX;
    (void)snprintf(group, sizeof group, "%s", path);
    for (char *slash = group + strlen(group); slash != NULL; slash = strrchr(group, '/')) {
        *slash = '\0';
        uint64_t most = read_of_group(root, group, "memory.max", "", UINT64_MAX);
        uint64_t taken = less(read_of_group(root, group, "memory.current", "", 0),
            read_of_group(root, group, "memory.stat", "inactive_file ", 0));
        if (most != UINT64_MAX && less(most, taken) < left)
            left = less(most, taken);
    }
    return left;
}

/* The cgroup v2 of this process, and the groups above it. */
static uint64_t own_group_left(void)
{
    char line[PATH_BYTES];
    uint64_t left = UINT64_MAX;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::/", 4) == 0)
            left = memory_group_left(GROUPS, line + 3);
    }
    if (file != NULL)
        (void)fclose(file);
    return left;
}

struct memory_bound memory_left(void)
{
    struct memory_bound machine = {UINT64_MAX, "on this machine"};
    struct memory_bound group = {own_group_left(), "in the control group of sgpd (memory.max)"};
    uint64_t kib = read_number("/proc/meminfo", "MemAvailable:", UINT64_MAX);
    if (kib != UINT64_MAX)
        machine.bytes = (kib + read_number("/proc/meminfo", "SwapFree:", 0)) * 1024;
    return group.bytes < machine.bytes ? group : machine;
}

struct memory_bound memory_address_left(void)
{
    struct memory_bound left = {UINT64_MAX, "of the address space of sgpd (RLIMIT_AS)"};
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        uint64_t pages = read_number("/proc/self/statm", "", 0);
        left.bytes = less(limit.rlim_cur, pages * (uint64_t)sysconf(_SC_PAGE_SIZE) + SPARE_BYTES);
    }
    return left;
}
