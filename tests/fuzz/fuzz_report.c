/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the report of a node. A text that is taken is written again as it was, adds up with
 * itself, and has figures that are numbers. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sgp/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_figures(const struct sgp_measures *measures)
{
    double value, bound;
    sgp_assert(!sgp_measures_accuracy(measures, &value) || (value >= 0 && value <= 1));
    sgp_assert(!sgp_measures_macro_f1(measures, &value) || (value >= 0 && value <= 1));
    sgp_assert(!sgp_measures_macro_auc(measures, &value) || (value >= 0 && value <= 1));
    sgp_assert(!sgp_measures_log_loss(measures, &value) || isfinite(value));
    sgp_assert(!sgp_measures_calibration_error(measures, &value) || isfinite(value));
    sgp_assert(!sgp_measures_r2(measures, measures->outputs, &value) || isfinite(value));
    sgp_assert(!sgp_measures_squared_error(measures, measures->outputs, &value) || value >= 0);
    for (uint32_t c = 0; measures->bins != NULL && c < measures->outputs; c++)
        sgp_assert(!sgp_measures_auc(measures, c, &value, &bound) || isfinite(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sgp_report report, head, again;
    char *text = malloc(size + 1), *written = NULL;
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    const int code = sgp_report_read(text, &report);
    const int code_of_head = sgp_report_head(text, &head);
    sgp_assert(code == 0 || code == SGP_E_DATA || code == SGP_E_VERSION || code == -ENOMEM);
    sgp_assert(code < 0 || code_of_head == 0);
    if (code == 0) {
        sgp_assert(sgp_report_write(&report, &written) == 0 && strcmp(text, written) == 0);
        if (report.state == SGP_REPORT_MEASURED) {
            sgp_assert(
                strlen(text) <= sgp_report_bytes(report.measures.kind, report.measures.outputs));
            sgp_assert(sgp_report_read(written, &again) == 0);
            expect_figures(&report.measures);
            sgp_measures_add(&report.measures, &again.measures);
            expect_figures(&report.measures);
            sgp_measures_finish(&again.measures);
        }
        sgp_measures_finish(&report.measures);
        free(written);
    }
    free(text);
    return 0;
}
