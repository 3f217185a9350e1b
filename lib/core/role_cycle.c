/* SPDX-License-Identifier: Apache-2.0 */
/* The role of a node within an exact cycle: everybody is waited for, and shares are what the file says.
 * The rule: docs/rules/cycle.md */
#include "core/core.h"

const struct sgp_role sgp_role_cycle = {
    .name = "cycle",
    .collective = true,
    .gives_always = true,
};
