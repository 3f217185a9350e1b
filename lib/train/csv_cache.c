/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when a file of rows takes the place of a CSV table, see csv_cache.h. The file is never
 * trusted: its origin, its digests and its numbers are checked at each start. */
#include "csv_cache.h"

#include "csv.h"
#include "mapping.h"
#include "rows_file.h"
#include "scaling.h"
#include "target_scale.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define READ_BYTES 65536u
#define BLOCK_ROWS 4096u
#define PROGRESS_SECONDS 5.0

struct caching {
    const struct sgp_data_cache *cache;
    const char *table; /* path of the CSV file */
    char *path;        /* of the file of rows */
    struct sgp_csv_options options;
    struct sgp_csv_agreed agreed; /* what this reading tells */
    struct sgp_rows_origin origin;
    uint64_t size;       /* of the CSV file, when it was opened */
    XXH3_state_t *hash;  /* of the bytes read so far */
    FILE *file;          /* the CSV file */
    double begun, spoke; /* when the reading began, and when it last told of its progress */
    struct sgp_rows_writer writer;
};

/* ---- what the file of rows must be made from ---- */

static uint64_t add_text(uint64_t digest, const char *text)
{
    return XXH3_64bits_withSeed(text ? text : "", text ? strlen(text) + 1 : 0, digest);
}

static uint64_t add_texts(uint64_t digest, const char *const *texts, uint32_t count)
{
    digest = XXH3_64bits_withSeed(&count, sizeof count, digest);
    for (uint32_t i = 0; texts && i < count; i++)
        digest = add_text(digest, texts[i]);
    return digest;
}

/* The digest of all options on which the rows depend. */
static uint64_t reading_digest(const struct sgp_csv_options *options)
{
    const struct sgp_scaling *scaling = options->scaling;
    const struct sgp_csv_agreed *agreed = options->agreed;
    const uint32_t kinds[] = {options->bits, options->missing, scaling != NULL, agreed != NULL};
    uint64_t digest = XXH3_64bits(kinds, sizeof kinds);
    digest = add_text(digest, options->label);
    digest = add_texts(digest, options->class_names, options->class_count);
    if (agreed)
        digest = add_texts(digest, agreed->classes, agreed->class_count);
    if (!scaling)
        return digest;
    const uint64_t columns = sgp_scaling_digest(scaling);
    digest = XXH3_64bits_withSeed(&columns, sizeof columns, digest);
    digest = sgp_target_scales_digest(scaling->targets, scaling->target_count, digest);
    for (uint32_t i = 0; i < scaling->target_count; i++)
        digest = add_text(digest, scaling->targets[i].name);
    return digest;
}

static int no_memory(const struct caching *caching, struct sgp_error *error)
{
    return sgp_fail(error, -ENOMEM, "%s: out of memory", caching->table);
}

/* ---- the CSV file, hashed while it is read ---- */

static ssize_t hashed_read(void *cookie, char *bytes, size_t size)
{
    struct caching *caching = cookie;
    const size_t got = fread(bytes, 1, size, caching->file);
    if (got == 0 && ferror(caching->file))
        return -1;
    (void)XXH3_64bits_update(caching->hash, bytes, got);
    caching->origin.source_bytes += got;
    return (ssize_t)got;
}

/* Open the CSV file from its beginning as a stream whose bytes are hashed. NULL without memory. */
static FILE *hashed_open(struct caching *caching)
{
    const cookie_io_functions_t functions = {.read = hashed_read};
    rewind(caching->file);
    (void)XXH3_64bits_reset(caching->hash);
    caching->origin.source_bytes = 0;
    FILE *stream = fopencookie(caching, "rb", functions);
    if (stream)
        (void)setvbuf(stream, NULL, _IOFBF, READ_BYTES);
    return stream;
}

static void hashed_close(struct caching *caching, FILE *stream)
{
    caching->origin.source_digest = XXH3_64bits_digest(caching->hash);
    (void)fclose(stream);
}

/* Hash the whole CSV file. */
static int hash_table(struct caching *caching, struct sgp_error *error)
{
    char *bytes = malloc(READ_BYTES);
    FILE *stream = bytes ? hashed_open(caching) : NULL;
    int status = stream ? 0 : no_memory(caching, error);
    errno = 0;
    while (stream && fread(bytes, 1, READ_BYTES, stream) > 0)
        continue;
    if (stream && ferror(stream)) {
        status = errno ? -errno : -EIO;
        sgp_fail(error, status, "%s: cannot be read: %s", caching->table, sgp_strerror(status));
    }
    if (stream)
        hashed_close(caching, stream);
    free(bytes);
    return status;
}

