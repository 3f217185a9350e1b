/* SPDX-License-Identifier: Apache-2.0 */
/* A model that a text describes, for the tests of layers. */
#ifndef LAYERS_H
#define LAYERS_H

#include "reference_layers.h"
#include "sgp/learner.h"
#include "sgp/random.h"
#include "train/layer.h"
#include "train/network.h"

#include <criterion/criterion.h>
#include <assertions.h>

static __attribute__((unused)) struct sgp_model describe(
    const char *layers, enum sgp_loss loss, struct sgp_shape input)
{
    struct sgp_model model;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_model_init_shaped(&model, layers, loss, input, &error), 0), "%s: %s",
        layers, error.text);
    return model;
}

#endif
