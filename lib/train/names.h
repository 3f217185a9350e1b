/* SPDX-License-Identifier: Apache-2.0 */
/* Names in one text: those of classes, separated by blanks and commas, or of columns, separated
 * by commas alone. A name that holds a separator stands in "quotes", in which a quote is written
 * twice. Thread: any; nothing here keeps state. */
#ifndef SGP_TRAIN_NAMES_H
#define SGP_TRAIN_NAMES_H

#include "sgp/status.h"

#define SGP_NAMES_CLASSES " \t,"
#define SGP_NAMES_COLUMNS ","

/* The names in a text with one of these separators, ended by sgp_names_free; NULL and 0: none.
 * Blanks around a name do not belong to it. Or SGP_E_CONFIG and why, or -ENOMEM. */
int sgp_names_split(const char *text, const char *separators, struct sgp_error *error,
    char ***ret_names, uint32_t *ret_count);
void sgp_names_free(char **names, uint32_t count); /* NULL is fine */

/* The names as a text that splits into them again as classes do, with quotes only where they
 * must be. Returns whether it fits. */
bool sgp_names_join(char *const *names, uint32_t count, char *text, size_t capacity);

#endif
