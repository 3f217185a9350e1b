/* SPDX-License-Identifier: Apache-2.0 */
/* A table of rows, divided among sites that are simulated on one machine.
 *
 * Some rows are held out first: the model of every site is measured on them. The other rows are
 * given to the sites, each row to one of them. The same plan and table give the same division on
 * every machine, because only integers and exactly rounded arithmetic are used.
 *
 * Thread: any; no function keeps state. Errors are one line. */
#ifndef SGP_SITES_H
#define SGP_SITES_H

#include "sgp/dataset.h"

#define SGP_SITES_TENTHS 10u /* parts of equal size into which numbers are cut, as classes */

/* How rows are given to sites. */
struct sgp_sites_plan {
    bool iid; /* in an order drawn by the seed, in turn; the sizes differ by at most one row */
    struct sgp_shards shards; /* if not iid; every kind but SGP_SHARD_NONE */
    uint32_t count;           /* of sites, from 1 */
    double holdout;           /* the part of the table that is held out, in (0, 1) */
    uint64_t seed;
};

/* Read how rows are given: iid, or as sgp_shards_parse but none. Sets `iid` and `shards` of *plan.
 * Returns 0, or SGP_E_CONFIG with the words that would be right. */
int sgp_sites_parse(const char *text, struct sgp_error *error, struct sgp_sites_plan *plan);

/* The site of every row, ret_owners[rows]. `labels` are below `classes`; NULL if the plan needs
 * none. Every site has a row: if a draw leaves a site without one, that site takes the last row of
 * the site that has most rows. Returns 0; SGP_E_DATA if there are fewer rows than sites;
 * SGP_E_CONFIG if the plan needs labels; -ENOMEM. */
int sgp_sites_owners(const struct sgp_sites_plan *plan, const uint32_t *labels, uint64_t rows,
    uint32_t classes, struct sgp_error *error, uint32_t *ret_owners);

/* A divided table. */
struct sgp_sites {
    uint32_t count;
    struct sgp_dataset **rows; /* of each site, in the order of the table */
    struct sgp_dataset *all;   /* the rows of all sites together */
    struct sgp_dataset *held;  /* the rows of none */
};

/* Divide a table, which may be destroyed afterwards. A label that is a number is cut into tenths:
 * the tenth of the rows with the least numbers is one class, and so on. Of several label columns
 * the first decides. The caller calls sgp_sites_finish. Errors as sgp_sites_owners. */
int sgp_sites_divide(const struct sgp_sites_plan *plan, const struct sgp_dataset *table,
    struct sgp_error *error, struct sgp_sites *ret_sites);

/* Free; zeros are fine. */
void sgp_sites_finish(struct sgp_sites *sites);

#endif
