/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of entries by time. Entries of equal time keep the order in which they were pushed.
 *
 * Time never goes backward: no entry may be pushed with a time before the entry popped last. So an
 * entry needs no exact place before its time (a radix heap: Ahuja, Mehlhorn, Orlin and Tarjan, J.
 * ACM 37(2), 1990). An entry waits in the bucket of the highest bit in which its time differs from
 * the present. As the present approaches, it moves to lower buckets, at most once for each bit. A
 * push is O(1), however many entries wait. Entries of equal time move together. Within a bucket the
 * order of pushes is kept. A push can fail, a pop cannot. One thread. */
#ifndef SGP_BASE_QUEUE_H
#define SGP_BASE_QUEUE_H

#include "sgp/types.h"

struct sgp_queue_entry {
    sgp_time time; /* >= 0 */
    uint64_t item; /* chosen by the caller: an index, or a pointer through uintptr_t */
};

struct sgp_queue_cell {
    struct sgp_queue_entry entry;
    uint32_t next; /* next cell in the bucket, or next unused cell; not set in the last */
};

struct sgp_queue_bucket {
    uint32_t first, last;
    sgp_time least; /* the least of its times */
};

/* 0: due at `now`; b: bit b - 1 is the highest that differs from `now` */
#define SGP_QUEUE_BUCKETS 64

struct sgp_queue {
    struct sgp_queue_cell *cells;
    uint32_t count, capacity;
    uint32_t fresh;  /* cells from this index on were never used */
    uint32_t unused; /* the first unused cell below `fresh`, while count < fresh */
    sgp_time now;    /* time of the entry popped last; 0 before */
    uint64_t filled; /* bit b: bucket b is not empty; only then its contents are valid */
    struct sgp_queue_bucket buckets[SGP_QUEUE_BUCKETS];
};

/* Initialise an empty queue, with room for `capacity` entries (0: none yet). Returns 0 or
 * -ENOMEM. */
int sgp_queue_init(struct sgp_queue *queue, uint32_t capacity);
void sgp_queue_finish(struct sgp_queue *queue);

/* Add an item due at `time`, which must not be before the entry popped last. Returns 0, or -ENOMEM
 * with the queue unchanged. */
int sgp_queue_push(struct sgp_queue *queue, sgp_time time, uint64_t item);

/* The time of the earliest entry. SGP_TIME_NEVER: there is none. */
sgp_time sgp_queue_next(const struct sgp_queue *queue);

/* Remove the earliest entry. The queue must not be empty. */
struct sgp_queue_entry sgp_queue_pop(struct sgp_queue *queue);

#endif
