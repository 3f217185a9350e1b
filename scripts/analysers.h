/* SPDX-License-Identifier: Apache-2.0 */
/* What the analysers of clang and gcc must know; .clang-tidy and `scripts/setup` (build-analyzer)
 * include this file before each source. An analyser does not follow a call into another file, so it
 * takes a result of sgp_fail for a success as well. */
#ifndef SGP_ANALYSERS_H
#define SGP_ANALYSERS_H

#include "sgp/status.h"

static inline int sgp_negative(int code)
{
    sgp_assert(code < 0);
    return code;
}
#define sgp_fail(...) sgp_negative(sgp_fail(__VA_ARGS__))

#endif
