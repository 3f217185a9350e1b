/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a survey. Thread: any. */
#ifndef SGPD_MEMBERS_H
#define SGPD_MEMBERS_H

#include "sgp/survey.h"
#include "sgp/topology.h"

/* The survey uses this topology file: its members are the nodes that train, in the order of the
 * file. 0 or -ENOMEM. */
int members_use(struct sgp_survey *survey, const struct sgp_topology *topology);

#endif
