/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of things to happen, by time; what was pushed first comes first among equals.
 *
 * Time never goes back: nothing may be pushed for before the entry popped last. So an entry needs no
 * exact place before its time comes (a radix heap: Ahuja, Mehlhorn, Orlin and Tarjan, J. ACM 37(2),
 * 1990): it waits in the bucket of the highest bit in which its time differs from the present, and
 * moves to a lower one when the present comes nearer, at most once for each bit. A push is O(1) however
 * many wait, and a thousand entries of one moment move together. Within a bucket the order of pushes
 * stays. A push can fail, a pop cannot. One thread. */
#ifndef SGP_BASE_QUEUE_H
#define SGP_BASE_QUEUE_H

#include "sgp/types.h"

struct sgp_queue_entry {
    sgp_time time; /* >= 0 */
    uint64_t item; /* the caller's: an index, or a pointer through uintptr_t */
};

struct sgp_queue_cell {
    struct sgp_queue_entry entry;
    uint32_t next; /* in its bucket, or of the unused cells; not set in the last */
};

struct sgp_queue_bucket {
    uint32_t first, last;
    sgp_time least; /* of its times */
};

#define SGP_QUEUE_BUCKETS 64 /* 0: due at `now`; b: bit b - 1 is the highest that differs from it */

struct sgp_queue {
    struct sgp_queue_cell *cells;
    uint32_t count, capacity;
    uint32_t fresh;  /* cells from here on were never used; of the others */
    uint32_t unused; /* the first unused, while count < fresh */
    sgp_time now;    /* of the entry popped last; 0 before */
    uint64_t filled; /* bit b: bucket b is not empty; only then does it say anything */
    struct sgp_queue_bucket buckets[SGP_QUEUE_BUCKETS];
};

/* Start empty, with room for `capacity` entries (0: none yet). Returns 0 or -ENOMEM. */
int sgp_queue_init(struct sgp_queue *queue, uint32_t capacity);
void sgp_queue_finish(struct sgp_queue *queue);

/* Add an item due at `time`, not before the entry popped last. Returns 0, or -ENOMEM with the queue as
 * it was. */
int sgp_queue_push(struct sgp_queue *queue, sgp_time time, uint64_t item);

/* When the earliest entry is due; SGP_TIME_NEVER if there is none. */
sgp_time sgp_queue_next(const struct sgp_queue *queue);

/* Take the earliest entry off. The queue must not be empty. */
struct sgp_queue_entry sgp_queue_pop(struct sgp_queue *queue);

#endif
