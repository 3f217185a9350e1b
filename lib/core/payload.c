/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a payload can be of a model like ours; see sgp/payload.h.
 * The rule: docs/rules/mass.md */
#include "sgp/payload.h"

#include "sgp/status.h"

#include <math.h>

int sgp_payload_judge(float largest, double unit, double own)
{
    if (!isfinite(largest))
        return SGP_E_NOT_FINITE;
    bool fits = (double)largest / unit <= SGP_OUTSIZED * fmax(1, own);
    return largest > 0 && !fits ? SGP_E_OUTSIZED : 0;
}
