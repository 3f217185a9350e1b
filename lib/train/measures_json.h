/* SPDX-License-Identifier: Apache-2.0 */
/* Measures as JSON, for the answers of sgpctl and of the daemon. Any thread; no state. */
#ifndef SGP_TRAIN_MEASURES_JSON_H
#define SGP_TRAIN_MEASURES_JSON_H

#include "sgp/measures.h"

#include <jansson.h>

/* An object, which the caller releases; NULL without memory. `names` are those of the outputs, or
 * NULL for their numbers. A figure that does not exist has no key.
 *
 *   rows, accuracy, log_loss, macro_f1, macro_auc, calibration_error,
 *   r2, absolute_error, squared_error
 *   classes      [{class, rows, said, correct, precision, recall, f1, auc, auc_bound}]
 *   confusion    [[rows of class 0 by the class that the model says], ...]
 *   calibration  [{from, to, rows, correct, confidence}], parts that have rows
 *   columns      [{column, r2, absolute_error, squared_error}] */
json_t *sgp_measures_json(const struct sgp_measures *measures, const char *const *names);

#endif
