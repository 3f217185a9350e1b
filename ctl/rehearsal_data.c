/* SPDX-License-Identifier: Apache-2.0 */
/* From a CSV file to the rows and the settings of all sites; see rehearsal.h. The configuration is
 * that of `sgpctl config new`, written and read as there. */
#include "rehearsal.h"

#include "train/names.h"

#include "sgp/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODES 4u
#define SHARDS "iid"
#define SEED_MAX INT64_MAX

/* ---- the options ---- */

/* The options that `sgpctl config new` has too, under the same names. */
static void hand_over(struct ctl_rehearsal *rehearsal, const char *file)
{
    static const struct {
        int from, to;
    } same[] = {{COMPARE_LABEL, NEW_LABEL}, {COMPARE_IGNORE, NEW_IGNORE},
        {COMPARE_HOLDOUT, NEW_HOLDOUT}, {COMPARE_LAYERS, NEW_LAYERS}, {COMPARE_EPOCHS, NEW_EPOCHS},
        {COMPARE_BATCH, NEW_BATCH}, {COMPARE_RATE, NEW_RATE}};
    struct ctl_given *given = rehearsal->draft.given;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        given[same[i].to] = rehearsal->given[same[i].from];
    given[NEW_DATA] = (struct ctl_given){.name = "FILE", .given = true, .value = file};
}

static enum ctl_exit take_plan(struct ctl_rehearsal *rehearsal)
{
    struct ctl *ctl = rehearsal->ctl;
    const struct ctl_given *given = rehearsal->given;
    struct sgp_error why = {0};
    uint64_t count = NODES;
    const char *shards = given[COMPARE_SHARDS].given ? given[COMPARE_SHARDS].value : SHARDS;
    rehearsal->plan.seed = 1;
    enum ctl_exit status = ctl_option_u64(ctl, &given[COMPARE_NODES], 2, SGP_NODES_MAX - 1, &count);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[COMPARE_SEED], 0, SEED_MAX, &rehearsal->plan.seed);
    if (status == CTL_DONE && sgp_sites_parse(shards, &why, &rehearsal->plan) < 0)
        status = ctl_usage(ctl, "--shards: %s", why.text);
    rehearsal->plan.count = (uint32_t)count;
    return status;
}

static enum ctl_exit take_options(struct ctl_rehearsal *rehearsal)
{
    struct ctl_draft *draft = &rehearsal->draft;
    enum ctl_exit status = take_plan(rehearsal);
    if (status == CTL_DONE)
        status = ctl_draft_take_numbers(draft);
    if (status == CTL_DONE && draft->holdout <= 0)
        status = ctl_usage(rehearsal->ctl,
            "--holdout 0 leaves no rows to measure on; give a part of the rows, such as 0.2");
    draft->epochs = 1; /* ctl_rehearsal_site says how many without --epochs */
    if (status == CTL_DONE)
        status = ctl_option_u64(
            rehearsal->ctl, &draft->given[NEW_EPOCHS], 1, CTL_EPOCHS_MAX, &draft->epochs);
    rehearsal->plan.holdout = draft->holdout;
    return status;
}

/* ---- the configuration ---- */

/* The text of `sgpctl config new --scale fleet`, for a node of some fleet, as a daemon reads it. */
static enum ctl_exit make_config(struct ctl_rehearsal *rehearsal)
{
    static const struct sgp_topology_node node = {.name = "n0"};
    struct ctl_draft *draft = &rehearsal->draft;
    struct sgp_error error = {0};
    char *text = NULL;
    size_t bytes = 0;
    if (ctl_rows_refuse_fleet(&draft->rows, &error))
        return ctl_fail(rehearsal->ctl, CTL_INVALID, "%s", error.text);
    draft->node = &node;
    draft->algorithm = sgp_method_at(0)->name;
    draft->listen = "127.0.0.1:7311";
    (void)strcpy(draft->topology_path, "fleet.dot");
    (void)strcpy(draft->scale, CTL_SCALE_FLEET);
    ctl_draft_choose_rule(draft, true);
    FILE *file = open_memstream(&text, &bytes);
    if (!file)
        return ctl_fail(rehearsal->ctl, CTL_FAILED, "out of memory");
    ctl_draft_put(draft, file);
    int code = fclose(file) == 0
                   ? config_parse("fleet.conf", text, bytes, &error, &rehearsal->config)
                   : sgp_fail(&error, -ENOMEM, "out of memory");
    free(text);
    return code < 0 ? ctl_fail(rehearsal->ctl, CTL_INVALID, "%s", error.text) : CTL_DONE;
}

/* ---- the rows ---- */

static int read_scaling(struct ctl_rehearsal *rehearsal, struct sgp_error *error)
{
    const struct ctl_rows *rows = &rehearsal->draft.rows;
    const bool classes = ctl_rows_classify(rows);
    char *label = classes ? NULL : ctl_rows_label(rows);
    char *left_out = ctl_rows_left_out(rows, classes);
    int code = left_out && (classes || label)
                   ? sgp_scaling_compute(rows->path, label, left_out, error, &rehearsal->scaling)
                   : sgp_fail(error, -ENOMEM, "out of memory");
    free(label);
    free(left_out);
    return code;
}

static int read_rows(
    struct ctl_rehearsal *rehearsal, struct sgp_error *error, struct sgp_dataset **ret_table)
{
    const struct config *config = &rehearsal->config;
    struct sgp_error why = {0};
    if (*config->classes && sgp_names_split(config->classes, SGP_NAMES_CLASSES, &why,
                                &rehearsal->class_names, &rehearsal->class_count) < 0)
        return sgp_fail(error, SGP_E_CONFIG, "%s", why.text);
    const struct sgp_csv_options options = {.label = config->label,
        .class_names = (const char *const *)rehearsal->class_names,
        .class_count = rehearsal->class_count,
        .scaling = rehearsal->scaling,
        .missing = config->missing};
    return sgp_dataset_read_csv(config->train, &options, error, ret_table);
}

