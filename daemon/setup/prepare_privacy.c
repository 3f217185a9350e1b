/* SPDX-License-Identifier: Apache-2.0 */
/* What private steps cost, and the noise that they need; see prepare.h. */
#include "prepare_inside.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* In files with owners a worker without a step gives no update, and its owner would wait. Where no
 * node waits for others, one without steps would run ahead of all, and step_by_rate would raise the
 * learning rates of the others. */
static int check_place(const struct prepared *p, struct sgp_error *error)
{
    if (p->topology->owner != SGP_NODE_NONE)
        return config_fail(p->config, CONFIG_ID_PRIVACY_EPSILON, error, SGP_E_CONFIG,
            "%s has owners, and private steps are for nodes that mix; take a file "
            "without owners, or remove the section",
            prepared_file(p));
    return sgp_method_waits(p->method)
               ? 0
               : config_fail(p->config, CONFIG_ID_PRIVACY_EPSILON, error, SGP_E_CONFIG,
                     "with algorithm %s each node keeps its own pace, and one whose epsilon is "
                     "spent would run ahead of all; choose " SGP_METHODS_THAT_WAIT
                     ", or remove the section",
                     p->method->name);
}

/* The noise of the configuration, or the least with which epsilon is enough for all steps. */
static int find_noise(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    struct prepared_privacy *privacy = &p->privacy;
    struct sgp_error why = {0};
    privacy->noise = config->privacy_noise;
    if (privacy->noise > 0)
        return 0;
    int code = sgp_privacy_noise_for(config->privacy_epsilon, config->privacy_delta,
        privacy->chance, privacy->steps, &why, &privacy->noise);
    return code < 0 ? config_fail(config, CONFIG_ID_PRIVACY_EPSILON, error, code, "%s", why.text)
                    : 0;
}

static void warn(struct prepared *p)
{
    const struct config *config = p->config;
    const uint64_t rows = p->data.train->rows;
    if (config->privacy_delta * (double)rows >= 1)
        prepared_warn(p,
            "%s:%u: [privacy] delta is 1 / rows or more: telling a whole row at random would be "
            "allowed; give far less than %.1g",
            config->file, config->lines[CONFIG_ID_PRIVACY_DELTA], 1 / (double)rows);
}

int prepare_privacy(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    struct prepared_privacy *privacy = &p->privacy;
    struct sgp_privacy_cost all = {0};
    if (!config_is_private(config) || prepare_is_relay(p)) /* a relay has no rows */
        return 0;
    int code = check_place(p, error);
    if (code < 0)
        return code;
    const double rows = (double)p->data.train->rows;
    privacy->chance = fmin(1, (double)config->batch / rows);
    privacy->steps = (uint64_t)p->rounds * config->local_steps;
    code = find_noise(p, error);
    if (code < 0)
        return code;
    privacy->on = true;
    sgp_privacy_step(privacy->chance, privacy->noise, &privacy->step);
    sgp_privacy_add(&all, &privacy->step, privacy->steps);
    privacy->epsilon = sgp_privacy_epsilon(&all, config->privacy_delta);
    p->settings.privacy =
        (struct sgp_learner_privacy){.clip = config->privacy_clip, .noise = privacy->noise};
    warn(p);
    return 0;
}

bool prepared_lacks_epsilon(const struct prepared *p, const struct sgp_privacy_cost *spent,
    uint64_t steps, char text[SGP_TEXT_BYTES])
{
    const struct config *config = p->config;
    const uint64_t left = sgp_privacy_steps_left(
        spent, &p->privacy.step, config->privacy_epsilon, config->privacy_delta);
    if (left >= steps)
        return false;
    (void)snprintf(text, SGP_TEXT_BYTES,
        "%s:%u: [privacy] epsilon is spent after %" PRIu64 " of the %" PRIu64
        " steps to come; from then on this node mixes without steps: give more noise, fewer rounds "
        "or a smaller batch",
        config->file, config->lines[CONFIG_ID_PRIVACY_EPSILON], left, steps);
    return true;
}
