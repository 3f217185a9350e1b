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

/* owners[r] = the node of row r. Each node gets a piece of `order` (NULL: file order); their sizes
 * differ by at most one row. */
static void cut_pieces(uint32_t *owners, const uint32_t *order, uint64_t rows, uint32_t node_count)
{
    for (uint32_t node = 0; node < node_count; node++)
        for (uint64_t i = rows * node / node_count; i < rows * (node + 1) / node_count; i++)
            owners[order ? order[i] : i] = node;
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

static bool goes_by_label(const struct sgp_shards *shards)
{
    return shards->kind == SGP_SHARD_SORTED || shards->kind == SGP_SHARD_DIRICHLET;
}

int sgp_shard_owners(const struct sgp_shards *shards, const uint32_t *labels, uint64_t rows,
    uint32_t classes, uint32_t node_count, uint64_t seed, struct sgp_error *error,
    uint32_t *ret_owners)
{
    sgp_assert(shards->kind != SGP_SHARD_NONE && rows >= 1 && rows <= SGP_ROWS_MAX);
    uint32_t *order = NULL;
    if (goes_by_label(shards) && !labels)
        return sgp_fail(error, SGP_E_CONFIG,
            "shards: sorted and dirichlet go by class, and these rows have none; round-robin or "
            "contiguous would be right");
    if (rows < node_count)
        return sgp_fail(error, SGP_E_DATA,
            "shards: %llu rows cannot give each of %u nodes one; have more rows or fewer nodes",
            (unsigned long long)rows, node_count);
    if (goes_by_label(shards)) {
        order = calloc((size_t)rows, sizeof *order);
        if (!order || sort_by_label(order, labels, rows, classes) < 0) {
            free(order);
            return sgp_fail(error, -ENOMEM, "shards: out of memory");
        }
    }
    if (shards->kind == SGP_SHARD_DIRICHLET)
        draw_owners(ret_owners, order, labels, rows, shards->alpha, node_count, seed);
    else if (shards->kind == SGP_SHARD_ROUND_ROBIN)
        for (uint64_t r = 0; r < rows; r++)
            ret_owners[r] = (uint32_t)(r % node_count);
    else
        cut_pieces(ret_owners, order, rows, node_count);
    free(order);
    return 0;
}

/* Keep the rows of the node in `owned`, which holds the owner of each row at first. Returns how
 * many there are. */
static uint64_t keep_own(uint32_t *owned, uint64_t rows, uint32_t node_index)
{
    uint64_t count = 0;
    for (uint64_t r = 0; r < rows; r++)
        if (owned[r] == node_index)
            owned[count++] = (uint32_t)r;
    return count;
}

int sgp_shard_rows(const struct sgp_shards *shards, const uint32_t *labels, uint64_t rows,
    uint32_t classes, uint32_t node_index, uint32_t node_count, uint64_t seed,
    struct sgp_error *error, uint32_t **ret_rows, uint64_t *ret_count)
{
    sgp_assert(node_index < node_count && rows >= 1 && rows <= SGP_ROWS_MAX);
    uint32_t *owned = calloc((size_t)rows, sizeof *owned);
    int status = 0;
    if (!owned)
        return sgp_fail(error, -ENOMEM, "shards: out of memory");
    if (shards->kind == SGP_SHARD_NONE)
        for (uint64_t r = 0; r < rows; r++)
            owned[r] = node_index;
    else
        status = sgp_shard_owners(shards, labels, rows, classes, node_count, seed, error, owned);
    if (status == 0 && shards->kind == SGP_SHARD_DIRICHLET)
        status = owners_check(owned, rows, shards->alpha, node_count, error);
    if (status < 0) {
        free(owned);
        return status;
    }
    *ret_count = keep_own(owned, rows, node_index);
    *ret_rows = owned;
    sgp_assert(*ret_count >= 1);
    return 0;
}
