/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of a node between two steps. */
#ifndef SGP_CORE_CHECK_H
#define SGP_CORE_CHECK_H

#include "core/core.h"

/* The first thing that should hold and does not, in words; NULL: all is well. Reads only. */
const char *sgp_core_flaw(const struct sgp_node *node);

/* Whether what a step asks for is in the ranges that performers rely on. Reads only. */
bool sgp_core_effects_are_sound(const struct sgp_node *node, const struct sgp_effects *effects);

/* In builds with -Dchecked=true the end of the process, unless it is so. What users run goes on: a flaw of
 * ours is no reason to lose their training. */
#define sgp_check(expression) sgp_assert(!SGP_CHECKED || (expression))
static inline void sgp_core_check(const struct sgp_node *node)
{
    const char *flaw = SGP_CHECKED ? sgp_core_flaw(node) : NULL;
    if (flaw != NULL)
        sgp_assert_failed(flaw, __FILE__, __LINE__);
}

#endif
