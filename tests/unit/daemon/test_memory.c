/* SPDX-License-Identifier: Apache-2.0 */
/* What control groups leave of their memory, by files as the kernel shows them. */
#include "util/memory.h"

#include <criterion/criterion.h>
#include <assertions.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char root[] = "/tmp/sgpd-memory-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void make(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    cr_assert(mkdir(path, 0700) == 0);
}

static void begin(void)
{
    cr_assert(mkdtemp(root) != NULL);
    make("a.slice");
    make("a.slice/b.service");
}

static void end(void)
{
    char command[64];
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    cr_assert(system(command) == 0);
}

TestSuite(memory, .init = begin, .fini = end);

Test(memory, the_tightest_group_counts)
{
    cr_assert(eq(u64, memory_group_left(root, "/a.slice/b.service"), UINT64_MAX));
    put("a.slice/b.service/memory.max", "max\n");
    put("a.slice/b.service/memory.current", "300\n");
    cr_assert(eq(u64, memory_group_left(root, "/a.slice/b.service"), UINT64_MAX));
    put("a.slice/memory.max", "1000\n");
    put("a.slice/memory.current", "400\n");
    cr_assert(eq(u64, memory_group_left(root, "/a.slice/b.service"), 600));
    put("a.slice/memory.stat", "anon 1\nfile 7\ninactive_file 150\n");
    cr_assert(eq(u64, memory_group_left(root, "/a.slice/b.service"), 750));
    put("a.slice/b.service/memory.max", "500\n");
    cr_assert(eq(u64, memory_group_left(root, "/a.slice/b.service"), 200));
    put("a.slice/b.service/memory.current", "501\n");
    cr_assert(eq(u64, memory_group_left(root, "/a.slice/b.service"), 0));
    cr_assert(eq(u64, memory_group_left(root, "/"), UINT64_MAX));
}

Test(memory, the_machine_leaves_some_and_a_limit_of_address_space_less)
{
    struct rlimit limit = {(rlim_t)1 << 46, (rlim_t)1 << 46};
    cr_assert(memory_left().bytes > 0 && memory_left().bytes < UINT64_MAX);
    cr_assert(eq(u64, memory_address_left().bytes, UINT64_MAX));
    /* qemu accepts the limit, and sets none */
    if (setrlimit(RLIMIT_AS, &limit) == 0 && getrlimit(RLIMIT_AS, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY)
        cr_assert(memory_address_left().bytes < (uint64_t)1 << 46);
}
