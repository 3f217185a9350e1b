/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which rows of a common file a node owns. The functions are pure: only integers and
 * exactly rounded arithmetic are used, so every machine computes the same. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sgp/dataset.h"
#include "sgp/random.h"

#define STREAM_DIRICHLET ((uint64_t)0x64697269 << 32)
#define ALPHA_MIN 1e-6
#define ALPHA_MAX 1e6

static const char *const words[] = {[SGP_SHARD_ROUND_ROBIN] = "round-robin",
    [SGP_SHARD_CONTIGUOUS] = "contiguous",
    [SGP_SHARD_SORTED] = "sorted",
    [SGP_SHARD_DIRICHLET] = "dirichlet",
    [SGP_SHARD_NONE] = "none"};

void sgp_shards_text(const struct sgp_shards *shards, char text[SGP_SHARDS_TEXT_BYTES])
{
    int length = snprintf(text, SGP_SHARDS_TEXT_BYTES, "%s", words[shards->kind]);
    if (shards->kind == SGP_SHARD_DIRICHLET)
        snprintf(text + length, SGP_SHARDS_TEXT_BYTES - (size_t)length, ":%g", shards->alpha);
}

int sgp_shards_parse(const char *text, struct sgp_error *error, struct sgp_shards *ret_shards)
{
    for (int kind = SGP_SHARD_ROUND_ROBIN; kind <= SGP_SHARD_NONE; kind++) {
        if (kind != SGP_SHARD_DIRICHLET && strcmp(text, words[kind]) == 0) {
            *ret_shards = (struct sgp_shards){.kind = (enum sgp_shard_kind)kind};
            return 0;
        }
    }
    static const char prefix[] = "dirichlet";
    if (strncmp(text, prefix, sizeof prefix - 1) != 0)
        return sgp_fail(error, SGP_E_CONFIG,
            "shards = %s: unknown; round-robin, contiguous, sorted, dirichlet:A or none would be "
            "right",
            text);
    const char *number = text + sizeof prefix - 1;
    char *end = NULL;
    double alpha = *number == ':' ? strtod(number + 1, &end) : 0;
    if (!end || end == number + 1 || *end != '\0' || !(alpha >= ALPHA_MIN && alpha <= ALPHA_MAX))
        return sgp_fail(error, SGP_E_CONFIG,
            "shards = %s: needs a number from %g to %g, as in dirichlet:0.5", text, ALPHA_MIN,
            ALPHA_MAX);
    *ret_shards = (struct sgp_shards){.kind = SGP_SHARD_DIRICHLET, .alpha = alpha};
    return 0;
}

/* order = the rows by label, equal labels in file order (counting sort). -ENOMEM. */
static int sort_by_label(uint32_t *order, const uint32_t *labels, uint64_t rows, uint32_t classes)
{
    uint64_t *first = calloc((size_t)classes + 1, sizeof *first);
    if (!first)
        return -ENOMEM;
    for (uint64_t r = 0; r < rows; r++)
        first[labels[r] + 1]++;
    for (uint32_t c = 0; c < classes; c++)
        first[c + 1] += first[c];
    for (uint64_t r = 0; r < rows; r++)
        order[first[labels[r]]++] = (uint32_t)r;
    free(first);
    return 0;
}

/* owner[r] = the node of row r, drawn class by class from a Polya urn. With t rows of the class
 * drawn, the next row goes to a uniformly chosen node with probability n alpha / (n alpha + t).
 * Otherwise the row goes to the owner of one of the t rows, chosen uniformly. `order` holds the
 * rows by label. */
static void draw_owners(uint32_t *owner, const uint32_t *order, const uint32_t *labels,
    uint64_t rows, double alpha, uint32_t node_count, uint64_t seed)
{
    const double fresh = alpha * (double)node_count;
    struct sgp_random random;
    uint64_t first = 0;
    for (uint64_t i = 0; i < rows; i++) {
        const uint32_t label = labels[order[i]];
        if (i == 0 || label != labels[order[i - 1]]) {
            sgp_random_init(&random, seed, STREAM_DIRICHLET + label);
            first = i;
        }
        const uint64_t drawn = i - first;
        if (sgp_random_double(&random) * (fresh + (double)drawn) < fresh)
            owner[order[i]] = (uint32_t)sgp_random_below(&random, node_count);
        else
            owner[order[i]] = owner[order[first + sgp_random_below(&random, drawn)]];
    }
}

/* Copy the node's piece of `order` (NULL: file order) to owned. The sizes of pieces differ by at
 * most one row. Returns how many rows the piece has. */
