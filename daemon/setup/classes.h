/* SPDX-License-Identifier: Apache-2.0 */
/* Names of classes in one text: separated by blanks and commas; a name that holds one of these stands in
 * "quotes", in which a quote is written twice. Thread: any; nothing here keeps state. */
#ifndef SGPD_CLASSES_H
#define SGPD_CLASSES_H

#include "sgp/status.h"

/* The names, ended by classes_free; NULL and 0: none. Or SGP_E_CONFIG and why, or -ENOMEM. */
int classes_split(
    const char *text, struct sgp_error *error, char ***ret_names, uint32_t *ret_count);
void classes_free(char **names, uint32_t count); /* NULL is fine */

/* The inverse, with quotes only where they must be: what was split from `capacity` bytes fits. */
void classes_join(char *const *names, uint32_t count, char *text, size_t capacity);

#endif
