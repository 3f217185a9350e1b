/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of [optimizer] as a schedule and as the rule of a step; declared in config.h. Any
 * thread; no state. */
#include "config.h"

#include "sgp/message.h"

#include <inttypes.h>

/* Linear scaling (Goyal et al. 2017, section 2.1): the step of all nodes together takes `batch`
 * rows of each. The warm-up begins at the rate of base_batch (section 2.2). */
static int scale(const struct config *config, uint32_t trainers, struct sgp_error *error,
    struct sgp_schedule *schedule)
{
    if (config->base_batch == 0)
        return 0;
    double times = (double)config->batch * trainers / (double)config->base_batch;
    schedule->learning_rate *= times;
    schedule->warmup_fraction = times > 1 ? 1 / times : 0;
    if (schedule->learning_rate <= SGP_RATE_MAX)
        return 0;
    return config_fail(config, CONFIG_ID_BASE_BATCH, error, SGP_E_CONFIG,
        "%" PRIu32 " nodes of %" PRIu64 " rows make the learning rate %g; it is at most %u",
        trainers, config->batch, schedule->learning_rate, SGP_RATE_MAX);
}

static int check(
    const struct config *config, const struct sgp_schedule *schedule, struct sgp_error *error)
{
    struct sgp_error why = {0};
    return sgp_schedule_check(schedule, &why) < 0
               ? config_fail(config, CONFIG_ID_SCHEDULE, error, SGP_E_CONFIG, "%s", why.text)
               : 0;
}

/* If rounds are given instead of epochs, the end depends on how the batch grows. */
static int find_end(const struct config *config, uint64_t rows, struct sgp_error *error,
    struct sgp_schedule *schedule)
{
    if (config->rounds == 0)
        return 0;
    schedule->epochs = sgp_schedule_find(
        schedule, rows, (uint32_t)config->batch, config->rounds * config->local_steps)
                           .done;
    return check(config, schedule, error);
}

int config_schedule(const struct config *config, uint64_t rows, uint32_t trainers,
    struct sgp_error *error, struct sgp_schedule *ret_schedule)
{
    struct sgp_error why = {0};
    struct sgp_schedule schedule = {.kind = config->schedule,
        .learning_rate = config->learning_rate,
        .warmup_epochs = config->warmup_epochs,
        .epochs = config->rounds > 0 ? SGP_EPOCHS_MAX : (double)config->epochs,
        .factor = config->factor,
        .final_fraction = config->final_fraction,
        .low_fraction = config->low_fraction,
        .period_epochs = config->period_epochs,
        .growths = (uint32_t)config->growths};
    if (sgp_schedule_uses(config->schedule, SGP_SCHEDULE_MILESTONES) &&
        sgp_schedule_milestones_parse(&schedule, config->milestones, &why) < 0)
        return config_fail(config, CONFIG_ID_MILESTONES, error, SGP_E_CONFIG, "%s", why.text);
    int code = scale(config, trainers, error, &schedule);
    if (code == 0)
        code = check(config, &schedule, error);
    if (code == 0)
        code = find_end(config, rows, error, &schedule);
    if (code == 0)
        *ret_schedule = schedule;
    return code;
}

void config_rule(
    const struct config *config, double noise_fraction, struct sgp_optimizer_settings *ret_settings)
{
    *ret_settings = (struct sgp_optimizer_settings){.kind = config->optimizer,
        .momentum = config->momentum,
        .weight_decay = config->weight_decay,
        .beta1 = config->beta1,
        .beta2 = config->beta2,
        .alpha = config->alpha,
        .epsilon = config->epsilon,
        .trust = config->trust,
        .clip_norm = config->clip_norm,
        .clip_value = config->clip_value,
        .noise_fraction = noise_fraction};
}
