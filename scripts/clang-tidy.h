/* SPDX-License-Identifier: Apache-2.0 */
/* What clang's analyser must know; .clang-tidy includes this file before each source. The analyser
 * does not follow a function with variable arguments, so it takes a result of sgp_fail for a
 * success as well. */
#ifndef SGP_CLANG_TIDY_H
#define SGP_CLANG_TIDY_H

#include "sgp/status.h"

static inline int sgp_negative(int code)
{
    sgp_assert(code < 0);
    return code;
}
#define sgp_fail(...) sgp_negative(sgp_fail(__VA_ARGS__))

#endif
