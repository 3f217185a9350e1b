/* SPDX-License-Identifier: Apache-2.0 */
/* Inside sgpd: text that came from outside and goes to a person. */
#ifndef SGP_BASE_TEXT_H
#define SGP_BASE_TEXT_H

#define SGP_WORD_BYTES 40u /* a longer word is not a misspelt name of ours */

/* Replace control characters by '?', so that hostile input cannot forge log lines. */
void sgp_text_clean(char *text);

/* How many letters must be inserted, removed, replaced or exchanged with the next one to turn a into b; upper and lower
 * case are equal (optimal string alignment distance: Boytsov, ACM J. Exp. Algorithmics 16, 2011, section 2). A word of
 * SGP_WORD_BYTES or more is SGP_WORD_BYTES away from everything. */
unsigned sgp_text_distance(const char *a, const char *b);

#endif
