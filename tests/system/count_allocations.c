/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: counts every malloc, calloc, realloc and aligned allocation of a process in a mapped
 * file, ALLOCATIONS_FILE, where a test reads it without waking the process. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static _Atomic uint64_t before_open;
static _Atomic uint64_t *counter = &before_open;

__attribute__((constructor)) static void open_counter(void)
{
    const char *path = getenv("ALLOCATIONS_FILE");
    int file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *map = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)close(file);
    if (map != MAP_FAILED)
        counter = map;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT void *malloc(size_t bytes)
{
    atomic_fetch_add(counter, 1);
    return __libc_malloc(bytes);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    atomic_fetch_add(counter, 1);
    return __libc_calloc(count, bytes);
}

EXPORT void *realloc(void *old, size_t bytes)
{
    atomic_fetch_add(counter, 1);
    return __libc_realloc(old, bytes);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    atomic_fetch_add(counter, 1);
    return __libc_memalign(alignment, bytes);
}

EXPORT int posix_memalign(void **ret_memory, size_t alignment, size_t bytes)
{
    atomic_fetch_add(counter, 1);
    *ret_memory = __libc_memalign(alignment, bytes);
    return *ret_memory != NULL ? 0 : 12;
}
