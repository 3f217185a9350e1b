/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the library: text that came from outside and goes to a person. */
#ifndef SGP_BASE_TEXT_H
#define SGP_BASE_TEXT_H

/* Replace control characters by '?', so that hostile input cannot forge log lines. */
void sgp_text_clean(char *text);

#endif
