/* SPDX-License-Identifier: Apache-2.0 */
/* How a run fails: one line, with the time and the seed. The first failure is kept. */
#include "sim/world.h"

#include <stdarg.h>
#include <stdio.h>

void sgp_sim_fail(struct sgp_sim *sim, int code, const char *format, ...)
{
    char text[SGP_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)sgp_fail(&sim->error, code, "at %.6f s of virtual time, seed %llu: %s",
        (double)sim->now / (double)SGP_SECOND, (unsigned long long)sim->options.seed, text);
}
