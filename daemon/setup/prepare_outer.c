/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings of outer steps that raise the loss. The limits are measured: docs/METHODS.md, "When an
 * outer step helps", and bench/compare/outer.ini. */
#include "prepare_inside.h"

#include "sgp/optimizer.h"

#include <math.h>

/* The momentum of the optimizer lasts mu / (1 - mu) steps. An outer step multiplies it by
 * alpha / (1 - beta), and steps in between let it end. Runs in which the product was at most 2.25
 * times these steps gained, and those from 2.8 times on lost. */
#define OVERSHOOT 2.5
/* The momentum of outer steps lasts 1 / (1 - beta) of them. Runs of at most 4.4 times as many lost,
 * and those from 7.3 times on gained. */
#define SETTLED 5.0
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

/* "momentum = 0.45", rounded down, or no outer step. */
static const char *remedy(double limit, char text[static 32])
{
    double hundredths = floor(limit * 100 + ROUNDING);
    (void)snprintf(text, 32, hundredths > 0 ? "momentum = %.2g" : "kind = none", hundredths / 100);
    return text;
}

int prepare_warn_of_outer(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    double alpha = config->outer_learning_rate, beta = config->outer_momentum;
    double steps = steps_between(p), horizon = inner_horizon(config);
    (void)error; /* no step here can fail */
    if (config->outer - 1 == SGP_OUTER_NONE || prepare_is_relay(p) || steps == 0 || beta == 0)
        return 0;
    unsigned given = config->lines[CONFIG_ID_OUTER_MOMENTUM];
    unsigned line = given > 0 ? given : config->lines[CONFIG_ID_OUTER];
    double count = (double)p->rounds * (double)config->local_steps / steps;
    double steady = 1 - alpha * horizon / (OVERSHOOT * steps), settled = 1 - SETTLED / count;
    char text[32];
    if (beta > steady + ROUNDING)
        prepared_warn(p,
            "%s:%u: [outer] momentum: %g overshoots after %.6g steps with the momentum of "
            "[optimizer], and raises the loss; write %s, or more local_steps",
            config->file, line, beta, steps, remedy(steady, text));
    if (beta > settled + ROUNDING)
        prepared_warn(p,
            "%s:%u: [outer] momentum: a run of %.0f outer steps is too short for %g, which raises "
            "the loss; write %s, or train for longer",
            config->file, line, count, beta, remedy(settled, text));
    return 0;
}
