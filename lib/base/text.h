/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to sgpd: text of outside origin that is shown to a person. */
#ifndef SGP_BASE_TEXT_H
#define SGP_BASE_TEXT_H

#define SGP_WORD_BYTES 40u /* a longer word is no misspelling of a name of sgp */

/* Replace each control character of ASCII, and of Unicode (U+0080 to U+009F), by '?'. So hostile
 * input cannot forge log lines, or control a terminal. */
void sgp_text_clean(char *text);

/* The number of letters that must be inserted, removed, replaced or exchanged with the next one to
 * turn a into b. Upper and lower case are equal (optimal string alignment distance: Boytsov, ACM J.
 * Exp. Algorithmics 16, 2011, section 2). A word of SGP_WORD_BYTES or more has the distance
 * SGP_WORD_BYTES to every word. */
unsigned sgp_text_distance(const char *a, const char *b);

#endif
