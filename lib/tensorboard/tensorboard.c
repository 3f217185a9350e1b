/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a TensorBoard event file; see sgp/tensorboard.h. */
#include "sgp/tensorboard.h"

#include <dlfcn.h>
#include <errno.h>
#include <event.pb-c.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES 12u /* length and its checksum */
#define TAIL_BYTES 4u  /* checksum of the message */
#define NAMES_MAX 1000 /* of files that one process begins in one second */
#define HOST_BYTES 65
#define VERSION "brain.Event:2"
#define LIBRARY "libisal.so.2"

struct sgp_tensorboard {
    int descriptor;
    bool torn; /* behind the complete records there is a part of one */
    off_t end; /* of the complete records */
    char path[];
};

/* ---- the checksum ---- */

static __typeof__(&crc32_iscsi) crc32c; /* NULL until it is loaded */

/* Only a process that writes event files keeps the library in memory. */
static int load(struct sgp_error *error)
{
    if (crc32c)
        return 0;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&crc32c = dlsym(library, "crc32_iscsi");
    return crc32c ? 0
                  : sgp_fail(error, SGP_E_CONFIG,
                        "an event file needs a library that cannot be loaded: %s; install the "
                        "package libisal2",
                        dlerror());
}

/* ---- bytes ---- */

static void put(uint8_t *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t masked(uint8_t *bytes, size_t count)
{
    const uint32_t sum = ~crc32c(bytes, (int)count, ~0u);
    return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

static int write_all(int descriptor, const uint8_t *bytes, size_t count)
{
    while (count > 0) {
        const ssize_t written = write(descriptor, bytes, count);
        if (written < 0 && errno != EINTR)
            return -errno;
        bytes += written > 0 ? written : 0;
        count -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* Append a record, or nothing. */
static int append(struct sgp_tensorboard *file, const SgpTensorboard__Event *event)
{
    const size_t size = sgp_tensorboard__event__get_packed_size(event);
    const size_t whole = HEAD_BYTES + size + TAIL_BYTES;
    if (file->torn && ftruncate(file->descriptor, file->end) < 0)
        return -errno;
    file->torn = false;
    uint8_t *record = malloc(whole);
    if (!record)
        return -ENOMEM;
    put(record, size, 8);
    put(record + 8, masked(record, 8), 4);
    (void)sgp_tensorboard__event__pack(event, record + HEAD_BYTES);
    put(record + HEAD_BYTES + size, masked(record + HEAD_BYTES, size), TAIL_BYTES);
    int code = write_all(file->descriptor, record, whole);
    free(record);
    if (code == 0)
        file->end += (off_t)whole;
    else
        file->torn = ftruncate(file->descriptor, file->end) < 0;
    return code;
}

/* ---- the file ---- */

static int create(struct sgp_tensorboard *file, const char *directory, double seconds, size_t room)
{
    char host[HOST_BYTES] = "";
    if (gethostname(host, sizeof host) < 0)
        (void)strcpy(host, "unknown");
    host[sizeof host - 1] = '\0';
    for (int number = 0; number < NAMES_MAX; number++) {
        (void)snprintf(file->path, room, "%s/events.out.tfevents.%010.0f.%s.%ld.%d", directory,
            seconds, host, (long)getpid(), number);
        file->descriptor =
            open(file->path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
        if (file->descriptor >= 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

static int begin(struct sgp_tensorboard *file, double seconds)
{
    SgpTensorboard__Event event = SGP_TENSORBOARD__EVENT__INIT;
    char version[] = VERSION;
    event.wall_time = seconds;
    event.what_case = SGP_TENSORBOARD__EVENT__WHAT_FILE_VERSION;
    event.file_version = version;
    return append(file, &event);
}

int sgp_tensorboard_open(const char *directory, double seconds, struct sgp_error *error,
    struct sgp_tensorboard **ret_file)
{
    const size_t room = strlen(directory) + HOST_BYTES + 96;
    if (load(error) < 0)
        return SGP_E_CONFIG;
    struct sgp_tensorboard *file = calloc(1, sizeof *file + room);
    if (!file)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", directory);
    file->descriptor = -1;
    int code = mkdir(directory, 0750) < 0 && errno != EEXIST ? -errno : 0;
    if (code == 0)
        code = create(file, directory, seconds, room);
    if (code == 0)
        code = begin(file, seconds);
    if (code < 0) {
        if (file->descriptor >= 0)
            (void)unlink(file->path);
        sgp_tensorboard_close(file);
        return sgp_fail(
            error, code, "%s: no event file can be written: %s", directory, sgp_strerror(code));
    }
    *ret_file = file;
    return 0;
}

int sgp_tensorboard_add(struct sgp_tensorboard *file, double seconds, int64_t step,
    const struct sgp_tensorboard_scalar *scalars, size_t count, struct sgp_error *error)
{
    SgpTensorboard__Event event = SGP_TENSORBOARD__EVENT__INIT;
    SgpTensorboard__Summary summary = SGP_TENSORBOARD__SUMMARY__INIT;
    SgpTensorboard__Summary__Value *values = calloc(count + 1, sizeof *values);
    SgpTensorboard__Summary__Value **list = calloc(count + 1, sizeof *list);
    int code = values && list ? 0 : -ENOMEM;
    for (size_t i = 0; code == 0 && i < count; i++) {
        sgp_tensorboard__summary__value__init(&values[i]);
        values[i].tag = (char *)scalars[i].tag;
        values[i].value_case = SGP_TENSORBOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        values[i].simple_value = (float)scalars[i].value;
        list[i] = &values[i];
    }
    summary.n_value = count;
    summary.value = list;
    event.wall_time = seconds;
    event.step = step;
    event.what_case = SGP_TENSORBOARD__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    if (code == 0 && count > 0)
        code = append(file, &event);
    free(values);
    free(list);
    return code == 0
               ? 0
               : sgp_fail(error, code, "%s: cannot be written: %s", file->path, sgp_strerror(code));
}

const char *sgp_tensorboard_path(const struct sgp_tensorboard *file)
{
    return file->path;
}

void sgp_tensorboard_close(struct sgp_tensorboard *file)
{
    if (file && file->descriptor >= 0)
        (void)close(file->descriptor);
    free(file);
}