static uint64_t own_piece(
    uint32_t *owned, const uint32_t *order, uint64_t rows, uint32_t node_index, uint32_t node_count)
{
    const uint64_t begin = rows * node_index / node_count;
    const uint64_t end = rows * (node_index + 1) / node_count;
    for (uint64_t i = 0; i < end - begin; i++)
        owned[i] = order ? order[begin + i] : (uint32_t)(begin + i);
    return end - begin;
}

static int ascending(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Refuse a draw that leaves any node without a row. Every node refuses it, because the others would
 * otherwise wait for a node that cannot start. */
static int owners_check(const uint32_t *owner, uint64_t rows, double alpha, uint32_t node_count,
    struct sgp_error *error)
{
    bool *seen = calloc(node_count, sizeof *seen);
    if (!seen)
        return sgp_fail(error, -ENOMEM, "shards: out of memory");
    for (uint64_t r = 0; r < rows; r++)
        seen[owner[r]] = true;
    uint32_t node = 0;
    while (node < node_count && seen[node])
        node++;
    free(seen);
    if (node < node_count)
        return sgp_fail(error, SGP_E_DATA,
            "shards: dirichlet:%g leaves node %u without a row; a larger number or another seed "
            "would be right",
            alpha, node);
    return 0;
}

/* For kinds that read labels, write the node's rows to owned, ascending, *ret_count of them. */
static int shard_labelled(const struct sgp_shards *shards, const uint32_t *labels, uint64_t rows,
    uint32_t classes, uint32_t node_index, uint32_t node_count, uint64_t seed,
    struct sgp_error *error, uint32_t *owned, uint64_t *ret_count)
{
    uint32_t *order = calloc((size_t)rows, sizeof *order);
    uint32_t *owner = calloc((size_t)rows, sizeof *owner);
    int status = order && owner ? sort_by_label(order, labels, rows, classes) : -ENOMEM;
    uint64_t count = 0;
    if (status < 0) {
        sgp_fail(error, status, "shards: out of memory");
    } else if (shards->kind == SGP_SHARD_SORTED) {
        count = own_piece(owned, order, rows, node_index, node_count);
        qsort(owned, count, sizeof *owned, ascending);
    } else {
        draw_owners(owner, order, labels, rows, shards->alpha, node_count, seed);
        status = owners_check(owner, rows, shards->alpha, node_count, error);
        for (uint64_t r = 0; r < rows; r++) {
            if (owner[r] == node_index)
                owned[count++] = (uint32_t)r;
        }
    }
    free(order);
    free(owner);
    if (status == 0)
        *ret_count = count;
    return status;
}

/* For kinds that only count rows. Returns how many rows are owned. */
static uint64_t shard_counted(enum sgp_shard_kind kind, uint64_t rows, uint32_t node_index,
    uint32_t node_count, uint32_t *owned)
{
    uint64_t count = 0;
    if (kind == SGP_SHARD_CONTIGUOUS)
        return own_piece(owned, NULL, rows, node_index, node_count);
    const uint64_t step = kind == SGP_SHARD_NONE ? 1 : node_count;
    for (uint64_t r = kind == SGP_SHARD_NONE ? 0 : node_index; r < rows; r += step)
        owned[count++] = (uint32_t)r;
    return count;
}

int sgp_shard_rows(const struct sgp_shards *shards, const uint32_t *labels, uint64_t rows,
    uint32_t classes, uint32_t node_index, uint32_t node_count, uint64_t seed,
    struct sgp_error *error, uint32_t **ret_rows, uint64_t *ret_count)
{
    sgp_assert(node_index < node_count && rows >= 1 && rows <= SGP_ROWS_MAX);
    const bool labelled = shards->kind == SGP_SHARD_SORTED || shards->kind == SGP_SHARD_DIRICHLET;
    if (labelled && !labels)
        return sgp_fail(error, SGP_E_CONFIG,
            "shards: sorted and dirichlet go by class, and these rows have none; round-robin or "
            "contiguous would be right");
    if (shards->kind != SGP_SHARD_NONE && rows < node_count)
        return sgp_fail(error, SGP_E_DATA,
            "shards: %llu rows cannot give each of %u nodes one; have more rows or fewer nodes",
            (unsigned long long)rows, node_count);
    uint32_t *owned = malloc((size_t)rows * sizeof *owned);
    if (!owned)
        return sgp_fail(error, -ENOMEM, "shards: out of memory");
    uint64_t count = 0;
    int status = 0;
    if (labelled)
        status = shard_labelled(
            shards, labels, rows, classes, node_index, node_count, seed, error, owned, &count);
    else
        count = shard_counted(shards->kind, rows, node_index, node_count, owned);
    if (status < 0) {
        free(owned);
        return status;
    }
    sgp_assert(count >= 1);
    *ret_rows = owned;
    *ret_count = count;
    return 0;
}
