/* The event queue's binary min-heap: children of i at 2i+1 and 2i+2. One thread. */
#include "base/heap.h"
#include "sgp/status.h"

#include <errno.h>
#include <stdlib.h>

#define SGP_HEAP_CAPACITY_LEAST 64u

static bool earlier(const struct sgp_heap_entry *a, const struct sgp_heap_entry *b)
{
    return a->time != b->time ? a->time < b->time : a->sequence < b->sequence;
}

static int reserve(struct sgp_heap *heap, size_t capacity)
{
    if (capacity > SIZE_MAX / sizeof *heap->entries)
        return -ENOMEM;
    struct sgp_heap_entry *entries = realloc(heap->entries, capacity * sizeof *entries);
    if (!entries)
        return -ENOMEM;
    heap->entries = entries;
    heap->capacity = capacity;
    return 0;
}

int sgp_heap_init(struct sgp_heap *heap, size_t capacity)
{
    *heap = (struct sgp_heap){0};
    return capacity ? reserve(heap, capacity) : 0;
}

void sgp_heap_finish(struct sgp_heap *heap)
{
    free(heap->entries);
    *heap = (struct sgp_heap){0};
}

int sgp_heap_push(struct sgp_heap *heap, sgp_time time, uint64_t item)
{
    if (heap->count == heap->capacity) {
        int error = reserve(heap, heap->capacity ? heap->capacity * 2 : SGP_HEAP_CAPACITY_LEAST);
        if (error)
            return error;
    }
    struct sgp_heap_entry entry = {.time = time, .sequence = heap->sequence++, .item = item};
    size_t hole = heap->count++;
    while (hole > 0) {
        size_t parent = (hole - 1) / 2;
        if (!earlier(&entry, &heap->entries[parent]))
            break;
        heap->entries[hole] = heap->entries[parent];
        hole = parent;
    }
    heap->entries[hole] = entry;
    return 0;
}

const struct sgp_heap_entry *sgp_heap_first(const struct sgp_heap *heap)
{
    return heap->count ? &heap->entries[0] : NULL;
}

struct sgp_heap_entry sgp_heap_pop(struct sgp_heap *heap)
{
    sgp_assert(heap->count > 0);
    struct sgp_heap_entry first = heap->entries[0];
    struct sgp_heap_entry last = heap->entries[--heap->count];
    size_t hole = 0;
    for (;;) {
        size_t child = 2 * hole + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && earlier(&heap->entries[child + 1], &heap->entries[child]))
            child++;
        if (!earlier(&heap->entries[child], &last))
            break;
        heap->entries[hole] = heap->entries[child];
        hole = child;
    }
    if (heap->count > 0)
        heap->entries[hole] = last;
    return first;
}
