/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate as a function of the epoch; no state. Any thread. */
#include "sgp/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int sgp_schedule_milestones_parse(
    struct sgp_schedule *schedule, const char *text, struct sgp_error *error)
{
    static const char separators[] = " \t,";
    double milestones[SGP_MILESTONES_MAX];
    uint32_t count = 0;
    for (text += strspn(text, separators); *text != '\0'; text += strspn(text, separators)) {
        if (count == SGP_MILESTONES_MAX)
            return sgp_fail(
                error, SGP_E_CONFIG, "more than %u milestones; leave some out", SGP_MILESTONES_MAX);
        char *end;
        milestones[count] = strtod(text, &end);
        if (end == text || (*end != '\0' && !strchr(separators, *end)))
            return sgp_fail(error, SGP_E_CONFIG,
                "'%.32s' is not a list of epochs; write for example 30 60 80", text);
        count++;
        text = end;
    }
    memcpy(schedule->milestones, milestones, count * sizeof *milestones);
    schedule->milestone_count = count;
    return 0;
}

static int check_milestones(const struct sgp_schedule *schedule, struct sgp_error *error)
{
    if (!(schedule->factor > 0.0 && schedule->factor <= 1.0))
        return sgp_fail(error, SGP_E_CONFIG,
            "a step schedule's factor of %g is not above 0 and at most 1; 0.1 is usual",
            schedule->factor);
    if (schedule->milestone_count == 0 || schedule->milestone_count > SGP_MILESTONES_MAX)
        return sgp_fail(error, SGP_E_CONFIG,
            "a step schedule has %u milestones; give 1 to %u epochs", schedule->milestone_count,
            SGP_MILESTONES_MAX);
    double last = 0.0;
    for (uint32_t i = 0; i < schedule->milestone_count; i++) {
        double milestone = schedule->milestones[i];
        if (!(milestone > last && milestone <= SGP_EPOCHS_MAX))
            return sgp_fail(error, SGP_E_CONFIG,
                "milestone %g does not follow %g; give rising epochs, at most %g", milestone, last,
                SGP_EPOCHS_MAX);
        last = milestone;
    }
    return 0;
}

int sgp_schedule_check(const struct sgp_schedule *schedule, struct sgp_error *error)
{
    if (!(isfinite(schedule->learning_rate) && schedule->learning_rate >= 0.0))
        return sgp_fail(error, SGP_E_CONFIG, "a learning rate of %g is not finite and at least 0",
            schedule->learning_rate);
    if (!(schedule->warmup_epochs >= 0.0 && schedule->warmup_epochs <= SGP_EPOCHS_MAX))
        return sgp_fail(error, SGP_E_CONFIG, "a warm-up of %g epochs is not between 0 and %g",
            schedule->warmup_epochs, SGP_EPOCHS_MAX);
    switch (schedule->kind) {
    case SGP_SCHEDULE_CONSTANT:
        return 0;
    case SGP_SCHEDULE_STEP:
        return check_milestones(schedule, error);
    case SGP_SCHEDULE_COSINE:
        if (schedule->epochs > schedule->warmup_epochs && schedule->epochs <= SGP_EPOCHS_MAX)
            return 0;
        return sgp_fail(error, SGP_E_CONFIG,
            "a cosine schedule over %g epochs does not outlast its warm-up of %g; give more epochs",
            schedule->epochs, schedule->warmup_epochs);
    }
    return sgp_fail(error, SGP_E_CONFIG, "unknown schedule kind %d", (int)schedule->kind);
}

double sgp_schedule_rate(const struct sgp_schedule *schedule, double epoch)
{
    double rate = schedule->learning_rate;
    if (schedule->kind == SGP_SCHEDULE_STEP)
        for (uint32_t i = 0; i < schedule->milestone_count && schedule->milestones[i] <= epoch; i++)
            rate *= schedule->factor;
    if (schedule->kind == SGP_SCHEDULE_COSINE)
        rate = epoch < schedule->epochs ? 0.5 * rate * (1.0 + cos(M_PI * epoch / schedule->epochs))
                                        : 0.0;
    if (epoch < schedule->warmup_epochs)
        rate *= epoch / schedule->warmup_epochs;
    return rate;
}
