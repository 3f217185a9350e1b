/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rate and batch as functions of the epoch: the table has one row for each schedule. No
 * state. Any thread. */
#include "sgp/schedule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the rate of each schedule ---- */

static uint32_t milestones_until(const struct sgp_schedule *schedule, double epoch)
{
    uint32_t count = 0;
    while (count < schedule->milestone_count && schedule->milestones[count] <= epoch)
        count++;
    return count;
}

static double rate_constant(const struct sgp_schedule *schedule, double epoch)
{
    (void)epoch;
    return schedule->learning_rate;
}

static double rate_step(const struct sgp_schedule *schedule, double epoch)
{
    double rate = schedule->learning_rate;
    for (uint32_t i = milestones_until(schedule, epoch); i > 0; i--)
        rate *= schedule->factor;
    return rate;
}

/* Loshchilov, Hutter 2017, equation 5, without restarts. */
static double rate_cosine(const struct sgp_schedule *schedule, double epoch)
{
    return epoch < schedule->epochs
               ? 0.5 * schedule->learning_rate * (1.0 + cos(M_PI * epoch / schedule->epochs))
               : 0.0;
}

/* Vaswani et al. 2017, equation 3. The warm-up below is the other branch of that equation. */
static double rate_inverse_sqrt(const struct sgp_schedule *schedule, double epoch)
{
    double warmup = schedule->warmup_epochs;
    return schedule->learning_rate * sqrt(warmup / fmax(epoch, warmup));
}

static double rate_linear(const struct sgp_schedule *schedule, double epoch)
{
    double fall = 1.0 - schedule->final_fraction;
    return epoch < schedule->epochs
               ? schedule->learning_rate * (1.0 - fall * epoch / schedule->epochs)
               : schedule->learning_rate * schedule->final_fraction;
}

/* Smith 2017, section 3.1: the policy `triangular`. */
static double rate_cyclic(const struct sgp_schedule *schedule, double epoch)
{
    double period = schedule->period_epochs, low = schedule->low_fraction;
    double triangle = 1.0 - fabs(2.0 * fmod(epoch, period) / period - 1.0);
    return schedule->learning_rate * (low + (1.0 - low) * triangle);
}

/* Smith, Topin 2018, section 3: a cycle, then a fall below the initial rate. */
static double rate_one_cycle(const struct sgp_schedule *schedule, double epoch)
{
    double period = schedule->period_epochs, low = schedule->low_fraction;
    if (epoch < period)
        return rate_cyclic(schedule, epoch);
    if (epoch >= schedule->epochs)
        return schedule->learning_rate * schedule->final_fraction;
    double part = (epoch - period) / (schedule->epochs - period);
    return schedule->learning_rate * (low + (schedule->final_fraction - low) * part);
}

/* Smith et al. 2018, section 5: while the batch grows, the rate does not change. */
static double rate_growing(const struct sgp_schedule *schedule, double epoch)
{
    double rate = schedule->learning_rate;
    for (uint32_t i = milestones_until(schedule, epoch); i > schedule->growths; i--)
        rate *= schedule->factor;
    return rate;
}

#define MILESTONES (SGP_SCHEDULE_MILESTONES | SGP_SCHEDULE_FACTOR)
#define CYCLE (SGP_SCHEDULE_LOW | SGP_SCHEDULE_PERIOD)

static const struct row {
    const char *word;
    unsigned uses; /* of enum sgp_schedule_parameter */
    double (*rate)(const struct sgp_schedule *schedule, double epoch); /* without the warm-up */
} rows_of_kinds[] = {
    [SGP_SCHEDULE_CONSTANT] = {"constant", 0, rate_constant},
    [SGP_SCHEDULE_STEP] = {"step", MILESTONES, rate_step},
    [SGP_SCHEDULE_COSINE] = {"cosine", SGP_SCHEDULE_END, rate_cosine},
    [SGP_SCHEDULE_INVERSE_SQRT] = {"inverse-sqrt", SGP_SCHEDULE_WARMUP, rate_inverse_sqrt},
    [SGP_SCHEDULE_LINEAR] = {"linear", SGP_SCHEDULE_END | SGP_SCHEDULE_FINAL, rate_linear},
    [SGP_SCHEDULE_CYCLIC] = {"cyclic", CYCLE, rate_cyclic},
    [SGP_SCHEDULE_ONE_CYCLE] = {"one-cycle", CYCLE | SGP_SCHEDULE_END | SGP_SCHEDULE_FINAL,
        rate_one_cycle},
    [SGP_SCHEDULE_GROWING_BATCH] = {"growing-batch", MILESTONES | SGP_SCHEDULE_GROWTHS,
        rate_growing},
};

const char *sgp_schedule_word(enum sgp_schedule_kind kind)
{
    return rows_of_kinds[kind].word;
}

