/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the program. */
#ifndef SGP_VERSION_H
#define SGP_VERSION_H

#include "sgp/types.h"

/* The version and, if built from a clone, the commit: "0.1.0+41c9fdee3c2a". "-dirty" follows if
 * files differed from that commit. One word. Static storage; any thread. */
SGP_API const char *sgp_version(void);

#endif
