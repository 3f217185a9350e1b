/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one call for memory, a file or a thread fail: `sgpd` is linked once more with each of these calls of its own code
 * (not of the libraries') led here (ld, --wrap). CALLS_FILE names a mapped file of three numbers, struct calls: a test reads
 * how many calls there were, and says which one is to fail. Thread: any. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct calls {
    _Atomic uint64_t count;   /* calls so far, those that failed included */
    _Atomic uint64_t fail_at; /* this one fails, counted from 1; 0: none */
    _Atomic uint64_t failed;  /* calls that failed */
};

static struct calls before_open;
static struct calls *calls = &before_open;

#define REAL(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

static int is_to_fail(void)
{
    uint64_t number = atomic_fetch_add(&calls->count, 1) + 1;
    if (number != atomic_load(&calls->fail_at))
        return 0;
    (void)atomic_fetch_add(&calls->failed, 1);
    errno = ENOMEM;
    return 1;
}

/* For calls that fail for want of descriptors. */
static int is_to_fail_with(int code)
{
    int fails = is_to_fail();
    if (fails)
        errno = code;
    return fails;
}

/* ---- memory ---- */

REAL(void *, malloc, size_t bytes)
{
    return is_to_fail() ? NULL : __real_malloc(bytes);
}

REAL(void *, calloc, size_t count, size_t bytes)
{
    return is_to_fail() ? NULL : __real_calloc(count, bytes);
}

REAL(void *, realloc, void *old, size_t bytes)
{
    return is_to_fail() ? NULL : __real_realloc(old, bytes);
}

REAL(void *, aligned_alloc, size_t alignment, size_t bytes)
{
    return is_to_fail() ? NULL : __real_aligned_alloc(alignment, bytes);
}

REAL(char *, strdup, const char *text)
{
    return is_to_fail() ? NULL : __real_strdup(text);
}

REAL(char *, strndup, const char *text, size_t length)
{
    return is_to_fail() ? NULL : __real_strndup(text, length);
}

REAL(int, vasprintf, char **ret_text, const char *format, va_list arguments)
{
    return is_to_fail() ? -1 : __real_vasprintf(ret_text, format, arguments);
}

int __wrap_asprintf(char **ret_text, const char *format, ...);
int __wrap_asprintf(char **ret_text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written = __wrap_vasprintf(ret_text, format, arguments);
    va_end(arguments);
    return written;
}

REAL(void *, mmap64, void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    return is_to_fail() ? MAP_FAILED
                        : __real_mmap64(address, bytes, protection, flags, file, offset);
}

/* ---- files ---- */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? (mode_t)va_arg(arguments, int) : 0;
    va_end(arguments);
    return is_to_fail_with(EMFILE) ? -1 : __real_open64(path, flags, mode);
}

REAL(FILE *, fopen64, const char *path, const char *mode)
{
    return is_to_fail_with(EMFILE) ? NULL : __real_fopen64(path, mode);
}

REAL(FILE *, fdopen, int file, const char *mode)
{
    return is_to_fail() ? NULL : __real_fdopen(file, mode);
}

REAL(FILE *, open_memstream, char **ret_text, size_t *ret_size)
{
    return is_to_fail() ? NULL : __real_open_memstream(ret_text, ret_size);
}

REAL(int, memfd_create, const char *name, unsigned flags)
{
    return is_to_fail_with(EMFILE) ? -1 : __real_memfd_create(name, flags);
}

/* ---- threads ---- */

REAL(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
    void *argument)
{
    return is_to_fail() ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

__attribute__((constructor)) static void open_calls(void)
{
    const char *path = getenv("CALLS_FILE");
    int file = path != NULL ? __real_open64(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *map = __real_mmap64(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)close(file);
    if (map != MAP_FAILED)
        calls = map;
}
