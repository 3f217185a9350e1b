/* SPDX-License-Identifier: Apache-2.0 */
/* The account of differential privacy: divergences of steps, and epsilon. Any thread; no state. */
#include "sgp/privacy.h"

#include <math.h>

static const unsigned orders[SGP_PRIVACY_ORDERS] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
    40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
    64, 80, 96, 128, 192, 256, 384, 512};
#define ORDER_MAX 512u

unsigned sgp_privacy_order(unsigned i)
{
    sgp_assert(i < SGP_PRIVACY_ORDERS);
    return orders[i];
}

/* log(1 + S) / (order - 1), where S is the sum over k >= 2 of
 * C(order, k) (1 - q)^(order - k) q^k (exp(k (k - 1) / (2 noise^2)) - 1). The paper's sum is 1 + S:
 * without the 1 a small S keeps its digits. Terms span thousands of powers of e, so they are summed
 * relative to the greatest. */
static double divergence(double chance, double noise, unsigned order)
{
    const double double_variance = 2 * noise * noise;
    if (chance == 1) /* every row is in every step: the normal mechanism */
        return order / double_variance;
    double terms[ORDER_MAX + 1], most = -INFINITY, sum = 0, choices = log(order);
    for (unsigned k = 2; k <= order; k++) {
        double power = k * (k - 1.0) / double_variance;
        choices += log((double)(order - k + 1) / k);
        terms[k] =
            choices + (order - k) * log1p(-chance) + k * log(chance) + power + log(-expm1(-power));
        most = fmax(most, terms[k]);
    }
    for (unsigned k = 2; k <= order; k++)
        sum += exp(terms[k] - most);
    double log_sum = most + log(sum);
    double result = log_sum > 0 ? log_sum + log1p(exp(-log_sum)) : log1p(exp(log_sum));
    return result / (order - 1);
}

void sgp_privacy_step(double chance, double noise, struct sgp_privacy_cost *ret_cost)
{
    sgp_assert(chance > 0 && chance <= 1);
    sgp_assert(noise >= SGP_PRIVACY_NOISE_MIN && noise <= SGP_PRIVACY_NOISE_MAX);
    for (unsigned i = 0; i < SGP_PRIVACY_ORDERS; i++)
        ret_cost->divergence[i] = divergence(chance, noise, orders[i]);
}

void sgp_privacy_add(
    struct sgp_privacy_cost *total, const struct sgp_privacy_cost *cost, uint64_t steps)
{
    for (unsigned i = 0; i < SGP_PRIVACY_ORDERS; i++)
        total->divergence[i] += (double)steps * cost->divergence[i];
}

void sgp_privacy_raise(struct sgp_privacy_cost *cost, const struct sgp_privacy_cost *other)
{
    for (unsigned i = 0; i < SGP_PRIVACY_ORDERS; i++)
        cost->divergence[i] = fmax(cost->divergence[i], other->divergence[i]);
}

double sgp_privacy_epsilon(const struct sgp_privacy_cost *cost, double delta)
{
    double least = INFINITY, most_divergence = 0;
    sgp_assert(delta > 0 && delta < 1);
    for (unsigned i = 0; i < SGP_PRIVACY_ORDERS; i++) {
        double order = orders[i];
        double epsilon = cost->divergence[i] + log((order - 1) / order) -
                         (log(delta) + log(order)) / (order - 1);
        least = fmin(least, epsilon);
        most_divergence = fmax(most_divergence, cost->divergence[i]);
    }
    return most_divergence > 0 ? fmax(least, 0) : 0;
}

/* epsilon of `total` and so many more steps. */
static double epsilon_after(const struct sgp_privacy_cost *total,
    const struct sgp_privacy_cost *step, uint64_t steps, double delta)
{
    struct sgp_privacy_cost sum = *total;
    sgp_privacy_add(&sum, step, steps);
    return sgp_privacy_epsilon(&sum, delta);
}

uint64_t sgp_privacy_steps_left(const struct sgp_privacy_cost *total,
    const struct sgp_privacy_cost *step, double epsilon, double delta)
{
    uint64_t few = 0, many = 1; /* `few` steps are within epsilon */
    if (!(sgp_privacy_epsilon(total, delta) <= epsilon))
        return 0;
    while (many < SGP_PRIVACY_STEPS_MAX && epsilon_after(total, step, many, delta) <= epsilon) {
        few = many;
        many *= 2;
    }
    while (many - few > 1) {
        uint64_t middle = few + (many - few) / 2;
        if (epsilon_after(total, step, middle, delta) <= epsilon)
            few = middle;
        else
            many = middle;
    }
    return few;
}

static double epsilon_of(double chance, double noise, uint64_t steps, double delta)
{
    struct sgp_privacy_cost step, total = {0};
    sgp_privacy_step(chance, noise, &step);
    return epsilon_after(&total, &step, steps, delta);
}

int sgp_privacy_noise_for(double epsilon, double delta, double chance, uint64_t steps,
    struct sgp_error *error, double *ret_noise)
{
    double low = SGP_PRIVACY_NOISE_MIN, high = 2 * SGP_PRIVACY_NOISE_MIN;
    while (high < SGP_PRIVACY_NOISE_MAX && epsilon_of(chance, high, steps, delta) > epsilon)
        high = fmin(2 * high, SGP_PRIVACY_NOISE_MAX);
    if (epsilon_of(chance, high, steps, delta) > epsilon)
        return sgp_fail(error, SGP_E_LIMIT,
            "no noise up to %g keeps %llu steps within epsilon %g at delta %g; give a larger "
            "epsilon or delta",
            SGP_PRIVACY_NOISE_MAX, (unsigned long long)steps, epsilon, delta);
    while (high - low > 1e-3) {
        double middle = (low + high) / 2;
        if (epsilon_of(chance, middle, steps, delta) > epsilon)
            low = middle;
        else
            high = middle;
    }
    *ret_noise = high;
    return 0;
}
