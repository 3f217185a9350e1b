/* SPDX-License-Identifier: Apache-2.0 */
/* What each path of the control server does. Thread: the loop thread. */
#ifndef SGPD_ENDPOINTS_H
#define SGPD_ENDPOINTS_H

#include "http.h"

extern const struct endpoint endpoints[];
extern const size_t endpoint_count;

#endif
