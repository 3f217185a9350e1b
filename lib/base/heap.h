/* A queue of things to happen, by time; what was pushed first comes first among equals.
 *
 * A binary min-heap on (time, sequence). The sequence number is given at the push, so equal runs pop
 * in equal order. Grows by doubling; a push can fail, a pop cannot. One thread. */
#ifndef SGP_BASE_HEAP_H
#define SGP_BASE_HEAP_H

#include "sgp/types.h"

struct sgp_heap_entry {
    sgp_time time;
    uint64_t sequence;
    uint64_t item; /* the caller's: an index, or a pointer through uintptr_t */
};

struct sgp_heap {
    struct sgp_heap_entry *entries;
    size_t count;
    size_t capacity;
    uint64_t sequence; /* of the next push */
};

/* Start empty, with room for `capacity` entries (0: none yet). Returns 0 or -ENOMEM. */
int sgp_heap_init(struct sgp_heap *heap, size_t capacity);
void sgp_heap_finish(struct sgp_heap *heap);

/* Add an item due at `time`. O(log count). Returns 0, or -ENOMEM with the heap as it was. */
int sgp_heap_push(struct sgp_heap *heap, sgp_time time, uint64_t item);

/* The earliest entry, NULL if there is none; valid until the next push or pop. */
const struct sgp_heap_entry *sgp_heap_first(const struct sgp_heap *heap);

/* Take the earliest entry off. O(log count). The heap must not be empty. */
struct sgp_heap_entry sgp_heap_pop(struct sgp_heap *heap);

#endif
