/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3-64 for payloads. Includes xxhash.h. If libxxhash was built to choose vectors at run time,
 * the widest vectors of the processor are used. Debian's libxxhash is; without this, it would use
 * the vectors that every x86-64 has. The sums are the same. */
#ifndef SGPD_CHECKSUM_H
#define SGPD_CHECKSUM_H

#include <xxhash.h>

#ifdef SGPD_XXHASH_DISPATCH
#include <xxh_x86dispatch.h> /* redefines XXH3_64bits and XXH3_64bits_update */
#endif

#endif
