/* SPDX-License-Identifier: Apache-2.0 */
/* What a private training would cost, without a daemon: epsilon of a noise, or the noise for an
 * epsilon. */
#include "ctl.h"

#include "sgp/dataset.h"
#include "sgp/learner.h"
#include "sgp/privacy.h"

#include <math.h>

#define DELTA 1e-5

enum { ROWS, BATCH, EPOCHS, STEPS, NOISE, EPSILON, DELTA_OPTION, OPTIONS };

struct plan {
    uint64_t rows, batch, steps;
    double epochs, noise, epsilon, delta;
};

static enum ctl_exit take(struct ctl *ctl, const struct ctl_given *given, struct plan *plan)
{
    enum ctl_exit status = ctl_option_u64(ctl, &given[ROWS], 1, SGP_ROWS_MAX, &plan->rows);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[BATCH], 1, SGP_BATCH_MAX, &plan->batch);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[EPOCHS], 1e-6, SGP_EPOCHS_MAX, &plan->epochs);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[STEPS], 1, SGP_PRIVACY_STEPS_MAX, &plan->steps);
    if (status == CTL_DONE)
        status = ctl_option_real(
            ctl, &given[NOISE], SGP_PRIVACY_NOISE_MIN, SGP_PRIVACY_NOISE_MAX, &plan->noise);
    if (status == CTL_DONE)
        status = ctl_option_real(
            ctl, &given[EPSILON], SGP_PRIVACY_EPSILON_MIN, SGP_PRIVACY_EPSILON_MAX, &plan->epsilon);
    if (status == CTL_DONE)
        status = ctl_option_real(
            ctl, &given[DELTA_OPTION], SGP_PRIVACY_DELTA_MIN, SGP_PRIVACY_DELTA_MAX, &plan->delta);
    if (status == CTL_DONE && given[EPOCHS].given == given[STEPS].given)
        return ctl_usage(ctl, "give --epochs or --steps, one of them");
    if (status == CTL_DONE && given[NOISE].given == given[EPSILON].given)
        return ctl_usage(ctl, "give --noise for its epsilon, or --epsilon for its noise");
    return status;
}

/* Fill in what the options leave open. */
static enum ctl_exit work_out(struct ctl *ctl, bool noise_is_given, struct plan *plan)
{
    struct sgp_error error = {0};
    struct sgp_privacy_cost step, total = {0};
    if (plan->batch > plan->rows)
        plan->batch = plan->rows;
    const double chance = (double)plan->batch / (double)plan->rows;
    if (plan->steps == 0) /* steps of an epoch: as the learner counts them */
        plan->steps = (uint64_t)ceil(plan->epochs * ceil((double)plan->rows / (double)plan->batch));
    if (!noise_is_given && sgp_privacy_noise_for(plan->epsilon, plan->delta, chance, plan->steps,
                               &error, &plan->noise) < 0)
        return ctl_fail(ctl, CTL_FAILED, "%s", error.text);
    sgp_privacy_step(chance, plan->noise, &step);
    sgp_privacy_add(&total, &step, plan->steps);
    plan->epsilon = sgp_privacy_epsilon(&total, plan->delta);
    return CTL_DONE;
}

static enum ctl_exit print(struct ctl *ctl, const struct plan *plan)
{
    json_t *json = json_pack("{s:I, s:I, s:f, s:I, s:f, s:f, s:f}", "rows", (json_int_t)plan->rows,
        "batch", (json_int_t)plan->batch, "chance_of_a_row",
        (double)plan->batch / (double)plan->rows, "steps", (json_int_t)plan->steps, "noise",
        plan->noise, "epsilon", plan->epsilon, "delta", plan->delta);
    if (ctl->json)
        return ctl_print_json(json);
    ctl_print_object(ctl, json);
    json_decref(json);
    if (plan->delta * (double)plan->rows >= 1)
        (void)printf("warning: delta is 1 / rows or more: publishing a whole row at random would "
                     "be allowed; give a smaller delta\n");
    return CTL_DONE;
}

static enum ctl_exit plan_privacy(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    struct plan plan = {.delta = DELTA};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 0, 0);
    if (status == CTL_DONE)
        status = take(ctl, given, &plan);
    if (status == CTL_DONE)
        status = work_out(ctl, given[NOISE].given, &plan);
    return status == CTL_DONE ? print(ctl, &plan) : status;
}

static const struct ctl_option options[] = {
    [ROWS] = {"--rows", .value = "N", .summary = "rows that the node trains on", .required = true},
    [BATCH] = {"--batch", .value = "N",
        .summary = "rows that a step takes on average; each row is in it with the probability "
                   "batch / rows",
        .required = true},
    [EPOCHS] = {"--epochs", .value = "N", .summary = "epochs of training"},
    [STEPS] = {"--steps", .value = "N", .summary = "steps of training, instead of epochs"},
    [NOISE] = {"--noise", .value = "SIGMA",
        .summary = "deviation of the noise of a step, as a multiple of the clipping length; prints "
                   "epsilon"},
    [EPSILON] = {"--epsilon", .value = "EPSILON",
        .summary = "what training may cost; prints the least noise for it"},
    [DELTA_OPTION] = {"--delta", .value = "DELTA",
        .summary = "probability with which epsilon may fail; by default 1e-5. Choose it far below "
                   "1 / rows"},
    [OPTIONS] = {0}};

const struct ctl_command ctl_plan_privacy_command = {.words = "plan-privacy",
    .operands = "",
    .summary = "compute epsilon of noisy steps, or the noise for an epsilon",
    .help =
        "The steps are those of differentially private SGD: each row is in a step with the\n"
        "probability batch / rows, its gradient is clipped, and noise is added to the sum. The\n"
        "account is by Renyi divergences of whole orders, for a row against an empty one in\n"
        "its place. It overstates epsilon by 10 to 20%, and never understates it. No daemon is\n"
        "needed.\n"
        "\n"
        "  sgpctl plan-privacy --rows 1000 --batch 32 --epochs 20 --noise 1.5\n"
        "  sgpctl plan-privacy --rows 15000 --batch 64 --epochs 10 --epsilon 1\n",
    .options = options,
    .run = plan_privacy};
