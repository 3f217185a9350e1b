/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints to a file and back; see sgp/checkpoint.h. */
#include "sgp/checkpoint.h"

#include "atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

struct header {
    char magic[8];
    uint32_t version;
    uint32_t vector_count;
    uint64_t parameters, shape, incarnation, sequence, round, counter_count;
    double weight;
    uint64_t snapshot_count, snapshot_rounds[SGP_KEPT_MAX];
    uint64_t reserved[2];
};
_Static_assert(sizeof(struct header) == 128, "as sgp/checkpoint.h says");

struct entry { /* a vector or a counter */
    char name[SGP_STATE_NAME_BYTES];
    uint64_t value;
};
_Static_assert(sizeof(struct entry) == 32, "as sgp/checkpoint.h says");
#define ENTRIES_MAX (SGP_STATE_VECTORS_MAX + SGP_STATE_COUNTERS_MAX)

#define VERSION 3u
static const char magic[8] = {'S', 'G', 'P', 'C', 'H', 'E', 'C', 'K'};

struct output {
    struct sgp_atomic_file file;
    XXH3_state_t *hash;
};

static void put(struct output *output, const void *bytes, size_t size)
{
    (void)XXH3_64bits_update(output->hash, bytes, size);
    sgp_atomic_write(&output->file, bytes, size);
}

static void put_name(struct output *output, const char *name, uint64_t value)
{
    struct entry entry = {.value = value};
    memcpy(entry.name, name, strlen(name));
    put(output, &entry, sizeof entry);
}

static void put_names(struct output *output, const struct sgp_trainer_state *state)
{
    for (uint32_t i = 0; i < state->vector_count; i++)
        put_name(output, state->vectors[i].name, state->vectors[i].count);
    for (uint32_t i = 0; i < state->counter_count; i++)
        put_name(output, state->counters[i].name, state->counters[i].value);
}

static int keep_the_last(const char *path, struct sgp_error *error)
{
    char *older;
    if (asprintf(&older, "%s.1", path) < 0)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    int code = rename(path, older) < 0 && errno != ENOENT ? -errno : 0;
    free(older);
    return code < 0 ? sgp_fail(error, code, "%s: cannot be renamed: %s", path, sgp_strerror(code))
                    : 0;
}

int sgp_checkpoint_write(
    const char *path, const struct sgp_checkpoint *checkpoint, struct sgp_error *error)
{
    struct output output = {.hash = XXH3_createState()};
    if (!output.hash)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    int code = sgp_atomic_open(&output.file, path, SGP_ATOMIC_PRIVATE, error);
    if (code < 0) {
        (void)XXH3_freeState(output.hash);
        return code;
    }
    (void)XXH3_64bits_reset(output.hash);
    const struct sgp_trainer_state *state = &checkpoint->state;
    const struct sgp_recovery_point *point = &checkpoint->point;
    struct header header = {.version = VERSION,
        .vector_count = state->vector_count,
        .counter_count = state->counter_count,
        .parameters = checkpoint->parameters,
        .shape = checkpoint->shape,
        .incarnation = point->incarnation,
        .sequence = point->sequence,
        .round = (uint64_t)point->round,
        .weight = point->weight,
        .snapshot_count = point->kept_count};
    memcpy(header.magic, magic, sizeof magic);
    for (uint32_t i = 0; i < point->kept_count; i++)
        header.snapshot_rounds[i] = (uint64_t)point->kept[i];
    size_t bytes = checkpoint->parameters * sizeof(float);
    put(&output, &header, sizeof header);
    put_names(&output, state);
    put(&output, state->x, bytes);
    for (uint32_t i = 0; i < state->vector_count; i++)
        put(&output, state->vectors[i].values, state->vectors[i].count * sizeof(float));
    for (uint32_t i = 0; i < point->kept_count; i++)
        put(&output, checkpoint->kept[i], bytes);
    uint64_t digest = XXH3_64bits_digest(output.hash);
    sgp_atomic_write(&output.file, &digest, sizeof digest);
    (void)XXH3_freeState(output.hash);
    /* older files are renamed only after the new file is on the disk */
    sgp_atomic_sync(&output.file);
    if (output.file.status == 0)
        output.file.status = keep_the_last(path, error);
    return sgp_atomic_commit(&output.file, error);
}

static int damaged(struct sgp_error *error, const char *path, const char *what)
{
    return sgp_fail(error, SGP_E_DATA, "%s: %s; it is not used", path, what);
}

static const char *wrong(const struct header *header, uint64_t parameters, uint64_t shape)
{
    if (memcmp(header->magic, magic, sizeof magic) != 0)
        return "not a checkpoint";
    if (header->version != VERSION)
        return "a checkpoint of another format";
    if (header->parameters != parameters || header->shape != shape)
        return "a checkpoint of another model";
    if (header->vector_count > SGP_STATE_VECTORS_MAX ||
        header->counter_count > SGP_STATE_COUNTERS_MAX ||
        header->round >= (uint64_t)SGP_ROUND_MAX || !isfinite(header->weight) ||
        header->weight < 0 || header->snapshot_count > SGP_KEPT_MAX)
        return "a value of the checkpoint is out of range";
    for (uint64_t i = 0; i < header->snapshot_count; i++)
        if (header->snapshot_rounds[i] >= (uint64_t)SGP_ROUND_MAX)
            return "a round of the checkpoint is out of range";
    return NULL;
}

