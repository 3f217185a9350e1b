/* SPDX-License-Identifier: Apache-2.0 */
/* Divides a table among simulated sites; see sgp/sites.h. */
#include "sgp/sites.h"
#include "sgp/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_IID ((uint64_t)0x69696400 << 32)
#define STREAM_SITES UINT64_C(0x73697465) /* of the held-out rows */

int sgp_sites_parse(const char *text, struct sgp_error *error, struct sgp_sites_plan *plan)
{
    struct sgp_shards shards;
    struct sgp_error why = {0};
    plan->iid = strcmp(text, "iid") == 0;
    if (plan->iid)
        return 0;
    const int code = sgp_shards_parse(text, &why, &shards);
    if (code < 0 || shards.kind == SGP_SHARD_NONE)
        return sgp_fail(error, SGP_E_CONFIG,
            "'%s' is no way to divide rows; write iid, sorted, dirichlet:A with A from 1e-6 to "
            "1e+6, round-robin or contiguous",
            text);
    plan->shards = shards;
    return 0;
}

/* ---- the owner of each row ---- */

static int deal(
    const struct sgp_sites_plan *plan, uint64_t rows, struct sgp_error *error, uint32_t *owners)
{
    struct sgp_random random;
    uint32_t *order = malloc((size_t)rows * sizeof *order);
    if (!order)
        return sgp_fail(error, -ENOMEM, "out of memory");
    for (uint64_t r = 0; r < rows; r++)
        order[r] = (uint32_t)r;
    sgp_random_init(&random, plan->seed, STREAM_IID);
    sgp_random_shuffle(&random, order, rows);
    for (uint64_t i = 0; i < rows; i++)
        owners[order[i]] = (uint32_t)(i % plan->count);
    free(order);
    return 0;
}

/* The first of the sites that have most rows. */
static uint32_t largest(const uint64_t *sizes, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        best = sizes[i] > sizes[best] ? i : best;
    return best;
}

/* Give each site that has no row the last one of the largest site. */
static int fill(uint32_t *owners, uint64_t rows, uint32_t count, struct sgp_error *error)
{
    uint64_t *sizes = calloc(count, sizeof *sizes);
    if (!sizes)
        return sgp_fail(error, -ENOMEM, "out of memory");
    for (uint64_t r = 0; r < rows; r++)
        sizes[owners[r]]++;
    for (uint32_t site = 0; site < count; site++) {
        if (sizes[site] > 0)
            continue;
        const uint32_t giver = largest(sizes, count);
        uint64_t row = rows - 1;
        while (owners[row] != giver)
            row--;
        owners[row] = site;
        sizes[giver]--;
        sizes[site]++;
    }
    free(sizes);
    return 0;
}

int sgp_sites_owners(const struct sgp_sites_plan *plan, const uint32_t *labels, uint64_t rows,
    uint32_t classes, struct sgp_error *error, uint32_t *ret_owners)
{
    sgp_assert(plan->count >= 1);
    if (rows < plan->count)
        return sgp_fail(error, SGP_E_DATA,
            "%llu rows are left to train on, and each of %u sites needs one; take fewer sites or "
            "hold out less",
            (unsigned long long)rows, plan->count);
    int code = plan->iid ? deal(plan, rows, error, ret_owners)
                         : sgp_shard_owners(&plan->shards, labels, rows, classes, plan->count,
                               plan->seed, error, ret_owners);
    return code < 0 ? code : fill(ret_owners, rows, plan->count, error);
}

/* ---- numbers as classes ---- */

struct ranked {
    float value;
    uint32_t row;
};

static int by_value(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    const int order = (a->value > b->value) - (a->value < b->value);
    return order != 0 ? order : (a->row > b->row) - (a->row < b->row);
}

/* The tenth of each row, by the first label column. The caller frees; NULL: no memory. */
static uint32_t *cut_tenths(const struct sgp_dataset *table)
{
    struct ranked *ranked = malloc(table->rows * sizeof *ranked);
    uint32_t *labels = malloc(table->rows * sizeof *labels);
    if (!ranked || !labels) {
        free(ranked);
        free(labels);
        return NULL;
    }
    for (uint64_t r = 0; r < table->rows; r++)
        ranked[r] = (struct ranked){table->values[r * table->targets], (uint32_t)r};
    qsort(ranked, table->rows, sizeof *ranked, by_value);
    for (uint64_t i = 0; i < table->rows; i++)
        labels[ranked[i].row] = (uint32_t)(i * SGP_SITES_TENTHS / table->rows);
    free(ranked);
    return labels;
}

/* ---- the tables of the sites ---- */

/* The rows of one site; `picked` has room for all. */
static int pick(const struct sgp_dataset *all, const uint32_t *owners, uint32_t site,
    uint32_t *picked, struct sgp_dataset **ret_rows)
{
    uint64_t count = 0;
    for (uint64_t r = 0; r < all->rows; r++)
        if (owners[r] == site)
            picked[count++] = (uint32_t)r;
    return sgp_dataset_subset(all, picked, count, ret_rows);
}

static int give(const struct sgp_sites_plan *plan, struct sgp_error *error, struct sgp_sites *sites)
{
    const struct sgp_dataset *all = sites->all;
    uint32_t *tenths = all->classes > 0 ? NULL : cut_tenths(all);
    uint32_t *owners = malloc(2 * all->rows * sizeof *owners);
    sites->rows = calloc(plan->count, sizeof *sites->rows);
    int code = owners && sites->rows && (tenths || all->classes > 0)
                   ? sgp_sites_owners(plan, tenths ? tenths : all->labels, all->rows,
                         tenths ? SGP_SITES_TENTHS : all->classes, error, owners)
                   : sgp_fail(error, -ENOMEM, "out of memory");
    for (uint32_t site = 0; site < plan->count && code == 0; site++) {
        code = pick(all, owners, site, owners + all->rows, &sites->rows[site]);
        sites->count += code == 0;
        if (code < 0)
            (void)sgp_fail(error, code, "out of memory");
    }
    free(owners);
    free(tenths);
    return code;
}

int sgp_sites_divide(const struct sgp_sites_plan *plan, const struct sgp_dataset *table,
    struct sgp_error *error, struct sgp_sites *ret_sites)
{
    struct sgp_sites sites = {0};
    sgp_assert(plan->holdout > 0 && plan->holdout < 1 && table->targets > 0);
    if (table->rows < 2)
        return sgp_fail(error, SGP_E_DATA, "one row cannot be divided; have more rows");
    int code =
        sgp_dataset_split(table, plan->holdout, plan->seed, STREAM_SITES, &sites.all, &sites.held);
    code = code < 0 ? sgp_fail(error, code, "out of memory") : give(plan, error, &sites);
    if (code < 0)
        sgp_sites_finish(&sites);
    else
        *ret_sites = sites;
    return code;
}

void sgp_sites_finish(struct sgp_sites *sites)
{
    for (uint32_t i = 0; i < sites->count; i++)
        sgp_dataset_destroy(sites->rows[i]);
    free(sites->rows);
    sgp_dataset_destroy(sites->all);
    sgp_dataset_destroy(sites->held);
    *sites = (struct sgp_sites){0};
}
