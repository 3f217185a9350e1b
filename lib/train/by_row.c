/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of single rows; see by_row.h. */
#include "by_row.h"

double sgp_by_row_square(const float *values, size_t count)
{
    enum { CHAINS = 8 }; /* independent, so that no addition waits for the one before */
    double sums[CHAINS] = {0}, sum = 0;
    const size_t whole = count - count % CHAINS;
    for (size_t i = 0; i < whole; i += CHAINS)
        for (size_t j = 0; j < CHAINS; j++)
            sums[j] += (double)values[i + j] * (double)values[i + j];
    for (size_t i = whole; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    for (size_t j = 0; j < CHAINS; j++)
        sum += sums[j];
    return sum;
}

void sgp_by_row_take(
    const struct sgp_pass *pass, size_t row, const float *own, float *sum, size_t count)
{
    const float factor = pass->factors ? pass->factors[row] : 1;
    if (pass->squares)
        pass->squares[row] += sgp_by_row_square(own, count);
    else
        for (size_t i = 0; i < count; i++)
            sum[i] += factor * own[i];
}
