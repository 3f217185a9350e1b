/* SPDX-License-Identifier: Apache-2.0 */
/* Measures for a person. */
#ifndef CTL_MEASURES_H
#define CTL_MEASURES_H

#include "ctl.h"

/* Print the figures of each class or column, and the confusion matrix of at most
 * CTL_CONFUSION_CLASSES classes, of an object of lib/train/measures_json.h. */
#define CTL_CONFUSION_CLASSES 20u
void ctl_measures_print(const json_t *measures, FILE *file);

#endif
