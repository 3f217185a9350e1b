/* SPDX-License-Identifier: Apache-2.0 */
/* Names of classes in one text: separated by blanks and commas; a name that holds one of these stands in
 * "quotes", in which a quote is written twice. Thread: any; nothing here keeps state. */
#ifndef SGPD_CLASSES_H
#define SGPD_CLASSES_H

#include "sgp/status.h"

/* The names in their order, for the caller to end with classes_free; NULL and 0 if there are none.
 * SGP_E_CONFIG with what is wrong, or -ENOMEM; then nothing is returned. */
int classes_split(
    const char *text, struct sgp_error *error, char ***ret_names, uint32_t *ret_count);
void classes_free(char **names, uint32_t count); /* NULL is fine */

/* The other way round, into text[0..capacity): classes_split gives the same names. Quotes stand only where
 * they must, so names that were split from a text of `capacity` bytes fit (asserted). */
void classes_join(char *const *names, uint32_t count, char *text, size_t capacity);

#endif
