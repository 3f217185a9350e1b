/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue: a radix heap of linked cells. One thread. */
#include "base/queue.h"
#include "sgp/status.h"

#include <errno.h>
#include <stdlib.h>

#define SGP_QUEUE_CAPACITY_LEAST 64u

static int reserve(struct sgp_queue *queue, uint64_t capacity)
{
    if (capacity > UINT32_MAX)
        return -ENOMEM;
    struct sgp_queue_cell *cells = realloc(queue->cells, capacity * sizeof *cells);
    if (!cells)
        return -ENOMEM;
    queue->cells = cells;
    queue->capacity = (uint32_t)capacity;
    return 0;
}

int sgp_queue_init(struct sgp_queue *queue, uint32_t capacity)
{
    *queue = (struct sgp_queue){0};
    return capacity ? reserve(queue, capacity) : 0;
}

void sgp_queue_finish(struct sgp_queue *queue)
{
    free(queue->cells);
    *queue = (struct sgp_queue){0};
}

static uint32_t bucket_of(const struct sgp_queue *queue, sgp_time time)
{
    uint64_t differs = (uint64_t)time ^ (uint64_t)queue->now;
    return differs ? 64u - (uint32_t)__builtin_clzll(differs) : 0;
}

static void append(struct sgp_queue *queue, uint32_t index)
{
    sgp_time time = queue->cells[index].entry.time;
    uint32_t number = bucket_of(queue, time);
    sgp_assert(number < SGP_QUEUE_BUCKETS); /* a time is not negative */
    struct sgp_queue_bucket *bucket = &queue->buckets[number];
    if (queue->filled >> number & 1) {
        queue->cells[bucket->last].next = index;
        bucket->last = index;
        bucket->least = time < bucket->least ? time : bucket->least;
    } else {
        *bucket = (struct sgp_queue_bucket){.first = index, .last = index, .least = time};
        queue->filled |= (uint64_t)1 << number;
    }
}

int sgp_queue_push(struct sgp_queue *queue, sgp_time time, uint64_t item)
{
    sgp_assert(time >= queue->now);
    if (queue->count == queue->capacity) {
        int error = reserve(
            queue, queue->capacity ? 2 * (uint64_t)queue->capacity : SGP_QUEUE_CAPACITY_LEAST);
        if (error)
            return error;
    }
    uint32_t index = queue->fresh;
    if (queue->count < queue->fresh) {
        index = queue->unused;
        queue->unused = queue->cells[index].next;
    } else {
        queue->fresh++;
    }
    queue->count++;
    queue->cells[index].entry = (struct sgp_queue_entry){.time = time, .item = item};
    append(queue, index);
    return 0;
}

/* The first bucket that is not empty. All its entries precede those of later buckets. */
static uint32_t first_bucket(const struct sgp_queue *queue)
{
    return (uint32_t)__builtin_ctzll(queue->filled);
}

sgp_time sgp_queue_next(const struct sgp_queue *queue)
{
    return queue->count > 0 ? queue->buckets[first_bucket(queue)].least : SGP_TIME_NEVER;
}

/* Advance to the earliest time of a bucket, and spread its entries. They differ from that time in a
 * lower bit, and all lower buckets are empty. So the entries keep their order there. */
static void spread(struct sgp_queue *queue, uint32_t number)
{
    struct sgp_queue_bucket bucket = queue->buckets[number];
    queue->now = bucket.least;
    queue->filled &= ~((uint64_t)1 << number);
    for (uint32_t index = bucket.first, next;; index = next) {
        next = queue->cells[index].next;
        append(queue, index);
        if (index == bucket.last)
            return;
    }
}

struct sgp_queue_entry sgp_queue_pop(struct sgp_queue *queue)
{
    sgp_assert(queue->count > 0);
    uint32_t number = first_bucket(queue);
    if (number > 0)
        spread(queue, number);
    struct sgp_queue_bucket *due = &queue->buckets[0];
    uint32_t index = due->first;
    struct sgp_queue_cell *cell = &queue->cells[index];
    if (index == due->last)
        queue->filled &= ~(uint64_t)1;
    due->first = cell->next;
    cell->next = queue->unused;
    queue->unused = index;
    queue->count--;
    return cell->entry;
}