bool sgp_schedule_uses(enum sgp_schedule_kind kind, enum sgp_schedule_parameter parameter)
{
    return (rows_of_kinds[kind].uses & (unsigned)parameter) != 0;
}

void sgp_schedule_users(enum sgp_schedule_parameter parameter, char text[SGP_SCHEDULE_WORDS_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (int kind = 1; kind <= (int)SGP_SCHEDULE_KINDS; kind++)
        if (sgp_schedule_uses((enum sgp_schedule_kind)kind, parameter))
            used += (size_t)snprintf(text + used, SGP_SCHEDULE_WORDS_BYTES - used, "%s%s",
                used > 0 ? ", " : "", rows_of_kinds[kind].word);
}

/* ---- ranges ---- */

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
    const char *word = sgp_schedule_word(schedule->kind);
    bool whole = sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_GROWTHS);
    if (!(schedule->factor > 0.0 && schedule->factor <= 1.0))
        return sgp_fail(error, SGP_E_CONFIG,
            "a %s schedule's factor of %g is not above 0 and at most 1; 0.1 is usual", word,
            schedule->factor);
    if (schedule->milestone_count == 0 || schedule->milestone_count > SGP_MILESTONES_MAX)
        return sgp_fail(error, SGP_E_CONFIG, "a %s schedule has %u milestones; give 1 to %u epochs",
            word, schedule->milestone_count, SGP_MILESTONES_MAX);
    double last = 0.0;
    for (uint32_t i = 0; i < schedule->milestone_count; i++) {
        double milestone = schedule->milestones[i];
        if (!(milestone > last && milestone <= SGP_EPOCHS_MAX))
            return sgp_fail(error, SGP_E_CONFIG,
                "milestone %g does not follow %g; give rising epochs, at most %g", milestone, last,
                SGP_EPOCHS_MAX);
        if (whole && milestone != floor(milestone))
            return sgp_fail(error, SGP_E_CONFIG,
                "milestone %g is not a whole epoch; a batch grows between two epochs", milestone);
        last = milestone;
    }
    return 0;
}

static int check_warmup(const struct sgp_schedule *schedule, struct sgp_error *error)
{
    if (!(schedule->warmup_epochs >= 0.0 && schedule->warmup_epochs <= SGP_EPOCHS_MAX))
        return sgp_fail(error, SGP_E_CONFIG, "a warm-up of %g epochs is not between 0 and %g",
            schedule->warmup_epochs, SGP_EPOCHS_MAX);
    if (!(schedule->warmup_fraction >= 0.0 && schedule->warmup_fraction <= 1.0))
        return sgp_fail(error, SGP_E_CONFIG,
            "a warm-up from %g of the rate does not begin between 0 and 1",
            schedule->warmup_fraction);
    if (sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_WARMUP) && !(schedule->warmup_epochs > 0.0))
        return sgp_fail(error, SGP_E_CONFIG,
            "an inverse-sqrt schedule falls from the end of its warm-up on; give warmup_epochs");
    return 0;
}

static int check_end(const struct sgp_schedule *schedule, struct sgp_error *error)
{
    if (schedule->epochs > schedule->warmup_epochs && schedule->epochs <= SGP_EPOCHS_MAX)
        return 0;
    return sgp_fail(error, SGP_E_CONFIG,
        "a %s schedule over %g epochs does not outlast its warm-up of %g; give more epochs",
        sgp_schedule_word(schedule->kind), schedule->epochs, schedule->warmup_epochs);
}

static int check_period(const struct sgp_schedule *schedule, struct sgp_error *error)
{
    const char *word = sgp_schedule_word(schedule->kind);
    double period = schedule->period_epochs;
    if (isnan(period))
        return sgp_fail(error, SGP_E_CONFIG,
            "a %s schedule needs the length of its cycle; give period_epochs", word);
    if (!(period > 0.0 && period <= SGP_EPOCHS_MAX))
        return sgp_fail(error, SGP_E_CONFIG,
            "a %s schedule's period_epochs of %g is not above 0 and at most %g", word, period,
            SGP_EPOCHS_MAX);
    if (sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_END) && period > schedule->epochs)
        return sgp_fail(error, SGP_E_CONFIG,
            "a %s schedule's period_epochs of %g is above the %g epochs of training", word, period,
            schedule->epochs);
    return 0;
}

