/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all kinds of layers. */
#include "layer.h"

#include <string.h>

static const struct sgp_layer_methods *const kinds[] = {
    [SGP_LAYER_DENSE] = &sgp_layer_dense,
    [SGP_LAYER_CONV] = &sgp_layer_conv,
    [SGP_LAYER_POOL] = &sgp_layer_pool,
    [SGP_LAYER_NORM] = &sgp_layer_norm,
    [SGP_LAYER_DROPOUT] = &sgp_layer_dropout,
    [SGP_LAYER_EMBEDDING] = &sgp_layer_embedding,
    [SGP_LAYER_RESIDUAL] = &sgp_layer_residual,
};
#define KINDS (sizeof kinds / sizeof kinds[0])

const struct sgp_layer_methods *sgp_layer_methods(enum sgp_layer_kind kind)
{
    return kinds[kind];
}

enum sgp_layer_kind sgp_layer_find(const char *word)
{
    for (size_t kind = 1; kind < KINDS; kind++)
        if (strcmp(word, kinds[kind]->word) == 0)
            return (enum sgp_layer_kind)kind;
    return 0;
}

void sgp_layer_words(struct sgp_text *text)
{
    for (size_t kind = 1; kind < KINDS; kind++)
        sgp_text_add(text, "%s%s", kind == 1 ? "" : ", ", kinds[kind]->word);
}
