/* SPDX-License-Identifier: Apache-2.0 */
/* Different texts, and in how many rows each of them is: a hash table that owns copies of the
 * texts. All zero at the start. */
#ifndef SGP_TRAIN_COUNTED_H
#define SGP_TRAIN_COUNTED_H

#include "sgp/description.h"

struct sgp_counted {
    struct sgp_column_value *values; /* in the order of their first rows */
    uint32_t count;
    size_t capacity;
    uint32_t *slots; /* 1 + index of a value; 0: free. At most half of them are used. */
    uint32_t slot_count;
    size_t bytes; /* of the values, with their part of the table */
};

enum {
    SGP_COUNTED_AGAIN = 0, /* the text was there */
    SGP_COUNTED_NEW,
    SGP_COUNTED_FULL, /* the text is new, and was not kept */
};

/* Add rows to those of a text. A new text is kept if there are then at most `count_most` texts and
 * `bytes_most` bytes. Returns SGP_COUNTED_* or -ENOMEM. */
int sgp_counted_add(struct sgp_counted *counted, const char *text, uint64_t rows,
    uint32_t count_most, size_t bytes_most);

/* Free the values, or only the table. */
void sgp_counted_finish(struct sgp_counted *counted);
struct sgp_column_value *sgp_counted_take(struct sgp_counted *counted);
void sgp_column_values_free(struct sgp_column_value *values, uint32_t count);

#define SGP_NUMBER_BYTES 32u /* of a number in its shortest form */

/* The shortest text that reads as the same number; that of -0 is "0". */
void sgp_number_text(double number, char text[SGP_NUMBER_BYTES]);

/* For qsort, of values: numbers in their order, before text in the order of its bytes. */
int sgp_column_value_compare(const void *left, const void *right);

#endif
