/* SPDX-License-Identifier: Apache-2.0 */
/* Names in one text. Class names are separated by blanks and commas, column names by commas alone.
 * A name that contains a separator must be in "quotes", in which a quote is written twice. Thread:
 * any; nothing here keeps state. */
#ifndef SGP_TRAIN_NAMES_H
#define SGP_TRAIN_NAMES_H

#include "sgp/status.h"

#define SGP_NAMES_CLASSES " \t,"
#define SGP_NAMES_COLUMNS ","

/* Split a text with one of these separators into names, which sgp_names_free frees. NULL and 0:
 * none. Blanks around a name do not belong to it. Otherwise returns SGP_E_CONFIG with a reason, or
 * -ENOMEM. */
int sgp_names_split(const char *text, const char *separators, struct sgp_error *error,
    char ***ret_names, uint32_t *ret_count);
void sgp_names_free(char **names, uint32_t count); /* NULL is fine */

/* Join names to a text that splits into the same class names. Quotes are used only where they are
 * needed. Returns whether the text fits. */
bool sgp_names_join(char *const *names, uint32_t count, char *text, size_t capacity);

#endif
