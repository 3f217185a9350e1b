/* SPDX-License-Identifier: Apache-2.0 */
/* A file of bytes, plain or gzip: see source.h. */
#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int sgp_source_open(const char *path, struct sgp_error *error, FILE **ret_file)
{
    FILE *file = fopen(path, "rbe");
    if (!file) {
        int code = -errno;
        return sgp_fail(error, code, "%s: cannot be opened: %s", path, sgp_strerror(code));
    }
    struct stat status;
    if (fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode)) {
        fclose(file);
        return sgp_fail(error, -EISDIR, "%s: is a directory; name a file", path);
    }
    *ret_file = file;
    return 0;
}

/* Read raw bytes of the file. Returns how many, 0 at its end, negative on failure. */
static int64_t raw_read(
    struct sgp_source *source, unsigned char *bytes, size_t size, struct sgp_error *error)
{
    errno = 0;
    size_t got = fread(bytes, 1, size, source->file);
    if (got == 0 && ferror(source->file)) {
        int code = errno ? -errno : -EIO;
        return sgp_fail(error, code, "%s: cannot be read: %s", source->name, sgp_strerror(code));
    }
    return (int64_t)got;
}

int sgp_source_init(
    struct sgp_source *source, FILE *file, const char *name, struct sgp_error *error)
{
    *source = (struct sgp_source){.file = file, .name = name};
    source->data = malloc(SGP_SOURCE_BUFFER_BYTES);
    source->raw = malloc(SGP_SOURCE_BUFFER_BYTES);
    if (!source->data || !source->raw) {
        sgp_source_finish(source);
        return sgp_fail(error, -ENOMEM, "%s: out of memory", name);
    }
    int64_t got = raw_read(source, source->raw, SGP_SOURCE_BUFFER_BYTES, error);
    if (got < 0) {
        sgp_source_finish(source);
        return (int)got;
    }
    if (got >= 2 && source->raw[0] == 0x1f && source->raw[1] == 0x8b) {
        /* 15 window bits; 16 more select gzip, header and checksum included. */
        if (inflateInit2(&source->inflater, 15 + 16) != Z_OK) {
            sgp_source_finish(source);
            return sgp_fail(error, -ENOMEM, "%s: out of memory", name);
        }
        source->gzip = true;
        source->inflater.next_in = source->raw;
        source->inflater.avail_in = (unsigned)got;
    } else {
        memcpy(source->data, source->raw, (size_t)got);
        source->end = (size_t)got;
    }
    return 0;
}

void sgp_source_finish(struct sgp_source *source)
{
    if (source->gzip)
        inflateEnd(&source->inflater);
    free(source->raw);
    free(source->data);
    *source = (struct sgp_source){.file = NULL};
}

static int gzip_damaged(const struct sgp_source *source, struct sgp_error *error)
{
    return sgp_fail(error, SGP_E_DATA,
        "%s: byte %llu of its contents: the gzip data is damaged (%s); copy the file again",
        source->name, (unsigned long long)(source->offset + source->end - source->first),
        source->inflater.msg ? source->inflater.msg : "not gzip");
}

/* Refill the compressed bytes if there are none. Returns 1 if there are some, 0 at the end of the
 * file. */
static int gzip_refill(struct sgp_source *source, struct sgp_error *error)
{
    if (source->inflater.avail_in > 0)
        return 1;
    int64_t got = raw_read(source, source->raw, SGP_SOURCE_BUFFER_BYTES, error);
    if (got < 0)
        return (int)got;
    source->inflater.next_in = source->raw;
    source->inflater.avail_in = (unsigned)got;
    return got > 0;
}

/* Fill the empty data buffer from gzip, member after member. At a valid end of the file the buffer
 * stays empty. */
static int gzip_fill(struct sgp_source *source, struct sgp_error *error)
{
    while (source->end == 0) {
        int more = gzip_refill(source, error);
        if (more < 0)
            return more;
        if (more == 0) {
            if (source->member_done)
                return 0;
            return sgp_fail(error, SGP_E_DATA,
                "%s: byte %llu of its contents: the gzip data ends too early; copy the file again",
                source->name, (unsigned long long)source->offset);
        }
        if (source->member_done) {
            /* gzip files may be concatenated, so bytes after a member must be another member. */
            if (inflateReset(&source->inflater) != Z_OK)
                return gzip_damaged(source, error);
            source->member_done = false;
        }
        source->inflater.next_out = source->data;
        source->inflater.avail_out = SGP_SOURCE_BUFFER_BYTES;
        int status = inflate(&source->inflater, Z_NO_FLUSH);
        source->end = SGP_SOURCE_BUFFER_BYTES - source->inflater.avail_out;
        if (status == Z_MEM_ERROR)
            return sgp_fail(error, -ENOMEM, "%s: out of memory", source->name);
        if (status != Z_OK && status != Z_STREAM_END)
            return gzip_damaged(source, error);
        source->member_done = status == Z_STREAM_END;
    }
    return 0;
}

static int fill(struct sgp_source *source, struct sgp_error *error)
{
    source->first = 0;
    source->end = 0;
    if (source->gzip)
        return gzip_fill(source, error);
    int64_t got = raw_read(source, source->data, SGP_SOURCE_BUFFER_BYTES, error);
    if (got < 0)
        return (int)got;
    source->end = (size_t)got;
    return 0;
}

int sgp_source_read(
    struct sgp_source *source, void *bytes, size_t size, struct sgp_error *error, size_t *ret_size)
{
    size_t done = 0;
    while (done < size) {
        if (source->first == source->end) {
            int status = fill(source, error);
            if (status < 0)
                return status;
            if (source->end == 0)
                break;
        }
        size_t part = source->end - source->first;
        if (part > size - done)
            part = size - done;
        memcpy((unsigned char *)bytes + done, source->data + source->first, part);
        source->first += part;
        source->offset += part;
        done += part;
    }
    *ret_size = done;
    return 0;
}

int sgp_source_byte(struct sgp_source *source, struct sgp_error *error)
{
    if (source->first == source->end) {
        int status = fill(source, error);
        if (status < 0)
            return status;
        if (source->end == 0)
            return SGP_SOURCE_END;
    }
    source->offset++;
    return source->data[source->first++];
}
