/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the best model: keep_best, evaluate_every and best_patience of [train]. */
#include "prepare_inside.h"

#include <inttypes.h>

struct sgp_best_times prepared_best_times(const struct prepared *p)
{
    return (struct sgp_best_times){.first = p->topology->prelude_rounds,
        .cycle = p->topology->rounds_per_cycle,
        .every = (sgp_round)p->config->evaluate_every};
}

/* Keys that only mean something beside keep_best. */
static int check_alone(const struct prepared *p, struct sgp_error *error)
{
    static const enum config_id ids[] = {CONFIG_ID_EVALUATE_EVERY, CONFIG_ID_BEST_PATIENCE};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (p->config->changed[ids[i]])
            return config_fail(p->config, ids[i], error, SGP_E_CONFIG,
                "nothing is evaluated for it without keep_best; give keep_best a measure, or "
                "remove "
                "it");
    return 0;
}

/* All nodes must be in one round, or their models are never those of one moment. */
static int check_method(const struct prepared *p, struct sgp_error *error)
{
    const char *why = sgp_method_lacks_best(p->method);
    return why == NULL ? 0
                       : config_fail(p->config, CONFIG_ID_KEEP_BEST, error, SGP_E_CONFIG,
                             "with algorithm %s %s; choose " SGP_METHODS_WITH_BEST ", or remove it",
                             p->method->name, why);
}

static int check_times(const struct prepared *p, struct sgp_error *error)
{
    const struct sgp_best_times times = prepared_best_times(p);
    if (times.every == 0)
        return config_fail(p->config, CONFIG_ID_KEEP_BEST, error, SGP_E_CONFIG,
            "nothing says when the models are evaluated; give [train] evaluate_every, the same on "
            "every node");
    if (times.every < 2 * times.cycle)
        return config_fail(p->config, CONFIG_ID_EVALUATE_EVERY, error, SGP_E_CONFIG,
            "a cycle of %s has %" PRId64
            " rounds, and one without steps comes before each evaluation; give at least %" PRId64,
            prepared_file(p), times.cycle, 2 * times.cycle);
    return 0;
}

/* A relay has no rows, and does not measure. */
static int check_measure(const struct prepared *p, struct sgp_error *error)
{
    const enum sgp_best_measure measure = prepared_keeps_best(p);
    const struct sgp_dataset *rows = p->data.train;
    if (rows == NULL)
        return 0;
    const enum sgp_measures_kind kind = sgp_loss_measures(p->model.loss, rows->classes > 0);
    if (sgp_best_suits(measure, kind))
        return 0;
    if (kind == SGP_MEASURES_SCORES && measure == SGP_BEST_LOG_LOSS)
        return config_fail(p->config, CONFIG_ID_KEEP_BEST, error, SGP_E_CONFIG,
            "with loss = %s the outputs are no probabilities, so there is no log_loss; choose %s",
            sgp_loss_name(p->model.loss), sgp_best_suiting(kind));
    return config_fail(p->config, CONFIG_ID_KEEP_BEST, error, SGP_E_CONFIG,
        "the label is %s number, so there is no %s; choose %s",
        kind == SGP_MEASURES_NUMBERS ? "a" : "no", sgp_best_measure_name(measure),
        sgp_best_suiting(kind));
}

static void warn(struct prepared *p)
{
    const struct sgp_best_times times = prepared_best_times(p);
    if (p->data.train != NULL && p->data.test == NULL)
        prepared_warn(p,
            "%s:%u: [train] keep_best: this node has no held-out rows, so the best model is chosen "
            "by the rows of the others; give [data] test or holdout",
            p->config->file, p->config->lines[CONFIG_ID_KEEP_BEST]);
    if (!prepared_copies_best(p))
        prepared_warn(p,
            "%s:%u: [train] keep_best: the model has %" PRIu64
            " parameters, and a node takes the copy of another one only of up to %u; all nodes "
            "keep the model of the same round, but each its own, which differ by their "
            "disagreement",
            p->config->file, p->config->lines[CONFIG_ID_KEEP_BEST], p->parameters,
            PREPARED_COPIED_MAX);
    if (p->data.train != NULL && p->rounds < times.first + sgp_best_period(&times))
        prepared_warn(p,
            "%s:%u: [train] evaluate_every: training ends after %" PRId64
            " rounds, before the first evaluation; only the last model is measured",
            p->config->file, p->config->lines[CONFIG_ID_EVALUATE_EVERY], p->rounds);
}

int prepare_best(struct prepared *p, struct sgp_error *error)
{
    if (prepared_keeps_best(p) == 0)
        return check_alone(p, error);
    if (p->config->kind == CONFIG_ATTACHED)
        return config_fail(p->config, CONFIG_ID_KEEP_BEST, error, SGP_E_CONFIG,
            "the model is a program's, which alone knows the labels; let it choose its best model "
            "itself (node.mean), and remove it");
    int code = check_method(p, error);
    if (code == 0)
        code = check_times(p, error);
    if (code == 0)
        code = check_measure(p, error);
    if (code == 0)
        warn(p);
    return code;
}
