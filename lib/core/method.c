/* The one table of methods, and what each wants of a topology. */
#include "sgp/method.h"

#include <string.h>

const struct sgp_method *sgp_method_find(const char *name)
{
    static const struct sgp_method methods[] = {
        {"sgp", 1, SGP_WHAT_PARAMETERS, SGP_WHOM_OUT_NEIGHBOURS, SGP_WHEN_ALL_PROMISED,
            SGP_HOW_IN_ORDER_OF_SOURCE, .publishes_first = false, SGP_WANTS_ANY},
        {"osgp", 2, SGP_WHAT_PARAMETERS, SGP_WHOM_OUT_NEIGHBOURS, SGP_WHEN_OVERDUE,
            SGP_HOW_AS_THEY_COME, .publishes_first = false, SGP_WANTS_ANY},
        {"agp", 3, SGP_WHAT_PARAMETERS, SGP_WHOM_OUT_NEIGHBOURS, SGP_WHEN_NEVER,
            SGP_HOW_AS_THEY_COME, .publishes_first = false, SGP_WANTS_ANY},
        {"dpsgd", 4, SGP_WHAT_PARAMETERS, SGP_WHOM_OUT_NEIGHBOURS, SGP_WHEN_ALL_PROMISED,
            SGP_HOW_IN_ORDER_OF_SOURCE, .publishes_first = true, SGP_WANTS_SYMMETRIC},
        {"adpsgd", 5, SGP_WHAT_PARAMETERS, SGP_WHOM_ONE_BY_LOT, SGP_WHEN_NEVER,
            SGP_HOW_AS_THEY_COME, .publishes_first = false, SGP_WANTS_REVERSES},
    };
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

int sgp_method_suit(const struct sgp_method *method, struct sgp_topology *topology,
    struct sgp_error *error, struct sgp_edge_place *ret_culprit)
{
    switch (method->wants) {
    case SGP_WANTS_ANY:
        return 0;
    case SGP_WANTS_SYMMETRIC:
        return sgp_topology_metropolis(topology, error, ret_culprit);
    case SGP_WANTS_REVERSES:
        return sgp_topology_reverses(topology, error, ret_culprit);
    }
    sgp_assert_failed("a method wants a known kind of topology", __FILE__, __LINE__);
}
