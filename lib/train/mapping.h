/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is mapped into memory for reading, shared by the tables whose rows lie in it. Its
 * pages belong to the page cache, so the kernel takes them back when memory is short. The file must
 * not shrink while it is mapped. Any thread. */
#ifndef SGP_TRAIN_MAPPING_H
#define SGP_TRAIN_MAPPING_H

#include <stddef.h>

struct sgp_mapping;

/* Map the first `size` bytes, at least one, of an open file, which may be closed afterwards. The
 * caller is the first holder. -ENOMEM, -errno. */
int sgp_mapping_create(int fd, size_t size, struct sgp_mapping **ret_mapping);

const void *sgp_mapping_bytes(const struct sgp_mapping *mapping);

size_t sgp_mapping_size(const struct sgp_mapping *mapping);

/* One more holder; NULL is fine. Returns the mapping. */
struct sgp_mapping *sgp_mapping_hold(struct sgp_mapping *mapping);

/* One holder less; without holders the mapping ends. NULL is fine. */
void sgp_mapping_release(struct sgp_mapping *mapping);

#endif
