/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a dataset's memory: creates datasets, takes rows out of them, and computes digests. No I/O.
 * Gathering does not allocate and may run on any thread. */
#include "mapping.h"
#include "table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* a state on the stack */
#include <xxhash.h>

#include "sgp/kernels.h"
#include "sgp/random.h"

#define CACHE_LINE 64u
#define ROWS_AHEAD 4u      /* rows prefetched ahead of the row being gathered */
#define STRETCH_BYTES 256u /* bytes of a row that are widened together */

/* Purposes of random streams drawn from the fleet's seed. A node's stream number is added. */
#define STREAM_HOLDOUT ((uint64_t)0x686f6c64 << 32)

void *sgp_grow(void *array, size_t *capacity, size_t size, size_t count, size_t limit)
{
    sgp_assert(count <= limit);
    if (count <= *capacity)
        return array;
    size_t wanted = *capacity > limit / 2 ? limit : 2 * *capacity;
    if (wanted < count)
        wanted = count;
    void *grown = wanted > SIZE_MAX / size ? NULL : realloc(array, wanted * size);
    if (grown)
        *capacity = wanted;
    return grown;
}

uint64_t sgp_classes_digest(const char *const *names, uint32_t count)
{
    uint64_t digest = XXH3_64bits_withSeed("classes", 7, count);
    for (uint32_t i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%u", i);
        const char *name = names ? names[i] : number;
        /* The digest covers the terminating zero: {"ab"} is not {"a", "b"}. */
        digest = XXH3_64bits_withSeed(name, strlen(name) + 1, digest);
    }
    return digest;
}

uint64_t sgp_bytes_digest(uint32_t features)
{
    return XXH3_64bits_withSeed("bytes/255", 9, features);
}

uint64_t sgp_unscaled_digest(uint32_t features)
{
    return XXH3_64bits_withSeed("unscaled", 8, features);
}

int sgp_dataset_create_parts(const struct sgp_dataset *parts, struct sgp_dataset **ret_dataset)
{
    struct sgp_dataset *dataset = malloc(sizeof *dataset);
    if (!dataset)
        return -ENOMEM;
    *dataset = *parts;
    if (dataset->shape.channels == 0)
        dataset->shape = (struct sgp_shape){dataset->features, 1, 1};
    *ret_dataset = dataset;
    return 0;
}

/* The features of a row that are floats. */
static const float *row_floats(const struct sgp_dataset *dataset, uint64_t row)
{
    const uint64_t at = dataset->picked ? dataset->picked[row] : row;
    return dataset->floats + at * dataset->features;
}

bool sgp_dataset_is_whole(
    const struct sgp_dataset *dataset, uint32_t bound, uint64_t *ret_row, float *ret_value)
{
    const uint32_t width = dataset->features;
    for (uint64_t row = 0; row < dataset->rows; row++) {
        const uint8_t *bytes = dataset->bytes ? dataset->bytes + row * width : NULL;
        const float *floats = bytes ? NULL : row_floats(dataset, row);
        for (uint32_t i = 0; i < width; i++) {
            float value = bytes ? bytes[i] : floats[i];
            if (value >= 0 && value < (float)bound && value == floorf(value))
                continue;
            *ret_row = row;
            *ret_value = value;
            return false;
        }
    }
    return true;
}

void sgp_dataset_destroy(struct sgp_dataset *dataset)
{
    if (!dataset)
        return;
    free(dataset->bytes);
    if (!dataset->mapping)
        free(dataset->floats);
    sgp_mapping_release(dataset->mapping);
    free(dataset->picked);
    free(dataset->labels);
    free(dataset->values);
    free(dataset->names);
    free(dataset);
}

/* The name that follows a name. */
static const char *next_name(const char *name)
{
    return name + strlen(name) + 1;
}

static uint64_t names_bytes(const struct sgp_dataset *dataset)
{
    const char *end = dataset->names;
    for (uint32_t i = 0; end && i < dataset->features; i++)
        end = next_name(end);
    return end ? (uint64_t)(end - dataset->names) : 0;
}

