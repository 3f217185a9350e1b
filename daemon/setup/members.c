/* SPDX-License-Identifier: Apache-2.0 */
/* See members.h. */
#include "members.h"

#include <errno.h>
#include <stdlib.h>

int members_use(struct sgp_survey *survey, const struct sgp_topology *topology)
{
    const char **members = calloc(topology->node_count, sizeof *members);
    struct sgp_survey_file file = {.members = members, .version = topology->version};
    if (members == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (!topology->nodes[i].relay)
            members[file.count++] = topology->nodes[i].name;
    const int code = sgp_survey_use(survey, &file);
    free(members);
    return code;
}
