/* SPDX-License-Identifier: Apache-2.0 */
/* Which payloads are nonsense, whatever their checksums say. */
#include "sgp/payload.h"

#include "sgp/status.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

Test(payload, values_beyond_all_proportion_to_ours_are_refused)
{
    static const struct {
        float largest;
        double unit, own;
        int code;
    } cases[] = {
        {0, 0.5, 0, 0},
        {0, NAN, 0, 0}, /* an empty share has no unit */
        {1, 1, 0, 0},
        {0x1p20F, 1, 0, 0}, /* before the first look, and below 1, ours counts for 1 */
        {0x1.000002p20F, 1, 0, SGP_E_OUTSIZED},
        {0x1.000002p20F, 1, 0.001, SGP_E_OUTSIZED},
        {0x1p19F, 0.5, 0, 0}, /* the estimate counts, not the mass */
        {0x1.000002p19F, 0.5, 1, SGP_E_OUTSIZED},
        {0x1p30F, 1, 0x1p10, 0},
        {0x1.000002p30F, 1, 0x1p10, SGP_E_OUTSIZED},
        {1, 0, 1, SGP_E_OUTSIZED}, /* parameters without weight are no model */
        {INFINITY, 1, 1, SGP_E_NOT_FINITE},
        {NAN, 1, 1, SGP_E_NOT_FINITE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert(eq(int, sgp_payload_judge(cases[i].largest, cases[i].unit, cases[i].own),
                      cases[i].code),
            "case %zu", i);
}
