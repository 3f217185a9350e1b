/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings of outer steps that can raise the loss. The limits are measured. See "When an outer step
 * helps" in docs/METHODS.md, and bench/compare/outer.ini. */
#include "prepare_inside.h"

#include "sgp/optimizer.h"

#include <math.h>

/* The momentum of the optimizer lasts mu / (1 - mu) steps. An outer step multiplies it by
 * alpha / (1 - beta), and steps in between let it end. With slowmo, runs gained if the product
 * was at most 2.25 times these steps, and nearly all lost from 2.8 times on. With nesterov, runs
 * gained or were equal up to 3.9 times, and most lost at 7.9 times. */
static const double overshoot[] = {[SGP_OUTER_SLOWMO] = 2.5, [SGP_OUTER_NESTEROV] = 5};
/* The momentum of outer steps lasts 1 / (1 - beta) of them. Runs of 5.8 times as many and more
 * gained, and most of those up to 4.4 times lost. */
#define SETTLED 5.0
/* Of runs with a constant rate and momentum, most lost from a gain of 2 on, and none at 1.4. */
#define CONSTANT_GAIN 1.5
#define ROUNDING 1e-9 /* so that the momentum that a warning names causes none */

/* Steps of the optimizer from one outer step of the cycle to the next, on the mean; 0 if only the
 * prelude has outer steps. */
static double steps_between(const struct prepared *p)
{
    uint32_t outer = 0;
    for (uint32_t i = 0; i < p->topology->phase_count; i++)
        outer += p->topology->phases[i].outer && !p->topology->phases[i].once;
    double steps = (double)p->topology->cycle.turns * (double)p->config->local_steps;
    return outer > 0 ? steps / outer : 0;
}

/* The steps that the optimizer's momentum lasts. */
static double inner_horizon(const struct config *config)
{
    unsigned uses = sgp_optimizer_uses(config->optimizer);
    double momentum = uses & SGP_USES_MOMENTUM ? config->momentum : config->beta1;
    return uses & (SGP_USES_MOMENTUM | SGP_USES_BETAS) ? momentum / (1 - momentum) : 0;
}

/* The line of a key, or if it is absent, of the key that asks for outer steps. */
static unsigned line_of(const struct config *config, enum config_id id)
{
    return config->lines[id] > 0 ? config->lines[id] : config->lines[CONFIG_ID_OUTER];
}

/* The momentum to write: the limit, rounded down. */
static double remedy(double limit)
{
    return limit > 0 ? floor(limit * 100 + ROUNDING) / 100 : 0;
}

/* A momentum that is too high for the optimizer's, or for the length of the run. */
static void warn_of_momentum(struct prepared *p, enum sgp_outer_kind kind, double steps)
{
    const struct config *config = p->config;
    double beta = config->outer_momentum;
    double count = (double)p->rounds * (double)config->local_steps / steps;
    double product = config->outer_learning_rate * inner_horizon(config); /* times 1 / (1 - beta) */
    double steady = 1 - product / (overshoot[kind] * steps), settled = 1 - SETTLED / count;
    unsigned line = line_of(config, CONFIG_ID_OUTER_MOMENTUM);
    if (beta > steady + ROUNDING)
        prepared_warn(p,
            "%s:%u: [outer] momentum: %g every %.6g steps overshoots with the momentum of "
            "[optimizer], and can raise the loss; write momentum = %g, or more local_steps",
            config->file, line, beta, steps, remedy(steady));
    if (beta > settled + ROUNDING)
        prepared_warn(p,
            "%s:%u: [outer] momentum: a run of %.0f outer steps is too short for %g, which can "
            "raise the loss; write momentum = %g, or train for longer",
            config->file, line, count, beta, remedy(settled));
}

/* Outer steps multiply the rate, and the noise of the last steps with it. */
static void warn_of_constant_rate(struct prepared *p)
{
    const struct config *config = p->config;
    double gain = config->outer_learning_rate / (1 - config->outer_momentum);
    if (config->schedule == SGP_SCHEDULE_CONSTANT && gain > CONSTANT_GAIN &&
        inner_horizon(config) > 0)
        prepared_warn(p,
            "%s:%u: [optimizer] schedule: outer steps multiply the constant learning rate by %.3g, "
            "which can raise the loss; write schedule = cosine",
            config->file, line_of(config, CONFIG_ID_SCHEDULE), gain);
}

int prepare_warn_of_outer(struct prepared *p, struct sgp_error *error)
{
    enum sgp_outer_kind kind = (enum sgp_outer_kind)(p->config->outer - 1);
    double steps = steps_between(p);
    (void)error; /* no step here can fail */
    if (kind == SGP_OUTER_NONE || prepare_is_relay(p) || steps == 0)
        return 0;
    if (p->config->outer_momentum > 0)
        warn_of_momentum(p, kind, steps);
    warn_of_constant_rate(p);
    return 0;
}