/* A copy of count elements of size bytes. NULL for NULL; also NULL, with *failed set, without
 * memory. */
static void *copy_array(const void *array, uint64_t count, size_t size, bool *failed)
{
    if (!array)
        return NULL;
    void *copy = malloc((size_t)count * size);
    if (!copy) {
        *failed = true;
        return NULL;
    }
    memcpy(copy, array, (size_t)count * size);
    return copy;
}

static bool all_finite(const float *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return false;
    }
    return true;
}

static int memory_check(const float *features, const uint32_t *labels, const float *values,
    uint64_t rows, uint32_t feature_count, uint32_t classes, uint32_t targets)
{
    if (rows == 0 || feature_count == 0 || !features)
        return SGP_E_DATA;
    if (rows > SGP_ROWS_MAX || feature_count > SGP_FEATURES_MAX || classes > SGP_CLASSES_MAX ||
        targets > SGP_FEATURES_MAX || rows > SGP_DATA_BYTES_MAX / sizeof(float) / feature_count ||
        (targets > 0 && rows > SGP_DATA_BYTES_MAX / sizeof(float) / targets))
        return SGP_E_LIMIT;
    if ((classes > 0) != (labels != NULL) || (classes == 0 && targets > 0) != (values != NULL))
        return SGP_E_DATA;
    for (uint64_t i = 0; labels && i < rows; i++) {
        if (labels[i] >= classes)
            return SGP_E_DATA;
    }
    if (!all_finite(features, rows * feature_count))
        return SGP_E_NOT_FINITE;
    if (values && !all_finite(values, rows * targets))
        return SGP_E_NOT_FINITE;
    return 0;
}

int sgp_dataset_create_memory(const float *features, const uint32_t *labels, const float *values,
    uint64_t rows, uint32_t feature_count, uint32_t classes, uint32_t targets,
    struct sgp_dataset **ret_dataset)
{
    int status = memory_check(features, labels, values, rows, feature_count, classes, targets);
    if (status < 0)
        return status;
    struct sgp_dataset *dataset = calloc(1, sizeof *dataset);
    if (!dataset)
        return -ENOMEM;
    dataset->rows = rows;
    dataset->features = feature_count;
    dataset->shape = (struct sgp_shape){feature_count, 1, 1};
    dataset->classes = classes;
    dataset->targets = classes > 0 ? 1 : targets;
    dataset->classes_digest = sgp_classes_digest(NULL, classes);
    dataset->scaling_digest = sgp_unscaled_digest(feature_count);
    bool failed = false;
    dataset->floats = copy_array(features, rows * feature_count, sizeof(float), &failed);
    dataset->labels = copy_array(labels, rows, sizeof(uint32_t), &failed);
    dataset->values = copy_array(values, rows * targets, sizeof(float), &failed);
    if (failed) {
        sgp_dataset_destroy(dataset);
        return -ENOMEM;
    }
    *ret_dataset = dataset;
    return 0;
}

/* Widen a row, and prefetch a later row between its stretches. Rows are spread over all memory, and
 * the processor can wait for only a few cache lines at a time. */
static void widen_row(const struct sgp_kernels *kernels, float *features, const uint8_t *row,
    const uint8_t *later, size_t width)
{
    for (size_t first = 0; first < width; first += STRETCH_BYTES) {
        size_t count = width - first < STRETCH_BYTES ? width - first : STRETCH_BYTES;
        for (size_t at = 0; at < count; at += CACHE_LINE)
            __builtin_prefetch(later + first + at);
        kernels->widen(features + first, row + first, count);
    }
}

void sgp_dataset_gather(const struct sgp_dataset *dataset, float *features, uint32_t *labels,
    float *values, const uint32_t *indices, size_t count, size_t following)
{
    const size_t width = dataset->features;
    const size_t targets = dataset->targets;
    const struct sgp_kernels *kernels = sgp_kernels_best();
    for (size_t i = 0; i < count; i++) {
        const size_t row = indices[i];
        sgp_assert(row < dataset->rows);
        const size_t later = indices[i + ROWS_AHEAD < count + following ? i + ROWS_AHEAD : i];
        if (dataset->bytes)
            widen_row(kernels, features + i * width, dataset->bytes + row * width,
                dataset->bytes + later * width, width);
        else
            memcpy(features + i * width, row_floats(dataset, row), width * sizeof(float));
        if (labels && dataset->labels)
            labels[i] = dataset->labels[row];
        if (values && dataset->values)
            memcpy(values + i * targets, dataset->values + row * targets, targets * sizeof(float));
    }
}