static int check_fractions(const struct sgp_schedule *schedule, struct sgp_error *error)
{
    const char *word = sgp_schedule_word(schedule->kind);
    bool low = sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_LOW);
    bool final = sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_FINAL);
    if (low && !(schedule->low_fraction >= 0.0 && schedule->low_fraction <= 1.0))
        return sgp_fail(error, SGP_E_CONFIG,
            "a %s schedule's low_fraction of %g is not between 0 and 1; 0.1 is usual", word,
            schedule->low_fraction);
    if (final && !(schedule->final_fraction >= 0.0 && schedule->final_fraction <= 1.0))
        return sgp_fail(error, SGP_E_CONFIG,
            "a %s schedule's final_fraction of %g is not between 0 and 1", word,
            schedule->final_fraction);
    if (low && final && schedule->final_fraction > schedule->low_fraction)
        return sgp_fail(error, SGP_E_CONFIG,
            "a %s schedule falls at the end, and its final_fraction of %g is above its "
            "low_fraction of %g",
            word, schedule->final_fraction, schedule->low_fraction);
    return 0;
}

int sgp_schedule_check(const struct sgp_schedule *schedule, struct sgp_error *error)
{
    if (schedule->kind < SGP_SCHEDULE_CONSTANT || schedule->kind > SGP_SCHEDULE_KINDS)
        return sgp_fail(error, SGP_E_CONFIG, "unknown schedule kind %d", (int)schedule->kind);
    if (!(isfinite(schedule->learning_rate) && schedule->learning_rate >= 0.0))
        return sgp_fail(error, SGP_E_CONFIG, "a learning rate of %g is not finite and at least 0",
            schedule->learning_rate);
    int code = check_warmup(schedule, error);
    if (code == 0 && sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_MILESTONES))
        code = check_milestones(schedule, error);
    if (code == 0 && sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_END))
        code = check_end(schedule, error);
    if (code == 0 && sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_PERIOD))
        code = check_period(schedule, error);
    return code < 0 ? code : check_fractions(schedule, error);
}

/* ---- the functions ---- */

double sgp_schedule_rate(const struct sgp_schedule *schedule, double epoch)
{
    double rate = rows_of_kinds[schedule->kind].rate(schedule, epoch);
    double from = schedule->warmup_fraction;
    if (epoch < schedule->warmup_epochs)
        rate *= from + (1.0 - from) * (epoch / schedule->warmup_epochs);
    return rate;
}

/* The batch after so many of the milestones. */
static uint32_t batch_after(const struct sgp_schedule *schedule, uint32_t batch, uint32_t count)
{
    double grown = batch;
    if (!sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_GROWTHS))
        return batch;
    for (uint32_t i = 0; i < count && i < schedule->growths; i++)
        grown /= schedule->factor;
    return grown < UINT32_MAX ? (uint32_t)round(grown) : UINT32_MAX;
}

uint32_t sgp_schedule_batch(const struct sgp_schedule *schedule, uint32_t batch, double epoch)
{
    return batch_after(schedule, batch, milestones_until(schedule, epoch));
}

/* Epochs with the same batch, between two milestones. */
struct stretch {
    uint64_t from, until; /* epochs */
    uint64_t steps;       /* of an epoch */
    uint32_t batch;
};

static struct stretch stretch_of(
    const struct sgp_schedule *schedule, uint64_t rows, uint32_t batch, uint32_t index)
{
    bool grows = sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_GROWTHS);
    uint32_t last = grows ? schedule->milestone_count : 0;
    uint64_t grown = batch_after(schedule, batch, index);
    grown = grown < rows ? grown : rows;
    return (struct stretch){.from = index > 0 ? (uint64_t)schedule->milestones[index - 1] : 0,
        .until = index < last ? (uint64_t)schedule->milestones[index] : UINT64_MAX,
        .steps = (rows + grown - 1) / grown,
        .batch = (uint32_t)grown};
}

struct sgp_schedule_place sgp_schedule_find(
    const struct sgp_schedule *schedule, uint64_t rows, uint32_t batch, uint64_t steps)
{
    struct stretch stretch = stretch_of(schedule, rows, batch, 0);
    for (uint32_t i = 1; steps / stretch.steps >= stretch.until - stretch.from; i++) {
        steps -= (stretch.until - stretch.from) * stretch.steps;
        stretch = stretch_of(schedule, rows, batch, i);
    }
    return (struct sgp_schedule_place){.epoch = stretch.from + steps / stretch.steps,
        .step = steps % stretch.steps,
        .steps_per_epoch = stretch.steps,
        .batch = stretch.batch,
        .done = (double)stretch.from + (double)steps / (double)stretch.steps,
        .middle = (double)stretch.from + ((double)steps + 0.5) / (double)stretch.steps};
}

uint64_t sgp_schedule_steps(
    const struct sgp_schedule *schedule, uint64_t rows, uint32_t batch, uint64_t epochs)
{
    struct stretch stretch = stretch_of(schedule, rows, batch, 0);
    uint64_t steps = 0;
    for (uint32_t i = 1; epochs > stretch.until; i++) {
        steps += (stretch.until - stretch.from) * stretch.steps;
        stretch = stretch_of(schedule, rows, batch, i);
    }
    return steps + (epochs - stretch.from) * stretch.steps;
}
