/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the text of a row of the fleet. A row that is read is written as a text that is read
 * as the same row. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sgp/fleet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sgp_fleet_row row, again;
    char written[SGP_ROW_TEXT_BYTES], once_more[SGP_ROW_TEXT_BYTES];
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    const int code = sgp_fleet_row_read(text, &row);
    sgp_assert(code == 0 || code == SGP_E_DATA || code == SGP_E_VERSION);
    if (code == 0) {
        sgp_assert(row.interval_ms >= 1 && row.interval_ms <= SGP_FLEET_INTERVAL_MAX);
        sgp_fleet_row_write(&row, written);
        sgp_assert(sgp_fleet_row_read(written, &again) == 0);
        sgp_fleet_row_write(&again, once_more);
        sgp_assert(strcmp(written, once_more) == 0);
    }
    free(text);
    return 0;
}
