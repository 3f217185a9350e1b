/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parameters of a model's layers lie; see sgp/model.h. Any thread. */
#ifndef SGP_TRAIN_PARAMETERS_H
#define SGP_TRAIN_PARAMETERS_H

#include "sgp/model.h"

/* Assign the next parameters of its vector to a layer, which is shared at first. Returns 0, or
 * SGP_E_LIMIT with *error filled and *model unchanged. */
int sgp_parameters_place(struct sgp_model *model, struct sgp_layer *layer, struct sgp_error *error);

#endif