static enum ctl_exit divide(struct ctl_rehearsal *rehearsal)
{
    struct sgp_error error = {0}, why = {0};
    struct sgp_dataset *table = NULL;
    int code = read_scaling(rehearsal, &error);
    if (code == 0)
        code = read_rows(rehearsal, &error, &table);
    if (code == 0 &&
        (code = sgp_sites_divide(&rehearsal->plan, table, &why, &rehearsal->sites)) < 0)
        (void)sgp_fail(&error, code, "%s: %s", rehearsal->draft.rows.file, why.text);
    sgp_dataset_destroy(table);
    return code < 0 ? ctl_fail(rehearsal->ctl, CTL_INVALID, "%s", error.text) : CTL_DONE;
}

/* ---- the model ---- */

static enum ctl_exit refuse_layers(
    const struct ctl_rehearsal *rehearsal, const struct sgp_error *why)
{
    return ctl_fail(rehearsal->ctl, CTL_INVALID, "--layers: %s", why->text);
}

static enum ctl_exit make_model(struct ctl_rehearsal *rehearsal)
{
    const struct config *config = &rehearsal->config;
    const struct sgp_dataset *rows = rehearsal->sites.all;
    struct sgp_error why = {0};
    const uint32_t outputs = rows->classes > 0 ? rows->classes : rows->targets;
    struct sgp_model *model = &rehearsal->model;
    if (sgp_model_init_shaped(model, config->layers, config->loss, rows->shape, &why) < 0)
        return refuse_layers(rehearsal, &why);
    if (model->outputs != outputs)
        return ctl_fail(rehearsal->ctl, CTL_INVALID,
            "--layers: the last layer has %u outputs, and the label needs %u; make it dense %u",
            model->outputs, outputs, outputs);
    if (model->parameters > SGP_SIM_DIMENSION_MAX)
        return ctl_fail(rehearsal->ctl, CTL_INVALID,
            "--layers: %llu parameters; a rehearsal takes at most %u",
            (unsigned long long)model->parameters, SGP_SIM_DIMENSION_MAX);
    struct sgp_loss_settings loss = {
        .label_smoothing = config->label_smoothing, .huber_delta = config->huber_delta};
    if (rows->scaled_targets)
        loss.target_scales = sgp_scaling_targets(rehearsal->scaling, &loss.target_scale_count);
    if (sgp_model_set_loss(model, &loss, &why) < 0)
        return refuse_layers(rehearsal, &why);
    return CTL_DONE;
}

int ctl_rehearsal_site(const struct ctl_rehearsal *rehearsal, const struct sgp_dataset *rows,
    uint32_t index, uint32_t count, struct sgp_error *error,
    struct sgp_learner_settings *ret_settings, uint64_t *ret_steps)
{
    struct config config = rehearsal->config;
    if (!rehearsal->given[COMPARE_EPOCHS].given)
        config.epochs = ctl_draft_epochs(&rehearsal->draft, (double)rows->rows);
    *ret_settings = rehearsal->settings;
    ret_settings->train = rows;
    ret_settings->node = index;
    int code = config_schedule(&config, rows->rows, count, error, &ret_settings->schedule);
    if (code == 0)
        *ret_steps = sgp_schedule_steps(
            &ret_settings->schedule, rows->rows, (uint32_t)config.batch, config.epochs);
    return code;
}

static enum ctl_exit make_settings(struct ctl_rehearsal *rehearsal)
{
    const struct config *config = &rehearsal->config;
    struct sgp_learner_settings *settings = &rehearsal->settings;
    struct sgp_error why = {0};
    *settings = (struct sgp_learner_settings){.model = rehearsal->model,
        .batch = (uint32_t)config->batch,
        .threads = (uint32_t)config->threads,
        .precision = SGP_PRECISION_FLOAT32,
        .outer = {.kind = SGP_OUTER_NONE},
        .seed = rehearsal->plan.seed,
        .evaluation = rehearsal->sites.held};
    config_rule(config, 1, &settings->optimizer);
    struct sgp_learner_settings whole;
    uint64_t steps;
    int code = ctl_rehearsal_site(rehearsal, rehearsal->sites.all, 0, 1, &why, &whole, &steps);
    if (code == 0)
        code = sgp_learner_check(&whole, &why, &rehearsal->workspace_bytes);
    return code < 0 ? ctl_fail(rehearsal->ctl, CTL_INVALID, "%s", why.text) : CTL_DONE;
}

/* ---- the whole ---- */

enum ctl_exit ctl_rehearsal_prepare(struct ctl_rehearsal *rehearsal, const char *file)
{
    static enum ctl_exit (*const steps[])(struct ctl_rehearsal *) = {
        make_config, divide, make_model, make_settings, NULL};
    rehearsal->draft.ctl = rehearsal->ctl;
    hand_over(rehearsal, file);
    enum ctl_exit status = take_options(rehearsal);
    if (status == CTL_DONE)
        status = ctl_draft_read_rows(&rehearsal->draft);
    for (int i = 0; status == CTL_DONE && steps[i] != NULL; i++)
        status = steps[i](rehearsal);
    return status;
}

void ctl_rehearsal_finish(struct ctl_rehearsal *rehearsal)
{
    sgp_sites_finish(&rehearsal->sites);
    sgp_scaling_destroy(rehearsal->scaling);
    sgp_names_free(rehearsal->class_names, rehearsal->class_count);
    config_finish(&rehearsal->config);
    ctl_rows_finish(&rehearsal->draft.rows);
}
