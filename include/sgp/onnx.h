/* SPDX-License-Identifier: Apache-2.0 */
/* A model file as ONNX, for the runtimes of others: operator set 13 of ai.onnx, and 1 of ai.onnx.ml
 * if the model takes words. docs/MODELS.md has the inputs, the outputs and the tags.
 *
 * The graph takes rows as `sgpctl predict --model` takes them, and answers with the same numbers:
 * scaling, layers, and the softmax, the sigmoid or the units of the label columns are in it. A
 * graph can refuse no row: if a row lacks a number that the model must have, its answers are NaN,
 * -1, or a class without a name. Any thread; blocks on the disk. */
#ifndef SGP_ONNX_H
#define SGP_ONNX_H

#include "sgp/predictor.h"

/* Write the model of a predictor to path, and replace the file atomically. SGP_E_LIMIT if the file
 * would be larger than the 2 GiB of a protobuf message, -errno, -ENOMEM. */
int sgp_onnx_write(
    const struct sgp_predictor *predictor, const char *path, struct sgp_error *error);

#endif