/* The part between the header and the digest. */
struct content {
    struct entry entries[ENTRIES_MAX];
    size_t entry_count;
    float *vectors;
    size_t value_count; /* of x, the vectors and the snapshots, which lie one after the other */
};

/* Read the names. The file must have as many bytes as the vectors that they announce. */
static const char *read_names(FILE *file, const struct header *header, struct content *content)
{
    struct stat status;
    size_t names = content->entry_count = header->vector_count + header->counter_count;
    if (fread(content->entries, sizeof(struct entry), names, file) != names)
        return "the checkpoint is cut off";
    uint64_t values = header->parameters * (1 + header->snapshot_count);
    for (size_t i = 0; i < names; i++) {
        const struct entry *entry = &content->entries[i];
        const bool vector = i < header->vector_count;
        if (memchr(entry->name, 0, SGP_STATE_NAME_BYTES) == NULL ||
            (vector && (entry->value == 0 || entry->value > SGP_PARAMETERS_MAX)))
            return "a name of the checkpoint is out of range";
        values += vector ? entry->value : 0;
    }
    uint64_t bytes =
        sizeof *header + names * sizeof(struct entry) + values * sizeof(float) + sizeof(uint64_t);
    if (fstat(fileno(file), &status) < 0 || (uint64_t)status.st_size != bytes)
        return "the checkpoint is cut off";
    content->value_count = values;
    return NULL;
}

/* Read the vectors and the digest behind the names. The file must end there. */
static const char *read_content(FILE *file, const struct header *header, struct content *content)
{
    uint64_t digest;
    size_t names = content->entry_count, values = content->value_count;
    bool whole = fread(content->vectors, sizeof(float), values, file) == values &&
                 fread(&digest, sizeof digest, 1, file) == 1 && fgetc(file) == EOF;
    if (!whole)
        return "the checkpoint is cut off";
    XXH3_state_t *hash = XXH3_createState();
    if (!hash)
        return "out of memory";
    (void)XXH3_64bits_reset(hash);
    (void)XXH3_64bits_update(hash, header, sizeof *header);
    (void)XXH3_64bits_update(hash, content->entries, names * sizeof(struct entry));
    (void)XXH3_64bits_update(hash, content->vectors, values * sizeof(float));
    bool same = XXH3_64bits_digest(hash) == digest;
    (void)XXH3_freeState(hash);
    return same ? NULL : "the checkpoint is damaged (its digest does not match)";
}

/* Fill in the state from the x, vectors and counters of the content. Returns where the vectors
 * end. */
static const float *fill_in(
    const struct header *header, const struct content *content, struct sgp_trainer_state *ret_state)
{
    const float *values = content->vectors + header->parameters;
    *ret_state = (struct sgp_trainer_state){.x = content->vectors};
    const struct entry *counters = content->entries + header->vector_count;
    for (uint32_t i = 0; i < header->vector_count; i++) {
        const struct entry *entry = &content->entries[i];
        sgp_state_add_vector(ret_state, entry->name, values, entry->value);
        values += entry->value;
    }
    for (uint32_t i = 0; i < header->counter_count; i++)
        sgp_state_add_counter(ret_state, counters[i].name, counters[i].value);
    return values;
}

static int read_open(FILE *file, const char *path, uint64_t parameters, uint64_t shape,
    struct sgp_error *error, struct sgp_checkpoint *ret_checkpoint, float **ret_memory)
{
    struct header header;
    if (fread(&header, sizeof header, 1, file) != 1)
        return damaged(error, path, "the checkpoint is cut off");
    const char *what = wrong(&header, parameters, shape);
    if (what)
        return damaged(error, path, what);
    struct content content = {.vectors = NULL};
    what = read_names(file, &header, &content);
    if (what)
        return damaged(error, path, what);
    content.vectors = malloc(content.value_count * sizeof(float));
    if (!content.vectors)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    what = read_content(file, &header, &content);
    if (what) {
        free(content.vectors);
        return damaged(error, path, what);
    }
    *ret_checkpoint = (struct sgp_checkpoint){.parameters = parameters,
        .shape = shape,
        .point = {.incarnation = header.incarnation,
            .sequence = header.sequence,
            .round = (sgp_round)header.round,
            .weight = header.weight,
            .kept_count = (uint32_t)header.snapshot_count}};
    const float *snapshots = fill_in(&header, &content, &ret_checkpoint->state);
    for (uint64_t i = 0; i < header.snapshot_count; i++) {
        ret_checkpoint->point.kept[i] = (sgp_round)header.snapshot_rounds[i];
        ret_checkpoint->kept[i] = snapshots + i * parameters;
    }
    *ret_memory = content.vectors;
    return 0;
}

int sgp_checkpoint_read(const char *path, uint64_t parameters, uint64_t shape,
    struct sgp_error *error, struct sgp_checkpoint *ret_checkpoint, float **ret_memory)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "rb") : NULL;
    if (!file) {
        int code = -errno;
        if (descriptor >= 0)
            (void)close(descriptor);
        return sgp_fail(error, code, "%s: cannot be read: %s", path, sgp_strerror(code));
    }
    int code = read_open(file, path, parameters, shape, error, ret_checkpoint, ret_memory);
    (void)fclose(file);
    return code;
}
