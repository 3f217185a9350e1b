/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two topology files (differences.c). Both are written in one way first, so
 * comments and layout do not count, and everything that a daemon reads does. */
#ifndef CTL_DIFFERENCES_H
#define CTL_DIFFERENCES_H

#include "topology.h"

struct ctl_differences {
    const char *before, *after;           /* texts of topology files */
    const char *before_name, *after_name; /* for a person */
};

/* {"added", "struck", "changed": names of nodes; "differences": lines of `diff -u`}. `changed`:
 * another address, key or role. The caller releases *ret_json; NULL after an error. */
enum ctl_exit ctl_differences_json(
    struct ctl *ctl, const struct ctl_differences *sides, json_t **ret_json);

/* The members of that object as text; nothing if it has none of them. */
void ctl_differences_print(const json_t *json, FILE *file);

#endif