/* The named rows of `size` bytes each, copied from an array. NULL for NULL; also NULL, with *failed
 * set, without memory. */
static void *pick_rows(
    const void *array, const uint32_t *indices, uint64_t count, size_t size, bool *failed)
{
    if (!array)
        return NULL;
    unsigned char *picked = malloc((size_t)count * size);
    if (!picked) {
        *failed = true;
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(picked + i * size, (const unsigned char *)array + indices[i] * size, size);
    return picked;
}

/* The rows of the mapped file that the named rows are. NULL: there is no such file; also NULL, with
 * *failed set, without memory. */
static uint32_t *pick_mapped(
    const struct sgp_dataset *dataset, const uint32_t *indices, uint64_t count, bool *failed)
{
    if (!dataset->mapping || dataset->picked)
        return pick_rows(dataset->picked, indices, count, sizeof(uint32_t), failed);
    return copy_array(indices, count, sizeof(uint32_t), failed);
}

int sgp_dataset_subset(const struct sgp_dataset *dataset, const uint32_t *indices, uint64_t count,
    struct sgp_dataset **ret_dataset)
{
    sgp_assert(count >= 1 && count <= SGP_ROWS_MAX && dataset->features >= 1);
    for (uint64_t i = 0; i < count; i++)
        sgp_assert(indices[i] < dataset->rows);
    struct sgp_dataset *subset = malloc(sizeof *subset);
    if (!subset)
        return -ENOMEM;
    *subset = *dataset;
    subset->rows = count;
    const size_t width = dataset->features;
    bool failed = false;
    subset->bytes = pick_rows(dataset->bytes, indices, count, width, &failed);
    subset->mapping = sgp_mapping_hold(dataset->mapping);
    subset->picked = pick_mapped(dataset, indices, count, &failed);
    if (!dataset->mapping)
        subset->floats = pick_rows(dataset->floats, indices, count, width * sizeof(float), &failed);
    subset->labels = pick_rows(dataset->labels, indices, count, sizeof(uint32_t), &failed);
    subset->values =
        pick_rows(dataset->values, indices, count, dataset->targets * sizeof(float), &failed);
    subset->names = copy_array(dataset->names, names_bytes(dataset), 1, &failed);
    if (failed) {
        sgp_dataset_destroy(subset);
        return -ENOMEM;
    }
    *ret_dataset = subset;
    return 0;
}

/* Choose `held` of `rows` rows by selection sampling (Knuth, TAOCP 3.4.2, algorithm S). So both
 * parts are in order: order[0..held) holds the chosen rows, order[held..rows) the others. */
static void choose_held(uint32_t *order, uint64_t rows, uint64_t held, struct sgp_random *random)
{
    uint64_t chosen = 0;
    uint64_t kept = held;
    for (uint64_t row = 0; row < rows; row++) {
        if (sgp_random_below(random, rows - row) < held - chosen)
            order[chosen++] = (uint32_t)row;
        else
            order[kept++] = (uint32_t)row;
    }
}

int sgp_dataset_split(const struct sgp_dataset *dataset, double fraction, uint64_t seed,
    uint64_t stream, struct sgp_dataset **ret_kept, struct sgp_dataset **ret_held)
{
    sgp_assert(fraction >= 0 && fraction < 1);
    const uint64_t rows = dataset->rows;
    uint64_t held = (uint64_t)(fraction * (double)rows);
    if (held == 0 && fraction > 0 && rows >= 2)
        held = 1;
    sgp_assert(held < rows);
    uint32_t *order = malloc((size_t)rows * sizeof *order);
    if (!order)
        return -ENOMEM;
    struct sgp_random random;
    sgp_random_init(&random, seed, STREAM_HOLDOUT + stream);
    choose_held(order, rows, held, &random);

    struct sgp_dataset *kept_set = NULL;
    struct sgp_dataset *held_set = NULL;
    int status = sgp_dataset_subset(dataset, order + held, rows - held, &kept_set);
    if (status == 0 && held > 0)
        status = sgp_dataset_subset(dataset, order, held, &held_set);
    free(order);
    if (status < 0) {
        sgp_dataset_destroy(kept_set);
        return status;
    }
    *ret_kept = kept_set;
    *ret_held = held_set;
    return 0;
}

uint64_t sgp_dataset_classes_digest(const struct sgp_dataset *dataset)
{
    return dataset->classes_digest;
}

uint64_t sgp_dataset_scaling_digest(const struct sgp_dataset *dataset)
{
    return dataset->scaling_digest;
}

uint64_t sgp_dataset_memory(const struct sgp_dataset *dataset)
{
    uint64_t row = dataset->targets * sizeof(float);
    if (dataset->bytes)
        row += dataset->features;
    else if (!dataset->mapping)
        row += dataset->features * sizeof(float);
    return dataset->rows * (row + (dataset->picked ? sizeof(uint32_t) : 0));
}

uint64_t sgp_dataset_mapped(const struct sgp_dataset *dataset)
{
    return dataset->mapping ? sgp_mapping_size(dataset->mapping) : 0;
}

static uint64_t add_array(uint64_t digest, const void *array, uint64_t count, size_t size)
{
    return array ? XXH3_64bits_withSeed(array, (size_t)count * size, digest) : digest;
}

/* As add_array, of rows that may lie apart. */
static uint64_t add_floats(const struct sgp_dataset *dataset, uint64_t digest)
{
    const size_t width = dataset->features * sizeof(float);
    if (!dataset->picked)
        return add_array(digest, dataset->floats, dataset->rows, width);
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset_withSeed(&state, digest);
    for (uint64_t row = 0; row < dataset->rows; row++)
        (void)XXH3_64bits_update(&state, row_floats(dataset, row), width);
    return XXH3_64bits_digest(&state);
}

uint64_t sgp_dataset_digest(const struct sgp_dataset *dataset)
{
    const uint64_t rows = dataset->rows;
    uint64_t digest = XXH3_64bits_withSeed("rows", 4, rows);
    digest = add_array(digest, dataset->bytes, rows, dataset->features);
    if (dataset->floats)
        digest = add_floats(dataset, digest);
    digest = add_array(digest, dataset->labels, rows, sizeof(uint32_t));
    digest = add_array(digest, dataset->values, rows, dataset->targets * sizeof(float));
    return digest ? digest : 1;
}

int sgp_dataset_reach(const struct sgp_dataset *dataset, struct sgp_reach *ret_reach)
{
    struct sgp_reach reach = {.widest = NULL};
    float *most = dataset->names ? calloc(dataset->features, sizeof *most) : NULL;
    if (dataset->names && !most)
        return -ENOMEM;
    for (uint64_t r = 0; most && r < dataset->rows; r++) {
        const float *row = row_floats(dataset, r);
        for (uint32_t i = 0; i < dataset->features; i++)
            most[i] = fmaxf(most[i], fabsf(row[i]));
    }
    const char *name = dataset->names;
    for (uint32_t i = 0; most && i < dataset->features; i++, name = next_name(name)) {
        if (most[i] > reach.most) {
            reach.most = most[i];
            reach.widest = name;
        }
        if (most[i] > 0 && (!reach.narrowest || most[i] < reach.least)) {
            reach.least = most[i];
            reach.narrowest = name;
        }
    }
    free(most);
    *ret_reach = reach;
    return 0;
}

float sgp_dataset_targets_reach(const struct sgp_dataset *dataset)
{
    float most = 0;
    for (uint64_t i = 0; dataset->values && i < dataset->rows * dataset->targets; i++)
        most = fmaxf(most, fabsf(dataset->values[i]));
    return most;
}
