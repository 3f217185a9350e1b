/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of a node between two steps. */
#ifndef SGP_CORE_CHECK_H
#define SGP_CORE_CHECK_H

#include "core/core.h"

/* The first invariant that is violated, in words. NULL: none is. Reads only. */
const char *sgp_core_flaw(const struct sgp_node *node);

/* Whether the effects of a step are in the ranges on which performers rely. Reads only. */
bool sgp_core_effects_are_sound(const struct sgp_node *node, const struct sgp_effects *effects);

/* In builds with -Dchecked=true a violation ends the process. The user's build continues, because a
 * defect of the program is no reason to lose the user's training. */
#define sgp_check(expression) sgp_assert(!SGP_CHECKED || (expression))
static inline void sgp_core_check(const struct sgp_node *node)
{
    const char *flaw = SGP_CHECKED ? sgp_core_flaw(node) : NULL;
    if (flaw != NULL)
        sgp_assert_failed(flaw, __FILE__, __LINE__);
}

#endif