/* ---- a file of rows that exists ---- */

/* What is wrong with a mapped file, or NULL. The table is hashed only if all else agrees. */
static const char *find_fault(struct caching *caching, const void *bytes, size_t size,
    struct sgp_rows_header *header, struct sgp_error *error)
{
    const char *fault = sgp_rows_header_check(bytes, size, header);
    if (fault)
        return fault;
    if (header->origin.reading != caching->origin.reading ||
        header->classes != caching->options.class_count)
        return "the scaling or another key of [data] has changed";
    if (header->origin.source_bytes != caching->size)
        return "the table has changed";
    if (hash_table(caching, error) < 0)
        return error->text;
    if (memcmp(&header->origin, &caching->origin, sizeof caching->origin) != 0)
        return "the table has changed";
    return sgp_rows_body_check(bytes, header);
}

/* Use the file of rows. Returns 0, or 1 if there is none that may be used, or negative with *error:
 * then the CSV file cannot be read, or memory is lacking. */
static int use(struct caching *caching, struct sgp_error *error, struct sgp_dataset **ret_dataset)
{
    struct sgp_mapping *mapping = NULL;
    struct sgp_rows_header header;
    struct stat status;
    struct sgp_error why = {0};
    const char *fault = "it is empty";
    int fd = open(caching->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 1;
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        fault = "it cannot be read";
    else if (status.st_size > 0 && sgp_mapping_create(fd, (size_t)status.st_size, &mapping) < 0)
        fault = "it cannot be mapped";
    if (fd >= 0)
        (void)close(fd);
    if (mapping)
        fault =
            find_fault(caching, sgp_mapping_bytes(mapping), (size_t)status.st_size, &header, &why);
    int code = why.code;
    if (code < 0)
        sgp_fail(error, code, "%s", why.text);
    else if (!fault && sgp_rows_dataset(mapping, &header, ret_dataset) < 0)
        code = no_memory(caching, error);
    else if (fault)
        code = 1;
    sgp_mapping_release(mapping);
    if (code == 0)
        caching->agreed = (struct sgp_csv_agreed){.left_out = header.told.left_out,
            .left_out_line = header.told.left_out_line,
            .strange = header.told.strange};
    if (code == 1)
        sgp_log(caching->cache->sink, SGP_LEVEL_INFO, "event=rows file=\"%s\" made_anew=\"%s\"",
            caching->path, fault);
    return code;
}

/* ---- a new file of rows ---- */

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Say how far the reading is, at most every few seconds. */
static void tell_progress(struct caching *caching)
{
    const double time = now();
    if (time - caching->spoke < PROGRESS_SECONDS)
        return;
    caching->spoke = time;
    sgp_log(caching->cache->sink, SGP_LEVEL_INFO,
        "event=reading file=\"%s\" rows=%llu percent=%.0f mb_per_second=%.0f", caching->table,
        (unsigned long long)caching->writer.header.rows,
        100 * (double)caching->origin.source_bytes / (double)caching->size,
        1e-6 * (double)caching->origin.source_bytes / (time - caching->begun));
}

static int take_block(
    void *context, const struct sgp_dataset *block, uint64_t line, struct sgp_error *error)
{
    struct caching *caching = context;
    tell_progress(caching);
    return sgp_rows_fit(&caching->writer, block) ? sgp_rows_add(&caching->writer, block, error)
                                                 : sgp_csv_too_many(caching->table, line, error);
}

/* Read the table in blocks into the writer. */
static int read_table(struct caching *caching, struct sgp_error *error)
{
    FILE *stream = hashed_open(caching);
    if (!stream)
        return no_memory(caching, error);
    caching->begun = caching->spoke = now();
    int status = sgp_csv_read_blocks(
        stream, caching->table, &caching->options, BLOCK_ROWS, take_block, caching, error);
    hashed_close(caching, stream);
    return status;
}

static void tell_made(const struct caching *caching, const struct sgp_dataset *dataset)
{
    const double seconds = now() - caching->begun;
    sgp_log(caching->cache->sink, SGP_LEVEL_INFO,
        "event=rows file=\"%s\" table=\"%s\" rows=%llu bytes=%llu seconds=%.1f mb_per_second=%.0f",
        caching->cache->keep ? caching->path : "", caching->table,
        (unsigned long long)dataset->rows, (unsigned long long)sgp_dataset_mapped(dataset), seconds,
        1e-6 * (double)caching->origin.source_bytes / (seconds > 0 ? seconds : 1));
}

/* Make the file of rows. Returns 0, or 1 if it cannot be written or would be empty, or negative
 * with *error: the table is wrong. */
static int make(struct caching *caching, struct sgp_error *error, struct sgp_dataset **ret_dataset)
{
    const struct sgp_data_cache *cache = caching->cache;
    struct sgp_error why = {0};
    int status = sgp_rows_begin(
        &caching->writer, cache->keep ? caching->path : cache->directory, cache->keep, &why);
    bool writes = status == 0;
    if (writes) {
        status = read_table(caching, &why);
        writes = caching->writer.file.status == 0;
        if (status < 0 || caching->writer.header.rows == 0) {
            sgp_rows_abandon(&caching->writer);
            if (status == 0)
                return 1;
        } else {
            const struct sgp_rows_told told = {
                caching->agreed.left_out, caching->agreed.left_out_line, caching->agreed.strange};
            status = sgp_rows_end(&caching->writer, &caching->origin, &told, &why, ret_dataset);
            writes = status == 0;
        }
    }
    if (status == 0)
        tell_made(caching, *ret_dataset);
    else if (writes)
        return sgp_fail(error, status, "%s", why.text);
    else
        sgp_log(cache->sink, SGP_LEVEL_WARNING,
            "event=warning text=\"%s; the rows of %s are kept in memory instead\"", why.text,
            caching->table);
    return status == 0 ? 0 : 1;
}

/* ---- the whole ---- */

static void forget_told(struct caching *caching)
{
    caching->agreed.left_out = caching->agreed.left_out_line = caching->agreed.strange = 0;
}

/* Add what the reading told to what the caller has. */
static void add_told(const struct caching *caching, struct sgp_csv_agreed *agreed)
{
    if (!agreed)
        return;
    if (agreed->left_out == 0)
        agreed->left_out_line = caching->agreed.left_out_line;
    agreed->left_out += caching->agreed.left_out;
    agreed->strange += caching->agreed.strange;
}

static int read_cached(
    struct caching *caching, struct sgp_error *error, struct sgp_dataset **ret_dataset)
{
    int status = use(caching, error, ret_dataset);
    if (status != 1)
        return status;
    status = make(caching, error, ret_dataset);
    if (status != 1)
        return status;
    forget_told(caching);
    rewind(caching->file);
    return sgp_csv_read_dataset(
        caching->file, caching->table, &caching->options, error, ret_dataset);
}

/* Whether the open table is large enough. Pipes have no size, and can be read only once. */
static bool is_large(struct caching *caching)
{
    struct stat status;
    if (fstat(fileno(caching->file), &status) < 0 || !S_ISREG(status.st_mode))
        return false;
    caching->size = (uint64_t)status.st_size;
    return caching->size >= caching->cache->least_bytes;
}

static int read_open(
    struct caching *caching, struct sgp_error *error, struct sgp_dataset **ret_dataset)
{
    struct sgp_csv_agreed *agreed = caching->options.agreed;
    if (agreed) {
        caching->agreed = *agreed;
        caching->options.agreed = &caching->agreed;
    }
    forget_told(caching);
    caching->origin.reading = reading_digest(&caching->options);
    caching->hash = XXH3_createState();
    int status =
        caching->hash ? read_cached(caching, error, ret_dataset) : no_memory(caching, error);
    (void)XXH3_freeState(caching->hash);
    add_told(caching, agreed);
    return status;
}

void sgp_data_cache_clear(const char *directory)
{
    static const char *const names[] = {"train", "test"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path;
        if (asprintf(&path, "%s/%s.rows", directory, names[i]) < 0)
            continue;
        (void)unlink(path);
        free(path);
    }
}

int sgp_csv_cache_read(const struct sgp_data_cache *cache, const char *name, const char *path,
    const struct sgp_csv_options *options, struct sgp_error *error,
    struct sgp_dataset **ret_dataset)
{
    struct caching caching = {.cache = cache, .table = path, .options = *options};
    if (!cache)
        return sgp_dataset_read_csv(path, options, error, ret_dataset);
    int status = sgp_source_open(path, error, &caching.file);
    if (status < 0)
        return status;
    if (asprintf(&caching.path, "%s/%s.rows", cache->directory, name) < 0) {
        caching.path = NULL;
        status = no_memory(&caching, error);
    } else if (is_large(&caching)) {
        status = read_open(&caching, error, ret_dataset);
    } else {
        if (cache->keep)
            (void)unlink(caching.path); /* of a table that was larger */
        status = sgp_csv_read_dataset(caching.file, path, options, error, ret_dataset);
    }
    free(caching.path);
    (void)fclose(caching.file);
    return status;
}
