/* SPDX-License-Identifier: Apache-2.0 */
/* The text of class weights as numbers; see sgp/loss.h. Owns nothing after it returns. */
#include "sgp/loss.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS " \t,"
#define DIGITS "0123456789.eE+-" /* strtod would also accept hexadecimal, "inf" and "nan" */

/* Read the number at *text, which is not at its end. */
static int read_weight(const char **text, struct sgp_error *error, float *weight)
{
    char *end;
    const size_t length = strcspn(*text, SEPARATORS);
    const double number = strtod(*text, &end);
    if (strspn(*text, DIGITS) < length || end != *text + length || !isfinite(number))
        return sgp_fail(error, SGP_E_CONFIG,
            "'%.*s' is not a number; list one number for each class, for example 1, 2.5, 1",
            length < 32 ? (int)length : 32, *text);
    *weight = (float)number;
    *text = end;
    return 0;
}

int sgp_class_weights_parse(
    const char *text, struct sgp_error *error, float **ret_weights, uint32_t *ret_count)
{
    /* each number takes at least two bytes with its separator */
    float *weights = malloc((strlen(text) / 2 + 1) * sizeof *weights);
    uint32_t count = 0;
    int code = weights ? 0 : sgp_fail(error, -ENOMEM, "out of memory");
    while (code == 0 && *(text += strspn(text, SEPARATORS))) {
        code = count < SGP_CLASSES_MAX
                   ? read_weight(&text, error, &weights[count])
                   : sgp_fail(error, SGP_E_CONFIG, "more than %u class weights", SGP_CLASSES_MAX);
        count++;
    }
    if (code < 0 || count == 0) {
        free(weights);
        weights = NULL;
    }
    if (code < 0)
        return code;
    *ret_weights = weights;
    *ret_count = count;
    return 0;
}
