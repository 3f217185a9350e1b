/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3-64 for payloads: xxhash.h, with the widest vectors that the processor has where libxxhash was built
 * to choose them when the program runs; Debian's is, and would otherwise use those of every x86-64. The
 * sums are the same. */
#ifndef SGPD_CHECKSUM_H
#define SGPD_CHECKSUM_H

#include <xxhash.h>

#ifdef SGPD_XXHASH_DISPATCH
#include <xxh_x86dispatch.h> /* redefines XXH3_64bits and XXH3_64bits_update */
#endif

#endif
