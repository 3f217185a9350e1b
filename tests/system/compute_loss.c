/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a loss, for test_losses.py: compute_loss NAME SMOOTHING DELTA LABELLED WEIGHTED ROWS
 * COLUMNS. Standard input: the weights (COLUMNS float32, if WEIGHTED is 1), the outputs (ROWS x
 * COLUMNS float32), and the labels (ROWS uint32) if LABELLED is 1, else the values (as the
 * outputs). Standard output: the loss, summed over the rows, float64; the gradient, float32. */
#include "train/loss.h"

#include <stdio.h>
#include <stdlib.h>

#define VALUES_MAX 4096u

static bool read_floats(float *values, size_t count)
{
    return fread(values, sizeof *values, count, stdin) == count;
}

int main(int count, char **arguments)
{
    static float weights[VALUES_MAX], outputs[VALUES_MAX], values[VALUES_MAX], delta[VALUES_MAX];
    static uint32_t labels[VALUES_MAX];
    if (count != 8)
        return 2;
    const bool labelled = atoi(arguments[4]), weighted = atoi(arguments[5]);
    const size_t rows = strtoul(arguments[6], NULL, 10), columns = strtoul(arguments[7], NULL, 10);
    const struct sgp_loss_settings settings = {.label_smoothing = strtod(arguments[2], NULL),
        .huber_delta = strtod(arguments[3], NULL),
        .class_weights = weighted ? weights : NULL,
        .class_weight_count = (uint32_t)columns};
    const enum sgp_loss loss = sgp_loss_find(arguments[1]);
    if (rows * columns > VALUES_MAX || !loss)
        return 2;
    if (!read_floats(weights, weighted ? columns : 0) || !read_floats(outputs, rows * columns) ||
        !(labelled ? fread(labels, sizeof *labels, rows, stdin) == rows
                   : read_floats(values, rows * columns)))
        return 1;
    if (sgp_loss_check(loss, &settings, (uint32_t)columns, NULL) < 0)
        return 2;
    struct sgp_loss_sum sum = sgp_loss_batch(loss, &settings, delta, outputs,
        labelled ? labels : NULL, labelled ? NULL : values, rows, columns);
    return fwrite(&sum.loss, sizeof sum.loss, 1, stdout) == 1 &&
                   fwrite(delta, sizeof *delta, rows * columns, stdout) == rows * columns
               ? 0
               : 1;
}
