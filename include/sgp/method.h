/* A way to train together is a preset over four questions: what is shared, with whom, when to wait,
 * how to absorb. The engine asks the preset; it has no branch named after a method. */
#ifndef SGP_METHOD_H
#define SGP_METHOD_H

#include "sgp/types.h"

enum sgp_what { SGP_WHAT_PARAMETERS = 1 };       /* x, with its weight */
enum sgp_whom { SGP_WHOM_OUT_NEIGHBOURS = 1 };   /* of the round, in the topology file */
enum sgp_when { SGP_WHEN_ALL_PROMISED = 1 };     /* wait for every live promise of the round */
enum sgp_how { SGP_HOW_IN_ORDER_OF_SOURCE = 1 }; /* a round repeats to the bit */

struct sgp_method {
    const char *name; /* as in `[train] algorithm` */
    enum sgp_what what;
    enum sgp_whom whom;
    enum sgp_when when;
    enum sgp_how how;
};

/* The preset of a name, or NULL. `sgp`: Assran et al., ICML 2019, Algorithm 1. */
SGP_API const struct sgp_method *sgp_method_find(const char *name);

#endif
